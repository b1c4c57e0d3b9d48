"""The two quizzes of an audit, DCQ and option ranking, and the gaps that decide them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from contamination.audit.gaps import Taken, gaps, verdict_of_gaps
from contamination.audit.methods import (
    CLEAN_LM,
    UNSEEN,
    Finding,
    Target,
    control_row,
    judged,
    log_probs_of,
    share_row,
    status_counts,
    unusable,
)
from contamination.audit.options import quizzes_of
from contamination.audit.plan import DCQ, RANKING, Audit, head_of
from contamination.dcq import controls
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.comparison import answers_of
from contamination.dcq.contaminating import header
from contamination.dcq.deployment import instances_of, level_row, take
from contamination.dcq.respondents import (
    STATED,
    BaseRespondent,
    ChatRespondent,
    InstructRespondent,
    likelihood_rules,
)
from contamination.evidence.panel import Evidence
from contamination.models.causal import CausalLM
from contamination.models.chat import OK, Endpoint, answer_all


def dcq(
    audit: Audit, target: Target, clean_lm: CausalLM | None, n_resamples: int
) -> tuple[Finding, pd.DataFrame]:
    """The quiz on the dataset, beside rules, a clean model and the quiz on unseen rows.

    Levels of rules are there to be read; gaps decide (``audit.gaps``).
    """
    quizzes = quizzes_of(head_of(audit, audit.rows), audit.asked, audit.seed)
    answers = _take(audit, target, quizzes)
    level = level_row(answers, n_resamples)
    choices = _choices(audit, clean_lm, quizzes)
    about = {"dataset": audit.names[0], "model": target.name}
    table = controls.control_table(choices, pd.DataFrame([level | about]))
    shares = ["max_pct", "ci_low_pct", "ci_high_pct"]
    found = [
        control_row(row["control"], row["n"], *(row[name] / 100 for name in shares), False)
        for row in table.to_dict("records")
    ]
    counts, unseen = status_counts(answers["status"]), None
    if audit.unseen is not None:
        others = quizzes_of(head_of(audit, audit.unseen), audit.asked, audit.seed)
        other_answers = _take(audit, target, others)
        other = level_row(other_answers, n_resamples)
        found.append(
            control_row(UNSEEN, other["n"], *(other[name] / 100 for name in shares), False)
        )
        counts = {k: v + status_counts(other_answers["status"])[k] for k, v in counts.items()}
        unseen = _taken(other_answers, _choices(audit, clean_lm, others), about)
    deciding = gaps(_taken(answers, choices, about), unseen, UNSEEN)
    value = tuple(level[name] / 100 for name in shares)
    if not answers["status"].eq(OK).any():
        value = (math.nan,) * 3
    row = _judged_by_gaps(
        audit,
        target,
        DCQ,
        "best quiz, share right",
        value,
        level["n"],
        float(table["chance_pct"].iloc[0]) / 100,
        deciding,
        unusable(answers["status"]),
    )
    return Finding(row, (*found, *_without_other(deciding)), counts, answers), quizzes


def _choices(audit: Audit, clean_lm: CausalLM | None, quizzes: pd.DataFrame) -> pd.DataFrame:
    rules = dict(controls.RULES)
    if clean_lm is not None:
        texts = quizzes[["instance", *(f"option_{p.lower()}" for p in POSITIONS)]]
        rules |= likelihood_rules(clean_lm, texts.to_numpy().ravel().tolist())
    return controls.rule_choices(quizzes.assign(dataset=audit.names[0]), rules)


def _taken(answers: pd.DataFrame, choices: pd.DataFrame, about: Mapping[str, str]) -> Taken:
    own = answers_of(instances_of(answers).assign(**about))
    choices = choices.assign(credit=controls.credits_of(choices))
    others = {
        name: controls.by_position(of_rule, "credit", own.positions)
        for name, of_rule in choices.groupby("control", sort=False)
    }
    return Taken(own.is_right, others)


def _judged_by_gaps(
    audit: Audit,
    target: Target,
    method: str,
    statistic: str,
    value: tuple[float, float, float],
    n: int,
    chance: float,
    found: Sequence[dict],
    note: str = "",
) -> Evidence:
    """The row of the panel; the control named is the deciding gap that reaches down furthest."""
    row = judged(audit, target, method, statistic, value, n, chance, (), note)
    deciding = [gap for gap in found if gap["decides"]]
    said = verdict_of_gaps(value[1], chance, found)
    if not deciding:
        why = "no gap can be taken: too few quizzes that a rule gets wrong, and no unseen rows"
        return replace(row, verdict=said, note="; ".join(filter(None, [note, why])))
    least = min(deciding, key=lambda gap: gap["ci_low"])
    name = f"{least['control']}, at least {least['ci_low']:+.2f}"
    return replace(row, control=name, control_value=least["other"], verdict=said)


def _without_other(found: Sequence[dict]) -> list[dict]:
    return [{k: v for k, v in gap.items() if k != "other"} for gap in found]


def _take(audit: Audit, target: Target, quizzes: pd.DataFrame) -> pd.DataFrame:
    if isinstance(target.place, Endpoint):

        def ask(requests):
            return answer_all(target.place, requests, **audit.asked.settings(audit.asked.prices[0]))

        respondent = ChatRespondent(ask, *audit.names, options=audit.asked.quiz_options)
    elif target.place.tokenizer.chat_template:
        respondent = InstructRespondent(target.place, *audit.names)
    else:
        respondent = BaseRespondent(target.place, *audit.names, STATED).spread_over(quizzes)
    return take(respondent, quizzes)


def ranking(
    audit: Audit, target: Target, clean_lm: CausalLM | None, quizzes: pd.DataFrame
) -> Finding:
    """Is the original likelier than three options, after the names of dataset and split?"""
    hits = _ranked(audit, target.place, quizzes)
    own, found, takers = share_row(RANKING, hits, False), [], {}
    value = own["value"], own["ci_low"], own["ci_high"]
    how = (audit, target, RANKING, "original likeliest of four", value, own["n"], 0.25)
    if clean_lm is not None:
        takers[CLEAN_LM] = _ranked(audit, clean_lm, quizzes)
        found.append(share_row(CLEAN_LM, takers[CLEAN_LM], audit.unseen is None))
    if audit.unseen is None:
        return Finding(judged(*how, found), tuple(found))
    others = quizzes_of(head_of(audit, audit.unseen), audit.asked, audit.seed)
    unseen = _ranked(audit, target.place, others)
    found.append(share_row(UNSEEN, unseen, False))
    on_unseen = {CLEAN_LM: _ranked(audit, clean_lm, others)[None]} if takers else {}
    on_dataset = {name: credit[None] for name, credit in takers.items()}
    deciding = gaps(Taken(hits[None], on_dataset), Taken(unseen[None], on_unseen), UNSEEN)
    return Finding(_judged_by_gaps(*how, deciding), (*found, *_without_other(deciding)))


def _ranked(audit: Audit, place: Endpoint | CausalLM, quizzes: pd.DataFrame) -> np.ndarray:
    columns = ["instance", "option_a", "option_b", "option_c"]
    texts = quizzes[columns].to_numpy().ravel().tolist()
    start = header(*audit.names)
    scored = log_probs_of(audit, place, [start + text for text in texts])
    sums = np.array([values.sum() for values in scored]).reshape(-1, len(columns))
    best = sums == sums.max(axis=1, keepdims=True)
    return best[:, 0] / best.sum(axis=1)
