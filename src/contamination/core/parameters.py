"""Parameters of a notebook: read, checked by name, type and range before anything runs.

papermill only warns about an unknown name, takes ``1e-3`` from YAML as text and
``on`` as true, and overlooks a parameter whose comment holds "=" or whose type
holds "|". Here each of these stops the run with one line, and so does what the
rule at the end of a parameter's comment (``contamination.core.ranges``) does not allow.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import difflib
import importlib
import json
import reprlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_type_hints

import pandas as pd
import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from contamination.core import keys, ranges
from contamination.core.visible import visible

LARGEST_FILE = 100_000  # bytes; deeper nesting than such a file holds is caught as it is read

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


class ParameterError(ValueError):
    """A parameter file and its notebook do not fit; the message is one line, without keys."""

    def __init__(self, message: str) -> None:
        super().__init__(visible(keys.mask_likely_keys(" ".join(message.split()))))


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: ``name: type = default  # comment``."""

    name: str
    type_name: str
    default: Any
    comment: str


def declared_in(path: Path) -> dict[str, Parameter]:
    """Parameters of a notebook file; ParameterError as below, or if it is not a notebook."""
    try:
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        cells = [
            ("".join(cell["source"]), cell["metadata"].get("tags", []))
            for cell in notebook["cells"]
        ]
    except FileNotFoundError:
        raise ParameterError(f"there is no notebook {path}: check the path") from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ParameterError(f"{path}: not a notebook (no valid nbformat 4 JSON)") from None
    sources = [source for source, tags in cells if "parameters" in tags]
    if len(sources) != 1:
        raise ParameterError(f'{path}: {len(sources)} cells are tagged "parameters": tag exactly 1')
    return declared_parameters(sources[0], str(path))


def declared_parameters(source: str, name: str) -> dict[str, Parameter]:
    """Parameters that the source of a parameters cell declares, in order; ``name`` in messages.

    ParameterError if a line is not ``name: type = literal  # comment``, or ``papermill
    --help-notebook`` would not list it.
    """
    lines = source.splitlines()
    declared: dict[str, Parameter] = {}
    for statement in ast.parse(source).body:
        line = lines[statement.lineno - 1]
        parameter = _declaration(statement, line)
        if parameter is None:
            raise ParameterError(
                f"{name}: the parameters cell has the line {line.strip()!r}; every line must read "
                f"`name: type = value  # comment` with a type of {', '.join(TYPES)}"
            )
        if "=" in parameter.comment or not parameter.comment:
            raise ParameterError(
                f'{name}: parameter "{parameter.name}" needs a comment without "=", '
                "or papermill --help-notebook does not list it"
            )
        declared[parameter.name] = parameter
    return declared


def _declaration(statement: ast.stmt, line: str) -> Parameter | None:
    if not (
        isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.value is not None
        and statement.lineno == statement.end_lineno
    ):
        return None
    type_name = ast.unparse(statement.annotation)
    try:
        default = ast.literal_eval(statement.value)
    except ValueError:
        return None
    if type_name not in TYPES or _type_error(default, type_name):
        return None
    comment = line[statement.end_col_offset :].partition("#")[2].strip()
    return Parameter(statement.target.id, type_name, default, comment)


def _type_error(value: Any, type_name: str) -> bool:
    adapter = TypeAdapter(TYPES[type_name], config=ConfigDict(allow_inf_nan=False))
    try:
        adapter.validate_python(value, strict=True)
    except ValidationError:
        return True
    return False


class _Loader(yaml.SafeLoader):
    """YAML without a key that stands twice, which YAML forbids and PyYAML overlooks.

    Nor with references (``*name``): a few lines of them can stand for gigabytes.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise ParameterError("it contains a reference (*name): write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in names:
            if names.count(name) > 1:
                raise ParameterError(f'"{name}" occurs twice: keep one of them')
        return super().construct_mapping(node, deep)


def load_parameter_file(path: Path) -> dict[str, Any]:
    """Values of a YAML parameter file; an empty file holds none. ParameterError in one line."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ParameterError(
                f"it is larger than {LARGEST_FILE} bytes: keep one line for each value"
            )
        values = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 (a SafeLoader)
    except FileNotFoundError:
        raise ParameterError(f"there is no parameter file {path}: check the path") from None
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None
    except OSError as error:
        raise ParameterError(f"{path}: not readable: {error.strerror}") from None
    except RecursionError:
        raise ParameterError(f"{path}: not readable as YAML: nested too deep") from None
    # What PyYAML makes of a date such as 2023-02-30, or of a tag that does not fit its value.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise ParameterError(f"{path}: not readable as YAML: {_trouble(error)}") from None
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise ParameterError(f"{path}: every line must read `name: value`")
    return values


