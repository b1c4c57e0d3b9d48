"""Did-ChatGPT-Cheat? (Sainz et al.), the paper's comparison: ask for the first instances.

Its three outcomes were decided by people reading chats. Here rules on the
model's text decide:

* **contaminated**: the text holds one of the first instances of the split
  whole, or a line of it overlaps one with a ROUGE-L from the threshold on;
* **suspicious**: no instance, but something that only who knows the dataset
  would write: one of the attributes given, such as a label as the dataset
  spells it, a column's name or the pattern of its ids;
* **not contaminated**: neither.
"""

from __future__ import annotations

from collections.abc import Sequence

from contamination.core.overlap import is_contained, normalised, rouge_l, words

CONTAMINATED, SUSPICIOUS, NOT_CONTAMINATED = "contaminated", "suspicious", "not contaminated"
MIN_WORDS = 4  # chance writes shorter instances


def known_instances(first_instances: Sequence[str]) -> list[str]:
    """The first instances that are long enough to be told from chance; ValueError if none is."""
    known = [instance for instance in first_instances if len(words(instance)) >= MIN_WORDS]
    if not known:
        raise ValueError(f"no first instance of at least {MIN_WORDS} words to compare with")
    return known


def outcome(
    text: str,
    first_instances: Sequence[str],
    attributes: Sequence[str],
    near_exact_threshold: float,
) -> str:
    """Outcome for one split, from the model's text.

    ``attributes`` give the dataset away, compared without case; a line counts as an
    instance from a ROUGE-L of ``near_exact_threshold``. ValueError if no instance is
    long enough.
    """
    lines = [line for line in text.splitlines() if words(line)]
    for instance in known_instances(first_instances):
        if is_contained(instance, text):
            return CONTAMINATED
        if any(rouge_l(instance, line) >= near_exact_threshold for line in lines):
            return CONTAMINATED
    said = normalised(text)
    if any(normalised(attribute) in said for attribute in attributes if normalised(attribute)):
        return SUSPICIOUS
    return NOT_CONTAMINATED
