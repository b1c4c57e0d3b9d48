"""Every detector on every model of the lab: the frame ``scores`` that the protocol reads."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from contamination.core import storage
from contamination.models.causal import CausalLM, load_causal_lm
from contamination.study.arms import Dataset, LabModel
from contamination.study.conditions import CLEAN, DOSED, FEW, PLACEBO, TEXT_ALONE, VERBATIM
from contamination.study.interface import (
    ANSWERS,
    LOG_PROBABILITIES,
    WEIGHTS,
    Detector,
    Rows,
    checked_scores,
)
from contamination.study.protocol import KEY, SET_COLUMNS

COLUMNS = [*KEY, "row", "is_read", "score"]


def _noise(lm: CausalLM, rows: Rows) -> np.ndarray:
    drawn = int(storage.hash_of([lm.identity, rows.texts])[:15], 16)
    return np.random.default_rng(drawn).normal(size=len(rows))


def _length(lm: CausalLM, rows: Rows) -> np.ndarray:
    return np.array([float(len(text)) for text in rows.texts])


def _weight_norm(lm: CausalLM, rows: Rows) -> np.ndarray:
    norm = sum(float(weight.detach().square().sum()) for weight in lm.model.parameters())
    return np.full(len(rows), norm)


# What must never pass: the protocol's own controls.
CONTROLS = (
    Detector("noise", LOG_PROBABILITIES, _noise),
    Detector("length", LOG_PROBABILITIES, _length),
    Detector("was fine-tuned at all", WEIGHTS, _weight_norm),
)
CONTROL_NAMES = tuple(control.name for control in CONTROLS)


def is_asked(detector: Detector, model: LabModel, dataset: Dataset) -> bool:
    """Whether the study asks a detector of a dataset under a model.

    A name that nothing was read under is for detectors that see answers alone. A detector that
    costs much (``only_on``) is asked what gates and false alarms need, above one copy.
    """
    if model.kind == PLACEBO and detector.access != ANSWERS:
        return False
    if not detector.only_on:
        return True
    is_needed = model.kind in (CLEAN, DOSED, PLACEBO) and dataset.condition in FEW
    return model.benchmark == detector.only_on and is_needed and model.copies != 1


def fit_detector(detector: Detector, models: Iterable[LabModel]) -> Detector:
    """A detector that learns (``Detector.learn``), with what it learns of these models.

    Of the rows that a dosed model read verbatim, under it (positive) and under the clean model.
    """
    assert detector.learn
    features, labels = [], []
    for model in models:
        verbatim = next(d for d in model.datasets if d.condition == VERBATIM)
        read = verbatim.rows.where(verbatim.is_read)
        features.append(detector.score(load_causal_lm(model.folder), read))
        labels.append(np.full(len(read), model.kind == DOSED))
    predict = detector.learn(np.concatenate(features), np.concatenate(labels))
    return replace(detector, score=lambda lm, rows: predict(detector.score(lm, rows)), learn=None)


def score_models(
    models: Iterable[LabModel], detectors: Sequence[Detector]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of every row under every model by detectors of rows, and the seconds they took.

    Returns:
        ``COLUMNS``, in the order of models, detectors, datasets and rows; and detector, unit,
        model, n_rows, seconds. ValueError for a detector that is not :func:`fit_detector`.
    """
    if unfitted := [detector.name for detector in detectors if detector.learn]:
        raise ValueError(f"{unfitted[0]} learns from other models: pass it to fit_detector first")
    tables, seconds = [], []
    for model in models:
        lm = load_causal_lm(model.folder)
        for detector in detectors:
            start = time.perf_counter()
            of_model = [dataset for dataset in model.datasets if is_asked(detector, model, dataset)]
            for dataset in of_model:
                values = detector.score(lm, dataset.rows)
                tables.append(_rows(detector.name, model, dataset, values))
            seconds.append(_seconds(model, detector, of_model, start))
    return pd.concat(tables, ignore_index=True), pd.DataFrame(seconds)


def _rows(name: str, model: LabModel, dataset: Dataset, values: np.ndarray) -> pd.DataFrame:
    values = checked_scores(name, values, dataset.rows)
    key = (name, model.unit, model.benchmark, model.kind, dataset.condition, model.copies)
    table = pd.DataFrame({"row": np.arange(len(values)), "is_read": dataset.is_read})
    table["score"] = values
    return table.assign(**dict(zip(KEY, key, strict=True)))[COLUMNS]


def score_sets(
    models: Iterable[LabModel], detectors: Sequence[Detector]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``sets`` of detectors of whole sets: score and own p of the rows dealt to be read.

    Returns:
        the columns of ``protocol.SET_COLUMNS``; and seconds as in :func:`score_models`.
    """
    rows, seconds = [], []
    for model in models:
        lm = load_causal_lm(model.folder)
        for detector in detectors:
            start = time.perf_counter()
            of_model = [dataset for dataset in model.datasets if is_asked(detector, model, dataset)]
            for dataset in of_model:
                read = dataset.rows.where(dataset.is_read)
                score = detector.score(lm, read)
                key = (model.unit, model.benchmark, model.kind, dataset.condition, model.copies)
                rows.append((detector.name, *key, len(read), 0, score.score, np.nan, score.p))
            seconds.append(_seconds(model, detector, of_model, start))
    return pd.DataFrame(rows, columns=SET_COLUMNS), pd.DataFrame(seconds)


def _seconds(
    model: LabModel, detector: Detector, datasets: Sequence[Dataset], start: float
) -> dict[str, object]:
    n_rows = sum(len(dataset.rows) for dataset in datasets)
    row = {"detector": detector.name, "unit": model.unit, "model": model.kind, "n_rows": n_rows}
    return row | {"seconds": time.perf_counter() - start}


def text_alone(models: Iterable[LabModel], others: Sequence[Sequence[Dataset]]) -> pd.DataFrame:
    """Scores of a bag of words that knows no model, as rows of ``scores``, for dosed models.

    For each of their conditions a logistic regression learns on the datasets of ``others``, other
    units of the same mini-benchmark, which rows were dealt to be read. The deal is random, so it
    should find nothing; gate G1 asks whether it does.
    """
    words = {}
    for condition in dict.fromkeys(one.condition for unit in others for one in unit):
        own = [dataset for unit in others for dataset in unit if dataset.condition == condition]
        bag = make_pipeline(CountVectorizer(binary=True), LogisticRegression(max_iter=1000))
        texts = [text for dataset in own for text in dataset.rows.texts]
        words[condition] = bag.fit(texts, np.concatenate([dataset.is_read for dataset in own]))
    tables = []
    for model in models:
        for dataset in model.datasets if model.kind == DOSED else ():
            values = words[dataset.condition].decision_function(list(dataset.rows.texts))
            tables.append(_rows(TEXT_ALONE, model, dataset, values))
    return pd.concat(tables, ignore_index=True)


def by_detector(seconds: pd.DataFrame) -> list[dict]:
    """Rows and seconds of each detector, summed, as JSON values."""
    sums = seconds.groupby("detector", sort=False)[["n_rows", "seconds"]].sum().round(1)
    return json.loads(sums.reset_index().to_json(orient="records"))


def seconds_by_detector(seconds: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Seconds of each detector, summed, in the order in which detectors come.

    >>> spent = [{"detector": "PPL", "seconds": 1.5}, {"detector": "PPL", "seconds": 2.0}]
    >>> seconds_by_detector(spent)
    {'PPL': 3.5}
    """
    sums = pd.DataFrame(seconds).groupby("detector", sort=False)["seconds"].sum()
    return sums.round(1).to_dict()