def _trouble(error: Exception) -> str:
    """What PyYAML found, without the lines of the file that it quotes: they may hold a key."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f" in line {mark.line + 1}" if mark else ""
        return f"{error.problem or error.context}{where}"
    if isinstance(error, yaml.YAMLError | UnicodeDecodeError):
        return str(error)
    return "a value in it is no such date, or does not fit its tag"


def checked_parameters(
    values: Mapping[str, Any], declared: Mapping[str, Parameter], source: str
) -> dict[str, Any]:
    """Declared defaults overridden by the given values; ``source`` is what messages call these.

    ParameterError for an unknown name, a wrong type, or a value that its comment's rule forbids.
    """
    for name, value in values.items():
        if name not in declared:
            close = difflib.get_close_matches(name, declared, n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"known: {', '.join(declared)}"
            raise ParameterError(f'{source}: unknown name "{name}" ({hint})')
        type_name = declared[name].type_name
        if _type_error(value, type_name):
            hint, shown = _type_hint(value, type_name), _shown(value, declared[name])
            raise ParameterError(f'{source}: "{name}" is {shown}, want {type_name}{hint}')
    merged = {name: parameter.default for name, parameter in declared.items()} | dict(values)
    for name, parameter in declared.items():
        if part := ranges.violated_rule(merged[name], parameter.comment, merged):
            why = f"is {_shown(merged[name], parameter)}, want {part}"
            if part in ranges.HIDDEN:
                why = ranges.HIDDEN[part](merged[name])
            raise ParameterError(f'{source}: "{name}" {why}')
        # YAML writes 1 where a float is meant; the notebook sees the declared type.
        if parameter.type_name == "float":
            merged[name] = float(merged[name])
        for part in filter(ranges.CLASS.fullmatch, ranges.parts_of(parameter.comment)):
            module, _, class_name = part.rpartition(".")
            settings = getattr(importlib.import_module(f"contamination.{module}"), class_name)
            own = settings.read(merged[name], f"{source}: {name}")
            try:
                if merged[name]:  # of a block that says nothing there is nothing to check
                    own.check()
            except ValueError as error:
                raise ParameterError(f"{source}: {name}: {error}") from None
    return merged


def _shown(value: Any, parameter: Parameter) -> str:
    if ranges.HIDDEN.keys() & ranges.parts_of(parameter.comment):
        return f"of type {type(value).__name__}"
    try:
        return reprlib.repr(value)
    except ValueError:  # a number of more digits than Python prints
        return f"a {type(value).__name__} too long to print"


def _type_hint(value: Any, type_name: str) -> str:
    if type_name == "float" and isinstance(value, str):
        return " (in YAML write 1.0e-3; 1e-3 is read as text)"
    if type_name in ("str", "list[str]") and not isinstance(value, str):
        return " (quote it: YAML reads on, off, yes, no, dates and numbers as other types)"
    if type_name == "bool":
        return " (write true or false)"
    return ""


def setting(default: Any, comment: str) -> Any:
    """One field of :class:`OwnSettings`: its default and what it means."""
    return dataclasses.field(
        default_factory=lambda: copy.copy(default), metadata={"comment": comment}
    )


@dataclass(frozen=True)
class OwnSettings:
    """What a notebook is told of one's own model and data, as fields and blocks of fields.

    A notebook declares a dictionary as a parameter and names the class that reads it. A field
    whose type is another such class is a block, a dictionary of its own. All of them are read as
    strictly as the parameters themselves.
    """

    @classmethod
    def blocks(cls) -> dict[str, type[OwnSettings]]:
        """The fields that are blocks, with their classes."""
        kinds = get_type_hints(cls).items()
        return {k: v for k, v in kinds if isinstance(v, type) and issubclass(v, OwnSettings)}

    @classmethod
    def _fields(cls) -> tuple[Any, ...]:
        """Fields, which all have a default, of ``setting``."""
        return dataclasses.fields(cls)

    @classmethod
    def read(cls, values: Mapping[str, Any], source: str = "own_settings") -> Self:
        """The settings given, checked as parameters are, and defaults for the others."""
        blocks, declared = cls.blocks(), {}
        for f in cls._fields():
            kind, default, comment = f.type, f.default_factory(), f.metadata["comment"]
            if f.name in blocks:
                module = blocks[f.name].__module__.removeprefix("contamination.")
                comment = f"{comment} [{module}.{blocks[f.name].__name__}]"
                kind, default = "dict", {}
            declared[f.name] = Parameter(f.name, kind, default, comment)
        checked = checked_parameters(values, declared, source)
        checked |= {k: v.read(checked[k], f"{source}: {k}") for k, v in blocks.items()}
        return cls(**checked)

    @classmethod
    def described(cls, prefix: str = "") -> pd.DataFrame:
        """Columns setting ("block: field" in a block), default and meaning, for display."""
        parts, blocks = [], cls.blocks()
        for f in cls._fields():
            if f.name in blocks:
                parts.append(blocks[f.name].described(f"{f.name}: "))
                continue
            row = {"setting": prefix + f.name, "default": repr(f.default_factory())}
            parts.append(pd.DataFrame([row | {"meaning": f.metadata["comment"]}]))
        return pd.concat(parts, ignore_index=True)

    def check(self) -> None:
        """ValueError, in one line, if settings do not fit each other; more in some classes."""

    def only(self, *names: str) -> dict[str, Any]:
        """Some of the fields by name, as keyword arguments; AttributeError for any other name."""
        return {name: getattr(self, name) for name in names}
