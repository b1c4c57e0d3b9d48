"""Figures of the study: AUC by the place of a copy, and next to published AUCs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from contamination.core.plots import CHANCE, CONTROL, MEMBER, OTHER, new_figure, panels

STAGES = {"pretraining": "o", "continued pretraining": "s", "fine-tuning": "^"}  # their markers
ANCHOR_COLOURS = ("#D55E00", "#009E73", "#000000", "#CC79A7", "#56B4E9")  # one for each paper


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
