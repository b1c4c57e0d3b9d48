"""What the site and the contents panes rest on: headings in order, links that lead somewhere."""

import re
from itertools import pairwise

import nbformat
import pytest
from notebook_files import NOTEBOOKS, ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
# Where scripts/build_site.py takes pages and downloads from.
ON_THE_SITE = re.compile(r"(docs|notebooks|params)/|[^/]+\.md$|CITATION\.cff$|LICENSE$")


def prose(path):
    """A document's or a notebook's text without its code blocks."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = nbformat.reads(text, as_version=4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


@pytest.mark.parametrize("path", [*NOTEBOOKS, *DOCUMENTS], ids=lambda path: path.stem)
def test_one_title_and_no_level_left_out(path):
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(path), flags=re.M)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(level <= before + 1 for before, level in pairwise(levels))


@pytest.mark.parametrize("path", [*NOTEBOOKS, *DOCUMENTS], ids=lambda path: path.stem)
def test_links_lead_to_files_that_the_site_has_too(path):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", prose(path))
    for target in targets:
        found = (path.parent / target).resolve()
        assert found.exists(), target
        assert ON_THE_SITE.match(str(found.relative_to(ROOT))), target
