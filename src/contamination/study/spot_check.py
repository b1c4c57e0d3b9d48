"""What the spot check compares with the ledger: environments, texts, and what an outcome means.

``first_steps`` trains the first steps of one base model again; the table has its row.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from contamination.lab import training, world
from contamination.models.loading import default_device

COLUMNS = ["part", "model", "recipe_hash", "detector", "n_scores", "largest_difference"]
COLUMNS += ["tolerance", "relative_rms", "relative_rms_tolerance", "auc_change"]
COLUMNS += ["auc_change_tolerance", "is_nearest", "environment", "outcome", "reason", "holds"]
MARGIN = 10  # times the largest distance that was measured, under one other base model
REPRODUCED, DIFFERS, NOT_RECOMPUTABLE = "reproduced", "differs", "not recomputable"
SAME, WITHIN, NUMERICS = "the same scores", "within the spread", "numerics"
ALTERED, ANOTHER, RECIPE = "other scores", "another model", "another recipe"
WORLD = "other texts"
OUTCOMES = dict.fromkeys((SAME, WITHIN), REPRODUCED)
OUTCOMES |= dict.fromkeys((ALTERED, ANOTHER, RECIPE), DIFFERS)
OUTCOMES |= dict.fromkeys((NUMERICS, WORLD), NOT_RECOMPUTABLE)
HOLDS = {REPRODUCED: True, DIFFERS: False}  # else undecided


def environment() -> dict[str, str]:
    """``recipes.environment`` and the processor's name, since its maker decides on kernels too."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text() if info.exists() else "")
    name = names[0] if names else platform.processor()
    return training.environment(default_device()) | {"processor_name": name}


def world_of(lab: world.World) -> dict[str, dict[str, str]]:
    """Hashes of the lab's texts and tokenizer, and the versions of what they are made with."""
    hashes = {k: v for k, v in lab.texts().hashes().items() if k in ("background", "tokenizer")}
    packages = lab.docstrings.groupby("package")["package_version"].first().to_dict()
    packages["tokenizers"] = training.environment("cpu")["tokenizers"]
    return {"hashes": hashes, "packages": packages}


def is_another_world(here: Mapping, there: Mapping) -> bool:
    """Whether texts differ and packages do: other texts of the same packages are no excuse."""
    return here["hashes"] != there["hashes"] and here["packages"] != there["packages"]


def differing(here: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
    """Names and values here of what is not the same there."""
    return [f"{name} {value}" for name, value in here.items() if there.get(name) != value]


def with_outcome(table: pd.DataFrame) -> pd.DataFrame:
    """The table with what its reasons mean: outcome (reproduced, differs, not recomputable), and
    holds (true, false or undecided)."""
    outcome = table["reason"].map(OUTCOMES)
    return table.assign(outcome=outcome, holds=outcome.map(HOLDS).astype("boolean"))


def require(table: pd.DataFrame) -> None:
    """ValueError, in one line, if a row of the spot check does not hold; undecided ones pass."""
    failed = table[table["holds"].eq(False).fillna(False)]
    if not failed.empty:
        row = failed.iloc[0]
        first = f"{row['part']}, {row['model']}, {row['detector']}: {row['reason']}"
        count = f"{len(failed)} of {len(table)} rows of the spot check fail"
        raise ValueError(f"the ledger does not match the code: {count}, the first {first}")
