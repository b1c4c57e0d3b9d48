"""Figures 4 to 7 of the DICE paper, each with its control; returned, never shown."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from contamination.core import plots
from contamination.core.plots import CHANCE, MEMBER, OTHER, PAPER
from contamination.core.tables import listed
from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.dice.detector import MLP
from contamination.dice.mixtures import SEEN
from contamination.dice.paper_rows import FLAG_THRESHOLD


def _panels(n: int, height: float, **shared: bool) -> tuple[Figure, np.ndarray]:
    """Panels one above the other, so that they can be read on a telephone."""
    figure, axes = plots.panels(n, 1, (6, height * n), **shared)
    return figure, axes[:, 0]


def layer_distances(layers: pd.DataFrame, null: str) -> Figure:
    """Figure 4: distance of contaminated and clean models' states, beside that of two clean ones.

    Draws the Euclidean distance in rows of ``dice_layers.csv``, states before the final norm;
    ``null`` is how the legend calls two clean models.
    """
    layers = layers[layers["distance"] == "euclidean"]
    figure, (axis,) = _panels(1, 4)
    names = layers["model"] + " and clean"
    sns.lineplot(layers, x="layer", y="mean", hue=names, marker="o", palette="colorblind", ax=axis)
    located = layers[layers["located"]]
    ring: dict[str, Any] = {
        "color": PAPER,
        "markersize": 12,
        "markerfacecolor": "none",
        "label": "located",
    }
    axis.plot(located["layer"], located["mean"], "o", **ring)
    first = layers[layers["model"] == layers["model"].iloc[0]]
    axis.plot(first["layer"], first["null_mean"], "s--", color=PAPER, label=null)
    share = (located["null_mean"] / located["mean"]).iloc[0]
    title = f"Two clean models lie {100 * share:.0f} % as far apart as {names.iloc[0]}"
    axis.set_title(title, loc="left")
    axis.set(xlabel="layer (0: embedding)", ylabel="mean distance of two models' states")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))  # a real model has many
    axis.legend(frameon=False, title="")
    return figure


def auroc_layers(rows: pd.DataFrame, panels: dict[str, dict[tuple[str, str, str], str]]) -> Figure:
    """Figure 5: AUROC by layer (rows of ``dice_auroc.csv``), with intervals over models.

    ``panels`` gives each title what it shows: (trained_on, positive_model, negative_model) to
    what the legend says.
    """
    figure, axes = _panels(len(panels), 4, sharex=True)
    columns = ["trained_on", "positive_model", "negative_model"]
    for axis, (title, names) in zip(axes, panels.items(), strict=True):
        for number, (models, name) in enumerate(names.items()):
            of_models = rows[(rows[columns] == list(models)).all(axis=1)]
            values = of_models["auroc_pct"]
            low, high = (of_models[f"ci_{end}"].fillna(values) for end in ("low", "high"))
            errors = np.clip([values - low, high - values], 0, None)
            at = of_models["layer"].astype(float) + 0.06 * (number - (len(names) - 1) / 2)
            color = sns.color_palette("colorblind")[number]
            axis.errorbar(at, values, errors, fmt="o-", capsize=3, color=color, label=name)
        axis.axhline(50, color=CHANCE, linestyle="--", label="chance")
        axis.set_title(title, loc="left")
        axis.set(ylim=(0, 104), ylabel="AUROC, % (95 % interval)", xlabel="layer (0: embedding)")
        plots.legend_below(axis, ncols=1)
    return figure


def flags_and_gaps(
    flags: pd.DataFrame, gaps: pd.DataFrame, inflated: pd.DataFrame, conditions: list[str]
) -> Figure:
    """Figure 6: mean predictions by set of problems, and against the false part of the score.

    ``flags`` (condition, benchmark, flag) and ``gaps`` (condition, gap_points, flag) hold a row for
    each model, ``inflated`` one for each condition (``paper_rows.with_flags``); the upper panel
    shows ``conditions``.
    """
    figure, (upper, lower) = _panels(2, 4.2)
    shown = flags[flags["condition"].isin(conditions)]
    # A dot is the mean, a bar reaches from the lowest model to the highest.
    style = {"errorbar": ("pi", 100), "linestyle": "none", "dodge": 0.3, "capsize": 0.1}
    palette = dict(zip(conditions, (OTHER, MEMBER), strict=False))
    sns.pointplot(
        shown, y="benchmark", x="flag", hue="condition", palette=palette, ax=upper, **style
    )
    on_seen = shown[shown["benchmark"] == SEEN].groupby("condition", sort=False)["flag"].mean()
    said = [f"{value:.2f} ({name})" for name, value in on_seen.items()]
    upper.set_title(f"Mean flag on {SEEN}: {listed(said)}", loc="left", fontsize="medium")
    means = gaps.groupby("condition", sort=False)[["gap_points", "flag"]].mean()
    lower.scatter(gaps["flag"], gaps["gap_points"], s=14, color=CHANCE, alpha=0.5)
    high = means["flag"] > FLAG_THRESHOLD
    lower.scatter(means["flag"], means["gap_points"], s=45, color=np.where(high, MEMBER, OTHER))
    of_flagged = inflated.loc[inflated["flagged"].eq(True).fillna(False), "verdict"]
    counts = [(of_flagged == word).sum() for word in (SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE)]
    title = "Is the score of a flagged condition inflated? {} yes, {} no, {} inconclusive"
    lower.set_title(title.format(*counts), loc="left", fontsize="medium")
    lower.axhline(0, color=CHANCE, linestyle="--")
    lower.set(ylabel="inflation on GSM-i, points")
    for axis in (upper, lower):
        axis.axvline(0.5, color=CHANCE, linestyle="--")
        axis.set(xlim=(-0.05, 1.05), xlabel="mean predicted probability of contamination")
    upper.set(ylabel="")
    plots.legend_below(upper, ncols=2)
    return figure


def decoding_lines(rows: pd.DataFrame) -> Figure:
    """Figure 7: AUROC by temperature and by top-k, a row of panels for each model.

    Each title says by how much the baselines move. DICE reads the prompt alone and never does.
    """
    of_answers = rows[rows["method"] != MLP].groupby(["model", "method"])["auroc_pct"]
    moves = (of_answers.max() - of_answers.min()).groupby("model").max()
    titles = moves.map("baselines move by up to {:.0f} points".format)
    rows = rows.assign(value=rows["value"].map("{:g}".format))
    rows["model"] = rows["model"] + "\n" + rows["model"].map(titles)
    grid = sns.relplot(
        rows, x="value", y="auroc_pct", hue="method", style="method", kind="line", markers=True,
        dashes=False, row="model", col="setting", palette="colorblind", height=2.2, aspect=1.3,
        facet_kws={"sharex": "col", "ylim": (-4, 104), "margin_titles": False},
    )  # fmt: skip
    grid.refline(y=50, color=CHANCE)
    grid.set_titles("{row_name}", size="medium").set_ylabels("AUROC, %")
    for axis, setting in zip(grid.axes[-1], grid.col_names, strict=True):
        axis.set(xlabel=setting)
    sns.move_legend(grid, "lower center", ncols=3, title="", bbox_to_anchor=(0.45, 1))
    plt.close(grid.figure)
    return grid.figure
