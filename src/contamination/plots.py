"""Figures: returned, never shown; one colour per group in all notebooks."""

from __future__ import annotations

from itertools import product
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


def alt_text(figure: Figure) -> str:
    """What a figure shows, for readers who do not see it: titles, axes and groups."""
    parts = []
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


def _figure(n_rows: int, n_columns: int, size: tuple[float, float], **kwargs):
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", **kwargs)
    # Returned to the notebook, which shows it once; pyplot must not show it again.
    plt.close(figure)
    sns.despine(figure)
    return figure, axes


def quiz_levels(published: pd.DataFrame, controls: pd.DataFrame | None = None) -> Figure:
    """Maximum contamination with its interval, per dataset and model; rules beside it.

    Args:
        published: ``dcq_published``.
        controls: ``dcq_controls`` where the quizzes' texts are at hand.
    """
    datasets = list(dict.fromkeys(published["dataset"]))
    place = {dataset: len(datasets) - 1 - i for i, dataset in enumerate(datasets)}
    figure, axis = _figure(1, 1, (7.5, 0.5 * len(datasets) + 1.6))
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
        axis.axvline(25, color=CHANCE, linestyle="--", linewidth=1, label="chance of a rule")
    axis.set_yticks(list(place.values()), list(place))
    axis.set(xlim=(0, 102), xlabel="right answers in the best standard quiz, % (95 % interval)")
    axis.set_title(f"DCQ maximum per partition, n = {n.min()} to {n.max()} instances", loc="left")
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.4, -0.12), ncols=3)
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
        xlabel: its name with unit.
        title: with the numbers of passages.
        blind: columns ``x`` and auc of the best blind baseline.
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
        axis.plot(at, blind["auc"], "s--", color=PAPER, markersize=4, label="words alone, no model")
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
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3)
    return figure


def operating_curves(curves: pd.DataFrame) -> Figure:
    """Chance that Algorithm 2 flags a partition, by share of replicated instances.

    Args:
        curves: ``operating_curves``.
    """
    errors = sorted(curves["judge_error_pct"].unique())
    figure, axes = _figure(1, len(errors), (3.3 * len(errors), 3.2), sharey=True, squeeze=False)
    sizes = sorted(curves["k"].unique())
    shares = sorted(curves["true_share_pct"].unique())
    for axis, error in zip(axes[0], errors, strict=True):
        for k, colour in zip(sizes, sns.color_palette("colorblind", len(sizes)), strict=True):
            rows = curves[(curves["judge_error_pct"] == error) & (curves["k"] == k)]
            rows = rows.sort_values("true_share_pct")
            axis.plot(range(len(rows)), rows["flag_probability"], "o-", markersize=4, color=colour)
            axis.lines[-1].set_label(f"k = {k}")
        axis.axhline(0.05, color=CHANCE, linestyle="--", linewidth=1)
        axis.set_xticks(range(len(shares)), [f"{share:g}" for share in shares])
        axis.set(xlabel="instances replicated, %", ylim=(-0.03, 1.03))
        axis.set_title(f"judge errs in {error:g} %", loc="left")
    axes[0][0].set(ylabel="chance of a flag (dashed: 0.05)")
    axes[0][0].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def layer_distances(layers: pd.DataFrame, null: str) -> Figure:
    """Figure 4 of the DICE paper, with the distance of two clean models beside it.

    Args:
        layers: rows of ``dice_layers.csv``, states before the final norm.
        null: how the legend calls two clean models.
    """
    distances = list(dict.fromkeys(layers["distance"]))
    figure, axes = _figure(1, len(distances), (3.6 * len(distances), 3.4), squeeze=False)
    for axis, distance in zip(axes[0], distances, strict=True):
        of_distance = layers[layers["distance"] == distance]
        colours = sns.color_palette("colorblind", of_distance["model"].nunique())
        for (model, rows), colour in zip(
            of_distance.groupby("model", sort=False), colours, strict=True
        ):
            axis.plot(rows["layer"], rows["mean"], "o-", color=colour, label=f"{model}, clean")
            located = rows[rows["located"]]
            axis.plot(
                located["layer"], located["mean"], "o", color=colour, markersize=11, mfc="none"
            )
        first = of_distance[of_distance["model"] == of_distance["model"].iloc[0]]
        axis.plot(first["layer"], first["null_mean"], "s--", color=PAPER, label=null)
        axis.set(title=f"{distance} distance", xlabel="layer (0: embedding)")
        axis.set_xticks(sorted(of_distance["layer"].unique()))
    axes[0][0].set(ylabel="mean distance of two models' states")
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, fontsize=8, ncols=2, loc="outside lower center")
    return figure


