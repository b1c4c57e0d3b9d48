"""The spot check: three models of the ledger are trained and scored again, and must agree.

Part ``base0`` holds models that continue the base model of notebook 01, one for each deal of
rows; its ``unit`` is the deal's seed. They are asked about their own datasets and, in place of
fresh rows of their own, about rows of a further deal, which none of them read. Scores are log-
probabilities: of quizzes the margin that answers are made from, on the first and the last
dataset. Completions are left out. A made-up share f of the models is met with a probability of
at least 1 - (1 - f)^3.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.dcq.respondents import ANSWER_RULE, BaseRespondent
from contamination.lab import recipes, world
from contamination.models.causal import CausalLM
from contamination.models.loading import default_device
from contamination.study import agreement, arms, baselines, scoring, store
from contamination.study.conditions import DOSED
from contamination.study.interface import LOG_PROBABILITIES, Detector, Rows

BASE0 = "base0"
N_MODELS = 3
COLUMNS = ["part", "model", "recipe_hash", "detector", "n_scores", "largest_difference"]
COLUMNS += ["tolerance", "relative_rms", "relative_rms_tolerance", "auc_change"]
COLUMNS += ["auc_change_tolerance", "is_nearest", "environment", "outcome", "reason", "holds"]


def _margins(lm: CausalLM, rows: Rows) -> np.ndarray:
    """Log-probability of the original minus that of the likeliest of three others, nats."""
    respondent = BaseRespondent(lm, rows.dataset, rows.split, ANSWER_RULE)
    options = rows.quizzes[["instance", "option_a", "option_b", "option_c"]]
    log_probs = respondent.log_probs([*options.itertuples(index=False)])
    return log_probs[:, 0] - log_probs[:, 1:].max(axis=1)


OF_TOKENS = (baselines.PPL, baselines.MIN_K, baselines.MIN_K_PLUS_PLUS)
OF_OPTIONS = (Detector("margin of the original", LOG_PROBABILITIES, _margins),)


def environment() -> dict[str, str]:
    """``recipes.environment`` and the processor's name, since its maker decides on kernels too."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text() if info.exists() else "")
    name = names[0] if names else platform.processor()
    return recipes.environment(default_device()) | {"processor_name": name}


def world_of(lab: world.World) -> dict[str, dict[str, str]]:
    """Hashes of the lab's texts and tokenizer, and the versions of what they are made with."""
    hashes = {k: v for k, v in lab.texts().hashes().items() if k in ("background", "tokenizer")}
    packages = lab.docstrings.groupby("package")["package_version"].first().to_dict()
    packages["tokenizers"] = recipes.environment("cpu")["tokenizers"]
    return {"hashes": hashes, "packages": packages}


def is_another_world(here: Mapping, there: Mapping) -> bool:
    """Whether texts differ and packages do: other texts of the same packages are no excuse."""
    return here["hashes"] != there["hashes"] and here["packages"] != there["packages"]


def differing(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Names and values here of what is not the same there."""
    return [f"{name} {value}" for name, value in here.items() if there.get(name) != value]


def draw_seeds(about: Mapping[str, Any], n_models: int = N_MODELS) -> list[int]:
    """Seeds of the models to train again, drawn by the hashes of the ledger's own tables.

    Whoever alters a score draws other models; whoever alters code draws the same.
    """
    generator = np.random.default_rng(int(storage.hash_of(about["sha256"]), 16))
    return sorted(generator.choice(about["units"], n_models, replace=False).tolist())


def train_and_score(
    about: Mapping[str, Any], lab: world.World, base: Path, seeds: Sequence[int]
) -> tuple[pd.DataFrame, dict[str, dict]]:
    """Scores of the models of some seeds, and for each seed what is equal on every machine."""
    benchmark, copies, n_read = (about[name] for name in ("benchmark", "copies", "n_read"))
    common = arms.deal(benchmark, about["common_seed"], n_read)[-1]
    common = replace(common, rows=replace(common.rows, dataset="Common"))  # a name nobody read
    models, facts = [], {}
    for seed in seeds:
        datasets = arms.deal(benchmark, seed, n_read)
        reading = (arms.doses(datasets, copies), about["n_tokens"], seed)
        folder = world.continued_model(lab, base, *reading, **about["training"])
        asked = (*datasets[:-1], common)
        models.append(arms.LabModel(DOSED, seed, benchmark, copies, folder, asked))
        made = world.describe(folder)
        facts[str(seed)] = {n: made[n] for n in ("recipe_hash", "n_tokens", "n_dose_tokens")}
        facts[str(seed)]["rows"] = storage.hash_of([one.rows.texts for one in asked])
    few = [replace(model, datasets=(model.datasets[0], common)) for model in models]
    parts = [scoring.score_models(*part) for part in ((models, OF_TOKENS), (few, OF_OPTIONS))]
    return pd.concat([scores for scores, _ in parts], ignore_index=True), facts


def check(n_models: int = N_MODELS) -> pd.DataFrame:
    """``COLUMNS`` by model and detector; only the base model may come from the cache.

    None are trained for 0; ValueError where the ledger's tables are not those that were written.
    """
    ((stored, _, about),) = store.parts(BASE0)  # one part, with the settings of its own
    if not n_models:
        return pd.DataFrame(columns=COLUMNS)
    lab = world.build_world(about["world_seed"])
    seeds, here = draw_seeds(about, n_models), world_of(lab)
    other = differing(environment(), about["environment"])
    if is_another_world(here, about["world"]):
        other = differing(here["packages"], about["world"]["packages"])
        rows = pd.MultiIndex.from_product([seeds, stored["detector"].unique()])
        table = rows.to_frame(index=False, name=["unit", "detector"])
        table["reason"] = agreement.WORLD
    else:
        base = world.base_model(lab, about["n_background_tokens"], about["world_seed"])
        with storage.empty_cache():
            scores, facts = train_and_score(about, lab, base, seeds)
        table = agreement.judge_agreement(scores, stored, about["spread"], not other)
        differs = table["unit"].map(lambda unit: facts[str(unit)] != about["models"][str(unit)])
        table.loc[differs, "reason"] = agreement.RECIPE
    table = agreement.with_outcome(table)
    table["part"], table["model"] = BASE0, "deal " + table["unit"].astype(str)
    table["recipe_hash"] = table["unit"].map(lambda u: about["models"][str(u)]["recipe_hash"])
    table["environment"] = ", ".join(other) or "the ledger's"
    return table.reindex(columns=COLUMNS)


def require(table: pd.DataFrame) -> None:
    """ValueError, in one line, if a row of ``check`` does not hold; undecided ones pass."""
    failed = table[table["holds"].eq(False).fillna(False)]
    if not failed.empty:
        row = failed.iloc[0]
        first = f"{row['part']}, {row['model']}, {row['detector']}: {row['reason']}"
        count = f"{len(failed)} of {len(table)} rows of the spot check fail"
        raise ValueError(f"the ledger does not match the code: {count}, the first {first}")
