"""Recipes of models, their batches, their training, and the cache of their checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import tokenizers
import torch
import torch.nn.functional as functional
import transformers
from safetensors.numpy import load_file as load_arrays
from safetensors.torch import load_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from contamination.core import storage
from contamination.lab.tokenizer import tokenizer_files, tokenizer_hash
from contamination.models.loading import default_device, torch_version

IGNORED = -100
_SPECIAL = ("bos", "eos", "pad")
_OPEN_BLOCKS = 32
_ENCODED_AT_ONCE = 512


@dataclass(eq=False)
class Batch:
    """One training step's tokens, padded on the right."""

    input_ids: np.ndarray  # shape (n_blocks, length)
    labels: np.ndarray  # the token itself where it is learned, -100 elsewhere (padding, prompts)


@dataclass(frozen=True)
class Encoded:
    """A text as tokens, and what is learned at each."""

    text_id: int
    tokens: np.ndarray
    labels: np.ndarray
    is_dose: bool


@dataclass(eq=False)
class _Block:
    length: int
    pieces: list[Encoded] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    n_used: int = 0

    def fits(self, piece: Encoded) -> bool:
        # The same text twice in one block could be copied instead of learned.
        is_there = any(one.text_id == piece.text_id for one in self.pieces)
        return self.n_used + len(piece.tokens) <= self.length and not is_there

    def add(self, piece: Encoded, rank: int) -> None:
        self.pieces.append(piece)
        self.ranks.append(rank)
        self.n_used += len(piece.tokens)


class Stream(NamedTuple):
    """All batches of a training in order, with its counts of tokens."""

    batches: list[Batch]
    n_tokens: int
    n_dose_tokens: int


def training_stream(recipe: Recipe, texts: TrainingTexts) -> Stream:
    """The batches that a recipe reads; ValueError if a dose text is longer than the context.

    Background texts come in a new random order each time they are used up; the copies of a dose
    text are spread evenly. A text that fits into a block is never cut.
    """
    generator = _generator(recipe)
    positioned = list(_background_positions(texts, recipe, generator))
    n_background = sum(len(piece.tokens) for _, piece in positioned)
    first_id = len(texts.background)
    for dose in texts.doses:
        encoded = _encode(texts, dose.texts, recipe, first_id, is_dose=True, relabelled=dose.labels)
        first_id += len(encoded)
        within = generator.random((len(encoded), dose.copies))
        starts = (np.arange(dose.copies) + within) / dose.copies
        starts = dose.span[0] + (dose.span[1] - dose.span[0]) * starts
        positioned.extend(
            (float(start), piece)
            for piece, row in zip(encoded, starts, strict=True)
            for start in row
        )
    positioned.sort(key=lambda entry: (entry[0], entry[1].text_id))
    n_tokens = sum(len(piece.tokens) for _, piece in positioned)
    pad = texts.tokenizer.pad_token_id
    batches = _batches((piece for _, piece in positioned), recipe, generator, pad)
    return Stream(batches, n_tokens, n_tokens - n_background)


def background_read(recipe: Recipe, texts: TrainingTexts) -> tuple[Text, ...]:
    """The background texts that a recipe reads, each once, in its order."""
    positions = _background_positions(texts, recipe, _generator(recipe))
    numbers = dict.fromkeys(piece.text_id for _, piece in positions)
    return tuple(texts.background[number] for number in numbers)


def _generator(recipe: Recipe) -> np.random.Generator:
    return np.random.default_rng([recipe.order_seed, 7])


def _encode(
    texts: TrainingTexts,
    group: tuple[Text, ...],
    recipe: Recipe,
    first_id: int,
    is_dose: bool = False,
    relabelled: tuple[tuple[int, ...], ...] | None = None,
) -> list[Encoded]:
    tokenizer = texts.tokenizer
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    pairs = [("", text) if isinstance(text, str) else text for text in group]
    prompts, responses = (
        tokenizer.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False)
        for texts in zip(*pairs, strict=True)
    )
    encoded = []
    for number, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        tokens = np.array([bos, *prompt.ids, *response.ids, eos], dtype=np.int64)
        if is_dose and len(tokens) > recipe.context:
            raise ValueError(
                f"a dose text has {len(tokens)} tokens, more than the context of"
                f" {recipe.context}: shorten it"
            )
        labels = np.array(tokens if relabelled is None else relabelled[number], dtype=np.int64)
        labels[: 1 + len(prompt.ids)] = IGNORED
        encoded.append(Encoded(first_id + number, tokens, labels, is_dose))
    return encoded


