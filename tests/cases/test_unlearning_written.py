"""What an unlearned model of one's own writes: tables, counts and figure of notebook 08's end."""

import nbformat
import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT
from scripted_server import MODEL, ScriptedServer, good, question
from test_unlearning import own, tokenizer, trained  # noqa: F401 (fixtures)

from contamination.cases import unlearning_items, unlearning_questions, unlearning_written
from contamination.cases.unlearning_items import MIN_K, MIN_K_SHARE, QUESTIONS, STORY
from contamination.cases.unlearning_questions import write_questions
from contamination.models.chat import Endpoint

pytestmark = pytest.mark.usefixtures("one_thread")
BOOK = " ".join(f"Wenekko number {n} of Galmere met the green fox at dawn" for n in range(8))
ASKED = [(f"Who met fox number {n}?", f"Wenekko number {n}") for n in range(30)]


def chat(body, n):
    """Writes eight questions a time, three of them known already; rates what it is shown."""
    text = question(body)
    if text.startswith("Can you give me a list"):
        assert text.startswith(unlearning_questions.QUERY.format(topic="Galmere"))
        found = ASKED[5 * (n % 6) : 5 * (n % 6) + 8]
        return good("\n".join(f"{k}. Q: {q}\n   A: {a}" for k, (q, a) in enumerate(found, 1)))
    return good("Score: 5 Reason: same" if len(text) % 2 else "Score: 2 Reason: other")


@pytest.fixture
def endpoint():
    with ScriptedServer(chat) as server:
        yield Endpoint(server.base_url, MODEL, None)


# Questions


def test_questions_are_asked_for_until_there_are_enough(endpoint):
    found = write_questions("Galmere", 12, endpoint=endpoint, progress=False)
    assert list(found) == ["question", "answer"] and len(found) == 12
    assert found["question"].is_unique
    assert set(found.itertuples(index=False, name=None)) <= set(ASKED)


def test_fewer_questions_come_where_nothing_new_is_written():
    with ScriptedServer(lambda body, n: good("Q: Who?\nA: A cat.\nQ: What?\nA: ?")) as server:
        asking = {"endpoint": Endpoint(server.base_url, MODEL, None), "progress": False}
        found = write_questions("cats", 12, **asking)
        assert found.to_numpy().tolist() == [["Who?", "A cat."]]  # the other has no answer
        assert len(server.bodies) == 2
    with (
        ScriptedServer(lambda body, n: good("I cannot.")) as server,
        pytest.raises(ValueError, match='no question about "cats" in 1 answers'),
    ):
        write_questions("cats", 12, endpoint=Endpoint(server.base_url, MODEL, None))


@pytest.mark.parametrize(
    "text",
    ["Q: Who?\nA: A cat.", "**Question 1:** Who?\n\n**Answer:** A cat.", "1) Q. Who?\n A. A cat."],
)
def test_lists_of_several_forms_are_read(text):
    answer = unlearning_questions.Answer(text, "ok")
    assert unlearning_questions.read_questions(answer) == [("Who?", "A cat.")]


def test_a_topic_needs_who_writes_and_no_file(trained, tmp_path):  # noqa: F811
    models = trained["original"], trained["ascent"]
    with pytest.raises(ValueError, match="question_topic needs a judge_model"):
        own(*models, question_topic="Galmere")
    with pytest.raises(ValueError, match="leave questions empty"):
        own(*models, question_topic="Galmere", questions="q.csv", judge_model="m")
    assert own(*models, question_topic="Galmere", judge_model="m") == {}


# Completions


def completions(**scores):
    """Two items of two samples each; Min-k% Prob selects the first, the fixed share both."""
    samples = pd.DataFrame({"item": [0, 0, 1, 1], "sample": [0, 1, 0, 1]})
    samples = samples.assign(reference="r", completion=list("abcd"), **scores)
    items = pd.DataFrame({"prompt": ["first", "second"]})
    chosen = {MIN_K: np.array([True, False]), MIN_K_SHARE: np.array([True, True])}
    scored = {STORY: {"unlearned": samples}}
    return unlearning_written.completions_table({STORY: items}, scored, {STORY: chosen})


def test_every_completion_stands_with_its_item():
    table = completions(rouge_l=0.5, judge=[5, 4, 1, np.nan], judge_status="ok")
    assert list(table)[: len(unlearning_written.COLUMNS)] == unlearning_written.COLUMNS
    assert table["prompt"].tolist() == ["first", "first", "second", "second"]
    assert table["in_window"].tolist() == [True, True, False, False]
    assert table["in_share"].all()


