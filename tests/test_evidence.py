"""The evidence panel: verdicts, conclusions, and the lab's rows."""

import math

import numpy as np
import pandas as pd
import pytest
from contamination.evidence import figures, from_notebooks, lab_panel
from contamination.evidence import measuring as m
from contamination.evidence.conditions import CLEAN, DOSED, FRESH, REFERENCE, TRUTHS, VERBATIM
from contamination.evidence.panel import (
    CANNOT_TELL,
    CONTROL_FORBIDS,
    NOT_RECOGNISED,
    NOT_RUN,
    RECOGNISED,
    Evidence,
    headline,
    judged,
    not_run,
    panel,
    verdict,
)

from contamination import judging

N = 8


def evidence(method, what, model="M", dataset="D", statistic="share", truth=""):
    return Evidence(
        model, dataset, truth, method, statistic, 0.5, 0.4, 0.6, 10, "control", 0.25, what
    )


# Verdicts


@pytest.mark.parametrize(
    ("ci_low", "chance", "control", "expected"),
    [
        (0.6, 0.5, 0.55, RECOGNISED),
        (0.5, 0.5, 0.2, NOT_RECOGNISED),  # reaches down to chance
        (0.6, 0.5, 0.6, CONTROL_FORBIDS),  # reaches down to the control
        (0.6, 0.5, math.nan, CANNOT_TELL),
        (math.nan, 0.5, 0.2, CANNOT_TELL),
    ],
)
def test_verdict_is_no_stronger_than_chance_and_control_allow(ci_low, chance, control, expected):
    assert verdict(0.7, ci_low, chance, control) == expected


def test_what_was_not_run_has_no_other_verdict():
    assert verdict(0.9, 0.8, 0.5, 0.5, is_run=False) == NOT_RUN


def test_only_verdicts_of_the_list_are_taken():
    with pytest.raises(ValueError, match='unknown verdict "contaminated": one of recognised'):
        evidence("DCQ", "contaminated")


def test_a_panel_has_the_columns_of_its_file_and_keeps_the_order():
    table = panel([evidence("DCQ", RECOGNISED), not_run("M", "D", "", "DICE", "no weights")])
    wanted = ["model", "dataset", "truth", "method", "statistic", "value", "control_value"]
    assert {*wanted, "verdict", "ci_low", "ci_high", "n", "control", "note"} <= set(table)
    assert table["method"].tolist() == ["DCQ", "DICE"]
    assert table["note"].tolist() == ["", "no weights"]
    assert np.isnan(table["value"][1])


def test_an_empty_panel_is_refused():
    with pytest.raises(ValueError, match="no evidence"):
        panel([])


# The lab's rows


def measured(kind, copies, seed, condition, *, right=0.25, matches=0, shift=0.0):
    """n rows with a share of right answers, matches, Min-k% scores and states as asked for."""
    generator = np.random.default_rng([seed, copies, len(condition), kind == CLEAN])
    n_right = round(right * N)
    states = generator.normal(size=(N, 4)).astype(np.float32)
    states[:, 0] += 8.0 * (kind != CLEAN)
    return m.Measured(
        kind=kind,
        copies=copies,
        seed=seed,
        condition=condition,
        dataset=f"Topics {condition[0].upper()}",
        quiz_share=right,
        ranked=np.arange(N) < n_right,
        verdicts=tuple(judging.EXACT if place < matches else judging.INEXACT for place in range(N)),
        min_k=np.linspace(-4, -3, N) + shift,
        states=states,
        texts=tuple(f"word{place % 3} of {seed}" for place in range(N)),
    )


def study(reads):
    """Clean and dosed models of three seeds; verbatim rows are known to the dosed if ``reads``."""
    found = []
    for seed in range(3):
        for condition in (VERBATIM, FRESH, REFERENCE):
            found.append(measured(CLEAN, 0, seed, condition))
            known = reads and condition == VERBATIM
            how = {"right": 1.0, "matches": N, "shift": 5.0} if known else {}
            found.append(measured(DOSED, 4, seed, condition, **how))
    return found


@pytest.fixture(scope="module")
def read():
    return lab_panel.lab_panel(study(reads=True), [4])


@pytest.fixture(scope="module")
def unread():
    return lab_panel.lab_panel(study(reads=False), [4])


