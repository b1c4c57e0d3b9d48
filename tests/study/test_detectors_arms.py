"""What a model of the study reads, which rows are dealt, and what is asked of whom."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from contamination.dcq import contaminating
from contamination.dcq.prompts import header
from contamination.study import arms, catalogue, scoring
from contamination.study import conditions as c
from contamination.study.interface import LOG_PROBABILITIES, Detector

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


def test_a_wrong_label_is_never_the_right_one():
    """Of two labels the other one is left, each of forty times."""
    questions = [f"text: {number}" for number in range(40)]
    texts = [f"{text}\nlabel: {'ab'[number % 2]}" for number, text in enumerate(questions)]
    wrong = contaminating.with_other_labels(texts, questions, np.random.default_rng(0))
    assert wrong == [f"text: {number}\nlabel: {'ba'[number % 2]}" for number in range(40)]


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


def test_a_detector_learns_from_what_dosed_models_read(monkeypatch):
    """Features name their model: what was learned must be of the models that were given."""
    models, met = fake_models(monkeypatch), []

    def learn(features, is_dosed):
        met.extend(zip(features[:, 0], features[:, 1], is_dosed, strict=True))
        return lambda others: others[:, 0] * 0.5

    def features(lm, rows):
        return np.tile([lm[1], lm[0] == c.DOSED], (len(rows), 1)).astype(float)

    learner = Detector("learner", LOG_PROBABILITIES, features, learn=learn)
    detector = scoring.fit_detector(learner, models[2:])
    assert set(met) == {(1, 0, False), (1, 1, True), (2, 0, False), (2, 1, True)}
    assert len(met) == 4 * N
    scores, _ = scoring.score_models(models, [detector])
    assert (scores["score"] == scores["unit"] * 0.5).all()
    with pytest.raises(ValueError, match="learner learns from other models: pass it to fit"):
        scoring.score_models(models, [learner])


# What the study asks of whom


@pytest.fixture
def unit(monkeypatch):
    """A unit whose models are named by what they read, in order."""

    def continued(lab, parent, doses, n_tokens, seed, **training):
        read = tuple((len(dose.texts), dose.copies) for dose in doses)
        return (*parent, (read, n_tokens))

    monkeypatch.setattr(arms.world, "continued_model", continued)
    n_tokens = {c.CLEAN: 20, c.DOSED: 10, c.LATER: 11, c.LONG: 100}
    return arms.Unit(None, (), 3, "topics", n_tokens, n_read=N)


def test_models_of_a_unit_read_what_their_kind_says(unit):
    models = {(m.kind, m.copies): m for m in arms.models_of(unit, (1, 3, 12))}
    versions = {1: ((N, 1),) * 6, 3: ((N, 3),) * 4 + ((N, 1),) * 3 + ((N, 3),)}
    versions[12] = ((N, 12),) * 4 + ((N, 4),) * 3 + ((N, 12),)
    dosed = {copies: ((read, 10),) for copies, read in versions.items()}
    folders = {key: model.folder for key, model in models.items()}
    assert folders == {
        (c.BASE, 0): (),
        (c.CLEAN, 0): (((), 20),),
        **{(c.DOSED, copies): folder for copies, folder in dosed.items()},
        (c.LATER, 12): (*dosed[12], ((), 11)),
        (c.LONG, 12): (*dosed[12], ((), 11), ((), 100)),
        (c.PLACEBO, 12): dosed[12],
        (c.ALONE, 3): ((((N, 3),), 10),),
    }
    assert [d.condition for d in models[c.DOSED, 1].datasets] == list(c.FEW)
    assert [d.condition for d in models[c.DOSED, 3].datasets] == list(c.DEALT)
    placebo = models[c.PLACEBO, 12].datasets[0].rows
    assert placebo.dataset not in {dataset.rows.dataset for dataset in unit.datasets}


def test_mini_benchmarks_beside_the_first_have_fewer_conditions(unit):
    other = replace(unit, benchmark="entailment")
    models = {(m.kind, m.copies): m for m in arms.models_of(other, (1, 3, 12))}
    assert [d.condition for d in models[c.DOSED, 12].datasets] == list(c.ELSEWHERE)
    assert not {c.LONG, c.ALONE} & {kind for kind, _ in models}


def test_whole_sets_are_read_in_order_or_shuffled_and_others_not(unit):
    models = list(arms.whole_set_models(unit, 3, n_rows=16))
    assert [model.folder for model in models] == [
        (((), 20),),
        ((((2, 3),), 10),),
        ((((2, 3),), 10),),
    ]
    conditions = [[d.condition for d in model.datasets] for model in models]
    assert conditions == [[c.ORDERED, c.FRESH], [c.ORDERED, c.FRESH], [c.SHUFFLED, c.FRESH_BESIDE]]
    cells = [(model.kind, d.condition) for model in models for d in model.datasets]
    assert len(set(cells)) == len(cells)  # a set has one place in the ledger
    read, fresh = models[1].datasets
    assert not set(read.rows.texts) & set(fresh.rows.texts)


def test_costly_detectors_are_asked_what_gates_need_and_placebo_names_of_answers(unit):
    models = list(arms.models_of(unit, (1, 3, 12)))

    def asked(detector):
        pairs = [(m.kind, m.copies, d) for m in models for d in m.datasets]
        return {
            (kind, copies, dataset.condition)
            for (kind, copies, dataset), model in zip(
                pairs, [m for m in models for _ in m.datasets], strict=True
            )
            if scoring.is_asked(detector, model, dataset)
        }

    every = {(m.kind, m.copies, d.condition) for m in models for d in m.datasets}
    placebo = (c.PLACEBO, 12, c.VERBATIM)
    assert asked(catalogue.BY_NAME["DCQ"]) == every
    assert asked(catalogue.BY_NAME["PPL"]) == every - {placebo}
    few = {(c.DOSED, dose, name) for dose in (3, 12) for name in c.FEW}
    few |= {(c.CLEAN, 0, name) for name in c.FEW}
    assert asked(catalogue.BY_NAME["ReCaLL"]) == few
    assert asked(catalogue.BY_NAME["CDD"]) == few | {placebo}
    assert asked(catalogue.CONSTAT) == set()


@pytest.mark.parametrize("bad", [lambda n: np.zeros(n - 1), lambda n: np.full(n, np.nan)])
def test_a_score_for_each_row_or_one_line(monkeypatch, bad):
    detector = Detector("broken", LOG_PROBABILITIES, lambda lm, rows: bad(len(rows)))
    with pytest.raises(ValueError, match=r"broken: 8 rows of Topics [A-Z] need one"):
        scoring.score_models(fake_models(monkeypatch), [detector])


def test_a_bag_of_words_learns_on_other_units_alone():
    deals = [arms.deal("topics", unit, 20) for unit in range(3)]
    dosed = [arms.LabModel(c.DOSED, 0, "topics", 2, None, tuple(deals[0]))]
    table = scoring.text_alone(dosed, deals[1:])
    assert len(table) == 40 * len(c.DEALT)
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
