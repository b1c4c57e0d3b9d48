"""What code says, whatever it is called and wherever it lies: hashes and imports of modules.

A cache is keyed by the code that fills it, and Make runs a notebook again when the code it
reaches has changed. Neither may depend on where a file lies, on comments or on docstrings,
so what is hashed is the syntax tree without these. Needs the standard library alone, so that
Make can ask before an environment exists.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).resolve().parents[1]
_HAS_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def hash_of_modules(*modules: ModuleType) -> str:
    """SHA-256 of what modules say; a package stands for all its modules and JSON files.

    The same after a file was moved or renamed, after imports within this package were
    rewritten, and after a change of comments, docstrings or layout.
    """
    files: set[Path] = set()
    for module in modules:
        folders = getattr(module, "__path__", None)
        places = [Path(module.__file__ or "")] if folders is None else Path(folders[0]).rglob("*")
        files |= {path for path in places if path.suffix in (".py", ".json")}
    return hash_of_files(files)


def hash_of_files(files: Iterable[Path]) -> str:
    """SHA-256 of what some files say, in any order and under any names; see ``hash_of_file``."""
    return hashlib.sha256("".join(sorted(map(hash_of_file, files))).encode()).hexdigest()


@cache
def hash_of_file(path: Path) -> str:
    """SHA-256 of a Python file's syntax tree, of a JSON file's value, of any other file's bytes."""
    data = path.read_bytes()
    if path.suffix == ".py":
        data = json.dumps(_plain(_tree_of(path))).encode()
    elif path.suffix == ".json":
        data = json.dumps(json.loads(data), sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()


@cache
def _tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def _plain(node: object) -> object:
    """A syntax tree as JSON values, the same under every Python that can parse it.

    Left out: docstrings, imports of this package, and fields without a value, which newer
    versions of Python add to.
    """
    if isinstance(node, list):
        return [_plain(item) for item in node if not _is_own_import(item)]
    if not isinstance(node, ast.AST):
        return node if isinstance(node, str | int | float) else repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, _HAS_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    kept = {name: value for name, value in fields.items() if value is not None and value != []}
    return [type(node).__name__, {name: _plain(value) for name, value in kept.items()}]


def _is_own_import(node: object) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) and any(_own_names(node))


# Which files a piece of code imports


def _own_names(node: ast.AST) -> Iterator[str]:
    """Modules of this package, or names in them, that one statement imports."""
    if isinstance(node, ast.ImportFrom) and node.module:
        if node.module.split(".")[0] == PACKAGE.name:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        names = (alias.name for alias in node.names)
        yield from (name for name in names if name.split(".")[0] == PACKAGE.name)


@cache
def imported_files(path: Path) -> frozenset[Path]:
    """Files of this package that one of its files imports itself, wherever in it."""
    return files_imported_by(_tree_of(path))


def files_imported_by(tree: ast.AST) -> frozenset[Path]:
    """Files of this package that a syntax tree imports."""
    names = {name for node in ast.walk(tree) for name in _own_names(node)}
    places = [PACKAGE.parent.joinpath(*name.split(".")) for name in names]
    files = (file for at in places for file in (at.with_suffix(".py"), at / "__init__.py"))
    return frozenset(file for file in files if file.is_file())


def reached_files(code: str) -> set[Path]:
    """Files of this package that some code imports, or that what it imports does, and so on."""
    known: set[Path] = set()
    waiting: set[Path] = set(files_imported_by(ast.parse(code)))
    while waiting:
        known |= waiting
        waiting = set().union(*map(imported_files, waiting)) - known
    return known


def code_of_notebook(path: Path) -> str:
    """The code cells of a notebook, one after the other."""
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
