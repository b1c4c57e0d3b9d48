"""Replication: completions of an audit's rows, and of one's own partition in notebook 03."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from contamination.audit import finding
from contamination.audit.asked import JUDGE, MODEL, Asked
from contamination.audit.finding import REPLICATION, UNSEEN, Audit, Finding, Target
from contamination.audit.rows import FEWEST_ROWS, Rows, whole
from contamination.audit.settings import Replication
from contamination.core.claims import CLAIMS
from contamination.core.overlap import words
from contamination.core.statistics import share_interval
from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_RUN,
    NOT_SUPPORTED,
    SUPPORTED,
)
from contamination.data import partitions
from contamination.models.causal import CausalLM
from contamination.models.chat import ERROR, REFUSED, Endpoint, Request
from contamination.models.judging import (
    INEXACT,
    JUDGE_OPTIONS,
    NEAR_EXACT_FROM,
    ask_judge,
    judge_requests,
)
from contamination.replication import completions, decisions, did_chatgpt_cheat, instructions
from contamination.replication.cutting import cut_rows
from contamination.replication.instructions import GENERAL, GUIDED, WRONG_DATASET, WRONG_SPLIT
from contamination.replication.prompts import FIRST_INSTANCES_PROMPT, JUDGE_PROMPT

FEWEST_WORDS = 4  # of a piece: the rule judge calls no shorter one a match
N_FIRST = 10  # instances at the head of the split that Did-ChatGPT-Cheat? knows
CHEAT_FORMAT = "CSV"
LETTERS_PER_TOKEN = 3  # as ``models.exchange.input_tokens`` counts them
_SMALLEST_SHARE = CLAIMS["replication_own"].smallest_effect


def completion_requests(prompts: Sequence[str], asked: Asked) -> list[Request]:
    """The paper's requests, as the endpoint takes them, cut at ``asked.completion_tokens``."""
    options = completions.PAPER_OPTIONS | {"max_tokens": asked.completion_tokens}
    return completions.chat_requests(prompts, asked.sent(options))


def written(
    asked: Asked,
    place: Endpoint | CausalLM,
    prompts: Sequence[str],
    form: str = instructions.INSTRUCT,
    n_tokens: int | None = None,
) -> pd.DataFrame:
    """Text and status of every completion; a local model gets instructions in its template.

    It writes at most ``n_tokens`` of them, by default ``asked.completion_tokens``.
    """
    if isinstance(place, Endpoint):
        requests = completion_requests(prompts, asked)
        return completions.by_chat(place, requests, **asked.paying(MODEL))
    n_tokens = n_tokens or asked.completion_tokens
    return completions.by_local_model(place, list(prompts), n_tokens, form)


