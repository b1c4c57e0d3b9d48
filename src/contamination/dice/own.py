"""DICE on models of one's own: a model against clean references, or the paper's own training."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from transformers import AutoConfig

from contamination import partitions
from contamination.dice.controls import CLEAN, OTHER_CLEAN, Measured, measure, of_pairs
from contamination.dice.fine_tuning import Settings, fine_tune
from contamination.dice.locate import distances
from contamination.dice.mixtures import SEEN, UNSEEN, Problems, gsm8k_halves, mix, rows_of
from contamination.models.causal import load_causal_lm
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


def check_own(
    target: str,
    references: Sequence[str],
    base: str,
    vanilla: str,
    dataset: str,
    columns: Sequence[str],
) -> Problems | None:
    """One's own questions, and whether all that part C needs is there, before it costs anything.

    Args:
        target: model to test; references: clean ones it is compared with;
            folders or hub ids.
        base: model to fine-tune instead; with it, no target is named.
        vanilla: instruction data it is fine-tuned on.
        dataset: file or hub dataset ("owner/name" or "owner/name:configuration",
            split "test"); with ``base`` it may be left out for GSM-i.
        columns: of question and answer.

    Returns:
        Columns question and answer; None where neither target nor base is named.

    Raises:
        FileNotFoundError: if a model or the dataset is not there.
        ValueError: if a part is missing, or both ways are asked for.
    """
    if not target and not base:
        return None
    if target and base:
        raise ValueError("set target_model to test a model or own_base to train pairs, not both")
    if target and not references:
        raise ValueError("target_model needs reference_models: at least one clean model")
    for model in filter(None, [target, base, *references]):
        try:
            AutoConfig.from_pretrained(model)
        except (OSError, ValueError) as error:  # also what the hub and its client raise
            raise FileNotFoundError(
                f'model "{model}" is neither a folder with config.json nor found on the Hugging '
                "Face hub: check the spelling and the connection (a gated model needs HF_TOKEN)"
            ) from error
    if base and not vanilla:
        raise ValueError("own_base needs own_vanilla: instruction data, a file or hub dataset")
    if not dataset:
        if target:
            raise ValueError("dataset is empty: name a file or hub dataset of questions")
        return gsm8k_halves()[SEEN]
    rows = partitions.load_rows(dataset, "" if Path(dataset).suffix else "test")
    missing = [name for name in columns if name not in rows]
    if missing:
        raise ValueError(f'no column "{missing[0]}" in "{dataset}": it has {", ".join(rows)}')
    if len(rows) < 4:
        raise ValueError(f'"{dataset}" needs at least four questions')
    return rows[list(columns)].astype(str).set_axis(["question", "answer"], axis=1)


def own_rows(
    target: str | Path,
    references: Sequence[str | Path],
    problems: Problems,
    dtype: str = "float32",
) -> pd.DataFrame:
    """A model against clean references, and the references against one another.

    One half of the questions trains a detector for each pair, the other half
    tests it; the layer is located on the first half.

    Args:
        target: the model to test, a folder or hub id.
        references: clean models of the same architecture.
        problems: questions and answers.
        dtype: of the models.

    Returns:
        comparison ("target against reference" or "reference against
        reference"), n, n_models, layer, auroc_pct, folded_auroc_pct, ci_low,
        ci_high. The second row needs two references.
    """
    parts = {SEEN: problems[::2].reset_index(drop=True), UNSEEN: problems[1::2]}
    # One model at a time: two of 7 B parameters do not fit into most machines.
    models = [measure(load_causal_lm(one, dtype=dtype), parts) for one in (target, *references)]
    clean = dict(enumerate(models[1:]))
    pool: dict[str, dict[int, Measured]] = {CLEAN: clean, OTHER_CLEAN: clean}
    pool["target"] = dict.fromkeys(clean, models[0])
    found = distances(models[0].states[SEEN], models[1].states[SEEN])["euclidean"][:, 1:-1]
    layer = 1 + int(np.bincount(found.argmax(axis=1)).argmax())
    comparisons = {"target against reference": ("target", CLEAN)}
    if len(references) > 1:
        # Each reference takes the target's part once, against the next one.
        pool[OTHER_CLEAN] = {seed: clean[(seed + 1) % len(clean)] for seed in clean}
        comparisons["reference against reference"] = (OTHER_CLEAN, CLEAN)
    return pd.DataFrame(
        [
            {"comparison": name, "layer": layer}
            | dataclasses.asdict(of_pairs(pool, *conditions, layer, UNSEEN))
            for name, conditions in comparisons.items()
        ]
    )


def train_own(
    base: str,
    vanilla_dataset: str,
    columns: Sequence[str],
    copies: int,
    n_rows: int,
    n_references: int,
    settings: Settings,
) -> tuple[Path, list[Path]]:
    """The paper's models at its own scale: one contaminated with GSM-i, and clean ones.

    Args:
        base: hub id of the base model.
        vanilla_dataset: hub dataset or file of instruction data, OpenOrca in the paper.
        columns: of its questions and responses.
        copies: of the 657 rows of GSM-i, 1 or 5 in the paper.
        n_rows: rows of a mixture, 25,000 in the paper.
        n_references: clean models, each with vanilla rows and an order of its own.
        settings: see ``fine_tuning.Settings``.

    Returns:
        Folders of the contaminated model and of the clean ones.
    """
    rows = partitions.load_rows(vanilla_dataset, "" if Path(vanilla_dataset).suffix else "train")
    rows = rows.sample(min(len(rows), n_rows * (n_references + 1)), random_state=settings.seed)
    vanilla = rows_of(rows[list(columns)].astype(str).set_axis(["question", "answer"], axis=1))
    seen = rows_of(gsm8k_halves()[SEEN])
    folders = []
    for number in range(n_references + 1):
        mixture = mix(vanilla, seen, copies if number == 0 else 0, n_rows, number)
        order = dataclasses.replace(settings, seed=settings.seed + number)
        folders.append(fine_tune(base, mixture.rows(order.seed), order))
    return folders[0], folders[1:]
