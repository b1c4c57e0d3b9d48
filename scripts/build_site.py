"""Build the static site: executed notebooks, documents, and every table as a download.

    python scripts/build_site.py outputs/demo outputs/demo/site

Pages are gathered with the repository's own layout, so that a link between two
files is the same on the site. A notebook that was not executed is shown as it
is stored. The site replaces the one before only when all of it was built.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell

ROOT = Path(__file__).resolve().parents[1]
# Where a lesson opens without an installation, by what its page calls the place.
RUN_AT = {
    "Binder": "https://mybinder.org/v2/gh/{name}/main?urlpath=lab/tree/{path}",
    "Colab": "https://colab.research.google.com/github/{name}/blob/main/{path}",
}
# Cells that are folded away, by their tags, and what is written on the fold.
FOLDED = {
    "parameters": "Parameters",
    "injected-parameters": "In this run",
    "imports": "Imports",
    "own": "Your own model",
    "training": "How the models are trained",
    "numbers": "The figure's numbers",
    "answer": "How the answer is computed",
    "conclusion": "What this rests on",
    "quizzes": "How the quizzes are drawn and counted",
    "drawing": "How the figure is made",
}
FRONT_PAGE = """
```{{toctree}}
:hidden:
:caption: Notebooks
:glob:
notebooks/*
```
```{{toctree}}
:hidden:
:caption: Exercises
:glob:
notebooks/exercises/*
```
```{{toctree}}
:hidden:
:caption: Results
tables
```
```{{toctree}}
:hidden:
:caption: More
:glob:
docs/*
{pages}
```
```{{toctree}}
:hidden:
:caption: Solutions
:glob:
notebooks/solutions/*
```
"""


def main(outputs: Path, site: Path) -> int:
    from sphinx.cmd.build import main as sphinx  # of requirements/extra.txt

    with tempfile.TemporaryDirectory(prefix="site-") as folder:
        source, built = Path(folder, "source"), Path(folder, "built")
        gather(outputs, source)
        options = ["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", str(ROOT / "docs")]
        code = sphinx([*options, "--doctree-dir", f"{folder}/trees", str(source), str(built)])
        if code:
            return code
        pages = shutil.ignore_patterns("*.md", "*.ipynb")
        shutil.copytree(source, built, dirs_exist_ok=True, ignore=pages)
        shutil.rmtree(site, ignore_errors=True)
        shutil.move(built, site)
    return 0


def gather(outputs: Path, source: Path) -> None:
    """Everything that becomes a page or a download, in the repository's layout."""
    for name in ("docs", "params", "notebooks", "src/contamination/data/published"):
        shutil.copytree(ROOT / name, source / name)
    hidden = shutil.ignore_patterns("site", "failed", ".*")
    shutil.copytree(outputs, source, dirs_exist_ok=True, ignore=hidden)
    for path in source.glob("notebooks/**/*.ipynb"):
        nbformat.write(as_page(path, repository()), path)
    for path in [*ROOT.glob("*.md"), ROOT / "CITATION.cff", ROOT / "LICENSE"]:
        shutil.copy(path, source)
    readme = (source / "README.md").rename(source / "index.md")
    for page in [readme, *source.glob("docs/*.md")]:  # the site has the notebooks of this run
        text = page.read_text()
        for name in re.findall(r"\]\(outputs/reference/demo/(figures/[\w.]+)\)", text):
            if not (source / name).exists():  # a run of some notebooks alone
                (source / name).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / "outputs/reference/demo" / name, source / name)
        page.write_text(text.replace("outputs/reference/demo/", ""))
    pages = "\n".join(sorted(path.stem for path in source.glob("*.md") if path != readme))
    readme.write_text(readme.read_text() + FRONT_PAGE.format(pages=pages))
    (source / "tables.md").write_text(list_of_tables(source))


