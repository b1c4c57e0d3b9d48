"""Figures: returned, never shown; one colour per group in all notebooks."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

# Okabe and Ito's palette, told apart by colour-blind readers and in grey.
MEMBER, OTHER = "#0072B2", "#E69F00"
PAPER, CONTROL, CHANCE = "#000000", "#009E73", "#999999"
MODEL_COLOURS = {"GPT-4": "#0072B2", "GPT-3.5": "#D55E00"}


def new_figure(width: float, height: float, **kwargs: Any) -> tuple[Figure, Axes]:
    """A figure of one panel, inches, that is shown once: where a notebook returns it."""
    return _figure(1, 1, (width, height), **kwargs)


def legend_below(axis: Axes, x: float = 0.5, ncols: int = 3) -> None:
    """The legend below the label of the x axis, where it covers no data; ``x`` is its middle."""
    place = {"loc": "upper center", "bbox_to_anchor": (x, -0.13)}
    axis.legend(frameon=False, title="", ncols=ncols, **place)


def alt_text(figure: Figure) -> str:
    """What a figure shows, for readers who do not see it: titles, axes and groups."""
    parts = [*filter(None, [figure.get_suptitle()])]
    for axis in figure.axes:
        titles = [axis.get_title(loc=side) for side in ("left", "center")]
        names = [f"{n}: {t}" for n, t in (("x", axis.get_xlabel()), ("y", axis.get_ylabel())) if t]
        groups = axis.get_legend_handles_labels()[1]
        parts += [*filter(None, titles), *names, *filter(None, [", ".join(groups)])]
    return "Figure. " + "; ".join(" ".join(part.split()) for part in dict.fromkeys(parts))


if shell := get_ipython():
    # A notebook draws the figure as before; this adds the words that stand for it.
    shell.display_formatter.mimebundle_formatter.for_type(
        Figure, lambda figure: ({}, {"image/png": {"alt": alt_text(figure)}})
    )


def panels(
    n_rows: int, n_columns: int, size: tuple[float, float], **kwargs: Any
) -> tuple[Figure, np.ndarray]:
    """A figure, inches, and its axes, shape (n_rows, n_columns); see :func:`new_figure`."""
    return _figure(n_rows, n_columns, size, squeeze=False, **kwargs)


def _figure(
    n_rows: int, n_columns: int, size: tuple[float, float], **kwargs: Any
) -> tuple[Figure, Any]:
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", **kwargs)
    # Returned to the notebook, which shows it once; pyplot must not show it again.
    plt.close(figure)
    sns.despine(figure)
    return figure, axes


def quiz_levels(published: pd.DataFrame, controls: pd.DataFrame | None = None) -> Figure:
    """Maximum contamination of ``dcq_published`` with its interval, per dataset and model.

    Rules of ``dcq_controls`` stand next to it where the quizzes' texts are at hand.
    """
    datasets = list(dict.fromkeys(published["dataset"]))
    place = {dataset: len(datasets) - 1 - i for i, dataset in enumerate(datasets)}
    figure, axis = _figure(1, 1, (7.5, 0.4 * len(datasets) + 1.6))
    for shift, (model, rows) in zip(
        (0.12, -0.12), published.groupby("model", sort=False), strict=False
    ):
        y = [place[dataset] + shift for dataset in rows["dataset"]]
        errors = [rows["max_pct"] - rows["ci_low_pct"], rows["ci_high_pct"] - rows["max_pct"]]
        style = {"fmt": "o", "color": MODEL_COLOURS[model], "capsize": 3, "markersize": 5}
        axis.errorbar(rows["max_pct"], y, xerr=np.clip(errors, 0, None), label=model, **style)
    if controls is not None and len(controls):
        markers = dict(zip(controls["control"].unique(), ("s", "D", "^", "v", "P"), strict=False))
        for control, rows in controls.drop_duplicates(["dataset", "control"]).groupby("control"):
            y = [place[dataset] for dataset in rows["dataset"]]
            axis.scatter(
                rows["max_pct"],
                y,
                marker=markers[control],
                s=34,
                facecolor="none",
                edgecolor=CONTROL,
                label=f"rule: {control}",
                zorder=3,
            )
    n = published.drop_duplicates("dataset")["n"]
    if controls is not None and len(controls):
        axis.axvline(25, color=CHANCE, linestyle="--", linewidth=1, label="guessing")
    axis.set_yticks(list(place.values()), list(place))
    axis.set(xlim=(0, 102), xlabel="originals found at the best letter, % (95 % interval)")
    axis.set_title(f"DCQ maximum per partition, n = {n.min()} to {n.max()} instances", loc="left")
    legend_below(axis, x=0.4)
    return figure


def auc_lines(
    rows: pd.DataFrame,
    x: str,
    xlabel: str,
    title: str,
    blind: pd.DataFrame | None = None,
    log_x: bool = False,
) -> Figure:
    """AUC of methods along one column, with intervals, chance and the blind baseline.

    Args:
        rows: rows of ``min_k_auc.csv``: method, auc, ci_low, ci_high and ``x``.
        x: column of the horizontal axis; its values are evenly spaced.
        blind: columns ``x``, auc and, for error bars, ci_low and ci_high of a blind baseline.
        log_x: values at their place on a logarithmic axis instead.
    """
    values = sorted(rows[x].unique())
    places = {value: value if log_x else place for place, value in enumerate(values)}
    methods = list(dict.fromkeys(rows["method"]))
    colours = dict(zip(methods, sns.color_palette("colorblind", len(methods)), strict=True))
    figure, axis = new_figure(6.4, 4.6)
    for number, method in enumerate(methods):
        of_method = rows[rows["method"] == method].sort_values(x)
        shift = 0 if log_x else (number - (len(methods) - 1) / 2) * 0.08
        at = [places[value] + shift for value in of_method[x]]
        errors = [of_method["auc"] - of_method["ci_low"], of_method["ci_high"] - of_method["auc"]]
        axis.errorbar(
            at,
            of_method["auc"],
            yerr=np.clip(errors, 0, None),
            fmt="o-",
            markersize=4,
            linewidth=1,
            capsize=2,
            color=colours[method],
            label=method,
        )
    if blind is not None and len(blind):
        blind = blind.sort_values(x)
        at = [places[value] for value in blind[x]]
        errors = None
        if {"ci_low", "ci_high"} <= {*blind}:
            errors = [blind["auc"] - blind["ci_low"], blind["ci_high"] - blind["auc"]]
            errors = np.clip(errors, 0, None)
            at = [place + (0 if log_x else 0.12) for place in at]  # next to the methods' bars
        axis.errorbar(
            at,
            blind["auc"],
            yerr=errors,
            fmt="s--",
            color=PAPER,
            markersize=4,
            linewidth=1,
            capsize=2,
            label="words alone, no model",
        )
    axis.axhline(0.5, color=CHANCE, linestyle="--", linewidth=1, label="chance")
    if log_x:
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.xaxis.set_minor_locator(NullLocator())
    else:
        axis.set_xticks(list(places.values()), [f"{value:,}" for value in places])
    axis.set(xlabel=xlabel, ylabel="AUC (95 % interval)")
    axis.set_title(title, loc="left")
    legend_below(axis)
    return figure
