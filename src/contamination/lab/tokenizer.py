"""The lab's tokenizer: byte-level BPE with digits tokenised singly."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from contamination.core import storage

BOS, EOS, PAD, MASK = "<s>", "</s>", "<pad>", "<mask>"
CONTEXT = 1024
_SETTINGS = {
    "bos_token": BOS,
    "eos_token": EOS,
    "pad_token": PAD,
    "mask_token": MASK,
    "clean_up_tokenization_spaces": False,
    "model_input_names": ["input_ids", "attention_mask"],
}


def train_tokenizer(
    texts: Iterable[str], vocabulary: int = 4096, context: int = CONTEXT
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer; the same texts in the same order give the same tokenizer.

    Train it on background and on draws that are used nowhere else, so that no token owes its
    existence to a member. Called on a text it puts the beginning-of-sequence token first, as
    the models are trained. ``vocabulary`` includes special tokens and 256 bytes; ``context``,
    the longest sequence the models take, is stored with the tokenizer.
    """
    tokenizer = Tokenizer(models.BPE())
    # One token per digit lets a small model learn to calculate.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BOS, EOS, PAD, MASK],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
    )
    return tokenizer_of(tokenizer, context)


def tokenizer_of(backend: Tokenizer, context: int = CONTEXT) -> PreTrainedTokenizerFast:
    """Merges, vocabulary and rules as the tokenizer of a model of ``context`` tokens."""
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=context, **_SETTINGS)


def tokenizer_files(tokenizer: PreTrainedTokenizerFast) -> dict[str, object]:
    """File name to JSON value: what ``AutoTokenizer.from_pretrained`` reads."""
    return {
        "tokenizer.json": _backend(tokenizer),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": tokenizer.model_max_length,
            **_SETTINGS,
        },
    }


def tokenizer_hash(tokenizer: PreTrainedTokenizerFast) -> str:
    """SHA-256 of the merges, the vocabulary and the rules around them."""
    return storage.hash_of(_backend(tokenizer))


def _backend(tokenizer: PreTrainedTokenizerFast) -> object:
    return json.loads(tokenizer.backend_tokenizer.to_str())
