"""How much of the package each table of the notebooks reaches, and what Make must watch.

    python scripts/reach.py                    # CSV, a line for each table
    python scripts/reach.py --stamps FOLDER    # for each notebook a file with the hash of its code

A table reaches the functions, classes and constants of the package that a reader would have to
open to follow how it is made: from the notebook's call of ``write_table`` back through the
statements it depends on, and from there through the package. Needs the standard library alone.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gc
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from contamination.core import syntax  # noqa: E402

DATA = (".csv", ".json", ".parquet")
# What every notebook stands on, and a reader of one table seldom opens.
FLOORS_BELOW = ("core", "models", "lab")
# Files of the package that a table reaches, those of them outside FLOORS_BELOW, lines of all.
COLUMNS = ("notebook", "table", "files", "files_outside", "lines")
_MODULE = "*"  # in place of a name: the module itself was handed on


def notebooks() -> list[dict[str, str]]:
    """The rows of ``notebooks/contents.csv``, the one list of the notebooks."""
    with (ROOT / "notebooks/contents.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


# What Make watches: the code and the data that a notebook's modules reach


def stamps(folder: Path) -> None:
    """For each notebook a file with the hash of all code and data that it may reach.

    A file whose hash is the same is left alone, so that its time, which Make reads, stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for row in notebooks():
        stamp, text = folder / row["notebook"], package_hash(row["notebook"]) + "\n"
        if not stamp.exists() or stamp.read_text() != text:
            stamp.write_text(text)


def package_hash(notebook: str) -> str:
    """Hash of all code and data of the package that a notebook may reach, hexadecimal."""
    code = syntax.code_of_notebook(ROOT / "notebooks" / f"{notebook}.ipynb")
    files = syntax.reached_files(code)
    return syntax.hash_of_files(files | {data for file in files for data in _data_beside(file)})


@cache
def _data_in(folder: Path) -> tuple[Path, ...]:
    """Data of a folder and of those below it that are no packages of their own."""
    found = [path for path in folder.iterdir() if path.suffix in DATA]
    for below in folder.iterdir():
        if below.is_dir() and not (below / "__init__.py").exists():
            found += _data_in(below)
    return tuple(found)


def _data_beside(file: Path) -> tuple[Path, ...]:
    return _data_in(file.parent)


# What a table reaches: definitions, not files


class Place(NamedTuple):
    """A name at the top of a file of the package."""

    file: Path
    name: str


class Scope(NamedTuple):
    """What a piece of code can name: definitions of its own, and places it imports."""

    definitions: dict[str, list[ast.stmt]]
    imports: dict[str, Place]


_TREES: list[ast.Module] = []  # kept, since what is known of a tree is stored by its identity


def tables() -> list[tuple[str, str, set[Place]]]:
    """Notebook, table and the places it reaches, for every table of every notebook."""
    found = []
    for row in notebooks():
        path = ROOT / "notebooks" / f"{row['notebook']}.ipynb"
        _TREES.append(ast.parse(syntax.code_of_notebook(path)))
        body = _TREES[-1].body
        written = [(name, number) for number, node in enumerate(body) for name in _written(node)]
        for table in dict.fromkeys(name for name, _ in written):
            starts = [number for name, number in written if name == table]
            found.append((row["notebook"], table, _reached_from(body, starts)))
    return found


def reaches() -> Iterator[tuple[str, str, int, int, int]]:
    """A row of ``COLUMNS`` for every table."""
    for notebook, table, places in tables():
        files = {place.file.relative_to(syntax.PACKAGE) for place in places}
        own = [file for file in files if file.parts[0] not in FLOORS_BELOW]
        yield notebook, table, len(files), len(own), lines_of(places)


def lines_of(places: set[Place]) -> int:
    """Lines of the definitions of some places."""
    lines = set()
    for file, name in places:
        outer, _, method = name.partition(".")
        for node in scope_of(file).definitions[outer]:
            own = [p for p in _parts(node) if getattr(p, "name", "") == method]
            if not method:
                own = [p for p in _parts(node) if p is node or not isinstance(p, ast.FunctionDef)]
            lines |= {(file, n) for p in own for n in range(p.lineno, p.end_lineno + 1)}
    return len(lines)


def _written(node: ast.stmt) -> Iterator[str]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "write_table":
            name = call.args[0]
            yield name.value if isinstance(name, ast.Constant) else ast.unparse(name)


def _reached_from(body: list[ast.stmt], starts: list[int]) -> set[Place]:
    """Places that some statements of a notebook reach, with those they depend on."""
    scope = _scope(body)
    bound = [_bound(node) for node in body]
    waiting, known = list(starts), set(starts)
    while waiting:
        number = waiting.pop()
        for name in _needed(body[number]):
            for earlier in range(number - 1, -1, -1):
                if name in bound[earlier]:
                    if earlier not in known:
                        known.add(earlier)
                        waiting.append(earlier)
                    if _replaces(body[earlier], name):
                        break
    return _closure([(body[number], scope, None) for number in known])


def _needed(node: ast.stmt) -> set[str]:
    """Names whose values a statement uses."""
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not _is_stored(n)}
    changed = (n.target for n in ast.walk(node) if isinstance(n, ast.AugAssign))
    return used | {target.id for target in changed if isinstance(target, ast.Name)}


