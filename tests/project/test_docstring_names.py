"""What a docstring names between double backquotes exists: ``module.name`` of this package."""

import ast
import importlib
import re

import pytest

from contamination.core.syntax import PACKAGE

FILES = sorted(PACKAGE.rglob("*.py"))
DOTTED = re.compile(r"``(\w+(?:\.\w+)+)(?:\([^`]*\))?``")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Files that are called like a module.
ENDINGS = ("csv", "html", "json", "md", "parquet", "png", "py", "sqlite", "tex", "txt", "yaml")
# A setting of an audit's file, and a key of a GGUF file.
NO_MEMBERS = {"data.dataset", "tokenizer.ggml.add_bos_token"}


def modules_by_name():
    """Full names of the modules and folders that a short name may stand for."""
    modules = {}
    for file in FILES:
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        modules.setdefault(parts[-1], []).append(".".join(parts))
    return modules


MODULES = modules_by_name()


def exists(name):
    """Whether a dotted name leads from a module of the package to something; None for others.

    >>> exists("core.scores.min_k_score"), exists("scores.no_such_score"), exists("np.log")
    (True, False, None)
    """
    first, *rest = name.split(".")
    if first not in MODULES or rest[-1] in ENDINGS:
        return None
    return any(_leads_on(importlib.import_module(module), rest) for module in MODULES[first])


def _leads_on(found, names):
    for name in names:
        if hasattr(found, "__path__"):
            path = PACKAGE.parent.joinpath(*found.__name__.split("."), name)
            if path.is_dir() or path.with_suffix(".py").is_file():
                found = importlib.import_module(f"{found.__name__}.{name}")
                continue
        fields = getattr(found, "__annotations__", {})  # of a dataclass, set on its instances alone
        if not hasattr(found, name):
            return name in fields
        found = getattr(found, name)
    return True


def test_names_are_told_apart():
    assert exists("core.scores.min_k_score") and exists("scores.K_PERCENT")
    assert exists("settings.Model.sent") and exists("contamination.core.run")
    assert exists("scores.no_such_score") is False and exists("core.no_such_module") is False
    assert exists("np.log") is None and exists("scores.csv") is None


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_names_in_docstrings_exist(file):
    """A field of an argument is no member of a module that has the argument's name."""
    fields_aside = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, DOCUMENTED):
            named = set(DOTTED.findall(ast.get_docstring(node) or "")) - NO_MEMBERS
            arguments = {found.arg for found in ast.walk(node) if isinstance(found, ast.arg)}
            fields_aside |= {name for name in named if name.split(".")[0] not in arguments}
    assert sorted(name for name in fields_aside if exists(name) is False) == []
