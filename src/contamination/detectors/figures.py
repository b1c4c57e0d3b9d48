"""The figure of notebook 09 that a reader remembers: which detector sees which reading."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from contamination.detectors.conditions import (
    DEALT,
    LATER,
    LONG,
    NOTHING_READ,
    ORDERED,
    SHUFFLED,
)
from contamination.plots import panels

COLUMNS = [*DEALT[: -len(NOTHING_READ)], LATER, LONG, ORDERED, SHUFFLED, *NOTHING_READ]

STYLE = {"fmt": "", "vmin": 0, "vmax": 1, "cbar": False, "linewidths": 1, "linecolor": "#EEEEEE"}


def power_matrix(evasion: pd.DataFrame) -> Figure:
    """Units flagged of all, by detector and condition, a panel for each dose.

    ``evasion`` as in ``lab_panel.evasion_table``, of one benchmark. Conditions of which no row was
    read are orange.
    """
    shown = evasion[evasion["condition"].isin(COLUMNS)]
    shown = shown.assign(text=shown["n_detected"].astype(str) + "/" + shown["n_models"].astype(str))
    doses, methods = list(shown["copies"].unique()), list(shown["method"].unique())
    size = (6.4, (0.28 * len(methods) + 0.5) * len(doses) + 1.8)
    figure, axes = panels(len(doses), 1, size, sharex=True)
    for axis, dose in zip(axes[:, 0], doses, strict=True):
        rows = shown[shown["copies"] == dose]
        texts, power = (
            rows.pivot(index="method", columns="condition", values=name)
            .reindex(methods)
            .reindex(COLUMNS, axis=1)
            for name in ("text", "power_at_5_fpr")
        )
        is_unread = power.columns.isin(NOTHING_READ)
        for colours, is_left_out in (("Blues", is_unread), ("Oranges", ~is_unread)):
            mask = power.isna() | is_left_out
            counts = texts.astype(object).fillna("")
            sns.heatmap(
                power.astype(float), annot=counts, mask=mask, cmap=colours, ax=axis, **STYLE
            )
        axis.set(xlabel="", ylabel="")
        axis.set_title(f"units flagged of all, copies read: {dose}", loc="left")
    names = [name.removeprefix("dosed, ") for name in COLUMNS]
    axis.set_xticks(axis.get_xticks(), names, rotation=50, ha="right", rotation_mode="anchor")
    return figure
