"""Does a repair help where two sets differ in length? ``docs/protocol_3.md``, E5.

    python scripts/length_repairs.py           # half an hour of a core; writes the stored table
    python scripts/length_repairs.py --made    # the same on made scores, for the protocol's page

A suspected set of 60 rows is held against 60 rows that the model did not see. The suspected rows
are longer or shorter by some standard deviations, and a share of them was seen four times: none,
or a tenth, a third, all. A test then says "seen" or does not, with nothing done about the length
or after one of the ``REPAIRS``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from contamination.audit.decision import MOST_APART, Comparison, adjusted, text_features
from contamination.core.scores import MIN_K, MIN_K_PLUS_PLUS
from contamination.core.tables import markdown
from contamination.core.verdicts import ALPHA
from contamination.study import placement, store
from contamination.study.assignment import HELD_OUT, seed_of
from contamination.study.baselines import PPL
from contamination.study.length import DIFFERENCES, MAXIMUM, N_ROWS
from contamination.study.placement import FOUR_COPIES
from contamination.study.protocol import false_alarm_limits

DRAWS = {0.0: 8, 0.1: 3, 1 / 3: 3, 1.0: 3}  # by the share of suspected rows that were seen
ASKED = (MIN_K, PPL.name, MIN_K_PLUS_PLUS)
N_REDEALS = 999
N_STRATA = 5
LONGER, SHORTER = 1, -1  # what the suspected rows are
TABLE = Path(__file__).resolve().parents[1] / "src/contamination/study/length_repairs.csv"
# Of made scores: correlation with the length, and the AUC of a row that was seen four times.
MADE_LENGTH, MADE_AUC = 0.4, 0.62


class Sets(NamedTuple):
    """Scores of 120 rows, the suspected first; the reference model's; and their text features."""

    scores: np.ndarray
    of_reference: np.ndarray
    features: np.ndarray

    @property
    def is_suspected(self) -> np.ndarray:
        return np.arange(len(self.scores)) < N_ROWS


@cache
def _deals() -> np.ndarray:
    places = np.random.default_rng(0).random((N_REDEALS, 2 * N_ROWS)).argsort(axis=1)
    return (places < N_ROWS).astype(float)


def _p(scores: np.ndarray, generator: np.random.Generator) -> float:
    """Exact p of the rank sum of the first ``N_ROWS``, labels re-dealt."""
    ranks, order = stats.rankdata(scores), generator.permutation(len(scores))
    as_high = _deals() @ ranks[order] >= ranks[:N_ROWS].sum() - 1e-9
    return float((1 + as_high.sum()) / (1 + N_REDEALS))


def _p_within(scores: np.ndarray, strata: np.ndarray, generator: np.random.Generator) -> float:
    """The same, labels re-dealt within strata."""
    order = np.argsort(strata, kind="stable")
    ranks, strata = stats.rankdata(scores)[order], strata[order]
    labels = (order < N_ROWS).astype(float)
    keys = generator.random((N_REDEALS, len(scores))) + strata
    dealt = labels[np.argsort(keys, axis=1)] @ ranks
    return float((1 + np.sum(dealt >= labels @ ranks - 1e-9)) / (1 + N_REDEALS))


def _plain(sets: Sets, generator: np.random.Generator) -> bool:
    return _p(sets.scores, generator) <= ALPHA


def _within_strata(sets: Sets, generator: np.random.Generator) -> bool:
    ranks = stats.rankdata(sets.features[:, 0]) - 0.5
    strata = (ranks * N_STRATA / len(ranks)).astype(int)
    return _p_within(sets.scores, strata, generator) <= ALPHA


def _residual(sets: Sets, generator: np.random.Generator) -> bool:
    return _p(adjusted(sets.scores, sets.features), generator) <= ALPHA


def _less_reference(sets: Sets, generator: np.random.Generator) -> bool:
    return _p(sets.scores - sets.of_reference, generator) <= ALPHA


def _audit(sets: Sets, generator: np.random.Generator) -> bool | None:
    """As an audit decides; None where it refuses, since the texts alone tell the sets apart."""
    seed = int(generator.integers(2**31))
    audit = Comparison(sets.scores, sets.is_suspected, sets.features, seed, N_REDEALS)
    return None if audit.text_auc > MOST_APART else audit.p_values[0] <= ALPHA


REPAIRS: Mapping[str, Callable[[Sets, np.random.Generator], bool | None]] = {
    "none": _plain,
    "re-dealt within fifths of length": _within_strata,
    "less length and word frequency": _residual,
    "less a clean model's score": _less_reference,
    "the audit's rule": _audit,
}


