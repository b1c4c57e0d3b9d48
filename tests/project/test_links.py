"""Links, anchors, paths and commands in texts and in executed notebooks lead somewhere."""

import json
import re
import shlex
from functools import cache
from urllib.parse import unquote

import pytest
from notebook_files import EVERY_NOTEBOOK, NOTEBOOKS, ROOT

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
    cells = json.loads(path.read_text())["cells"]
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    kinds = ("text/markdown", "text/html")
    written = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    pieces = [*written, *(data[kind] for data in shown for kind in kinds if kind in data)]
    return tuple("".join(piece) for piece in pieces)


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


def lost_links(path):
    """Links of a page that lead nowhere."""
    lost = []
    for link in [link for text in texts(path) for link in links_of(text)]:
        target, _, name = unquote(link).partition("#")
        page = (path.parent / target).resolve() if target else path
        is_page = page.suffix in (".md", ".ipynb")
        if not page.exists() or (name and is_page and name not in anchors(page)):
            lost.append(link)
    return lost


def test_links_and_anchors_lead_somewhere():
    assert {path.name: lost for path in PAGES if (lost := lost_links(path))} == {}


@pytest.mark.parametrize("link", ["b.md", "b.md#a-name", "c.md", "b.md#another", "#no"])
def test_a_link_without_a_target_is_noticed(tmp_path, link):
    (tmp_path / "a.md").write_text(f"# A\n\nSee [it]({link}).\n")
    (tmp_path / "b.md").write_text("# B\n\n## A name\n")
    assert lost_links(tmp_path / "a.md") == ([] if link in ("b.md", "b.md#a-name") else [link])


def test_paths_and_make_targets_in_code_exist():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    targets += [path.stem for path in NOTEBOOKS]
    folder = r"`((?:params|notebooks|docs|scripts)/[\w./-]+)`"
    for page in [*DOCUMENTS, *EVERY_NOTEBOOK]:
        text = "\n".join(texts(page))
        for path in re.findall(folder, text):
            assert (ROOT / path).exists(), (page.name, path)
        for command in re.findall(r"(?:`|^)make ([^`\n#]+)", text, re.M):
            for word in shlex.split(command):
                is_no_target = "=" in word or word.startswith(("-", "$"))
                assert is_no_target or word in targets, (page.name, command)