def repository() -> str:
    """The repository's address, which pyproject.toml alone states; empty where it does not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project.get("urls", {}).get("Repository", "")


def links_to_run(path: Path, address: str) -> str:
    """A sentence with links that open a lesson elsewhere; empty for what cannot be opened there.

    >>> links_to_run(Path("notebooks/02_dcq.ipynb"), "")
    ''
    """
    name = address.removeprefix("https://github.com/").removesuffix("/").removesuffix(".git")
    if name == address or path.parent.name != "notebooks" or path.stem not in lessons():
        return ""
    links = [
        f"[{place}]({form.format(name=name, path=f'notebooks/{path.name}')})"
        for place, form in RUN_AT.items()
    ]
    first = "[what Colab needs first](../docs/install.md#without-installing)"
    return f"Run this notebook without installing anything: {' or '.join(links)} ({first})."


def lessons() -> set[str]:
    """Names of the notebooks that are lessons."""
    with (ROOT / "notebooks/contents.csv").open(newline="") as stream:
        return {row["notebook"] for row in csv.DictReader(stream) if row["kind"] == "lesson"}


def as_page(path: Path, address: str = "") -> nbformat.NotebookNode:
    """The notebook with what serves only its run folded away; it ends with its exercises.

    Below its title a lesson says where it can be run, if the repository has an address.
    """
    notebook = nbformat.read(path, as_version=4)
    if sentence := links_to_run(path, address):
        notebook.cells.insert(1, new_markdown_cell(sentence))
    for cell in notebook.cells:
        options = {}
        for tag in FOLDED.keys() & set(cell.metadata.get("tags", [])):
            cell.metadata.tags.append("hide-input")
            options |= {"code_prompt_show": FOLDED[tag], "code_prompt_hide": FOLDED[tag]}
        for output in cell.get("outputs", []):
            if alt := output.get("metadata", {}).get("image/png", {}).get("alt"):
                options["image"] = {"alt": alt}
        cell.metadata["mystnb"] = options
    last = notebook.cells[-1]
    if last.source == "versions()":
        last.metadata["tags"] = ["hide-cell"]
        last.metadata["mystnb"] = {"code_prompt_show": "Versions", "code_prompt_hide": "Versions"}
        # A lab has the exercises of its lesson, which has the same number.
        exercises = sorted(path.parent.glob(f"exercises/{path.stem[:2]}_*.ipynb"))
        target = f"exercises/{exercises[0].name}" if exercises else "#exercises"
        notebook.cells.append(new_markdown_cell(f"Now you: [the exercises]({target})."))
    return notebook


def list_of_tables(source: Path) -> str:
    """A page that names every table and figure under the notebook that writes it."""
    lines = ["# Tables and figures", ""]
    lines += ["CSV files with full precision, as the notebooks wrote them. The manifest of a run"]
    lines += ["holds its parameters, versions and the SHA-256 of inputs and outputs."]
    lines += ["[columns.csv](docs/columns.csv) has a sentence for every column.", ""]
    for path in sorted(source.glob("manifests/*.json")):
        written = sorted(json.loads(path.read_text())["outputs"])
        tables = [name for name in written if name.endswith(".csv")]
        others = [f"notebooks/{path.stem}.ipynb", f"manifests/{path.name}"]
        others += [name for name in written if name not in tables]
        notebook = nbformat.read(source / others[0], as_version=4)
        lines += [f"#{notebook.cells[0].source.splitlines()[0]}", ""]
        if tables:
            lines += ["| Table | Rows | Columns |", "| --- | --- | --- |"]
            lines += [f"| `{name}` | {rows_and_columns(source / name)} |" for name in tables]
            lines += [""]
        lines += [f"Beside: {', '.join(f'`{name}`' for name in others)}.", ""]
    return "\n".join(lines)


def rows_and_columns(table: Path) -> str:
    """Two cells: how many rows, and the names of the columns."""
    with table.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    return f"{len(rows)} | {', '.join(header)}"


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2])))
