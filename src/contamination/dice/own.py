"""DICE on models of one's own: a model against clean references, or the paper's own training."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from contamination import partitions
from contamination.dice.experiments import of_pairs
from contamination.dice.fine_tuning import Settings, fine_tune
from contamination.dice.locate import distances
from contamination.dice.mixtures import SEEN, UNSEEN, Problems, gsm8k_halves, mix, rows_of
from contamination.dice.pool import CLEAN, OTHER_CLEAN, Measured, measure
from contamination.models import bos
from contamination.models.causal import load_causal_lm
from contamination.models.engine import check_engine, sweep
from contamination.models.loading import check_model
from contamination.parameters import OwnSettings, setting


@dataclass(frozen=True)
class OwnModels(OwnSettings):
    """Part C of notebook 05: one's own model and data."""

    target_model: str = setting("", "model to test, a folder or hub id, empty to skip")
    reference_models: list[str] = setting([], "clean models of the same base to compare it with")
    dataset: str = setting("", "questions to ask, a file or hub id; empty for GSM-i with own_base")
    question_column: str = setting("question", "column of the questions")
    answer_column: str = setting("answer", "column of the answers")
    own_base: str = setting("", "model to fine-tune clean and contaminated instead of target_model")
    own_vanilla: str = setting("", "its instruction data, a file or hub id")
    vanilla_columns: list[str] = setting(
        ["question", "response"], "columns of the instruction data"
    )
    own_copies: int = setting(5, "copies of the 657 GSM-i rows")
    own_rows: int = setting(25000, "rows of a mixture")
    own_learning_rate: float = setting(1.0e-5, "of its fine-tuning")
    own_batch_size: int = setting(1, "rows per step of its fine-tuning")
    n_references: int = setting(3, "clean models that are trained")
    lora: bool = setting(False, "adapters (peft) instead of all weights")
    target_dtype: str = setting("float32", "float32 or bfloat16")
    bos: str = setting("", bos.MEANING)
    engine: str = setting("local", '"ray" trains and measures on a cluster, see docs/cluster.md')
    ray_address: str = setting("", 'its address, "auto" for the one of this machine')

    def __post_init__(self) -> None:
        check_engine(self.engine)

    def cluster(self) -> dict[str, str]:
        """Where the work runs, as ``models.engine`` takes it."""
        return {"engine": self.engine, "ray_address": self.ray_address}


def check_own(mine: OwnModels) -> Problems | None:
    """One's own questions, and whether all that part C needs is there, before it costs anything.

    Args:
        mine: models are folders or hub ids, ``dataset`` a file or hub dataset
            ("owner/name" or "owner/name:configuration", split "test").

    Returns:
        Columns question and answer; None where neither ``target_model`` nor
        ``own_base`` is named.

    Raises:
        FileNotFoundError: if a model or the dataset is not there.
        ValueError: if a part is missing, or both ways are asked for.
    """
    target, base, dataset = mine.target_model, mine.own_base, mine.dataset
    if not target and not base:
        return None
    if target and base:
        raise ValueError("set target_model to test a model or own_base to train pairs, not both")
    if target and not mine.reference_models:
        raise ValueError("target_model needs reference_models: at least one clean model")
    for model in filter(None, [target, base, *mine.reference_models]):
        check_model(model)
    if base and not mine.own_vanilla:
        raise ValueError("own_base needs own_vanilla: instruction data, a file or hub dataset")
    if base:
        _vanilla(mine)
    if not dataset:
        if target:
            raise ValueError("dataset is empty: name a file or hub dataset of questions")
        return gsm8k_halves()[SEEN]
    rows = _questions(dataset, "test", [mine.question_column, mine.answer_column])
    if len(rows) < 4:
        raise ValueError(f'"{dataset}" needs at least four questions')
    return rows


def _vanilla(mine: OwnModels) -> Problems:
    return _questions(mine.own_vanilla, "train", mine.vanilla_columns)


