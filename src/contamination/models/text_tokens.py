"""Which tokens of a prompt are a text's own, told by what the tokens decode to.

Servers decode each token alone. Some lose the blank before a word that way, some write it as the
vocabulary does, and a token that is a part of a character decodes to the replacement character.
So blanks are left out on both sides, and where characters are lost, every run of characters
beyond ASCII counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from contamination.core.visible import one_line

# A place of the prompt: decoded text and value of each token that may be there.
Place = list[tuple[str, Any]]

_BLANKS = re.compile(r"[\sĠĊĉ▁]+")  # with those of byte-level and SentencePiece vocabularies
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_LOST = "\ufffd"


def of_completion(places: Sequence[Place], text: str) -> list[Place]:
    """The places, with one token each: the tokens that together end the text.

    ``places`` are all but the first of a prompt that is the text. ValueError if there are several
    tokens at a place and not exactly one choice among them spells an end of the text.
    """
    if all(len(place) == 1 for place in places):
        return list(places)
    wanted = _squeezed(text)
    # From the end: what is still to be spelt, and the only choice that leaves it, or None.
    choices: dict[str, list[tuple[str, Any]] | None] = {wanted: []}
    for place in reversed(places):
        earlier: dict[str, list[tuple[str, Any]] | None] = {}
        for rest, chosen in choices.items():
            for token in place:
                piece = _squeezed(token[0])
                if not rest.endswith(piece):
                    continue
                left = rest[: len(rest) - len(piece)]
                is_new = left not in earlier and chosen is not None
                earlier[left] = [*chosen, token] if is_new else None
        choices = earlier
    found = list(choices.values())
    if len(found) != 1 or found[0] is None:
        raise ValueError(
            "gave several tokens for a place of the prompt and no ids that tell which is its own"
        )
    return [[token] for token in reversed(found[0])]


def check_spelling(tokens: Sequence[str], text: str, n_before: int = 0) -> None:
    """ValueError unless the tokens of a completion's prompt spell the text to its end.

    Blanks are left out and lost characters masked. What stands before the text, such as a
    beginning-of-sequence token, does not matter; of the text itself ``n_before`` letters at most
    may be missing, which belong to a token that is not among these. Tokens of which a server gives
    no text (all are empty) cannot be compared.
    """
    wanted, spelt = _squeezed(text, True), _squeezed("".join(tokens), True)
    spelt = re.sub(f"{_LOST}+", _LOST, spelt)
    if not spelt:
        return
    is_whole = spelt.endswith(wanted)
    if not (is_whole or (wanted.endswith(spelt) and len(wanted) - len(spelt) <= n_before)):
        raise ValueError(
            f'scored other tokens than those of the text that begins "{one_line(text, 40)}": they '
            f'end in "{one_line("".join(tokens)[-40:], 40)}"'
        )


def within_template(places: Sequence[Place], text: str) -> list[Place]:
    """The places of a text in a chat's prompt, after the one in which the text begins.

    A token that is only partly the text's is left out, and blanks at the text's ends do not count,
    since templates remove them. ``places`` are all but the first of the prompt.

    Raises:
        ValueError: if the text is not there exactly once, or several tokens are given for a place.
    """
    if any(len(place) > 1 for place in places):
        raise ValueError(
            "gave several tokens for a place of the prompt and no ids that tell which is its own"
        )
    tokens = [place[0][0] for place in places]
    begin, end, ends = _found(tokens, text)
    first = next(number for number, stop in enumerate(ends) if stop > begin)
    last = next(number for number, stop in enumerate(ends) if stop >= end)
    has_blank_of_template = _ends_blank(tokens[last]) and not _ends_blank(text)
    n_whole = last + (ends[last] == end and not has_blank_of_template)
    if n_whole <= first + 1:
        raise ValueError("was asked for a text of one token: nothing in it has a context")
    return list(places[first + 1 : n_whole])


def _found(tokens: Sequence[str], text: str) -> tuple[int, int, list[int]]:
    """Where the text begins and ends among the letters of the tokens, and where each of them ends.

    ValueError unless it is there once.
    """
    about = f'gave tokens in which the text that begins "{one_line(text, 40)}" is'
    if not _squeezed(text):
        raise ValueError(f"{about} not to be found, since it holds blanks alone")
    for is_masked in (False, True):
        wanted, letters, ends = _squeezed(text, is_masked), "", []
        for token in tokens:
            piece = _squeezed(token, is_masked)
            # A run of lost characters may go on in the next token.
            letters += piece.removeprefix(_LOST) if is_masked and letters[-1:] == _LOST else piece
            ends.append(len(letters))
        n = len(re.findall(f"(?={re.escape(wanted)})", letters))
        if n > 1:
            raise ValueError(
                f"{about} found {n} times, so that it cannot be told which are its own"
            )
        if n == 1:
            begin = letters.index(wanted)
            # A run at an end of the text may be the template's as well.
            if not (is_masked and _LOST in (wanted[0], wanted[-1])):
                return begin, begin + len(wanted), ends
        if _LOST not in letters:
            break
    raise ValueError(f"{about} not found, so that the chat template cannot be left out")


def _squeezed(text: str, is_masked: bool = False) -> str:
    """Without blanks, and masked with one replacement character for each run beyond ASCII."""
    letters = _BLANKS.sub("", text)
    return _BEYOND_ASCII.sub(_LOST, letters) if is_masked else letters


def _ends_blank(text: str) -> bool:
    return bool(_BLANKS.match(text[-1:]))
