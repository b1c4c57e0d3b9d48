"""Algorithm 1: does naming the dataset and split raise the overlap? (section 3.2, appendix B)

A partition is labelled contaminated when the mean overlap of the guided
completions is significantly larger than that of the general ones.
"""

from __future__ import annotations

import pandas as pd

from contamination.core.statistics import holm
from contamination.core.verdicts import ALPHA
from contamination.replication.bootstrap import (
    chance_of_significance,
    paired_bootstrap_interval,
    paired_bootstrap_p,
    sampled_paired_bootstrap_p,
    sign_flip_p,
    smallest_sign_flip_p,
    unpaired_bootstrap_p,
)

METRICS = {"BLEURT": "bleurt", "ROUGE-L": "rouge"}
PARTITION = ["model", "dataset", "split"]
ENDS = ("ci_low", "ci_high")


def compare_instructions(
    instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Guided against general instruction, one row per model, partition and metric.

    Args:
        instances: model, dataset, split, and per metric a column
            ``<metric>_general`` and ``<metric>_guided`` (0 to 1, two decimals).
        n_resamples, seed: of the sampled test, the paper's; the exact tests need none.

    Returns:
        p_paired is the bootstrap's, computed exactly, p_sampled the same from resamples,
        p_unpaired of the two samples resampled apart, p_sign_flip an exact test;
        significant means p_paired <= 0.05; chance_significant is the chance, over
        seeds, that the sampled test says so; ..._holm: all rows tested together.
        difference is guided minus general, with its interval (ci_low, ci_high; the exact paired
        bootstrap's); p_sign_flip_smallest is the smallest that p_sign_flip could have been, and
        can_reject says whether sign flips could be significant after Holm if every row had its
        smallest p.
    """
    rows = []
    for partition, group in instances.groupby(PARTITION, sort=False):
        for metric, prefix in METRICS.items():
            general = group[f"{prefix}_general"].to_numpy()
            guided = group[f"{prefix}_guided"].to_numpy()
            rows.append(
                dict(zip(PARTITION, partition, strict=True))
                | {"metric": metric, "n": len(group)}
                # Scores have two decimals, so that their sum is a whole number of hundredths.
                | {"mean_general": round(float(general.mean()), 10)}
                | {"mean_guided": round(float(guided.mean()), 10)}
                | {"p_paired": paired_bootstrap_p(guided, general)}
                | {"p_sampled": sampled_paired_bootstrap_p(guided, general, n_resamples, seed)}
                | {"p_unpaired": unpaired_bootstrap_p(guided, general)}
                | {"p_sign_flip": sign_flip_p(guided, general)}
                | {"p_sign_flip_smallest": smallest_sign_flip_p(guided, general)}
                | {"difference": round(float((guided - general).mean()), 10)}
                | dict(zip(ENDS, paired_bootstrap_interval(guided, general), strict=True))
            )
    table = pd.DataFrame(rows)
    table["significant"] = table["p_paired"] <= ALPHA
    table["significant_unpaired"] = table["p_unpaired"] <= ALPHA
    table["significant_sign_flip"] = table["p_sign_flip"] <= ALPHA
    table["chance_significant"] = [
        chance_of_significance(p, n_resamples, ALPHA) for p in table["p_paired"]
    ]
    table["significant_holm"] = holm(table["p_paired"].to_numpy()) <= ALPHA
    table["p_sign_flip_holm"] = holm(table["p_sign_flip"].to_numpy())
    table["significant_sign_flip_holm"] = table["p_sign_flip_holm"] <= ALPHA
    table["can_reject"] = holm(table["p_sign_flip_smallest"].to_numpy()) <= ALPHA
    return table
