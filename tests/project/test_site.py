"""What the site and the contents panes rest on: headings in order, links that lead somewhere."""

import hashlib
import re
import tarfile

import nbformat
import pytest
from notebook_files import EVERY_NOTEBOOK, LESSONS, ROOT, script

from contamination.core import storage

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
# Where scripts/build_site.py takes pages and downloads from.
ON_THE_SITE = re.compile(
    r"(docs|notebooks|params|outputs/reference/demo/(?:notebooks|figures))/|[^/]+\.md$|CITATION\.cff$|LICENSE$"
)


def prose(path):
    """A document's or a notebook's text without its code blocks."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = nbformat.reads(text, as_version=4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


@pytest.mark.parametrize("path", [*EVERY_NOTEBOOK, *DOCUMENTS], ids=lambda path: path.stem)
def test_links_lead_to_files_that_the_site_has_too(path):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", prose(path))
    for target in targets:
        found = (path.parent / target).resolve()
        assert found.exists(), target
        assert ON_THE_SITE.match(str(found.relative_to(ROOT))), target


@pytest.mark.parametrize("path", EVERY_NOTEBOOK, ids=lambda path: path.stem)
def test_a_lesson_opens_elsewhere_once_the_repository_has_an_address(path):
    page = script("build_site").as_page
    plain = [cell.source for cell in page(path).cells]
    for address in ("https://github.com/someone/thing", "https://github.com/someone/thing.git"):
        sources = [cell.source for cell in page(path, address).cells]
        if path not in LESSONS:
            assert sources == plain
            continue
        assert sources[:1] + sources[2:] == plain
        assert f"/v2/gh/someone/thing/main?urlpath=lab/tree/notebooks/{path.name})" in sources[1]
        assert f"/github/someone/thing/blob/main/notebooks/{path.name})" in sources[1]
        assert "](../docs/install.md#without-installing)" in sources[1]
    assert [cell.source for cell in page(path, "https://elsewhere.org/thing").cells] == plain


@pytest.mark.parametrize(
    ("urls", "address"),
    [
        ("", ""),
        ('[project.urls]\nRepository = ""', ""),
        ('[project.urls]\nRepository = "https://github.com/a/b"', "https://github.com/a/b"),
    ],
)
def test_the_address_is_stated_in_one_place_or_nowhere(tmp_path, monkeypatch, urls, address):
    module = script("build_site")
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "thing"\n{urls}\n')
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert module.repository() == address


NPM = """#!/bin/sh
echo "$@" >> {folder}/asked
{then}
"""


@pytest.fixture
def pyodide(tmp_path, monkeypatch):
    """The script with an empty cache and an npm of the test's own; what npm packs is pinned."""
    module = script("pyodide")
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name in module.FILES:
        (tmp_path / "package").mkdir(exist_ok=True)
        (tmp_path / "package" / name).write_text(f"{name}, packed")
    with tarfile.open(tmp_path / "packed.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    digest = hashlib.sha512((tmp_path / "packed.tgz").read_bytes()).hexdigest()
    monkeypatch.setattr(module, "SHA512", digest)
    return module


def npm_that(does, folder):
    (folder / "npm").write_text(NPM.format(folder=folder, then=does))
    (folder / "npm").chmod(0o755)


def test_python_for_the_pages_is_fetched_once(pyodide, tmp_path, capsys):
    npm_that(f"for last; do :; done; cp {tmp_path}/packed.tgz $last/pyodide-0.29.4.tgz", tmp_path)
    for folder in (tmp_path / "one", tmp_path / "two"):
        assert pyodide.main(folder) == 0
        assert [(folder / name).read_text() for name in pyodide.FILES] == [
            f"{name}, packed" for name in pyodide.FILES
        ]
    assert (tmp_path / "asked").read_text().count("pack pyodide@0.29.4") == 1
    assert capsys.readouterr().out.count("6 MB") == 1


def test_without_npm_or_a_network_one_line_says_so(pyodide, tmp_path, monkeypatch, capsys):
    npm_that("exit 1", tmp_path)
    for path in (str(tmp_path), ""):
        monkeypatch.setenv("PATH", path)
        assert pyodide.main(tmp_path / "site") == 0
        assert "npm could not fetch pyodide@0.29.4" in capsys.readouterr().out.splitlines()[-1]
    assert not (tmp_path / "site").exists()


def test_an_altered_package_is_refused(pyodide, tmp_path):
    npm_that("for last; do :; done; echo altered > $last/pyodide-0.29.4.tgz", tmp_path)
    with pytest.raises(SystemExit, match="SHA-512 differs"):
        pyodide.main(tmp_path / "site")
    assert not (tmp_path / "site").exists() and not list((tmp_path / "cache").rglob("*.tgz"))
