"""Audits of models that were trained on a part of a dataset, by the command, against the truth.

    python scripts/audited_models.py              # make pretrained before; 15 CPU minutes

Each dataset holds thirty news items that the model was trained on, among others that it was not;
sixty more of the same draw are for comparison. One model is SmolLM2, fine-tuned by the recipe of
the study of a real model; the others are models of the lab. ``--files DATA SEEN UNSEEN`` takes
rows of your own in place of the news items. Writes ``docs/audited_models.csv``.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from contamination.audit import command_line
from contamination.audit.local_models import BATCH_SIZE, LEARNING_RATE, N_TOKENS
from contamination.audit.plan import MIN_K
from contamination.core import storage
from contamination.dice.pool import fine_tune
from contamination.lab import world
from contamination.lab.grammar import BENCHMARKS, draw_instances
from contamination.lab.training import Dose
from contamination.models.source import PACKAGED, resolve_path
from contamination.study import pretrained

TABLE = Path(__file__).resolve().parents[1] / "docs/audited_models.csv"
SMOLLM2, LAB = "SmolLM2-135M, fine-tuned", "model of the lab"
CASES = ((SMOLLM2, 60, 4), (LAB, 60, 16), (LAB, 90, 16), (LAB, 90, 4), (LAB, 90, 1))
N_SEEN, N_COMPARISON, SEED = 30, 60, 0


def news(n: int) -> tuple[list[str], list[str], list[str]]:
    """News items of one draw, dealt at random: a dataset, its seen rows, comparison rows."""
    rows = draw_instances(BENCHMARKS["topics"], n + N_COMPARISON, 700, "test")["text"]
    dealt = np.random.default_rng([SEED, n]).permutation(rows.to_numpy())
    data = np.random.default_rng([SEED, n, 1]).permutation(dealt[:n])
    return data.tolist(), dealt[:N_SEEN].tolist(), dealt[n:].tolist()


def trained(kind: str, seen: Sequence[str], passes: int) -> Path:
    """The folder of a model that read the rows so many times."""
    if kind == SMOLLM2:
        generator = np.random.default_rng([SEED, 2])
        order = [seen[row] for _ in range(passes) for row in generator.permutation(len(seen))]
        settings = replace(pretrained.ALL_WEIGHTS, seed=SEED)
        return fine_tune(resolve_path(PACKAGED), [("", text) for text in order], settings)
    made = world.build_world(SEED)
    base = world.base_model(made, 1_000_000, SEED)
    doses = [Dose(tuple(seen), passes)]
    how: dict[str, Any] = {"batch_size": BATCH_SIZE}
    return world.continued_model(made, base, doses, N_TOKENS, SEED, LEARNING_RATE, **how)


def audited(
    model: Path, data: Sequence[str], seen: Sequence[str], unseen: Sequence[str]
) -> dict[str, Any]:
    """What the command says of a model and a dataset, next to the truth."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, rows in (("data", data), ("unseen", unseen)):
            lines = "".join(json.dumps({"text": text}) + "\n" for text in rows)
            (folder / f"{file}.jsonl").write_text(lines)
        line = ["--model", str(model), "--data", str(folder / "data.jsonl"), "--unseen"]
        line += [str(folder / "unseen.jsonl"), "--methods", "min_k", "--fail-on", "shown"]
        code = command_line.main([*line, "--output", str(folder / "out")])
        found = json.loads((folder / "out/verdict.json").read_text())
    (row,) = [row for row in found["evidence"] if row["method"] == MIN_K]
    named = [data[row["index"]] for row in found["listed_rows"]]
    return {
        "n": len(data),
        "n_comparison": len(unseen),
        "n_seen": len(seen),
        "auc": row["value"],
        "p": row["p"],
        "verdict": found["verdicts"][0]["verdict"],
        "n_at_least": row["n_at_least"],
        "n_listed": len(named),
        "n_listed_seen": len({*named} & {*seen}),
        "exit_code": code,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--files", nargs=3, type=Path, help="rows in place of the news items")
    parser.add_argument("--cases", nargs="+", type=int, default=range(len(CASES)))
    parser.add_argument("--table", type=Path, default=TABLE)
    told, rows = parser.parse_args(), []
    for kind, n, passes in [CASES[number] for number in told.cases]:
        data, seen, unseen = news(n)
        if told.files:
            data, seen, unseen = (
                [json.loads(line)["text"] for line in file.read_text().splitlines()]
                for file in told.files
            )
        about = {"model": kind, "passes": passes}
        rows.append(about | audited(trained(kind, seen, passes), data, seen, unseen))
        print(rows[-1], flush=True)
    table = pd.DataFrame(rows).astype({"n_at_least": "Int64"}).round({"auc": 4, "p": 6})
    storage.write_csv(told.table, table)


if __name__ == "__main__":
    main()
