"""Neighbours of a passage: copies in which a masked language model replaced words.

Mattern et al., arXiv:2305.18462, section 2.2, the Neighbor baseline of Shi et
al. One word at a time is half hidden: 70 % of its embedding are dropped, so that
the model still feels what stood there. Another word is the better a replacement,
the more probable it is given that it is not the original, p(w) / (1 - p(original)).
One difference from Mattern et al., who replace any token: a word is replaced only
where the model has one token for it, and by a whole word, so that no half of a
word is left behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from contamination.core import storage
from contamination.core.words import WORD
from contamination.models.loading import LanguageModel
from contamination.models.local import BatchCache, batches_of, budget, pad

DROPOUT = 0.7  # share of a hidden word's embedding that is dropped, Mattern et al.
NEIGHBORS_VERSION = 2  # raise it when what is kept on disk is computed in another way


@dataclass(frozen=True)
class _Blank:
    """One hidden word: its place in the passage, and its token among those around it."""

    start: int
    end: int
    word: str
    token_ids: tuple[int, ...]
    place: int


def neighbors(
    passages: Sequence[str],
    masked_lm: LanguageModel,
    *,
    n_neighbors: int = 100,
    n_words: int | None = None,
    context_words: int = 64,
    seed: int = 0,
) -> list[list[str]]:
    """The likeliest one-word variations of each passage, best replacement first.

    All else, spaces and capitals included, is as it was. Replacements are kept on disk.

    Args:
        passages: texts, each with at least one word.
        masked_lm: any fill-mask model with a fast tokenizer (``models.local.load_masked_lm``).
        n_neighbors: neighbours of each passage; Mattern et al. take 100.
        n_words: words of a passage that are tried, drawn at random; None tries
            all of them, which is one forward pass for each word.
        context_words: words on either side of the hidden one that the model sees.
        seed: of the words and of what is dropped; other passages change neither.

    ValueError if a passage has no word that is one token, or the vocabulary is too small.
    """
    if n_neighbors < 1 or (n_words is not None and n_words < 1) or context_words < 0:
        raise ValueError("n_neighbors and n_words must be at least 1, context_words at least 0")
    vocabulary = _whole_words(masked_lm)
    settings = {"n_neighbors": n_neighbors, "max_batch_tokens": budget(masked_lm, None)}
    settings |= {"version": NEIGHBORS_VERSION, "seed": seed}
    store = BatchCache("neighbors", masked_lm.identity, settings)
    found = []
    for number, passage in enumerate(passages):
        blanks = _blanks(masked_lm, passage, n_words, context_words, seed)
        if not blanks:
            raise ValueError(f"passage {number} has no word to replace: leave it out")
        name = [[blank.word, blank.place, *blank.token_ids] for blank in blanks]

        def compute(blanks: Any = blanks) -> dict[str, np.ndarray]:
            return _replacements(masked_lm, blanks, vocabulary, seed, n_neighbors)

        arrays = store.arrays(name, compute, ["blank", "token_id"])
        chosen = [
            (blanks[blank], vocabulary[token_id])
            for blank, token_id in zip(*(arrays[key].tolist() for key in arrays), strict=True)
        ]
        found.append([passage[: b.start] + word + passage[b.end :] for b, word in chosen])
    return found


def _blanks(
    masked_lm: LanguageModel, passage: str, n_words: int | None, context_words: int, seed: int
) -> list[_Blank]:
    words = list(WORD.finditer(passage))
    rng = np.random.default_rng([seed, int(storage.hash_of(passage)[:15], 16)])
    # In random order until there are enough; some words are no single token.
    order = range(len(words)) if n_words is None else rng.permutation(len(words)).tolist()

    def blank(place: int) -> _Blank | None:
        start, end = words[place].span()
        left = words[max(0, place - context_words)].start()
        right = words[min(len(words) - 1, place + context_words)].end()
        encoded = masked_lm.tokenizer(passage[left:right], return_offsets_mapping=True)
        spans = [(left + a, left + b) for a, b in encoded.offset_mapping]
        at = [n for n, (a, b) in enumerate(spans) if a < end and start < b]
        word = words[place].group()
        if len(at) != 1 or passage[slice(*spans[at[0]])].strip() != word:
            return None
        return _Blank(start, end, word, tuple(encoded.input_ids), at[0])

    return sorted(islice(filter(None, map(blank, order)), n_words), key=lambda one: one.start)


def _whole_words(masked_lm: LanguageModel) -> dict[int, str]:
    """Vocabulary entries that stand for a whole word, by token id."""
    tokenizer = masked_lm.tokenizer
    entries = tokenizer.get_vocab()
    # Tokenizers mark the start of a word (byte-level BPE, SentencePiece) or its
    # continuation (WordPiece).
    starts = tuple(mark for mark in "Ġ▁" if any(entry.startswith(mark) for entry in entries))
    special = set(tokenizer.all_special_ids)
    words = {}
    for entry, token_id in entries.items():
        if token_id in special or entry.startswith("##"):
            continue
        if starts and not entry.startswith(starts):
            continue
        word = tokenizer.decode([token_id]).strip()
        if WORD.fullmatch(word):
            words[token_id] = word
    return dict(sorted(words.items()))


@torch.inference_mode()
def _replacements(
    masked_lm: LanguageModel,
    blanks: Sequence[_Blank],
    vocabulary: dict[int, str],
    seed: int,
    n_neighbors: int,
) -> dict[str, np.ndarray]:
    """The best replacements over all blanks: number of the blank and token id, best first."""
    token_ids = torch.tensor(list(vocabulary))
    folded = np.array([word.casefold() for word in vocabulary.values()])
    encoded = [blank.token_ids for blank in blanks]
    longest = max(map(len, encoded))
    if masked_lm.context_length and longest > masked_lm.context_length:
        raise ValueError(
            f"a passage around its hidden word has {longest} tokens, the masked model reads "
            f"{masked_lm.context_length}: lower context_words"
        )
    embed = masked_lm.model.get_input_embeddings()
    log_probs = torch.empty(len(blanks), len(token_ids))
    for batch in batches_of(list(map(len, encoded)), budget(masked_lm, None)):
        input_ids = pad(masked_lm, [encoded[item] for item in batch])
        lengths = torch.tensor([len(encoded[item]) for item in batch], device=input_ids.device)
        mask = (torch.arange(input_ids.shape[1], device=input_ids.device) < lengths[:, None]).long()
        hidden = torch.arange(len(batch)), torch.tensor([blanks[item].place for item in batch])
        inputs = embed(input_ids)
        kept = np.stack([_kept(blanks[item], inputs.shape[-1], seed) for item in batch])
        inputs[hidden] *= torch.from_numpy(kept).to(inputs)
        logits = masked_lm.model(inputs_embeds=inputs, attention_mask=mask).logits
        logits = logits[hidden].float().cpu()
        # Every spelling of the original is left out, so that what remains adds up to
        # p(w) / (1 - p(original)).
        for row, item in zip(logits, batch, strict=True):
            row[token_ids[folded == blanks[item].word.casefold()]] = -torch.inf
            row[encoded[item][blanks[item].place]] = -torch.inf
        log_probs[batch] = logits.log_softmax(dim=1)[:, token_ids]
    n_possible = int(torch.isfinite(log_probs).sum())
    if n_neighbors > n_possible:
        raise ValueError(
            f"{n_neighbors} neighbours asked for, {n_possible} exist: lower n_neighbors"
        )
    best = log_probs.flatten().topk(n_neighbors).indices.numpy()
    return {"blank": best // len(token_ids), "token_id": token_ids.numpy()[best % len(token_ids)]}


def _kept(blank: _Blank, width: int, seed: int) -> np.ndarray:
    """What a hidden word's embedding is multiplied with, shape (width,); decided by its context."""
    name = storage.hash_of([seed, blank.place, *blank.token_ids])
    is_kept = np.random.default_rng(int(name[:15], 16)).random(width) >= DROPOUT
    return is_kept / (1 - DROPOUT)
