"""Every notebook is clean and runs on a tiny sample."""

import ast
import functools
import json
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from notebook_files import (
    NOTEBOOKS,
    ROOT,
    assert_runs,
    assert_same_again,
    has_locked_versions,
    printed_by,
    script,
)

from contamination.core import storage
from contamination.core.parameters import checked_parameters, declared_in, load_parameter_file

pytestmark = pytest.mark.usefixtures("one_lab_for_all")

PROFILES = ("smoke", "demo", "released", "pretrained")
PARAMETER_FILES = [path for name in PROFILES for path in sorted((ROOT / "params" / name).glob("*"))]
# A profile that leaves notebooks out has only these.
ONLY = {"pretrained": {"01_data_prep", "10_audit", "12_real_model"}}
STUDY, RETRAINED = "09b_detector_study", "first_steps"  # the one table that trains a model


def ids(path):
    return path.stem


@pytest.fixture(params=NOTEBOOKS, ids=ids)
def notebook_path(request):
    return request.param


@pytest.mark.parametrize("path", NOTEBOOKS, ids=ids)
def test_notebook_runs(path, smoke_outputs, tmp_path, forked_kernels):
    assert_runs(path, smoke_outputs, tmp_path)


def test_interactive_runs_have_a_folder_of_their_own(monkeypatch):
    monkeypatch.delenv(storage.OUTPUTS_VARIABLE)
    assert storage.Outputs().folder == ROOT / "outputs" / "interactive"


@pytest.mark.parametrize("name", ["02b_dcq_lab", "06_case_books"])
def test_a_second_run_gives_the_same_bytes(name, smoke_outputs, one_world, tmp_path, monkeypatch):
    """Without the runner, as in JupyterLab, whose tests run a case, too."""
    assert_same_again(ROOT / f"notebooks/{name}.ipynb", smoke_outputs, tmp_path, monkeypatch)


def test_the_study_gives_its_stored_tables(smoke_outputs):
    """At every run size, since it reads the ledger; this takes the place of a second run."""
    written = json.loads((smoke_outputs / "manifests" / f"{STUDY}.json").read_text())["outputs"]
    tables = {Path(name).stem for name in written if name.startswith("tables/")} - {RETRAINED}
    read = functools.partial(pd.read_csv, dtype=str, keep_default_na=False)
    compared = [
        script("reference").compare(
            name,
            read(smoke_outputs / f"tables/{name}.csv"),
            read(ROOT / f"outputs/reference/demo/tables/{name}.csv"),
        )
        for name in sorted(tables)
    ]
    assert len(compared) > 10
    assert all(one.is_same for one in compared), compared
    if has_locked_versions():  # others may round otherwise
        assert {one.says for one in compared} == {"identical"}, compared


@pytest.mark.parametrize("folder", ["exercises", "solutions"])
def test_the_control_of_dice_is_tried_on_models(folder, one_world):
    """The other notebooks of exercises train nothing and run beside their cases."""
    values = yaml.safe_load((ROOT / "params/smoke/05_dice.yaml").read_text())
    printed = printed_by(ROOT / f"notebooks/{folder}/05_dice.ipynb", values)
    assert ("clean against other texts: " in printed) == (folder == "solutions")
    assert printed.count("cases pass.") == (4 if folder == "solutions" else 0)
    assert "contaminated against clean: " in printed


# Parameters


def test_parameter_files_fit_and_no_parameter_is_a_key(notebook_path):
    declared, name = declared_in(notebook_path), notebook_path.stem
    for file in [path for path in PARAMETER_FILES if path.stem == name]:
        checked_parameters(load_parameter_file(file), declared, str(file))
    defaults = {key: field.default for key, field in declared.model_fields.items()}
    assert yaml.safe_load((ROOT / f"params/demo/{name}.yaml").read_text()) == defaults
    assert not [key for key in defaults if re.search(r"(api_?key|token|secret|password)$", key)]


def test_every_profile_has_every_notebook():
    stems = {path.stem for path in NOTEBOOKS}
    for profile in PROFILES:
        found = {path.stem for path in PARAMETER_FILES if path.parent.name == profile}
        assert found == ONLY.get(profile, stems)


def test_what_is_said_is_shown(notebook_path):
    """A sentence or table that is neither displayed nor the last expression of its cell is lost."""
    for cell in nbformat.read(notebook_path, 4).cells:
        tree = ast.parse(cell.source if cell.cell_type == "code" else "")
        for node in ast.walk(tree):
            is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            name = getattr(node.value.func, "id", "") if is_call else ""
            assert name not in ("say", "show") or node is tree.body[-1], ast.unparse(node)
