"""What the pretraining study says and draws: each sentence from a table and from its opposite."""

import pandas as pd
import pytest
from made_pretraining import made_scores, made_shares

from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study import pretraining_figures as figures
from contamination.study import pretraining_findings as findings
from contamination.study import pretraining_lists as lists
from contamination.study import pretraining_rates as rates
from contamination.study import pretraining_results as results
from contamination.study.pretraining_scores import arranged

DETECTORS = ("PPL", "Zlib", "Replication", "n-gram coverage", "noise")
NOTHING = dict.fromkeys((1, 4, 16), 0.0)


def tables(gains=None, **made):
    scores = made_scores(DETECTORS, **({"gains": gains} if gains else {}), **made)
    study, shares = arranged(scores), made_shares()
    return {
        "detection": results.detection(study, shares),
        "controls": results.controls(study, shares),
        "reference": results.reference(study, shares),
        "indirect": results.indirect(study, shares),
        "later": results.later(study, shares),
        "lists": lists.row_lists(study, shares),
        "alarms": rates.false_alarms(study),
    }


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contamination.study.reference_attack.N_JOINT_REDEALS", 19)
        return tables(strength={"Replication": 0.0})


@pytest.fixture(scope="module")
def nothing():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contamination.study.reference_attack.N_JOINT_REDEALS", 19)
        return tables(gains=NOTHING, indirect=dict.fromkeys(range(1, 5), 0.0))


def of(made, *names):
    return [made[name] for name in names]


def test_the_headline_counts_who_finds_each_dose(found, nothing):
    text = findings.headline(*of(found, "detection", "reference", "controls"))
    assert text.startswith("One copy of a row (0.004 % of the training tokens) is not detected by")
    assert "Sixteen copies (0.064 %) are detected by 3 of 4 detectors, and the best" in text
    assert "None of the controls (noise) is supported." in text
    text = findings.headline(*of(nothing, "detection", "reference", "controls"))
    assert "Sixteen copies (0.064 %) are not detected by any of the 4 detectors" in text


def test_the_headline_says_when_a_control_fails(found):
    failed = found["controls"].assign(holds=False)
    text = findings.headline(found["detection"], found["reference"], failed)
    assert "A control fails: by the same rule noise would be supported" in text


def test_other_forms_and_later_training_have_a_sentence_each(found, nothing):
    text = findings.indirect_headline(found["indirect"])
    assert "Four copies of a paraphrase are detected by none of the 4 detectors" in text
    assert "in a chat template are detected by 3 of 4 detectors" in text
    assert "are detected by 3" not in findings.indirect_headline(nothing["indirect"])
    text = findings.later_headline(found["later"])
    assert "a fall of the AUC of rows with sixteen copies is supported for all 2 detectors" in text
    assert "0 of 12 claims of a fall are supported" in findings.later_headline(nothing["later"])


def test_lists_say_whether_the_guarantee_is_kept(found):
    text = findings.lists_headline(found["lists"])
    n = len(found["lists"]) // 2
    assert f"That at most 10 % of the names on a list are false is supported for all {n}" in text
    assert "It says nothing about a single model." in text
    broken = findings.lists_headline(found["lists"].assign(verdict=NOT_SUPPORTED))
    assert f"supported for none of the {n}" in broken and "not supported" in broken


def test_false_alarms_say_whether_the_code_needs_a_look(found):
    assert "agrees with the 5 % of an exact test" in findings.alarms_headline(found["alarms"])
    table = found["alarms"].assign(holds=[False] + [True] * (len(found["alarms"]) - 1))
    assert "more than 5 % for PPL" in findings.alarms_headline(table)


def test_the_best_of_each_access_are_named_with_all_that_tie(found, nothing):
    table = findings.best_by_access(found["detection"]).set_index("access")
    assert "n-gram coverage" in table.loc["answers", "16 copies"]
    assert {"PPL", "Zlib"} <= set(
        table.loc["log-probabilities", "16 copies"].replace(":", ",").split(", ")
    )
    assert table.loc["weights", "16 copies"] == "as with log-probabilities"
    assert "1 copy" in table.loc["log-probabilities", "misses"]
    empty = findings.best_by_access(nothing["detection"]).set_index("access")
    assert empty.loc["log-probabilities", "16 copies"].startswith("none; highest AUC 0.5")
    assert empty.loc["log-probabilities", "misses"] == "every dose"


def test_an_auc_that_never_varies_is_said_so():
    row = pd.Series({"auc": 1.0, "ci_low": float("nan"), "ci_high": float("nan")})
    assert findings.of_auc(row) == "1.00 (the same under every model)"


def test_the_figure_shows_every_auc_and_marks_verdicts(found, nothing):
    title = findings.figure_title(found["detection"])
    assert title == "None of the 4 detectors finds one copy\n3 of 4 detectors find sixteen copies"
    assert "None of the 4 detectors finds sixteen" in findings.figure_title(nothing["detection"])
    table = found["detection"].copy()
    table.loc[0, "verdict"] = INCONCLUSIVE
    figure = figures.detection_figure(table, found["reference"])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sum("[" in text for text in texts) >= len(table)
    assert any("?" in text for text in texts)
    bold = [text for text in figure.axes[0].texts if text.get_fontweight() == "bold"]
    assert len(bold) == table["verdict"].eq(SUPPORTED).sum()
    assert "reference attack" in figures.detection_alt(table, found["reference"])


def test_false_verdicts_under_a_shift_are_drawn_apart(found):
    shift = pd.DataFrame(
        {"detector": ["PPL", "Zlib"] * 2, "shift": ["none"] * 2 + ["length"] * 2}
    ).assign(rate=[0.05, 0.04, 0.6, 0.9])
    figure = figures.detection_figure(found["detection"], found["reference"], shift)
    assert any("no model saw" in axis.get_title() for axis in figure.axes)
    alt = figures.detection_alt(found["detection"], found["reference"], shift)
    assert "at most 90 % (Zlib, length)" in alt
