"""The teaching kit points at what is there, and asks the same everywhere."""

import re

import nbformat
import pytest
from notebook_files import NOTEBOOKS, ROOT

from contamination.core.verdicts import VERDICTS

TEACHING = (ROOT / "docs/teaching.md").read_text()
POINTER = re.compile(r"(exercises for )?`(\d\d)[^`]*`|[\"“]([^\"”]+)[\"”]")


def text_of(number, exercises):
    """All cells of a lesson, or of its exercises."""
    (path,) = [path for path in NOTEBOOKS if path.stem.partition("_")[0] == number]
    path = path.parent / "exercises" / path.name if exercises else path
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)


def pointers(cell):
    """Number of the notebook, whether its exercises are meant, and the words to be found there.

    >>> pointers('`03`, "The controls"; exercises for `02`, "Predict: x"')
    [('03', False, 'The controls'), ('02', True, 'Predict: x')]
    """
    notebook, found = None, []
    for exercises, number, words in POINTER.findall(cell):
        notebook = (number, bool(exercises)) if number else notebook
        if words:
            found.append((*notebook, words))
    return found


def rows_under(heading):
    """Lines of the first table under a heading, without its head."""
    section = TEACHING.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("|")][2:]


def column(heading, *numbers):
    """Cells of a table's columns, joined."""
    return [" ".join(line.split("|")[n] for n in numbers) for line in rows_under(heading)]


@pytest.mark.parametrize(
    "cell",
    [*column("Misconceptions, and what to show", 2), *column("Goals, and where to stop", 1, 3)],
)
def test_what_is_to_be_shown_stands_in_the_notebook(cell):
    assert re.search(r"`\d\d", cell)
    for number, exercises, words in pointers(cell):
        assert words in text_of(number, exercises), words


def test_the_questions_stand_apart_from_the_page_that_defines_their_words():
    asked = re.compile(r"^\d\. (.+\?)$", re.M)
    plan = TEACHING.split("The questions, before and after.")[1].split("<details>")[0]
    hand_out = (ROOT / "docs/handout.md").read_text()
    assert len(asked.findall(plan)) == 4
    assert "*AUC*: " in hand_out and not any(q in hand_out for q in asked.findall(plan))


OPEN = TEACHING.split("\n## One open question for each lesson\n")[1].split("\n## ")[0]
OPEN_QUESTIONS = re.findall(
    r"^\*\*`(\w+)`\.\*\* ([^\n]+)\n\n<details><summary>[^\n]+</summary>\n\n(.+?)\n\n</details>",
    OPEN,
    re.M | re.S,
)


def test_five_lessons_have_an_open_question():
    assert [name[:2] for name, *_ in OPEN_QUESTIONS] == ["00", "02", "03", "04", "05"]


@pytest.mark.parametrize(
    ("name", "question", "rubric"), OPEN_QUESTIONS, ids=[name for name, *_ in OPEN_QUESTIONS]
)
def test_an_open_question_ends_the_exercises_and_its_rubric_is_the_teachers(name, question, rubric):
    path = ROOT / f"notebooks/exercises/{name}.ipynb"
    *_, last = nbformat.read(path, as_version=4).cells
    assert last.source.startswith(f"## Open question\n\n{question}\n\n")
    criteria = re.findall(r"^\| (.+) \| (\d) \|$", rubric, re.M)
    answer = rubric.rpartition("|\n\n")[2]
    assert len(answer.split()) >= 80
    assert len(criteria) in (3, 4) and sum(int(points) for _, points in criteria) == 6
    assert any("control" in criterion for criterion, points in criteria if points == "2")
    for folder in ("", "exercises/", "solutions/"):
        shown = (ROOT / f"notebooks/{folder}{name}.ipynb").read_text()
        assert not any(criterion in shown for criterion, _ in criteria) and answer not in shown


def test_the_glossary_has_at_most_twenty_words_with_a_sentence_each():
    glossary = text_of("00", False).split("<summary>Twenty words")[1].split("</details>")[0]
    words = dict(re.findall(r"^\| (.+?) \| (.+) \|$", glossary, re.M)[2:])
    assert len(words) <= 20
    assert set(VERDICTS) <= set(words)
    for word, meaning in words.items():
        assert meaning[0].isupper() and meaning.endswith(".") and ". " not in meaning, word


def test_the_90_minute_plan_names_headings_of_the_results():
    session = TEACHING.split("\n## One session of 90 minutes\n")[1].split("\n## ")[0]
    (row,) = [line for line in session.splitlines() if "09_results" in line]
    for heading in re.findall(r'"([^"]+)"', row):
        assert f"## {heading}" in text_of("09", False), heading
