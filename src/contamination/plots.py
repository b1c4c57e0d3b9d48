"""Figures: returned, never shown; one colour per group in all notebooks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

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


def quiz_positions(
    positions: pd.DataFrame, panels: list[tuple[str, str, str]], model: str = "GPT-4"
) -> Figure:
    """Figure 2 of the DCQ paper: choices in the modified and in the standard quiz.

    Args:
        positions: ``dcq_positions``; counts are ours where released, else printed.
        panels: (dataset, split, position of the original).
        model: whose answers.
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
            "model == @model and dataset == @dataset and split == @split and position in ['', @at]"
        )
        quizzes = [quiz for quiz in colours if (chosen["quiz"] == quiz).any()]
        width = 0.8 / len(quizzes)
        for place, quiz in enumerate(quizzes):
            counts = chosen[chosen["quiz"] == quiz].set_index("option")
            counts = counts["count"].fillna(counts["paper_count"]).astype(float).loc[LETTERS]
            x = np.arange(len(LETTERS)) + (place - (len(quizzes) - 1) / 2) * width
            share = 100 * counts / counts.sum()
            axis.bar(x, share, width, color=colours[quiz], label=names[quiz].format(at))
        sources = {"printed": "printed", "lab": "lab"}
        source = sources.get(chosen["source"].iloc[0], "recomputed")
        n = int(chosen[chosen["quiz"] == "modified"][["count", "paper_count"]].sum().max())
        axis.set(title=f"{model}, {dataset} {split} ({source}, n = {n})", xlabel="choice")
        axis.set_xticks(range(len(LETTERS)), LETTERS)
        label = "below: least preferred in the modified quiz"
        axis.axhline(20, color=CHANCE, linestyle="--", linewidth=1, label=label)
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
    figure, axis = _figure(1, 1, (7, 4))
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


def flags_by_dose(doses: pd.DataFrame, title: str) -> Figure:
    """Share of partitions that each method flags, by copies read.

    Args:
        doses: rows of ``replication.study.by_dose`` with a column label.
        title: with the numbers of partitions and instances.
    """
    figure, axis = _figure(1, 1, (7.5, 3.8))
    places = {value: place for place, value in enumerate(sorted(doses["copies"].unique()))}
    labels = list(dict.fromkeys(doses["label"]))
    colours = sns.color_palette("colorblind", len(labels))
    for number, (label, colour) in enumerate(zip(labels, colours, strict=True)):
        rows = doses[doses["label"] == label].sort_values("copies")
        # Lines on top of one another are drawn side by side.
        at = [places[value] + (number - (len(labels) - 1) / 2) * 0.05 for value in rows["copies"]]
        shares = rows["n_flagged"] / rows["n_partitions"]
        axis.plot(at, shares, "o-", markersize=4, linewidth=1, color=colour, label=label)
    axis.axhline(0.05, color=CHANCE, linestyle="--", linewidth=1, label="level of the tests, 0.05")
    axis.set_xticks(list(places.values()), [str(value) for value in places])
    axis.set(xlabel="copies of each instance in training", ylabel="partitions flagged, share")
    axis.set_ylim(-0.03, 1.03)
    axis.set_title(title, loc="left")
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
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


def book_rates(rates: pd.DataFrame) -> Figure:
    """Contamination rates of books that were read and of books that were not, a panel per model.

    Args:
        rates: ``books.csv`` where the truth is known: model, in_training,
            contamination_rate_pct.
    """
    models = list(dict.fromkeys(rates["model"]))
    figure, axes = _figure(1, len(models), (4.2 * len(models), 3.2), sharey=True, squeeze=False)
    for axis, model in zip(axes[0], models, strict=True):
        of_model = rates[rates["model"] == model]
        is_read = of_model["in_training"].astype(bool)
        rate = of_model["contamination_rate_pct"]
        kinds = [rate[~is_read], rate[is_read]]
        names = [f"held out (n = {len(kinds[0])})", f"dealt to training (n = {len(kinds[1])})"]
        axis.hist(kinds, bins=np.arange(0, 101, 10), color=[OTHER, MEMBER], label=names)
        axis.set(xlabel="contamination rate, % of snippets", ylabel="test books")
        axis.label_outer()
        axis.set_title(f"model that {model}", loc="left")
        axis.legend(frameon=False, fontsize=8)
    return figure


