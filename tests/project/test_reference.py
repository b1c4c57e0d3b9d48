"""The committed results: as current as the notebooks, and compared with a run cell by cell."""

import json

import pandas as pd
import pytest
from notebook_files import ROOT, script

VERDICTS = {"model": ["a", "b"], "auc": [0.5, 0.75], "verdict": ["shown", "open"]}


def a_cell(kind, source, **more):
    return {"cell_type": kind, "id": source[:8], "metadata": {}, "source": source} | more


def a_notebook(
    text="# Title\n\nSee [the page](../docs/page.md), [next](02_next.ipynb).", code="1 + 1"
):
    parameters, code_cell = (
        a_cell("code", source, outputs=[], execution_count=None)
        for source in ("seed: int = 0  # of the models", code)
    )
    parameters["metadata"] = {"tags": ["parameters"]}
    cells = [a_cell("markdown", text), parameters, code_cell]
    return {"cells": cells, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of one notebook, and a run of it under outputs/demo."""
    reference = script("reference")
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    files = {
        "notebooks/contents.csv": "notebook,kind\n01_first,lesson\n",
        "notebooks/01_first.ipynb": json.dumps(a_notebook()),
        "notebooks/02_next.ipynb": "{}",
        "docs/page.md": "",
        "params/demo/01_first.yaml": "seed: 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    run(tmp_path)
    return reference, tmp_path


def run(root, code="1 + 1", seed=0, table=None):
    """What a run of the notebook leaves."""
    folder = root / "outputs/demo"
    executed = a_notebook("an old text", code)
    result = {"output_type": "execute_result", "execution_count": 7, "metadata": {}}
    executed["cells"][2]["outputs"] = [result | {"data": {"text/plain": "2"}}]
    executed["cells"][2]["metadata"] = {"papermill": {"duration": 3.2}, "tags": []}
    injected = a_cell("code", f"# Parameters\nseed = {seed}\n", outputs=[], execution_count=1)
    injected["metadata"] = {"tags": ["injected-parameters"]}
    executed["cells"].insert(2, injected)
    for name in ("notebooks", "tables", "figures", "manifests"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "notebooks/01_first.ipynb").write_text(json.dumps(executed))
    pd.DataFrame(table or VERDICTS).to_csv(folder / "tables/levels.csv", index=False)
    (folder / "figures/levels.png").write_bytes(b"png")
    outputs = {"tables/levels.csv": "", "figures/levels.png": ""}
    (folder / "manifests/01_first.json").write_text(json.dumps({"outputs": outputs}))
    return folder


def test_what_is_stored_has_todays_text_the_runs_results_and_links_that_work(project):
    reference, root = project
    assert reference.copy(root / "outputs/demo") == []
    stored = json.loads((root / "outputs/reference/demo/notebooks/01_first.ipynb").read_text())
    text, _, code = stored["cells"]
    assert text["source"].startswith("# Title")
    assert "(../../../../docs/page.md)" in text["source"] and "(02_next.ipynb)" in text["source"]
    assert code["outputs"][0]["data"] == {"text/plain": "2"}
    assert code["execution_count"] == code["outputs"][0]["execution_count"] == 2
    assert "duration" not in json.dumps(stored) and "injected" not in json.dumps(stored)
    assert (root / "outputs/reference/demo/figures/levels.png").read_bytes() == b"png"
    assert not list(reference.check())


def test_solutions_are_run_and_stored_with_links_that_work(project):
    reference, root = project
    solution = a_notebook("Of [these](../exercises/01_first.ipynb).")
    solution["metadata"] = reference.clean_notebook.METADATA
    for number, cell in enumerate(solution["cells"]):
        cell["id"] = f"cell-{number}"
    for folder in ("solutions", "exercises"):
        (root / "notebooks" / folder).mkdir()
        (root / f"notebooks/{folder}/01_first.ipynb").write_text(json.dumps(solution))
    assert list(reference.check())[-1] == "the solutions 01_first were changed: make reference"
    reference.copy(root / "outputs/demo")
    path = root / "outputs/reference/demo/notebooks/solutions/01_first.ipynb"
    text, _, code = json.loads(path.read_text())["cells"]
    assert "(../../../../../notebooks/exercises/01_first.ipynb)" in text["source"]
    assert "".join(code["outputs"][0]["data"]["text/plain"]) == "2"
    assert not list(reference.check())
    solution["cells"][0]["source"] = "Another text."
    (root / "notebooks/solutions/01_first.ipynb").write_text(json.dumps(solution))
    assert len(list(reference.check())) == 1


def test_what_a_run_no_longer_writes_is_stored_no_more(project):
    reference, root = project
    reference.copy(root / "outputs/demo")
    (root / "outputs/demo/manifests/01_first.json").write_text('{"outputs": {}}')
    reference.copy(root / "outputs/demo")
    stored = root / "outputs/reference/demo"
    assert not [*stored.glob("tables/*"), *stored.glob("figures/*")]
    assert (stored / "tables.csv").read_text().count("\n") == 1


def test_new_text_is_put_into_the_stored_notebook_without_a_run(project):
    reference, root = project
    reference.copy(root / "outputs/demo")
    (root / "notebooks/01_first.ipynb").write_text(json.dumps(a_notebook("# A better title")))
    assert list(reference.check()) == ["the text of 01_first was changed: make reference"]
    (root / "outputs/demo/notebooks/01_first.ipynb").unlink()
    assert reference.copy(root / "outputs/demo") == []
    assert not list(reference.check())
    stored = json.loads((root / "outputs/reference/demo/notebooks/01_first.ipynb").read_text())
    assert stored["cells"][0]["source"] == "# A better title" and stored["cells"][2]["outputs"]


@pytest.mark.parametrize("changed", [{"code": "1 + 2"}, {"seed": 1}])
def test_changed_code_or_parameters_ask_for_a_run(project, monkeypatch, capsys, changed):
    reference, root = project
    monkeypatch.setattr("sys.argv", ["reference.py", "copy", str(root / "outputs/demo")])
    assert not reference.main()
    if "code" in changed:
        (root / "notebooks/01_first.ipynb").write_text(json.dumps(a_notebook(**changed)))
    else:
        (root / "params/demo/01_first.yaml").write_text("seed: 1\n")
    assert list(reference.check()) == ["01_first was changed: make 01_first && make reference"]
    assert reference.main()
    assert capsys.readouterr().out.endswith("01_first was changed and not run: make 01_first\n")
    run(root, **changed)
    assert reference.copy(root / "outputs/demo") == []


@pytest.mark.parametrize(
    ("change", "says", "is_same"),
    [
        ({}, "identical", True),
        (
            {"auc": [0.5, 0.7501]},
            "same verdicts; largest difference in auc, row 2: yours 0.7501, stored 0.75",
            True,
        ),
        ({"auc": [0.5, 0.75 + 1e-12]}, "identical", True),
        ({"model": ["a", "c"]}, "same verdicts; text cells that differ: 1", True),
        (
            {"auc": [0.5, 0.9], "verdict": ["shown", "shown"]},
            "verdicts that differ: 1 (verdict, row 2: yours shown, stored open); "
            "largest difference in auc, row 2: yours 0.9, stored 0.75",
            False,
        ),
    ],
)
def test_a_runs_table_is_compared_cell_by_cell(project, monkeypatch, change, says, is_same):
    reference, root = project
    reference.copy(root / "outputs/demo")
    (found,) = reference.verify(run(root, table=VERDICTS | change))
    assert says in found.says and found.is_same == is_same
    monkeypatch.setattr("sys.argv", ["reference.py", "verify", str(root / "outputs/demo")])
    assert reference.main() == (not is_same)


def test_another_shape_and_a_missing_table_are_not_the_same(project):
    reference, root = project
    reference.copy(root / "outputs/demo")
    (found,) = reference.verify(run(root, table={"model": ["a"]}))
    assert not found.is_same and "another shape" in found.says
    (root / "outputs/demo/tables/levels.csv").unlink()
    (found,) = reference.verify(root / "outputs/demo")
    assert not found.is_same and "make 01_first writes it" in found.says


def test_an_altered_cell_of_the_reference_is_found_and_named(project, monkeypatch, capsys):
    reference, root = project
    reference.copy(root / "outputs/demo")
    path = root / "outputs/reference/demo/tables/levels.csv"
    path.write_text(path.read_text().replace("0.75", "0.85"))
    monkeypatch.setattr("sys.argv", ["reference.py", "verify", str(root / "outputs/demo")])
    assert reference.main() == 1
    assert "levels: the reference's own file was altered" in capsys.readouterr().out


@pytest.mark.parametrize("altered", ["scores", "hash", "missing"])
def test_an_altered_score_of_the_ledger_fails_and_is_named(project, monkeypatch, capsys, altered):
    reference, root = project
    part, scores = root / "ledger/study_1.json", root / "ledger/study_1_scores.parquet"
    part.parent.mkdir()
    monkeypatch.setattr(reference, "ledger_folder", lambda: root / "ledger")
    scores.write_bytes(b"0.5")
    part.write_text(json.dumps({"sha256": {scores.name: reference.sha256_of(scores)}}))
    reference.copy(root / "outputs/demo")
    monkeypatch.setattr("sys.argv", ["reference.py", "verify", str(root / "outputs/demo")])
    assert reference.main() == 0
    (root / "ledger/mine_1.json").write_text("{}")  # a part that somebody added
    assert reference.main() == 0

    if altered == "missing":
        scores.unlink()
    else:
        scores.write_bytes(b"0.6")
    if altered == "hash":  # so that the part agrees with itself
        part.write_text(json.dumps({"sha256": {scores.name: reference.sha256_of(scores)}}))
    capsys.readouterr()
    assert reference.main() == 1
    assert "study_1" in capsys.readouterr().out


def test_a_large_table_is_stored_as_its_hash(project, monkeypatch):
    reference, root = project
    monkeypatch.setattr(reference, "LARGEST_TABLE", 10)
    reference.copy(root / "outputs/demo")
    assert not (root / "outputs/reference/demo/tables/levels.csv").exists()
    (found,) = reference.verify(root / "outputs/demo")
    assert found.says == "identical" and not list(reference.damaged())
    (found,) = reference.verify(run(root, table=VERDICTS | {"model": ["a", "c"]}))
    assert "the hash alone" in found.says


def test_the_committed_results_are_those_of_the_notebooks_as_they_are():
    assert list(script("reference").check()) == []


def test_the_committed_tables_are_as_they_were_stored():
    assert not list(script("reference").damaged())
    assert (ROOT / "outputs/reference/demo/tables.csv").exists()


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "outputs/reference/demo/notebooks").glob("*.ipynb")),
    ids=lambda path: path.stem,
)
def test_a_cell_that_writes_a_figure_shows_it(path):
    """Readers of a notebook do not see a figure that is written to a file alone."""
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        # Indented: only for a model of the reader's own, or for released files.
        if "\noutputs.write_figure(" in source:
            shown = [output.get("data", {}) for output in cell["outputs"]]
            assert any("image/png" in data for data in shown), source