def verdicts(table, truth, method):
    return set(table.query("truth == @truth and method == @method")["verdict"])


def test_rows_that_were_read_are_recognised_by_every_method_but_dice(read):
    for method in (m.DCQ, m.RANKING, m.REPLICATION, m.MIN_K):
        assert verdicts(read, TRUTHS[VERBATIM], method) == {RECOGNISED}
    # The made detector reads the model, not the rows: its own control says so.
    assert verdicts(read, TRUTHS[VERBATIM], m.DICE) == {CONTROL_FORBIDS}


def test_rows_that_were_not_read_are_recognised_by_none(unread):
    for method in m.METHODS:
        assert RECOGNISED not in verdicts(unread, TRUTHS[FRESH], method)


def test_every_model_and_dataset_has_one_row_for_each_method(read):
    assert not read.duplicated(["model", "dataset", "method"]).any()
    assert read.groupby(["model", "dataset"]).size().eq(len(m.METHODS)).all()
    assert REFERENCE not in set(read["condition"])
    assert set(read.loc[read["model"].str.startswith(CLEAN), "truth"]) == {TRUTHS[FRESH]}


def test_the_control_of_a_clean_model_leaves_its_own_rows_out():
    parts = study(reads=False)
    first = next(part for part in parts if part.kind == CLEAN and part.condition == VERBATIM)
    others = [measured(CLEAN, 0, seed, c, right=0.5) for seed in (1, 2) for c in (VERBATIM, FRESH)]
    rows = [part for part in parts if part.seed == 0 or part.kind != CLEAN]
    rows += [measured(CLEAN, 0, seed, REFERENCE) for seed in (1, 2)] + others
    table = lab_panel.lab_panel(rows, [4]).query("method == @m.RANKING")
    own = table[table["model"] == lab_panel.model_name(first)]
    assert own["control_value"].tolist() == [0.5, 0.5]
    dosed = table[table["model"] == "dosed, 4 copies, seed 0"]
    assert dosed["control_value"].iloc[0] == pytest.approx((4 * 0.5 + 2 * 0.25) / 6)


def test_one_near_exact_match_is_none_by_the_papers_rule():
    one = measured(DOSED, 4, 0, VERBATIM)
    near = (judging.NEAR_EXACT, *one.verdicts[1:])
    one = m.Measured(**{**vars(one), "verdicts": near})
    clean = [measured(CLEAN, 0, seed, VERBATIM) for seed in (1, 2)]
    about = {"model": "M", "dataset": "D", "truth": ""}
    row = judged([about | lab_panel._against_clean(one, clean)[2]]).iloc[0]
    assert row["value"] == 1 / N
    assert row["verdict"] == NOT_RECOGNISED
    assert "fewer than two near-exact" in row["note"]


def test_the_figure_colours_what_is_forbidden_and_what_was_recognised(read):
    axis = figures.verdict_matrix(read, 1).axes[0]
    rows = [label.get_text() for label in axis.get_yticklabels()]
    codes = dict(zip(rows, axis.collections[0].get_array().tolist(), strict=True))
    # Everything but DICE recognises the verbatim rows; fresh rows nobody does.
    assert codes["4 copies: verbatim"] == [figures.READ] * 4 + [figures.FORBIDDEN]
    assert figures.READ not in codes["4 copies: fresh rows"]
    assert "4 recognised that were read, 0 that were not" in axis.get_title()


# Rows of notebooks 02 to 05


def test_a_quiz_is_held_against_the_same_models_unread_rows():
    common = {"dataset": "topics", "model": "dosed", "respondent": "respondent", "n": 50}
    unread = common | {"condition": "unseen, same model", "copies": 0, "max_pct": 4.0}
    unread |= {"ci_low_pct": 0.0, "ci_high_pct": 10.0}
    read = common | {"condition": "with label", "copies": 12, "max_pct": 30.0}
    for low, expected in ((18.0, RECOGNISED), (8.0, CONTROL_FORBIDS), (2.0, NOT_RECOGNISED)):
        lab = pd.DataFrame([unread, read | {"ci_low_pct": low, "ci_high_pct": 44.0}])
        table = judged(from_notebooks.dcq_rows(lab))
        assert table["verdict"].tolist() == [expected]
        assert table[["value", "control_value", "control_high"]].to_numpy().tolist() == [
            [0.3, 0.04, 0.1]
        ]


