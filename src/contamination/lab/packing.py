"""Training batches: texts in seeded order, packed whole into blocks of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from contamination.lab.recipes import Recipe, Text, TrainingTexts

IGNORED = -100
_OPEN_BLOCKS = 32
_ENCODED_AT_ONCE = 512


@dataclass(eq=False)
class Batch:
    """One training step's tokens, padded on the right.

    Labels are the token itself where it is learned, -100 elsewhere (padding,
    prompts, the first token of each text).
    """

    input_ids: np.ndarray  # shape (n_blocks, length)
    labels: np.ndarray  # same shape


@dataclass(frozen=True)
class Encoded:
    """A text as tokens: id, tokens, what is learned at each, and how many at the start are not."""

    text_id: int
    tokens: np.ndarray
    labels: np.ndarray
    n_prompt: int
    is_dose: bool


@dataclass(eq=False)
class _Block:
    length: int
    ids: list[np.ndarray] = field(default_factory=list)
    labels: list[np.ndarray] = field(default_factory=list)
    texts: set[int] = field(default_factory=set)
    ranks: list[int] = field(default_factory=list)
    n_used: int = 0

    def fits(self, piece: Encoded) -> bool:
        # The same text twice in one block could be copied instead of learned.
        return self.n_used + len(piece.tokens) <= self.length and piece.text_id not in self.texts

    def add(self, piece: Encoded, rank: int) -> None:
        labels = piece.labels.copy()
        labels[: max(piece.n_prompt, 1)] = IGNORED
        self.ids.append(piece.tokens)
        self.labels.append(labels)
        self.texts.add(piece.text_id)
        self.ranks.append(rank)
        self.n_used += len(piece.tokens)


@dataclass(frozen=True)
class Stream:
    """All batches of a training in order, with its counts of tokens."""

    batches: list[Batch]
    n_tokens: int
    n_dose_tokens: int


def training_stream(recipe: Recipe, texts: TrainingTexts) -> Stream:
    """The batches that a recipe reads; ValueError if a dose text is longer than the context.

    Background texts come in a new random order each time they are all used up; the copies of
    a dose text are spread evenly, one in each equal part of the training. A text that fits
    into a block is never cut.
    """
    generator = _generator(recipe)
    positioned = list(_background_positions(texts, recipe, generator))
    n_background = sum(len(piece.tokens) for _, piece in positioned)
    first_id = len(texts.background)
    for dose in texts.doses:
        encoded = _encode(texts, dose.texts, recipe, first_id, is_dose=True, relabelled=dose.labels)
        first_id += len(encoded)
        starts = (np.arange(dose.copies) + generator.random((len(encoded), dose.copies))) / (
            dose.copies
        )
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
        labels = tokens if relabelled is None else np.array(relabelled[number], dtype=np.int64)
        encoded.append(Encoded(first_id + number, tokens, labels, 1 + len(prompt.ids), is_dose))
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
            labels = piece.labels[start : start + length]
            yield Encoded(piece.text_id, tokens, labels, piece.n_prompt - start, piece.is_dose)


def _place(piece: Encoded, rank: int, still_open: list[_Block], length: int) -> _Block | None:
    """Put a piece into the fullest open block that takes it; returns the block if it is new."""
    fitting = [block for block in still_open if block.fits(piece)]
    is_new = not fitting
    block = _Block(length) if is_new else max(fitting, key=lambda block: block.n_used)
    if is_new:
        still_open.append(block)
    block.add(piece, rank)
    if len(still_open) > _OPEN_BLOCKS:
        still_open.remove(max(still_open, key=lambda block: block.n_used))
    return block if is_new else None


def _as_batch(blocks: list[_Block], pad: int) -> Batch:
    input_ids = np.full((len(blocks), blocks[0].length), pad, dtype=np.int64)
    labels = np.full_like(input_ids, IGNORED)
    for row, block in enumerate(blocks):
        input_ids[row, : block.n_used] = np.concatenate(block.ids)
        labels[row, : block.n_used] = np.concatenate(block.labels)
    return Batch(input_ids, labels)