def auroc_layers(rows: pd.DataFrame, panels: dict[str, dict[tuple[str, str, str], str]]) -> Figure:
    """Figure 5 of the DICE paper: AUROC by layer, with intervals over models.

    Args:
        rows: rows of ``dice_auroc.csv``, one for each layer.
        panels: title to what it shows: (trained_on, positive_model,
            negative_model) to what the legend says.
    """
    figure, axes = _figure(1, len(panels), (5 * len(panels), 4.4), sharey=True, squeeze=False)
    colours = sns.color_palette("colorblind", max(map(len, panels.values())))
    columns = ["trained_on", "positive_model", "negative_model"]
    for axis, (title, names) in zip(axes[0], panels.items(), strict=True):
        for number, (models, name) in enumerate(names.items()):
            of_models = rows[(rows[columns] == list(models)).all(axis=1)]
            values = of_models["auroc_pct"]
            low, high = (of_models[f"ci_{end}"].fillna(values) for end in ("low", "high"))
            errors = np.clip([values - low, high - values], 0, None)
            at = of_models["layer"].astype(float) + 0.06 * (number - (len(names) - 1) / 2)
            style = {"fmt": "o-", "capsize": 3, "markersize": 4, "linewidth": 1}
            style["color"] = colours[number]
            axis.errorbar(at, values, yerr=errors, label=name, **style)
        axis.axhline(50, color=CHANCE, linestyle="--", linewidth=1, label="chance")
        axis.set(title=title, xlabel="layer (0: embedding)", ylim=(0, 104))
        axis.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    axes[0][0].set(ylabel="AUROC, % (95 % interval over models)")
    return figure


def flags_and_gaps(flags: pd.DataFrame, gaps: pd.DataFrame, conditions: list[str]) -> Figure:
    """Figure 6 of the DICE paper: predictions by set of problems, and against the false score.

    Args:
        flags: condition, benchmark, flag (mean predicted probability), one row per model.
        gaps: condition, gap_points, flag, one row per model.
        conditions: those of the left panel.
    """
    figure, (left, right) = _figure(1, 2, (11, 4.2))
    shown = flags[flags["condition"].isin(conditions)]
    # No jitter, which would differ from run to run.
    how = {"palette": "colorblind", "dodge": True, "jitter": False, "alpha": 0.6}
    sns.stripplot(shown, x="benchmark", y="flag", hue="condition", ax=left, **how)
    left.axhline(0.5, color=CHANCE, linestyle="--", linewidth=1)
    left.tick_params(axis="x", rotation=45)
    left.set(xlabel="", ylabel="predicted probability of contamination", ylim=(-0.03, 1.03))
    left.set_title(
        f"by questions asked, {len(shown.drop_duplicates(['condition', 'seed']))} models"
    )
    left.legend(frameon=False, fontsize=8, loc="center", ncols=2, bbox_to_anchor=(0.5, 1.14))
    sns.scatterplot(
        gaps, x="gap_points", y="flag", hue="condition", style="condition", s=45, ax=right
    )
    right.axhline(0.5, color=CHANCE, linestyle="--", linewidth=1)
    right.axvline(0, color=CHANCE, linestyle="--", linewidth=1)
    right.set(
        xlabel="accuracy on GSM-i minus GSM-ii, less that of clean models, points",
        ylabel="",
        ylim=(-0.03, 1.03),
    )
    right.set_title(f"against inflation, {len(gaps)} models")
    right.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def decoding_lines(rows: pd.DataFrame) -> Figure:
    """Figure 7 of the DICE paper: AUROC of each method by temperature and by top-k.

    Args:
        rows: model, setting, value, method, auroc_pct; a row of panels for each model.
    """
    models, settings = (list(dict.fromkeys(rows[name])) for name in ("model", "setting"))
    size = 3.6 * len(settings), 2.3 * len(models)
    figure, axes = _figure(len(models), len(settings), size, sharey=True, squeeze=False)
    for axis, (model, setting) in zip(axes.flat, product(models, settings), strict=True):
        of_panel = rows[(rows["model"] == model) & (rows["setting"] == setting)]
        for method, of_method in of_panel.groupby("method", sort=False):
            places = range(len(of_method))
            axis.plot(places, of_method["auroc_pct"], "o-", markersize=4, label=method)
            axis.set_xticks(places, [f"{value:g}" for value in of_method["value"]])
        axis.axhline(50, color=CHANCE, linestyle="--", linewidth=1, label="chance")
        axis.set(title=model, xlabel=setting, ylim=(-4, 104))
    for axis in axes[:, 0]:
        axis.set(ylabel="AUROC, %")
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, fontsize=8, ncols=3, loc="outside lower center")
    return figure
