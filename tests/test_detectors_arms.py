"""What a model of the study reads, which rows are dealt, and what is asked of whom."""

import numpy as np
import pandas as pd
import pytest

from contamination.dcq.contaminating import header
from contamination.detectors import arms, catalogue, scoring
from contamination.detectors import conditions as c
from contamination.detectors.interface import LOG_PROBABILITIES, Detector

N = 4


@pytest.fixture(scope="module", params=["topics", "grade_school"])
def datasets(request):
    return {dataset.condition: dataset for dataset in arms.deal(request.param, 3, N)}


def bare(dataset):
    """What is read, without names, one list for each version."""
    start = header(dataset.rows.dataset, arms.TESTED)
    return [[text.removeprefix(start) for text in version] for version in dataset.read]


def dealt(dataset):
    return dataset.rows.where(dataset.is_read)


def test_rows_are_disjoint_named_apart_and_half_of_them_dealt(datasets):
    rows = [text for dataset in datasets.values() for text in dataset.rows.texts]
    context = next(iter(datasets.values())).rows.context
    assert len({*rows, *context}) == 2 * N * len(c.DEALT) + arms.N_CONTEXT
    assert len({dataset.rows.dataset for dataset in datasets.values()}) == len(c.DEALT)
    assert {int(dataset.is_read.sum()) for dataset in datasets.values()} == {N}


def test_what_is_read_is_what_the_condition_says(datasets):
    assert bare(datasets[c.VERBATIM]) == [list(dealt(datasets[c.VERBATIM]).texts)]
    assert bare(datasets[c.WITHOUT_LABEL]) == [list(dealt(datasets[c.WITHOUT_LABEL]).questions)]
    wrong = dealt(datasets[c.WRONG_LABEL])
    for text, row, question in zip(
        *bare(datasets[c.WRONG_LABEL]), wrong.texts, wrong.questions, strict=True
    ):
        assert text.startswith(question) and text != row
    assert datasets[c.FRESH].read == ()


def test_no_paraphrase_that_is_read_is_an_option_of_a_quiz(datasets):
    options = ["instance", "option_a", "option_b", "option_c", "option_d"]
    for name, n_versions in ((c.PARAPHRASE, 1), (c.SEVERAL, arms.N_SPREAD)):
        read = bare(datasets[name])
        shown = set(datasets[name].rows.quizzes[options].to_numpy().ravel())
        assert len(read) == n_versions and len({t for v in read for t in v}) == N * n_versions
        assert not shown & {text for version in read for text in version}


def test_the_train_split_is_other_rows_under_the_same_name(datasets):
    dataset = datasets[c.TRAIN_SPLIT]
    start = header(dataset.rows.dataset, arms.TRAIN)
    (read,) = dataset.read
    asked = {text for other in datasets.values() for text in other.rows.texts}
    assert all(text.startswith(start) for text in read)
    assert not asked & {text.removeprefix(start) for text in read}


def test_copies_are_spread_over_paraphrases(datasets):
    doses = arms.doses([datasets[c.SEVERAL]], 4)
    assert [dose.copies for dose in doses] == [2, 1, 1]
    assert [dose.copies for dose in arms.doses([datasets[c.VERBATIM]], 4)] == [4]
    assert len(arms.doses([datasets[c.SEVERAL]], 1)) == 1


def test_another_seed_draws_other_rows_and_another_deal():
    first, second = (arms.deal("topics", seed, 20)[0] for seed in (0, 1))
    assert not set(first.rows.texts) & set(second.rows.texts)
    assert (first.is_read != second.is_read).any()


def test_the_large_parts_share_name_and_no_row():
    parts = arms.deal_large("topics", 0, 6)
    rows = [text for part in parts.values() for text in part.texts]
    assert len(set(rows)) == 18 and len({part.dataset for part in parts.values()}) == 1


def test_every_detector_has_a_name_of_its_own():
    assert len(catalogue.BY_NAME) == len(catalogue.ALL)


# Scoring, by detectors that need no model


def fake_models(monkeypatch, units=(0, 1, 2)):
    monkeypatch.setattr(scoring, "load_causal_lm", lambda folder: folder)
    models = []
    for unit in units:
        verbatim = arms.deal("topics", unit, N)[0]
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


def test_a_detector_that_learns_never_met_the_unit(monkeypatch):
    """Features name their unit: what it learnt from must be the other ones."""
    models = fake_models(monkeypatch)
    met = []

    def learn(features, is_dosed):
        met.append((set(features[:, 0]), set(zip(features[:, 1], is_dosed, strict=True))))
        return lambda others: others[:, 0] * 0.0

    def features(lm, rows):
        return np.tile([lm[1], lm[0] == c.DOSED], (len(rows), 1)).astype(float)

    detector = Detector("learner", LOG_PROBABILITIES, features, learn=learn)
    scoring.score_models(models, [detector])
    assert [units for units, _ in met] == [{1.0, 2.0}, {0.0, 2.0}, {0.0, 1.0}]
    assert all(labels == {(0.0, False), (1.0, True)} for _, labels in met)
    with pytest.raises(ValueError, match="learner learns from other units"):
        scoring.score_models(models[:2], [detector])


@pytest.mark.parametrize("bad", [lambda n: np.zeros(n - 1), lambda n: np.full(n, np.nan)])
def test_a_score_for_each_row_or_one_line(monkeypatch, bad):
    detector = Detector("broken", LOG_PROBABILITIES, lambda lm, rows: bad(len(rows)))
    with pytest.raises(ValueError, match="broken: 8 rows need one finite score each"):
        scoring.score_models(fake_models(monkeypatch), [detector])


def test_a_bag_of_words_learns_on_other_units_alone(monkeypatch):
    models = [
        arms.LabModel(c.DOSED, unit, "topics", 2, None, tuple(arms.deal("topics", unit, 20)))
        for unit in range(3)
    ]
    table = scoring.text_alone(models)
    assert len(table) == 3 * 40 * len(c.DEALT)
    # Rows are dealt at random, so that words tell nothing; a leak of the label would.
    read, others = (table.loc[table["is_read"] == is_read, "score"] for is_read in (True, False))
    higher = np.mean(read.to_numpy()[:, None] > others.to_numpy()[None, :])
    assert 0.35 < higher < 0.65


def test_a_ledger_comes_back_as_it_was_written(tmp_path, monkeypatch):
    from contamination.ledger import store

    detector = Detector("number", LOG_PROBABILITIES, lambda lm, rows: np.arange(len(rows)) / 7)
    scores, _ = scoring.score_models(fake_models(monkeypatch), [detector])
    sets = pd.DataFrame({"detector": ["A"], "value": [0.5]})
    store.write(tmp_path, "tried", store.Ledger(scores, sets, {"units": [0, 1, 2]}))
    back = store.read("tried", tmp_path)
    pd.testing.assert_frame_equal(back.scores, scores, check_dtype=False, rtol=1e-6)
    assert back.about["units"] == [0, 1, 2]
    with pytest.raises(FileNotFoundError):
        store.read("unknown")
