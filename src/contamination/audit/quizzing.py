"""The quizzes: DCQ and option ranking for an audit, the paper's quizzes for part of notebook 02."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from contamination.audit import finding
from contamination.audit.asked import MODEL, PERTURBER, Asked, name_of
from contamination.audit.finding import CLEAN_LM, DCQ, RANKING, UNSEEN, Audit, Finding, Target
from contamination.audit.gaps import Taken, gaps, verdict_of_gaps
from contamination.audit.internals import log_probs_of
from contamination.audit.options import quizzes_of, read_options
from contamination.audit.rows import Rows, whole
from contamination.audit.settings import INSTRUCT, Quiz
from contamination.core.claims import CLAIMS
from contamination.core.statistics import share_interval
from contamination.core.verdicts import strongest
from contamination.data import partitions
from contamination.dcq import contaminating, controls, perturbation, respondents
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.comparison import answers_of as answers_by_position
from contamination.dcq.contaminating import header
from contamination.dcq.deployment import (
    Respondent,
    instances_of,
    level_row,
    position_rows,
    take,
)
from contamination.dcq.perturbation import FIFTH
from contamination.dcq.respondents import (
    BaseRespondent,
    ChatRespondent,
    InstructRespondent,
    Stated,
)
from contamination.models.causal import CausalLM
from contamination.models.chat import ERROR, OK, REFUSED, Endpoint, Request
from contamination.study.panel import Evidence, verdict

# At most: the modified quiz and one for each position; the paper's second perturbation on top.
N_QUIZZES = 1 + len(POSITIONS)
SHARES = ("max_pct", "ci_low_pct", "ci_high_pct")
TEMPLATE = "chat template"  # what decides how a text begins there


def respondent_of(
    place: Endpoint | CausalLM,
    asked: Asked,
    names: Sequence[str],
    quizzes: pd.DataFrame | None = None,
    kind: str = "",
    stated: Stated = respondents.STATED,
) -> Respondent:
    """Who takes the quizzes: an endpoint, a model with a chat template, or a base model.

    ``kind`` is "instruct" or "base", by default as the tokenizer has a chat template; the
    spread of a base model, which answers as ``stated``, is taken over ``quizzes``.
    """
    if isinstance(place, Endpoint):
        return ChatRespondent(asked.ask(MODEL, place), *names, options=asked.quiz_options)
    if kind == INSTRUCT or (not kind and place.tokenizer.chat_template):
        return InstructRespondent(place, *names)
    return BaseRespondent(place, *names, stated).spread_over(quizzes)


def quiz_requests(
    asked: Asked, names: Sequence[str], sets: Sequence[Rows], n_quizzes: int = N_QUIZZES
) -> list[Request]:
    """Everything at most; the originals stand for options that are not there yet."""
    numbered = [(text, k) for rows in sets for k in range(n_quizzes) for text in rows.instances]
    texts = [(text, text, text, f"{text} {k}") for text, k in numbered]
    return ChatRespondent(list, *names, options=asked.quiz_options).requests(texts)


def option_requests(sets: Sequence[Rows], n_times: int = 1) -> list[Request]:
    """What a perturber is asked, but for perturbations that have to be asked for again."""
    return [
        perturbation.perturbation_request(row, rows.columns, replicate)
        for replicate in range(n_times)
        for rows in sets
        for row in rows.rows[list(rows.columns)].astype(str).to_dict("records")
    ]


# An audit


def dcq(audit: Audit, target: Target, clean_lm: CausalLM | None, n_resamples: int) -> Finding:
    """The quiz on the dataset, beside rules, a clean model and the quiz on unseen rows.

    Levels of rules are there to be read; gaps decide (``audit.gaps``).
    """
    about = {"dataset": audit.names[0], "model": target.name}
    answers, levels, choices = [], [], []
    for rows in audit.quizzed:
        made = quizzes_of(rows, audit.asked, audit.seed)
        answered = take(respondent_of(target.place, audit.asked, audit.names, made), made)
        rules = dict(controls.RULES)
        if clean_lm is not None:
            texts = made[["instance", *(f"option_{p.lower()}" for p in POSITIONS)]]
            rules |= respondents.likelihood_rules(clean_lm, texts.to_numpy().ravel().tolist())
        answers.append(answered)
        levels.append(level_row(answered, n_resamples))
        choices.append(controls.rule_choices(made.assign(dataset=audit.names[0]), rules))
    table = controls.control_table(choices[0], pd.DataFrame([levels[0] | about]))
    named = [(row["control"], row) for row in table.to_dict("records")]
    named += [(name, level) for name, level in zip((DCQ, UNSEEN), levels, strict=False)]
    rows = {name: finding.control_row(name, row["n"], *shares_of(row)) for name, row in named}
    own, status = rows.pop(DCQ), answers[0]["status"]
    if not status.eq(OK).any():
        own |= dict.fromkeys(["value", "ci_low", "ci_high"], math.nan)
    chance = float(table["chance_pct"].iloc[0]) / 100
    said = "best quiz, share right", own, chance, (), finding.unusable(status)
    row = finding.judged(audit, target, DCQ, *said)
    taken = [_taken(*both, about) for both in zip(answers, choices, strict=True)]
    row, deciding = _judged_by_gaps(row, chance, taken)
    counts = finding.status_counts(pd.concat([one["status"] for one in answers]))
    return Finding(row, (*rows.values(), *deciding), counts, answers[0])


def shares_of(level: Mapping[str, float]) -> tuple[float, float, float]:
    """Share of the best quiz and its interval, 0 to 1; of a level in percent with its n.

    Resampled answers that are all right, or all wrong, give an interval without width: then
    Wilson's of the one quiz.
    """
    value, low, high = (level[share] / 100 for share in SHARES)
    if low == high:
        low, high = share_interval(round(value * level["n"]), level["n"])
    return value, low, high


def _taken(answers: pd.DataFrame, choices: pd.DataFrame, about: Mapping[str, str]) -> Taken:
    own = answers_by_position(instances_of(answers).assign(**about))
    choices = choices.assign(credit=controls.credits_of(choices))
    others = {
        name: controls.by_position(of_rule, "credit", own.positions)
        for name, of_rule in choices.groupby("control", sort=False)
    }
    return Taken(own.is_right, others)


def _judged_by_gaps(
    row: Evidence, chance: float, taken: Sequence[Taken]
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
    quizzes = [quizzes_of(rows, audit.asked, audit.seed) for rows in audit.quizzed]
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
        taken.append(Taken(right, hits))
    own, *unseen = rows
    found = [finding.share_row(name, one[0], not unseen) for name, one in taken[0].others.items()]
    row = finding.judged(audit, target, RANKING, "original likeliest of four", own, 0.25, found)
    if not unseen:
        return Finding(row, tuple(found))
    row, deciding = _judged_by_gaps(row, 0.25, taken)
    return Finding(row, (*found, *unseen, *deciding))


def ranking_texts(audit: Audit) -> list[str]:
    """What an address is asked for the ranking, at most."""
    start = header(*audit.names)
    texts = [text for rows in audit.quizzed for text in rows.instances]
    return [f"{start}{text}{k}" for k in range(4) for text in texts]


# The paper's quizzes, notebook 02


@dataclass(frozen=True)
class OwnQuiz:
    """A partition ready to be perturbed."""

    rows: Rows  # the sample
    all_rows: pd.DataFrame  # the whole partition in the same form, for a fine-tuning file
    names: tuple[str, str]  # dataset and split as the prompts call them
    given: pd.DataFrame | None = None  # quizzes of a file of earlier options


def own_quiz(settings: Quiz, seed: int) -> OwnQuiz:
    """Load and sample, all where there are fewer; errors in one line, before anything costs."""
    columns, labels, names = settings.columns, settings.label_columns, tuple(settings.names)
    if len(names) != 2 or not all(names):
        raise ValueError("names holds the dataset and the split as the prompts call them")
    if settings.options_file:
        quizzes = read_options(settings.options_file)
        rows = quizzes[["index", "instance"]]
        return OwnQuiz(Rows(rows, ("instance",)), rows, names, quizzes)
    if not settings.dataset:
        raise ValueError("dataset and options_file are empty: part C needs one of them")
    if not (settings.perturber_model or settings.dry_run):
        raise ValueError("perturber_model is empty: name one, or an options_file")
    if settings.n_instances < 1:
        raise ValueError(f"n_instances must be at least 1, got {settings.n_instances}")
    if set(columns) <= set(labels):
        raise ValueError("columns holds nothing but labels: name at least one column to perturb")
    if unknown := set(labels) - set(columns):
        raise ValueError(f"label_columns not among columns: {', '.join(sorted(unknown))}")
    rows = whole(settings, labels)
    sample = partitions.sample_unique(rows, columns, settings.n_instances, seed)
    return OwnQuiz(Rows(sample, tuple(columns), tuple(labels)), rows, names)


def quizzes_and_counts(own: OwnQuiz, asked: Asked) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The quizzes and the counts of ``perturbation.perturb``; no counts for a file."""
    if own.given is not None:
        return own.given, pd.DataFrame()
    rows, ask = own.rows, asked.ask(PERTURBER)
    labels = {"label_columns": rows.labels, "with_fifth": True}
    return perturbation.perturb(rows.rows, rows.columns, ask, **labels)


