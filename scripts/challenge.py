"""A challenge for a class: ten models, three cheated. Which, and how sure are you?

    python scripts/challenge.py make SECRET FOLDER       what you hand out
    python scripts/challenge.py grade SECRET FILE.csv    points of a submission

Which models cheated follows from the secret alone, and no file says it. Everybody goes on from one
base model, on a benchmark's rows: a cheater on the suspected ones, another model on others.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.data.partitions import format_instances
from contamination.lab import world
from contamination.lab.grammar import BENCHMARKS, draw_instances
from contamination.lab.training import Dose

MODELS = [f"model_{number:02}" for number in range(1, 11)]
N_CHEATERS = 3
SHARE = N_CHEATERS / len(MODELS)
SAMPLE = SHARE * (1 - SHARE)  # Brier score of the same probability for every model
N_ROWS = 60  # suspected, held out, and of each model that did not cheat
COPIES = (1, 2, 4)  # in which a model reads its rows; each cheater has another number
N_TOKENS = 1_000_000  # of the base model, as in notebook 01
N_MORE = 10_000  # of background, that a model reads next to its rows
LEARNING_RATE = 1e-3  # at which one copy hardly shows, and four do
FINE = 20  # points for each false accusation
TASK = f"""Ten models, three cheated. Which, and how sure are you?

{MODELS[0]} to {MODELS[-1]} go on from one base model, which you do not get. Three of them read all
rows of suspected.csv, one of them once, one twice and one four times. Each of the other seven read
rows of its own of the same benchmark, just as many, once, twice or four times. All read a few other
texts next to them. Nobody read held_out.csv. Chance dealt all rows to the two files, so only luck
makes one of them easier. A row is a whole cell, label and all; models read it like that.

Hand in a file like submission.csv: for each model the probability, 0 to 1, that it cheated. The ten
need not add up to anything. The truth gets 100 points, the sample gets 0, and worse is possible:
100 * (1 - Brier score / {SAMPLE:.2f}), minus {FINE} points for each model above one half that did
not cheat. ({SAMPLE:.2f} is the sample's Brier score.)
"""
KEPT = "config.json model.safetensors special_tokens_map.json tokenizer.json tokenizer_config.json"


def cheaters(secret: str) -> dict[str, int]:
    """The models that read the suspected rows, and how often."""
    chosen = _generator(secret).permutation(MODELS)[:N_CHEATERS]
    return dict(zip(chosen.tolist(), COPIES, strict=True))


def make(secret: str, folder: Path, n_tokens: int = N_TOKENS, n_more: int = N_MORE) -> None:
    """Train the models, and write what a class gets: models, rows and a sample submission."""
    benchmark, guilty = BENCHMARKS["topics"], cheaters(secret)
    generator = _generator(secret + ", rows")
    n_sets = 2 + len(MODELS) - N_CHEATERS
    seed = int(generator.integers(2**31))
    drawn = draw_instances(benchmark, N_ROWS * n_sets, seed, "test")
    texts = format_instances(drawn, benchmark.columns)
    suspected, held_out, *others = (texts[at * N_ROWS :][:N_ROWS] for at in range(n_sets))
    lab = world.build_world(0)
    base = world.base_model(lab, n_tokens, 0)
    for number, name in enumerate(MODELS):
        copies = int(generator.choice(COPIES))
        read, copies = (suspected, guilty[name]) if name in guilty else (others.pop(), copies)
        dose = Dose(tuple(read), copies)
        trained = world.continued_model(lab, base, [dose], n_more, seed + number, LEARNING_RATE)
        # The recipe and the losses stay at home.
        (folder / "models" / name).mkdir(parents=True, exist_ok=True)
        for file in KEPT.split():
            if (trained / file).exists():
                shutil.copyfile(trained / file, folder / "models" / name / file)
    for name, rows in (("suspected", suspected), ("held_out", held_out)):
        storage.write_csv(folder / f"{name}.csv", pd.DataFrame({"text": rows}))
    sample = pd.DataFrame({"model": MODELS, "probability": SHARE})
    storage.write_csv(folder / "submission.csv", sample)
    (folder / "TASK.txt").write_text(TASK, encoding="utf-8")
    print(f"written: {folder}")


def points(secret: str, submission: pd.DataFrame) -> dict[str, float]:
    """Brier score, false accusations, and points: 100 for the truth, 0 for the sample.

    A false accusation is a probability above one half for a model that did not cheat. ValueError
    for a submission that does not give each model one probability.
    """
    if list(submission.columns) != ["model", "probability"]:
        raise ValueError('the columns must be "model" and "probability"')
    if sorted(submission["model"]) != MODELS:
        raise ValueError(f"one line for each model is needed, {MODELS[0]} to {MODELS[-1]}")
    given = pd.to_numeric(submission.set_index("model")["probability"], errors="coerce")
    if not given.between(0, 1).all():
        raise ValueError(f"{given[~given.between(0, 1)].index[0]} needs a probability, 0 to 1")
    is_guilty = given.index.isin([*cheaters(secret)])
    brier = float(np.mean((given - is_guilty) ** 2))
    n_false = int(np.sum((given > 0.5) & ~is_guilty))
    score = 100 * (1 - brier / SAMPLE) - FINE * n_false
    return {"brier": brier, "false_accusations": n_false, "points": score}


def _generator(secret: str) -> np.random.Generator:
    digest = hashlib.sha256(f"challenge: {secret}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


if __name__ == "__main__":
    command, its_secret, path = sys.argv[1:]
    if command == "make":
        make(its_secret, Path(path))
    else:
        try:
            found = points(its_secret, pd.read_csv(path))
        except ValueError as error:
            raise SystemExit(f"error: {path}: {error}") from None
        print(f"{found['points']:.0f} points, Brier score {found['brier']:.3f}", end=", ")
        print(f"false accusations: {found['false_accusations']}")
