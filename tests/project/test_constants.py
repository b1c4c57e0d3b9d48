"""A value that notebooks, parameter files and the package share is one constant."""

import csv
import re

import nbformat
import pytest
import yaml
from notebook_files import DISPLAYED, NOTEBOOKS, ROOT

from contamination.audit import lab_models
from contamination.core import scores, storage
from contamination.core.claims import CLAIMS
from contamination.dcq.respondents import ANSWER_RULE
from contamination.models import judging
from contamination.study import arms, constat, context, protocol, sampling, store, study, whole_sets

# Name of a parameter: its constant, and the notebooks whose values are held to it.
HELD = {
    "position_prior": (list(ANSWER_RULE.position_prior), "02b"),
    "temperature": (ANSWER_RULE.temperature, "02b"),
    "none_below": (ANSWER_RULE.none_below, "02b"),
    "text_rule_threshold": (judging.NEAR_EXACT_FROM, "03b 12"),
    "k_percent": (scores.K_PERCENT, "00 04 04b 06 07 08 12"),
    "learning_rate": (lab_models.LEARNING_RATE, "02b 09 11"),
    "batch_size": (lab_models.BATCH_SIZE, "02b 09 11"),
}
FILES = [
    (name, path)
    for name, (_, numbers) in HELD.items()
    for number in numbers.split()
    for path in sorted(ROOT.glob(f"params/*/{number}_*.yaml"))
]


@pytest.mark.parametrize(
    ("name", "path"), FILES, ids=[f"{name} {path.parent.name} {path.stem}" for name, path in FILES]
)
def test_parameter_files_hold_the_packages_value(name, path):
    """The demo's file is the notebook's defaults, which another test compares."""
    values = yaml.safe_load(path.read_text())
    assert values.get(name, HELD[name][0]) == HELD[name][0]
    if path.parent.name == "demo":
        assert name in values


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_notebook_spells_the_near_exact_threshold_out(path):
    cells = nbformat.read(path, as_version=4).cells
    code = [
        cell.source
        for cell in cells
        if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", [])
    ]
    assert not any(f"{judging.NEAR_EXACT_FROM})" in source for source in code)


@pytest.mark.parametrize("number", ["12"])
def test_the_size_of_a_table_does_not_depend_on_the_processor(number):
    """What is native to a processor picks a number format and nothing else."""
    (path,) = ROOT.glob(f"notebooks/{number}_*.ipynb")
    code = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    lines = [line for source in code for line in source.splitlines() if "is_native else" in line]
    number_format = re.compile('dtype ?= ?"bfloat16" if is_native else "float32"')
    assert lines and all(number_format.search(line) for line in lines)
    for file in ROOT.glob(f"params/*/{path.stem}.yaml"):
        values = yaml.safe_load(file.read_text())
        assert all(isinstance(v, int) for name, v in values.items() if name.endswith("_rows"))


def test_every_claim_is_about_a_table_that_is_written_or_displayed():
    with (ROOT / "tests/project/reach.csv").open(newline="") as stream:
        written = {row["table"] for row in csv.DictReader(stream)}
    assert "f'dice_own_{name}'" in written
    assert "name" in written  # the papers' tables of notebook 10, each under its own name
    pairs = {name for name in CLAIMS if name.startswith(("dice_own_", "audit_"))}
    assert {*CLAIMS} <= written | DISPLAYED | pairs
    code = "".join(path.read_text() for path in ROOT.glob("src/contamination/**/*.py"))
    code += "".join(path.read_text() for path in NOTEBOOKS)
    assert all(re.search(rf'CLAIMS\[\\?"{name}\\?"\]', code) for name in DISPLAYED)


def test_the_protocols_page_says_what_the_code_does():
    page = (ROOT / "docs/protocol.md").read_text()
    rate, blocks = lab_models.LEARNING_RATE, lab_models.BATCH_SIZE
    assert {"learning_rate": rate, "batch_size": blocks} == study.TRAINING
    clean, dosed, later, long = study.N_TOKENS.values()
    for fact in (
        f"{len(study.UNITS)}, base seeds {study.UNITS[0]} to {study.UNITS[-1]}",
        f"base seeds {study.LEARNING_UNITS[0]} to {study.LEARNING_UNITS[-1]}",
        f"{study.N_BACKGROUND_TOKENS:,} tokens of background",
        f"clean model {clean:,} tokens; dosed {dosed:,}; clean text after the dose {later:,}, and",
        f"then {long:,} more",
        f"{study.COPIES[0]}, {study.COPIES[1]} and {study.COPIES[2]} copies of every text",
        f"{arms.N_READ} dealt at random to be read, {arms.N_READ} unread siblings",
        f"{arms.N_CONTEXT} more, which nobody reads",
        f"peak rate {rate}, {['no', 'one', 'two'][blocks]} blocks",
        f"a dataset of {arms.N_LARGE} rows as documents",
        f"(1 + the number of {protocol.N_REDEALS:,} re-deals",
        f"upper limit is at most {protocol.LARGEST_RATE:.2f}",
        f"{sampling.N_SAMPLES} samples at temperature {sampling.TEMPERATURE}",
        f"at most {sampling.MAX_TOKENS} tokens",
        f"the first {context.N_SKIPPED} tokens left out",
        f"documents of {whole_sets.ROWS_PER_DOCUMENT} rows, {whole_sets.N_SHUFFLES} shuffles",
        f"{constat.MIN_REFERENCES} reference models, {constat.N_RESAMPLES:,} resamples",
    ):
        assert fact in page
    # The cell on which detectors are compared.
    benchmark, _, condition, copies = protocol.RANKED_CELL
    assert f"`{benchmark}`, {condition}, {copies} copies" in page


def test_every_part_of_the_study_was_made_under_the_protocol_that_is_here():
    """Changed after a part is there, the page would no longer be a promise."""
    page = storage.sha256_of_file(ROOT / "docs/protocol.md")
    folder = ROOT / "src/contamination/study/ledger"
    parts = store.parts(store.STUDY) if list(folder.glob(f"{store.STUDY}*.json")) else []
    assert all(part.about["protocol_sha256"] == page for part in parts)
    assert {unit for part in parts for unit in part.about["units"]} <= set(study.UNITS)