def _questions(dataset: str, split: str, columns: Sequence[str]) -> Problems:
    """Two columns of a file, or of a split of a hub dataset, as question and answer."""
    rows = partitions.load_rows(dataset, "" if Path(dataset).suffix else split)
    missing = [name for name in columns if name not in rows]
    if missing:
        raise ValueError(f'no column "{missing[0]}" in "{dataset}": it has {", ".join(rows)}')
    return rows[list(columns)].astype(str).set_axis(["question", "answer"], axis=1)


def own_rows(mine: OwnModels, problems: Problems) -> pd.DataFrame:
    """A model against clean references, and the references against one another.

    One half of the questions trains a detector for each pair, the other half
    tests it; the layer is located on the first half.

    Args:
        mine: target and references; these are clean models of the same architecture.
        problems: questions and answers.

    Returns:
        comparison ("target against reference" or "reference against
        reference"), n, n_models, layer, auroc_pct, folded_auroc_pct, ci_low,
        ci_high, bos ("first" or "none": what texts of the target begin with).
        The second row needs two references.
    """
    parts = {SEEN: problems[::2].reset_index(drop=True), UNSEEN: problems[1::2]}
    # One model at a time: two of 7 B parameters do not fit into most machines.
    how = {"dtype": mine.target_dtype, "bos": bos.wanted(mine.bos), **mine.cluster()}
    models, begins = [], []
    for one in (mine.target_model, *mine.reference_models):
        lm = load_causal_lm(one, **how)
        begins.append(lm.identity["bos"])
        models.append(measure(lm, parts))
        del lm
    clean = dict(enumerate(models[1:]))
    pool: dict[str, dict[int, Measured]] = {CLEAN: clean, OTHER_CLEAN: clean}
    pool["target"] = dict.fromkeys(clean, models[0])
    found = distances(models[0].states[SEEN], models[1].states[SEEN])["euclidean"][:, 1:-1]
    layer = 1 + int(np.bincount(found.argmax(axis=1)).argmax())
    comparisons = {"target against reference": ("target", CLEAN)}
    if len(clean) > 1:
        # Each reference takes the target's part once, against the next one.
        pool[OTHER_CLEAN] = {seed: clean[(seed + 1) % len(clean)] for seed in clean}
        comparisons["reference against reference"] = (OTHER_CLEAN, CLEAN)
    return pd.DataFrame(
        [
            {"comparison": name, "layer": layer}
            | dataclasses.asdict(of_pairs(pool, *conditions, layer, UNSEEN))
            | {"bos": begins[0]}
            for name, conditions in comparisons.items()
        ]
    )


def train_own(mine: OwnModels) -> OwnModels:
    """The paper's models at its own scale: one contaminated with GSM-i, and clean ones.

    Every model has an order and vanilla rows drawn by a seed of its own.

    Returns:
        The settings with the folders of the contaminated model as target and of
        the clean ones as references.
    """
    settings = Settings(
        mine.own_learning_rate, mine.own_batch_size, mine.lora, dtype=mine.target_dtype
    )
    vanilla = _vanilla(mine)
    n_models = 1 + mine.n_references
    n_drawn = min(len(vanilla), mine.own_rows * n_models)
    vanilla = rows_of(vanilla.sample(n_drawn, random_state=settings.seed))
    seen = rows_of(gsm8k_halves()[SEEN])
    jobs = []
    for number in range(n_models):
        mixture = mix(vanilla, seen, 0 if number else mine.own_copies, mine.own_rows, number)
        order = dataclasses.replace(settings, seed=settings.seed + number)
        jobs.append((mine.own_base, mixture.rows(order.seed), order))
    folders = [str(folder) for folder in sweep(fine_tune, jobs, **mine.cluster())]
    return dataclasses.replace(mine, target_model=folders[0], reference_models=folders[1:])
