"""Parameters of a notebook: read, checked by name, type and range before anything runs."""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib
import json
import re
import reprlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from contamination.core import keys
from contamination.core.keys import visible

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


TYPES: dict[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "list[int]": list[int],
    "list[float]": list[float],
    "list[str]": list[str],
    "dict": dict[str, Any],
}
# What YAML makes of values that somebody meant as these types, or as a list of them.
_CURES = {
    "bool": " (write true or false)",
    "float": " (in YAML write 1.0e-3; 1e-3 is read as text)",
    "str": " (quote it: YAML reads on, off, yes, no, dates and numbers as other types)",
}
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, validate_default=True)


class ParameterError(ValueError):
    """A parameter file and its notebook do not fit; the message is one line, without keys."""

    def __init__(self, message: str) -> None:
        super().__init__(visible(keys.mask_likely_keys(" ".join(message.split()))))


def declared_in(path: Path) -> type[BaseModel]:
    """Parameters of a notebook file; ParameterError as below, or if one cell is not tagged."""
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    sources = [c["source"] for c in cells if "parameters" in c["metadata"].get("tags", [])]
    if len(sources) != 1:
        raise ParameterError(f'{path}: {len(sources)} cells are tagged "parameters": tag exactly 1')
    return declared_parameters("".join(sources[0]), str(path))


def declared_parameters(source: str, name: str) -> type[BaseModel]:
    """The model of a parameters cell: each field has the type, default and comment of its line.

    ParameterError, which calls the notebook ``name``, if a line is not ``name: type = literal  #
    comment``, or ``papermill --help-notebook`` would not list it.
    """
    lines, fields = source.splitlines(), {}
    statements: list[Any] = ast.parse(source).body
    for statement in statements:
        line = lines[statement.end_lineno - 1]
        comment = line[statement.end_col_offset :].partition("#")[2].strip()
        try:
            if not comment or "=" in comment:
                raise ValueError("not listed by papermill")
            kind, value = TYPES[ast.unparse(statement.annotation)], statement.value
            default = Field(ast.literal_eval(value), description=comment)
            fields[statement.target.id] = (kind, default)
        except (AttributeError, LookupError, ValueError):
            raise ParameterError(
                f"{name}: the parameters cell has the line {line.strip()!r}; every line must read "
                f"`name: type = value  # comment` with a type of {', '.join(TYPES)} and a comment "
                'without "="'
            ) from None
    return create_model("Parameters", __config__=_STRICT, **fields)