def taken_quizzes(
    own: OwnQuiz, asked: Asked, quizzes: pd.DataFrame, kind: str, stated: Stated, n_resamples: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers of every model, and its level; two of them are Appendix A's comparison.

    Returns:
        Answers as ``deployment.take`` gives them, with model; and model, dataset, split,
        respondent, bos ("first" or "none", what texts of a local base model begin with),
        keys of ``level_row``, n_unparsable, n_letters (answers A to D), n_none (E).
    """
    with_second, parts, rows = bool(quizzes[FIFTH].ne("").all()), [], []
    for model in asked.models:
        place = model if isinstance(model, Endpoint) else asked.load(model)
        respondent = respondent_of(place, asked, own.names, quizzes, kind, stated)
        answers = take(respondent, quizzes, with_second)
        begins = TEMPLATE if kind == INSTRUCT else getattr(place, "identity", {}).get("bos", "")
        status, answer = answers["status"], answers["answer"]
        row = {"model": name_of(model), "dataset": own.names[0], "split": own.names[1]}
        row |= {"respondent": kind, "bos": begins} | level_row(answers, n_resamples)
        row["n_unparsable"] = int((~status.isin([OK, REFUSED, ERROR])).sum())
        row |= {"n_letters": int(answer.isin(POSITIONS).sum()), "n_none": int(answer.eq("E").sum())}
        rows.append(row)
        parts.append(answers.assign(model=name_of(model)))
    levels = pd.DataFrame(rows).drop(columns="replication_pct")
    return pd.concat(parts, ignore_index=True), levels


def answered_positions(answers: pd.DataFrame, own: OwnQuiz) -> pd.DataFrame:
    """How often each choice was taken in each quiz, for Figure 2; one model after another."""
    about = {"source": "own", "dataset": own.names[0], "split": own.names[1]}
    by_model = answers.groupby("model", sort=False)
    return pd.concat(position_rows(rows, model=model, **about) for model, rows in by_model)


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
    """Levels of ``taken_quizzes`` with strongest_rule, of ``rules_beside``, and the verdict.

    It is supported where the model's interval lies above what guessing gives and above the
    interval of the rule that reaches highest.
    """
    names, words, claim = [], [], CLAIMS["dcq_own"]
    for row in levels.to_dict("records"):
        own = rules[rules["model"].eq(row["model"])].sort_values("ci_high_pct", kind="stable")
        of_rules = zip(own["ci_low_pct"] / 100, own["ci_high_pct"] / 100, strict=True)
        names.append(own["control"].iloc[-1])
        _, low, high = shares_of(row)
        bars = own["chance_pct"].max() / 100, strongest(of_rules, low)
        words.append(verdict(low, high, *bars, claim=claim))
    return levels.assign(strongest_rule=names, verdict=words)


def plan_tuning(
    own: OwnQuiz, asked: Asked, settings: Quiz, seed: int
) -> tuple[str, contaminating.TrainingPlan]:
    """File and plan of a job that contaminates the first model (appendix E); nothing is sent.

    Other instances are drawn to stand beside the sample (the paper trains on 1,000 in all);
    ``contaminating.start_training`` sends the file, under the cap. ValueError without an
    endpoint or a cap, or as in ``contaminating.plan_training``.
    """
    if not asked.endpoints or asked.cap is None:
        raise ValueError("a fine-tuning job needs a model at base_url and a cost_cap")
    columns = own.rows.columns
    others = partitions.sample_unique(own.all_rows, columns, len(own.all_rows), seed)
    texts = partitions.format_instances(others.sample(frac=1, random_state=seed), columns)
    chosen = list(dict.fromkeys([*own.rows.instances, *texts]))[: settings.n_tuning_instances]
    file = contaminating.training_file(chosen, *own.names)
    return file, contaminating.plan_training(
        file,
        n_epochs=settings.tuning_epochs,
        price_per_million=settings.tuning_price,
        price_date=settings.price_date,
    )