def test_close_completions_and_their_items_are_counted():
    """Of two rated completions of the first item both are close; one of the others has no rating.

    5 and 4 are close, 3.9 is not; a completion without a rating is in no count.
    """
    table = completions(rouge_l=0.5, judge=[5, 4, 3.9, np.nan], judge_status="ok")
    rows = unlearning_written.close_rows(table).set_index(["selector", "selected"])
    columns = ["n_items", "n_completions", "n_close", "close_pct", "n_items_close"]
    assert rows.loc[(MIN_K, True), columns].tolist() == [1, 2, 2, 100, 1]
    assert rows.loc[(MIN_K, False), columns].tolist() == [1, 1, 0, 0, 0]
    assert rows.loc[(MIN_K_SHARE, True), columns].tolist() == [2, 3, 2, pytest.approx(200 / 3), 1]
    assert rows.loc[(MIN_K_SHARE, False), "n_completions"] == 0
    assert np.isnan(rows.loc[(MIN_K_SHARE, False), "close_pct"])
    assert set(rows["metric"]) == {"judge"} and set(rows["at_least"]) == {4.0}


def test_the_closest_completion_of_each_item_comes_first():
    table = completions(rouge_l=[0.1, 0.2, 0.9, 0.3], judge=[2, 5, 4, np.nan], judge_status="ok")
    best = unlearning_written.closest(table, 2)
    assert best["completion"].tolist() == ["b", "c"]
    assert unlearning_written.closest(table, 1)["completion"].tolist() == ["b"]


# The end of the notebook


def test_the_end_of_the_notebook_on_models_of_ones_own(
    trained,  # noqa: F811
    endpoint,
    tmp_path,
    monkeypatch,
):
    """A book, questions that the chat model writes, ratings; every table and the figure."""
    monkeypatch.setenv("CONTAMINATION_OUTPUTS", str(tmp_path / "out"))
    (tmp_path / "book.txt").write_text(BOOK)
    told = {"model": {"names": [str(trained["original"]), str(trained["ascent"])]}}
    told |= {"book": str(tmp_path / "book.txt"), "chunk_words": 11, "own_prompt_words": 4}
    told |= {"question_topic": "Galmere", "n_questions": 8, "answer_tokens": 8}
    told |= {"judge_model": MODEL, "judge_base_url": endpoint.base_url, "judge_key_variable": ""}
    notebook = nbformat.read(ROOT / "notebooks/08_case_unlearning.ipynb", as_version=4)
    source = {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}
    names = {"own_settings": told, "score_answers": False, "ratio_window": 1.15}
    names |= {"n_samples": 2, "world_seed": 0, "k_percent": 20.0, "n_resamples": 20}
    names |= {"metrics": {STORY: unlearning_items.STORY_METRICS}}
    names["metrics"][QUESTIONS] = unlearning_items.ANSWER_METRICS
    names |= {"audit": pd.DataFrame(), "names": {}, "headings": {}}
    for cell in ("cell-03", "cell-05", "cell-42", "cell-43", "cell-44", "own-written"):
        exec(compile(source[cell], cell, "exec"), names)  # noqa: S102
    tables = {path.stem for path in (tmp_path / "out/tables").iterdir()}
    stems = ["completions", "close", "questions"]
    assert tables == {"unlearning", *(f"unlearning_{stem}" for stem in stems)}
    assert [path.stem for path in (tmp_path / "out/figures").iterdir()] == ["unlearning_own"]
    written = names["written"]
    assert written.groupby(["task", "model"]).size().to_dict() == {
        (task, model): 2 * 8 for task in (STORY, QUESTIONS) for model in ("original", "unlearned")
    }
    of_story = written[written["task"] == STORY]
    assert set(of_story["judge"]) == {2, 5} and of_story["completion"].notna().all()
    close = names["close"].set_index(["task", "metric"])
    assert close.loc[(STORY, "judge"), "n_close"].sum() > 0
    assert set(close.index) == {(STORY, "judge"), (QUESTIONS, "unigram_recall")}
    asked = pd.read_csv(tmp_path / "out/tables/unlearning_questions.csv")
    assert list(asked) == ["question", "answer"] and len(asked) == 8
