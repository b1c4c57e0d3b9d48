"""BLEURT by bleurt-pytorch, with weights that are read here.

They are read as safetensors where the checkpoint has them, else as tensors alone
(``weights_only``), so that no file can run code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file
from transformers import PretrainedConfig, PreTrainedModel
from transformers.utils import cached_file

from contamination.models.loading import LanguageModel, load_pretrained

_POSITION_IDS = "embeddings.position_ids"
PACKAGE = "bleurt-pytorch"  # who computes, as tables name it
_BATCH = 16  # pairs that are scored at a time


def load_bleurt(name_or_path: str | Path) -> LanguageModel:
    """Load a BLEURT checkpoint, such as ``lucadiliello/BLEURT-20``, in either weights' format.

    ``identity["bleurt_by"]`` of the scorer names the package. ImportError, in one line, where it
    cannot be imported.
    """
    try:
        import bleurt_pytorch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{PACKAGE} cannot be imported with transformers {transformers.__version__}: install "
            f'"{PACKAGE}==0.0.1" with "transformers>=4.57,<5" ({error})'
        ) from error
    # A pair begins with [CLS] and never with a beginning-of-sequence token.
    settings: dict[str, Any] = {
        "safetensors_only": False,
        "tokenizer_class": _Tokenizer,
        "bos": False,
    }
    model, tokenizer, identity = load_pretrained(_Model, name_or_path, **settings)
    return LanguageModel(model, tokenizer, identity | {"bleurt_by": PACKAGE})


class _Model:
    """The package's model with the weights that are read here."""

    @staticmethod
    def from_pretrained(
        name: str, dtype: torch.dtype, revision: str | None = None, **_: Any
    ) -> PreTrainedModel:
        config, weights = _config_and_weights(name, revision)
        from bleurt_pytorch import BleurtConfig, BleurtForSequenceClassification

        model: Any = BleurtForSequenceClassification(BleurtConfig(**config))
        return _with_weights(model, weights, name).to(dtype)


class _Tokenizer:
    @staticmethod
    def from_pretrained(name: str, revision: str | None) -> Any:
        # The package's own choice between the two tries one after the other, and without
        # protobuf the first attempt ends in an error that it does not expect.
        from bleurt_pytorch.bleurt.tokenization_bleurt_fast import BleurtTokenizerFast
        from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer

        has_words = _file(name, "vocab.txt", revision)
        chosen = BleurtTokenizerFast if has_words else BleurtSPTokenizer
        at = {"revision": revision} if revision else {}
        return chosen.from_pretrained(name, **at)


def _config_and_weights(name: str, revision: str | None) -> tuple[dict, dict]:
    said, _ = PretrainedConfig.get_config_dict(name, revision=revision)
    anew = ("model_type", "architectures", "id2label", "label2id", "_attn_implementation")
    config = {"embedding_size": None} | {k: v for k, v in said.items() if k not in anew}
    if path := _file(name, "model.safetensors", revision):
        return config, load_file(path)
    path = _file(name, "pytorch_model.bin", revision)
    return config, torch.load(path, map_location="cpu", weights_only=True)


def _with_weights(model: PreTrainedModel, weights: dict, name: str) -> PreTrainedModel:
    weights = {key: value for key, value in weights.items() if _POSITION_IDS not in key}
    missing, left_over = model.load_state_dict(weights, strict=False)
    wrong = [key for key in (*missing, *left_over) if _POSITION_IDS not in key]
    if wrong:
        raise ValueError(f'"{name}" is no BLEURT checkpoint: {wrong[0]}')
    return model


def _file(name: str, file: str, revision: str | None) -> str | None:
    return cached_file(name, file, revision=revision, _raise_exceptions_for_missing_entries=False)


def score_pairs(
    scorer: LanguageModel, references: Sequence[str], candidates: Sequence[str]
) -> np.ndarray:
    """BLEURT of each candidate, shape (n,); about 0 to 1 for BLEURT-20, higher is closer.

    What exceeds the scorer's input length is cut. ValueError if the two differ in number.
    """
    if len(references) != len(candidates):
        raise ValueError(f"{len(references)} references but {len(candidates)} candidates")
    scores = []
    for start in range(0, len(references), _BATCH):
        batch = slice(start, start + _BATCH)
        inputs = scorer.tokenizer(
            list(references[batch]),
            list(candidates[batch]),
            padding=True,
            truncation=True,
            max_length=scorer.context_length,
            return_tensors="pt",
        ).to(scorer.device)
        with torch.inference_mode():
            scores.append(scorer.model(**inputs).logits[:, 0].float().cpu().numpy())
    return np.concatenate(scores).astype(float) if scores else np.empty(0)
