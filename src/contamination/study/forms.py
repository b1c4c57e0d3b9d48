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
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.scores import MIN_K
from contamination.core.statistics import CONFIDENCE, holm
from contamination.core.verdicts import Claim, verdict_column
from contamination.dcq.quizzes import released_quizzes
from contamination.models.source import PACKAGED, resolve_path
from contamination.study import pretrained, pretraining, scoring, spot_check, store
from contamination.study.arms import Dataset, question_of
from contamination.study.assignment import HELD_OUT, assign, seed_of
from contamination.study.baselines import PPL
from contamination.study.conditions import BASE, DOSED, PARAPHRASE, VERBATIM, WITHOUT_LABEL
from contamination.study.interface import Rows
from contamination.study.placement import SHALLOW
from contamination.study.protocol import N_REDEALS, doubled_ranks
from contamination.study.released_rows import LABEL, check_unit
from contamination.study.row_pools import Pool

NAME = "forms"  # of the parts of the ledger
MODELS = tuple(range(600, 608))  # numbers of the parts, and seeds of the trainings
N_IN_ROUND = 4  # models among which the forms of a row go round
DATASETS = ("AG News", "RTE", "WNLI", "Yelp")
N_ROWS = 48  # of a dataset, a quarter of them in each form
SHORTEST_OF = "Yelp"  # whose longer rows would cost as much as the three other datasets together
FORMS = ("held out", VERBATIM, PARAPHRASE, WITHOUT_LABEL)  # by number; 0 is ``HELD_OUT``
ORDERS = tuple(map("".join, permutations("0123")))  # a row's forms under the models of a round
COPIES = pretrained.FEW_COPIES
ASKED = (*pretrained.OF_TOKENS, *scoring.CONTROLS[:2])
# The registered tests: a form against held-out rows, or its change against another's.
TESTS = ((1, HELD_OUT), (2, HELD_OUT), (3, HELD_OUT), (1, 2), (1, 3))
DETECTORS = (MIN_K, PPL.name)
MATTERS = Claim("Tuning on rows in this form makes them easier to recognise.", 0.0, 0.05)


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
def dealt(first: int, dataset: str) -> np.ndarray:
    """Number of the form of each row under each model of the round that begins with ``first``.

    Shape (4, 48). Each of the 24 orders of the four forms is dealt to two rows.
    """
    orders = assign(first, dataset, NAME, dict.fromkeys(ORDERS, N_ROWS // len(ORDERS)))
    return np.array([[int(form) for form in order] for order in orders]).T


def forms_of(number: int, dataset: str) -> np.ndarray:
    """Number of the form in which a model sees each row; shape (48,)."""
    place = (number - MODELS[0]) % N_IN_ROUND
    return dealt(number - place, dataset)[place]


def seen_by(pool: Pool, number: int) -> list[Dataset]:
    """What a model sees of a dataset, for each form but held out."""
    forms, rows = forms_of(number, pool.benchmark), pool.rows
    texts = (rows.texts, tuple(rows.quizzes["option_a"]), rows.questions)
    return [
        Dataset(name, rows, forms == n, (tuple(np.array(of, object)[forms == n]),))
        for n, (name, of) in enumerate(zip(FORMS[1:], texts, strict=True), start=1)
    ]


def write_part(folder: Path, name: str, about: Mapping[str, Any], number: int) -> None:
    """Tune one model, score all rows before and after, write the part; the model is removed.

    ValueError for a number that is none of ``MODELS``.
    """
    check_unit(number, MODELS)
    start, base, quizzes = time.perf_counter(), Path(resolve_path(PACKAGED)), released_quizzes()
    pools = [pool_of(quizzes, dataset) for dataset in DATASETS]
    seen = [one for pool in pools for one in seen_by(pool, number)]
    tuned = pretrained.train_on_datasets(base, seen, COPIES, pretrained.READING, number)
    tables = [
        pretraining.score_model(of, model, dict.fromkeys(pools, ASKED))[0].drop(columns="pool")
        for model, of in ((BASE, base), (DOSED, tuned))
    ]
    made_by = {
        "base_seed": number,
        "base": PACKAGED,
        "copies": COPIES,
        "training": asdict(pretrained.READING),
        "models": {BASE: base.name, DOSED: tuned.name},
        "environment": spot_check.environment(),
        "seconds_in_all": round(time.perf_counter() - start, 1),
    }
    scores = pd.concat(tables, ignore_index=True).astype(SHALLOW)
    store.write_tables(folder, name, {"scores": scores}, {**made_by, **about})
    shutil.rmtree(tuned)


class Scored(NamedTuple):
    """A detector's scores of a dataset's rows, and their forms; arrays are (n_models, 48)."""

    dataset: str
    numbers: tuple[int, ...]  # of the models
    forms: np.ndarray
    before: np.ndarray
    after: np.ndarray


def scored(stored: pd.DataFrame, detector: str) -> list[Scored]:
    """Scores by dataset, of ``stored`` as ``store.read_all`` gives it."""
    own, found = stored[stored["detector"].eq(detector)], []
    for name in DATASETS:
        wide = own[own["benchmark"].eq(name)].pivot_table("score", "base_seed", ["model", "row"])
        forms = np.array([forms_of(number, name) for number in wide.index])
        both = (wide[model].to_numpy() for model in (BASE, DOSED))
        found.append(Scored(name, tuple(wide.index), forms, *both))
    return found


def wins(scores: np.ndarray, forms: np.ndarray) -> np.ndarray:
    """Share of a model's held-out rows that score lower than a row, (n_rows,); a tie is one half.

    The mean over rows of one form is their AUC, and over held-out rows one half.
    """
    return np.sign(np.subtract.outer(scores, scores[forms == HELD_OUT])).mean(axis=1) / 2 + 0.5


def aucs(datasets: Sequence[Scored], form: int) -> np.ndarray:
    """AUC against held-out rows before and after, means over datasets, shape (2, n_models)."""
    found = [
        [
            [wins(*pair)[pair[1] == form].mean() for pair in zip(scores, one.forms, strict=True)]
            for scores in (one.before, one.after)
        ]
        for one in datasets
    ]
    return np.mean(found, axis=0)


def swap_p(datasets: Sequence[Scored], form: int, other: int) -> float:
    """One-sided p of "rows of ``form`` rise no more than if they had been seen as ``other``".

    A row has either form under two models of its round. The two are dealt again among rows that
    have the other two forms under the same models; all else stays. So it is exact whatever those
    do, and whatever the rows are. (1 + re-deals with a change at least as high) / (1 + re-deals).
    """
    observed, sums, rows = 0.0, np.zeros(N_REDEALS), np.arange(N_ROWS)
    for one in datasets:
        for first in MODELS[::N_IN_ROUND]:
            forms, values = dealt(first, one.dataset), np.zeros((N_IN_ROUND, N_ROWS))
            for number, *of in zip(*one[1:], strict=True):
                if 0 <= number - first < N_IN_ROUND:  # a model that is not there adds nothing
                    values[number - first] = _values(*of, form, other)
            at = np.stack([(forms == n).argmax(axis=0) for n in (form, other)])
            gains = values[at.min(axis=0), rows] - values[at.max(axis=0), rows]
            observed += np.where(at[0] < at[1], 1, -1) @ gains
            sums += _redealt(first, one.dataset, form, other) @ gains
    # Sums of whole numbers, so that ties are ties.
    return float((1 + np.sum(sums >= observed)) / (1 + N_REDEALS))


def _values(
    forms: np.ndarray, before: np.ndarray, after: np.ndarray, form: int, other: int
) -> np.ndarray:
    """What a row adds to the change under a model, (n_rows,): a rank, or held-out rows beaten."""
    asked = np.isin(forms, (form, other))
    if other == HELD_OUT:
        found = np.zeros(len(forms))
        found[asked] = doubled_ranks(after[asked]) - doubled_ranks(before[asked])
        return found
    n_pairs = 2 * np.sum(forms == HELD_OUT)
    return np.round(n_pairs * (wins(after, forms) - wins(before, forms)))


@cache
def _redealt(first: int, dataset: str, form: int, other: int) -> np.ndarray:
    """1 where a re-deal gives a row ``form`` under the earlier of its two models, else -1."""
    forms = dealt(first, dataset)
    rest = [(forms == n).argmax(axis=0) for n in range(N_IN_ROUND) if n not in (form, other)]
    cells = np.argsort(N_IN_ROUND * rest[0] + rest[1], kind="stable").reshape(12, -1)
    generator = np.random.default_rng(seed_of(first, dataset, f"{NAME} {form} {other}"))
    places = generator.random((N_REDEALS, *cells.shape)).argsort(axis=-1)
    signs = np.empty((N_REDEALS, N_ROWS), np.float32)
    signs[:, cells.ravel()] = np.where(places < cells.shape[1] / 2, 1, -1).reshape(N_REDEALS, -1)
    return signs


def result(datasets: Sequence[Scored], form: int, other: int) -> dict[str, Any]:
    """One test: the form's AUCs before and after, and its change less that of the other form."""
    before, after = aucs(datasets, form)
    change = after - before
    if other != HELD_OUT:
        change = change - np.subtract(*aucs(datasets, other)[::-1])
    interval = stats.ttest_1samp(change, 0).confidence_interval(CONFIDENCE)
    about = {"form": FORMS[form], "against": FORMS[other], "n_models": len(change)}
    about |= {"n_rows": len(datasets) * N_ROWS // N_IN_ROUND}  # of a model, in each form
    about |= {"before": before.mean(), "after": after.mean(), "change": change.mean()}
    about |= {"ci_low": interval.low, "ci_high": interval.high}
    return about | {"p": swap_p(datasets, form, other)}


def registered(stored: pd.DataFrame) -> pd.DataFrame:
    """The registered tests: detector and ``result``, p_adjusted (Holm over all ten), verdict."""
    found = {name: scored(stored, name) for name in DETECTORS}
    rows = [{"detector": name} | result(of, *test) for name, of in found.items() for test in TESTS]
    table = pd.DataFrame(rows).assign(p_adjusted=lambda table: holm(table["p"]))
    return table.assign(verdict=verdict_column(table, MATTERS, n_models="n_models"))


def controls(stored: pd.DataFrame) -> pd.DataFrame:
    """What knows nothing of the training, on the same lots: the untuned model, length and noise.

    ``result`` as if each score came after one that is always the same; p_adjusted by Holm.
    """
    rows = []
    for name in (*DETECTORS, *(control.name for control in ASKED[-2:])):
        known = [
            one._replace(after=one.before, before=0 * one.before) for one in scored(stored, name)
        ]
        rows += [{"control": name} | result(known, *test) for test in TESTS]
    return pd.DataFrame(rows).assign(p_adjusted=lambda table: holm(table["p"]))
