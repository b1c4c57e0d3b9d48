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
# A model next to a rule without memory, in the words of the lessons.
READINGS = {"model ahead": MEMBER, "rule better": OTHER, "rule as good": CONTROL, "open": CHANCE}


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


def words_alone(rows: pd.DataFrame) -> Figure:
    """What words alone reach, benchmark by benchmark, with the interval, best first.

    Args:
        rows: one for each benchmark: benchmark, is_control (an ordinary
            split), n_members, n_non_members, auc, ci_low, ci_high, simplest (the AUC of the
            best rule without a classifier) and published_auc (of a detector, or empty).
    """
    rows = rows.sort_values("auc", ignore_index=True)
    figure, axis = new_figure(7.2, 0.25 * len(rows) + 1.4)
    at = rows.index.to_numpy()
    axis.axvline(0.5, color=CHANCE, linestyle="--", linewidth=1, label="a random split")
    named = {False: (MEMBER, "words alone"), True: (CONTROL, "words alone, ordinary split")}
    for is_control, (colour, label) in named.items():
        shown = rows[rows["is_control"] == is_control]
        style: dict[str, Any] = {"fmt": "o", "markersize": 5, "linewidth": 1}
        style |= {"color": colour, "label": label}
        axis.errorbar(shown["auc"], shown.index, xerr=_bars(shown), **style)
    simplest = "latest year or length alone"
    axis.scatter(rows["simplest"], at, s=60, marker="|", color=OTHER, label=simplest)
    known = "a published detector"
    axis.scatter(rows["published_auc"], at, s=28, marker="x", color=PAPER, label=known)
    names = [
        f"{row.benchmark} ({row.n_members:,} / {row.n_non_members:,})" for row in rows.itertuples()
    ]
    axis.set_yticks(at, names, fontsize=8)
    axis.set_xlim(min(0.2, rows["ci_low"].min() - 0.02), 1.02)
    axis.set_xlabel("AUC: how often a member is ranked above a non-member")
    told = rows["ci_low"].gt(0.5)[~rows["is_control"]]
    title = f"Words alone tell members from non-members\non {told.sum()} of {len(told)} benchmarks"
    axis.set_title(title, fontsize=10)
    axis.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _bars(rows: pd.DataFrame) -> np.ndarray:
    """Lengths of the error bars of an AUC to both sides, shape (2, n_rows)."""
    return np.clip([rows["auc"] - rows["ci_low"], rows["ci_high"] - rows["auc"]], 0, None)


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
    style: dict[str, Any] = {"markersize": 4, "linewidth": 1, "capsize": 2}
    for number, method in enumerate(methods):
        of_method = rows[rows["method"] == method].sort_values(x)
        shift = 0 if log_x else (number - (len(methods) - 1) / 2) * 0.08
        at = [places[value] + shift for value in of_method[x]]
        own: dict[str, Any] = style | {"fmt": "o-", "color": colours[method], "label": method}
        axis.errorbar(at, of_method["auc"], yerr=_bars(of_method), **own)
    if blind is not None and len(blind):
        blind = blind.sort_values(x)
        at = [places[value] for value in blind[x]]
        errors = None
        if {"ci_low", "ci_high"} <= {*blind}:
            errors = _bars(blind)
            at = [place + (0 if log_x else 0.12) for place in at]  # next to the methods' bars
        style |= {"fmt": "s--", "color": PAPER, "label": "words alone, no model"}
        axis.errorbar(at, blind["auc"], yerr=errors, **style)
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
