"""What the site and the contents panes rest on: headings in order, links that lead somewhere."""

import re
from itertools import pairwise

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from notebook_files import NOTEBOOKS, ROOT, script

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


def test_a_page_folds_what_serves_the_run_and_says_what_a_figure_shows(tmp_path):
    tags = ["parameters", "imports", "drawing", "method", "injected-parameters"]
    cells = [new_code_cell("1", metadata={"tags": [tag]}) for tag in tags]
    alt = {"image/png": {"alt": "Figure. Members score higher"}}
    cells[2].outputs = [new_output("display_data", data={"image/png": ""}, metadata=alt)]
    nbformat.write(new_notebook(cells=cells), tmp_path / "n.ipynb")
    page = script("build_site").as_page(tmp_path / "n.ipynb").cells
    assert ["hide-input" in cell.metadata.tags for cell in page] == [True, True, True, False, True]
    assert page[0].metadata.mystnb == {
        "code_prompt_show": "Parameters",
        "code_prompt_hide": "Parameters",
    }
    assert page[2].metadata.mystnb.image.alt == "Figure. Members score higher"
