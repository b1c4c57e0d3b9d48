"""Conditions that one model carries, power at 5 % false positives, and what is said about it."""

import numpy as np
import pandas as pd
import pytest
from test_evidence import N, measured

from contamination import plots
from contamination.dcq.contaminating import header
from contamination.evidence import conditions as c
from contamination.evidence import evasion, findings
from contamination.evidence import measuring as m
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
            how = {"right": 1.0, "matches": N, "shift": 5.0} if condition in known else {}
            found.append(measured(c.DOSED, 4, seed, condition, **how))
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
    assert np.isnan(row["power_at_5_fpr"])
    assert np.isnan(row["ci_low"])


def test_left_out_clean_models_are_judged_by_the_others():
    strange = [
        measured(c.CLEAN, 0, 0, p.condition, right=0.75) if (p.kind, p.seed) == (c.CLEAN, 0) else p
        for p in study()
    ]
    row = row_of(evasion.evasion_table(strange, [4]), m.RANKING, evasion.LEFT_OUT)
    assert row["power_at_5_fpr"] == pytest.approx(1 / 5)
    assert row["n_detected"] == 3
    assert pd.isna(row["copies"])


def test_thresholds_stand_beside_power_and_the_clean_models_left_out(power):
    shown = evasion.threshold_table(power)
    assert shown["method"].tolist() == list(m.METHODS)
    ranking = shown[shown["method"] == m.RANKING].iloc[0]
    assert (ranking["threshold"], ranking["power"], ranking["left_out"]) == (0.25, 1.0, 0.0)
    assert ranking["interval"] == "[0.57, 1.00]"


def test_the_figure_counts_models(power):
    figure = plots.power_matrix(power, [c.VERBATIM, c.PARAPHRASE])
    assert [text.get_text() for text in figure.axes[0].texts][:2] == ["5/5", "0/5"]


# Sentences


def rows(**counts):
    """A table of one method at four copies, six models: condition to models detected."""
    names = {"verbatim": c.VERBATIM, "paraphrase": c.PARAPHRASE, "fresh": c.FRESH, "later": c.LATER}
    made = []
    for name, n in counts.items():
        low, high = share_interval(n, 6)
        made.append(
            {"method": "DCQ", "condition": names[name], "copies": 4, "n_models": 6}
            | {"n_detected": n, "power_at_5_fpr": n / 6, "ci_low": low, "ci_high": high}
        )
    return pd.DataFrame(made).astype({"copies": "Int64"})


def test_power_and_what_later_training_leaves():
    said = findings.power_sentence(rows(verbatim=6, later=2), 4)
    assert said == (
        "4 copies: verbatim rows are found by DCQ in 6 of 6 models;"
        " after later clean training by DCQ in 2 of 6 models."
    )


def test_a_condition_hides_only_where_the_intervals_are_apart():
    said = findings.evasion_sentence(rows(verbatim=6, paraphrase=0), 4, [c.PARAPHRASE])
    assert said == "4 copies: hidden are paraphrase from DCQ (0 of 6, verbatim 6 of 6)."
    said = findings.evasion_sentence(rows(verbatim=6, paraphrase=4), 4, [c.PARAPHRASE])
    assert "no condition hides the rows from DCQ" in said


def test_what_no_method_finds_cannot_be_hidden():
    said = findings.evasion_sentence(rows(verbatim=0, paraphrase=0), 4, [c.PARAPHRASE])
    assert "nothing can hide them" in said


def test_false_alarms_are_named_or_denied():
    said = findings.false_alarm_sentence(rows(fresh=6))
    assert "DCQ, fresh rows, 4 copies: 6 of 6" in said
    assert "the flag is about the model" in said
    assert findings.false_alarm_sentence(rows(fresh=0)).startswith("No method flags")
    left_out = rows(fresh=3).assign(condition=evasion.LEFT_OUT)
    assert "threshold of DCQ does not hold" in findings.false_alarm_sentence(left_out)
