"""How often is the rule of an audit wrong, and what does it notice? By simulation, seeded.

    python scripts/audit_simulation.py       # 15 minutes on one core; --draws 20 for a look

Two kinds of scores. *Made* ones are normal and depend on two features of the rows, in which the
two files may differ; a share of the suspected rows is raised by some standard deviations. The
*study's* are those of the pretraining study's models, of which we know how often they saw every
row; where nothing was seen, suspected rows may be longer than comparison rows. Every draw is one
audit by one method, decided as ``contamination.audit.decision`` decides it.

Writes ``docs/audit_simulation.csv`` (every setting) and ``src/contamination/audit/noticed.csv``
(what an audit quotes: how often a third of the rows seen so many times is noticed).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit import power
from contamination.audit.decision import Comparison, text_features
from contamination.audit.plan import DCQ, MIN_K, RANKING, REPLICATION
from contamination.core import storage
from contamination.core.verdicts import ALPHA
from contamination.study import baselines, four_methods, row_pools
from contamination.study.crossed import CrossedScores
from contamination.study.scores import all_detectors, crossed_scores, read_scores

TABLE = Path(__file__).resolve().parents[1] / "docs/audit_simulation.csv"
N_REDEALS = 399
RATE = 0.1  # of false names, as an audit takes it
NULL_DRAWS, DRAWS = 1_000, 100
MADE_SIZES = ((30, 20), (60, 60), (90, 60))
DIFFERENCES = (0.0, 0.5, 1.0, 1.5)  # of the two files in each feature, in standard deviations
SHAPES = ("linear", "curved")  # how a made score depends on the features
MADE_SHARES, EFFECTS = (0.1, 0.2, 1 / 3, 1.0), (1.0, 2.0, 4.0)
LENGTHS = (0.0, 0.5, 1.0)  # difference in length of rows of the study
SIZES = ((30, 20), (60, 60), (90, 180))  # suspected rows and comparison rows
SHARES, COPIES = (0.1, 1 / 3, 2 / 3), (16, 4, 1)
MODELS = {"1.4 million parameters": "pretraining", "29 million parameters": "larger"}
# The study's detector of each method; DICE is asked by other rules.
OF_METHOD = {
    DCQ: four_methods.DCQ.name,
    REPLICATION: four_methods.REPLICATION.name,
    RANKING: four_methods.RANKING.name,
    MIN_K: baselines.MIN_K.name,
}
COLUMNS = ["scores", "method", "n", "n_comparison", "share", "effect", "copies", "difference"]
COLUMNS += ["shape", "n_draws", "shown", "listed", "false_names", "at_least", "covered"]


def made_audits(
    n: int, m: int, share: float, effect: float, difference: float, shape: str, seed: list[int]
) -> Iterator[tuple[Comparison, np.ndarray]]:
    """Audits of made scores, and which suspected rows were seen."""
    generator = np.random.default_rng(seed)
    while True:
        features = generator.normal(size=(n + m, 2))
        features[:n] += difference / np.sqrt(2)  # the difference is that of both together
        first = features[:, 0]
        scores = generator.normal(size=n + m) + (first if shape == "linear" else first**2 / 2)
        seen = np.arange(n + m) < round(share * n)
        yield _audit(scores + effect * seen, n, features, generator), seen[:n]


def study_audits(
    pools: Sequence[CrossedScores],
    n: int,
    m: int,
    share: float,
    copies: int,
    longer: float,
    seed: list[int],
) -> Iterator[tuple[Comparison, np.ndarray]]:
    """Audits of one method on the study's rows, each of one model and one benchmark."""
    generator, n_seen = np.random.default_rng(seed), round(share * n)
    texts = {f"{pool.benchmark} {pool.kind}": pool.rows.texts for pool in row_pools.pools()}
    while True:
        pool = pools[generator.integers(len(pools))]
        model = generator.integers(len(pool.scores))
        held_out, of_pool = np.flatnonzero(pool.copies[model] == 0), texts[pool.name]
        dealt = _dealt(held_out, of_pool, n - n_seen, m, longer, generator)
        seen = generator.choice(np.flatnonzero(pool.copies[model] == copies), n_seen, False)
        chosen = np.concatenate([seen, dealt])
        features = text_features([of_pool[place] for place in chosen])
        yield _audit(pool.scores[model][chosen], n, features, generator), np.arange(n) < n_seen


def _dealt(
    rows: np.ndarray,
    texts: tuple[str, ...],
    n: int,
    m: int,
    longer: float,
    generator: np.random.Generator,
) -> np.ndarray:
    """n suspected and m comparison rows; the first are longer by so many standard deviations."""
    lengths = np.log([len(texts[place]) for place in rows])
    z = (lengths - lengths.mean()) / lengths.std()
    weights = np.exp(longer / 2 * z)
    first = generator.choice(len(rows), n, False, weights / weights.sum())
    rest = np.setdiff1d(np.arange(len(rows)), first)
    weights = np.exp(-longer / 2 * z[rest])
    return rows[np.concatenate([first, generator.choice(rest, m, False, weights / weights.sum())])]


