"""How far does training on a benchmark's rows inflate its score, and can the score be corrected?

Where the inserted rows were chosen at random, held-out rows of the same draw show the score that
the inserted rows would have had. So the inflation is known, and a correction can be checked.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from contamination.core.statistics import percentile_interval

COPIES = (0, 1, 8)  # of each inserted row; none is the control
SHARE_DROPPED = 0.5  # of the rows, those that a detector finds most familiar


def correction_table(
    right: Mapping[int, np.ndarray],
    familiarity: Mapping[int, np.ndarray],
    examples: pd.DataFrame,
    n_resamples: int,
    seed: int = 0,
) -> pd.DataFrame:
    """The score of inserted rows next to that of held-out rows, and a correction without them.

    Every dataset counts equally. Intervals resample rows, inserted and held-out ones apart, so
    they say nothing about another model.

    Args:
        right: copies to whether each example is answered right, shape (n_examples,).
        familiarity: copies to a detector's score of each example, higher for familiar ones.
        examples: columns dataset and is_member (inserted), in the same order.
        n_resamples: of the bootstrap.

    Returns:
        A row for each number of copies: n_inserted and n_held_out; inserted, held_out and
        unfamiliar (the inserted rows without the half that is most familiar in each dataset),
        shares of right answers, 0 to 1; and with their intervals inflation (inserted minus
        held_out), correction (unfamiliar minus inserted) and control (the same of held-out rows).
    """
    generator = np.random.default_rng([seed, 31])
    is_member = examples["is_member"].to_numpy(bool)
    groups = [examples["dataset"].to_numpy(), is_member]
    rows = []
    for copies, answers in right.items():
        ranks = pd.Series(np.asarray(familiarity[copies])).groupby(groups)
        is_kept = ranks.rank(method="first", pct=True).le(1 - SHARE_DROPPED).to_numpy()
        inserted, held_out = (
            _shares(np.asarray(answers, float), is_kept, of_kind, generator, n_resamples)
            for of_kind in (examples[is_member], examples[~is_member])
        )
        row: dict[str, float] = {"copies": copies, "n_inserted": int(is_member.sum())}
        row |= {"n_held_out": int((~is_member).sum()), "inserted": inserted[0, 0]}
        row |= {"held_out": held_out[0, 0], "unfamiliar": inserted[1, 0]}
        for name, ends, resampled in (
            ("inflation", "ci", inserted[0] - held_out[0]),
            ("correction", "correction", inserted[1] - inserted[0]),
            ("control", "control", held_out[1] - held_out[0]),
        ):
            low, high = percentile_interval(resampled[1:])
            row |= {name: resampled[0], f"{ends}_low": low, f"{ends}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)


def _shares(
    values: np.ndarray,
    is_kept: np.ndarray,
    rows: pd.DataFrame,
    generator: np.random.Generator,
    n_resamples: int,
) -> np.ndarray:
    """Mean over datasets of right answers of all rows and of kept ones, shape (2, 1 + n_resamples).

    The first column is of the rows themselves, the others are of rows drawn with replacement.
    """
    of_datasets = []
    for places in rows.groupby("dataset").groups.values():
        picks = generator.integers(len(places), size=(n_resamples, len(places)))
        drawn = places.to_numpy()[np.vstack([np.arange(len(places)), picks])]
        kept = is_kept[drawn]
        of_kept = (values[drawn] * kept).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
        of_datasets.append([values[drawn].mean(axis=1), of_kept])
    return np.mean(of_datasets, axis=0)
