"""Conditions that one model carries, power at 5 % false positives, and what is said about it."""

import numpy as np
import pandas as pd
import pytest
from contamination.evidence import conditions as c
from contamination.evidence import evasion, figures
from contamination.evidence import measuring as m
from test_evidence import N, measured

from contamination.dcq.contaminating import header
from contamination.statistics import share_interval

# Conditions


@pytest.fixture(scope="module")
def parts():
    return {part.condition: part for part in c.deal("topics", 4, seed=3)}


def test_partitions_are_disjoint_and_named_apart(parts):
    rows = [text for part in parts.values() for text in part.quizzes["instance"]]
    assert len(set(rows)) == len(rows) == 4 * len(c.DEALT)
    assert len({part.dataset for part in parts.values()}) == len(c.DEALT)


def test_what_is_read_is_what_the_condition_says(parts):
    instances = {name: part.quizzes["instance"].tolist() for name, part in parts.items()}
    above = {name: header(part.dataset, c.TESTED) for name, part in parts.items()}

    def bare(name):
        return [text.removeprefix(above[name]) for text in parts[name].read]

    assert bare(c.VERBATIM) == instances[c.VERBATIM]
    whole = zip(bare(c.WITHOUT_LABEL), instances[c.WITHOUT_LABEL], strict=True)
    assert all(row.startswith(f"{text}\nlabel: ") for text, row in whole)
    for text, row in zip(bare(c.WRONG_LABEL), instances[c.WRONG_LABEL], strict=True):
        assert text.split("\nlabel: ")[0] == row.split("\nlabel: ")[0]
        assert text != row
    assert parts[c.FRESH].read == parts[c.REFERENCE].read == ()


def test_the_paraphrase_that_is_read_is_no_option_of_a_quiz(parts):
    part = parts[c.PARAPHRASE]
    shown = part.quizzes[["instance", "option_a", "option_b", "option_c", "option_d"]].to_numpy()
    read = {text.removeprefix(header(part.dataset, c.TESTED)) for text in part.read}
    assert not read & set(shown.ravel())


def test_the_train_split_is_other_rows_under_the_same_name(parts):
    part = parts[c.TRAIN_SPLIT]
    asked = {text for other in parts.values() for text in other.quizzes["instance"]}
    assert all(text.startswith(header(part.dataset, c.TRAIN)) for text in part.read)
    assert not {t.removeprefix(header(part.dataset, c.TRAIN)) for t in part.read} & asked


def test_another_seed_draws_other_rows():
    first, second = (c.deal("topics", 4, seed)[0] for seed in (0, 1))
    assert not set(first.quizzes["instance"]) & set(second.quizzes["instance"])


# Statistics


def study(known=(), n_seeds=5, n_clean_right=2):
    """Models of several seeds; the dosed ones know the rows of the conditions named."""
    found = []
    for seed in range(n_seeds):
        for condition in (c.VERBATIM, c.PARAPHRASE, c.FRESH, c.REFERENCE):
            found.append(measured(c.CLEAN, 0, seed, condition, right=n_clean_right / N))
            knows = {"right": 1.0, "matches": N, "shift": 5.0} if condition in known else {}
            found.append(measured(c.DOSED, 4, seed, condition, **knows))
    return found


def test_min_k_is_compared_with_reference_rows_of_the_same_model():
    known = measured(c.DOSED, 4, 0, c.VERBATIM, shift=5.0)
    reference = measured(c.DOSED, 4, 0, c.REFERENCE)
    assert m.min_k_auc(known, reference) == 1.0
    assert m.min_k_auc(reference, reference) == 0.5


def test_flags_need_a_model_of_another_seed():
    with pytest.raises(ValueError, match="models of another seed"):
        m.flags(study(n_seeds=1), 4)


def test_dice_flags_follow_the_model_whatever_it_is_asked():
    flagged = m.flags(study(), 4)
    assert all((values.mean() > 0.5) == (key[0] == c.DOSED) for key, values in flagged.items())


def test_statistics_of_a_dose_leave_other_doses_out():
    both = [*study(), measured(c.DOSED, 9, 0, c.VERBATIM)]
    found = m.statistics_of(both, 4)
    assert set(found) == set(m.METHODS)
    assert {key[1] for values in found.values() for key in values} == {0, 4}
    assert not any(key[3] == c.REFERENCE for key in found[m.MIN_K])


# Power


