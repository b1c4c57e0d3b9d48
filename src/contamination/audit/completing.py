"""Replication: completions of an audit's rows under every instruction, and their judges."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from contamination.audit import finding
from contamination.audit import rows as read
from contamination.audit.finding import Finding, Target
from contamination.audit.plan import (
    UNSEEN,
    Audit,
    audit_prompts,
    cheat_prompts,
    completion_requests,
)
from contamination.audit.settings import JUDGE, MODEL, Settings
from contamination.core.overlap import normalised
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint
from contamination.models.judging import ask_judge
from contamination.replication import algorithms, completions, decisions, instructions
from contamination.replication.instructions import GUIDED, JUDGE_PROMPTS

PERSON = "a person"  # as a judge, in audit_replication
COMPLETED = ["index", "rows", "instruction", "first_piece", "second_piece", "completion"]
COMPLETED += ["status", "verdict"]
NO_ANSWER = "empty, or the same for most"  # as a status
FEWEST_REPEATS = 3  # prompts that got the same text, from which on it is no answer


def with_judge(scored: pd.DataFrame, told: Settings) -> pd.DataFrame:
    """The scored completions with the ICL judge's label, status and bare "Yes".

    A completion that did not come has no label; an empty one is inexact.
    """
    pairs = scored["second_piece"].tolist(), scored["completion"].tolist()
    prompt = JUDGE_PROMPTS[told.replication.layout]
    found = ask_judge(told.helpers[JUDGE], *pairs, prompt, **told.paying(JUDGE))
    icl = pd.Series([one.label for one in found], scored.index)
    icl = icl.where(scored[decisions.RULE_COLUMN].notna(), None)
    bare = [one.is_bare_yes for one in found]
    return scored.assign(icl=icl, judge_status=[one.status for one in found], is_bare_yes=bare)


def replication(audit: Audit, target: Target) -> Finding:
    """Completions of the rows of both files, judged; a row's score is the guided one's ROUGE-L.

    A completion counts if it came, holds a word, and is not the same text for most prompts.

    Tables: audit_replication (:func:`own_table`), with a person's decision next to the
    algorithms' where ``human_labels`` is named; and audit_completions, which a person can label.
    """
    prompts = audit_prompts(audit)
    told, cheat = audit.told.replication, cheat_prompts(audit)
    if cheat:
        algorithms.known_instances(audit.rows.first)  # raises before anything is asked
    scorer, why = decisions.bleurt_or_reason(told.bleurt_checkpoint)
    answers = _of_target(audit, target, prompts, cheat)
    done = completions.with_completions(prompts, answers.iloc[: len(prompts)])
    scored = decisions.with_scores(done, told.text_rule_threshold, scorer, told.bleurt_joining)
    if has_judge := JUDGE in audit.told.helpers:
        scored = with_judge(scored, audit.told)
    scored["verdict"] = scored["icl" if has_judge else decisions.RULE_COLUMN]
    guided = scored.loc[scored["instruction"].eq(GUIDED), "completion"]
    is_none = scored["completion"].eq("") | repeats(guided).reindex(scored.index, fill_value=False)
    scored.loc[scored["status"].eq(OK) & is_none, "status"] = NO_ANSWER
    scored.loc[~scored["status"].eq(OK), ["verdict", "rouge"]] = None
    of_data = scored[scored["rows"] == "dataset"]
    guided = scored[scored["instruction"] == GUIDED]
    notes = [finding.describe_unusable(guided["status"])]
    if told.bleurt_checkpoint and scorer is None:
        notes.append(why)
    values: list[float] = []
    for name, rows in zip(("dataset", UNSEEN), audit.quizzed, strict=False):
        of_rows = guided[guided["rows"].eq(name)].set_index("index")["rouge"].astype(float)
        values += rows.rows["index"].map(of_rows).tolist()
    scores = finding.scores_of(audit.quizzed, values)
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
    note = "; ".join(filter(None, notes))
    found = {"details": scored, "tables": tables}
    return Finding("AUC of guided completions' ROUGE-L", scores, "", note, counts, **found)


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
    if isinstance(target.place, Endpoint):
        requests = completion_requests([*prompts["prompt"], *more], audit.told)
        return completions.by_chat(target.place, requests, **audit.told.paying(MODEL))
    tokenizer = target.place.tokenizer
    # No longer than the longest second piece: what follows is not compared.
    longest = max(len(ids) for ids in tokenizer(prompts["second_piece"].tolist()).input_ids)
    form = instructions.INSTRUCT if tokenizer.chat_template else instructions.CONTINUE
    texts = [*prompts["prompt" if tokenizer.chat_template else "continued"], *more]
    n_tokens = min(audit.told.replication.completion_tokens, longest + 8)
    return completions.by_local_model(target.place, texts, n_tokens, form)


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
        attributes = (*audit.told.data.label_names, *audit.rows.texts)
        known = audit.rows.first, attributes, near_exact
        outcome = algorithms.outcome(answer["text"], *known)
        found |= {"n_valid": 1, "outcome": outcome}
        found["contaminated"] = outcome == algorithms.CONTAMINATED
    return pd.DataFrame([found])


def own_table(parts: Sequence[pd.DataFrame], name: str, seed: int, begins: str) -> pd.DataFrame:
    """``audit_replication.csv``: columns of ``replication_lab.csv``, then bos."""
    return decisions.lab_table(parts, name, seed).assign(bos=begins)


def repeats(completions_: pd.Series) -> pd.Series:
    """Whether each completion is the text that most prompts got: a refusal, or silence.

    >>> repeats(pd.Series(["No.", "no", "No.", "a cat"])).tolist()
    [True, True, True, False]
    """
    texts = completions_.map(normalised)
    counts = texts.map(texts.value_counts())
    return (counts >= FEWEST_REPEATS) & (2 * counts > len(texts))
