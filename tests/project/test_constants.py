"""A value that notebooks, parameter files and the package share is one constant."""

import re

import nbformat
import yaml
from notebook_files import DISPLAYED, NOTEBOOKS, ROOT

from contamination.audit import local_models
from contamination.core import scores
from contamination.core.verdicts import CLAIMS
from contamination.dcq.respondents import ANSWER_RULE
from contamination.models import judging

# Name of a parameter: its constant, and the notebooks whose values are held to it.
HELD = {
    "position_prior": (list(ANSWER_RULE.position_prior), "02b"),
    "temperature": (ANSWER_RULE.temperature, "02b"),
    "none_below": (ANSWER_RULE.none_below, "02b"),
    "text_rule_threshold": (judging.NEAR_EXACT_FROM, "03b 12"),
    "k_percent": (scores.K_PERCENT, "00 04 04b 06 07 08 12"),
    "learning_rate": (local_models.LEARNING_RATE, "02b"),
    "batch_size": (local_models.BATCH_SIZE, "02b"),
}
FILES = [
    (name, path)
    for name, (_, numbers) in HELD.items()
    for number in numbers.split()
    for path in sorted(ROOT.glob(f"params/*/{number}_*.yaml"))
]


def test_parameter_files_hold_the_packages_value():
    """The demo's file is the notebook's defaults, which another test compares."""
    for name, path in FILES:
        values = yaml.safe_load(path.read_text())
        assert values.get(name, HELD[name][0]) == HELD[name][0], (name, path)
        assert path.parent.name != "demo" or name in values, (name, path)


def test_every_claim_is_about_a_table_that_is_written_or_displayed():
    cells = [cell for path in NOTEBOOKS for cell in nbformat.read(path, as_version=4).cells]
    source = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    written = {name.strip('"') for name in re.findall(r"write_table\(\s*([^,]+),", source)}
    assert 'f"dice_own_{name}' in written
    # Those of notebook 10 are written by the audit itself, each under its own name.
    pairs = {name for name in CLAIMS if name.startswith(("dice_own_", "audit"))}
    assert {*CLAIMS} <= written | DISPLAYED | pairs
    code = "".join(path.read_text() for path in ROOT.glob("src/contamination/**/*.py"))
    code += "".join(path.read_text() for path in NOTEBOOKS)
    assert all(re.search(rf'CLAIMS\[\\?"{name}\\?"\]', code) for name in DISPLAYED)
