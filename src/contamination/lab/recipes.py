"""A model is its recipe: what it read and how. Machine and versions stand beside it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import tokenizers
import torch
import transformers
from transformers import PreTrainedTokenizerFast

from contamination.core import storage
from contamination.lab.tokenizer import tokenizer_hash
from contamination.models.loading import torch_version

# Raise when packing, training or saving changes what a recipe becomes.
CODE_SCHEMA = 1
OBJECTIVES = ("causal", "masked")
SCHEDULES = ("cosine", "linear", "constant")
DTYPES = ("float32", "bfloat16")

# A text, or a prompt and a response of which only the response is learned.
Text = str | tuple[str, str]


@dataclass(frozen=True)
class Dose:
    """Texts that a model reads ``copies`` times each, spread evenly over its training.

    ``labels``: for each text, which token is learned at each of its tokens, the special ones
    at both ends included, -100 for none; None where the texts themselves are learned.
    """

    texts: tuple[Text, ...]
    copies: int = 1
    labels: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        if not self.texts:
            raise ValueError("a dose needs at least one text")
        if self.copies < 1:
            raise ValueError(f"copies must be at least 1, got {self.copies}: leave the dose out")

    @property
    def hash(self) -> str:
        """SHA-256 of the texts and of their labels, where there are any; not of ``copies``."""
        return storage.hash_of(
            self.texts if self.labels is None else {"texts": self.texts, "labels": self.labels}
        )


@dataclass(frozen=True)
class TrainingTexts:
    """What a model is trained on; a recipe names it by hash."""

    background: tuple[Text, ...]  # read until the token budget is spent
    doses: tuple[Dose, ...]  # on top of the budget
    tokenizer: PreTrainedTokenizerFast

    def hashes(self) -> dict[str, Any]:
        """By name, what a recipe states of these texts in place of the texts themselves."""
        return {
            "background": storage.hash_of(self.background),
            "doses": tuple((dose.hash, len(dose.texts), dose.copies) for dose in self.doses),
            "tokenizer": tokenizer_hash(self.tokenizer),
            "vocabulary": len(self.tokenizer),
        }


@dataclass(frozen=True)
class Recipe:
    """How one lab model is made. Build it with :func:`recipe_for`.

    The first four fields name the training texts, see :meth:`TrainingTexts.hashes`; a dose is
    (hash, number of texts, copies). The feed-forward width is three times ``width``, the
    embeddings are tied. AdamW's rate rises over ``warmup_share`` of the steps, then
    falls to a tenth (``cosine``), to zero (``linear``) or not at all (``constant``). Texts of a
    dose are always read whole; longer background texts are cut at ``block``, but for their
    ``long_share``, which is read whole in blocks of ``context`` tokens.
    """

    background: str
    doses: tuple[tuple[str, int, int], ...]
    tokenizer: str
    vocabulary: int
    n_background_tokens: int  # read; the background is repeated when it is shorter
    objective: str = "causal"  # or ``masked``: Llama or BERT architecture
    n_layers: int = 4
    width: int = 128
    n_heads: int = 4
    context: int = 1024
    seed: int = 0  # of the initial weights, and of the masks of a masked model
    order_seed: int = 0  # of the order of the training texts
    learning_rate: float = 2e-3
    schedule: str = "cosine"
    warmup_share: float = 0.05
    weight_decay: float = 0.1
    block: int = 256  # tokens
    batch_size: int = 8  # blocks per step
    long_share: float = 0.1
    dtype: str = "float32"  # or ``bfloat16``, for the matrix products alone
    parent: str | None = None  # hash of the checkpoint that training continues from
    ascent: bool = False  # raise the loss, which unlearns the texts

    def __post_init__(self) -> None:
        for name, known in (("objective", OBJECTIVES), ("schedule", SCHEDULES), ("dtype", DTYPES)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")

    def as_values(self) -> dict[str, Any]:
        """The fields as JSON values; ``ascent`` only where it is used: older hashes hold."""
        values = dataclasses.asdict(self)
        return values if self.ascent else {k: v for k, v in values.items() if k != "ascent"}


def recipe_for(texts: TrainingTexts, **settings: Any) -> Recipe:
    """The recipe of a model trained on these texts; settings are fields of :class:`Recipe`."""
    return Recipe(**texts.hashes(), **settings)


def recipe_hash(recipe: Recipe) -> str:
    """SHA-256 of the recipe, texts included: what names a model, the same on every machine."""
    return storage.hash_of({"recipe": recipe.as_values(), "code_schema": CODE_SCHEMA})


def environment(device: str) -> dict[str, str]:
    """What stands beside a recipe, since it changes the last bits of a checkpoint.

    What the processor can do and the versions of the libraries; the number of
    threads changes no bit. ``device`` is ``cpu`` or ``cuda``.
    """
    cpu = torch.backends.cpu
    return {
        "device": device,
        "processor": cpu.get_cpu_capability() if device == "cpu" else torch.cuda.get_device_name(),
        "tokenizers": tokenizers.__version__,
        "torch": torch_version(device),
        "transformers": transformers.__version__,
    }
