"""Exercises that ask for an answer: the check itself, and that the case studies have some."""

import re

import nbformat
import numpy as np
import pytest
from notebook_files import CONTENTS, NOTEBOOKS, answers_of, filled_in

from contamination.teaching.exercises import check

# Lessons have exercises in notebooks of their own, and a lab has those of its lesson.
WITH_QUESTIONS = [
    path
    for path, row in zip(NOTEBOOKS, CONTENTS, strict=True)
    if row["kind"] not in ("lesson", "lab")
]


def is_right(*arguments, **settings):
    return check(1, *arguments, **settings) == "Exercise 1: right."


def test_numbers_have_a_tolerance_and_words_a_case():
    assert is_right(14, 100 * 0.14) and not is_right(14, 14.1)
    assert is_right(0.62, np.float64(0.6195), tolerance=0.01)
    assert not is_right(0.64, 0.6195, tolerance=0.01)
    assert not is_right(float("nan"), 0.5, tolerance=1)
    assert is_right(" Perplexity", "perplexity") and not is_right("Zlib", "perplexity")
    assert is_right(["B", "A"], {"A", "B"})
    assert not is_right(["A"], {"A", "B"}) and not is_right("AB", {"A", "B"})
    # Yes and one are not the same answer.
    assert is_right(True, True) and not is_right(False, True) and not is_right(True, 1)


def test_without_an_answer_nothing_is_wrong():
    assert check(3, ..., 5) == "Exercise 3: no answer yet."
    assert check(3, 4, 5) == "Exercise 3: not yet."
    with pytest.raises(TypeError, match="exercise 2"):
        check(2, 1, None)


def test_answers_are_read_from_the_folded_list():
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("answer_1 = ...\ncheck(1, answer_1, right)"),
            nbformat.v4.new_markdown_cell(
                "<details><summary>Answers</summary>\n\n1. `'AB'`: why\n2. `1 + 1`\n\n</details>"
            ),
        ]
    )
    assert answers_of(notebook) == {1: "'AB'", 2: "1 + 1"}
    filled = filled_in(notebook)
    assert filled.cells[0].source == "answer_1 = ...\ncheck(1, ('AB'), right)"


@pytest.mark.parametrize("path", WITH_QUESTIONS, ids=lambda path: path.stem)
def test_every_case_study_has_three_to_five_that_can_be_checked(path):
    notebook = nbformat.read(path, as_version=4)
    text = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    asked = text.partition("## Exercises\n")[2].partition("<details>")[0]
    numbers = [int(n) for n in re.findall(r"^(\d)\. ", asked, re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 3 <= len(numbers) <= 5
    code = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    assert [int(n) for n in re.findall(r"^answer_(\d) = \.\.\.(?:  #|$)", code, re.M)] == numbers
    assert [int(n) for n in re.findall(r"\bcheck\((\d), answer_\1,", code)] == numbers
    assert sorted(answers_of(notebook)) == numbers
