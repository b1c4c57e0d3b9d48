"""What needs a model's insides: Min-k% Prob of passages, DICE against clean references."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from contamination.audit import finding
from contamination.audit.asked import MODEL, Asked, check_models
from contamination.audit.finding import DICE, MIN_K, Audit, Finding, Target, control_row, judged
from contamination.audit.rows import labelled, questions
from contamination.audit.settings import Dice, OwnPassages
from contamination.core import scores, statistics
from contamination.core.claims import CLAIMS
from contamination.core.scores import K_PERCENT, min_k_score
from contamination.core.verdicts import FEWEST_MODELS, INCONCLUSIVE
from contamination.dice.experiments import of_pairs
from contamination.dice.locate import EUCLIDEAN, commonest_layer, distances
from contamination.dice.mixtures import SEEN
from contamination.dice.mixtures import UNSEEN as TESTED
from contamination.dice.pool import CLEAN, OTHER_CLEAN, Measured, measure
from contamination.models.causal import CausalLM, load_masked_lm, token_log_probs
from contamination.models.chat import Endpoint
from contamination.models.loading import LanguageModel
from contamination.models.prompt_log_probs import probe, prompt_log_probs
from contamination.models.source import check_model

N_QUESTIONS = 4  # of a set, at least
ONE_IS_NONE = "one clean model cannot show how far two of them lie apart"
TARGET, REFERENCE = "target against reference", "reference against reference"


def log_probs_of(asked: Asked, target: Target, texts: Sequence[str]) -> list[np.ndarray]:
    """Log-probabilities of the tokens of every text, of an endpoint or a local model."""
    if isinstance(target.place, Endpoint):
        return prompt_log_probs(target.place, texts, target.form, **asked.paying(MODEL))
    return [scored.token_log_probs for scored in token_log_probs(target.place, texts)]


def probed(asked: Asked, target: Target) -> tuple[Target, str]:
    """A model at an address with the form in which it gives log-probabilities of prompts.

    One line says which form it is. The second value is that line where there is none, else "".
    """
    form, said = probe(target.place, **asked.paying(MODEL))
    print(said)
    return dataclasses.replace(target, form=form), "" if form else said


# Min-k% Prob


def min_k(audit: Audit, target: Target, clean_lm: CausalLM | None, n_resamples: int) -> Finding:
    """Min-k% Prob of the dataset's rows against unseen ones, beside classifiers without a model."""
    if audit.unseen is None:
        none = control_row("", 0, math.nan, math.nan, math.nan)
        return Finding(judged(audit, target, MIN_K, "AUC", none, 0.5, (), finding.NO_COMPARISON))
    texts = [*audit.rows.passages, *audit.unseen.passages]
    n, is_data = len(texts), np.arange(len(texts)) < len(audit.rows.rows)

    def auc_of(scored: Target) -> tuple[dict, np.ndarray]:
        log_probs = log_probs_of(audit.asked, scored, texts)
        of_texts = np.array([min_k_score(one, K_PERCENT) for one in log_probs])
        interval = statistics.auc_interval(of_texts, is_data, n_resamples)
        auc = statistics.auc(of_texts, is_data)
        return control_row(finding.CLEAN_LM, n, auc, *interval, True), of_texts

    found = [row | {"decides": True} for row in audit.text_alone]
    if clean_lm is not None:
        found.append(auc_of(Target(finding.CLEAN_LM, clean_lm))[0])
    own, of_texts = auc_of(target)
    row = judged(audit, target, MIN_K, f"AUC, k = {K_PERCENT:.0f} %", own, 0.5, found)
    details = pd.DataFrame({"text": texts, "is_unseen": ~is_data, "score": of_texts})
    return Finding(row, tuple(found), {}, details)


def own_passages(
    settings: OwnPassages, k_percents: Sequence[float] = ()
) -> dict[str, tuple[list[str], np.ndarray]]:
    """One's own passages, and whether all that a run needs is there, before it costs anything.

    Returns:
        Name of the dataset with its split to passages and membership; empty without a model,
        when nothing but ``k_percents`` (in percent, those that will be asked for) is checked.

    Raises:
        FileNotFoundError: if a model or the dataset is not there.
        ValueError: if a value is out of range, or the passages or labels do not serve.
    """
    for k_percent in k_percents:
        scores.min_k_score(np.array([-1.0]), k_percent)
    if bool(settings.target_model) != bool(settings.dataset):
        missing = "dataset" if settings.target_model else "target_model"
        raise ValueError(f"{missing} is empty: part C needs a model and a dataset, or neither")
    if not settings.target_model:
        return {}
    models = [settings.target_model, settings.reference_model, settings.neighbor_model]
    check_models(models, settings.target_revision)
    return labelled(settings)


