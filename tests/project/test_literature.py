"""What docs/which_detector.md makes of other papers is what its tables carry."""

import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.core.verdicts import FOUND, RULED_OUT, SHOWN

PAGE = (ROOT / "docs/which_detector.md").read_text()


@pytest.fixture(scope="module")
def tables():
    folder = ROOT / "outputs/reference/demo/tables"
    return {path.stem: pd.read_csv(path) for path in folder.glob("pretraining_*.csv")}


def of(tables, name, **keys):
    table = tables[f"pretraining_{name}"]
    for column, value in keys.items():
        table = table[table[column].eq(value)]
    return table


def best(tables, copies):
    return of(tables, "detection", copies=copies, models="small")["auc"].max()


def attack(tables, copies, models="small"):
    found = of(tables, "reference", copies=copies, is_exploratory=False, models=models)
    return found["auc"].item()


def n_shown(table):
    return int(table["verdict"].isin(FOUND).sum())


def of_small(t, copies):
    return of(t, "detection", copies=copies, models="small")


def of_detector(t, copies, name, models="small"):
    return of(t, "detection", copies=copies, models=models, detector=name).iloc[0]


QUIZ, COVERAGE, MIN_K = "DCQ (simulated respondent)", "n-gram coverage", "Min-k% Prob"
SAID = {
    "The quiz and n-gram coverage notice sixteen copies.": lambda t: all(
        of_detector(t, 16, name)["verdict"] in FOUND for name in (QUIZ, COVERAGE)
    ),
    "n-gram coverage does about as well as the quiz, and both are far behind Min-k% Prob": (
        lambda t: all(
            of_detector(t, 16, name)["auc"] < of_detector(t, 16, MIN_K)["auc"] - 0.2
            for name in (QUIZ, COVERAGE)
        )
    ),
    "At sixteen copies ReCaLL is behind Min-k% Prob at both sizes.": lambda t: all(
        of_detector(t, 16, "ReCaLL", models)["ci_high"]
        < of_detector(t, 16, MIN_K, models)["ci_low"]
        for models in ("small", "larger")
    ),
    "As a score of rows CoDeC is weak at any number of copies": lambda t: (
        of(t, "detection", detector="CoDeC")["auc"].max() < 0.7
    ),
    "Completion hardly works in our small models, even for the rows that they saw.": lambda t: (
        of_detector(t, 16, "Replication")["auc"] < 0.55
    ),
    "Forms that keep the row's words are noticed almost like the row itself.": lambda t: all(
        row["verdict"] in FOUND and row["auc"] > row["verbatim_auc"] - 0.05
        for form in ("without label", "chat template")
        for _, row in of(t, "indirect", exposure=form, detector=MIN_K).iterrows()
    ),
    "At one copy the best detector is barely better than a coin toss.": (
        lambda t: 0.5 < best(t, 1) < 0.55
    ),
    "At sixteen copies most detectors are clearly better.": lambda t: (
        n_shown(of_small(t, 16)) > len(of_small(t, 16)) / 2
    ),
    "is weaker than Min-k% Prob at four and at sixteen copies": lambda t: all(
        of_small(t, n).set_index("detector").loc["DC-PDD", "ci_high"]
        < of_small(t, n).set_index("detector").loc["Min-k% Prob", "ci_low"]
        for n in (4, 16)
    ),
    "Most token detectors call newer docstrings seen although no model saw them.": lambda t: (
        of(t, "shift", shift="date", suspect="B")["holds"].eq(False).sum() >= 4
    ),
    "Four copies of a paraphrase are noticed by no detector. Sixteen copies are noticed by few": (
        lambda t: (
            n_shown(of(t, "indirect", exposure="paraphrase", copies=4)) == 0
            and 0 < n_shown(of(t, "indirect", exposure="paraphrase", copies=16)) < 4
        )
    ),
    "CDD finds no row at any dose": lambda t: (
        of(t, "detection", detector="CDD")["verdict"].eq(RULED_OUT).all()
    ),
    "most detectors call one of them contaminated in most cases": lambda t: (
        of(t, "shift", shift="length", benchmark="topics")["rate"].gt(0.5).mean() > 0.5
    ),
    "At one copy the attack is barely better than the best detector": lambda t: (
        0 < attack(t, 1) - best(t, 1) < 0.05
    ),
    "at four copies its AUC stays below the paper's 0.7 in the small models": lambda t: (
        attack(t, 4) < 0.7
    ),
    "In the larger models it is above 0.7 at four copies and leads the best detector.": lambda t: (
        attack(t, 4, "larger") > 0.7
        and of(t, "reference", copies=4, models="larger", form="LiRA")["lead_low"].item() > 0
    ),
    "At sixteen copies it is strong.": lambda t: attack(t, 16) > 0.9,
    "In pretraining, later clean text lowers the AUC by little.": lambda t: (
        0 < t["pretraining_later"]["fall"].max() < 0.05
    ),
}


@pytest.mark.parametrize("sentence", SAID)
def test_the_page_says_what_the_tables_carry(tables, sentence):
    assert sentence in PAGE
    assert SAID[sentence](tables)


def test_tables_that_say_the_opposite_carry_none_of_it(tables):
    turned = {name: table.copy() for name, table in tables.items()}
    detection = turned["pretraining_detection"]
    detection["auc"] = 1.5 - detection["auc"]
    detection[["ci_low", "ci_high"]] = 1.5 - detection[["ci_high", "ci_low"]].to_numpy()
    reference = turned["pretraining_reference"]
    reference[["auc", "lead_low"]] = [1.5, 0] - reference[["auc", "lead_low"]].to_numpy()
    for name in ("detection", "indirect"):
        words = turned[f"pretraining_{name}"]["verdict"]
        opposite = dict.fromkeys(FOUND, RULED_OUT) | {RULED_OUT: SHOWN}
        turned[f"pretraining_{name}"]["verdict"] = words.map(opposite)
    turned["pretraining_shift"] = turned["pretraining_shift"].assign(rate=0.05, holds=True)
    turned["pretraining_later"]["fall"] = 0.2
    assert [sentence for sentence, holds in SAID.items() if holds(turned)] == []
