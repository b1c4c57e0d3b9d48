"""What a parameter may be: the rule in brackets at the end of its own comment.

    k_percent: float = 20.0  # share of least likely tokens [above 0 to 100]
    copies: list[int] = [3, 12]  # copies read [1 to 1000, 1 to 8 values, distinct]
    bleurt_joining: str = "paper"  # how pieces are joined [paper or code]

So the rule stands where a reader looks, ``papermill --help-notebook`` and the tables of settings
list it, and a run is held to it before a kernel starts. Parts are divided by commas:

* ``A to B``, ``above A to B``, ``A or more``: ends of a number, or of each number of a list;
* ``a or b or empty``: words (or numbers) to choose from;
* ``2 values``, ``1 to 8 values``: how many a list holds, at least 1 where nothing is said;
* ``distinct``, ``rising``, ``some 0`` (and some above), ``multiple of 4``, ``within NAME``;
* ``times NAME to B``: the product with another parameter, which is what fills the memory;
* ``variable``: the name of a variable of the environment, or empty, and never a key;
  ``address``: an http address without a password, or empty; no message shows what was given;
* ``a day YYYY-MM-DD``: a date that there is, or empty;
* ``room.module.Class``: the class of settings, of this package, that reads a dictionary.

An end may be another parameter (``book_words``) or a multiple of it (``5 n_problems``). Upper
ends are what a machine with 8 GB of memory can hold, not what anybody should wait for.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from typing import Any

from contamination.core import keys

_RANGE = re.compile(r"(above )?([\w.]+|\d+ \w+) (?:to ([\w.]+|\d+ \w+)|or more)")
_VALUES = re.compile(r"(\d+)(?: to (\d+))? values")
_TIMES = re.compile(r"times (\w+) to ([\w.]+)")
CLASS = re.compile(r"[a-z_]+(\.\w+)+\.[A-Z]\w*")
DAY = "a day YYYY-MM-DD"
# Where a key may be given by mistake: why a value is refused, without repeating it.
HIDDEN = {"variable": keys.why_no_variable, "address": keys.why_no_address}


def parts_of(comment: str) -> list[str]:
    """The parts of the rule that a comment ends with; none where it has no rule.

    >>> parts_of("copies read [1 to 1000, distinct]")
    ['1 to 1000', 'distinct']
    """
    found = re.search(r"\[([^][]+)\]$", comment)
    return found[1].split(", ") if found else []


def violated_rule(value: Any, comment: str, values: Mapping[str, Any]) -> str:
    """The first part of the rule that a value breaks, "" where it keeps them all.

    ``values`` are all parameters by name, since ends may be parameters.

    >>> violated_rule([3, 3], "copies read [1 to 1000, distinct]", {})
    'distinct'
    """
    parts = parts_of(comment)
    if parts and isinstance(value, list) and not any(_VALUES.fullmatch(part) for part in parts):
        parts = ["1 to 1000 values", *parts]
    return next((part for part in parts if not _holds(part, value, values)), "")


def _holds(part: str, value: Any, values: Mapping[str, Any]) -> bool:
    each = value if isinstance(value, list) else [value]
    if found := _VALUES.fullmatch(part):
        return int(found[1]) <= len(each) <= int(found[2] or found[1])
    if found := _TIMES.fullmatch(part):
        other = values[found[1]]
        return sum(each) * (sum(other) if isinstance(other, list) else other) <= float(found[2])
    if found := _RANGE.fullmatch(part):
        low, high = _end(found[2], values), _end(found[3] or "inf", values)
        return all(low < one <= high if found[1] else low <= one <= high for one in each)
    if part == "distinct":
        return len(set(each)) == len(each)
    if part == "rising":
        return all(a < b for a, b in pairwise(each))
    if part == "some 0":
        return min(each) == 0 < max(each)
    if part.startswith("multiple of "):
        return not any(one % int(part.removeprefix("multiple of ")) for one in each)
    if part.startswith("within "):
        return set(each) <= set(values[part.removeprefix("within ")])
    if part == DAY:
        with contextlib.suppress(ValueError):
            return not value or bool(date.fromisoformat(value))
        return False
    if part in HIDDEN:
        return not (value and HIDDEN[part](value))
    if CLASS.fullmatch(part):
        return True  # read by the class itself
    choices = part.split(" or ")
    return all((str(one) or "empty") in choices for one in each)


def _end(said: str, values: Mapping[str, Any]) -> float:
    factor, _, name = said.rpartition(" ")
    end = values[name] if name in values else float(name)
    return int(factor or 1) * end
