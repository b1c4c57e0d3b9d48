"""The end of notebook 08 on two models of one's own."""

import nbformat
import pandas as pd
import pytest
from notebook_files import ROOT
from scripted_server import MODEL, ScriptedServer, good, question
from test_unlearning import tokenizer, trained  # noqa: F401 (fixtures)

from contamination.cases import unlearning_items
from contamination.cases.unlearning_items import QUESTIONS, STORY

pytestmark = pytest.mark.usefixtures("one_thread")
BOOK = " ".join(f"Wenekko number {n} of Galmere met the green fox at dawn" for n in range(8))
ASKED = [(f"Who met fox number {n}?", f"Wenekko number {n}") for n in range(8)]


def rating(body, n):
    """Two ratings, by what is shown."""
    return good("Score: 5 Reason: same" if len(question(body)) % 2 else "Score: 2 Reason: other")


def test_every_completion_is_kept_and_rated(trained, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("CONTAMINATION_OUTPUTS", str(tmp_path / "out"))
    (tmp_path / "book.txt").write_text(BOOK)
    asked = pd.DataFrame(ASKED, columns=["question", "answer"])
    asked.to_csv(tmp_path / "asked.csv", index=False)
    told = {"model": {"names": [str(trained["original"]), str(trained["ascent"])]}}
    told |= {"book": str(tmp_path / "book.txt"), "chunk_words": 11, "own_prompt_words": 4}
    told |= {"questions": str(tmp_path / "asked.csv"), "answer_tokens": 8}
    notebook = nbformat.read(ROOT / "notebooks/08_case_unlearning.ipynb", as_version=4)
    source = {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}
    names = {"score_answers": False, "ratio_window": 1.15}
    names |= {"n_samples": 2, "world_seed": 0, "k_percent": 20.0, "n_resamples": 20}
    names |= {"metrics": {STORY: unlearning_items.STORY_METRICS}}
    names["metrics"][QUESTIONS] = unlearning_items.ANSWER_METRICS
    names |= {"audit": pd.DataFrame(), "names": {}, "headings": {}}
    with ScriptedServer(rating) as server:
        told |= {"judge_model": MODEL, "judge_base_url": server.base_url, "judge_key_variable": ""}
        names["own_settings"] = told
        for cell in ("cell-03", "cell-05", "cell-42", "cell-43", "cell-44", "own-written"):
            exec(compile(source[cell], cell, "exec"), names)  # noqa: S102
    tables = {path.stem for path in (tmp_path / "out/tables").iterdir()}
    assert tables == {"unlearning", "unlearning_completions"}
    written = names["written"]
    assert written.groupby(["task", "model"]).size().to_dict() == {
        (task, model): 2 * 8 for task in (STORY, QUESTIONS) for model in ("original", "unlearned")
    }
    of_story = written[written["task"] == STORY]
    assert set(of_story["judge"]) == {2, 5} and of_story["completion"].notna().all()
    items, chosen = names["own"][STORY], names["own_chosen"][STORY]
    for row in of_story.to_dict("records"):
        assert row["prompt"] == items["prompt"][row["item"]]
        assert row["in_share"] == chosen[unlearning_items.MIN_K_SHARE][row["item"]]
    assert len(pd.concat(names["closest"])) == 8
    of_rated = names["close"]["mean"] * names["close"]["size"] / 100
    assert of_rated.sum() == of_story["judge"].eq(5).sum()
