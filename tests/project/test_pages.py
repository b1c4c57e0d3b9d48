"""Pages name notebooks, files and commands that exist."""

import re
import shlex

import pytest
from notebook_files import NOTEBOOKS, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_paths_in_code_exist(page):
    text = page.read_text()
    for path in re.findall(r"`((?:params|notebooks|docs|scripts|benchmarks)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_make_targets_exist(page):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    targets += [path.stem for path in NOTEBOOKS]
    for command in re.findall(r"(?:`|^)make ([^`\n#]+)", page.read_text(), re.M):
        for word in shlex.split(command):
            assert "=" in word or word.startswith(("-", "$")) or word in targets, command
