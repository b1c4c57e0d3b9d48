"""The figure of the larger models: how far each detector's AUC moves, at each number of copies."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from contamination.core.plots import CHANCE, MEMBER, OTHER, panels
from contamination.core.tables import copies_text

# Inches and points; at 390 pixels, the width of a telephone, letters stay 10 pixels high.
WIDTH, ROW, HEAD = 4.3, 0.27, 0.55
LARGE, SMALL = 10, 8.5
LABEL_WIDTH = 16  # letters of a label on one line


def larger_figure(table: pd.DataFrame) -> Figure:
    """AUC under small and under larger models for every detector, a panel for each dose.

    ``table`` is that of ``pretraining_changes.larger``.
    """
    doses = sorted(table["copies"].unique())
    names = table.drop_duplicates("detector")["detector"].tolist()[::-1]
    size = (WIDTH, ROW * len(names) * len(doses) + HEAD * (len(doses) + 1))
    figure, axes = panels(len(doses), 1, size, sharex=True)
    for axis, dose in zip(axes[:, 0], doses, strict=True):
        rows = table[table["copies"].eq(dose)].set_index("detector").loc[names]
        places = range(len(rows))
        half = (rows["ci_high"] - rows["ci_low"]) / 2
        axis.axvline(0.5, color=CHANCE, linestyle="--", linewidth=1)
        axis.hlines(places, rows["auc"], rows["auc_larger"], color=CHANCE, linewidth=1.5)
        small = {"facecolor": "none", "edgecolor": OTHER, "linewidth": 1.6, "label": "small models"}
        axis.scatter(rows["auc"], places, s=30, marker="s", zorder=4, **small)
        axis.errorbar(
            rows["auc_larger"], places, xerr=half, fmt="o", color=MEMBER, markersize=5,
            capsize=2.5, label="larger models",
        )  # fmt: skip
        labels = [textwrap.fill(name, LABEL_WIDTH) for name in names]
        axis.set_yticks(list(places), labels, fontsize=SMALL)
        axis.set_xlim(0.45, 1.02)
        axis.set_title(copies_text(dose), fontsize=LARGE, loc="left")
    axes[-1, 0].set_xlabel("AUC (dashed: chance)\nbar: 95 % interval of the change", fontsize=SMALL)
    axes[-1, 0].legend(
        loc="upper center", bbox_to_anchor=(0.35, -0.28), ncols=2, frameon=False, fontsize=SMALL
    )
    figure.suptitle(title(table), fontsize=LARGE)
    return figure


def title(table: pd.DataFrame) -> str:
    """What the figure shows, in one line or two.

    >>> title(pd.DataFrame({"ci_low": [0.1, -0.1], "ci_high": [0.2, 0.1], "copies": [1, 4]}))
    'In larger models, the AUC is higher\\nin 1 of 2 comparisons and lower in 0'
    """
    higher, lower = int(table["ci_low"].gt(0).sum()), int(table["ci_high"].lt(0).sum())
    return (
        f"In larger models, the AUC is higher\nin {higher} of {len(table)} comparisons "
        f"and lower in {lower}"
    )