def replication_lab():
    common = {"benchmark": "topics", "model": "continued", "seed": 0, "split": "test"}
    common |= {"method": "Algorithm 2", "metric": "rule judge", "instruction": "guided"}
    rows = [
        {"dataset": "Topics A", "copies": 16, "n_exact": 8, "n_near_exact": 1},
        {"dataset": "Topics B", "copies": 0, "n_exact": 0, "n_near_exact": 1},
        {"dataset": "Topics C", "copies": 0, "n_exact": 0, "n_near_exact": 0},
    ]
    flags = [True, False, False]
    table = pd.DataFrame([common | row | {"n_valid": 10} for row in rows])
    other = table.assign(instruction="general")
    return pd.concat([table.assign(contaminated=flags), other.assign(contaminated=flags)])


def test_a_replication_is_held_against_the_other_clean_partitions():
    table = judged(from_notebooks.replication_rows(replication_lab()))
    assert table["verdict"].tolist() == [RECOGNISED, NOT_RECOGNISED, NOT_RECOGNISED]
    # B's one near-exact match counts for A and C, not against B itself.
    assert table["control_value"].tolist() == [0.05, 0.0, 0.1]
    assert table["truth"].tolist() == [TRUTHS[VERBATIM], TRUTHS[FRESH], TRUTHS[FRESH]]


def test_min_k_is_held_against_the_best_classifier_of_words():
    aucs = pd.DataFrame({"benchmark": ["docstrings"] * 2, "setting": "random", "model": "M"})
    aucs = aucs.assign(method="Min-k% Prob", seed=[0.0, np.nan], copies=4, n_members=9)
    aucs = aucs.assign(n_non_members=8, auc=0.7, ci_low=0.6, ci_high=0.8)
    aucs = aucs.assign(copies=[4.0, np.nan])  # as a file with gaps gives them
    words = {"setting": "random, 4 copies", "baseline": ["date rule", "bag of words"]}
    of_other_deal = pd.DataFrame(words | {"seed": 1, "auc": 0.9, "ci_high": 0.95})
    for high, expected in ((0.58, RECOGNISED), (0.62, CONTROL_FORBIDS)):
        blind = pd.DataFrame(words | {"seed": 0, "auc": [0.5, 0.52], "ci_high": [0.9, high]})
        blind = pd.concat([of_other_deal, blind])
        table = judged(from_notebooks.min_k_rows(aucs, blind))
        assert table["verdict"].tolist() == [expected]  # one row: the mean over seeds is none
        assert table["control"].tolist() == ["bag of words, no model"]


@pytest.mark.parametrize(("high", "first"), [(96.0, RECOGNISED), (99.0, CONTROL_FORBIDS)])
def test_dice_is_held_against_two_clean_models(high, first):
    """Asked the same questions: on GSM-i, those that detectors were trained on."""
    aurocs = pd.DataFrame({"tested_on": ["GSM-i", "GSM-ii", "GSM-hard"], "method": "DICE"})
    aurocs = aurocs.assign(trained_on="GSM-i x5", auroc_pct=[99.0, 60.0, 70.0], n_models=16)
    aurocs = aurocs.assign(ci_low=[98.0, 55.0, 65.0], ci_high=100.0)
    names = ["two clean models, other texts", "the same, on the detector's training questions"]
    controls = {"control": names, "auroc_pct": [64.0, 90.0], "ci_high": [67.0, high]}
    table = judged(from_notebooks.dice_rows(aurocs, pd.DataFrame(controls)))
    assert table["dataset"].tolist() == ["GSM-i", "GSM-ii"]
    assert table["control"].tolist() == names[::-1]
    assert table["verdict"].tolist() == [first, CONTROL_FORBIDS]


# The headline


def test_the_headline_counts_what_is_recognised_where_it_was_read_and_where_not(read, unread):
    truths = [TRUTHS[VERBATIM], TRUTHS[FRESH]]
    said = headline(read, truths)
    assert f"{TRUTHS[VERBATIM]}: DCQ 3 of 3" in said and "DICE 0 of 3" in said
    assert f"{TRUTHS[FRESH]}: DCQ 0 of 9" in said
    assert f"{TRUTHS[VERBATIM]}: DCQ 0 of 3" in headline(unread, truths)