def _replaces(node: ast.stmt, name: str) -> bool:
    """Whether a statement gives a name a value that depends on nothing it held before."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return True
    if not isinstance(node, ast.Assign) or name in {
        inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name)
    }:
        return False
    stored = {n.id for target in node.targets for n in ast.walk(target) if _is_stored(n)}
    return name in stored


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement gives a value, or changes in place."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            names.add(inner.id)
        elif isinstance(inner, ast.Subscript | ast.Attribute) and isinstance(inner.ctx, ast.Store):
            names |= {n.id for n in ast.walk(inner.value) if isinstance(n, ast.Name)}
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            changes = inner.func.attr in ("append", "extend", "update", "insert", "add")
            if changes and isinstance(inner.func.value, ast.Name):
                names.add(inner.func.value.id)
    return names


def _closure(code: list[tuple[ast.AST, Scope, Path | None]]) -> set[Place]:
    """All places that some code mentions, that these mention, and so on.

    A class brings its fields and the methods that Python calls by itself, any other method
    only where its name is mentioned too.
    """
    known: set[Place] = set()
    methods: dict[str, list[tuple[ast.AST, Scope, Path]]] = {}  # of known classes, by their names
    mentioned: set[str] = set()
    waiting = list(code)
    while waiting:
        attributes, places = _named_in(*waiting.pop())
        mentioned |= attributes
        for place in places:
            if place in known:
                continue
            known.add(place)
            inside = scope_of(place.file)
            for definition in inside.definitions[place.name]:
                for part in _parts(definition):
                    where = (part, inside, place.file)
                    name = getattr(part, "name", "")
                    if part is definition or name.startswith("__") or not name:
                        waiting.append(where)
                    else:
                        methods.setdefault(name, []).append(where)
                        known.add(Place(place.file, f"{place.name}.{name}"))
        for name in mentioned & methods.keys():
            waiting += methods.pop(name)
    unused = {place for place in known if place.name.partition(".")[2] in methods}
    return known - unused


def _parts(node: ast.stmt) -> list[ast.stmt]:
    """A definition as pieces that can be reached one by one: a class falls into its statements."""
    return node.body if isinstance(node, ast.ClassDef) else [node]


_NAMED: dict[int, tuple[set[str], set[Place]]] = {}  # by the identity of a tree, which is kept


def _named_in(node: ast.AST, scope: Scope, file: Path | None) -> tuple[set[str], set[Place]]:
    """Attributes that a piece of code names, and definitions of the package."""
    if id(node) not in _NAMED:
        attributes = {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
        places = {end for at in _mentioned(node, scope, file) for end in _followed(at)}
        _NAMED[id(node)] = attributes, places
    return _NAMED[id(node)]


def _followed(place: Place) -> Iterator[Place]:
    """Where a name is defined, if it is passed on by imports; all of a module that is handed on."""
    scope = scope_of(place.file)
    if place.name == _MODULE:
        yield from (Place(place.file, name) for name in scope.definitions)
    elif place.name in scope.definitions:
        yield place
    elif place.name in scope.imports:
        yield from _followed(scope.imports[place.name])


def _mentioned(node: ast.AST, scope: Scope, file: Path | None) -> Iterator[Place]:
    """Places of the package that a piece of code mentions."""
    imports = scope.imports | _imports(node)
    whole = set()  # modules of which one name is taken
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            place = imports.get(inner.value.id)
            if place and place.name == _MODULE:
                whole.add(inner.value)
                yield Place(place.file, inner.attr)
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Name) or inner in whole:
            continue
        if inner.id in imports:
            yield imports[inner.id]
        elif file and inner.id in scope.definitions:
            yield Place(file, inner.id)


@cache
def scope_of(file: Path) -> Scope:
    return _scope(ast.parse(file.read_text()).body)


def _scope(body: list[ast.stmt]) -> Scope:
    definitions: dict[str, list[ast.stmt]] = {}
    imports: dict[str, Place] = {}
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.If | ast.Try):
            imports |= _imports(node)
        for name in _bound(node):
            definitions.setdefault(name, []).append(node)
    return Scope(definitions, imports)


def _imports(node: ast.AST) -> dict[str, Place]:
    """Names that imports of the package bind, anywhere in a piece of code, and to what."""
    found = {}
    for inner in ast.walk(node):
        if not isinstance(inner, ast.ImportFrom) or not (inner.module or "").startswith(
            syntax.PACKAGE.name
        ):
            continue
        at = syntax.PACKAGE.parent.joinpath(*inner.module.split("."))
        for alias in inner.names:
            if (file := _file_at(at / alias.name)) is not None:
                found[alias.asname or alias.name] = Place(file, _MODULE)
            elif (file := _file_at(at)) is not None:
                found[alias.asname or alias.name] = Place(file, alias.name)
    return found


def _file_at(at: Path) -> Path | None:
    files = (at.with_suffix(".py"), at / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def main() -> None:
    gc.disable()  # half a second of trees that stay
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stamps", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.stamps:
        stamps(options.stamps)
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(reaches())


if __name__ == "__main__":
    main()
