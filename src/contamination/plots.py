"""Figures: returned, never shown; one colour per group in all notebooks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by colour-blind readers and in grey.
MEMBER, OTHER = "#0072B2", "#E69F00"
PAPER, CONTROL, CHANCE = "#000000", "#009E73", "#999999"
MODEL_COLOURS = {"GPT-4": "#0072B2", "GPT-3.5": "#D55E00"}
LETTERS = list("ABCDE")


def _figure(n_rows: int, n_columns: int, size: tuple[float, float], **kwargs):
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", **kwargs)
    # Returned to the notebook, which shows it once; pyplot must not show it again.
    plt.close(figure)
    sns.despine(figure)
    return figure, axes


def quiz_positions(positions: pd.DataFrame, panels: list[tuple[str, str, str]]) -> Figure:
    """Figure 2 of the DCQ paper: choices in the modified and in the standard quiz.

    Args:
        positions: ``dcq_positions``; counts are ours where released, else printed.
        panels: (dataset, split, position of the original), all with GPT-4.
    """
    colours = {"modified": CHANCE, "standard": MEMBER, "second perturbation": OTHER}
    names = {
        "modified": "modified quiz, no original",
        "standard": "standard quiz, original at {}",
        "second perturbation": "another perturbation at {}",
    }
    figure, axes = _figure(1, len(panels), (4.4 * len(panels), 3.4), sharey=True, squeeze=False)
    for axis, (dataset, split, at) in zip(axes[0], panels, strict=True):
        chosen = positions.query(
            "model == 'GPT-4' and dataset == @dataset and split == @split and position in ['', @at]"
        )
        quizzes = [quiz for quiz in colours if (chosen["quiz"] == quiz).any()]
        width = 0.8 / len(quizzes)
        for place, quiz in enumerate(quizzes):
            counts = chosen[chosen["quiz"] == quiz].set_index("option")
            counts = counts["count"].fillna(counts["paper_count"]).astype(float).loc[LETTERS]
            x = np.arange(len(LETTERS)) + (place - (len(quizzes) - 1) / 2) * width
            share = 100 * counts / counts.sum()
            axis.bar(x, share, width, color=colours[quiz], label=names[quiz].format(at))
        source = "printed" if (chosen["source"] == "printed").all() else "recomputed"
        n = int(chosen[chosen["quiz"] == "modified"][["count", "paper_count"]].sum().max())
        axis.set(title=f"GPT-4, {dataset} {split} ({source}, n = {n})", xlabel="choice")
        axis.set_xticks(range(len(LETTERS)), LETTERS)
        axis.axhline(20, color=CHANCE, linestyle="--", linewidth=1)
        axis.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18))
    axes[0][0].set(ylabel="answers, %", ylim=(0, 100))
    return figure


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
        markers = dict(zip(controls["control"].unique(), ("s", "D", "^"), strict=False))
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
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=5, fontsize=8)
    return figure


def instruction_tests(published: pd.DataFrame) -> Figure:
    """Exact paired p against exact unpaired p of the guided instruction's advantage.

    Args:
        published: ``replication_published``.
    """
    figure, axis = _figure(1, 1, (5.4, 5))
    floor = 1e-5
    shown = published.assign(
        paired=published["p_paired"].clip(lower=floor),
        unpaired=published["p_unpaired"].clip(lower=floor),
    )
    sns.scatterplot(
        shown, x="paired", y="unpaired", hue="model", style="metric", palette=MODEL_COLOURS, ax=axis
    )
    axis.axhline(0.05, color=CHANCE, linestyle="--", linewidth=1)
    axis.axvline(0.05, color=CHANCE, linestyle="--", linewidth=1)
    axis.plot([floor, 1], [floor, 1], color=CHANCE, linewidth=0.8)
    axis.set(xscale="log", yscale="log", xlim=(floor / 1.5, 1.5), ylim=(floor / 1.5, 1.5))
    axis.set(xlabel="paired p (exact), the paper's asterisks", ylabel="unpaired p (exact)")
    axis.set_title(f"{len(published)} tests of 10 instances each; dashed: 0.05", loc="left")
    axis.legend(frameon=False, fontsize=8)
    return figure


def match_overview(summary: pd.DataFrame) -> Figure:
    """Printed cells per table: equal, halfway, different, not recomputable.

    Args:
        summary: ``published.compare.match_summary``.
    """
    summary = summary.iloc[::-1]
    parts = {
        "equal at the printed decimals": (summary["n_matching"] - summary["n_ties"], MEMBER),
        "equal, exactly halfway": (summary["n_ties"], "#56B4E9"),
        "different, with a reason": (summary["n_differing"], "#D55E00"),
        "not recomputed here": (summary["n_printed"] - summary["n_recomputed"], "#DDDDDD"),
    }
    figure, axis = _figure(1, 1, (8, 0.32 * len(summary) + 1.6))
    left = np.zeros(len(summary))
    for name, (counts, colour) in parts.items():
        axis.barh(
            summary["paper"] + ", " + summary["table"], counts, left=left, color=colour, label=name
        )
        left += counts.to_numpy()
    total, recomputed = summary["n_printed"].sum(), summary["n_recomputed"].sum()
    axis.set(xlabel="printed cells")
    axis.set_title(f"{total} printed cells, {recomputed} recomputed", loc="left")
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.4, -0.12), ncols=2, fontsize=8)
    return figure


def auc_lines(
    rows: pd.DataFrame, x: str, xlabel: str, title: str, blind: pd.DataFrame | None = None
) -> Figure:
    """AUC of methods along one column, with intervals, chance and the blind baseline.

    Args:
        rows: rows of ``min_k_auc.csv``: method, auc, ci_low, ci_high and ``x``.
        x: column of the horizontal axis; its values are evenly spaced.
        xlabel: its name with unit.
        title: with the numbers of passages.
        blind: columns ``x`` and auc of the best blind baseline.
    """
    places = {value: place for place, value in enumerate(sorted(rows[x].unique()))}
    methods = list(dict.fromkeys(rows["method"]))
    colours = dict(zip(methods, sns.color_palette("colorblind", len(methods)), strict=True))
    figure, axis = _figure(1, 1, (7, 4))
    for number, method in enumerate(methods):
        of_method = rows[rows["method"] == method].sort_values(x)
        shift = (number - (len(methods) - 1) / 2) * 0.08
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
    axis.set_xticks(list(places.values()), [f"{value:,}" for value in places])
    axis.set(xlabel=xlabel, ylabel="AUC (95 % interval)")
    axis.set_title(title, loc="left")
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def score_histograms(scores: np.ndarray, is_member: np.ndarray, xlabel: str) -> Figure:
    """Scores of members and non-members over one another.

    Args:
        scores: shape (n_items,), higher = more likely a member.
        is_member: shape (n_items,).
        xlabel: the score's name with unit.
    """
    figure, axis = _figure(1, 1, (6.5, 3.2))
    is_member = np.asarray(is_member, dtype=bool)
    bins = np.histogram_bin_edges(scores, bins=25)
    for kind, colour, name in ((~is_member, OTHER, "non-members"), (is_member, MEMBER, "members")):
        label = f"{name} (n = {int(kind.sum())})"
        sns.histplot(x=scores[kind], bins=bins, color=colour, alpha=0.55, label=label, ax=axis)
    axis.set(xlabel=xlabel, ylabel="passages")
    axis.legend(frameon=False)
    return figure
