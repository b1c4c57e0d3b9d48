"""The quizzes, DCQ and option ranking, next to rules that know nothing of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit import finding
from contamination.audit.finding import Finding, Target
from contamination.audit.internals import log_probs_of
from contamination.audit.options import quizzes_of
from contamination.audit.plan import Audit, quiz_options
from contamination.audit.rows import Rows
from contamination.audit.settings import MODEL
from contamination.dcq import contaminating, controls, respondents
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.quizzes import (
    FIFTH,
    Respondent,
    answer_quizzes,
    header,
    level_row,
    position_rows,
    quiz_prompt,
    recall_precision_row,
)
from contamination.dcq.respondents import BaseRespondent, ChatRespondent, InstructRespondent
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint, answer_all
from contamination.models.local import CausalLM


def _respondent_of(audit: Audit, place: Endpoint | CausalLM, quizzes: pd.DataFrame) -> Respondent:
    """Who takes the quizzes: an endpoint, a model with a chat template, or a base model."""
    told, prompt = audit.told, partial(quiz_prompt, layout=audit.told.dcq.layout)
    if isinstance(place, Endpoint):
        ask = partial(answer_all, place, **told.paying(MODEL))
        how = {"options": quiz_options(told), "prompt": prompt}
        return ChatRespondent(ask, *audit.names, **how)
    if place.tokenizer.chat_template:
        return InstructRespondent(place, *audit.names, prompt)
    base = BaseRespondent(place, *audit.names, respondents.ANSWER_RULE)
    return base.spread_over(quizzes)


def dcq(audit: Audit, target: Target) -> Finding:
    """The quiz on the rows of both files, next to rules that never saw the data.

    A row's score is the share of its quizzes, at positions that both files were quizzed at, in
    which the model picks the original; what the rules make of the same quizzes is a feature of
    the row. The paper's tables are in ``tables``, audit_dcq and so on (:func:`paper_tables`).
    """
    told, answers, credits, tables = audit.told.dcq, [], [], {}
    for rows in audit.quizzed:
        is_data = not answers
        with_fifth = told.second_perturbation and is_data
        made, counts = quizzes_of(rows, audit.told, with_fifth)
        respondent = _respondent_of(audit, target.place, made)
        answered = answer_quizzes(respondent, made, bool(with_fifth and made[FIFTH].ne("").all()))
        answers.append(answered)
        of_rules = controls.rule_choices(made.assign(dataset=audit.names[0]))
        credits.append(of_rules.assign(credit=controls.credits_of(of_rules)))
        if is_data:
            level = level_row(answered, audit.told.n_resamples)
            how = type(respondent).__name__.removesuffix("Respondent").lower()
            begins = "chat template" if how == "instruct" else target.begins
            of_table = {"model": target.name, "dataset": audit.names[0], "split": audit.names[1]}
            of_table |= {"respondent": how, "bos": begins}
            if told.trained_share_pct:
                is_seen = made["index"].isin(trained_rows(audit).rows["index"])
                level = recall_precision_row(answered, is_seen, audit.told.n_resamples)
            tables = paper_tables(of_table, made, answered, level, of_rules)
            tables["audit_dcq_options"] = counts.drop(columns="index", errors="ignore")
    status = pd.concat([one["status"] for one in answers])
    found = {"details": answers[0], "tables": tables}
    scores = _quiz_scores(audit, answers, credits)
    note, counts = finding.describe_unusable(status), finding.status_counts(status)
    return Finding("AUC of the quizzes' right answers", scores, "", note, counts, **found)


def _quiz_scores(
    audit: Audit, answers: Sequence[pd.DataFrame], credits: Sequence[pd.DataFrame]
) -> pd.DataFrame:
    """Share of each row's usable quizzes that were answered right, and that of the rules."""
    standard = [one[one["position"].ne("")] for one in answers]
    both = set.intersection(*({*one["position"]} for one in standard))
    values, of_rules = [], []
    for rows, one, of_rule in zip(audit.quizzed, standard, credits, strict=True):
        usable = one[one["status"].eq(OK)]
        if both:  # a model may prefer a position
            usable = usable[usable["position"].isin(both)]
        is_right = usable["answer"].eq(usable["position"]).groupby(usable["index"]).mean()
        values += rows.rows["index"].map(is_right).tolist()
        credit = of_rule["credit"].groupby(of_rule["index"]).mean()
        of_rules += rows.rows["index"].map(credit).fillna(0.0).tolist()
    return finding.scores_of(audit.quizzed, values, rules=of_rules)


