"""BLEURT: the package bleurt-pytorch where it can be imported, else the same model of our own.

A checkpoint in the format of bleurt-pytorch, such as ``lucadiliello/BLEURT-20``, is
a BERT encoder whose embeddings may be narrower than its layers, with one score at
the pooled first token. bleurt-pytorch 0.0.1 imports names that transformers 5 no
longer has; there a BERT with a pooled score, its names mapped to transformers',
gives the same token ids and scores.

Whoever computes, the weights are read here: as safetensors where the checkpoint has
them, else as tensors alone (``weights_only``), so that no file can run code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from sentencepiece import SentencePieceProcessor
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    BatchEncoding,
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.models.bert.modeling_bert import BertEmbeddings
from transformers.utils import cached_file

from contamination.models.loading import LanguageModel, load_pretrained

_RENAMED = {"bleurt.encoder.embedding_projection": "bert.embeddings.projection", "bleurt.": "bert."}
_POSITION_IDS = "embeddings.position_ids"
PACKAGE, OWN = "bleurt-pytorch", "our loader"  # who computes


def package() -> ModuleType | None:
    """bleurt-pytorch, or None where it is not installed or needs an older transformers."""
    try:
        import bleurt_pytorch
    except ImportError:
        return None
    return bleurt_pytorch


def load_bleurt(name_or_path: str | Path, by: str = "") -> LanguageModel:
    """Load a BLEURT checkpoint, such as ``lucadiliello/BLEURT-20``, in either weights' format.

    Args:
        name_or_path: as in ``loading.load_causal_lm``.
        by: ``PACKAGE`` or ``OWN``; by default the package where it can be imported.

    Returns:
        The scorer; ``identity["bleurt_by"]`` names who computes.
    """
    by = by or (PACKAGE if package() else OWN)
    model_class, tokenizer_class = {
        PACKAGE: (_OfPackage, _TokenizerOfPackage),
        OWN: (BleurtModel, BleurtTokenizer),
    }[by]
    # A pair begins with [CLS] and never with a beginning-of-sequence token.
    settings: dict[str, Any] = {
        "safetensors_only": False,
        "tokenizer_class": tokenizer_class,
        "bos": False,
    }
    model, tokenizer, identity = load_pretrained(model_class, name_or_path, **settings)
    return LanguageModel(model, tokenizer, identity | {"bleurt_by": by})


class _OfPackage:
    """The package's model with the weights that are read here."""

    @staticmethod
    def from_pretrained(name: str, dtype: torch.dtype, **settings: Any) -> PreTrainedModel:
        config, weights = _config_and_weights(name, settings)
        bleurt_pytorch: Any = package()
        model = bleurt_pytorch.BleurtForSequenceClassification(
            bleurt_pytorch.BleurtConfig(**config)
        )
        return _with_weights(model, weights, name).to(dtype)


class _TokenizerOfPackage:
    @staticmethod
    def from_pretrained(name: str, trust_remote_code: bool = False, **at: Any) -> Any:
        # The package's own choice between the two tries one after the other, and without
        # protobuf the first attempt ends in an error that it does not expect.
        from bleurt_pytorch.bleurt.tokenization_bleurt_fast import BleurtTokenizerFast
        from bleurt_pytorch.bleurt.tokenization_bleurt_sp import BleurtSPTokenizer

        chosen = BleurtTokenizerFast if _file(name, "vocab.txt", at) else BleurtSPTokenizer
        return chosen.from_pretrained(name, **at)


