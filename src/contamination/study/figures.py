"""The figure of notebook 09 that a reader remembers: which detector sees which reading."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from contamination.core.plots import new_figure
from contamination.study import protocol
from contamination.study.conditions import (
    ALONE,
    FULL,
    LATER,
    LONG,
    ORDERED,
    READ,
    SHUFFLED,
    SWAP,
    UNREAD,
    VERBATIM,
)

COLUMNS = [*READ, SWAP, ALONE, FULL, LATER, LONG, ORDERED, SHUFFLED, *UNREAD]

STYLE = {"fmt": "", "vmin": 0, "vmax": 1, "cbar": False, "linewidths": 1, "linecolor": "#EEEEEE"}


def power_matrix(evasion: pd.DataFrame, copies: int | None = None) -> Figure:
    """Models flagged, by detector and condition, at one dose; verbatim rows at every dose.

    ``evasion`` as in ``lab_panel.evasion_table``, of one benchmark; the largest dose, unless
    ``copies`` is given. Conditions of which no row was read are orange. Beside the count stands
    the number of models where not all cells have as many. What the study leaves out is not drawn.
    """
    evasion = evasion[~evasion["method"].isin(protocol.LEFT_OUT)]
    dose = copies or evasion["copies"].max()
    is_shown = evasion["copies"].eq(dose)
    others = evasion[~is_shown & evasion["condition"].eq(VERBATIM)]
    doses = VERBATIM + ", copies: " + others["copies"].astype(str)
    shown = pd.concat([others.assign(condition=doses), evasion[is_shown]])
    by_dose = dict(
        sorted({**dict(zip(others["copies"], doses, strict=True)), dose: VERBATIM}.items())
    )
    columns = [*by_dose.values(), *(name for name in COLUMNS if name != VERBATIM)]
    columns = [name for name in columns if name in set(shown["condition"])]
    n_units = shown["n_models"].max()
    text = shown["n_detected"].astype(str)
    if (shown["n_models"] != n_units).any():
        text += "/" + shown["n_models"].astype(str)
    powers, texts = (
        table.pivot(index="method", columns="condition", values=name)
        .reindex(index=evasion["method"].unique(), columns=columns)
        .dropna(how="all")
        for table, name in ((shown, "power_at_5_fpr"), (shown.assign(text=text), "text"))
    )
    figure, axis = new_figure(6.4, 0.28 * len(powers) + 1.8)
    is_unread = powers.columns.isin(UNREAD)
    for colours, is_left_out in (("Blues", is_unread), ("Oranges", ~is_unread)):
        mask = powers.isna() | is_left_out
        counts = texts.astype(object).fillna("")
        sns.heatmap(powers.astype(float), annot=counts, mask=mask, cmap=colours, ax=axis, **STYLE)
    expected = f"{protocol.ALPHA * n_units:.2g} by chance"
    title = f"Models flagged, out of {n_units} ({expected}; {dose} copies unless stated otherwise)"
    axis.set(xlabel="", ylabel="")
    axis.set_title(title, loc="right")
    names = [name.removeprefix("dosed, ") for name in columns]
    axis.set_xticks(axis.get_xticks(), names, rotation=50, ha="right", rotation_mode="anchor")
    return figure