def load_models(
    settings: OwnPassages,
) -> tuple[CausalLM, CausalLM | None, LanguageModel | None, dict[str, object]]:
    """The model to test, its reference, the one that writes neighbours, and their columns."""
    target = settings.load()
    reference = settings.load(settings.reference_model) if settings.reference_model else None
    masked = load_masked_lm(settings.neighbor_model) if settings.neighbor_model else None
    labels = {"model": target.identity["model"], "n_parameters": target.n_parameters}
    labels["reference_model"] = reference.identity["model"] if reference else ""
    return target, reference, masked, labels


# DICE


def dice(audit: Audit, target: Target, references: Sequence[str]) -> Finding:
    """DICE against clean references, beside the references against one another.

    Beyond them it says that a model differs from its references, not why: training
    on other rows of the same kind does as well (notebook 05). So it never
    supports the claim.
    """
    rows = audit.quizzed[0]
    answers = rows.rows[rows.label_column] if rows.labels else ""
    problems = pd.DataFrame({"question": rows.passages}).assign(answer=answers)
    settings = Dice(
        target_model=target.source,
        reference_models=list(map(str, references)),
        target_dtype=audit.model.dtype,
        bos=audit.model.bos,
    )
    table = against_references(settings, problems, audit.asked.load).set_index("comparison")
    names, about = ["auroc_pct", "ci_low", "ci_high"], "clean references against one another"
    own, *found = (
        control_row(about, int(table.loc[name, "n"]), *(table.loc[name, names] / 100), True)
        for name in (TARGET, REFERENCE)
    )
    row = judged(audit, target, DICE, "AUROC", own, 0.5, found, n_models=len(references))
    notes = []
    if own["ci_low"] > max(0.5, *(one["ci_high"] for one in found)):
        notes.append("it differs from clean references; DICE cannot say whether by these rows")
        row = dataclasses.replace(row, verdict=INCONCLUSIVE)
    if len(references) < FEWEST_MODELS:
        notes.append(f"fewer than {FEWEST_MODELS} clean references")
    return Finding(dataclasses.replace(row, note="; ".join(notes)), tuple(found))


def own_questions(settings: Dice) -> pd.DataFrame | None:
    """Questions for ``target_model``, or None without one; errors in one line before any cost."""
    if not settings.target_model:
        return None
    if settings.own_base:
        raise ValueError("set target_model to test a model or own_base to score pairs, not both")
    if len(settings.reference_models) < 2:
        raise ValueError(f"target_model needs two reference_models or more: {ONE_IS_NONE}")
    for model in (settings.target_model, *settings.reference_models):
        check_model(model)
    if not settings.dataset:
        raise ValueError("dataset is empty: name a file or hub dataset of questions")
    columns = [settings.question_column, settings.answer_column]
    rows = questions(settings.dataset, "test", columns)
    if len(rows) < N_QUESTIONS:
        raise ValueError(f'"{settings.dataset}" needs at least {N_QUESTIONS} questions')
    return rows


def against_references(
    settings: Dice, problems: pd.DataFrame, load: Callable[[str], CausalLM] | None = None
) -> pd.DataFrame:
    """A model against clean references, and the references against one another.

    One half of the questions trains a detector for each pair, the other half tests it; the layer
    is located on the first half. ``load`` is ``settings.load`` unless another one is given.

    Returns:
        comparison ("target against reference" or "reference against reference"), n,
        n_models, layer, auroc_pct, folded_auroc_pct, ci_low, ci_high, bos ("first" or
        "none": what texts of the target begin with), verdict: whether the target's interval
        lies above 50 and above that of the references; inconclusive with fewer than five.
    """
    parts = {SEEN: problems[::2].reset_index(drop=True), TESTED: problems[1::2]}
    models, begins = [], []
    # One model at a time: two of 7 B parameters do not fit into most machines.
    for name in (settings.target_model, *settings.reference_models):
        lm = (load or settings.load)(name)
        begins.append(lm.identity["bos"])
        models.append(measure(lm, parts))
        del lm
    clean = dict(enumerate(models[1:]))
    pool: dict[str, dict[int, Measured]] = {CLEAN: clean, "target": dict.fromkeys(clean, models[0])}
    # Each reference takes the target's part once, against the next one.
    pool[OTHER_CLEAN] = {seed: clean[(seed + 1) % len(clean)] for seed in clean}
    apart = distances(models[0].states[SEEN], models[1].states[SEEN])[EUCLIDEAN]
    layer = commonest_layer(apart)
    rows = []
    for name, against in ((TARGET, "target"), (REFERENCE, OTHER_CLEAN)):
        auroc = of_pairs(pool, against, CLEAN, layer, TESTED)
        row = {"comparison": name, "layer": layer, "n": auroc.n, "n_models": auroc.n_models}
        rows.append(row | auroc.columns())
    own, other = rows
    ends = own["ci_low"], own["ci_high"]
    bar = {"control": (other["ci_low"], other["ci_high"]), "n_models": len(clean)}
    verdict = CLAIMS["dice_own_references"].verdict(*ends, **bar)
    return pd.DataFrame(rows).assign(bos=begins[0], verdict=[verdict, ""])
