"""ConStat: is a score on a benchmark higher than the score on a rephrased one allows?

Dekoninck et al., arXiv:2405.16281. It answers "inflated", not "read", and needs reference
models. The arithmetic takes arrays; the detector fetches them from models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import interpolate, optimize

from contamination.dcq.perturbation import OPTION_COLUMNS
from contamination.dcq.prompts import header
from contamination.models.causal import option_log_probs
from contamination.models.loading import CausalLM
from contamination.study.interface import (
    INFLATED,
    LOG_PROBABILITIES,
    SET,
    WORD_PROBLEMS,
    Detector,
    Rows,
    SetScore,
)

NAME = "ConStat"
MIN_REFERENCES = 8
MIN_POINTS = 5  # of a curve
N_RESAMPLES = 1_000


def constat(
    own: Sequence[np.ndarray] | np.ndarray,
    references: Sequence[np.ndarray] | np.ndarray,
    chance: float = 0.0,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> SetScore:
    """How far a score lies above what reference models of its rephrased score have; (gap, p).

    A smoothing spline from the rephrased to the original score runs through the reference
    models and one that guesses; the gap is the model's score minus the spline at its rephrased
    score, mean over resamples of rows (of each benchmark apart) and of reference models. p is
    of the bootstrap turned round: the share of gaps of at least twice their mean. As in the
    authors' code the two scores are sorted apart before the fit, since noise in the rephrased
    score would flatten a curve through the pairs, and good models would look inflated.

    Args:
        own: scores of the rows, 0 to 1, on the benchmark, shape (n_rows,), and on the
            rephrased one, shape (n_rephrased,).
        references: the same of other models, shapes (n_models, n_rows) and (n_models,
            n_rephrased), at least 8 models.
        chance: score of a model that guesses.

    Raises:
        ValueError: for fewer models, shapes that do not fit, scores outside 0 to 1, or
            references too much alike to draw a curve.
    """
    own, references = ([np.asarray(v, dtype=float) for v in pair] for pair in (own, references))
    n_models = len(references[0])
    if n_models < MIN_REFERENCES:
        raise ValueError(f"ConStat needs {MIN_REFERENCES} reference models, got {n_models}")
    pairs = list(zip(own, references, strict=True))
    if any(values.ndim != 1 or others.shape != (n_models, values.size) for values, others in pairs):
        raise ValueError("a model and its references need one score for each row")
    if not all((v.min() >= 0) & (v.max() <= 1) for v in (*own, *references, np.array(chance))):
        raise ValueError("scores must lie between 0 and 1")
    generator = np.random.default_rng([seed, 20])
    gaps: list[float] = []
    for _ in range(10 * n_resamples):
        models = generator.integers(n_models, size=n_models)
        means, curves = [], []
        for values, others in pairs:
            rows = generator.integers(values.size, size=values.size)
            guess = generator.normal(chance, np.sqrt(chance * (1 - chance) / values.size))
            means.append(values[rows].mean())
            curves.append(np.sort([guess, *others[:, rows].mean(axis=1)[models]]))
        if np.unique(curves[1]).size >= MIN_POINTS:
            gaps.append(means[0] - expected_score(means[1], curves[1], curves[0]))
        if len(gaps) == n_resamples:
            mean = float(np.mean(gaps))
            n_beyond = int((np.array(gaps) >= 2 * mean).sum())
            return SetScore(mean, (1 + n_beyond) / (1 + n_resamples))
    raise ValueError("reference models score too much alike on the rephrased benchmark")


def expected_score(rephrased: float, known: np.ndarray, scores: np.ndarray) -> float:
    """A smoothing spline at one rephrased score, straight beyond the known ones, within 0 and 1.

    ``known`` (rising) and ``scores`` have shape (n,); where a value of ``known`` is repeated,
    its last score counts. The smoothing minimises the generalised cross-validation error, as
    in ``scipy.interpolate.make_smoothing_spline``, which takes several times as long.
    """
    last = np.append(np.diff(known) > 0, True)
    x, y = known[last], scores[last]
    n, h = x.size, np.diff(x)
    # Green and Silverman, Nonparametric Regression (1994), section 2.1: curvature is y'Ky.
    slopes = (np.eye(n)[1:] - np.eye(n)[:-1]) / h[:, None]
    bends = np.diff(slopes, axis=0)
    weights = np.diag(h[:-1] + h[1:]) / 3 + np.diag(h[1:-1], 1) / 6 + np.diag(h[1:-1], -1) / 6
    curvature, shapes = np.linalg.eigh(bends.T @ np.linalg.solve(weights, bends))
    curvature, parts = curvature.clip(0), shapes.T @ y

    def removed(penalty: float) -> np.ndarray:
        return penalty * curvature / (1 + penalty * curvature)

    def error(penalty: float) -> float:
        shares = removed(penalty)
        return np.sum((shares * parts) ** 2) / shares.sum() ** 2

    penalty = optimize.minimize_scalar(error, bounds=(0, n), method="bounded").x
    spline = interpolate.CubicSpline(x, y - shapes @ (removed(penalty) * parts), bc_type="natural")
    inside = np.clip(rephrased, x[0], x[-1])
    return float(np.clip(spline(inside) + spline(inside, 1) * (rephrased - inside), 0, 1))


def constat_detector(references: Sequence[CausalLM], chance: float = 0.0) -> Detector:
    """ConStat with its reference models, for rows that end with an answer.

    A row's score is the geometric mean probability of its answer's tokens: small models seldom
    answer a word problem right, and any score from 0 to 1 will do. The rephrased benchmark
    is the first paraphrase of each row.
    """

    def score(model: CausalLM, rows: Rows) -> SetScore:
        above = header(rows.dataset, rows.split)
        answers = [t.removeprefix(q) for t, q in zip(rows.texts, rows.questions, strict=True)]
        rephrased = zip(rows.quizzes[OPTION_COLUMNS[0]], answers, strict=True)
        prompts = [above + question for question in rows.questions]
        prompts += [above + text.removesuffix(answer) for text, answer in rephrased]
        options = [[answer] for answer in (*answers, *answers)]
        log_probs = [
            np.concatenate(option_log_probs(lm, prompts, options, per_token=True))
            for lm in (model, *references)
        ]
        scores = np.exp(log_probs).reshape(len(log_probs), 2, len(rows)).swapaxes(0, 1)
        return constat(scores[:, 0], scores[:, 1:], chance, seed=rows.seed)

    return Detector(
        NAME,
        LOG_PROBABILITIES,
        score,
        unit=SET,
        question=INFLATED,
        source="Dekoninck et al., arXiv:2405.16281",
        only_on=WORD_PROBLEMS,
    )