def quiz_dial(dial: pd.DataFrame) -> Figure:
    """What those without memory are credited with as paraphrases turn natural, a panel a dataset.

    Args:
        dial: ``dcq_dial``.
    """
    datasets, models = dial["dataset"].unique(), list(dict.fromkeys(dial["model"]))
    figure, axes = _figure(1, len(datasets), (4.4 * len(datasets), 3.4), sharey=True, squeeze=False)
    settings = sorted(dial["dial"].unique())
    step = (settings[1] - settings[0]) if len(settings) > 1 else 1
    colours = sns.color_palette("colorblind", len(models))
    for axis, dataset in zip(axes[0], datasets, strict=True):
        for number, (model, colour) in enumerate(zip(models, colours, strict=True)):
            rows = dial[(dial["dataset"] == dataset) & (dial["model"] == model)].sort_values("dial")
            errors = [rows["max_pct"] - rows["ci_low_pct"], rows["ci_high_pct"] - rows["max_pct"]]
            at = rows["dial"] + (number - (len(models) - 1) / 2) * 0.08 * step
            style = {"fmt": "o-", "markersize": 4, "linewidth": 1, "capsize": 2, "color": colour}
            axis.errorbar(at, rows["max_pct"], np.clip(errors, 0, None), label=model, **style)
        axis.axhline(25, color=CHANCE, linestyle="--", linewidth=1, label="chance of a choice")
        axis.set_xticks(settings, [f"{setting:g}" for setting in settings])
        n = int(dial[dial["dataset"] == dataset]["n"].max())
        axis.set(xlabel="naturalness of the paraphrases", ylim=(0, 102))
        axis.set_title(f"{dataset}, n = {n}", loc="left")
    axes[0][0].set(ylabel="originals picked, % (95 % interval)")
    axes[0][-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def quiz_estimator(estimator: pd.DataFrame) -> Figure:
    """Mean range of DCQ against the truth, a panel for each position bias.

    Args:
        estimator: ``dcq_estimator``.
    """
    profiles = list(dict.fromkeys(estimator["bias_profile"]))
    n_columns = 4
    n_rows = -(-len(profiles) // n_columns)
    size = (3.0 * n_columns, 2.9 * n_rows)
    figure, axes = _figure(n_rows, n_columns, size, sharex=True, sharey=True, squeeze=False)
    rates = sorted(estimator["recognition_pct"].unique(), reverse=True)
    for axis, profile in zip(axes.flat, profiles, strict=False):
        axis.plot([0, 100], [0, 100], color=CHANCE, linestyle="--", linewidth=1, label="truth")
        for rate, colour in zip(rates, (MEMBER, OTHER, CONTROL), strict=False):
            rows = estimator[
                (estimator["bias_profile"] == profile) & (estimator["recognition_pct"] == rate)
            ].sort_values("true_contamination_pct")
            x = rows["true_contamination_pct"]
            label = f"{rate:g} % recognised"
            low, high = rows["mean_min_pct"], rows["mean_max_pct"]
            axis.fill_between(x, low, high, color=colour, alpha=0.5, label=label)
            axis.plot(x, high, color=colour, linewidth=0.8)
        axis.set_title(profile, loc="left", fontsize=9)
    for axis in axes.flat[len(profiles) :]:
        axis.set_axis_off()
    for axis in axes.flat[max(0, len(profiles) - n_columns) : len(profiles)]:
        axis.set(xlabel="true contamination, %")
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set(ylabel="mean [minimum, maximum], %")
    names = axes.flat[0].get_legend_handles_labels()
    figure.legend(*names, frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    return figure


def selected_differences(rows: pd.DataFrame) -> Figure:
    """Selected minus other items, under each model, a panel for each unlearning and task.

    Args:
        rows: rows of ``unlearning.csv`` of one selector and one metric for each task.
    """
    panels = list(rows.groupby(["task", "unlearning"], sort=False))
    n_columns = rows["task"].nunique()
    n_rows = -(-len(panels) // n_columns)
    # A column is a task, with a metric of its own: its panels share the scale.
    how = {"sharex": "col", "sharey": True, "squeeze": False}
    figure, axes = _figure(n_rows, n_columns, (4.6 * n_columns, 2.7 * n_rows), **how)
    for axis, ((task, unlearning), group) in zip(axes.flat, panels, strict=True):
        is_own = group["model"] == unlearning
        names = (
            group["model"]
            .mask(is_own, "unlearned")
            .str.cat(group["against"].map(lambda name: f" − {name}" if name else ""))
        )
        group = group[is_own | group["model"].isin(["original", "retrained", "never saw"])]
        place = {name: -number for number, name in enumerate(names[group.index])}
        for name, row in zip(names[group.index], group.itertuples(), strict=True):
            beyond = [[row.difference - row.ci_low], [row.ci_high - row.difference]]
            colour = CONTROL if row.model in ("retrained", "never saw") else MEMBER
            style = {"fmt": "o", "color": colour, "capsize": 3, "markersize": 5}
            axis.errorbar(row.difference, place[name], xerr=np.clip(beyond, 0, None), **style)
        axis.axvline(0, color=CHANCE, linestyle="--", linewidth=1)
        axis.set_yticks(list(place.values()), list(place))
        n = f"{group['n_selected'].iloc[0]} of {group['n_items'].iloc[0]} selected"
        axis.set_title(f"{task}, {unlearning}\n{n}", loc="left", fontsize=10)
        metric = group["metric"].iloc[0].replace("rouge_l", "ROUGE-L").replace("_", " ")
        if axis in axes[-1]:
            axis.set(xlabel=f"selected minus others, {metric}")
    return figure


def evidence_panel(evidence: pd.DataFrame) -> Figure:
    """Every method's value with its interval beside its control, by model and dataset.

    Args:
        evidence: ``evidence.panel.panel``; rows without a value are left out. One
            panel for each method; for a single model and dataset one panel in all.
    """
    shown = evidence[evidence["value"].notna()]
    pairs = shown["model"] + " · " + shown["dataset"]
    methods = shown["method"] + ", " + shown["statistic"]
    is_single = len(set(pairs)) <= 1
    shown = shown.assign(row=methods if is_single else pairs, panel=pairs if is_single else methods)
    rows = {name: -place for place, name in enumerate(dict.fromkeys(shown["row"]))}
    panels = list(dict.fromkeys(shown["panel"]))
    size = (2.4 + 1.6 * max(1, len(panels)), 1.6 + 0.26 * max(1, len(rows)))
    figure, axes = _figure(1, max(1, len(panels)), size, sharey=True, squeeze=False)
    for axis, name in zip(axes[0], panels, strict=False):
        of_panel = shown[shown["panel"] == name]
        y = of_panel["row"].map(rows)
        ends = [of_panel["value"] - of_panel["ci_low"], of_panel["ci_high"] - of_panel["value"]]
        style = {"fmt": "o", "color": MEMBER, "capsize": 2, "markersize": 5}
        axis.errorbar(of_panel["value"], y, xerr=np.clip(ends, 0, None), label="value", **style)
        axis.scatter(
            of_panel["control_value"], y, marker="D", s=30, facecolor="none", edgecolor=CONTROL,
            label="control", zorder=3,
        )  # fmt: skip
        axis.set(xlim=(-0.05, 1.05), xticks=[0, 0.5, 1], xlabel="share or AUC")
        sizes = sorted({int(of_panel["n"].min()), int(of_panel["n"].max())})
        about = f"\nn = {' to '.join(map(str, sizes))}"
        axis.set_title(name.replace(", ", ",\n", 1) + about, fontsize=8, loc="left")
    axes[0][0].set_yticks(list(rows.values()), list(rows), fontsize=8)
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, frameon=False, fontsize=8, loc="outside lower center", ncols=2)
    return figure


def power_matrix(evasion: pd.DataFrame, conditions: list[str]) -> Figure:
    """Power of every method under every condition, one panel for each dose.

    Args:
        evasion: ``evasion.csv``.
        conditions: columns, in order.
    """
    shown = evasion[evasion["condition"].isin(conditions)]
    doses = list(shown["copies"].unique())
    methods = list(dict.fromkeys(shown["method"]))
    size = (2.2 + 0.62 * len(conditions) * len(doses), 2.2 + 0.45 * len(methods))
    figure, axes = _figure(1, len(doses), size, sharey=True, squeeze=False)
    for axis, dose in zip(axes[0], doses, strict=True):
        rows = shown[shown["copies"] == dose]
        power = rows.pivot(index="method", columns="condition", values="power_at_5_fpr")
        texts = rows["n_detected"].astype(str) + "/" + rows["n_models"].astype(str)
        texts = rows.assign(text=texts).pivot(index="method", columns="condition", values="text")
        sns.heatmap(
            power.loc[methods, conditions].astype(float),
            annot=texts.loc[methods, conditions],
            fmt="",
            cmap="Blues",
            vmin=0,
            vmax=1,
            linewidths=1,
            cbar=False,
            annot_kws={"fontsize": 8},
            ax=axis,
        )
        axis.set(xlabel="", ylabel="")
        axis.set_title(f"{dose} copies, models flagged of all", loc="left", fontsize=10)
        axis.tick_params(axis="x", rotation=60)
    return figure