def _background_positions(
    texts: TrainingTexts, recipe: Recipe, generator: np.random.Generator
) -> Iterator[tuple[float, Encoded]]:
    """Background texts with positions from 0 to 1 until the token budget is spent."""
    budget = recipe.n_background_tokens
    if budget and not texts.background:
        raise ValueError(f"{budget} background tokens asked for, but there is no background text")
    chosen: list[Encoded] = []
    while budget > 0:
        for piece in _encoded_in_order(texts, recipe, generator.permutation(len(texts.background))):
            chosen.append(piece)
            budget -= len(piece.tokens)
            if budget <= 0:
                break
    # Read in the order chosen, so that no text comes back before the others were read.
    for number, piece in enumerate(chosen):
        yield (number + 0.5) / len(chosen), piece


def _encoded_in_order(texts: TrainingTexts, recipe: Recipe, order: np.ndarray) -> Iterator[Encoded]:
    """Background texts in an order, encoded as they are wanted: most trainings read few of them."""
    for start in range(0, len(order), _ENCODED_AT_ONCE):
        numbers = order[start : start + _ENCODED_AT_ONCE]
        group = tuple(texts.background[number] for number in numbers)
        for number, piece in zip(numbers, _encode(texts, group, recipe, first_id=0), strict=True):
            yield replace(piece, text_id=int(number))


def _batches(
    pieces: Iterable[Encoded], recipe: Recipe, generator: np.random.Generator, pad: int
) -> list[Batch]:
    blocks: dict[int, list[_Block]] = {recipe.block: [], recipe.context: []}
    still_open: dict[int, list[_Block]] = {recipe.block: [], recipe.context: []}
    for rank, piece in enumerate(pieces):
        length = recipe.block
        if len(piece.tokens) > recipe.block and (
            piece.is_dose or generator.random() < recipe.long_share
        ):
            length = recipe.context
        for part in _cut(piece, length):
            if block := _place(part, rank, still_open[length], length):
                blocks[length].append(block)
    placed: list[tuple[float, Batch]] = []
    for length, of_length in blocks.items():
        # A block waits for texts that fit; sorting puts it back to where its own texts belong.
        of_length.sort(key=lambda block: float(np.mean(block.ranks)))
        n_blocks = max(1, recipe.block * recipe.batch_size // length)
        for start in range(0, len(of_length), n_blocks):
            chosen = of_length[start : start + n_blocks]
            rank = float(np.mean([np.mean(block.ranks) for block in chosen]))
            placed.append((rank, _as_batch(chosen, pad)))
    placed.sort(key=lambda entry: entry[0])
    return [batch for _, batch in placed]


def _cut(piece: Encoded, length: int) -> Iterator[Encoded]:
    for start in range(0, len(piece.tokens), length):
        tokens = piece.tokens[start : start + length]
        # A single left-over token has nothing before it to be predicted from.
        if len(tokens) > 1:
            labels = piece.labels[start : start + length].copy()
            labels[0] = IGNORED
            yield Encoded(piece.text_id, tokens, labels, piece.is_dose)


def _place(piece: Encoded, rank: int, still_open: list[_Block], length: int) -> _Block | None:
    """Put a piece into the fullest open block that takes it; returns the block if it is new."""
    fitting = [block for block in still_open if block.fits(piece)]
    block = max(fitting, key=lambda block: block.n_used) if fitting else _Block(length)
    if not fitting:
        still_open.append(block)
    block.add(piece, rank)
    if len(still_open) > _OPEN_BLOCKS:
        still_open.remove(max(still_open, key=lambda block: block.n_used))
    return None if fitting else block


def _as_batch(blocks: list[_Block], pad: int) -> Batch:
    input_ids = np.full((len(blocks), blocks[0].length), pad, dtype=np.int64)
    labels = np.full_like(input_ids, IGNORED)
    for row, block in enumerate(blocks):
        input_ids[row, : block.n_used] = np.concatenate([one.tokens for one in block.pieces])
        labels[row, : block.n_used] = np.concatenate([one.labels for one in block.pieces])
    return Batch(input_ids, labels)


# Raise when packing, training or saving changes what a recipe becomes.
CODE_SCHEMA = 1
DTYPES = ("float32", "bfloat16")  # of the matrix products alone
# A text, or a prompt and a response of which only the response is learned.
Text = str | tuple[str, str]
EVERYWHERE = (0.0, 1.0)  # in a training


@dataclass(frozen=True)
class Dose:
    """Texts that a model reads ``copies`` times each, spread evenly over a part of its training.

    ``labels``: for each text, which token is learned at each of its tokens, the special ones
    at both ends included, -100 for none; None where the texts themselves are learned.
    """

    texts: tuple[Text, ...]
    copies: int = 1
    labels: tuple[tuple[int, ...], ...] | None = None
    span: tuple[float, float] = EVERYWHERE  # begin and end of the part, 0 to 1

    def __post_init__(self) -> None:
        if not self.texts:
            raise ValueError("a dose needs at least one text")
        if self.copies < 1:
            raise ValueError(f"copies must be at least 1, got {self.copies}: leave the dose out")

    @property
    def named(self) -> tuple:
        """How a recipe names it: hash, number of texts, copies, and the span if it is a part."""
        about = (self.hash, len(self.texts), self.copies)
        return about if self.span == EVERYWHERE else (*about, self.span)

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
            "doses": tuple(dose.named for dose in self.doses),
            "tokenizer": tokenizer_hash(self.tokenizer),
            "vocabulary": len(self.tokenizer),
        }


