"""Hashes of code say what it does, and neither where it lies nor how it is explained."""

import sys

import pytest

from contamination import lab
from contamination.core import syntax

BEFORE = '''"""What the module is for."""

from contamination.lab import docstrings
from contamination.core.overlap import ngrams


def double(x):
    """Twice a number."""
    return 2 * x  # a comment
'''
SAME = {
    "another place of what is imported": (
        "contamination.core.overlap",
        "contamination.elsewhere",
    ),
    "another docstring": ("Twice a number.", "Two times a number."),
    "no docstring": ('    """Twice a number."""\n', ""),
    "another docstring of the module": ("What the module is for.", "Doubles."),
    "another comment": ("# a comment", "# why"),
    "another layout": ("return 2 * x", "return (\n        2 * x\n    )"),
}
OTHER = {
    "another number": ("2 * x", "3 * x"),
    "a whole number or not": ("2 * x", "2.0 * x"),
    "another name": ("double", "twice"),
    "a text that is no docstring": ("return 2 * x", 'return "2 * x"'),
    "another library": ("from contamination.core.overlap import ngrams", "import numpy"),
}


def hash_of(tmp_path, text, name="module.py"):
    path = tmp_path / name
    path.write_text(text)
    syntax.hash_of_file.cache_clear()
    syntax._tree_of.cache_clear()
    return syntax.hash_of_file(path)


@pytest.mark.parametrize("change", SAME)
def test_what_a_reader_alone_sees_changes_no_hash(change, tmp_path):
    changed = BEFORE.replace(*SAME[change])
    assert changed != BEFORE
    assert hash_of(tmp_path, changed) == hash_of(tmp_path, BEFORE)


@pytest.mark.parametrize("change", OTHER)
def test_what_the_interpreter_sees_changes_it(change, tmp_path):
    assert hash_of(tmp_path, BEFORE.replace(*OTHER[change])) != hash_of(tmp_path, BEFORE)


def test_names_and_order_of_files_do_not_matter_but_each_file_does(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "folder" / "two.json"
    two.parent.mkdir()
    one.write_text("x = 1")
    two.write_text('{"a": 1, "b": 2}')
    both = syntax.hash_of_files([one, two])
    moved = [two.rename(tmp_path / "z.json"), one.rename(tmp_path / "folder" / "a.py")]
    assert syntax.hash_of_files(moved) == both
    assert syntax.hash_of_files(moved[:1]) != both


def test_a_package_stands_for_all_its_modules_and_json_files(monkeypatch):
    hashed = []
    monkeypatch.setattr(syntax, "hash_of_files", lambda files: hashed.extend(files) or "")
    syntax.hash_of_modules(lab, sys.modules[__name__])
    names = {path.name for path in hashed}
    assert {"world.py", "benchmarks.py", "arithmetic.json", "test_syntax.py"} <= names


def test_the_hash_is_the_same_under_every_python():
    """Written down: whoever shares a cache under another Python finds what is there."""
    tree = syntax.ast.parse("def f[T](x): pass" if sys.version_info >= (3, 12) else "x = 1")
    assert "type_ignores" not in str(syntax._plain(tree))
    assert syntax._plain(syntax.ast.parse("def f(x): return [x]")) == [
        "Module",
        {
            "body": [
                [
                    "FunctionDef",
                    {
                        "name": "f",
                        "args": ["arguments", {"args": [["arg", {"arg": "x"}]]}],
                        "body": [
                            [
                                "Return",
                                {
                                    "value": [
                                        "List",
                                        {
                                            "elts": [["Name", {"id": "x", "ctx": ["Load", {}]}]],
                                            "ctx": ["Load", {}],
                                        },
                                    ]
                                },
                            ]
                        ],
                    },
                ]
            ]
        },
    ]