def drawn(
    lengths: np.ndarray,
    dealt: np.ndarray,
    difference: Any,
    side: int,
    share: float,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Places of 60 suspected and 60 comparison rows, as ``length.two_sets`` draws them.

    ``dealt`` says which rows are ``FOUR_COPIES``, from which a share of the suspected rows comes,
    and which are held out.
    """
    held_out = np.flatnonzero(dealt == HELD_OUT)
    z = (lengths - lengths[held_out].mean()) / lengths[held_out].std()
    n_seen, median = round(share * N_ROWS), np.median(lengths[held_out])

    def best(places: np.ndarray, n: int, direction: int) -> np.ndarray:
        keys = generator.gumbel(size=len(places))
        if difference == MAXIMUM:  # rows of the other side only where these are too few
            keys[(lengths[places] >= median) != (direction > 0)] -= len(lengths)
        else:
            keys += direction * difference / 2 * z[places]
        return places[np.argsort(-keys)[:n]]

    seen = best(np.flatnonzero(dealt == FOUR_COPIES), n_seen, side)
    suspected = np.concatenate([seen, best(held_out, N_ROWS - n_seen, side)])
    return suspected, best(np.setdiff1d(held_out, suspected), N_ROWS, -side)


def settings() -> Iterator[tuple[Any, float, int]]:
    """Every difference in length with every share and side."""
    for difference in DIFFERENCES:
        for share in DRAWS:
            yield from ((difference, share, side) for side in (LONGER, SHORTER))


def alarms(
    stored: pd.DataFrame, reference: pd.DataFrame, detectors: Sequence[str] = ASKED
) -> pd.DataFrame:
    """Every test: base_seed, benchmark, detector, repair, difference, share, side, draw, alarm.

    ``alarm`` is 1 where the test says "seen", 0 where it does not, NaN where it refuses.

    Args:
        stored: as ``placement.read`` gives it; models of the falling rate are asked.
        reference: the same of a model that saw none of the rows.
    """
    rows, texts = [], {pool.benchmark: pool.rows.texts for pool in placement.pools()}
    features = {name: text_features(of) for name, of in texts.items()}
    seeds = sorted(stored["base_seed"].unique().tolist())
    clean = reference.set_index(["detector", "benchmark", "row"])["score"].sort_index()
    for detector in detectors:
        for pool, benchmark in zip(
            placement.crossed(stored, detector, placement.SCHEDULES[0]), texts, strict=True
        ):
            lengths = np.array([float(len(text)) for text in texts[benchmark]])
            of_clean = clean[detector, benchmark].to_numpy(float)
            for model, seed in enumerate(seeds):
                for difference, share, side in settings():
                    for draw in range(DRAWS[share]):
                        key = f"repairs {difference}, {share:.2f}, {side}, {draw}"
                        generator = np.random.default_rng(seed_of(seed, benchmark, key))
                        places = np.concatenate(
                            drawn(lengths, pool.copies[model], difference, side, share, generator)
                        )
                        sets = Sets(
                            pool.scores[model][places],
                            of_clean[places],
                            features[benchmark][places],
                        )
                        about = (seed, benchmark, detector, difference, share, side, draw)
                        for name, says in REPAIRS.items():
                            said = says(sets, generator)
                            rows.append((*about, name, np.nan if said is None else float(said)))
    columns = ["base_seed", "benchmark", "detector", "difference", "share", "side", "draw"]
    return pd.DataFrame(rows, columns=[*columns, "repair", "alarm"])


def rates(found: pd.DataFrame) -> pd.DataFrame:
    """Rates of alarms by detector, repair, difference and share.

    Returns:
        detector, repair, difference, share, n_models, n_tests (of both sides), refused (share of
        tests), rate (of the tests that were not refused), of the side on which it is higher where
        nothing was seen and lower where rows were seen, and its one-sided 95 % limits ci_low and
        ci_high, where models were drawn.
    """
    rows = []
    keys = ["detector", "repair", "difference", "share"]
    for key, own in found.groupby(keys, sort=False):
        judged = own.dropna(subset="alarm")
        by_side = judged.groupby("side")["alarm"].mean()
        low = high = rate = np.nan
        if len(by_side):
            side = by_side.idxmin() if key[-1] else by_side.idxmax()
            worst = judged[judged["side"] == side]
            rate = worst["alarm"].mean()
            low, high = false_alarm_limits(worst["alarm"], worst["base_seed"])
        n_models, refused = own["base_seed"].nunique(), 1 - len(judged) / len(own)
        rows.append((*key, n_models, len(own), refused, rate, low, high))
    columns = [*keys, "n_models", "n_tests", "refused", "rate", "ci_low", "ci_high"]
    return pd.DataFrame(rows, columns=columns)


def made_scores(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Normal scores that depend on the length, as ``alarms`` takes them, and the reference's.

    Half of what the length leaves belongs to the row and is the same under all models.
    """
    generator, tables, clean = np.random.default_rng(seed), [], []
    for pool in placement.pools():
        lengths = stats.zscore([float(len(text)) for text in pool.rows.texts])
        of_row = generator.normal(size=len(lengths))
        key = {"detector": MIN_K, "benchmark": pool.benchmark, "row": np.arange(len(lengths))}
        rest = np.sqrt((1 - MADE_LENGTH**2) / 2)
        for base_seed in (placement.REFERENCE, *placement.BASE_SEEDS):
            scores = MADE_LENGTH * lengths + rest * (of_row + generator.normal(size=len(lengths)))
            if base_seed != placement.REFERENCE:
                seen = placement.numbers(base_seed, pool.benchmark) == FOUR_COPIES
                scores += np.sqrt(2) * stats.norm.ppf(MADE_AUC) * seen
            model = "clean" if base_seed == placement.REFERENCE else placement.SCHEDULES[0]
            table = pd.DataFrame({**key, "score": scores, "model": model, "base_seed": base_seed})
            (clean if model == "clean" else tables).append(table)
    return pd.concat(tables), pd.concat(clean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--made", action="store_true")
    if parser.parse_args().made:
        found = rates(alarms(*made_scores(), detectors=(MIN_K,)))
        shown = found.pivot(index=["repair", "difference"], columns="share", values="rate")
        limit = found[found["share"] == 0].set_index(["repair", "difference"])
        shown.insert(1, "upper limit", limit["ci_high"])
        print(markdown(shown.assign(refused=limit["refused"]).reset_index()))
        return
    reference, _ = store.read_tables(f"{placement.NAME}_{placement.REFERENCE}")
    rates(alarms(placement.read(), reference["scores"])).to_csv(
        TABLE, index=False, float_format="%.6g"
    )


if __name__ == "__main__":
    main()
