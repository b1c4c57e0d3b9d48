"""In which form must a real model see a row to know it again? ``docs/protocol_forms.md``.

Every row of four datasets is seen verbatim by one model of a round of four, as GPT-4's paraphrase
by one, without its label by one, and by one not at all. Chance deals in which order.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.scores import MIN_K
from contamination.core.statistics import CONFIDENCE, with_p_adjusted
from contamination.core.verdicts import CLAIMS, verdict_column
from contamination.dcq.quizzes import released_quizzes
from contamination.models.source import PACKAGED, resolve_path
from contamination.study import baselines, pretrained, pretraining, store
from contamination.study.assignment import HELD_OUT, assign, seed_of
from contamination.study.conditions import BASE, DOSED, PARAPHRASE, VERBATIM, WITHOUT_LABEL
from contamination.study.interface import Rows, question_of
from contamination.study.placement import SHALLOW
from contamination.study.protocol import N_REDEALS
from contamination.study.released_rows import LABEL, Dataset
from contamination.study.row_pools import Pool

NAME = "forms"  # of the parts of the ledger
MODELS = tuple(range(600, 608))  # numbers of the parts, and seeds of the trainings
N_IN_ROUND = 4  # models among which the forms of a row go round
ROUNDS = MODELS[::N_IN_ROUND]  # the first number of each
DATASETS = ("AG News", "RTE", "WNLI", "Yelp")
N_ROWS = 48  # of a dataset, a quarter of them in each form
SHORTEST_OF = "Yelp"  # whose longer rows would cost as much as the three other datasets together
FORMS = ("held out", VERBATIM, PARAPHRASE, WITHOUT_LABEL)  # by number; 0 is ``HELD_OUT``
ORDERS = tuple(map("".join, permutations("0123")))  # a row's forms under the models of a round
COPIES = pretrained.FEW_COPIES
CONTROLS = baselines.CONTROLS[:2]  # noise and length
ASKED = (*pretrained.OF_TOKENS, *CONTROLS)
# The registered tests: a form against held-out rows, or its change against another's.
TESTS = ((1, HELD_OUT), (2, HELD_OUT), (3, HELD_OUT), (1, 2), (1, 3))
DETECTORS = (MIN_K, baselines.PPL.name)
MATTERS = CLAIMS["pretrained_forms"]


def plan(numbers: Sequence[int]) -> str:
    """What models will take, in one line; FileNotFoundError without the base model or the rows."""
    resolve_path(PACKAGED)
    released_quizzes()
    return f"{len(numbers)} of {len(MODELS)} models to do, each about 7 minutes of one core"


def pool_of(quizzes: pd.DataFrame, name: str) -> Pool:
    """The rows of a dataset, the same for all models: drawn by lot, of ``SHORTEST_OF`` by length.

    ValueError where a row has no label.
    """
    own = quizzes[quizzes["dataset"].eq(name)].reset_index(drop=True)
    order = np.random.default_rng(seed_of(MODELS[0], name, "drawn")).permutation(len(own))
    if name == SHORTEST_OF:
        order = own["instance"].str.len().sort_values(kind="stable").index
    own = own.loc[np.sort(order[:N_ROWS])].reset_index(drop=True)
    questions = tuple(question_of(text, LABEL) for text in own["instance"])
    return Pool(name, NAME, Rows("", "", tuple(own["instance"]), questions, own, ()), LABEL)


@cache
def dealt() -> np.ndarray:
    """Number of the form in which each model sees each row: (4 datasets, 8 models, 48 rows).

    In a round each of the 24 orders of the four forms is dealt to two rows of a dataset.
    """
    sizes = dict.fromkeys(ORDERS, N_ROWS // len(ORDERS))
    orders = [assign(first, name, NAME, sizes) for name, first in product(DATASETS, ROUNDS)]
    forms = [[[int(form) for form in order] for order in of] for of in orders]
    return np.swapaxes(forms, 1, 2).reshape(len(DATASETS), len(MODELS), N_ROWS)


def seen_by(pool: Pool, number: int) -> list[Dataset]:
    """What a model sees of a dataset, for each form but held out."""
    forms = dealt()[DATASETS.index(pool.benchmark), MODELS.index(number)]
    texts = (pool.rows.texts, pool.rows.quizzes["option_a"], pool.rows.questions)
    return [
        Dataset(name, pool.rows, forms == n, (tuple(np.array(of, object)[forms == n]),))
        for n, (name, of) in enumerate(zip(FORMS[1:], texts, strict=True), start=1)
    ]


def write_part(folder: Path, name: str, about: Mapping[str, Any], number: int) -> None:
    """Tune one of ``MODELS``, score all rows before and after, write the part; remove the model."""
    start, base, quizzes = time.perf_counter(), Path(resolve_path(PACKAGED)), released_quizzes()
    pools = [pool_of(quizzes, dataset) for dataset in DATASETS]
    seen = [one for pool in pools for one in seen_by(pool, number)]
    tuned = pretrained.train_on_datasets(base, seen, COPIES, pretrained.READING, number)
    tables = [
        pretraining.score_model(of, model, dict.fromkeys(pools, ASKED))[0].drop(columns="pool")
        for model, of in ((BASE, base), (DOSED, tuned))
    ]
    made_by: dict[str, Any] = {"base_seed": number, "base": PACKAGED, "copies": COPIES}
    made_by |= {"models": {BASE: base.name, DOSED: tuned.name}}
    made_by |= {"training": asdict(pretrained.READING), "environment": store.environment()}
    made_by |= {"seconds_in_all": round(time.perf_counter() - start, 1)}
    scores = pd.concat(tables, ignore_index=True).astype(SHALLOW)
    store.write_tables(folder, name, {"scores": scores}, {**made_by, **about})
    shutil.rmtree(tuned)


# Scores of a detector are an array (2, 4, n_models, 48): before and after, datasets, models, rows.


def scored(stored: pd.DataFrame, detector: str) -> np.ndarray:
    """Scores of a detector, of ``stored`` as ``store.read_all`` gives it.

    Models after a gap in their numbers are left out, as the protocol says.
    """
    own = stored[stored["detector"].eq(detector)]
    wide = own.pivot_table("score", "base_seed", ["model", "benchmark", "row"])
    wide = wide[list(product((BASE, DOSED), DATASETS, range(N_ROWS)))]
    known = [n for n, number in zip(wide.index, MODELS, strict=False) if n == number]
    values = wide.loc[known].to_numpy().reshape(-1, 2, len(DATASETS), N_ROWS)
    return np.moveaxis(values, 0, 2)


def _of_form(values: np.ndarray, form: int) -> np.ndarray:
    """What belongs to the rows of one form, (..., 4, n_models, 12)."""
    is_form = dealt()[:, : values.shape[-2]] == form
    return values[..., is_form].reshape(*values.shape[:-1], -1)


def wins(scores: np.ndarray) -> np.ndarray:
    """Share of a model's held-out rows that score lower than each row; a tie is one half."""
    held_out = _of_form(scores, HELD_OUT)
    return np.sign(scores[..., None] - held_out[..., None, :]).mean(axis=-1) / 2 + 0.5


