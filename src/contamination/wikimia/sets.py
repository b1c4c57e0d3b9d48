"""Passages of collected pages: WikiMIA's sets, a harder one, what they give away, their card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from contamination.core import blind
from contamination.core.blind import feasible_folds
from contamination.core.overlap import normalised
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
    with_later = members[members["later_text"].notna()]
    names = {"revision_id": "later_revision_id", "revision_timestamp": "later_timestamp"}
    names["text"] = "later_text"
    later = with_later.assign(**{name: with_later[other] for name, other in names.items()})
    before, after = _cut(with_later.assign(label=1), length), _cut(later.assign(label=0), length)
    both = before.merge(after, on="page_id", suffixes=("", "_after"))
    ids = both["page_id"][both["input"].map(normalised) != both["input_after"].map(normalised)]
    table = pd.concat([before, after])
    table = table[table["page_id"].isin(ids)]
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
    """What each table, by (name of the set, length), gives away without any model.

    As :func:`blind.blind_table`. The two revisions of a page are always in the same fold. A
    table with fewer than two passages of a kind has no row.
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
    prompts = [PARAPHRASE_PROMPT.format(passage=passage) for passage in table["input"]]
    limit = {"max_tokens": _TOKENS_PER_WORD * length}
    requests = [
        Request(messages=[{"role": "user", "content": prompt}], options=limit) for prompt in prompts
    ]
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
_COUNTS = ["n_members", "n_non_members"]


def card(
    settings: Any,
    about: Mapping[str, Any],
    results: Mapping[str, pd.DataFrame],
    files: Sequence[str],
) -> str:
    """The card as Markdown with the front matter that dataset hubs read.

    ``about`` is ``Wiki.about``; ``results`` the tables of ``building.build``, ``files`` the names
    of the Parquet files, without ending.
    """
    general, rights = about["general"], about["rightsinfo"]
    licence = rights.get("text") or "not stated by the wiki"
    sections = [
        _front_matter(general.get("lang", "en"), licence, rights.get("url") or "", files),
        f"# Dated pages of {general['sitename']}: members and non-members",
        f"Built from {settings.wiki} ({general['generator']}), crawl {settings.crawl!r}, by the "
        "method of WikiMIA (Shi et al., arXiv:2310.16789, section 2.2). Members: pages of "
        f"{_listed(settings.member_categories)} created before {settings.member_cutoff}, as they "
        "stood before that date. Non-members: pages of "
        f"{_listed(settings.non_member_categories)} created on or after "
        f"{settings.non_member_cutoff}, as they stood before the snapshot of {settings.snapshot}. "
        f"Subcategories were followed {settings.depth} levels down.",
        "Both kinds go one way: the wiki renders the stated revision as HTML, and headings, "
        "tables, boxes, references and galleries are left out.",
        "In the set *two revisions* both passages come from one member page: before the member "
        "cut-off, and before the snapshot where that revision was saved after the non-member "
        "cut-off.",
        "## What can be told without a model",
        "These AUCs belong to classifiers that see the passages and their labels, and no model. A "
        "detector shows something about a model only where it does better than they do on the "
        "same rows.",
        _markdown(_readable(results["blind_baselines"])),
        "## Pages: found, asked, dropped, kept",
        _markdown(results["filters"]),
        "## Passages",
        _markdown(results["sizes"].astype(object).fillna("")),
        "## Columns",
        _markdown(pd.DataFrame(COLUMNS.items(), columns=["column", "meaning"])),
        "## Caveats",
        "* A page's first revision dates the page, not the event, and not each sentence.\n"
        "* Old revisions are rendered with the templates of the day of the crawl. A template that "
        "was changed since may show words that nobody saw then; one that is gone is left out. "
        "Both happen more often the older a revision is, so to members more than to non-members.\n"
        "* Whether a page is a redirect or a disambiguation page, and its title, are those of the "
        "day of the crawl.\n"
        "* A page that was deleted and written again counts as new.\n"
        "* That a page existed before a date does not prove that a given model read it.\n"
        f"* Text: {licence}. Each row names page and revision, whose history names the authors.",
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(language: str, licence: str, url: str, files: Sequence[str]) -> str:
    lines = ["---", f"language: {language}", "license: other", f'license_name: "{licence}"']
    lines += [f'license_link: "{url}"', "configs:"]
    for name in files:
        lines += [f"- config_name: {name}", f"  data_files: {name}.parquet"]
    return "\n".join([*lines, "---"])


def _readable(baselines: pd.DataFrame) -> pd.DataFrame:
    if baselines.empty:
        return baselines
    columns = ["benchmark", "length", "baseline", *_COUNTS, "auc", "ci_low", "ci_high"]
    table = baselines[[*columns, "permutation_null", "p_value"]].copy()
    rounded = ["auc", "ci_low", "ci_high", "permutation_null", "p_value"]
    table[rounded] = table[rounded].map(lambda value: "" if pd.isna(value) else f"{value:.3f}")
    return table


def _markdown(table: pd.DataFrame) -> str:
    if table.empty:
        return "Too few passages of one kind."
    rows = [list(table.columns), ["---"] * len(table.columns), *table.astype(str).to_numpy()]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