def ranking(audit: Audit, target: Target) -> Finding:
    """Is the original likelier than three options, after the names of dataset and split?"""
    start, values = header(*audit.names), []

    def log_probs(quizzes: Sequence[Sequence[str]]) -> np.ndarray:
        texts = [start + text for texts in quizzes for text in texts]
        found = log_probs_of(audit.told, target, texts)
        sums = [np.nan if isinstance(values, str) else values.sum() for values in found]
        return np.array(sums).reshape(len(quizzes), -1)

    for rows in audit.quizzed:
        made = quizzes_of(rows, audit.told)[0]
        with np.errstate(invalid="ignore"):  # of a text without log-probabilities
            hits = respondents.ranking_credits(SimpleNamespace(log_probs=log_probs), made)
        hits = pd.Series(hits, made["index"]).dropna()
        values += rows.rows["index"].map(hits).tolist()
    scores = finding.scores_of(audit.quizzed, values)
    return Finding("AUC of the original being likeliest of four", scores)


# The paper's tables, and Appendix E


def paper_tables(
    about: Mapping[str, str],
    quizzes: pd.DataFrame,
    answers: pd.DataFrame,
    level: Mapping,
    of_rules: pd.DataFrame,
) -> dict[str, pd.DataFrame]:
    """What the paper prints of one model, next to the rules without memory (``of_rules``).

    Returns:
        audit_dcq: ``about`` (model, dataset, split, respondent, bos), keys of ``level_row``,
        n_unparsable, n_letters (answers A to D), n_none (E) and strongest_rule;
        audit_dcq_controls, ``controls.control_table`` with model_max_pct, and holds: whether a
        rule's interval reaches down to what guessing gives, as it must without memory;
        audit_dcq_positions, how often each choice was taken in each quiz (Figure 2);
        audit_dcq_answers; audit_dcq_quizzes, which serve as ``data.dataset`` of another audit.
    """
    status, answer = answers["status"], answers["answer"]
    row: dict[str, Any] = dict(about) | dict(level)
    row["n_unparsable"] = int((~status.isin([OK, REFUSED, ERROR])).sum())
    row |= {"n_letters": int(answer.isin(POSITIONS).sum()), "n_none": int(answer.eq("E").sum())}
    levels = pd.DataFrame([row]).drop(columns="replication_pct")
    rules = controls.control_table(of_rules, levels)
    rules = rules.rename(columns={"paper_max_pct": "model_max_pct"})
    rules["holds"] = rules["ci_low_pct"] <= rules["chance_pct"]
    highest = rules.sort_values("ci_high_pct", kind="stable").groupby("model")["control"].last()
    place = {"source": "own", **{name: about[name] for name in ("dataset", "split", "model")}}
    return {
        "audit_dcq": levels.assign(strongest_rule=levels["model"].map(highest)),
        "audit_dcq_controls": rules,
        "audit_dcq_positions": position_rows(answers, **place),
        "audit_dcq_answers": answers.assign(model=about["model"]),
        "audit_dcq_quizzes": quizzes,
    }


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
    if not (audit.told.endpoints and audit.told.model.cost_cap):
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
        price_date=audit.told.model.price_date,
    )


def start_tuning(audit: Audit) -> pd.DataFrame:
    """The job of :func:`tuning_plan`, started under the cap (or found, if it was), in one row."""
    file, plan = tuning_plan(audit)
    endpoint, cap = audit.told.endpoints[0], audit.told.model.cost_cap
    return pd.DataFrame([contaminating.start_training(endpoint, file, plan, cap)])
