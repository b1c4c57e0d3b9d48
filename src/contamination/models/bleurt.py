"""BLEURT without its own package: BERT with a pooled score, its names mapped to transformers'.

A checkpoint in the format of bleurt-pytorch, such as ``lucadiliello/BLEURT-20``, is
a BERT encoder whose embeddings may be narrower than its layers, with one score at
the pooled first token. Token ids and scores are those of bleurt-pytorch 0.0.1,
which imports names that transformers 5 no longer has.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
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
)
from transformers.models.bert.modeling_bert import BertEmbeddings
from transformers.utils import cached_file

from contamination.models.loading import LanguageModel, load_pretrained

_RENAMED = {"bleurt.encoder.embedding_projection": "bert.embeddings.projection", "bleurt.": "bert."}
_NOT_LEARNT = "bleurt.embeddings.position_ids"


class BleurtModel(BertForSequenceClassification):
    """The scorer; its single logit is the score."""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        if config.embedding_size is not None:
            self.bert.embeddings = _NarrowEmbeddings(config)

    @classmethod
    def from_pretrained(cls, name: str, dtype: torch.dtype, **settings: Any) -> BleurtModel:
        """Errors as in transformers; ValueError if weights are missing or left over."""
        at = {"revision": settings["revision"]} if "revision" in settings else {}
        said, _ = PretrainedConfig.get_config_dict(name, **at)
        anew = ("model_type", "architectures", "id2label", "label2id", "_attn_implementation")
        said = {"embedding_size": None} | {k: v for k, v in said.items() if k not in anew}
        model = cls(BertConfig(**said, num_labels=1, attn_implementation="eager"))
        if path := _file(name, "model.safetensors", at):
            weights = load_file(path)
        else:
            path = _file(name, "pytorch_model.bin", at)
            weights = torch.load(path, map_location="cpu", weights_only=True)
        weights.pop(_NOT_LEARNT, None)
        for theirs, ours in _RENAMED.items():
            weights = {key.replace(theirs, ours, 1): value for key, value in weights.items()}
        missing, left_over = model.load_state_dict(weights, strict=False)
        if missing or left_over:
            raise ValueError(f'"{name}" is no BLEURT checkpoint: {[*missing, *left_over][0]}')
        return model.to(dtype)


class _NarrowEmbeddings(BertEmbeddings):
    def __init__(self, config: BertConfig):
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

    def __init__(self, encode: Callable[[list[str]], list[list[int]]], vocabulary: dict[str, int]):
        self._encode, self._vocabulary = encode, vocabulary
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
                lambda texts: words(texts, add_special_tokens=False).input_ids, words.get_vocab()
            )
        pieces = SentencePieceProcessor(model_file=_file(name, "spm.model", at))
        vocabulary = {pieces.id_to_piece(n): n for n in range(pieces.get_piece_size())}
        return BleurtTokenizer(pieces.encode, vocabulary)

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary

    def __call__(
        self, texts: str | list[str], others: Sequence[str] = (), max_length: int = 0, **_: Any
    ) -> BatchEncoding:
        """Padded batch of pairs, the longer of a pair cut first; of one text its bare ids."""
        if isinstance(texts, str):
            return BatchEncoding({"input_ids": self._encode([texts])[0]})
        ids, types = [], []
        for one, other in zip(*map(self._encode, (texts, others)), strict=True):
            while max_length and len(one) + len(other) > max_length - 3:
                (one if len(one) > len(other) else other).pop()
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


def load_bleurt(name_or_path: str | Path) -> LanguageModel:
    """Load a BLEURT checkpoint, such as ``lucadiliello/BLEURT-20``, in either weights' format."""
    settings = {"safetensors_only": False, "tokenizer_class": BleurtTokenizer}
    return LanguageModel(*load_pretrained(BleurtModel, name_or_path, **settings))


def score_pairs(
    scorer: LanguageModel,
    references: Sequence[str],
    candidates: Sequence[str],
    batch_size: int = 16,
) -> np.ndarray:
    """BLEURT of each candidate, shape (n,); about 0 to 1 for BLEURT-20, higher is closer.

    What exceeds the scorer's input length is cut.
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
