"""Every relative link and every anchor leads somewhere, in texts and in executed notebooks."""

import re
from functools import cache
from urllib.parse import unquote

import nbformat
import pytest
from notebook_files import EVERY_NOTEBOOK, ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EXECUTED = sorted(ROOT.glob("outputs/reference/**/*.ipynb"))
PAGES = [*DOCUMENTS, *EVERY_NOTEBOOK, *EXECUTED]
DEEPEST = 3  # heading that has an anchor on the site (docs/conf.py)


def without_code(markdown):
    """Markdown without what is shown as it is."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", markdown, flags=re.M | re.S)


@cache
def texts(path):
    """A page's pieces of Markdown and HTML; of a notebook what its cells have shown, too."""
    if path.suffix != ".ipynb":
        return (path.read_text(),)
    cells = nbformat.read(path, as_version=4).cells
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    kinds = ("text/markdown", "text/html")
    written = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return (*written, *(data[kind] for data in shown for kind in kinds if kind in data))


def links_of(text):
    """Targets of a text's links and pictures on this site, as they are written.

    >>> links_of("[a](b.md#c) ![d](e.png) [f](https://g) `[h](i)` <a href='#j'>j</a>")
    ['b.md#c', 'e.png', '#j']
    """
    text = without_code(text)
    found = re.findall(r"\]\(([^)\s]+)[^)]*\)", text)
    found += re.findall(r"<(?:a|img)\b[^>]*?\b(?:href|src)=[\"']([^\"']+)", text)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchor_of(heading):
    """The anchor of a heading, on GitHub and on the site.

    >>> anchor_of("`Min-K%++`, and [why](x.md)?")
    'min-k-and-why'
    """
    heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@cache
def anchors(path):
    """Names within a page that a link can lead to."""
    found = set()
    for text in texts(path):
        text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        found |= {anchor_of(h) for h in re.findall(rf"^#{{1,{DEEPEST}}} (.+)$", text, re.M)}
        found |= set(re.findall(r"\bid=[\"']([^\"']+)", text))
    return found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(path):
    lost = []
    for link in [link for text in texts(path) for link in links_of(text)]:
        target, _, name = unquote(link).partition("#")
        page = (path.parent / target).resolve() if target else path
        is_page = page.suffix in (".md", ".ipynb")
        if not page.exists() or (name and is_page and name not in anchors(page)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize(
    ("link", "is_lost"),
    [
        ("b.md", False),
        ("b.md#a-name", False),
        ("c.md", True),
        ("b.md#another", True),
        ("#no", True),
    ],
)
def test_a_link_without_a_target_is_noticed(tmp_path, link, is_lost):
    (tmp_path / "a.md").write_text(f"# A\n\nSee [it]({link}).\n")
    (tmp_path / "b.md").write_text("# B\n\n## A name\n")
    if is_lost:
        with pytest.raises(AssertionError):
            test_links_and_anchors_lead_somewhere(tmp_path / "a.md")
    else:
        test_links_and_anchors_lead_somewhere(tmp_path / "a.md")
