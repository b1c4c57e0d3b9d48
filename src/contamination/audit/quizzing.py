"""The quizzes: DCQ and option ranking, beside rules and models that know nothing of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit import finding
from contamination.audit.evidence import Evidence, verdict
from contamination.audit.finding import CLEAN_LM, Finding, Target
from contamination.audit.gaps import QuizScores, gaps, verdict_of_gaps
from contamination.audit.internals import log_probs_of
from contamination.audit.options import quizzes_of
from contamination.audit.prepared import DCQ, MODEL, RANKING, UNSEEN, Audit, RunEndpoints, ask
from contamination.audit.rows import Rows
from contamination.audit.settings import INSTRUCT
from contamination.core.statistics import share_interval
from contamination.core.verdicts import CLAIMS, FOUND, OPEN, strongest
from contamination.dcq import contaminating, controls, respondents
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.comparison import answers_of as answers_by_position
from contamination.dcq.deployment import (
    Respondent,
    answer_quizzes,
    instances_of,
    level_row,
    position_rows,
    recall_precision_row,
)
from contamination.dcq.perturbation import FIFTH
from contamination.dcq.prompts import header, quiz_prompt
from contamination.dcq.respondents import BaseRespondent, ChatRespondent, InstructRespondent
from contamination.models.causal import CausalLM
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint

SHARES = ("max_pct", "ci_low_pct", "ci_high_pct")
TEMPLATE = "chat template"  # what decides how a text begins there
_KINDS: dict[type, str] = {
    ChatRespondent: "chat",
    InstructRespondent: INSTRUCT,
    BaseRespondent: "base",
}


def respondent_of(
    place: Endpoint | CausalLM,
    asked: RunEndpoints,
    names: tuple[str, str],
    quizzes: pd.DataFrame | None = None,
    kind: str = "",
) -> Respondent:
    """Who takes the quizzes: an endpoint, a model with a chat template, or a base model.

    ``kind`` is "instruct" or "base", by default as the tokenizer has a chat template; the
    spread of a base model is taken over ``quizzes``.
    """
    prompt = partial(quiz_prompt, layout=asked.quiz_layout)
    if isinstance(place, Endpoint):
        how = {"options": asked.quiz_options, "prompt": prompt}
        return ChatRespondent(ask(asked, MODEL, place), *names, **how)
    if kind == INSTRUCT or (not kind and place.tokenizer.chat_template):
        return InstructRespondent(place, *names, prompt)
    return BaseRespondent(place, *names, respondents.ANSWER_RULE).spread_over(quizzes)


def dcq(audit: Audit, target: Target, clean_lm: CausalLM | None, n_resamples: int) -> Finding:
    """The quiz on the dataset, beside rules, a clean model and the quiz on unseen rows.

    Levels of rules are there to be read; gaps decide (``audit.gaps``). The paper's tables are in
    ``tables``, audit_dcq and so on (:func:`paper_tables`).
    """
    about = {"dataset": audit.names[0], "model": target.name}
    told, answers, levels, choices, tables = audit.told.dcq, [], [], [], {}
    for rows in audit.quizzed:
        is_data = not answers
        with_fifth = told.second_perturbation and is_data
        made, counts = quizzes_of(rows, audit.asked, audit.told.seed, with_fifth)
        respondent = respondent_of(target.place, audit.asked, audit.names, made, told.respondent)
        answered = answer_quizzes(respondent, made, bool(with_fifth and made[FIFTH].ne("").all()))
        rules = dict(controls.RULES)
        if clean_lm is not None:
            texts = made[["instance", *(f"option_{p.lower()}" for p in POSITIONS)]]
            rules |= respondents.likelihood_rules(clean_lm, texts.to_numpy().ravel().tolist())
        answers.append(answered)
        levels.append(level_row(answered, n_resamples))
        choices.append(controls.rule_choices(made.assign(dataset=audit.names[0]), rules))
        if is_data:
            how = _KINDS[type(respondent)]
            begins = TEMPLATE if how == INSTRUCT else target.begins
            of_table = {"model": target.name, "dataset": audit.names[0], "split": audit.names[1]}
            of_table |= {"respondent": how, "bos": begins}
            level = levels[0]
            if told.trained_share_pct:
                is_seen = made["index"].isin(trained_rows(audit).rows["index"])
                level = recall_precision_row(answered, is_seen, n_resamples)
            tables = paper_tables(of_table, made, answered, level)
            tables["audit_dcq_options"] = counts.drop(columns="index", errors="ignore")
    table = controls.control_table(choices[0], pd.DataFrame([levels[0] | about]))
    named = [(row["control"], row) for row in table.to_dict("records")]
    named += [(name, level) for name, level in zip((DCQ, UNSEEN), levels, strict=False)]
    rows = {name: finding.control_row(name, row["n"], *shares_of(row)) for name, row in named}
    own, status = rows.pop(DCQ), answers[0]["status"]
    if not status.eq(OK).any():
        own |= dict.fromkeys(["value", "ci_low", "ci_high"], math.nan)
    chance = float(table["chance_pct"].iloc[0]) / 100
    said = "best quiz, share right", own, chance, (), finding.describe_unusable(status)
    row = finding.build_finding(audit, target, DCQ, *said)
    taken = [_taken(*both, about) for both in zip(answers, choices, strict=True)]
    row, deciding = _judged_by_gaps(row, chance, taken)
    counts = finding.status_counts(pd.concat([one["status"] for one in answers]))
    return Finding(row, (*rows.values(), *deciding), counts, answers[0], tables)


def shares_of(level: Mapping[str, float]) -> tuple[float, float, float]:
    """Share of the best quiz and its interval, 0 to 1; of a level in percent with its n.

    Resampled answers that are all right, or all wrong, give an interval without width: then
    Wilson's of the one quiz.
    """
    value, low, high = (level[share] / 100 for share in SHARES)
    if low == high:
        low, high = share_interval(round(value * level["n"]), int(level["n"]))
    return value, low, high


def _taken(answers: pd.DataFrame, choices: pd.DataFrame, about: Mapping[str, str]) -> QuizScores:
    own = answers_by_position(instances_of(answers).assign(**about))
    choices = choices.assign(credit=controls.credits_of(choices))
    others = {
        name: controls.by_position(of_rule, "credit", own.positions)
        for name, of_rule in choices.groupby("control", sort=False)
    }
    return QuizScores(own.is_right, others)


def _judged_by_gaps(
    row: Evidence, chance: float, taken: Sequence[QuizScores]
) -> tuple[Evidence, list[dict]]:
    """The row with its verdict; the control named is the gap that reaches down furthest."""
    found = gaps(taken[0], taken[1] if len(taken) > 1 else None, UNSEEN)
    shown = [{k: v for k, v in gap.items() if k != "other"} for gap in found]
    said = verdict_of_gaps(row.ci_low, row.ci_high, chance, found)
    deciding = [gap for gap in found if gap["decides"]]
    if not deciding:
        why = "no gap can be taken: too few quizzes that a rule gets wrong, and no unseen rows"
        return replace(row, verdict=said, note="; ".join(filter(None, [row.note, why]))), shown
    least = min(deciding, key=lambda gap: gap["ci_low"])
    name = f"{least['control']}, at least {least['ci_low']:+.2f}"
    return replace(row, control=name, control_value=least["other"], verdict=said), shown


@dataclass(frozen=True)
class _WholeTexts:
    """Log-probabilities of texts behind the names, of an endpoint or a model, for a ranking."""

    audit: Audit
    target: Target

    def log_probs(self, quizzes: Sequence[Sequence[str]]) -> np.ndarray:
        start = header(*self.audit.names)
        texts = [start + text for texts in quizzes for text in texts]
        found = log_probs_of(self.audit.asked, self.target, texts)
        return np.array([values.sum() for values in found]).reshape(len(quizzes), -1)


def ranking(audit: Audit, target: Target, clean_lm: CausalLM | None) -> Finding:
    """Is the original likelier than three options, after the names of dataset and split?"""
    quizzes = [quizzes_of(rows, audit.asked, audit.told.seed)[0] for rows in audit.quizzed]
    targets = {RANKING: target}
    if clean_lm is not None:
        targets[CLEAN_LM] = Target(CLEAN_LM, clean_lm)
    taken, rows = [], []
    for made in quizzes:
        hits = {
            name: respondents.ranking_credits(_WholeTexts(audit, one), made)[None]
            for name, one in targets.items()
        }
        right = hits.pop(RANKING)
        rows.append(finding.share_row(UNSEEN, right[0]))
        taken.append(QuizScores(right, hits))
    own, *unseen = rows
    found = [finding.share_row(name, one[0], not unseen) for name, one in taken[0].others.items()]
    row = finding.build_finding(
        audit, target, RANKING, "original likeliest of four", own, 0.25, found
    )
    if not unseen:
        return Finding(_at_most_open(row), tuple(found))
    row, deciding = _judged_by_gaps(row, 0.25, taken)
    return Finding(row, (*found, *unseen, *deciding))


def _at_most_open(row: Evidence) -> Evidence:
    """A share of originals without unseen rows: any model may prefer them to reworded copies."""
    if row.verdict not in FOUND:
        return row
    note = "a model may prefer originals that it never saw: only comparison rows can rule that out"
    return replace(row, verdict=OPEN, note="; ".join(filter(None, [row.note, note])))


# The paper's tables, and Appendix E


def paper_tables(
    about: Mapping[str, str], quizzes: pd.DataFrame, answers: pd.DataFrame, level: Mapping
) -> dict[str, pd.DataFrame]:
    """What the paper prints of one model, with the rules without memory beside it.

    Returns:
        audit_dcq: ``about`` (model, dataset, split, respondent, bos), keys of ``level_row``,
        n_unparsable, n_letters (answers A to D), n_none (E), strongest_rule and verdict;
        audit_dcq_controls (:func:`rules_beside`); audit_dcq_positions, how often each choice was
        taken in each quiz (Figure 2); audit_dcq_answers, of ``deployment.answer_quizzes``;
        audit_dcq_quizzes, which serve as ``data.dataset`` of another audit.
    """
    status, answer = answers["status"], answers["answer"]
    row: dict[str, Any] = dict(about) | dict(level)
    row["n_unparsable"] = int((~status.isin([OK, REFUSED, ERROR])).sum())
    row |= {"n_letters": int(answer.isin(POSITIONS).sum()), "n_none": int(answer.eq("E").sum())}
    levels = pd.DataFrame([row]).drop(columns="replication_pct")
    rules = rules_beside(quizzes, levels)
    place = {"source": "own", **{name: about[name] for name in ("dataset", "split", "model")}}
    return {
        "audit_dcq": with_verdict(levels, rules),
        "audit_dcq_controls": rules,
        "audit_dcq_positions": position_rows(answers, **place),
        "audit_dcq_answers": answers.assign(model=about["model"]),
        "audit_dcq_quizzes": quizzes,
    }


def rules_beside(quizzes: pd.DataFrame, levels: pd.DataFrame) -> pd.DataFrame:
    """The rules without memory, at the positions that each model was quizzed at.

    Columns of ``controls.control_table`` with model_max_pct, and holds: whether the rule's
    interval reaches down to what guessing gives, as that of a rule without memory must.
    """
    choices = controls.rule_choices(quizzes.assign(dataset=levels["dataset"].iloc[0]))
    parts = [controls.control_table(choices, levels.iloc[[place]]) for place in range(len(levels))]
    found = pd.concat(parts, ignore_index=True).rename(columns={"paper_max_pct": "model_max_pct"})
    return found.assign(holds=found["ci_low_pct"] <= found["chance_pct"])


def with_verdict(levels: pd.DataFrame, rules: pd.DataFrame) -> pd.DataFrame:
    """Levels with strongest_rule, of ``rules_beside``, and the verdict.

    It is shown where the model's interval lies above what guessing gives and above the
    interval of the rule that reaches highest.
    """
    names, words, claim = [], [], CLAIMS["audit_dcq"]
    for row in levels.to_dict("records"):
        own = rules[rules["model"].eq(row["model"])].sort_values("ci_high_pct", kind="stable")
        of_rules = zip(own["ci_low_pct"] / 100, own["ci_high_pct"] / 100, strict=True)
        names.append(own["control"].iloc[-1])
        _, low, high = shares_of(row)
        bars = own["chance_pct"].max() / 100, strongest(of_rules, low)
        words.append(verdict(low, high, *bars, claim=claim))
    return levels.assign(strongest_rule=names, verdict=words)


def trained_rows(audit: Audit) -> Rows:
    """The quizzed rows that a model was trained on, or will be, where the settings say so."""
    rows = audit.quizzed[0]
    return rows.head(round(audit.told.dcq.trained_share_pct / 100 * len(rows.rows)))


def tuning_plan(audit: Audit) -> tuple[str, contaminating.TrainingPlan]:
    """File and plan of a job that contaminates the first model (Appendix E); nothing is sent.

    It reads the share of the quizzed rows that ``trained_share_pct`` says, all by default, and
    rows that are not quizzed up to ``n_tuning_instances`` (1,000 in the paper). ValueError without
    an endpoint or a cap, or as in ``contaminating.plan_training``.
    """
    told = audit.told.dcq
    if not audit.asked.endpoints or audit.asked.cap is None:
        raise ValueError(
            "a fine-tuning job needs a served model and a limit: fill in base_url and cost_cap"
        )
    quizzed = audit.quizzed[0].instances
    trained = trained_rows(audit).instances if told.trained_share_pct else quizzed
    others = [text for text in audit.rows.instances if text not in set(quizzed)]
    chosen = list(dict.fromkeys([*trained, *others]))[: told.n_tuning_instances]
    file = contaminating.training_file(chosen, *audit.names)
    return file, contaminating.plan_training(
        file,
        n_epochs=told.tuning_epochs,
        price_per_million=told.tuning_price,
        price_date=audit.model.price_date,
    )


def start_tuning(audit: Audit) -> pd.DataFrame:
    """The job of :func:`tuning_plan`, started under the cap (or found, if it was), in one row."""
    endpoint, cap = audit.asked.endpoints[0], audit.asked.cap
    # Without a cap the plan is refused.
    job = contaminating.start_training(endpoint, *tuning_plan(audit), cap or 0.0)
    return pd.DataFrame([job])
