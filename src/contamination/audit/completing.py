"""Replication: completions of an audit's rows under every instruction, and their judges."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from contamination.audit import finding
from contamination.audit import rows as read
from contamination.audit.finding import Finding, Target
from contamination.audit.plan import audit_prompts, cheat_prompts, completion_requests
from contamination.audit.prepared import JUDGE, MODEL, REPLICATION, UNSEEN, Audit, RunEndpoints
from contamination.core.statistics import share_interval
from contamination.core.verdicts import (
    CLAIMS,
    CONTROL_FAILS,
    NOT_RUN,
    OPEN,
    RULED_OUT,
    SHOWN,
)
from contamination.models.causal import CausalLM
from contamination.models.chat import ERROR, REFUSED, Endpoint
from contamination.models.judging import INEXACT, ask_judge
from contamination.replication import completions, decisions, did_chatgpt_cheat, instructions
from contamination.replication.instructions import (
    GENERAL,
    GUIDED,
    JUDGE_PROMPTS,
    WRONG_DATASET,
    WRONG_SPLIT,
)

PERSON = "a person"  # as a judge, in audit_replication
COMPLETED = ["index", "rows", "instruction", "first_piece", "second_piece", "completion"]
COMPLETED += ["status", "verdict"]
_SMALLEST_SHARE = CLAIMS["audit_replication"].smallest_effect


def generate_completions(
    asked: RunEndpoints,
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


def with_judge(scored: pd.DataFrame, asked: RunEndpoints) -> pd.DataFrame:
    """The scored completions with the ICL judge's label, status and bare "Yes".

    A completion that did not come has no label; an empty one is inexact.
    """
    pairs = scored["second_piece"].tolist(), scored["completion"].tolist()
    prompt = JUDGE_PROMPTS[asked.completion_layout]
    found = ask_judge(asked.helpers[JUDGE], *pairs, prompt, **asked.paying(JUDGE))
    icl = pd.Series([one.label for one in found], scored.index)
    icl = icl.where(scored[decisions.RULE_COLUMN].notna(), None)
    bare = [one.is_bare_yes for one in found]
    return scored.assign(icl=icl, judge_status=[one.status for one in found], is_bare_yes=bare)


def replication(audit: Audit, target: Target) -> Finding:
    """Completions judged, guided on the dataset beside the other instructions and unseen rows.

    The paper's table is in ``tables``: audit_replication (:func:`own_table`), with a person's
    decision next to the algorithms' where ``human_labels`` is named; and audit_completions, which
    a person can label.
    """
    has_unseen, prompts = audit.unseen is not None, audit_prompts(audit)
    told, cheat = audit.told.replication, cheat_prompts(audit)
    if cheat:
        did_chatgpt_cheat.known_instances(audit.rows.first)  # raises before anything is asked
    scorer, why = decisions.bleurt_or_reason(told.bleurt_checkpoint)
    answers = _of_target(audit, target, prompts, cheat)
    done = completions.with_completions(prompts, answers.iloc[: len(prompts)])
    scored = decisions.with_scores(done, told.text_rule_threshold, scorer, told.bleurt_joining)
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
    notes = [finding.describe_unusable(of_data.loc[of_data["instruction"] == GUIDED, "status"])]
    if told.bleurt_checkpoint and scorer is None:
        notes.append(why)
    if has_unseen and GENERAL in shares and shares[GENERAL]["value"] >= guided["value"] > 0:
        notes.append("as many matches without the names, so the names are not needed")
    # What no memory gives is not known beforehand; unseen rows show it.
    chance = found[-1]["value"] if has_unseen else 0.0
    statistic = f"matches by the {'ICL' if has_judge else 'rule'} judge"
    said = REPLICATION, statistic, guided, chance, found, "; ".join(filter(None, notes))
    row = finding.build_finding(audit, target, *said)
    judges = {decisions.RULE_JUDGE: decisions.RULE_COLUMN}
    judges |= {decisions.ICL_JUDGE: decisions.ICL_COLUMN} if has_judge else {}
    if told.human_labels:
        scored["human"] = _by_person(scored, read.read_labels(told.human_labels), target.name)
        of_data, judges = scored[scored["rows"] == "dataset"], judges | {PERSON: "human"}
    parts = [decisions.partition_rows(of_data, judges)]
    if cheat:
        parts.append(cheat_rows(audit, done, answers.iloc[-1], told.text_rule_threshold))
    tables = {"audit_replication": own_table(parts, target.name, audit.told.seed, target.begins)}
    tables["audit_completions"] = scored[COMPLETED].rename(columns={"verdict": "label"})
    tables["audit_completions"].insert(0, "model", target.name)
    counts = finding.status_counts(scored["status"])
    return Finding(row, tuple(found), counts, scored, tables)


def _by_person(scored: pd.DataFrame, labels: pd.DataFrame, model: str) -> pd.Series:
    """A person's label of every guided completion of the dataset; None for all others."""
    if "model" in labels:
        labels = labels[labels["model"].eq(model)]
    found = scored["index"].map(labels.set_index("index")["label"])
    is_labelled = scored["rows"].eq("dataset") & scored["instruction"].eq(GUIDED) & found.notna()
    return found.astype(object).where(is_labelled, None)


