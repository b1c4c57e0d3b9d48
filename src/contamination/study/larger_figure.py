"""The figure of the larger models: how far each detector's AUC moves, at each number of copies."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from contamination.core.plots import CHANCE, MEMBER, OTHER, panels
from contamination.core.tables import copies_text
from contamination.core.verdicts import FOUND

# Inches and points; at 390 pixels, the width of a telephone, letters stay 10 pixels high.
WIDTH, ROW, HEAD = 4.3, 0.27, 0.6
LARGE, SMALL = 10, 8.5
LABEL_WIDTH = 16  # letters of a label on one line
LIMITS = (0.45, 1.02)


def larger_figure(table: pd.DataFrame, title: str) -> Figure:
    """AUC under small and under larger models for every detector, a panel for each dose.

    ``table`` is that of ``changes.larger``. A dot is filled where its claim, that the
    AUC is higher in the larger models, is shown.
    """
    doses = sorted(table["copies"].unique())
    names = table.drop_duplicates("detector")["detector"].tolist()[::-1]
    n_asked = table.groupby("detector")["benchmarks"].first().str.count(",")
    labels = [
        textwrap.fill(f"{n}{' *' * bool(n_asked[n] < n_asked.max())}", LABEL_WIDTH) for n in names
    ]
    size = (WIDTH, ROW * len(names) * len(doses) + HEAD * (len(doses) + 1))
    figure, axes = panels(len(doses), 1, size)
    for axis, dose in zip(axes[:, 0], doses, strict=True):
        rows = table[table["copies"].eq(dose)].set_index("detector").loc[names]
        rows = rows.assign(place=range(len(rows)))
        axis.axvline(0.5, color=CHANCE, linestyle="--", linewidth=1)
        axis.hlines(rows["place"], rows["auc"], rows["auc_larger"], color=CHANCE, linewidth=1.5)
        style = {"facecolor": "none", "edgecolor": OTHER, "linewidth": 1.6, "marker": "s"}
        axis.scatter(rows["auc"], rows["place"], s=30, zorder=4, label="small models", **style)
        is_shown = rows["verdict"].isin(FOUND)
        for own, fill, label in (
            (rows[is_shown], MEMBER, "larger models, rise shown"),
            (rows[~is_shown], "white", "larger models, no rise shown"),
        ):
            ends = [own["auc_larger"] - own["larger_low"], own["larger_high"] - own["auc_larger"]]
            axis.errorbar(
                own["auc_larger"], own["place"], xerr=[end.clip(lower=0) for end in ends], fmt="o",
                color=MEMBER, markerfacecolor=fill, markersize=5, capsize=2.5, label=label,
            )  # fmt: skip
        axis.set_yticks(rows["place"], labels, fontsize=SMALL)
        axis.set(xlim=LIMITS, ylim=(-0.7, len(names) - 0.3))
        axis.set_title(copies_text(dose), fontsize=LARGE, loc="left")
    foot = "AUC with its 95 % interval (dashed: chance)"
    if (n_asked < n_asked.max()).any():
        foot += "\n* on one benchmark alone"
    axes[-1, 0].set_xlabel(foot, fontsize=SMALL)
    axes[-1, 0].legend(
        loc="upper center", bbox_to_anchor=(0.3, -0.26), frameon=False, fontsize=SMALL
    )
    figure.suptitle(title, fontsize=LARGE)
    return figure