def test_threshold_lets_at_most_the_share_through():
    values = np.arange(40) / 40
    assert (values > evasion.threshold(values)).sum() == 2
    assert evasion.threshold([0.2, 0.9]) == 0.9  # of so few, none may exceed it
    with pytest.raises(ValueError, match="clean model"):
        evasion.threshold([])


def row_of(table, method, condition):
    return table[table["method"].eq(method) & table["condition"].eq(condition)].iloc[0]


@pytest.fixture(scope="module")
def power():
    return evasion.evasion_table(study(known=[c.VERBATIM]), [4])


def test_what_is_known_is_found_and_what_is_not_is_not(power):
    for method in (m.DCQ, m.RANKING, m.REPLICATION, m.MIN_K):
        assert row_of(power, method, c.VERBATIM)["power_at_5_fpr"] == 1.0
        assert row_of(power, method, c.PARAPHRASE)["power_at_5_fpr"] == 0.0
        assert row_of(power, method, c.FRESH)["power_at_5_fpr"] == 0.0


def test_a_tie_with_the_threshold_is_no_detection():
    table = evasion.evasion_table(study(n_clean_right=2), [4])
    row = row_of(table, m.RANKING, c.VERBATIM)
    assert row["threshold"] == 0.25
    assert row["n_detected"] == 0


def test_rows_carry_their_denominators_and_intervals(power):
    row = row_of(power, m.RANKING, c.VERBATIM)
    assert (row["n_models"], row["n_detected"], row["n_rows"]) == (5, 5, N)
    assert (row["n_clean_models"], row["n_clean_datasets"]) == (5, 15)
    assert row["ci_low"] == pytest.approx(0.5655, abs=1e-4)  # Wilson, 5 of 5
    assert row["ci_high"] == 1.0
    assert list(power) == evasion.COLUMNS


def test_a_condition_nobody_was_trained_under_has_an_empty_cell(power):
    row = row_of(power, m.DCQ, c.LATER)
    assert row["n_models"] == 0
    assert row["verdict"] == "not run"
    assert np.isnan(row["power_at_5_fpr"]) and np.isnan(row["ci_low"])


def test_left_out_clean_models_are_judged_by_the_others():
    strange = [
        measured(c.CLEAN, 0, 0, p.condition, right=0.75) if (p.kind, p.seed) == (c.CLEAN, 0) else p
        for p in study()
    ]
    row = row_of(evasion.evasion_table(strange, [4]), m.RANKING, evasion.LEFT_OUT)
    assert row["power_at_5_fpr"] == pytest.approx(1 / 5)
    assert row["n_detected"] == 3
    assert pd.isna(row["copies"])


def test_the_figure_counts_models_and_gives_false_alarms_another_colour(power):
    axis = figures.power_matrix(power, [c.VERBATIM, c.PARAPHRASE, c.FRESH]).axes[0]
    blues, oranges = axis.collections
    assert [text.get_text() for text in axis.texts][:2] == ["5/5", "0/5"]
    assert (blues.get_cmap().name, oranges.get_cmap().name) == ("Blues", "Oranges")
    assert blues.get_array().mask[0].tolist() == [False, False, True]
    assert oranges.get_array().mask[0].tolist() == [True, True, False]


# Verdicts


def row(condition, n_detected, n=6):
    low, high = share_interval(n_detected, n)
    return {"condition": condition, "n_models": n, "ci_low": low, "ci_high": high}


@pytest.mark.parametrize(
    ("condition", "n_detected", "n_verbatim", "expected"),
    [
        (c.VERBATIM, 6, 6, "found"),
        (c.VERBATIM, 0, 0, "cannot be told"),
        (c.PARAPHRASE, 0, 6, "hidden"),
        (c.PARAPHRASE, 4, 6, "found"),  # the intervals overlap
        (c.PARAPHRASE, 0, 1, "cannot be told"),  # what is not found cannot be hidden
        (c.FRESH, 6, 6, "false alarm"),
        (c.FRESH, 0, 6, "no alarm"),
        (evasion.LEFT_OUT, 3, 6, "threshold fails"),
        (evasion.LEFT_OUT, 0, 6, "threshold holds"),
    ],
)
def test_a_verdict_needs_an_interval(condition, n_detected, n_verbatim, expected):
    verbatim = row(c.VERBATIM, n_verbatim)
    assert evasion.verdict(row(condition, n_detected), verbatim) == expected
