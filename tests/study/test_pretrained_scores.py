"""Scores, sets and combined p-values of a real model's units, by detectors that need no model."""

import numpy as np
import pandas as pd
import pytest
from detector_frames import dealt

from contamination.study import conditions as c
from contamination.study import pretrained, protocol
from contamination.study.conditions import BASE, DOSED, VERBATIM
from contamination.study.interface import LOG_PROBABILITIES, Detector
from contamination.study.pretrained import combine_p_values

N = 4
NAN = np.nan


def fake_models(monkeypatch, units=(0, 1, 2)):
    monkeypatch.setattr(pretrained, "load_causal_lm", lambda folder: folder)
    models = []
    for unit in units:
        verbatim = dealt("topics", unit, N)
        for kind in (c.CLEAN, c.DOSED):
            copies = 2 * (kind == c.DOSED)
            model = pretrained.LabModel(kind, unit, copies, (kind, unit), (verbatim,))
            models.append(model)
    return models


def test_scores_stand_beside_their_row_and_its_deal(monkeypatch):
    models = fake_models(monkeypatch)
    detector = Detector("number", LOG_PROBABILITIES, lambda lm, rows: np.arange(len(rows)) + lm[1])
    scores, seconds = pretrained.score_models(models, [detector])
    assert scores["score"].tolist() == [
        row + unit for unit in (0, 0, 1, 1, 2, 2) for row in range(8)
    ]
    own = scores.query("unit == 1 and model == 'dosed'")
    assert own["is_read"].tolist() == models[3].datasets[0].is_read.tolist()
    assert [one["n_rows"] for one in seconds] == [8] * 6


@pytest.mark.parametrize("bad", [lambda n: np.zeros(n - 1), lambda n: np.full(n, np.nan)])
def test_a_score_for_each_row_or_one_line(monkeypatch, bad):
    detector = Detector("broken", LOG_PROBABILITIES, lambda lm, rows: bad(len(rows)))
    with pytest.raises(ValueError, match=r"broken .* 8 rows"):
        pretrained.score_models(fake_models(monkeypatch), [detector])


def test_a_bag_of_words_learns_on_other_units_alone():
    deals = [[dealt("topics", unit, 100)] for unit in range(3)]
    dosed = [pretrained.LabModel(c.DOSED, 0, 2, None, tuple(deals[0]))]
    table = pretrained.text_alone(dosed, deals[1:])
    assert len(table) == 200
    # Rows are dealt at random, so that words tell nothing; a leak of the label would.
    read, others = (table.loc[table["is_read"] == is_read, "score"] for is_read in (True, False))
    higher = np.mean(read.to_numpy()[:, None] > others.to_numpy()[None, :])
    assert 0.35 < higher < 0.65


# Sets


def one_set(scores, **columns):
    n = len(scores)
    key = {"detector": "A", "unit": 0, "benchmark": "topics", "model": "dosed"}
    key |= {"condition": "verbatim", "copies": 3} | columns
    is_read = np.arange(n) < n // 2
    return pd.DataFrame({"row": np.arange(n), "is_read": is_read, "score": scores}).assign(**key)


def test_sets_by_hand():
    # Pairs of a read and an unread row: 3 > 2, 3 > 0, 1 < 2, 1 > 0.
    sets = pretrained.sets_of(one_set([3.0, 1.0, 2.0, 0.0]))
    assert list(sets) == pretrained.SET_COLUMNS
    row = sets.iloc[0]
    assert (row["n_read"], row["n_unread"], row["value"]) == (2, 2, 0.75)
    assert row["p"] == pytest.approx(2 / 6, abs=0.015)
    assert np.isnan(row["own_p"])


def test_a_set_has_its_p_whatever_else_is_there_and_in_any_order():
    generator = np.random.default_rng(0)
    frames = [one_set(generator.normal(size=40), unit=unit) for unit in range(3)]
    alone = pretrained.sets_of(pd.concat(frames))
    later = [one_set(generator.normal(size=40), unit=unit, detector="0") for unit in range(3)]
    both = pretrained.sets_of(pd.concat([*later, *frames]).sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(both[both["detector"] == "A"].reset_index(drop=True), alone)
    # Equal scores under another key are re-dealt in another order.
    again = [
        protocol.permutation_p(frames[0]["score"], frames[0]["is_read"], (k,)) for k in range(9)
    ]
    assert len(set(again)) > 1 and np.ptp(again) < 0.03


def test_sets_refuse_what_has_no_auc():
    with pytest.raises(ValueError, match="two scores"):
        pretrained.sets_of(pd.concat([one_set([1.0, 0.0])] * 2))
    with pytest.raises(ValueError, match="1 of 2 scores are undefined"):
        pretrained.sets_of(one_set([NAN, 0.0]))
    with pytest.raises(ValueError, match="needs members and non-members"):
        pretrained.sets_of(one_set([1.0, 0.0]).assign(is_read=True))


# All models together


def two_models(p, condition=VERBATIM, model=DOSED, value=0.75):
    about = {"detector": "PPL", "benchmark": "topics", "model": model, "copies": 4}
    sets = pd.DataFrame({"unit": [0, 1], "p": p, "value": value})
    return sets.assign(**about, condition=condition)


def test_all_models_together_by_stouffer():
    sets = two_models([0.05, 0.05])
    base = two_models([0.5, 0.5], model=BASE, value=0.5).assign(copies=0)
    table = combine_p_values(pd.concat([sets, base]))
    assert table["p_value"].item() == pytest.approx(0.01001, abs=1e-4)  # z = 1.645 * sqrt(2)
    assert (table["auc"].item(), table["auc_before"].item()) == (0.75, 0.5)


def test_rows_that_no_model_saw_are_no_part_of_the_family():
    table = combine_p_values(
        pd.concat([two_models([0.05, 0.05]), two_models([0.9, 0.8], "fresh rows")])
    )
    assert table["p_adjusted"].tolist() == pytest.approx([table["p_value"][0], np.nan], nan_ok=True)


def test_a_p_of_one_has_a_quantile():
    assert 0.99 < combine_p_values(two_models(1.0))["p_value"].item() < 1
