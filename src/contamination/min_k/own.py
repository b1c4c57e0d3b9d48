"""One's own model and passages: part C of notebook 04, and what the case studies share with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from contamination import partitions, scores
from contamination.min_k.blind import n_folds
from contamination.models import bos
from contamination.models.causal import load_causal_lm, load_masked_lm
from contamination.models.engine import check_engine
from contamination.models.loading import DTYPES, CausalLM, MaskedLM, check_model
from contamination.parameters import OwnSettings, setting


@dataclass(frozen=True)
class OwnTarget(OwnSettings):
    """The model to test."""

    target_model: str = setting("", "model to test, a folder or hub id, empty to skip")
    target_revision: str = setting("", "its commit")
    target_dtype: str = setting("float32", "float32, bfloat16 or float16")
    bos: str = setting("", bos.MEANING)
    device_map: str = setting("", '"auto" spreads a large model over the GPUs')
    safetensors_only: bool = setting(True, "false also reads weights in the older PyTorch format")
    engine: str = setting("local", '"ray" computes on a cluster, see docs/cluster.md')
    ray_address: str = setting("", 'its address, "auto" for the one of this machine')

    def __post_init__(self) -> None:
        check_engine(self.engine)
        bos.wanted(self.bos)

    def load(self) -> CausalLM:
        """The model itself; errors as in ``models.causal.load_causal_lm``."""
        return load_causal_lm(
            self.target_model,
            self.target_revision or None,
            self.target_dtype,
            device_map=self.device_map or None,
            safetensors_only=self.safetensors_only,
            bos=bos.wanted(self.bos),
            engine=self.engine,
            ray_address=self.ray_address,
        )


@dataclass(frozen=True)
class OwnPassages(OwnTarget):
    """Part C of notebook 04: one's own model and data."""

    reference_model: str = setting("", "smaller model of the same training data, empty for none")
    neighbor_model: str = setting("", "fill-mask model that writes neighbours, empty for none")
    dataset: str = setting("", "labelled file (JSONL, CSV, Parquet) or hub id")
    dataset_splits: list[str] = setting([], "splits of a hub dataset, none for a file")
    text_column: str = setting("input", "column with the passages")
    label_column: str = setting("label", "column with 1 for members, 0 for non-members")
    non_member_dataset: str = setting("", "non-members, where dataset holds members alone")
    dataset_revision: str = setting("", "commit of a hub dataset")
    max_samples: int = setting(0, "passages to score of each split, 0 means all")


def own_passages(
    mine: OwnPassages, k_percents: Sequence[float] = ()
) -> dict[str, tuple[list[str], np.ndarray]]:
    """One's own passages, and whether all that a run needs is there, before it costs anything.

    Args:
        mine: model and data; without a model there is nothing to check but ``k_percents``.
        k_percents: shares of tokens that will be asked for.

    Returns:
        Name of the dataset with its split to passages and their membership;
        empty where no model is named.

    Raises:
        FileNotFoundError: if a model or the dataset is not there.
        ValueError: if a value is out of range, or the passages or labels do not serve.
    """
    for k_percent in k_percents:
        scores.min_k_score(np.array([-1.0]), k_percent)
    if bool(mine.target_model) != bool(mine.dataset):
        missing = "dataset" if mine.target_model else "target_model"
        raise ValueError(f"{missing} is empty: part C needs a model and a dataset, or neither")
    if not mine.target_model:
        return {}
    models = [mine.target_model, mine.reference_model, mine.neighbor_model]
    check_models(models, mine.target_dtype, mine.target_revision)
    text, label = mine.text_column, mine.label_column
    passages = {}
    for split in mine.dataset_splits or [""]:
        rows = partitions.load_rows(mine.dataset, split, mine.dataset_revision)
        if mine.non_member_dataset:
            others = partitions.load_rows(mine.non_member_dataset, split, mine.dataset_revision)
            both = [rows.assign(**{label: 1}), others.assign(**{label: 0})]
            rows = pd.concat(both, ignore_index=True)
        texts, is_member = partitions.labelled_passages(rows, text, label, mine.max_samples)
        if n_folds(is_member) < 2:
            raise ValueError(f'"{mine.dataset}" needs at least two members and two non-members')
        # Tables hold no path of the machine.
        path = Path(mine.dataset)
        name = path.name if path.is_absolute() else mine.dataset
        passages[f"{name} {split}".strip()] = texts, is_member
    return passages


def load_models(mine: OwnPassages) -> tuple[CausalLM, CausalLM | None, MaskedLM | None]:
    """The model to test, its reference and the one that writes neighbours; None where not named."""
    how = {"dtype": mine.target_dtype, "safetensors_only": mine.safetensors_only}
    how["bos"] = bos.wanted(mine.bos)
    reference, masked = mine.reference_model, mine.neighbor_model
    return (
        mine.load(),
        load_causal_lm(reference, **how) if reference else None,
        load_masked_lm(masked) if masked else None,
    )


def labels_of(target: CausalLM, reference: CausalLM | None) -> dict[str, object]:
    """Columns model, n_parameters and reference_model of ``min_k_auc.csv``."""
    return {
        "model": target.identity["model"],
        "n_parameters": target.n_parameters,
        "reference_model": reference.identity["model"] if reference else "",
    }


def check_models(models: Sequence[str], dtype: str, revision: str = "") -> None:
    """Whether models are there, before anything costs time.

    Args:
        models: folders or hub ids; empty ones are not used.
        dtype: of the models.
        revision: commit of the first one.

    Raises:
        FileNotFoundError: if one is neither a folder nor on the hub.
        ValueError: if the dtype is unknown.
    """
    if dtype not in DTYPES:
        raise ValueError(f'target_dtype must be one of {", ".join(DTYPES)}, got "{dtype}"')
    for model in filter(None, models):
        check_model(model, revision if model == models[0] else "")
