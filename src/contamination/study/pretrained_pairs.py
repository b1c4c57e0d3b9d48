"""Five more pairs of the real model, which ``docs/protocol_2.md`` fixes: two models of each unit.

The base model and the model that saw all conditions at four copies are scored by the four
detectors of tokens. The recipe is that of ``study.pretrained``, whose units are the pilot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from contamination.dcq.quizzes import released_quizzes
from contamination.models.local import CausalLM, load_causal_lm, n_tokens
from contamination.models.source import PACKAGED, resolve_path
from contamination.study import pretrained, protocol, scoring, spot_check, store
from contamination.study.arms import LabModel
from contamination.study.conditions import BASE, CLEAN, DOSED, SWAP
from contamination.study.released_rows import (
    CONFIRMATORY,
    RELEASED,
    check_unit,
    datasets_of,
    deal,
)

NAME = "pairs"  # of the parts of the ledger; those of the first edition begin with "pretrained"
COPIES = pretrained.FEW_COPIES
# Of a unit, on average; one core trains on 130 tokens a second and scores 300.
TOKENS_SEEN, TOKENS_SCORED, MINUTES = 59_000, 54_000, 11


def plan(numbers: Sequence[int]) -> str:
    """What units will take, in one line; FileNotFoundError without the model or the rows."""
    resolve_path(PACKAGED)
    released_quizzes()
    return (
        f"{NAME}: {len(numbers)} of {len(CONFIRMATORY)} units to do, each about {TOKENS_SEEN:,} "
        f"tokens to train on and {TOKENS_SCORED:,} to score, {MINUTES} minutes on one core"
    )


def write_unit(folder: Path, name: str, about: Mapping[str, Any], number: int) -> None:
    """``score_unit`` as files, ``about`` joined; the trained model is then removed.

    ValueError for a number that is none of ``CONFIRMATORY``.
    """
    check_unit(number, CONFIRMATORY)
    models = train_models(Path(resolve_path(PACKAGED)), released_quizzes(), number)
    scores, sets, made_by = score_unit(models, number)
    store.write(folder, name, store.Ledger(scores, sets, {**made_by, **about}))
    pretrained.remove_trained(models)


def train_models(base: Path, quizzes: pd.DataFrame, number: int) -> list[LabModel]:
    """The base model, and the model that saw all conditions of a unit ``COPIES`` times.

    As in the first edition it saw the rows of the swap arm too; no detector is asked about them.
    """
    datasets = deal(quizzes, number)
    del datasets[CLEAN]  # which no model of these pairs sees
    every = tuple(datasets.values())
    settings = pretrained.READING
    folder = pretrained.train_on_datasets(base, every, COPIES, settings, number)
    return [
        LabModel(BASE, number, RELEASED, 0, base, every),
        LabModel(DOSED, number, RELEASED, COPIES, folder, every),
    ]


def score_unit(models: Sequence[LabModel], number: int) -> store.Ledger:
    """One part of the ledger: both models of a unit, scored by the four detectors of tokens.

    They are asked about the rows of the four compared conditions, and about fresh rows.
    """
    asked = [
        replace(model, datasets=tuple(d for d in model.datasets if d.condition != SWAP))
        for model in models
    ]
    rows, seconds = scoring.score_models(asked, pretrained.OF_TOKENS)
    about = {
        "units": [number],
        "copies": [COPIES],
        "datasets": datasets_of(number),
        "base": PACKAGED,
        "training": {"adapters": asdict(pretrained.READING)},
        "tokens_seen": _tokens_seen(load_causal_lm(models[0].folder), models[-1]),
        "environment": spot_check.environment(),
        "models": {f"{number} {model.kind} {model.copies}": model.folder.name for model in models},
        "seconds": scoring.by_detector(seconds),
    }
    return store.Ledger(rows, protocol.sets_of(rows), about)


def _tokens_seen(lm: CausalLM, model: LabModel) -> dict[str, int]:
    """Tokens that a model saw of each condition, all copies together.

    The benchmark rows are the whole training, so a condition's share is its part of the sum.
    """
    seen = {one.condition: one.read for one in model.datasets if one.read}
    return {
        condition: sum(
            int(n_tokens(lm.tokenizer, versions[place % len(versions)]).sum())
            for place in range(model.copies)
        )
        for condition, versions in seen.items()
    }
