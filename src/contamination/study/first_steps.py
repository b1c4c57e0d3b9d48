"""The spot check: one base model's first training steps, again.

A whole base model takes minutes. Its first steps take seconds and see what decides the rest:
weights, order of the texts, and which rows are inserted where. Their losses must be those that the
ledger holds. In the ledger's environment they are equal. Elsewhere rounding differs: 40 steps with
other instructions of the processor were off by at most 0.0000014 nats (three models), and two base
models by 0.14 (root mean square).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.lab import training
from contamination.study import pretraining, row_pools, store

N_STEPS = 40
TOLERANCE = 1e-6  # nats, in the ledger's environment
# Elsewhere ten times the largest difference of a loss between two instruction sets.
TOLERANCE_ELSEWHERE = 10 * 1.4e-6
COLUMNS = ["part", "model", "recipe_hash", "detector", "n_scores", "largest_difference"]
COLUMNS += ["tolerance", "environment", "outcome", "reason", "holds"]
REPRODUCED, DIFFERS, NOT_RECOMPUTABLE = "reproduced", "differs", "not recomputable"
SAME, WITHIN, NUMERICS = "the same scores", "within the spread", "numerics"
ALTERED, ANOTHER, RECIPE = "other scores", "another model", "another recipe"
WORLD = "other texts"
OUTCOMES = dict.fromkeys((SAME, WITHIN), REPRODUCED)
OUTCOMES |= dict.fromkeys((ALTERED, ANOTHER, RECIPE), DIFFERS)
OUTCOMES |= dict.fromkeys((NUMERICS, WORLD), NOT_RECOMPUTABLE)
HOLDS = {REPRODUCED: True, DIFFERS: False}  # else undecided


def draw_part(names: Mapping[str, Mapping[str, str]]) -> str:
    """The part that is trained again, drawn by the hashes of all parts' tables.

    Whoever alters a score draws another model; whoever alters code draws the same. ``names`` has
    the SHA-256 of each file, by name of a part.
    """
    ordered = sorted(names)
    seed = int(storage.hash_of([names[name] for name in ordered]), 16)
    return ordered[np.random.default_rng(seed).integers(len(ordered))]


def reason_of(
    losses: np.ndarray, stored: Mapping[str, np.ndarray], name: str, is_same: bool
) -> str:
    """Why new losses agree with the stored ones of a part or do not, in the words of the check.

    Args:
        losses: of the first steps, shape (n_steps,).
        stored: by name of a part, losses of at least as many steps.
        name: of the part that was trained again.
        is_same: whether the environment is that of the ledger.
    """
    off = {part: np.abs(losses - of[: len(losses)]).max() for part, of in stored.items()}
    if is_same:
        return SAME if off[name] <= TOLERANCE else ALTERED
    if min(off, key=off.__getitem__) != name:
        return ANOTHER
    return WITHIN if off[name] <= TOLERANCE_ELSEWHERE else NUMERICS


def is_another_world(here: Mapping, there: Mapping) -> bool:
    """Whether texts differ and packages do: other texts of the same packages are no excuse."""
    return here["hashes"] != there["hashes"] and here["packages"] != there["packages"]


def check(n_steps: int = N_STEPS, folder: Path | None = None) -> pd.DataFrame:
    """The first steps of one base model against the ledger: a row of ``COLUMNS``.

    No row for 0 steps. ValueError where the ledger's tables are not those that were written.
    """
    if not n_steps:
        return pd.DataFrame(columns=COLUMNS)
    parts = {
        name: store.read_tables(name, folder) for name in store.names(pretraining.NAME, folder)
    }
    name = draw_part({part: about["sha256"] for part, (_, about) in parts.items()})
    about, lab = parts[name][1], row_pools.the_lab()
    recipe, texts = row_pools.base_recipe(lab, about["base_seed"])
    recipe_hash = about["models"][pretraining.PRETRAINED]["recipe_hash"]
    here, there = store.environment(), about["environment"]
    other = [f"{key} {value}" for key, value in here.items() if there.get(key) != value]
    row = {"part": name, "model": f"base model {about['base_seed']}", "recipe_hash": recipe_hash}
    row |= {"detector": "training loss", "environment": ", ".join(other) or "the ledger's"}
    if training.recipe_hash(recipe) != recipe_hash:
        reason = WORLD if is_another_world(store.world_of(lab), about["world"]) else RECIPE
    else:
        losses = training.first_losses(recipe, texts, n_steps)
        stored = {part: tables["losses"]["loss"].to_numpy() for part, (tables, _) in parts.items()}
        row["n_scores"] = len(losses)
        row["largest_difference"] = np.abs(losses - stored[name][: len(losses)]).max()
        row["tolerance"] = TOLERANCE_ELSEWHERE if other else TOLERANCE
        reason = reason_of(losses, stored, name, not other)
    outcome = OUTCOMES[reason]
    row |= {"reason": reason, "outcome": outcome, "holds": HOLDS.get(outcome)}
    return pd.DataFrame([row]).astype({"holds": "boolean"}).reindex(columns=COLUMNS)


def require(checked: pd.DataFrame) -> None:
    """ValueError, in one line, if the row of ``check`` does not hold; an undecided one passes."""
    for row in checked[checked["holds"].eq(False).fillna(False)].itertuples():
        raise ValueError(
            f"the ledger does not match the code: {row.part}, {row.model}, {row.detector}: "
            f"{row.reason}"
        )