def _audit(
    scores: np.ndarray, n: int, features: np.ndarray, generator: np.random.Generator
) -> Comparison:
    is_suspected, seed = np.arange(len(scores)) < n, int(generator.integers(2**31))
    return Comparison(scores, is_suspected, features, seed, N_REDEALS)


def measured(
    audits: Iterator[tuple[Comparison, np.ndarray]], n_draws: int, has_bound: bool = True
) -> dict[str, Any]:
    """What a number of audits found.

    Returns:
        n_draws; shown, share of audits whose test rejects; listed, share with a list; false_names,
        mean share of false names on a list (0 where there is none); at_least, mean bound on the
        share seen (0 to 1); covered, share of audits whose bound is no more than the truth. The
        last two are NaN unless ``has_bound``.
    """
    rows = []
    for _, (audit, seen) in zip(range(n_draws), audits, strict=False):
        shown = audit.p_values[0] <= ALPHA
        named = audit.listed(RATE) & shown
        bound = audit.n_seen_at_least() if has_bound else np.nan
        false = (named & ~seen).sum() / max(1, named.sum())
        is_covered = bound <= seen.sum() if has_bound else np.nan
        rows.append((shown, named.any(), false, bound / audit.n, is_covered))
    names = ["shown", "listed", "false_names", "at_least", "covered"]
    means = dict(zip(names, np.array(rows, float).mean(axis=0).round(4).tolist(), strict=True))
    return {"n_draws": len(rows)} | means


def simulate_made(n_null: int, n_draws: int) -> Iterator[dict[str, Any]]:
    """Settings of made scores: all that are null, then all with seen rows and equal files."""
    null = [(*sizes, 0.0, 0.0, *of) for sizes in MADE_SIZES for of in product(DIFFERENCES, SHAPES)]
    seen = product(MADE_SHARES, EFFECTS, (0.0, 1.0))
    power = [(*s, *of, "linear") for s, of in product(MADE_SIZES, seen)]
    for number, setting in enumerate([*null, *power]):
        n = n_draws if setting[2] else n_null
        audits = made_audits(*setting, seed=[1, number])
        named = ("n", "n_comparison", "share", "effect", "difference", "shape")
        row = {"scores": "made"} | dict(zip(named, setting, strict=True))
        yield row | measured(audits, n, has_bound=bool(setting[2]))


def simulate_study(model: str, n_null: int, n_draws: int) -> Iterator[dict[str, Any]]:
    """Settings of the scores of the study's models of one size, by method."""
    place, frame = [*MODELS].index(model), read_scores(MODELS[model])
    asked = {name: of for name, of in OF_METHOD.items() if of in all_detectors(frame)}
    for which, (method, detector) in enumerate(asked.items()):
        pools = [*crossed_scores(frame, detector).values()]
        null = [(60, 60, 0.0, 0, longer) for longer in LENGTHS]
        grid = product(SIZES, SHARES, COPIES)
        seen = [(*sizes, share, copies, 0.0) for sizes, share, copies in grid]
        for number, setting in enumerate([*null, *seen]):
            audits = study_audits(pools, *setting, seed=[2, place, which, number])
            named = ("n", "n_comparison", "share", "copies", "difference")
            row = {"scores": model, "method": method} | dict(zip(named, setting, strict=True))
            has_bound = setting[:2] == (60, 60) and bool(setting[2])
            yield row | measured(audits, n_draws if setting[2] else n_null // 2, has_bound)


PARTS = {"made": simulate_made} | {
    part: partial(simulate_study, model) for model, part in MODELS.items()
}


def noticed_table(simulated: pd.DataFrame) -> pd.DataFrame:
    """What the package carries of ``docs/audit_simulation.csv``: a third of the rows was seen.

    Returns:
        method, n, n_comparison, copies, lowest and highest: the share of simulated audits whose
        test rejects, over the sizes of models.
    """
    third = simulated[simulated["copies"].gt(0) & (simulated["share"] - 1 / 3).abs().lt(0.01)]
    by = third.groupby(["method", "n", "n_comparison", "copies"], sort=False)["shown"]
    return by.agg(lowest="min", highest="max").reset_index().astype({"copies": int})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=DRAWS, help="where rows were seen")
    parser.add_argument("--null-draws", type=int, default=NULL_DRAWS)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS])
    parser.add_argument("--table", type=Path, default=TABLE)
    told = parser.parse_args()
    found = []
    for part in [PARTS[name] for name in told.parts]:
        for row in part(told.null_draws, told.draws):
            print(row, flush=True)
            found.append(row)
    table = pd.DataFrame(found).reindex(columns=COLUMNS).astype({"copies": "Int64"})
    table = table.round({"share": 4})
    storage.write_csv(told.table, table)
    if {*told.parts} == {*PARTS} and told.table == TABLE:
        storage.write_csv(power.PATH, noticed_table(table))


if __name__ == "__main__":
    main()
