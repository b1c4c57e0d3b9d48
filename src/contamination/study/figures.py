"""The figure of the pretraining study: how well each detector sees so many copies of a row."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from contamination.core.plots import panels
from contamination.core.statistics import CHANCE
from contamination.core.tables import copies_text, interval_text, percent
from contamination.core.verdicts import FOUND, OPEN, RULED_OUT, SHOWN
from contamination.study.reference_attack import LIRA

ATTACK = f"reference attack ({LIRA})"
# Inches; at 390 pixels, the width of a telephone, the smallest letters are 10 pixels high.
WIDTH, CELL, HEAD, FOOT = 4.3, 0.40, 1.75, 0.95
SHIFT_CELL, SHIFT_HEAD, SHIFT_FOOT = 0.35, 2.2, 0.75
LARGE, SMALL = 10, 8  # points
LABEL_WIDTH = 21  # letters of a row's label on one line
GREY = "#595959"
NO_SHIFT = {"none": "nothing"}
TITLE_PLACE = 0.18  # middle of the figure, as a share of the width of the cells
DARK = 0.72  # of a colour scale, from where white letters are easier to read than black ones
KEY = "bold: shown   ?: open\ngrey: an AUC of 0.55 or more is ruled out"
SHIFT_KEY = (
    "share of pairs of sets, the worse of two directions\n"
    "bold: more than the 5 % allowed   ?: open\n"
    "grey: at most 15 %   empty: untested"
)
ON_FEWER = " *"  # after a detector that was not tested on all benchmarks


def detection_figure(
    detection: pd.DataFrame,
    reference: pd.DataFrame,
    shift: pd.DataFrame | None = None,
    title: str = "",
) -> Figure:
    """AUC of each detector at each number of copies, the reference attack below all.

    Args:
        detection: of ``detection.detection``.
        reference: of ``detection.reference``; its exploratory form is not drawn.
        shift: of ``shift.false_verdicts``: how often a detector calls one of two sets that no
            model saw seen, as a share. Drawn apart, in orange, for the detectors of
            ``detection``, with a column for each difference and benchmark.
    """
    doses = sorted(detection["copies"].unique())
    attack = reference[~reference["is_exploratory"]].assign(detector=ATTACK, verdict="")
    names = [*dict.fromkeys(detection["detector"]), ATTACK]
    heights = [HEAD + CELL * len(names) + FOOT]
    if shift is not None:
        asked = _asked(shift, names)
        heights.append(SHIFT_HEAD + SHIFT_CELL * asked["detector"].nunique() + SHIFT_FOOT)
    figure, axes = panels(len(heights), 1, (WIDTH, sum(heights)), height_ratios=heights)
    _auc_panel(axes[0, 0], pd.concat([detection, attack]), names, doses)
    # Centred over labels and cells together: over the cells alone there is too little room.
    axes[0, 0].set_title(title, x=TITLE_PLACE, fontsize=LARGE)
    if shift is not None:
        _shift_panel(axes[1, 0], asked)
    return figure


def _asked(shift: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Rows of ``names`` alone and in their order, with a column for what the two sets differ in."""
    own = shift[shift["detector"].isin(names)]
    own = own.sort_values("detector", key=lambda of: of.map(list(names).index), kind="stable")
    kinds = own["shift"].replace(NO_SHIFT)
    return own.assign(differ_in=kinds + ", " + own["benchmark"])