@dataclass(frozen=True)
class Recipe:
    """How one lab model is made. Build it with :func:`recipe_for`.

    The feed-forward width is three times ``width``, the embeddings are tied. Texts of a dose are
    always read whole; longer background texts are cut at ``block``, but for their ``long_share``,
    which is read whole in blocks of ``context`` tokens.
    """

    # These four name the training texts (:meth:`TrainingTexts.hashes`).
    background: str
    doses: tuple[tuple, ...]
    tokenizer: str
    vocabulary: int
    n_background_tokens: int  # read; the background is repeated when it is shorter
    objective: Literal["causal", "masked"] = "causal"  # Llama or BERT architecture
    n_layers: int = 4
    width: int = 128
    n_heads: int = 4
    context: int = 1024
    seed: int = 0  # of the initial weights, and of the masks of a masked model
    order_seed: int = 0  # of the order of the training texts
    learning_rate: float = 2e-3
    schedule: Literal["cosine", "linear", "constant"] = "cosine"  # to a tenth, to zero, not at all
    warmup_share: float = 0.05  # of the steps, in which the rate rises
    weight_decay: float = 0.1
    block: int = 256  # tokens
    batch_size: int = 8  # blocks per step
    long_share: float = 0.1
    dtype: str = "float32"  # one of ``DTYPES``
    parent: str | None = None  # hash of the checkpoint that training continues from
    ascent: bool = False  # raise the loss, which unlearns the texts

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
    """What is stored with a recipe, since it changes the last bits of a checkpoint.

    Processor and libraries; the number of threads changes no bit. ``device``: ``cpu`` or ``cuda``.
    """
    cpu = torch.backends.cpu
    return {
        "device": device,
        "processor": cpu.get_cpu_capability() if device == "cpu" else torch.cuda.get_device_name(),
        "tokenizers": tokenizers.__version__,
        "torch": torch_version(device),
        "transformers": transformers.__version__,
    }


BETAS = (0.9, 0.95)
CLIP_NORM = 1.0
FINAL_SHARE = 0.1
MASKED_SHARE = 0.15
RECIPE_FILE = "recipe.json"
LOSSES_FILE = "losses.safetensors"


def train(recipe: Recipe, texts: TrainingTexts, parent: Path | None = None) -> Path:
    """The folder of the recipe's checkpoint, trained now or taken from the cache.

    It appears whole or not at all. Of two processes that want the same model one trains it and
    the other waits.

    Args:
        texts: those that :func:`recipe_for` made the recipe for.
        parent: folder of the checkpoint that ``recipe.parent`` names.

    Returns:
        A folder with ``model.safetensors``, ``config.json``, the tokenizer, ``recipe.json``
        (:func:`describe`) and the loss of every step (:func:`losses_of`).

    Raises:
        ValueError: if the texts or the parent are not those of the recipe, a dose text is
            longer than the context, or bfloat16 is not native here.
    """
    named = {name: getattr(recipe, name) for name in texts.hashes()}
    if named != texts.hashes():
        raise ValueError("these are not the recipe's texts: build it with recipe_for(texts, ...)")
    before = {} if parent is None else describe(parent)
    parent_hash = before.get("recipe_hash")
    if parent_hash != recipe.parent:
        raise ValueError(f"recipe continues {recipe.parent}, but the parent given is {parent_hash}")
    device = default_device()
    if recipe.dtype == "bfloat16" and not has_native_bfloat16(device):
        raise ValueError("bfloat16 is not native on this processor: use dtype float32")
    identity = recipe_hash(recipe)
    here = environment(device)
    # A parent may come from elsewhere.
    environments = [*(one for one in before.get("environments", []) if one != here), here]
    name = f"{identity[:24]}-{storage.hash_of(environments)[:8]}"
    folder = storage.cache_folder("lab", "models") / name

    def make() -> None:
        stream = training_stream(recipe, texts)
        model, losses = _fitted(recipe, texts.tokenizer, stream.batches, parent)
        summary = {
            "recipe_hash": identity,
            "recipe": recipe.as_values(),
            "environments": environments,
            "n_parameters": sum(weight.numel() for weight in model.parameters()),
            "n_steps": len(stream.batches),
            "n_tokens": stream.n_tokens,
            "n_dose_tokens": stream.n_dose_tokens,
        }
        _publish(folder, model, texts.tokenizer, summary, losses)

    return storage.cached("lab models", folder, make)


