"""What lessons 00 and 04 show and do not compute is what the notebooks and studies found."""

import pandas as pd
import pytest
from notebook_files import ROOT, script

VALUES = script("lesson_values")


def stored(name):
    return pd.read_csv(VALUES.STORED / f"{name}.csv")


def test_one_copy_is_what_the_stored_tables_say():
    found = VALUES.one_copy()
    found["fifth"] = found["fifth"].astype(float)
    pd.testing.assert_frame_equal(stored("one_copy"), found, check_dtype=False)
    assert len(found) == 3 + 2 * 5


def test_the_dial_has_a_suspect_and_its_controls_everywhere():
    dial = stored("copies_dial")
    assert set(dial["copies"]) == set(VALUES.COPIES) and set(dial["seed"]) == set(VALUES.SEEDS)
    of_method = dial.groupby(["copies", "seed", "method"])
    assert (of_method["model"].first() == "contaminated").all()
    assert of_method.size().groupby("method").unique().map(list).to_dict() == {
        "Quiz": [3],
        "Completion": [3],
        "Min-k% Prob": [2],
        "DICE": [3],
    }
    assert dial["value"].between(0, 1).all()


def test_the_dial_is_the_lessons_own_result():
    dial = stored("copies_dial").query("copies == 30 and seed == 0").reset_index(drop=True)
    lesson = pd.read_csv(ROOT / "outputs/reference/demo/tables/first_look.csv")
    assert dial["value"].tolist() == pytest.approx(lesson["value"].tolist(), abs=0.051)
