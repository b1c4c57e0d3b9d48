"""Detectors on models: the frame ``scores`` that the protocol reads, and the study's controls."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from contamination.core import storage
from contamination.models.local import CausalLM, load_causal_lm
from contamination.study.arms import Dataset, LabModel
from contamination.study.conditions import DOSED, TEXT_ALONE
from contamination.study.interface import (
    LOG_PROBABILITIES,
    WEIGHTS,
    Detector,
    Rows,
    checked_scores,
)
from contamination.study.protocol import KEY

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


def score_models(
    models: Iterable[LabModel], detectors: Sequence[Detector]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of every row under every model by detectors of rows, and the seconds they took.

    Returns:
        ``COLUMNS``, in the order of models, detectors, datasets and rows; and detector, unit,
        model, n_rows, seconds.
    """
    tables, seconds = [], []
    for model in models:
        lm = load_causal_lm(model.folder)
        for detector in detectors:
            start = time.perf_counter()
            for dataset in model.datasets:
                values = detector.score(lm, dataset.rows)
                tables.append(_rows(detector.name, model, dataset, values))
            seconds.append(_seconds(model, detector, start))
    return pd.concat(tables, ignore_index=True), pd.DataFrame(seconds)


def _rows(name: str, model: LabModel, dataset: Dataset, values: np.ndarray) -> pd.DataFrame:
    values = checked_scores(name, values, dataset.rows)
    key = (name, model.unit, model.benchmark, model.kind, dataset.condition, model.copies)
    table = pd.DataFrame({"row": np.arange(len(values)), "is_read": dataset.is_read})
    table["score"] = values
    return table.assign(**dict(zip(KEY, key, strict=True)))[COLUMNS]


def _seconds(model: LabModel, detector: Detector, start: float) -> dict[str, object]:
    n_rows = sum(len(dataset.rows) for dataset in model.datasets)
    row = {"detector": detector.name, "unit": model.unit, "model": model.kind, "n_rows": n_rows}
    return row | {"seconds": time.perf_counter() - start}


def text_alone(models: Iterable[LabModel], others: Sequence[Sequence[Dataset]]) -> pd.DataFrame:
    """Scores of a bag of words that knows no model, as rows of ``scores``, for dosed models.

    For each of their conditions a logistic regression learns on the datasets of ``others``, other
    units of the same mini-benchmark, which rows were dealt to be read. The deal is random, so it
    should find nothing.
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