def _auc_panel(axis: Axes, table: pd.DataFrame, names: list[str], doses: list[int]) -> None:
    cells = table.set_index(["detector", "copies"])
    scale, colours = Normalize(CHANCE, 1.0), colormaps["Blues"]
    values = np.full((len(names), len(doses)), np.nan)
    for y, name in enumerate(names):
        for x, dose in enumerate(doses):
            if (name, dose) not in cells.index:
                axis.text(x + 0.5, y + 0.5, "untested", ha="center", va="center", fontsize=SMALL)
                continue
            cell = cells.loc[(name, dose)]
            values[y, x] = cell["auc"]
            style = _style(cell["verdict"], scale(cell["auc"]))
            mark = " ?" if cell["verdict"] == OPEN else ""
            places = 2 if pd.isna(cell["ci_low"]) else _decimals(cell)
            ends = interval_text(cell["ci_low"], cell["ci_high"], places)
            if pd.isna(cell["ci_low"]):  # no spread between models: the range in its place
                ends = f"{cell['auc_min']:.2f} to {cell['auc_max']:.2f}"
            axis.text(x + 0.5, y + 0.34, f"{cell['auc']:.{places}f}{mark}", fontsize=LARGE, **style)
            style |= {"fontweight": "normal"}
            axis.text(x + 0.5, y + 0.74, ends, fontsize=SMALL, **style)
    mesh = axis.pcolormesh(
        values, cmap=colours, norm=scale, edgecolors="#E5E5E5", linewidth=1, zorder=0
    )
    # The attack is asked on all benchmarks, so its shares are means over all of them.
    shares = cells.loc[ATTACK, "row_share_pct"]
    heads = [f"{copies_text(dose)}\n{percent(shares[dose])}" for dose in doses]
    benchmarks = table.dropna(subset="benchmarks").groupby("detector")["benchmarks"].first()
    n_asked = benchmarks.str.split(", ").str.len().reindex(names)
    is_fewer = n_asked < n_asked.max()
    labels = [f"{name}{ON_FEWER * bool(is_fewer[name])}" for name in names]
    _frame(axis, labels, heads)
    axis.axhline(len(names) - 1, color="black", linewidth=1.5)
    axis.set_xlabel("copies of a row, share of the training tokens", fontsize=SMALL)
    axis.xaxis.set_label_position("top")
    bar = axis.figure.colorbar(mesh, ax=axis, location="bottom", aspect=30, pad=0.01)
    bar.set_ticks([CHANCE, 0.75, 1.0], labels=["0.50\nchance", "0.75", "1.00"], fontsize=SMALL)
    key = f"AUC, with 95 % interval\n{KEY}"
    if is_fewer.any():
        key += f"  {ON_FEWER} not on all {n_asked.max():.0f} benchmarks"
    bar.set_label(key, fontsize=SMALL)
    bar.outline.set_visible(False)
    bar.ax.axvline(CHANCE, color="black", linewidth=2)


def _decimals(row: pd.Series, decimals: int = 2) -> int:
    """Decimals of an AUC: one more where a shown effect would seem to reach 0.50."""
    is_close = round(row["ci_low"], decimals) == CHANCE
    return decimals + (row.get("verdict") in FOUND and is_close)


def _style(verdict: str, height: float) -> dict:
    """Letters that can be read on the colour of a cell, bold for what is shown."""
    plain = GREY if verdict == RULED_OUT else "black"
    style = {"ha": "center", "va": "center", "color": "white" if height > DARK else plain}
    return style | {"fontweight": "bold" if verdict in FOUND else "normal"}


def _shift_panel(axis: Axes, asked: pd.DataFrame) -> None:
    names, kinds = asked["detector"].unique(), asked["differ_in"].unique()
    cells = asked.set_index(["detector", "differ_in"])
    wide = cells["rate"].unstack().loc[names, kinds]
    axis.pcolormesh(
        wide.to_numpy(float), cmap="Oranges", vmin=0, vmax=1, edgecolors="#E5E5E5", linewidth=1
    )
    for y, name in enumerate(names):
        for x, kind in enumerate(kinds):
            if (name, kind) in cells.index:
                cell = cells.loc[(name, kind)]
                # What is shown here is that the detector does not keep its level.
                verdict = OPEN if pd.isna(cell["holds"]) else RULED_OUT if cell["holds"] else SHOWN
                style = _style(verdict, cell["rate"])
                mark = " ?" if verdict == OPEN else ""
                text = f"{100 * cell['rate']:.0f}{mark}"
                axis.text(x + 0.5, y + 0.5, text, fontsize=SMALL + 0.5, **style)
    _frame(axis, list(names), list(kinds))
    axis.tick_params(axis="x", rotation=90)
    title = "False verdicts, in %, on two sets of\nrows that no model saw, differing in"
    axis.set_title(title, x=TITLE_PLACE, fontsize=LARGE)
    axis.text(
        0.5, -0.02, SHIFT_KEY, transform=axis.transAxes, ha="center", va="top", fontsize=SMALL
    )


def _frame(axis: Axes, names: list[str], heads: list[str]) -> None:
    """Labels of rows at the left and of columns on top, the first row uppermost."""
    labels = [textwrap.fill(name, LABEL_WIDTH) for name in names]
    axis.set_yticks(np.arange(len(names)) + 0.5, labels, fontsize=SMALL + 0.5)
    axis.set_xticks(np.arange(len(heads)) + 0.5, heads, fontsize=SMALL + 0.5)
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.invert_yaxis()
    for spine in axis.spines.values():
        spine.set_visible(False)
