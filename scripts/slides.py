"""Slides of the lessons: the notebooks' own questions, predictions and figures, on one page.

    python scripts/slides.py outputs/demo outputs/demo/slides.html

One file without a script or a link to elsewhere. Space and Page Down go on; printed, it gives
each slide a page.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

import nbformat
import pandas as pd

from contamination.core import storage

KINDS = ("lesson", "results")  # of notebooks/contents.csv
END = "## Going deeper"  # what stands below is for projects
PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Was this model trained on this benchmark?</title>
<style>
html {{ font: 2.6vmin/1.4 sans-serif; scroll-snap-type: y mandatory; }}
body {{ margin: 0; }}
section {{ box-sizing: border-box; height: 100vh; padding: 4vmin 8vmin; scroll-snap-align: start;
  display: flex; flex-direction: column; justify-content: center; align-items: center;
  text-align: center; break-after: page; }}
h1 {{ font-size: 6vmin; }}
h2 {{ font-size: 3.4vmin; margin: 0 0 2vmin; }}
p {{ font-size: 3.4vmin; margin: 1vmin; max-width: 60em; }}
img {{ width: 100%; min-height: 0; flex: 0 1 68vh; object-fit: contain; }}
</style>
{slides}
</html>
"""


def main(outputs: Path, page: Path) -> None:
    contents = pd.read_csv(Path(__file__).parents[1] / "notebooks/contents.csv")
    shown = contents.loc[contents["kind"].isin(KINDS), "notebook"]
    paths = [outputs / "notebooks" / f"{name}.ipynb" for name in shown]
    slides = []
    for path in filter(Path.exists, paths):
        slides += slides_of(nbformat.read(path, as_version=4))
    storage.write_text(page, PAGE.format(slides="\n".join(slides)))
    print(f"written: {page}, {len(slides)} slides")


def slides_of(notebook: nbformat.NotebookNode) -> list[str]:
    """A slide for the notebook's question, each "Predict" and each figure above ``END``.

    A figure stands under the last heading before it, with the sentences of its own cell.
    """
    title, question = notebook.cells[0].source.split("\n\n")[:2]
    slides = [_section(f"<h1>{_plain(title)}</h1>", f"<p>{_plain(question)}</p>")]
    heading = title
    for cell in notebook.cells[1:]:
        if cell.cell_type == "markdown":
            for block in cell.source.split("\n\n"):
                if block.startswith(END):
                    return slides
                heading = block.splitlines()[0] if block.startswith("#") else heading
                if block.startswith("**Predict:**"):
                    text = block.removeprefix("**Predict:**")
                    slides.append(_section("<h2>Predict</h2>", f"<p>{_plain(text)}</p>"))
        results = [each for each in cell.get("outputs", []) if "data" in each]
        said = [each.data["text/markdown"] for each in results if "text/markdown" in each.data]
        for each in results:
            if image := each.data.get("image/png"):
                alt = each.metadata.get("image/png", {}).get("alt", _plain(heading))
                source = "".join(image.split())
                figure = f'<img src="data:image/png;base64,{html.escape(source)}"'
                figure += f' alt="{html.escape(html.unescape(alt))}">'
                sentences = [f"<p>{_plain(html.unescape(text))}</p>" for text in said]
                slides.append(_section(f"<h2>{_plain(heading)}</h2>", figure, *sentences))
    return slides


def _section(*parts: str) -> str:
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _plain(markdown: str) -> str:
    """A heading or a sentence as text that is safe in HTML, without its marks."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", markdown.lstrip("# ").strip())
    text = re.sub(r"(?<!\\)[*`]", "", text)
    return html.escape(re.sub(r"\\([*_`\[\]|])", r"\1", text))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
