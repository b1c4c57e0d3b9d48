"""Figure 6 of the DICE paper on models of one's own, those of unknown training too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from contamination.cases.pairs import UNKNOWN, Pairs
from contamination.core import plots
from contamination.dice import experiments
from contamination.dice.detector import probability, states_by_layer
from contamination.dice.experiments import FLAG_THRESHOLD
from contamination.dice.mixtures import HARD, IN_DISTRIBUTION, SEEN, UNSEEN, prompts_of
from contamination.dice.pool import CLEAN, CONTAMINATED, FineTunedModel, Pool
from contamination.models.local import CausalLM

BENCHMARKS = (SEEN, UNSEEN, HARD, "ASDiv", "MAWPS")  # of Figure 6(b), GSM8K in its two halves


def more_flags(
    pairs: Pairs,
    trained: Mapping[str, Mapping[int, FineTunedModel]],
    pool: Pool,
    layer: int,
    load: Callable[[str], CausalLM],
) -> pd.DataFrame:
    """Rows of ``experiments.flags`` for sets of Figure 6(b) that a model of the pool did not read.

    A model of unknown training is flagged by the mean over all detectors, none of which has met
    it. Of a large model only the states of one layer and one set are held at a time.
    """
    detectors = experiments.held_out_detectors(pool, CONTAMINATED, layer)
    rows = []
    for name, models in trained.items():
        for seed, model in models.items():
            of_model = [one for at, one in detectors.items() if name == UNKNOWN or at == seed]
            read = pool[name][seed].states if name in pool else {}
            wanted = [one for one in BENCHMARKS if one in pairs.problems and one not in read]
            if not (of_model and wanted):
                continue
            lm = load(str(model.folder))
            for benchmark in wanted:
                prompts = prompts_of(pairs.problems[benchmark])
                states = states_by_layer(lm, prompts)[:, layer]
                flag = float(np.mean([probability(one(states)).mean() for one in of_model]))
                row = {"condition": name, "seed": seed, "benchmark": benchmark}
                rows.append(row | {"flag": flag})
    return pd.DataFrame(rows, columns=["condition", "seed", "benchmark", "flag"])


def predictions(pool: Pool, layer: int) -> pd.DataFrame:
    """Figure 6(a): the predicted probability of contamination for every question.

    Returns:
        condition (contaminated and clean), seed, benchmark, question (its number), probability,
        by the detector that met no model of that seed.
    """
    detectors = experiments.held_out_detectors(pool, CONTAMINATED, layer)
    parts = []
    for condition in (CONTAMINATED, CLEAN):
        for seed in [seed for seed in pool[condition] if seed in detectors]:
            for benchmark, states in pool[condition][seed].states.items():
                found = probability(detectors[seed](states[:, layer]))
                about = {"condition": condition, "seed": seed, "benchmark": benchmark}
                about["question"] = np.arange(len(found))
                parts.append(pd.DataFrame({**about, "probability": found}))
    return pd.concat(parts, ignore_index=True)


def topic_table(pool: Pool, layer: int, topic: str, paper: str | None) -> pd.DataFrame:
    """Figure 6(a) as an AUROC: GSM-ii against another topic, in contaminated and clean models.

    Rows of ``dice_controls.csv`` with the printed value in ``paper``, if it is about such models.
    """
    detectors = experiments.held_out_detectors(pool, CONTAMINATED, layer)
    rows = experiments.topic_rows(pool, detectors, layer, topic)
    table = pd.DataFrame(rows).astype({"layer": "Int64", "holds": "boolean"})
    return table.assign(paper=[paper, None])


def prediction_distributions(table: pd.DataFrame, topic: str) -> Figure:
    """Figure 6(a): predictions for GSM questions and for another topic, with clean models below.

    ``table`` as :func:`predictions`. A title says how many GSM questions are above the paper's
    threshold, of contaminated and of clean models.
    """
    conditions = list(dict.fromkeys(table["condition"]))
    figure, axes = plots.panels(len(conditions), 1, (6, 2.8 * len(conditions)), sharex=True)
    gsm, palette = "GSM questions", {"GSM questions": plots.MEMBER, topic: plots.OTHER}
    for axis, condition in zip(axes[:, 0], conditions, strict=True):
        rows = table[table["condition"] == condition]
        rows = rows[rows["benchmark"].isin([*IN_DISTRIBUTION, topic])]
        kind = rows["benchmark"].where(rows["benchmark"] == topic, gsm)
        style = {"stat": "percent", "common_norm": False, "bins": np.arange(21) / 20}
        sns.histplot(x=rows["probability"], hue=kind, palette=palette, ax=axis, **style)
        above = 100 * rows.loc[kind == gsm, "probability"].gt(FLAG_THRESHOLD).mean()
        axis.set_title(f"{condition}: {above:.0f} % of GSM questions are flagged", loc="left")
        axis.axvline(FLAG_THRESHOLD, color=plots.CHANCE, linestyle="--")
        axis.set(xlabel="predicted probability of contamination", ylabel="questions, %")
        axis.get_legend().set_title("")
    return figure
