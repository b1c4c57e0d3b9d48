"""Train the detector study's models, score them, and write a ledger of the package.

    python scripts/ledger.py pilot --units 1 2 3 --copies 3 12 --benchmarks topics

Models and scores of single requests come from the cache where they are there, so that an
interrupted run goes on. Detectors may be scored by several processes: each names its own with
--detectors and a file with --part, and a last one joins them with --join.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import pandas as pd

from contamination.detectors import arms, catalogue, constat, protocol, scoring
from contamination.lab import recipes, world
from contamination.ledger import store
from contamination.models.causal import load_causal_lm
from contamination.own import lab_models

N_TOKENS = {arms.CLEAN: 20_000, arms.DOSED: 10_000, arms.LATER: 10_000, arms.LONG: 100_000}
TRAINING = {"learning_rate": lab_models.LEARNING_RATE, "batch_size": lab_models.BATCH_SIZE}
N_BACKGROUND_TOKENS = 1_000_000
ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--units", type=int, nargs="+", required=True)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 3, 12])
    parser.add_argument("--benchmarks", nargs="+", default=["topics", "entailment", "grade_school"])
    parser.add_argument("--detectors", nargs="+", help="names; all of them by default")
    parser.add_argument("--part", type=Path, help="write what was scored here")
    parser.add_argument("--join", type=Path, nargs="+", default=[], help="parts to join")
    asked = parser.parse_args()
    parts = [store.read(asked.name, path) for path in asked.join] or [score(asked)]
    if asked.part:
        asked.part.mkdir(parents=True, exist_ok=True)
        store.write(asked.part, asked.name, parts[0])
        return
    about = parts[0].about
    about["protocol_sha256"] = hashlib.sha256((ROOT / "docs/protocol.md").read_bytes()).hexdigest()
    about["seconds"] = [row for part in parts for row in part.about["seconds"]]
    about["models"] = {name: h for part in parts for name, h in part.about["models"].items()}
    scores, sets = (pd.concat([part[n] for part in parts], ignore_index=True) for n in (0, 1))
    scores = scores.drop_duplicates([*protocol.KEY, "row"])
    order = [*catalogue.BY_NAME, scoring.TEXT_ALONE]
    scores = scores.sort_values("detector", key=lambda c: c.map(order.index), kind="stable")
    about["rows"] = len(scores)
    folder = ROOT / "src/contamination/ledger"
    store.write(folder, asked.name, store.Ledger(scores.reset_index(drop=True), sets, about))


def score(asked: argparse.Namespace) -> store.Ledger:
    lab = world.build_world(0)
    models, whole = [], []
    for unit in asked.units:
        base = world.base_model(lab, N_BACKGROUND_TOKENS, unit)
        for benchmark in asked.benchmarks:
            place = (lab, base, unit, benchmark, asked.copies)
            models += arms.models_of(*place, N_TOKENS, **TRAINING)
            whole += arms.whole_set_models(*place, N_TOKENS, **TRAINING)
            print(f"unit {unit}, {benchmark}: {len(models) + len(whole)} models", flush=True)
    names = asked.detectors
    rows, sets = (
        [d for d in detectors if names is None or d.name in names]
        for detectors in ((*catalogue.OF_ROWS, *scoring.CONTROLS), catalogue.OF_SETS)
    )
    scores, seconds = scoring.score_models(models, rows) if rows else (scoring.NO_SCORES, None)
    if names is None or scoring.TEXT_ALONE in names:
        scores = pd.concat([scores, scoring.text_alone(models)], ignore_index=True)
    of_sets, seconds_of_sets = scoring.score_sets(whole, sets)
    if arms.WORD_PROBLEMS in asked.benchmarks and (names is None or constat.NAME in names):
        paths = arms.reference_models(lab, N_BACKGROUND_TOKENS)
        detector = constat.constat_detector([load_causal_lm(path) for path in paths])
        problems = [model for model in models if model.benchmark == arms.WORD_PROBLEMS]
        inflated, seconds_inflated = scoring.score_sets(problems, [detector])
        of_sets = pd.concat([of_sets, inflated], ignore_index=True)
        seconds_of_sets = pd.concat([seconds_of_sets, seconds_inflated])
    about = {
        "units": asked.units,
        "copies": asked.copies,
        "n_background_tokens": N_BACKGROUND_TOKENS,
        "n_tokens": N_TOKENS,
        "training": TRAINING,
        "environment": recipes.environment("cpu"),
        "models": {
            f"{m.unit} {m.benchmark} {m.kind} {m.copies} {m.datasets[0].condition}": (
                world.describe(m.folder)["recipe_hash"]
            )
            for m in [*models, *whole]
        },
        "seconds": json.loads(
            pd.concat([seconds, seconds_of_sets])
            .groupby("detector", sort=False)[["n_rows", "seconds"]]
            .sum()
            .round(1)
            .reset_index()
            .to_json(orient="records")
        ),
    }
    return store.Ledger(scores, of_sets, about)


if __name__ == "__main__":
    main()
