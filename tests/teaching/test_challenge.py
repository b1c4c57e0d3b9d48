"""The challenge for a class: its grader under five solvers, and what is handed out."""

import pandas as pd
import pytest
from notebook_files import script

WORD = "a word that only the teacher knows"
challenge = script("challenge")


def submission(probability):
    """Of each model; a function of its name, or one number."""
    of = probability if callable(probability) else lambda name: probability
    names = challenge.MODELS
    return pd.DataFrame({"model": names, "probability": [of(name) for name in names]})


def labels(secret):
    return submission(lambda name: float(name in challenge.cheaters(secret)))


@pytest.mark.parametrize(
    ("solver", "points", "n_false"),
    [
        (labels(WORD), 100, 0),
        (submission(0.3), 0, 0),  # the sample, sent back
        (submission(1), 100 * (1 - 0.7 / 0.21) - 7 * 20, 7),  # all guilty
        (submission(0.5), 100 * (1 - 0.25 / 0.21), 0),  # no opinion at all
    ],
)
def test_the_grader_pays_for_knowledge_and_calibration(solver, points, n_false):
    found = challenge.points(WORD, solver.sample(frac=1, random_state=0))
    assert found["points"] == pytest.approx(points) and found["false_accusations"] == n_false


def test_labels_copied_from_another_group_are_worth_less_than_nothing():
    # Each group has a secret of its own. All three alike is one case in 120.
    copied = [challenge.points(f"{WORD} {n}", labels(WORD))["points"] for n in range(200)]
    assert pd.Series(copied).lt(0).mean() > 0.8


def test_doubt_costs_less_than_a_wrong_certainty():
    found = [*challenge.cheaters(WORD)][:2]  # the third is missed
    wrong = next(name for name in challenge.MODELS if name not in challenge.cheaters(WORD))
    sure = submission(lambda name: float(name in (*found, wrong)))
    unsure = submission(lambda name: 0.9 if name in found else 0.15)
    points = [challenge.points(WORD, of)["points"] for of in (sure, unsure)]
    assert points[0] < 0 < points[1]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (submission(0.3).iloc[:0], "one line for each model"),
        (submission(0.3).iloc[1:], "one line for each model"),
        (submission(float("nan")), "model_01 needs a probability"),
        (submission("guilty"), "model_01 needs a probability"),
        (submission(30), "model_01 needs a probability"),
        (submission(0.3).rename(columns={"probability": "guilty"}), "the columns must be"),
    ],
)
def test_what_is_no_submission_is_refused(broken, message):
    with pytest.raises(ValueError, match=message):
        challenge.points(WORD, broken)


def test_three_of_ten_cheated_whatever_the_secret():
    assert all(len(challenge.cheaters(str(n))) == 3 for n in range(50))
    n_times = pd.Series([name for n in range(500) for name in challenge.cheaters(str(n))])
    assert n_times.value_counts().between(100, 200).all() and n_times.nunique() == 10


def test_what_is_handed_out_does_not_tell(one_world, tmp_path, monkeypatch):
    monkeypatch.setattr(challenge, "N_ROWS", 6)
    challenge.make(WORD, tmp_path, n_tokens=2_000, n_more=500)
    files = {}
    for name in challenge.MODELS:
        folder = tmp_path / "models" / name
        files[name] = {path.name: path.stat().st_size for path in folder.iterdir()}
        # Nothing but the weights differs, and no recipe is there.
        assert files[name] == files[challenge.MODELS[0]] and set(files[name]) <= {
            *challenge.KEPT.split()
        }
    configs = {(tmp_path / f"models/{name}/config.json").read_text() for name in files}
    weights = {(tmp_path / f"models/{name}/model.safetensors").read_bytes() for name in files}
    assert len(configs) == 1 and len(weights) == len(files)
    rows = {
        name: pd.read_csv(tmp_path / f"{name}.csv")["text"] for name in ("suspected", "held_out")
    }
    assert all(len(of) == 6 for of in rows.values()) and not {*rows["suspected"]} & {
        *rows["held_out"]
    }
    sample = pd.read_csv(tmp_path / "submission.csv")
    assert challenge.points(WORD, sample)["points"] == pytest.approx(0)