def losses_of(folder: Path) -> np.ndarray:
    """Mean loss of every step of a training, nats per learned token, shape (n_steps,)."""
    storage.refuse_damaged(Path(folder))
    return load_arrays(Path(folder) / LOSSES_FILE)["loss"].astype(float)


def first_losses(recipe: Recipe, texts: TrainingTexts, n_steps: int) -> np.ndarray:
    """Losses of the first steps of a training from scratch, as in :func:`losses_of`.

    Nothing is read from the cache or written to it.
    """
    batches = training_stream(recipe, texts).batches
    return np.array(_fitted(recipe, texts.tokenizer, batches, n_steps=n_steps)[1])


def _fitted(
    recipe: Recipe,
    tokenizer: PreTrainedTokenizerFast,
    batches: list[Batch],
    parent: Path | None = None,
    n_steps: int | None = None,
) -> tuple[PreTrainedModel, list[float]]:
    """A model trained on its first ``n_steps`` batches, all by default, and its losses."""
    device = default_device()
    with _reproducible(device):
        model = build_model(recipe, tokenizer)
        if parent is not None:
            weights = load_file(parent / "model.safetensors")
            shapes = {name: weight.shape for name, weight in model.named_parameters()}
            if shapes != {name: weight.shape for name, weight in weights.items()}:
                raise ValueError("the parent has another architecture than the recipe")
            model.load_state_dict(weights, strict=False)
        mask = tokenizer.mask_token_id
        return model, fit(model.to(device), batches[:n_steps], recipe, mask, len(batches))


def describe(folder: Path) -> dict[str, Any]:
    """What a checkpoint is.

    Keys recipe_hash, recipe, environments (where it was trained, its parents' first where they
    differ), n_parameters, n_steps, n_tokens (read in this training, without its parent's),
    n_dose_tokens (of these, of doses), share_pct (doses, in percent). FileNotFoundError if the
    folder is not a checkpoint, ValueError if it is damaged.
    """
    path = Path(folder) / RECIPE_FILE
    storage.refuse_damaged(path.parent)
    if not path.exists():
        raise FileNotFoundError(
            f"{Path(folder).name} is not a lab checkpoint: {RECIPE_FILE} is missing"
        )
    summary = json.loads(path.read_text())
    summary["share_pct"] = 100 * summary["n_dose_tokens"] / summary["n_tokens"]
    return summary


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """The untrained model of a recipe, its weights drawn with the recipe's seed, on the CPU."""
    shape = {"vocab_size": recipe.vocabulary, "max_position_embeddings": recipe.context}
    shape |= {"hidden_size": recipe.width, "intermediate_size": 3 * recipe.width}
    shape |= {"num_hidden_layers": recipe.n_layers, "num_attention_heads": recipe.n_heads}
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in _SPECIAL}
    shape |= ids | {"tie_word_embeddings": True}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        if recipe.objective == "causal":
            return LlamaForCausalLM(LlamaConfig(num_key_value_heads=recipe.n_heads, **shape))
        no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        return BertForMaskedLM(BertConfig(type_vocab_size=1, **no_dropout, **shape))


