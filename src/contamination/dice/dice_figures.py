"""Figures 3 to 7 of the DICE paper, each with its control; returned, never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from contamination.core import plots
from contamination.core.plots import CHANCE, MEMBER, OTHER, PAPER
from contamination.core.tables import listed
from contamination.core.verdicts import FOUND, OPEN, RULED_OUT
from contamination.dice.detector import MLP
from contamination.dice.experiments import FLAG_THRESHOLD
from contamination.dice.mixtures import IN_DISTRIBUTION, SEEN, Problems
from contamination.dice.pool import CLEAN, CONTAMINATED
from contamination.models import sentences

MOST_OF_A_SET = 500  # questions on a map; more take minutes and hide one another
LARGEST_PERPLEXITY = 30  # of the t-SNE; a third of the questions where they are few


def question_map(
    problems: Mapping[str, Problems], sentence_model: str, seed: int, by_set: bool = False
) -> Figure:
    """The map of some sets of problems (t-SNE), with how many questions lie nearest to their kind.

    Args:
        problems: name of a set to its questions; of a large set ``MOST_OF_A_SET`` are drawn.
        sentence_model: folder or hub id of an encoder whose mean token vector is a question's
            (all-MiniLM-L6-v2 in the paper); empty for TF-IDF of the words.
        seed: of the map.
        by_set: a colour for each set, not one for the GSM sets and one for all others.
    """
    asked = {
        name: rows.sample(MOST_OF_A_SET, random_state=seed) if len(rows) > MOST_OF_A_SET else rows
        for name, rows in problems.items()
    }
    names = np.repeat(list(asked), [len(rows) for rows in asked.values()])
    questions = [text for rows in asked.values() for text in rows["question"]]
    if sentence_model:
        vectors = sentences.mean_vectors(sentences.load_mean_encoder(sentence_model), questions)
    else:
        vectors = TfidfVectorizer().fit_transform(questions).toarray()
    nearest = NearestNeighbors(n_neighbors=1, metric="cosine").fit(vectors).kneighbors()[1][:, 0]
    perplexity = min(LARGEST_PERPLEXITY, (len(questions) - 1) / 3)
    points = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(vectors)
    kind = np.where(np.isin(names, IN_DISTRIBUTION), "GSM sets", "other families")
    hue = names if by_set else kind
    grid = sns.relplot(x=points[:, 0], y=points[:, 1], hue=hue, style=hue, height=4, aspect=1.3)
    share = f"{100 * (kind == kind[nearest]).mean():.0f} % of {len(questions)} questions"
    # A neighbour drawn at random is one of the other questions.
    n_of_kind = np.unique(kind, return_counts=True)[1]
    by_chance = 100 * (n_of_kind * (n_of_kind - 1)).sum() / (len(kind) * (len(kind) - 1))
    title = f"{share} lie nearest to one of their own kind (by chance: {by_chance:.0f} %)"
    grid.set(xticks=[], yticks=[])
    grid.set_titles("")
    grid.axes[0, 0].set_title(title, fontsize="medium")
    return grid.figure


def layer_distances(layers: pd.DataFrame) -> Figure:
    """Figure 4: distance of contaminated and clean models' states, next to that of two clean ones.

    Draws the Euclidean distance in rows of ``dice_layers.csv``. Two clean models have a dashed
    line for each set of questions that the models were asked.
    """
    layers = layers[layers["distance"] == "euclidean"]
    figure, axis = plots.new_figure(6, 4)
    names = layers["model"] + " and clean"
    colours = dict(zip(names.unique(), sns.color_palette("colorblind"), strict=False))
    sns.lineplot(layers, x="layer", y="mean", hue=names, marker="o", palette=colours, ax=axis)
    located = layers[layers["located"]]
    ring: dict[str, Any] = {"markersize": 12, "markerfacecolor": "none", "label": "located"}
    axis.plot(located["layer"], located["mean"], "o", color=PAPER, **ring)
    by_set = layers.groupby("dataset", sort=False)
    for number, (asked, rows) in enumerate(by_set):
        first = rows[rows["model"] == rows["model"].iloc[0]]
        colour = colours[names[first.index[0]]] if number else PAPER
        label = "two clean models" + f", asked {asked}" * (len(by_set) > 1)
        axis.plot(first["layer"], first["null_mean"], "s--", color=colour, label=label)
    share = (located["null_mean"] / located["mean"]).iloc[0]
    title = f"Two clean models lie {100 * share:.0f} % as far apart as {names.iloc[0]}"
    axis.set_title(title, loc="left")
    ends = f"layer (0: embedding, {layers['layer'].max()}: the last)"
    axis.set(xlabel=ends, ylabel="mean distance of two models' states")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))  # a real model has many
    axis.legend(frameon=False, title="")
    return figure


def auroc_layers(rows: pd.DataFrame, panels: dict[str, dict[tuple[str, str, str], str]]) -> Figure:
    """Figure 5: AUROC by layer (rows of ``dice_auroc.csv``) from 1, with intervals over models.

    ``panels``: title to lines, (trained_on, positive_model, negative_model) to the legend's words.
    """
    figure, axes = plots.panels(len(panels), 1, (6, 4 * len(panels)))
    rows = rows[rows["layer"] > 0]
    columns = ["trained_on", "positive_model", "negative_model"]
    for axis, (title, names) in zip(axes[:, 0], panels.items(), strict=True):
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
        axis.set(ylim=(0, 104), ylabel="AUROC, % (95 % interval)", xlabel="layer")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.legend(frameon=False, title="", loc="lower left")
    return figure


def flags_and_gaps(flags: pd.DataFrame, gaps: pd.DataFrame, inflated: pd.DataFrame) -> Figure:
    """Figure 6: mean predictions by set of problems, and against the false part of the score.

    ``flags`` (condition, benchmark, flag) and ``gaps`` (condition, gap_points, flag) hold a row for
    each model, ``inflated`` one for each condition (``experiments.with_flags``); the lower panel
    names the flagged ones.
    """
    figure, ((upper,), (lower,)) = plots.panels(2, 1, (6, 8.4))
    palette = {CLEAN: OTHER, CONTAMINATED: MEMBER}
    shown = flags[flags["condition"].isin(palette)]
    # A dot is the mean, a bar reaches from the lowest model to the highest.
    style = {"errorbar": ("pi", 100), "linestyle": "none", "dodge": 0.3, "capsize": 0.1}
    sns.pointplot(
        shown, y="benchmark", x="flag", hue="condition", palette=palette, ax=upper, **style
    )
    on_seen = shown[shown["benchmark"] == SEEN].groupby("condition", sort=False)["flag"].mean()
    said = [f"{value:.2f} ({name})" for name, value in on_seen.items()]
    upper.set_title(f"Mean flag on {SEEN}: {listed(said)}", loc="left", fontsize="medium")
    means = gaps.groupby("condition", sort=False)[["gap_points", "flag"]].mean()
    lower.scatter(gaps["flag"], gaps["gap_points"], s=14, color=CHANCE, alpha=0.5)
    lower.scatter(means["flag"], means["gap_points"], s=45, color=PAPER)
    for row in means[means["flag"] > FLAG_THRESHOLD].itertuples():
        lower.annotate(
            str(row.Index), (row.flag, row.gap_points), (6, 3), textcoords="offset points",
            va="center", fontsize="x-small",
        )  # fmt: skip
    of_flagged = inflated.loc[inflated["flagged"].eq(True).fillna(False), "verdict"]
    counts = [of_flagged.isin(words).sum() for words in (FOUND, (RULED_OUT,), (OPEN,))]
    title = "Is the score of a flagged condition inflated? {} yes, {} no, {} open"
    lower.set_title(title.format(*counts), loc="left", fontsize="medium")
    lower.axhline(0, color=CHANCE, linestyle="--")
    lower.set(ylabel="inflation, points")
    for axis in (upper, lower):
        axis.axvline(FLAG_THRESHOLD, color=CHANCE, linestyle="--", label="threshold")
        axis.set(xlim=(-0.05, 1.05), xlabel="mean predicted probability of contamination")
    lower.text(FLAG_THRESHOLD, 1, "threshold", transform=lower.get_xaxis_transform(),
               ha="right", va="top", rotation=90, fontsize="small", color=CHANCE)  # fmt: skip
    upper.set(ylabel="")
    plots.legend_below(upper, ncols=3)
    return figure


def decoding_lines(rows: pd.DataFrame) -> Figure:
    """Figure 7: AUROC by temperature and by top-k, a row of panels for each model.

    The title of a row says by how much the baselines move.
    """
    of_answers = rows[rows["method"] != MLP].groupby(["model", "method"])["auroc_pct"]
    moves = (of_answers.max() - of_answers.min()).groupby("model").max()
    titles = moves.map("baselines move by up to {:.0f} points".format)
    rows = rows.assign(value=rows["value"].map("{:g}".format))
    rows["model"] = rows["model"] + ": " + rows["model"].map(titles)
    grid = sns.relplot(
        rows, x="value", y="auroc_pct", hue="method", style="method", kind="line", markers=True,
        dashes=False, row="model", col="setting", palette="colorblind", height=2.2, aspect=1.3,
        facet_kws={"sharex": "col", "ylim": (-4, 104), "margin_titles": False},
    )  # fmt: skip
    grid.refline(y=50, color=CHANCE)
    grid.set_titles("").set_ylabels("AUROC, %")
    for axes, name in zip(grid.axes, grid.row_names, strict=True):
        axes[0].set_title(name, loc="left", size="medium")
        axes[0].text(0.01, 52, "chance", transform=axes[0].get_yaxis_transform(), size="small")
    for axis, setting in zip(grid.axes[-1], grid.col_names, strict=True):
        axis.set(xlabel=setting)
    sns.move_legend(grid, "lower center", ncols=3, title="", bbox_to_anchor=(0.45, 1))
    plt.close(grid.figure)
    return grid.figure