class BleurtModel(BertForSequenceClassification):
    """The scorer; its single logit is the score."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        if config.embedding_size is not None:
            self.bert.embeddings = _NarrowEmbeddings(config)

    @classmethod
    def from_pretrained(cls, name: str, dtype: torch.dtype, **settings: Any) -> BleurtModel:
        """Errors as in transformers; ValueError if weights are missing or left over."""
        config, weights = _config_and_weights(name, settings)
        config = BertConfig(**config, num_labels=1, attn_implementation="eager")
        for theirs, ours in _RENAMED.items():
            weights = {key.replace(theirs, ours, 1): value for key, value in weights.items()}
        return _with_weights(cls(config), weights, name).to(dtype)


def _config_and_weights(name: str, settings: dict[str, Any]) -> tuple[dict, dict]:
    at = {"revision": settings["revision"]} if "revision" in settings else {}
    said, _ = PretrainedConfig.get_config_dict(name, **at)
    anew = ("model_type", "architectures", "id2label", "label2id", "_attn_implementation")
    config = {"embedding_size": None} | {k: v for k, v in said.items() if k not in anew}
    if path := _file(name, "model.safetensors", at):
        return config, load_file(path)
    path = _file(name, "pytorch_model.bin", at)
    return config, torch.load(path, map_location="cpu", weights_only=True)


def _with_weights(model: PreTrainedModel, weights: dict, name: str) -> PreTrainedModel:
    weights = {key: value for key, value in weights.items() if _POSITION_IDS not in key}
    missing, left_over = model.load_state_dict(weights, strict=False)
    wrong = [key for key in (*missing, *left_over) if _POSITION_IDS not in key]
    if wrong:
        raise ValueError(f'"{name}" is no BLEURT checkpoint: {wrong[0]}')
    return model


class _NarrowEmbeddings(BertEmbeddings):
    def __init__(self, config: BertConfig) -> None:
        narrow = copy.copy(config)
        narrow.hidden_size = config.embedding_size
        super().__init__(narrow)
        self.projection = torch.nn.Linear(config.embedding_size, config.hidden_size)

    def forward(self, *arguments: Any, **inputs: Any) -> torch.Tensor:
        return self.projection(super().forward(*arguments, **inputs))


class BleurtTokenizer:
    """Batches of ``[CLS] text [SEP] other [SEP]`` as transformers 4 made them.

    ``encode`` gives token ids of each text, without special tokens.
    """

    is_fast, bos_token_id = False, None
    special_tokens_map = {"cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]"}  # noqa: RUF012

    def __init__(
        self,
        encode: Callable[[Sequence[str]], list[list[int]]],
        vocabulary: dict[str, int],
        is_word_piece: bool,
    ) -> None:
        self._encode, self._vocabulary = encode, vocabulary
        self._is_word_piece = is_word_piece
        self._cls, self._sep, self.pad_token_id = map(
            vocabulary.__getitem__, self.special_tokens_map.values()
        )

    @staticmethod
    def from_pretrained(name: str, trust_remote_code: bool = False, **at: Any) -> BleurtTokenizer:
        """What the checkpoint has: WordPiece in vocab.txt, as the older ones, or spm.model."""
        if _file(name, "vocab.txt", at):
            words = BertTokenizerFast.from_pretrained(
                name, trust_remote_code=trust_remote_code, **at
            )
            return BleurtTokenizer(
                lambda texts: words(texts, add_special_tokens=False).input_ids,
                words.get_vocab(),
                is_word_piece=True,
            )
        pieces = SentencePieceProcessor(model_file=_file(name, "spm.model", at))
        vocabulary = {pieces.id_to_piece(n): n for n in range(pieces.get_piece_size())}
        return BleurtTokenizer(pieces.encode, vocabulary, is_word_piece=False)

    def get_vocab(self) -> dict[str, int]:
        """The vocabulary: the id of each token."""
        return self._vocabulary

    def __call__(
        self, texts: str | Sequence[str], others: Sequence[str] = (), max_length: int = 0, **_: Any
    ) -> BatchEncoding:
        """Padded batch of pairs, the longer of a pair cut first; of one text its bare ids."""
        if isinstance(texts, str):
            return BatchEncoding({"input_ids": self._encode([texts])[0]})
        ids, types = [], []
        for one, other in zip(*map(self._encode, (texts, others)), strict=True):
            # Of two that became equally long transformers' fast tokenizer, which WordPiece has,
            # cuts the one that was not longer at first, the slow one always the other text.
            cuts_first = self._is_word_piece and len(one) <= len(other)
            while max_length and len(one) + len(other) > max_length - 3:
                is_longer = len(one) > len(other) or (cuts_first and len(one) == len(other))
                (one if is_longer else other).pop()
            ids.append(torch.tensor([self._cls, *one, self._sep, *other, self._sep]))
            types.append(torch.tensor([0] * (len(one) + 2) + [1] * (len(other) + 1)))
        return BatchEncoding(
            {
                "input_ids": pad_sequence(ids, True, self.pad_token_id),
                "token_type_ids": pad_sequence(types, True),
                "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], True),
            }
        )


def _file(name: str, file: str, at: dict[str, Any]) -> str | None:
    return cached_file(name, file, _raise_exceptions_for_missing_entries=False, **at)


def score_pairs(
    scorer: LanguageModel,
    references: Sequence[str],
    candidates: Sequence[str],
    batch_size: int = 16,
) -> np.ndarray:
    """BLEURT of each candidate, shape (n,); about 0 to 1 for BLEURT-20, higher is closer.

    What exceeds the scorer's input length is cut. ValueError if the two differ in number.
    """
    if len(references) != len(candidates):
        raise ValueError(f"{len(references)} references but {len(candidates)} candidates")
    scores = []
    for start in range(0, len(references), batch_size):
        batch = slice(start, start + batch_size)
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