def aucs(scores: np.ndarray, form: int) -> np.ndarray:
    """AUC against held-out rows before and after, means over datasets, shape (2, n_models)."""
    return _of_form(wins(scores), form).mean(axis=(1, 3))


def swap_p(scores: np.ndarray, form: int, other: int) -> float:
    """One-sided p of "rows of ``form`` rise no more than if they had been seen as ``other``".

    A row has either form under two models of its round. The two are dealt again among rows that
    have the other two forms under the same models; all else stays. So it is exact even if the
    other two differ. (1 + re-deals with a change at least as high) / (1 + re-deals).
    """
    n_models = scores.shape[2]
    if other == HELD_OUT:  # ranks among rows of both kinds; all others tie below them
        asked = np.isin(dealt()[:, :n_models], (form, other))
        before, after = 2 * stats.rankdata(np.where(asked, scores, -np.inf), axis=-1)
    else:  # held-out rows beaten, a tie one half; twice that is whole
        before, after = np.round(2 * N_ROWS / len(FORMS) * wins(scores))
    signs = np.subtract(dealt() == form, dealt() == other, dtype=np.float32)
    values = np.zeros_like(signs)  # a model that is not there adds nothing
    values[:, :n_models] = after - before
    gains = (signs * values).reshape(-1, N_IN_ROUND, N_ROWS).sum(axis=1).ravel()
    # Sums of whole numbers below 2^24, so that ties are ties.
    n_as_high = np.sum(_redealt(form, other) @ gains >= gains.sum())
    return float((1 + n_as_high) / (1 + N_REDEALS))


