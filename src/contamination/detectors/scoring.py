"""Every detector on every model of the lab: the frame ``scores`` that the protocol reads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from contamination import storage
from contamination.detectors.arms import Dataset, LabModel
from contamination.detectors.conditions import CLEAN, DOSED, VERBATIM
from contamination.detectors.gates import TEXT_ALONE
from contamination.detectors.interface import LOG_PROBABILITIES, WEIGHTS, Detector, Rows
from contamination.detectors.protocol import KEY, SET_COLUMNS
from contamination.models.causal import CausalLM, load_causal_lm

COLUMNS = [*KEY, "row", "is_read", "score"]
NO_SCORES = pd.DataFrame(columns=COLUMNS)


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


def score_models(
    models: Iterable[LabModel], detectors: Sequence[Detector]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of every row under every model by detectors of rows, and the seconds they took.

    Detectors that learn (``Detector.learn``) do so on models of other units: rows read word for
    word, under dosed models against the same rows under clean ones.

    Returns:
        ``COLUMNS``, in the order of detectors, models, datasets and rows; and detector, unit,
        model, n_rows, seconds.
    """
    scored: dict[str, list[tuple[LabModel, Dataset, np.ndarray]]] = {d.name: [] for d in detectors}
    seconds = []
    for model in models:
        lm = load_causal_lm(model.folder)
        for detector in detectors:
            start = time.perf_counter()
            for dataset in model.datasets:
                scored[detector.name].append((model, dataset, detector.score(lm, dataset.rows)))
            seconds.append(_seconds(model, detector, start))
    for detector in detectors:
        if detector.learn:
            scored[detector.name] = _learnt(scored[detector.name], detector)
    tables = [
        _rows(name, model, dataset, values)
        for name, of_detector in scored.items()
        for model, dataset, values in of_detector
    ]
    return pd.concat(tables, ignore_index=True), pd.DataFrame(seconds)


def _rows(name: str, model: LabModel, dataset: Dataset, values: np.ndarray) -> pd.DataFrame:
    if np.shape(values) != (len(dataset.rows),) or not np.isfinite(values).all():
        raise ValueError(
            f"{name}: {len(dataset.rows)} rows need one finite score each, got an array of shape "
            f"{np.shape(values)}"
        )
    key = (name, model.unit, model.benchmark, model.kind, dataset.condition, model.copies)
    table = pd.DataFrame({"row": np.arange(len(values)), "is_read": dataset.is_read})
    table["score"] = np.asarray(values, dtype=float)
    return table.assign(**dict(zip(KEY, key, strict=True)))[COLUMNS]


def _learnt(
    scored: Sequence[tuple[LabModel, Dataset, np.ndarray]], detector: Detector
) -> list[tuple[LabModel, Dataset, np.ndarray]]:
    """Features as scores, by a detector that never met a model of the unit."""
    by_unit: dict[tuple[int, str], object] = {}
    for model, _, _ in scored:
        key = (model.unit, model.benchmark)
        if key in by_unit:
            continue
        features, labels = [], []
        for other, dataset, values in scored:
            is_fit = other.kind in (DOSED, CLEAN) and dataset.condition == VERBATIM
            if is_fit and other.benchmark == model.benchmark and other.unit != model.unit:
                features.append(values[dataset.is_read])
                labels.append(np.full(dataset.is_read.sum(), other.kind == DOSED))
        if not features:
            raise ValueError(f"{detector.name} learns from other units: at least two are needed")
        by_unit[key] = detector.learn(np.concatenate(features), np.concatenate(labels))
    return [(m, d, by_unit[m.unit, m.benchmark](values)) for m, d, values in scored]


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
            for dataset in model.datasets:
                read = dataset.rows.where(dataset.is_read)
                score = detector.score(lm, read)
                key = (model.unit, model.benchmark, model.kind, dataset.condition, model.copies)
                rows.append((detector.name, *key, len(read), 0, score.score, np.nan, score.p))
            seconds.append(_seconds(model, detector, start))
    return pd.DataFrame(rows, columns=SET_COLUMNS), pd.DataFrame(seconds)


def _seconds(model: LabModel, detector: Detector, start: float) -> dict:
    n_rows = sum(len(dataset.rows) for dataset in model.datasets)
    row = {"detector": detector.name, "unit": model.unit, "model": model.kind, "n_rows": n_rows}
    return row | {"seconds": time.perf_counter() - start}


def text_alone(models: Iterable[LabModel]) -> pd.DataFrame:
    """Scores of a bag of words that knows no model, as rows of ``scores``.

    For each condition a logistic regression learns on other units which rows were dealt to be
    read. The deal is random, so it should find nothing; gate G1 asks whether it does.
    """
    dosed = [model for model in models if model.kind == DOSED]
    tables = []
    for benchmark in dict.fromkeys(model.benchmark for model in dosed):
        for place in range(len(dosed[0].datasets)):
            of_unit = {m.unit: m.datasets[place] for m in dosed if m.benchmark == benchmark}
            values = _cross_fitted_words(of_unit)
            tables += [
                _rows(TEXT_ALONE, model, model.datasets[place], values[model.unit])
                for model in dosed
                if model.benchmark == benchmark
            ]
    return pd.concat(tables, ignore_index=True)


def _cross_fitted_words(of_unit: dict[int, Dataset]) -> dict[int, np.ndarray]:
    scores = {}
    for unit, dataset in of_unit.items():
        others = [other for number, other in of_unit.items() if number != unit]
        if not others:
            raise ValueError("a classifier of the text learns on other units: two are needed")
        words = make_pipeline(CountVectorizer(binary=True), LogisticRegression(max_iter=1000))
        texts = [text for other in others for text in other.rows.texts]
        words.fit(texts, np.concatenate([other.is_read for other in others]))
        scores[unit] = words.decision_function(list(dataset.rows.texts))
    return scores
