"""Every example in a docstring of the package gives what stands below it."""

import doctest
import importlib

import pytest
from notebook_files import PACKAGE

MODULES = [
    ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    found = doctest.testmod(importlib.import_module(name), report=True)
    assert found.failed == 0