class _Loader(yaml.SafeLoader):
    """YAML without a key that stands twice, which YAML forbids and PyYAML overlooks.

    Nor with references (``*name``): a few lines of them can stand for gigabytes.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise ParameterError("it contains a reference (*name): write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for name, n in names.items():
            if n > 1:
                raise ParameterError(f'"{name}" occurs twice: keep one of them')
        return super().construct_mapping(node, deep)


def load_parameter_file(path: Path) -> dict[str, Any]:
    """Values of a YAML parameter file; an empty file holds none. ParameterError in one line."""
    try:
        values = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)  # noqa: S506 (is safe)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None
    except OSError as error:
        raise ParameterError(f"{path}: {error.strerror}: check the path") from None
    except yaml.MarkedYAMLError as error:  # without the lines that it quotes: they may hold a key
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise ParameterError(f"{path}: {where}{error.problem or error.context}") from None
    # What PyYAML makes of a date such as 2023-02-30, or of a tag that does not fit its value.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        raise ParameterError(f"{path}: not readable as YAML: look for a misspelt value") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise ParameterError(f"{path}: every line must read `name: value`")
    return values


def checked_parameters(
    values: Mapping[str, Any], declared: type[BaseModel], source: str
) -> dict[str, Any]:
    """Declared defaults overridden by the given values; ``source`` is what messages call these.

    ParameterError for an unknown name, a wrong type, or a value that its comment's rule forbids.
    """
    return dict(_read(declared, values, source))


def _read(declared: type[BaseModel], values: Mapping[str, Any], source: str) -> Any:
    try:
        made = declared.model_validate(dict(values))
    except ValidationError as error:
        fault = error.errors()[0]
        place = list(fault["loc"] or [fault["input"]])
        raise ParameterError(_misfit(declared, values, source, place)) from None
    _keep_rules(made, values, source)
    return made


def _misfit(declared: type[BaseModel], values: Any, source: str, place: Sequence[Any]) -> str:
    """What is wrong at a place that pydantic names: the names of blocks, then that of a field."""
    name, fields = str(place[0]), declared.model_fields
    if name not in fields:
        close = difflib.get_close_matches(name, fields, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"known: {', '.join(fields)}"
        return f'{source}: unknown name "{name}" ({hint})'
    field: Any = fields[name]
    if isinstance(field.default, OwnSettings) and len(place) > 1:
        return _misfit(field.annotation, values[name], f"{source}: {name}", place[1:])
    kind = next((kind for kind, its in TYPES.items() if its == field.annotation), "dict")
    shown = _shown(values.get(name, field.default), field.description)
    cure = next((cure for of, cure in _CURES.items() if of in kind), "")
    return f'{source}: "{name}" is {shown}, want {kind}{cure}'


def _keep_rules(made: BaseModel, values: Mapping[str, Any], source: str) -> None:
    """ParameterError for the first value that breaks its rule, or that does not fit the others."""
    known = dict(made)
    for name, field in type(made).model_fields.items():
        value, rule = known[name], field.description or ""
        if part := violated_rule(value, rule, known):
            why = f"is {_shown(values.get(name, value), rule)}, want {part}"
            why = HIDDEN[part](value) if part in HIDDEN else why
            raise ParameterError(f'{source}: "{name}" {why}')
        for part in filter(CLASS.fullmatch, parts_of(rule)):
            module, _, class_name = part.rpartition(".")
            settings = getattr(importlib.import_module(f"contamination.{module}"), class_name)
            settings.read(value, f"{source}: {name}")
        if isinstance(value, OwnSettings):
            _keep_rules(value, values.get(name, {}), f"{source}: {name}")
    try:
        if values and isinstance(made, OwnSettings):
            made.check()
    except ValueError as error:
        raise ParameterError(f"{source}: {error}") from None


def _shown(value: Any, rule: str | None) -> str:
    is_hidden = HIDDEN.keys() & parts_of(rule or "")
    return f"of type {type(value).__name__}" if is_hidden else reprlib.repr(value)


def setting(default: Any, comment: str = "") -> Any:
    """One field of :class:`OwnSettings`: its default and what it means, with its rule."""
    return Field(default, description=comment)


class OwnSettings(BaseModel):
    """What a notebook is told of one's own model and data, as fields and blocks of fields.

    A notebook declares a dictionary as a parameter and names the class that reads it. A field
    whose type is another such class is a block, a dictionary of its own. All of them are read as
    strictly as the parameters themselves.
    """

    model_config = ConfigDict(**_STRICT, frozen=True)

    @classmethod
    def read(cls, values: Mapping[str, Any], source: str = "own_settings") -> Self:
        """The settings given, and defaults for the others; ParameterError as parameters.

        If any are given, they are held to ``check``, too.
        """
        return _read(cls, values, source)

    @classmethod
    def described(cls, prefix: str = "") -> pd.DataFrame:
        """Columns setting ("block: field" in a block), default and meaning, for display."""
        parts = []
        for name, field in cls.model_fields.items():
            if isinstance(field.default, OwnSettings):
                parts.append(field.default.described(f"{name}: "))
                continue
            row = {"setting": prefix + name, "default": repr(field.default)}
            parts.append(pd.DataFrame([row | {"meaning": field.description}]))
        return pd.concat(parts, ignore_index=True)

    def check(self) -> None:
        """ValueError, in one line, if settings do not fit each other; more in some classes."""
