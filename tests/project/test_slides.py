"""One page of slides from executed notebooks, without anything from elsewhere."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_files import LESSONS, ROOT, script

from contamination.core import tables

ATTACK = "<script>x</script> 2 * 3 [a] `b`"


@pytest.fixture(name="notebook")
def executed_notebook():
    image = {"image/png": "iVBOR\nw0KGgo=\n", "text/plain": "<Figure>"}
    said = {"text/markdown": tables.say(ATTACK).data}
    alt = {"image/png": {"alt": 'Figure. "A" > B'}}
    outputs = [new_output("display_data", data=image, metadata=alt)]
    outputs += [new_output("display_data", data=said), new_output("stream", text="not shown")]
    after = new_output("display_data", data=image)
    return new_notebook(
        cells=[
            new_markdown_cell("# 07 · Title\n\nIs it *so*?\n\nMore."),
            new_markdown_cell("## The `answer`"),
            new_code_cell("figure", outputs=outputs),
            new_markdown_cell("Text.\n\n**Predict:** how many of\nten? Write it down."),
            new_markdown_cell("## Going deeper\n\n**Predict:** no slide."),
            new_code_cell("figure", outputs=[after]),
        ]
    )


def test_slides_are_question_figure_and_prediction(notebook):
    question, figure, prediction = script("slides").slides_of(notebook)
    assert "<h1>07 · Title</h1>\n<p>Is it so?</p>" in question
    assert "<h2>The answer</h2>" in figure and "data:image/png;base64,iVBORw0KGgo=" in figure
    assert 'alt="Figure. &quot;A&quot; &gt; B"' in figure
    assert "<p>&lt;script&gt;x&lt;/script&gt; 2 * 3 [a] `b`</p>" in figure
    assert "<p>how many of\nten? Write it down.</p>" in prediction


def test_the_page_holds_the_lessons_and_fetches_nothing(notebook, tmp_path, capsys):
    (tmp_path / "notebooks").mkdir()
    for name in ("00_start_here", "07_case_downstream"):
        nbformat.write(notebook, tmp_path / f"notebooks/{name}.ipynb")
    script("slides").main(tmp_path, tmp_path / "slides.html")
    page = (tmp_path / "slides.html").read_text()
    assert page.count("<section>") == 3 and "3 slides" in capsys.readouterr().out
    assert "<script" not in page and "http" not in page and "{{" not in page


@pytest.mark.parametrize(
    "path", [*LESSONS, ROOT / "notebooks/09_results.ipynb"], ids=lambda path: path.stem
)
def test_every_lesson_begins_with_title_and_question(path):
    title, *_ = script("slides").slides_of(nbformat.read(path, as_version=4))
    assert title.count("<p>") == 1 and path.stem.partition("_")[0] in title
