"""Write docs/explore.html: four experiments to play with, in one file that asks no network.

    python scripts/explore.py outputs/reference/demo/tables docs/explore.html

Its numbers are those of the stored tables and of the study's ledger, its cards those of lesson 02.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.dcq import controls, quizzes
from contamination.study import placement, power, pretraining, scores
from contamination.study.assignment import HELD_OUT
from contamination.study.crossed import CrossedScores
from contamination.study.row_pools import BENCHMARKS, DOSES

TEMPLATE = Path(__file__).with_name("explore_page.html")
STUDIES = {"small": pretraining.NAME, "larger": pretraining.LARGER}
# Bars of the histograms, in standard deviations; the first and the last take what lies beyond.
EDGES = np.linspace(-4, 6, 41)
ACCUSED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # shares of held-out rows above a threshold
DIGITS = 6


def cards() -> list[dict]:
    """The five quizzes of lesson 02: texts, place of the original, what each rule finds."""
    items = quizzes.invented_quizzes()
    places = np.random.default_rng(0).choice(list("ABCD"), len(items))
    found = []
    for row, place in enumerate(places):
        (texts,) = quizzes.quiz_options(items.iloc[[row]], "standard", place)
        picked = {
            name: controls.pick_letters(rule(texts))[0] for name, rule in controls.RULES.items()
        }
        shares = {name: (place in ties) / len(ties) for name, ties in picked.items()}
        found.append({"texts": list(texts), "original": "ABCD".index(place), "rules": shares})
    return found


def quiz(tables: Path) -> dict:
    """The cards, and the mean over the paper's datasets of what GPT-4 and the rules find there."""
    published, rules = (
        pd.read_csv(tables / f"{name}.csv").query("model == 'GPT-4'")
        for name in ("dcq_published", "dcq_controls")
    )
    shares = rules.groupby("control")["max_pct"].mean()
    return {"cards": cards(), "gpt4": published["max_pct"].mean(), "rules": shares.to_dict()}


def bars(pools: list[CrossedScores], dose: int) -> list[int]:
    """Rows of a dose in each bar, by distance from the mean of the model's held-out rows."""
    distances = []
    for pool in pools:
        for values, copies in zip(pool.scores, pool.copies, strict=True):
            held_out = values[copies == HELD_OUT]
            distances.append((values[copies == dose] - held_out.mean()) / held_out.std())
    inside = np.clip(np.concatenate(distances), EDGES[0], EDGES[-1] - 1e-9)
    return np.histogram(inside, EDGES)[0].tolist()


def named(pools: list[CrossedScores], dose: int) -> list[list[float]]:
    """Shares of seen and of held-out rows above each threshold, each model with its own."""
    found = [[power.rates_by_model(pool, dose, share) for pool in pools] for share in ACCUSED]
    return np.mean(found, axis=(1, 3)).T.tolist()


def group(pools: list[CrossedScores], dose: int, auc: pd.Series) -> dict:
    """What the page shows of rows of one dose; ``auc`` has their AUC and its interval."""
    ends = dict(zip(("auc", "low", "high"), auc[["auc", "ci_low", "ci_high"]], strict=True))
    return {**ends, "bars": bars(pools, dose), "caught": named(pools, dose)[0]}


def dial(tables: Path) -> dict:
    """Scores of seen and held-out rows, by size of the models, detector and exposure."""
    names = ("pretraining_detection", "pretraining_controls")
    aucs = pd.concat([pd.read_csv(tables / f"{name}.csv") for name in names])
    aucs = aucs.set_index(["models", "detector", "copies"])
    frames = {size: scores.read_scores(name) for size, name in STUDIES.items()}
    detectors, found = shown_detectors(frames.values()), {}
    for size, frame in frames.items():
        found[size] = {}
        by_part = placement.timing(frame, detectors).set_index(["detector", "part"])
        for detector in detectors:
            of_benchmark = scores.crossed_scores(frame, detector)
            pools = [*of_benchmark.values()]
            parts = placement.parts_of_training(of_benchmark, frame)
            shown = scores.display_name(detector)
            groups = {str(dose): group(pools, dose, aucs.loc[size, shown, dose]) for dose in DOSES}
            for part in range(1, placement.N_PARTS + 1):
                groups[f"1/{part}"] = group(parts, part, by_part.loc[shown, str(part)])
            found[size][shown] = {
                "groups": groups,
                "held_out": bars(pools, HELD_OUT),
                "accused": named(pools, DOSES[0])[1],
            }
    return {"edges": EDGES.tolist(), "shares": ACCUSED, "models": found}


def shown_detectors(frames: Iterable[pd.DataFrame]) -> list[str]:
    """Detectors that score all benchmarks in models of both sizes, and two controls.

    Without those that score all rows of some model alike, whose histogram would be one bar.
    """
    known, asked = (*scores.DETECTORS, *scores.CONTROLS[:2]), []
    for frame in frames:
        of = {name: scores.crossed_scores(frame, name) for name in known}
        asked += [
            {
                name
                for name, pools in of.items()
                if len(pools) == len(BENCHMARKS)
                and all(np.ptp(pool.scores, axis=1).all() for pool in pools.values())
            }
        ]
    return [name for name in known if all(name in names for names in asked)]


def audits(n: int, shares: list[float]) -> dict:
    return {"n": int(n), "accused": [round(n * share) for share in shares]}


def clean(tables: Path) -> dict:
    """How many audits accuse models that saw neither set, by what differs between the sets."""
    length = pd.read_csv(tables / "pretraining_length.csv")
    shift = pd.read_csv(tables / "pretraining_shift.csv")
    dated = shift[shift["shift"].eq("date")].set_index("detector")
    found = {}
    for detector, rows in length.groupby("detector", sort=False):
        # From held-out rows that are much shorter than the suspected ones to much longer ones.
        shares = [*rows["rate_longer"][::-1], *rows["rate_shorter"][1:]]
        found[detector] = {"length": audits(rows["n_pairs"].iloc[0], shares)}
        if detector in dated.index:
            row = dated.loc[detector]  # set A is the older one
            found[detector]["date"] = audits(row["n_sets"], [row["rate_b"], row["rate_a"]])
    return found


def rows(tables: Path) -> dict:
    """AUC, and the rows that an audit needs, by size, detector and copies."""
    table, found = pd.read_csv(tables / "pretraining_rows.csv"), {}
    for size, detector, copies, auc, needed in table[
        ["models", "detector", "copies", "auc", "rows_needed"]
    ].itertuples(index=False):
        of = found.setdefault(size, {}).setdefault(detector, {})
        of[str(copies)] = {"auc": auc, "needed": needed if np.isfinite(needed) else None}
    return found


def rounded(value):
    """The same with numbers that are short enough for a page."""
    if isinstance(value, dict):
        return {str(key): rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return round(float(value), DIGITS) if isinstance(value, float) else value


def data(tables: Path) -> dict:
    """All that the page knows."""
    return rounded({part.__name__: part(tables) for part in (quiz, dial, clean, rows)})


def main(tables: Path, page: Path) -> None:
    # No text can end the script that holds it.
    text = json.dumps(data(tables), separators=(",", ":")).replace("<", "\\u003c")
    storage.write_text(page, TEMPLATE.read_text().replace("{{data}}", text))
    print(f"written: {page}, {page.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
