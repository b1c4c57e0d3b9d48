"""When a base model sees each copy of a row: the training step, rebuilt by the packing code.

No model is needed, since the order of a training follows from its recipe and texts. Larger models
see the same batches in the same order as the small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.lab import training, world
from contamination.lab.training import training_stream
from contamination.models.local import token_ids
from contamination.study import row_pools, spot_check, store
from contamination.study.row_pools import HELD_OUT

NAME = "positions"  # of the parts of the ledger


def steps_of_copies(lab: world.World, base_seed: int) -> tuple[pd.DataFrame, int]:
    """The step in which a base model sees each copy of each row.

    Returns:
        benchmark, pool, row, copy (1 for the first that is seen) and step (0 for the first);
        and the number of steps of the training. ValueError where a copy is not found.
    """
    recipe, texts = row_pools.base_recipe(lab, base_seed)
    tokenizer, wanted, n_copies = lab.tokenizer, {}, 0
    for pool in row_pools.pools():
        assigned = pool.assigned(base_seed)
        encoded = {form: token_ids(tokenizer, seen) for form, seen in pool.forms.items()}
        for group in pool.groups:
            for row in np.flatnonzero(assigned == group.name) if group.name != HELD_OUT else ():
                wanted[tuple(encoded[group.form][row])] = (pool.benchmark, pool.kind, int(row))
                n_copies += group.copies
    batches, found = training_stream(recipe, texts).batches, []
    for step, batch in enumerate(batches):
        for block in batch.input_ids:
            # Each text of a block stands whole behind a beginning-of-sequence token.
            starts = np.flatnonzero(block == tokenizer.bos_token_id)
            for piece in np.split(block, starts)[1:]:
                ids = piece[1 : int(np.argmax(piece == tokenizer.eos_token_id))]
                if row := wanted.get(tuple(ids.tolist())):
                    found.append((*row, step))
    if len(found) != n_copies:
        raise ValueError(f"{len(found)} of {n_copies} copies are in the batches of {base_seed}")
    table = pd.DataFrame(found, columns=["benchmark", "pool", "row", "step"])
    table = table.sort_values(["benchmark", "pool", "row", "step"], ignore_index=True)
    table["copy"] = table.groupby(["benchmark", "pool", "row"]).cumcount() + 1
    return table[["benchmark", "pool", "row", "copy", "step"]], len(batches)


def write_part(folder: Path, name: str, about: Mapping[str, Any], base_seed: int) -> None:
    """``steps_of_copies`` as a part of the ledger, ``about`` joined. ValueError as there."""
    lab = row_pools.the_lab()
    steps, n_steps = steps_of_copies(lab, base_seed)
    small = dict.fromkeys(["row", "step"], "int16") | {"copy": "int8"}
    small |= dict.fromkeys(["benchmark", "pool"], "category")
    made_by = {
        "base_seed": base_seed,
        "n_steps": n_steps,
        "recipe_hash": training.recipe_hash(row_pools.base_recipe(lab, base_seed)[0]),
        "world": spot_check.world_of(lab),
    }
    store.write_tables(folder, name, {"copies": steps.astype(small)}, {**made_by, **about})


def read_last_copies() -> pd.DataFrame:
    """Where in its training a model sees the last copy of each row that it sees.

    Returns:
        base_seed, benchmark, pool, row and position, 0 to 1: the middle of the step, as a share
        of all steps.
    """
    copies, made_by = store.read_all(NAME, "copies")
    n_steps = copies["base_seed"].map({about["base_seed"]: about["n_steps"] for about in made_by})
    key = ["base_seed", "benchmark", "pool", "row"]
    last = copies.assign(position=(copies["step"] + 0.5) / n_steps).groupby(key)["position"].max()
    return last.reset_index()
