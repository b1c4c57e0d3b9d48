"""The figures of the study: what decides whether a row is found, published AUCs, what fakes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from contamination.core.plots import CHANCE, CONTROL, MEMBER, OTHER, new_figure, panels
from contamination.study.length import MAXIMUM
from contamination.study.placement import N_PARTS

SIZE = (5.6, 4.0)
ALLOWED = 0.05  # share of false alarms that the tests allow
STAGES = {"pretraining": "o", "continued pretraining": "s", "fine-tuning": "^"}  # their markers
ANCHOR_COLOURS = ("#D55E00", "#009E73", "#000000", "#CC79A7", "#56B4E9")  # one for each paper


def copies_figure(
    aucs: pd.DataFrame, timings: pd.DataFrame, detector: str, labels: Sequence[str], title: str
) -> Figure:
    """AUC of one detector against copies at two sizes, and of one copy seen early or late.

    Args:
        aucs: detector, models, copies, auc, ci_low, ci_high.
        timings: ``placement.timing`` of both sizes, with a column models.
        detector: whose lines are drawn.
        labels: what the models of the two sizes are called, in the order of ``aucs``.
    """
    figure, axis = new_figure(*SIZE)
    axis.axhline(0.5, color=CHANCE, linestyle="--", linewidth=1)
    shift = {0: 0.97, 1: 1.03}  # so that the intervals of both sizes are seen
    for number, models in enumerate(aucs["models"].unique()):
        own = aucs[aucs["detector"].eq(detector) & aucs["models"].eq(models)]
        x, colour = own["copies"] * shift[number], (MEMBER, OTHER)[number]
        ends = [own["auc"] - own["ci_low"], own["ci_high"] - own["auc"]]
        axis.errorbar(
            x, own["auc"], yerr=ends, fmt="o-", color=colour, capsize=3, label=labels[number]
        )
        early_late = timings[timings["detector"].eq(detector) & timings["models"].eq(models)]
        of_part = early_late.set_index("part")["auc"]
        for part, marker, word in ((1, "v", "first"), (N_PARTS, "^", "last")):
            place = 0.72 if number == 0 else 0.80
            label = f"seen once, in the {word} fifth of training" if number else None
            axis.scatter(place, of_part[str(part)], marker=marker, s=55, color=colour, zorder=3)
            if label:
                axis.scatter([], [], marker=marker, s=55, color="black", label=label)
    axis.set_xscale("log", base=2)
    axis.set_xticks([0.76, *sorted(aucs["copies"].unique())])
    axis.set_xticklabels(["1, early\nor late", *map(str, sorted(aucs["copies"].unique()))])
    axis.set(
        xlabel="copies of a row in the training data", ylabel="AUC, seen against held-out rows"
    )
    axis.set(ylim=(0.47, 1.01), xlim=(0.62, 20))
    axis.minorticks_off()
    axis.legend(frameon=False, loc="upper left")
    axis.set_title(title, loc="left")
    return figure


def tenths_figure(tenths: pd.DataFrame, labels: Mapping[str, str], title: str) -> Figure:
    """AUC of rows seen once by the tenth of the training, a panel for each schedule.

    Args:
        tenths: ``placement.by_tenth``.
        labels: by detector, what it is called; the last one is the control.
    """
    schedules = [*tenths["schedule"].unique()]
    figure, ((*axes,),) = panels(1, len(schedules), (8.2, 3.6), sharey=True)
    colours = [MEMBER, OTHER, CONTROL]
    for axis, schedule in zip(axes, schedules, strict=True):
        axis.axhline(0.5, color=CHANCE, linestyle="--", linewidth=1)
        for number, (detector, label) in enumerate(labels.items()):
            own = tenths[tenths["schedule"].eq(schedule) & tenths["detector"].eq(detector)]
            ends = [own["auc"] - own["ci_low"], own["ci_high"] - own["auc"]]
            axis.errorbar(
                own["tenth"] + (number - 1) / 8, own["auc"], yerr=ends, fmt="o-", markersize=4,
                linewidth=1.2, capsize=2, color=colours[number], label=label,
            )  # fmt: skip
        axis.set_xticks(range(1, 11))
        axis.set(xlabel=f"tenth of the training; {schedule} learning rate")
    axes[0].set_ylabel("AUC of rows seen once")
    axes[0].legend(frameon=False, loc="upper left", fontsize=8)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure


def anchors_figure(
    ours: pd.DataFrame, anchors: pd.DataFrame, labels: Sequence[str], title: str
) -> Figure:
    """AUC against copies, ours and published; the marker is the stage of training.

    Args:
        ours: models, copies, auc, ci_low, ci_high of Min-k% Prob.
        anchors: ``anchors.csv``; other attacks than Min-k% Prob have hollow markers.
        labels: what the models of ``ours`` are called, in their order.
    """
    figure, axis = new_figure(7.2, 5.2)
    axis.axhline(0.5, color=CHANCE, linestyle="--", linewidth=1)
    for number, models in enumerate(ours["models"].unique()):
        own = ours[ours["models"].eq(models)]
        ends = [own["auc"] - own["ci_low"], own["ci_high"] - own["auc"]]
        axis.errorbar(
            own["copies"], own["auc"], yerr=ends, fmt="o-", linewidth=2.5, capsize=3,
            color=(MEMBER, OTHER)[number], label=f"ours: {labels[number]}, pretraining",
        )  # fmt: skip
    by_paper = anchors.groupby(["paper", "stage"], sort=False)
    for colour, ((paper, stage), rows) in zip(ANCHOR_COLOURS, by_paper, strict=True):
        is_min_k = rows["method"].eq("Min-k% Prob").all()
        line: dict[str, Any] = {"color": colour, "marker": STAGES[stage], "markersize": 5}
        line |= {"linewidth": 1, "markerfacecolor": colour if is_min_k else "none"}
        for _, of_model in rows.groupby(rows["model"].str.partition(" (")[0]):
            style = "-" if of_model["copies"].is_unique else "none"
            axis.plot(of_model["copies"], of_model["auc"], linestyle=style, **line)
        ends = dict.fromkeys([rows["parameters"].min() / 1e9, rows["parameters"].max() / 1e9])
        size = " to ".join(f"{end:.2g}" for end in ends)
        label = f"{paper}: {size} billion, {stage}"
        axis.plot([], [], linestyle="none", label=label, **line)
    axis.set_xscale("log", base=2)
    ticks = [1, 2, 4, 8, 16, 64, 256, 1000]
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()
    axis.set(xlabel="copies of a row in the training data", ylabel="AUC, seen against unseen rows")
    axis.set(ylim=(0.48, 1.01))
    axis.legend(
        title="hollow: not Min-k% Prob", title_fontsize=8, fontsize=8, frameon=False,
        loc="upper right", bbox_to_anchor=(1, 0.74),
    )  # fmt: skip
    axis.set_title(title, loc="left")
    return figure


def length_figure(alarms: pd.DataFrame, detectors: Sequence[str], title: str) -> Figure:
    """False alarms against the difference in length of two sets that no model saw.

    Args:
        alarms: ``length.false_alarms``.
        detectors: those that are drawn, as the table calls them; noise is the control.
    """
    figure, axis = new_figure(*SIZE)
    axis.axhline(100 * ALLOWED, color=CHANCE, linestyle="--", linewidth=1)
    colours = [MEMBER, OTHER, "#D55E00", "#56B4E9", "#CC79A7", "black"]
    for place, name in enumerate(detectors):
        own = alarms[alarms["detector"].eq(name)]
        colour = CONTROL if name == "noise" else colours[place % len(colours)]
        style = ":" if name == "noise" else "-"
        label = f"{name} (control)" if name == "noise" else name
        axis.plot(
            own["difference_found"], 100 * own["rate"], style, marker="o", color=colour, label=label
        )
    last = alarms.loc[alarms["difference"].eq(MAXIMUM), "difference_found"].max()
    ticks = [0.0, 0.5, 1.0, round(float(last), 2)]
    axis.set_xticks(
        ticks,
        [*(f"{tick:g}" for tick in ticks[:-1]), f"{ticks[-1]:.1f}\n(longer half\nagainst shorter)"],
    )
    axis.set(xlabel="difference in mean length, in standard deviations of a row's length")
    axis.set(ylabel="false alarms, %", ylim=(-2, 102))
    axis.text(last, 100 * ALLOWED - 1, "5 % allowed", ha="right", va="top", fontsize=8)
    axis.legend(frameon=False, loc="upper left")
    axis.set_title(title, loc="left")
    return figure