@cache
def _redealt(form: int, other: int) -> np.ndarray:
    """1 where a re-deal leaves the two forms of a row as they are, -1 where it swaps them.

    Shape (9999, 384): the rows of each dataset in each round.
    """
    found, rounds = [], dealt().reshape(-1, N_IN_ROUND, N_ROWS)
    rest = [n for n in range(len(FORMS)) if n not in (form, other)]
    for (name, first), forms in zip(product(DATASETS, ROUNDS), rounds, strict=True):
        at = [(forms == n).argmax(axis=0) for n in (form, other, *rest)]
        cells = np.argsort(N_IN_ROUND * at[2] + at[3], kind="stable").reshape(12, -1)
        generator = np.random.default_rng(seed_of(first, name, f"{NAME} {form} {other}"))
        places = generator.random((N_REDEALS, *cells.shape)).argsort(axis=-1)
        is_first = np.empty((N_REDEALS, N_ROWS), bool)  # whether ``form`` comes before ``other``
        is_first[:, cells.ravel()] = places.reshape(N_REDEALS, -1) < 2
        found.append(np.where(is_first == (at[0] < at[1]), np.float32(1), np.float32(-1)))
    return np.concatenate(found, axis=1)


def result(scores: np.ndarray, form: int, other: int) -> dict[str, Any]:
    """One test: the form's AUCs before and after, and its change less that of the other form."""
    before, after = aucs(scores, form)
    change = after - before
    if other != HELD_OUT:
        change = change - np.diff(aucs(scores, other), axis=0)[0]
    low, high = stats.ttest_1samp(change, 0).confidence_interval(CONFIDENCE)
    n_rows = len(DATASETS) * N_ROWS // len(FORMS)  # of a model, in each form
    about = {"form": FORMS[form], "against": FORMS[other], "n_models": len(change)}
    about |= {"n_rows": n_rows, "before": before.mean(), "after": after.mean()}
    about |= {"change": change.mean(), "ci_low": low, "ci_high": high}
    return about | {"p": swap_p(scores, form, other)}


def registered(stored: pd.DataFrame) -> pd.DataFrame:
    """The registered tests: detector and ``result``, p_adjusted (Holm over all ten), verdict."""
    found = {name: scored(stored, name) for name in DETECTORS}
    rows = [{"detector": name} | result(of, *test) for name, of in found.items() for test in TESTS]
    (table,) = with_p_adjusted(pd.DataFrame(rows))
    return table.assign(verdict=verdict_column(table, MATTERS, n_models="n_models"))


def controls(stored: pd.DataFrame) -> pd.DataFrame:
    """What knows nothing of the training, on the same lots: the untuned model, length and noise.

    ``result`` as if each score came after one that is always the same; p_adjusted by Holm.
    """
    rows = []
    for name in (*DETECTORS, *(control.name for control in CONTROLS)):
        before, _ = scored(stored, name)
        rows += [{"control": name} | result(np.stack([0 * before, before]), *t) for t in TESTS]
    return with_p_adjusted(pd.DataFrame(rows))[0]
