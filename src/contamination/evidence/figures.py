"""The two figures of notebook 09: verdicts of one seed, and power by condition."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from contamination.evidence.conditions import CLEAN, DOSED, TRAINED_ON, TRUTHS
from contamination.evidence.evasion import NOTHING_READ
from contamination.evidence.measuring import METHODS
from contamination.evidence.panel import CONTROL_FORBIDS, RECOGNISED
from contamination.plots import MEMBER, OTHER, panels

NAMES = ["DCQ", "option\nranking", "repli-\ncation", "Min-k%", "DICE"]  # of METHODS, on an axis
FALSE_ALARM, FORBIDDEN, READ = 1, 2, 3
COLOURS = ["#FFFFFF", OTHER, "#CCCCCC", MEMBER]


def verdict_matrix(evidence: pd.DataFrame, seed: int) -> Figure:
    """Values of every method on every dataset of one seed's models, coloured by verdict."""
    rows = evidence[evidence["model"].str.endswith(f" seed {seed}")]
    model = rows["model"].str.removesuffix(f", seed {seed}")
    model = model.str.removeprefix(f"{TRAINED_ON}, ").str.removeprefix(f"{DOSED}, ")
    about = rows["condition"].mask(model.eq(CLEAN), rows["dataset"])
    is_unread = rows["truth"].isin([TRUTHS[name] for name in NOTHING_READ])
    code = rows["verdict"].map({RECOGNISED: READ, CONTROL_FORBIDS: FORBIDDEN}).fillna(0)
    code = code.mask(code.eq(READ) & is_unread, FALSE_ALARM)
    rows = rows.assign(row=model + ": " + about, code=code)
    codes, values = (
        rows.pivot(index="row", columns="method", values=name).loc[rows["row"].unique(), METHODS]
        for name in ("code", "value")
    )
    figure, ((axis,),) = panels(1, 1, (6.4, 0.3 * len(codes) + 1.4))
    sns.heatmap(codes, annot=values, fmt=".2f", cmap=COLOURS, vmin=0, vmax=3, cbar=False,
                linewidths=1, linecolor="#EEEEEE", ax=axis)  # fmt: skip
    axis.set_xticks(axis.get_xticks(), NAMES, rotation=0)
    n_read, n_false = (int(codes.eq(kind).sum().sum()) for kind in (READ, FALSE_ALARM))
    axis.set(xlabel="", ylabel="")
    axis.set_title(f"Seed {seed}: {n_read} recognised that were read, {n_false} that were not")
    return figure


def power_matrix(evasion: pd.DataFrame, conditions: Sequence[str]) -> Figure:
    """Models flagged of all, by method and condition, a panel for each dose.

    Conditions of which no row was read are orange.
    """
    shown = evasion[evasion["condition"].isin(conditions)]
    text = shown["n_detected"].astype(str) + "/" + shown["n_models"].astype(str)
    shown = shown.assign(text=text.where(shown["n_models"].gt(0), "–"))
    doses, methods = list(shown["copies"].unique()), list(shown["method"].unique())
    figure, axes = panels(len(doses), 1, (6.4, 2.1 * len(doses) + 1.6), sharex=True)
    for axis, dose in zip(axes[:, 0], doses, strict=True):
        rows = shown[shown["copies"] == dose]
        texts, power = (
            rows.pivot(index="method", columns="condition", values=name).loc[methods, conditions]
            for name in ("text", "power_at_5_fpr")
        )
        for colours, is_left_out in (
            ("Blues", power.columns.isin(NOTHING_READ)),
            ("Oranges", ~power.columns.isin(NOTHING_READ)),
        ):
            mask = pd.DataFrame([is_left_out] * len(power), power.index, power.columns)
            sns.heatmap(power.astype(float), annot=texts, fmt="", mask=mask, cmap=colours, vmin=0,
                        vmax=1, cbar=False, linewidths=1, linecolor="#EEEEEE", ax=axis)  # fmt: skip
        axis.set(xlabel="", ylabel="")
        axis.set_title(f"models flagged of all, copies read: {dose}", loc="left")
        axis.tick_params(axis="x", rotation=40)
    return figure
