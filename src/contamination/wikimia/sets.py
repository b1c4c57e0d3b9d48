"""Passages of collected pages: WikiMIA's sets, a harder one, what they give away, their card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files as files_of
from typing import Any

import pandas as pd

from contamination.core import blind
from contamination.core.blind import feasible_folds
from contamination.core.overlap import normalised
from contamination.core.tables import markdown
from contamination.core.words import units
from contamination.models.chat import OK, Endpoint, Request, answer_all
from contamination.wikimia.pages import KEPT, MEMBER, SHORT

WIKIMIA, TWO_REVISIONS = "WikiMIA", "two revisions"
PARAPHRASED = "WikiMIA paraphrased"
# The paper names no prompt; this one is ours.
PARAPHRASE_PROMPT = (
    "Paraphrase the passage below. Keep its meaning, its names, dates and numbers, and about its "
    "length. Answer with the paraphrase alone.\n\n{passage}"
)
_TOKENS_PER_WORD = 4


def passages(pages: pd.DataFrame, length: int) -> pd.DataFrame:
    """WikiMIA at one length: the first words (``input``) of every kept text that is long enough.

    ``label`` is 1 for a member, 0 for a non-member; n_words counts the whole text.
    """
    kept = pages[pages["outcome"] == KEPT]
    return _cut(kept.assign(label=(kept["kind"] == MEMBER).astype(int)), length)


def revision_pairs(pages: pd.DataFrame, length: int) -> tuple[pd.DataFrame, dict[str, int]]:
    """Two revisions of each member page, before and after, cut to the same length.

    Topic, author and event are the same on both sides; what is left is what
    was edited. A pair counts if both texts reach the length and differ in it.

    Returns:
        Columns of :func:`passages`, label 1 for the earlier revision and 0 for
        the later, one page after the other; and the number of pairs by what
        became of them: "no later revision", "short", "unchanged", "kept".
    """
    members = pages[(pages["outcome"] == KEPT) & (pages["kind"] == MEMBER)]
    with_later = members[members["later_text"].notna()].assign(label=1)
    later = with_later.assign(
        label=0,
        revision_id=with_later["later_revision_id"],
        revision_timestamp=with_later["later_timestamp"],
        text=with_later["later_text"],
    )
    before, after = _cut(with_later, length), _cut(later, length)
    both = before.merge(after, on="page_id", suffixes=("", "_after"))
    ids = both["page_id"][both["input"].map(normalised) != both["input_after"].map(normalised)]
    table = pd.concat([before, after]).query("page_id in @ids")
    table = table.sort_values(["page_id", "label"], ascending=[True, False], ignore_index=True)
    counts = {
        "no later revision": len(members) - len(with_later),
        SHORT: len(with_later) - len(both),
        "unchanged": len(both) - len(ids),
        KEPT: len(ids),
    }
    return table, counts


def _cut(texts: pd.DataFrame, length: int) -> pd.DataFrame:
    words = texts["text"].map(units)
    long_enough = words.str.len() >= length
    words, texts = words[long_enough], texts[long_enough]
    columns = ["label", "page_id", "title", "category", "created", "revision_id"]
    table = texts[[*columns, "revision_timestamp"]].assign(n_words=words.str.len())
    table.insert(0, "input", ["".join(each[:length]).rstrip() for each in words])
    return table.reset_index(drop=True)


def blind_baselines(
    tables: Mapping[tuple[str, int], pd.DataFrame], n_permutations: int = 100, seed: int = 0
) -> pd.DataFrame:
    """``blind.blind_table`` of each table, by (name of the set, length).

    The two revisions of a page are always in the same fold. A table with fewer than two passages
    of a kind has no row.
    """
    results = []
    for (name, length), table in tables.items():
        smaller = int(table["label"].value_counts().reindex([0, 1], fill_value=0).min())
        if smaller < 2:
            continue
        scored = blind.blind_table(
            table["input"].tolist(),
            table["label"] == 1,
            groups=table["page_id"] if name == TWO_REVISIONS else None,
            n_folds=feasible_folds(table["label"] == 1),
            n_permutations=n_permutations,
            seed=seed,
        )
        results.append(pd.DataFrame({"benchmark": name, "length": length} | dict(scored)))
    return pd.concat(results, ignore_index=True) if results else pd.DataFrame()


def paraphrased(
    table: pd.DataFrame, length: int, endpoint: Endpoint, **settings: Any
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The passages (of so many words) in other words, by a chat model.

    ``settings`` are those of ``chat.answer_all``.

    Returns:
        The rows whose answer has status "ok", ``input`` paraphrased and the
        passage itself in ``original``; and the number of answers by status.
    """
    limit = {"max_tokens": _TOKENS_PER_WORD * length}
    prompts = [PARAPHRASE_PROMPT.format(passage=passage) for passage in table["input"]]
    messages = [[{"role": "user", "content": prompt}] for prompt in prompts]
    requests = [Request(messages=each, options=limit) for each in messages]
    answers = answer_all(endpoint, requests, **settings)
    statuses = pd.Series([answer.status for answer in answers], dtype=str)
    texts = [" ".join(answer.text.split()) for answer in answers]
    result = table.assign(original=table["input"], input=texts)
    is_ok = (statuses == OK).to_numpy()
    return result[is_ok].reset_index(drop=True), statuses.value_counts().sort_index().to_dict()


COLUMNS = {
    "input": "the passage: the first words of the page's text, single spaces between them",
    "label": "1 member, 0 non-member; of two revisions 1 is the earlier",
    "page_id, title, url": "the page, and a lasting link to the revision used",
    "category": "where the page was found",
    "created": "time of the page's first revision",
    "revision_id, revision_timestamp": "the revision whose text is used",
    "n_words": "words of the whole text",
    "wiki, licence": "where the text comes from and under which licence",
}


def card(
    settings: Any,
    about: Mapping[str, Any],
    results: Mapping[str, pd.DataFrame],
    files: Sequence[str],
) -> str:
    """``card.md`` filled in: Markdown with the front matter that dataset hubs read.

    ``about`` is ``Wiki.about``; ``results`` the tables of ``building.build``, ``files`` the names
    of the Parquet files, without ending.
    """
    general, rights = about["general"], about["rightsinfo"]
    configs = [f"- config_name: {name}\n  data_files: {name}.parquet" for name in files]
    baselines = results["blind_baselines"]
    dropped = ["p", "permutation_high", "tpr_at_5_fpr", "overlap_pct"]
    template = files_of("contamination.wikimia").joinpath("card.md").read_text("utf-8")
    return template.format(
        settings=settings,
        language=general.get("lang", "en"),
        licence=rights.get("text") or "not stated by the wiki",
        link=rights.get("url") or "",
        configs="\n".join(configs),
        sitename=general["sitename"],
        generator=general["generator"],
        members=", ".join(f'"{name}"' for name in settings.member_categories),
        non_members=", ".join(f'"{name}"' for name in settings.non_member_categories),
        blind_baselines="Too few passages of one kind."
        if baselines.empty
        else markdown(baselines.drop(columns=dropped, errors="ignore")),
        filters=markdown(results["filters"]),
        sizes=markdown(results["sizes"]),
        columns=markdown(pd.DataFrame(COLUMNS.items(), columns=["column", "meaning"])),
    )
