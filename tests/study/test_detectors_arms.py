"""Scores of models, and the parts of a ledger."""

import numpy as np
import pandas as pd
import pytest
from detector_frames import dealt

from contamination.study import arms, scoring
from contamination.study import conditions as c
from contamination.study.interface import LOG_PROBABILITIES, Detector

N = 4


# Scoring, by detectors that need no model


def fake_models(monkeypatch, units=(0, 1, 2)):
    monkeypatch.setattr(scoring, "load_causal_lm", lambda folder: folder)
    models = []
    for unit in units:
        verbatim = dealt("topics", unit, N)
        for kind in (c.CLEAN, c.DOSED):
            copies = 2 * (kind == c.DOSED)
            model = arms.LabModel(kind, unit, "topics", copies, (kind, unit), (verbatim,))
            models.append(model)
    return models


def test_scores_stand_beside_their_row_and_its_deal(monkeypatch):
    models = fake_models(monkeypatch)
    detector = Detector("number", LOG_PROBABILITIES, lambda lm, rows: np.arange(len(rows)) + lm[1])
    scores, seconds = scoring.score_models(models, [detector])
    assert scores["score"].tolist() == [
        row + unit for unit in (0, 0, 1, 1, 2, 2) for row in range(8)
    ]
    own = scores.query("unit == 1 and model == 'dosed'")
    assert own["is_read"].tolist() == models[3].datasets[0].is_read.tolist()
    assert seconds["n_rows"].tolist() == [8] * 6


@pytest.mark.parametrize("bad", [lambda n: np.zeros(n - 1), lambda n: np.full(n, np.nan)])
def test_a_score_for_each_row_or_one_line(monkeypatch, bad):
    detector = Detector("broken", LOG_PROBABILITIES, lambda lm, rows: bad(len(rows)))
    with pytest.raises(ValueError, match=r"broken: 8 rows of Topics [A-Z] need one"):
        scoring.score_models(fake_models(monkeypatch), [detector])


def test_a_bag_of_words_learns_on_other_units_alone():
    deals = [[dealt("topics", unit, 100)] for unit in range(3)]
    dosed = [arms.LabModel(c.DOSED, 0, "topics", 2, None, tuple(deals[0]))]
    table = scoring.text_alone(dosed, deals[1:])
    assert len(table) == 200
    # Rows are dealt at random, so that words tell nothing; a leak of the label would.
    read, others = (table.loc[table["is_read"] == is_read, "score"] for is_read in (True, False))
    higher = np.mean(read.to_numpy()[:, None] > others.to_numpy()[None, :])
    assert 0.35 < higher < 0.65


def test_the_parts_of_a_ledger_come_back_as_one(tmp_path, monkeypatch):
    from contamination.study import store

    detector = Detector("number", LOG_PROBABILITIES, lambda lm, rows: np.arange(len(rows)) / 7)
    scores, _ = scoring.score_models(fake_models(monkeypatch), [detector])
    sets = pd.DataFrame({"detector": ["A"], "value": [0.5], "p": None, "own_p": 0.1})
    sets = sets.assign(unit=0, copies=24)  # a dose that no row has
    for unit in (1, 0):
        about = {"models": {f"{unit} dosed": "hash"}, "seconds": [unit]}
        part = store.Ledger(scores[scores["unit"] == unit], sets, about)
        store.write(tmp_path, f"tried_{unit}", part)
    back = store.read("tried", tmp_path)
    expected = scores[scores["unit"] < 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(back.scores, expected, check_dtype=False, rtol=1e-6)
    assert (len(back.sets), back.about["units"], back.about["seconds"]) == (2, [0, 1], [0, 1])
    doses = sorted({*expected["copies"], 24} - {0})
    assert back.about["copies"] == doses
    assert set(back.about["models"]) == {"0 dosed", "1 dosed"}
    with pytest.raises(FileNotFoundError, match='there is no ledger "unknown"'):
        store.read("unknown")