def with_judge(scored: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """The scored completions with the ICL judge's label, status and bare "Yes".

    A completion that did not come has no label; an empty one is inexact.
    """
    pairs = scored["second_piece"].tolist(), scored["completion"].tolist()
    options = asked.sent(JUDGE_OPTIONS)
    found = ask_judge(asked.helpers[JUDGE], *pairs, JUDGE_PROMPT, options, **asked.paying(JUDGE))
    icl = pd.Series([one.label for one in found], scored.index)
    icl = icl.where(scored[decisions.RULE_COLUMN].notna(), None)
    bare = [one.is_bare_yes for one in found]
    return scored.assign(icl=icl, judge_status=[one.status for one in found], is_bare_yes=bare)


def longest_judgements(references: Sequence[str], asked: Asked) -> list[Request]:
    """What a judge is asked at most: each completion is taken to be as long as it may be."""
    n_letters = LETTERS_PER_TOKEN * asked.completion_tokens
    longest = ["x" * n_letters + str(n) for n in range(len(references))]
    return judge_requests(list(references), longest, JUDGE_PROMPT, asked.sent(JUDGE_OPTIONS))


# An audit


def replication(audit: Audit, target: Target) -> Finding:
    """Completions judged, guided on the dataset beside the other instructions and unseen rows."""
    has_unseen, prompts = audit.unseen is not None, audit_prompts(audit)
    done = completions.with_completions(prompts, _of_target(audit, target, prompts))
    scored = decisions.with_scores(done, NEAR_EXACT_FROM)
    if has_judge := JUDGE in audit.asked.helpers:
        scored = with_judge(scored, audit.asked)
    scored["verdict"] = scored["icl" if has_judge else decisions.RULE_COLUMN]
    of_data = scored[scored["rows"] == "dataset"]
    hits = scored["verdict"].dropna().ne(INEXACT).astype(float)
    shares = {
        name: finding.share_row(name, hits[hits.index.isin(part.index)], not has_unseen)
        for name, part in of_data.groupby("instruction", sort=False)
    }
    guided = shares.pop(GUIDED)
    found = list(shares.values())
    if has_unseen:
        is_unseen = scored.loc[hits.index, "rows"] == UNSEEN
        found.append(finding.share_row(UNSEEN, hits[is_unseen], True))
    notes = [finding.unusable(of_data.loc[of_data["instruction"] == GUIDED, "status"])]
    if has_unseen and shares[GENERAL]["value"] >= guided["value"] > 0:
        notes.append("as many without the names, so the names are not what it takes")
    # What no memory gives is not known beforehand; unseen rows show it.
    chance = found[-1]["value"] if has_unseen else 0.0
    statistic = f"matches by the {'ICL' if has_judge else 'rule'} judge"
    said = REPLICATION, statistic, guided, chance, found, "; ".join(filter(None, notes))
    row = finding.judged(audit, target, *said)
    return Finding(row, tuple(found), finding.status_counts(scored["status"]), scored)


def _of_target(audit: Audit, target: Target, prompts: pd.DataFrame) -> pd.DataFrame:
    if isinstance(target.place, Endpoint):
        return written(audit.asked, target.place, prompts["prompt"].tolist())
    tokenizer = target.place.tokenizer
    # No longer than the longest second piece: what follows is not compared.
    longest = max(len(ids) for ids in tokenizer(prompts["second_piece"].tolist()).input_ids)
    form = instructions.INSTRUCT if tokenizer.chat_template else instructions.CONTINUE
    texts = prompts["prompt" if form == instructions.INSTRUCT else "continued"].tolist()
    n_tokens = min(audit.asked.completion_tokens, longest + 8)
    return written(audit.asked, target.place, texts, form, n_tokens)


def audit_prompts(audit: Audit) -> pd.DataFrame:
    """The dataset under every instruction and unseen rows under the guided one, see ``rows``.

    Column continued holds the prompts for a model that does not follow instructions.
    """
    parts = [
        _prompts(audit, rows, (GUIDED,) if name == UNSEEN else ()).assign(rows=name)
        for name, rows in zip(("dataset", UNSEEN), audit.quizzed, strict=False)
    ]
    return pd.concat(parts, ignore_index=True)


def _prompts(audit: Audit, rows: Rows, only: Sequence[str]) -> pd.DataFrame:
    task, pieces = audit.data.task, cut_pieces(audit, rows)
    labels = sorted(audit.rows.rows[rows.label_column].unique()) if rows.labels else []
    if not only and task in instructions.LABELLED_TASKS and len(labels) < 2:
        only = (GUIDED, GENERAL, WRONG_DATASET, WRONG_SPLIT)  # no label could be wrong
    names = dict(zip(("dataset", "split"), audit.names, strict=True))
    same = names | {"labels": labels, "instructions": only}
    same |= dict(zip(("other_dataset", "other_split"), audit.data.other_names, strict=True))
    found = instructions.prompts_of(pieces, task, **same)
    continued = instructions.prompts_of(pieces, task, form=instructions.CONTINUE, **same)["prompt"]
    return found.assign(continued=continued, task=task, group=found["index"], **names)


def cut_pieces(audit: Audit, rows: Rows) -> pd.DataFrame:
    """The rows in two pieces; those with too few words for the judge are left out."""
    columns, cut = (audit.data.task, rows.texts, rows.label_column), []
    for place in range(len(rows.rows)):
        with contextlib.suppress(ValueError):  # too few words
            one = rows.rows.iloc[[place]]
            cut.append(cut_rows(one, *columns, seed=audit.seed, min_words=FEWEST_WORDS))
    pieces = [one for one in cut if len(words(one["second_piece"].iloc[0])) >= FEWEST_WORDS]
    if len(pieces) < FEWEST_ROWS:
        raise ValueError(
            f"{len(pieces)} of {len(rows.rows)} rows can be cut into two pieces of at least "
            f"{FEWEST_WORDS} words, at least {FEWEST_ROWS} are needed: longer texts, or a script "
            "that is written with spaces"
        )
    return pd.concat(pieces)


# Notebook 03


@dataclass(frozen=True)
class OwnCompletions:
    """A partition ready to be asked."""

    prompts: pd.DataFrame  # instructions.prompts_of, with the columns of a partition
    first_instances: tuple[str, ...]  # texts at the head of the split
    attributes: tuple[str, ...]  # labels and column names, which give the dataset away

    @property
    def cheat_prompt(self) -> str:
        """The one prompt of Did-ChatGPT-Cheat?"""
        row = self.prompts.iloc[0]
        names = {"dataset_name": row["dataset"], "split_name": row["split"]}
        return FIRST_INSTANCES_PROMPT.format(**names, format=CHEAT_FORMAT)


def own_completions(settings: Replication, n_instances: int, seed: int) -> OwnCompletions:
    """Load, sample (all where there are fewer), cut and put into words; nothing is asked.

    FileNotFoundError or ValueError in one line, before anything costs.
    """
    names, other_names, task = settings.names, settings.other_names, settings.task
    texts, label = settings.text_columns, settings.label_column
    if not settings.dataset or len(names) != 2 or len(other_names) != 2:
        raise ValueError(
            "part C needs dataset, and in names and other_names a dataset and a split each"
        )
    if task in instructions.LABELLED_TASKS and not label:
        raise ValueError(f"label_column is empty: the prompts of {task} show the label")
    rows = whole(settings, [label])
    columns = [*texts, *([label] if label else [])]
    sample = partitions.sample_unique(rows, columns, n_instances, seed)
    known = list(settings.label_names)
    if label and not known:
        known = sorted(rows[label].dropna().astype(str).unique())
    pieces = cut_rows(sample, task, texts, label, seed=seed, how=settings.cut)
    about = {"dataset": names[0], "split": names[1]}
    others = {"other_dataset": other_names[0], "other_split": other_names[1]}
    form = settings.prompt_form
    prompts = instructions.prompts_of(pieces, task, labels=known, form=form, **about, **others)
    about = {"benchmark": names[0], "task": task} | about
    prompts = prompts.assign(**about, copies=None, group=prompts["index"])
    wordless = pieces.loc[~pieces["second_piece"].map(lambda text: bool(words(text))), "index"]
    if len(wordless):
        raise ValueError(
            f"row {wordless.iloc[0]} has no word in its second piece: drop the row or change seed"
        )
    first = tuple(rows[texts[0]].astype(str).head(N_FIRST))
    did_chatgpt_cheat.known_instances(first)  # raises before anything is asked
    return OwnCompletions(prompts, first, (*settings.label_names, *texts))


def completed(
    own: OwnCompletions, asked: Asked, form: str
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Completions of all prompts; text and status of Did-ChatGPT-Cheat?'s one answer; and bos.

    bos is "first" or "none", what texts of a local model begin with.
    """
    model = asked.models[0]
    place = model if isinstance(model, Endpoint) else asked.load(model)
    found = written(asked, place, [*own.prompts["prompt"], own.cheat_prompt], form)
    begins = getattr(place, "identity", {}).get("bos", "")
    return completions.with_completions(own.prompts, found.iloc[:-1]), found.iloc[-1:], begins


def cheat_rows(own: OwnCompletions, answer: pd.DataFrame, near_exact: float) -> pd.DataFrame:
    """Did-ChatGPT-Cheat?'s outcome, one row as in the lab; without an answer there is none."""
    row, answer = own.prompts.iloc[0], answer.iloc[0]
    found = {name: row[name] for name in decisions.PARTITION}
    found |= {"method": decisions.DID_CHATGPT_CHEAT, "instruction": "first instances", "n": 1}
    is_refused, is_error = (int(answer["status"] == kind) for kind in (REFUSED, ERROR))
    found |= {"n_valid": 0, "n_refused": is_refused, "n_error": is_error}
    if answer["text"].strip():
        known = own.first_instances, own.attributes, near_exact
        outcome = did_chatgpt_cheat.outcome(answer["text"], *known)
        found |= {"n_valid": 1, "outcome": outcome}
        found["contaminated"] = outcome == did_chatgpt_cheat.CONTAMINATED
    return pd.DataFrame([found])


def own_table(parts: Sequence[pd.DataFrame], name: str, seed: int, begins: str) -> pd.DataFrame:
    """``replication_own.csv``: columns of ``replication_lab.csv``, then bos and verdict.

    The verdict stands in the guided rows of Algorithm 2: supported where guided completions are
    flagged and none without the right names; control fails where others are flagged too (the
    model knows the texts by heart, or they follow from their first pieces); inconclusive where
    one of them has no answer; not run where guided ones have none. Where they are not flagged,
    not supported if the upper end of the share of matches lies below the smallest effect, else
    inconclusive.
    """
    table = decisions.lab_table(parts, name, seed).assign(bos=begins, verdict=None)
    of_2 = table[table["method"] == decisions.ALGORITHM_2]
    for _, rows in of_2.groupby([*decisions.PARTITION, "metric"], dropna=False):
        by = rows.set_index("instruction")
        guided, controls = by.loc[GUIDED], by.loc[[GENERAL, WRONG_DATASET, WRONG_SPLIT]]
        n_matches = int(guided[["n_exact", "n_near_exact"]].sum())
        is_seen_apart = share_interval(n_matches, int(guided["n_valid"]))[1] < _SMALLEST_SHARE
        cases = [
            (guided["n_valid"] == 0, NOT_RUN),
            (not guided["contaminated"], NOT_SUPPORTED if is_seen_apart else INCONCLUSIVE),
            (controls["contaminated"].eq(True).any(), CONTROL_FAILS),
            (controls["n_valid"].eq(0).any(), INCONCLUSIVE),
            (True, SUPPORTED),
        ]
        said = next(word for holds, word in cases if holds)
        table.loc[rows.index[rows["instruction"] == GUIDED], "verdict"] = said
    return table
