"""One page of slides from executed notebooks, without anything from elsewhere."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_files import script

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


def test_the_page_holds_the_lessons_and_fetches_nothing(notebook, tmp_path, capsys):
    (tmp_path / "notebooks").mkdir()
    for name in ("00_start_here", "07_case_downstream"):
        nbformat.write(notebook, tmp_path / f"notebooks/{name}.ipynb")
    script("slides").main(tmp_path, tmp_path / "slides.html")
    page = (tmp_path / "slides.html").read_text()
    assert page.count("<section>") == 3 and "3 slides" in capsys.readouterr().out
    assert "<script" not in page and "http" not in page and "{{" not in page
