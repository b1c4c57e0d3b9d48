"""Unlearning with alternative labels, after Eldan and Russinovich, arXiv:2310.02238."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import torch

from contamination.lab.training import IGNORED
from contamination.models.local import CausalLM


def generic_labels(
    generic: CausalLM, texts: Sequence[str], generic_names: Mapping[str, str]
) -> tuple[tuple[int, ...], ...]:
    """What a model is to learn at each token of a text that it should forget.

    After Eldan and Russinovich, arXiv:2310.02238: distinctive names are
    replaced by generic ones, and a generic model says what it would write at
    each token of the text so changed. They take the predictions of the model
    itself, minus what a reinforced copy of it likes better; a lab model that
    has little but the story to tell is not changed by reinforcing it, so here
    the generic model is one of its own, with the same tokenizer. Their rule for names
    that come up a second time is left out.

    Returns:
        For each text one label per token, its special tokens at both ends
        included: the likeliest token of the generic model; -100 at the start
        and inside a replaced word; the end token at the end.
    """
    names = re.compile("|".join(sorted(map(re.escape, generic_names), key=len, reverse=True)))
    of_texts = []
    for text in texts:
        changed = names.sub(lambda match: generic_names[match[0]], text)
        own_ids, own_places = _tokens_by_word(generic, text)
        other_ids, other_places = _tokens_by_word(generic, changed)
        where = {place: position for position, place in enumerate(other_places)}
        is_replaced = [a != b for a, b in zip(text.split(), changed.split(), strict=True)]
        predicted = _predicted(generic, other_ids)
        labels = [IGNORED] * len(own_ids)
        labels[-1] = own_ids[-1]
        for position, (word, place) in enumerate(own_places):
            if not (is_replaced[word] and place):
                # The token at position + 1, after the start token, is predicted from position.
                labels[position + 1] = predicted[where[word, place]]
        of_texts.append(tuple(labels))
    return tuple(of_texts)


def _tokens_by_word(lm: CausalLM, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Tokens with the special ones at both ends; of the others, word and place in the word."""
    encoded = lm.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    places: list[tuple[int, int]] = []
    for _, end in encoded.offset_mapping:
        word = len(text[:end].split()) - 1
        same = places and places[-1][0] == word
        places.append((word, places[-1][1] + 1 if same else 0))
    begin, stop = lm.tokenizer.bos_token_id, lm.tokenizer.eos_token_id
    return [begin, *encoded.input_ids, stop], places


@torch.inference_mode()
def _predicted(lm: CausalLM, token_ids: list[int]) -> list[int]:
    """The likeliest next token behind every token."""
    input_ids = torch.tensor([token_ids], device=lm.device)
    return lm.logits(lm.states(input_ids))[0].argmax(dim=-1).tolist()
