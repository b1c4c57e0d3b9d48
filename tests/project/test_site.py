"""Python for the pages of the site: fetched once, and checked."""

import hashlib
import tarfile

import pytest
from notebook_files import script

from contamination.core import storage

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


def test_an_altered_package_is_refused(pyodide, tmp_path):
    npm_that("for last; do :; done; echo altered > $last/pyodide-0.29.4.tgz", tmp_path)
    with pytest.raises(SystemExit, match="SHA-512 differs"):
        pyodide.main(tmp_path / "site")
    assert not (tmp_path / "site").exists() and not list((tmp_path / "cache").rglob("*.tgz"))
