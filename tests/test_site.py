"""What the site and the contents panes rest on: headings in order, links that lead somewhere."""

import re
from itertools import pairwise

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from notebook_files import EVERY_NOTEBOOK, NOTEBOOKS, ROOT, script

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


@pytest.mark.parametrize("path", [*EVERY_NOTEBOOK, *DOCUMENTS], ids=lambda path: path.stem)
def test_one_title_and_no_level_left_out(path):
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(path), flags=re.M)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(level <= before + 1 for before, level in pairwise(levels))


@pytest.mark.parametrize("path", [*EVERY_NOTEBOOK, *DOCUMENTS], ids=lambda path: path.stem)
def test_links_lead_to_files_that_the_site_has_too(path):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", prose(path))
    for target in targets:
        found = (path.parent / target).resolve()
        assert found.exists(), target
        assert ON_THE_SITE.match(str(found.relative_to(ROOT))), target


def test_a_page_folds_what_serves_the_run_and_says_what_a_figure_shows(tmp_path):
    tags = ["parameters", "imports", "drawing", "method", "injected-parameters", "training"]
    cells = [new_code_cell("1", metadata={"tags": [tag]}) for tag in tags]
    alt = {"image/png": {"alt": "Figure. Members score higher"}}
    cells[2].outputs = [new_output("display_data", data={"image/png": ""}, metadata=alt)]
    nbformat.write(new_notebook(cells=cells), tmp_path / "n.ipynb")
    page = script("build_site").as_page(tmp_path / "n.ipynb").cells
    folded = {cell.metadata.tags[0]: "hide-input" in cell.metadata.tags for cell in page}
    assert folded == {tag: tag != "method" for tag in tags}
    assert page[0].metadata.mystnb == {
        "code_prompt_show": "Parameters",
        "code_prompt_hide": "Parameters",
    }
    assert page[2].metadata.mystnb.image.alt == "Figure. Members score higher"


@pytest.mark.parametrize("path", EVERY_NOTEBOOK, ids=lambda path: path.stem)
def test_what_is_folded_on_a_page_is_folded_in_jupyterlab_and_is_never_the_method(path):
    folds = script("build_site").FOLDED
    for cell in nbformat.read(path, as_version=4).cells:
        tags = set(cell.metadata.get("tags", []))
        in_jupyterlab = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        assert in_jupyterlab == bool(folds.keys() & tags), cell.source
        assert not (in_jupyterlab and "method" in tags), cell.source


@pytest.mark.parametrize("path", NOTEBOOKS[:6], ids=lambda path: path.stem)
def test_code_of_figures_and_of_training_is_folded_before_the_method(path):
    folds = script("build_site").FOLDED
    for cell in nbformat.read(path, as_version=4).cells:
        tags = set(cell.metadata.get("tags", []))
        if "method" in tags:
            return
        if cell.cell_type == "code" and not folds.keys() & tags:
            assert len(cell.source.splitlines()) <= 5, cell.source
    raise AssertionError("no cell is tagged as the method")
