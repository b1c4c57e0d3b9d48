"""Sentences and cells of the figure, word for word, from tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from contamination.core.plots import alt_text
from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.study import pretraining_figures as figures
from contamination.study import pretraining_findings as findings

YES, NO, OPEN = SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE
DOSES = (1, 4, 16)


def detection_table(**detectors):
    """A row for each detector and dose: access, and (AUC, verdict) at each dose; ± 0.02."""
    rows = []
    for name, (access, *cells) in detectors.items():
        for copies, (auc, verdict) in zip(DOSES, cells, strict=True):
            row = {"detector": name, "access": access, "copies": copies, "auc": auc}
            row |= {"benchmarks": "entailment, topics", "lira_auc": 0.9}
            row |= {"row_share_pct": 0.0041 * copies, "ci_low": auc - 0.02, "ci_high": auc + 0.02}
            row |= {"n_flagged": 3 * copies, "n_tests": 60, "p_adjusted": 0.02}
            rows.append(row | {"auc_min": auc, "auc_max": auc, "verdict": verdict})
    return pd.DataFrame(rows)


LOGS, ANSWERS = "log-probabilities", "answers"


@pytest.fixture
def detection():
    return detection_table(
        PPL=(LOGS, (0.50, NO), (0.57, YES), (0.80, YES)),
        Zlib=(LOGS, (0.51, NO), (0.56, YES), (0.83, YES)),
        CDD=(ANSWERS, (0.52, OPEN), (0.53, OPEN), (0.54, OPEN)),
    )


@pytest.fixture
def reference():
    rows = [
        {"form": form, "is_exploratory": form != "LiRA", "copies": copies, "auc": auc + shift}
        | {"ci_low": auc - 0.01, "ci_high": auc + 0.01, "row_share_pct": 0.0041 * copies}
        for form, shift in (("LiRA", 0), ("likelihood ratio", 0.02))
        for copies, auc in zip(DOSES, (0.52, 0.70, 0.95), strict=True)
    ]
    return pd.DataFrame(rows)


CONTROLS = pd.DataFrame({"detector": ["noise", "noise", "length"], "holds": [True, True, True]})


# F1


def test_the_headline_counts_detectors_at_each_dose(detection, reference):
    said = findings.summarize_detection(detection, reference, CONTROLS)
    assert said == (
        "One copy of a row (0.0041 % of the training tokens) is not detected by any of the 3 "
        "detectors: 2 claims are not supported and 1 claim is inconclusive. The reference attack, "
        "which knows what the other models saw, reaches 0.52 [0.51, 0.53]. Four copies (0.016 %) "
        "are detected by 2 of 3 detectors, and the best (PPL) reaches an AUC of 0.57 [0.55, 0.59] "
        "and is significant in 12 of 60 single tests, where chance gives 3. The reference attack "
        "reaches 0.70 [0.69, 0.71]. Sixteen copies (0.066 %) are detected by 2 of 3 detectors, and "
        "the best (Zlib) reaches an AUC of 0.83 [0.81, 0.85] and is significant in 48 of 60 single "
        "tests, where chance gives 3. The reference attack reaches 0.95 [0.94, 0.96]. None of the "
        "controls (noise and length) is supported."
    )


def test_a_headline_of_the_opposite_says_the_opposite(detection, reference):
    said = findings.summarize_detection(detection.assign(verdict=YES), reference, CONTROLS)
    assert "One copy of a row (0.0041 % of the training tokens) is detected by all 3 detect" in said
    assert "not detected" not in said
    nothing = findings.summarize_detection(detection.assign(verdict=NO), reference, CONTROLS)
    assert (
        "Sixteen copies (0.066 %) are not detected by any of the 3 detectors: 3 claims" in nothing
    )
    failed = CONTROLS.assign(holds=[True, False, True])
    said = findings.summarize_detection(detection, reference, failed)
    assert "A control fails: by the same rule noise would be supported" in said
    assert "None of the controls" not in said


def test_a_best_detector_of_one_benchmark_is_compared_on_that_benchmark(detection, reference):
    """Its rows have other lengths, so its share of the tokens is not that of all benchmarks."""
    is_zlib = detection["detector"].eq("Zlib")
    alone = detection.assign(
        benchmarks=detection["benchmarks"].mask(is_zlib, "topics"),
        lira_auc=detection["lira_auc"].mask(is_zlib, 0.88),
        row_share_pct=detection["row_share_pct"].mask(is_zlib, 1.0),
    )
    said = findings.summarize_detection(alone, reference, CONTROLS)
    assert (
        "Sixteen copies (0.066 %) are detected by 2 of 3 detectors, and the best (Zlib, asked on "
        "topics alone, where the attack reaches 0.88) reaches an AUC of 0.83 [0.81, 0.85] and"
        in said
    )
    assert "the best (PPL) reaches" in said
    axis, bar = figures.detection_figure(alone, reference).axes
    rows = [label.get_text().replace("\n", " ") for label in axis.get_yticklabels()]
    assert rows == ["PPL", "Zlib *", "CDD", "reference attack (LiRA)"]
    assert axis.get_xticklabels()[2].get_text() == "16 copies\n0.066 %"
    assert "* not on all 2 benchmarks" in bar.get_xlabel()


def test_what_never_varies_is_said_to_be_the_same(detection, reference):
    same = detection.assign(ci_low=np.nan, ci_high=np.nan, auc=1.0, verdict=YES)
    said = findings.summarize_detection(same, reference, CONTROLS)
    assert "reaches an AUC of 1.00 (the same under every model)" in said


# Cells


def test_cells_that_look_alike_and_differ_in_verdict_show_more():
    table = pd.DataFrame(
        {
            "auc": [0.5214, 0.5184, 0.6, 0.7, 0.54],
            "ci_low": [0.5019, 0.4992, 0.55, np.nan, 0.5031],
            "ci_high": [0.5408, 0.5375, 0.65, np.nan, 0.57],
            "verdict": [YES, NO, YES, "", YES],
            "p_adjusted": [0.0004, 0.0045, 0.01, np.nan, 0.02],
        }
    )
    assert findings.cell_texts(table) == [
        "0.521 [0.502, 0.541], p < 0.001: supported",
        "0.518 [0.499, 0.537], p = 0.004: not supported",
        "0.60 [0.55, 0.65]: supported",
        "0.70 (the same under every model)",
        "0.540 [0.503, 0.570]: supported",  # two decimals would seem to reach 0.50
    ]
    alike = table.assign(verdict=YES)
    assert findings.cell_texts(alike)[0] == "0.521 [0.502, 0.541]: supported"


# F2, F3


def test_the_headline_on_other_forms_names_each_form():
    rows = [("paraphrase", 4, 0.51, NO), ("without label", 4, 0.60, YES)]
    table = pd.DataFrame(rows, columns=["exposure", "copies", "auc", "verdict"])
    table = table.assign(detector="PPL", ci_low=0.45, ci_high=0.6, verbatim_auc=0.7)
    said = findings.summarize_indirect_exposure(table)
    assert said == (
        "Four copies of a paraphrase are detected by none of the 1 detectors; the highest AUC is "
        "0.51 [0.45, 0.60] (PPL), and this detector reaches 0.70 on other rows with as many "
        "verbatim copies. Four copies without the label are detected by all 1 detectors; the "
        "highest AUC is 0.60 [0.45, 0.60] (PPL), and this detector reaches 0.70 on other rows with "
        "as many verbatim copies."
    )
    turned = table.assign(verdict=[YES, OPEN])
    said = findings.summarize_indirect_exposure(turned)
    assert "of a paraphrase are detected by all" in said and "label are detected by none" in said


def later_table(verdicts):
    rows = [(n, c) for n in (100_000, 400_000) for c in (1, 16)]
    table = pd.DataFrame(rows, columns=["later_tokens", "copies"]).assign(verdict=verdicts)
    table["detector"] = "PPL"
    ends = {"ci_high": [0.04 if word == NO else 0.06 for word in verdicts]}
    return table.assign(auc_before=0.8, auc_after=0.8 - table["later_tokens"] / 2e6, **ends)


def test_the_headline_on_later_training_counts_falls():
    said = findings.summarize_later_training(later_table([NO, YES, NO, YES]))
    assert said == (
        "After 100,000 further clean tokens, a fall in AUC for rows with sixteen copies is "
        "supported for all 1 token detectors. The mean AUC of all 1 goes from 0.80 to 0.75. After "
        "400,000 further clean tokens, a fall in AUC for rows with sixteen copies is supported "
        "for all 1 token detectors. The mean AUC of all 1 goes from 0.80 to 0.60. Over all doses "
        "and token counts, 2 of 4 such claims are supported; 2 claims are not supported."
    )
    two = [later_table(words).assign(detector=name)
           for name, words in (("PPL", [YES] * 4), ("DC-PDD", [NO] * 4))]  # fmt: skip
    said = findings.summarize_later_training(pd.concat(two))
    assert "supported for 1 of 2 token detectors (all but DC-PDD). The mean AUC of all 2" in said
    said = findings.summarize_later_training(later_table([NO, NO, OPEN, OPEN]))
    assert "supported for all" not in said and "0 of 4 such claims are supported; 2 cl" in said
    said = findings.summarize_later_training(later_table([YES] * 4))
    assert said.endswith("4 of 4 such claims are supported.")
    said = findings.summarize_later_training(later_table([YES] * 4).assign(ci_high=0.04))
    assert said.endswith(
        "All 4 intervals end below 0.05, so every fall is smaller than one that matters."
    )


# The figure


SHIFT = pd.DataFrame(
    [
        ("length", "length", "topics", 1.0, ""),  # a control, which is not a detector of the figure
        ("DCQ (simulated respondent)", "none", "topics", 0.0, NO),
        ("PPL", "none", "topics", 0.05, NO),
        ("PPL", "length", "topics", 0.2, OPEN),
        ("PPL", "length", "grade_school", 0.9, YES),
    ],
    columns=["detector", "shift", "benchmark", "rate", "verdict"],
)


def texts(axis):
    return [text.get_text() for text in axis.texts]


def test_a_cell_has_its_auc_its_interval_and_the_mark_of_its_verdict(detection, reference):
    figure = figures.detection_figure(detection, reference)
    axis, bar = figure.axes
    first, *others = axis.get_title().split("\n")
    assert first == "Shown to be above chance on average:"
    assert others == ["none of the 3 detectors at one copy", "2 of 3 detectors at sixteen copies"]
    rows = [label.get_text().replace("\n", " ") for label in axis.get_yticklabels()]
    assert rows == ["PPL", "Zlib", "CDD", "reference attack (LiRA)"]
    heads = [label.get_text() for label in axis.get_xticklabels()]
    assert heads == ["1 copy\n0.0041 %", "4 copies\n0.016 %", "16 copies\n0.066 %"]
    assert texts(axis)[4:6] == ["0.80", "[0.78, 0.82]"] and "0.52 ?" in texts(axis)
    assert axis.texts[4].get_fontweight() == "bold" and axis.texts[0].get_fontweight() == "normal"
    assert axis.texts[0].get_color() == figures.GREY
    ticks = [label.get_text() for label in bar.get_xticklabels()]
    assert ticks[0] == "0.50\nchance"
    assert axis.collections[0].get_array()[0].tolist() == [0.50, 0.57, 0.80]
    assert axis.collections[0].norm.vmin == 0.5
    # Narrow enough for a telephone, and the exploratory form is not drawn.
    assert figure.get_size_inches()[0] * 100 <= 430
    assert not any("likelihood" in label for label in rows)
    assert "Figure." in alt_text(figure)


def test_the_title_changes_with_the_table(detection, reference):
    axis = figures.detection_figure(detection.assign(verdict=YES), reference).axes[0]
    assert axis.get_title().endswith(
        "all 3 detectors at one copy\nall 3 detectors at sixteen copies"
    )
    one = detection.assign(verdict=[YES, *[NO] * 8])
    assert "\n1 of 3 detectors at one copy\nnone of the 3" in findings.figure_title(one)
    # The interval of a supported claim does not seem to reach 0.50.
    cell = figures.detection_figure(one.assign(ci_low=0.5019), reference).axes[0].texts
    assert [text.get_text() for text in cell[:2]] == ["0.500", "[0.502, 0.520]"]


def test_a_cell_without_an_interval_or_without_scores_says_so(detection, reference):
    bare = detection.assign(ci_low=np.nan, ci_high=np.nan).drop(index=8)
    axis = figures.detection_figure(bare, reference).axes[0]
    assert "0.80 to 0.80" in texts(axis) and texts(axis).count("untested") == 1


def test_false_verdicts_of_shift_stand_apart_and_in_the_order_of_detectors(detection, reference):
    """Controls are asked about shifts too, and they are no detectors."""
    named = detection.replace("CDD", "DCQ (simulated respondent)")
    figure = figures.detection_figure(named, reference, SHIFT)
    lower = figure.axes[1]
    assert "no model saw" in lower.get_title()
    assert texts(lower) == ["5", "20 ?", "90", "0", figures.SHIFT_KEY]
    weights = [text.get_fontweight() for text in lower.texts[:3]]
    assert weights == ["normal", "normal", "bold"] and lower.texts[0].get_color() == figures.GREY
    labels = [label.get_text() for label in lower.get_xticklabels()]
    assert labels == ["nothing, topics", "length, topics", "length, grade_school"]
    rows = [label.get_text().replace("\n", " ") for label in lower.get_yticklabels()]
    assert rows == ["PPL", "DCQ (simulated respondent)"]


def test_the_figure_in_words(detection, reference):
    said = figures.detection_alt(detection, reference, SHIFT)
    assert "with 3 detectors as rows" in said
    assert (
        "With 16 copies, AUCs range from 0.54 (CDD) to 0.83 (Zlib); the reference attack reaches "
        "0.95." in said
    )
    assert said.endswith("by how the sets differ, up to 90 % (PPL, length, grade_school).")
    assert "orange" not in figures.detection_alt(detection.assign(auc=0.5), reference)
    assert "0.50 (PPL)" in figures.detection_alt(detection.assign(auc=0.5), reference)