def fit(
    model: PreTrainedModel,
    batches: list[Batch],
    recipe: Recipe,
    mask_token_id: int | None = None,
    n_steps: int | None = None,
) -> list[float]:
    """Train a model in place, one AdamW step for each batch; mean losses, nats per learned token.

    ``n_steps`` are those of the whole training, on which the learning rate depends, if the
    batches are only its first ones.
    """
    n_steps = n_steps or len(batches)
    device = model.device
    decayed = [weight for weight in model.parameters() if weight.ndim > 1]
    spared = [weight for weight in model.parameters() if weight.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed}, {"params": spared, "weight_decay": 0.0}],
        betas=BETAS,
        weight_decay=recipe.weight_decay,
        maximize=recipe.ascent,
        fused=True,
    )
    masker = torch.Generator().manual_seed(recipe.seed)
    precision = torch.autocast(
        device.type, dtype=torch.bfloat16, enabled=recipe.dtype == "bfloat16"
    )
    model.train()
    losses = []
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step, n_steps)
        inputs, labels = torch.from_numpy(batch.input_ids), torch.from_numpy(batch.labels)
        with precision:
            if recipe.objective == "causal":
                loss = _causal_loss(model, inputs.to(device), labels.to(device))
            else:
                assert mask_token_id is not None
                loss = _masked_loss(model, inputs, labels, mask_token_id, masker)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def learning_rate(recipe: Recipe, step: int, n_steps: int) -> float:
    """Learning rate of a step: a linear rise, then the recipe's schedule."""
    n_warmup = max(1, round(recipe.warmup_share * n_steps))
    if step < n_warmup:
        return recipe.learning_rate * (step + 1) / n_warmup
    progress = (step - n_warmup) / max(1, n_steps - n_warmup)
    if recipe.schedule == "linear":
        return recipe.learning_rate * (1 - progress)
    if recipe.schedule == "cosine":
        falling = (1 + math.cos(math.pi * progress)) / 2
        return recipe.learning_rate * (FINAL_SHARE + (1 - FINAL_SHARE) * falling)
    return recipe.learning_rate


def has_native_bfloat16(device: str) -> bool:
    """Whether the processor multiplies bfloat16 matrices itself; emulation is ten times slower."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, name)() for name in checks if hasattr(torch.cpu, name))


def _causal_loss(
    model: PreTrainedModel, inputs: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    # A mask of ones is recognised and dropped; without one the library builds its own.
    seen = torch.ones_like(inputs)
    output = model.base_model(input_ids=inputs, attention_mask=seen, use_cache=False)
    targets = labels[:, 1:].reshape(-1)
    learned = (targets != IGNORED).nonzero().squeeze(1)
    hidden = output.last_hidden_state[:, :-1]
    states = hidden.reshape(-1, hidden.shape[-1])[learned]
    logits = model.get_output_embeddings()(states)
    return functional.cross_entropy(logits.float(), targets[learned])


def _masked_loss(
    model: PreTrainedModel,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    mask_token_id: int,
    masker: torch.Generator,
) -> torch.Tensor:
    """BERT's objective: of the masked tokens 80 % are hidden, 10 % replaced, 10 % kept."""
    can_learn = labels != IGNORED
    chosen = can_learn & (torch.rand(inputs.shape, generator=masker) < MASKED_SHARE)
    # A step without any masked token has no loss.
    chosen.view(-1)[can_learn.view(-1).nonzero()[0]] = True
    kind = torch.rand(inputs.shape, generator=masker)
    random = torch.randint(model.config.vocab_size, inputs.shape, generator=masker)
    corrupted = torch.where(chosen & (kind < 0.9), random, inputs)
    corrupted = corrupted.masked_fill(chosen & (kind < 0.8), mask_token_id)
    attention = (inputs != model.config.pad_token_id).long()
    hidden = model.bert(
        input_ids=corrupted.to(model.device), attention_mask=attention.to(model.device)
    ).last_hidden_state
    logits = model.cls(hidden[chosen.to(model.device)])
    return functional.cross_entropy(logits.float(), labels[chosen].to(model.device))


@contextlib.contextmanager
def _reproducible(device: str) -> Iterator[None]:
    """On a GPU, deterministic kernels; the CPU's are so already."""
    if device == "cpu":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def _publish(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    summary: dict[str, Any],
    losses: list[float],
) -> None:
    weights = {name: weight.detach().cpu().numpy() for name, weight in model.named_parameters()}
    model.config.architectures = [type(model).__name__]
    with storage.atomic_folder(folder) as staged:
        storage.write_safetensors(staged / "model.safetensors", weights, {"format": "pt"})
        steps = np.array(losses, dtype=np.float32)
        storage.write_safetensors(staged / LOSSES_FILE, {"loss": steps})
        storage.write_text(staged / "config.json", model.config.to_json_string())
        for name, value in tokenizer_files(tokenizer).items():
            storage.write_json(staged / name, value)
        storage.write_json(staged / RECIPE_FILE, summary)