def _of_target(
    audit: Audit, target: Target, prompts: pd.DataFrame, more: Sequence[str]
) -> pd.DataFrame:
    """Text and status of a completion of every prompt, then of ``more``."""
    form = audit.told.replication.prompt_form
    if isinstance(target.place, Endpoint):
        column = "continued" if form == instructions.CONTINUE else "prompt"
        return generate_completions(audit.asked, target.place, [*prompts[column], *more])
    tokenizer = target.place.tokenizer
    # No longer than the longest second piece: what follows is not compared.
    longest = max(len(ids) for ids in tokenizer(prompts["second_piece"].tolist()).input_ids)
    form = form or (instructions.INSTRUCT if tokenizer.chat_template else instructions.CONTINUE)
    texts = [*prompts["prompt" if form == instructions.INSTRUCT else "continued"], *more]
    n_tokens = min(audit.asked.completion_tokens, longest + 8)
    return generate_completions(audit.asked, target.place, texts, form, n_tokens)


def cheat_rows(
    audit: Audit, done: pd.DataFrame, answer: pd.Series, near_exact: float
) -> pd.DataFrame:
    """Did-ChatGPT-Cheat?'s outcome, one row as in the lab; without an answer there is none."""
    found = {name: done[name].iloc[0] for name in decisions.PARTITION}
    found |= {"method": decisions.DID_CHATGPT_CHEAT, "instruction": "first instances", "n": 1}
    is_refused, is_error = (int(answer["status"] == kind) for kind in (REFUSED, ERROR))
    found |= {"n_valid": 0, "n_refused": is_refused, "n_error": is_error}
    if answer["text"].strip():
        # Labels and column names give the dataset away.
        attributes = (*audit.data.label_names, *audit.rows.texts)
        known = audit.rows.first, attributes, near_exact
        outcome = did_chatgpt_cheat.outcome(answer["text"], *known)
        found |= {"n_valid": 1, "outcome": outcome}
        found["contaminated"] = outcome == did_chatgpt_cheat.CONTAMINATED
    return pd.DataFrame([found])


def own_table(parts: Sequence[pd.DataFrame], name: str, seed: int, begins: str) -> pd.DataFrame:
    """``audit_replication.csv``: columns of ``replication_lab.csv``, then bos and verdict.

    The verdict stands in the guided rows of Algorithm 2: shown where guided completions are
    flagged and none without the right names; control fails where others are flagged too (the
    model knows the texts by heart, or they follow from their first pieces); open where
    one of them has no answer; not run where guided ones have none. Where they are not flagged,
    ruled out if the upper end of the share of matches lies below the smallest effect, else
    open.
    """
    table = decisions.lab_table(parts, name, seed).assign(bos=begins, verdict=None)
    of_2 = table[table["method"] == decisions.ALGORITHM_2]
    for _, rows in of_2.groupby([*decisions.PARTITION, "metric"], dropna=False):
        by = rows.set_index("instruction")
        guided = by.loc[GUIDED]
        controls = by[by.index.isin([GENERAL, WRONG_DATASET, WRONG_SPLIT])]
        n_matches = int(guided[["n_exact", "n_near_exact"]].sum())
        is_seen_apart = share_interval(n_matches, int(guided["n_valid"]))[1] < _SMALLEST_SHARE
        cases = [
            (guided["n_valid"] == 0, NOT_RUN),
            (not guided["contaminated"], RULED_OUT if is_seen_apart else OPEN),
            (controls["contaminated"].eq(True).any(), CONTROL_FAILS),
            (controls.empty or controls["n_valid"].eq(0).any(), OPEN),
            (True, SHOWN),
        ]
        said = next(word for holds, word in cases if holds)
        table.loc[rows.index[rows["instruction"] == GUIDED], "verdict"] = said
    return table
