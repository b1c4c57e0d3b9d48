"""BLEURT by bleurt-pytorch.

transformers reads its weights: as safetensors where the checkpoint has them, else as tensors
alone (``weights_only``), so that no file can run code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers.utils import cached_file

from contamination.models.loading import LanguageModel, WholeModel, load_pretrained

PACKAGE = "bleurt-pytorch"  # who computes, as tables name it
_BATCH = 16  # pairs that are scored at a time


def load_bleurt(name_or_path: str | Path) -> LanguageModel:
    """Load a BLEURT checkpoint, such as ``lucadiliello/BLEURT-20``, in either weights' format.

    ``identity["bleurt_by"]`` of the scorer names the package. ImportError, in one line, where it
    cannot be imported.
    """
    try:
        from bleurt_pytorch import BleurtForSequenceClassification
    except ImportError as error:
        raise ImportError(
            f"{PACKAGE} cannot be imported with transformers {transformers.__version__}: install "
            f'"{PACKAGE}==0.0.1" with "transformers>=4.57,<5" ({error})'
        ) from error
    # A pair begins with [CLS] and never with a beginning-of-sequence token.
    whole = WholeModel(BleurtForSequenceClassification)
    model, tokenizer, identity = load_pretrained(
        whole, name_or_path, safetensors_only=False, tokenizer_class=_Tokenizer, bos=False
    )
    return LanguageModel(model, tokenizer, identity | {"bleurt_by": PACKAGE})


class _Tokenizer:
    @staticmethod
    def from_pretrained(name: str, revision: str | None) -> Any:
        # The package's own choice between the two tries one after the other, and without
        # protobuf the first attempt ends in an error that it does not expect.
        from bleurt_pytorch.bleurt.tokenization_bleurt_fast import BleurtTokenizerFast
        from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer

        missing = {"_raise_exceptions_for_missing_entries": False}
        has_words = cached_file(name, "vocab.txt", revision=revision, **missing)
        chosen = BleurtTokenizerFast if has_words else BleurtSPTokenizer
        at = {"revision": revision} if revision else {}
        return chosen.from_pretrained(name, **at)


def score_pairs(
    scorer: LanguageModel, references: Sequence[str], candidates: Sequence[str]
) -> np.ndarray:
    """BLEURT of each candidate, shape (n,); about 0 to 1 for BLEURT-20, higher is closer.

    What exceeds the scorer's input length is cut.
    """
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
