"""DICE: mixtures, answers, the located layer, the detector, its controls, fine-tuning."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch
from damage import flip, said_of
from tiny_models import saved, tiny_llama

from contamination.core import statistics
from contamination.core.verdicts import OPEN, RULED_OUT, SHOWN
from contamination.dice import answers, detector, dice_figures, experiments, mixtures, pool
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import describe
from contamination.lab.world import World
from contamination.models.local import (
    BEFORE_FINAL_NORM,
    hidden_states,
    layer_batches,
    load_causal_lm,
)

PROBLEMS = pd.DataFrame(
    {
        "question": ["Sam has 2 cards and gets 3. How many?", "Ann has 9 eggs, eats 4. How many?"],
        "answer": ["2 + 3 = 5\n#### 5", "9 - 4 = 5\n#### 5"],
    }
)
VANILLA = [(mixtures.PROMPT.format(f"mean(x{n})"), f"Return mean {n}.") for n in range(12)]


# Mixtures


def test_fixed_rows_keep_the_number_of_rows_and_count_copies():
    rows = mixtures.rows_of(PROBLEMS)
    mixture = mixtures.mix(VANILLA, rows, copies=2, n_rows=10, seed=0)
    assert (mixture.n_rows, len(mixture.vanilla), mixture.dose_pct) == (10, 6, 40.0)
    assert sorted(mixture.rows(seed=1)) == sorted([*mixture.vanilla, *rows, *rows])


def test_paper_doses_come_from_657_rows_in_25000():
    mixture = mixtures.Mixture(tuple(VANILLA[:1]) * (25_000 - 657), tuple(VANILLA[:1]) * 657, 1)
    assert mixture.dose_pct == pytest.approx(2.628)


def test_every_dose_starts_with_the_same_vanilla_rows():
    clean, dosed = (mixtures.mix(VANILLA, mixtures.rows_of(PROBLEMS), n, 10, 3) for n in (0, 2))
    assert clean.vanilla[: len(dosed.vanilla)] == dosed.vanilla
    assert clean.contamination == () and clean.dose_pct == 0


@pytest.mark.parametrize(("copies", "n_rows", "message"), [(5, 10, "no room"), (1, 13, "12 vanil")])
def test_impossible_mixtures_are_named(copies, n_rows, message):
    with pytest.raises(ValueError, match=message):
        mixtures.mix(VANILLA, mixtures.rows_of(PROBLEMS), copies, n_rows, 0)


def test_tabmwp_is_worded_as_in_the_released_code(tmp_path, monkeypatch):
    """Nothing parts question, options and table there."""
    row = {"question": "How many?", "table_title": "Ships", "table": "a | 2", "answer": "2"}
    rows = {
        "1": row | {"choices": ["yes", "no"]},
        "2": row | {"choices": None, "table_title": None},
    }
    path = tmp_path / "problems.json"
    path.write_text(json.dumps(rows))
    monkeypatch.setattr(mixtures, "source_file", lambda *_: path)
    assert mixtures._tabmwp(with_choices=True)["question"].tolist() == [
        "How many?Your answer must choice fromyes, noThere is a table you can useShipsa | 2",
        "How many?There is a table you can usea | 2",
    ]
    assert len(mixtures._tabmwp(with_choices=False)) == 1


def test_lab_problems_pair_paraphrases_and_keep_the_sets_apart(monkeypatch):
    names = pd.DataFrame({"signature": [f"{letter * 3}(x)" for letter in "abcdefgh"]})
    monkeypatch.setattr(mixtures, "collect_signatures", lambda: names)
    problems = mixtures.lab_problems(6, 4, seed=1)
    seen, syn = problems[mixtures.SEEN], problems[mixtures.SYN]
    assert list(seen["answer"]) == list(syn["answer"])
    assert not set(seen["question"]) & set(syn["question"])
    asked = [q for name, table in problems.items() for q in table["question"]]
    assert len(asked) == len(set(asked))
    # Two of three problems have operands up to 9 and one step.
    easy = seen["answer"].map(lambda text: text.count("\n") == 1)
    assert list(easy) == [True, True, False] * 2
    skills = {row[0] for row in mixtures.skill_texts(40, 1)[0]}
    assert not skills & set(mixtures.prompts_of(pd.concat(problems.values())))


# Answers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2 + 3 = 5\n#### 5", 5),
        ("#### -3", -3),
        ("so 10-3", 3),
        ("so 10 - 3 = -7", -7),
        ("first 4\nIt costs $1,200.50 in all.", 1200.5),
        ("#### .5", 0.5),
        ("#### -$5", -5),
        ("no number", None),
        ("", None),
        ("#### 5\nThen 7 more\n#### 9", 7),
    ],
)
def test_last_number_behind_the_marker(text, number):
    assert answers.parse_answer(text) == number


def test_a_failed_parse_is_wrong():
    assert not answers.is_right("no number", "#### 5")
    assert answers.is_right("it is 5.0 now", "#### 5")
    with pytest.raises(ValueError, match="no number"):
        answers.is_right("5", "none")
    with pytest.raises(ValueError, match="ends with nothing"):
        answers.is_right("5", "#### ")


@pytest.mark.parametrize(
    ("completion", "answer", "right"),
    [
        ("It is so.\n#### Yes", "#### yes", True),
        ("So the answer is yes.", "#### yes", True),
        ("#### no", "#### yes", False),
        ("The answer is a surplus", "#### surplus", True),
        ("He counted eyes", "#### yes", False),  # a word that ends alike
        ("#### 1/2\n### Input: 3/4", "#### 1/2", True),
        ("That is 0.5", "#### 1/2", True),
        ("#### 2", "#### 1/2", False),
        (r"\boxed is $\frac{3}{4}$", r"#### $\dfrac{3}{4}$", True),
        (r"#### \text{(B)}", "#### (B)", True),
        ("the train leaves at 2:30 P.M.", "#### 2:30 P.M.", True),
        ("the train leaves at 12:30 P.M.", "#### 2:30 P.M.", False),
        ("in all 12,000,000 dollars", "#### 1.2e7", True),
        ("#### 7", "#### 1.2e7", False),
        ("", "#### yes", False),
    ],
)
def test_answers_that_are_no_plain_number_are_compared_as_written_or_as_a_number(
    completion, answer, right
):
    assert answers.is_right(completion, answer) == right


@pytest.mark.parametrize(
    ("completion", "answer", "right"),
    [
        ("#### 3", "#### -3", True),  # signs are dropped
        ("nothing", "nothing at all", True),  # two failed parses agree
        ("I think 3 or 4", "#### 4", False),  # an earlier number's end cuts the last one off
        ("I think 3 or 4.", "#### 4", False),
        ("It is 4 now", "#### 4", True),
        ("1,200 in all", "#### 1200", True),
        ("2 * 2 = <<2*2=4>>4 eggs", "#### 4", True),
        ("1.2.3 ", "#### 1", False),
    ],
)
def test_released_rules(completion, answer, right):
    assert answers.is_right_released(completion, answer) == right


# Tiny models


@pytest.fixture(scope="module")
def tokenizer():
    texts = [mixtures.PROMPT.format(q) + a for q, a in PROBLEMS.itertuples(index=False)]
    return train_tokenizer([*texts, *(prompt + text for prompt, text in VANILLA)], vocabulary=320)


@pytest.fixture(scope="module")
def checkpoints(tokenizer, tmp_path_factory):
    """Two random models of two blocks that share their embeddings, and nothing else."""
    folders = []
    for seed in (0, 1):
        model = tiny_llama(tokenizer, seed)
        torch.manual_seed(7)
        torch.nn.init.normal_(model.model.embed_tokens.weight)
        folders.append(saved(tmp_path_factory.mktemp("model") / f"model{seed}", model, tokenizer))
    return folders


@pytest.fixture(scope="module")
def lms(checkpoints):
    return [load_causal_lm(folder) for folder in checkpoints]


@pytest.fixture(scope="module")
def measured(lms):
    problems = {
        name: pd.concat([PROBLEMS] * 2, ignore_index=True).assign(
            question=lambda table, name=name: table["question"] + f" {name}" + table.index.map(str)
        )
        for name in (*mixtures.IN_DISTRIBUTION, "MATH")
    }
    return [pool.measure(lm, problems, ["GSM-i", "GSM-ii", "MATH"]) for lm in lms]


def test_frozen_embeddings_give_an_auroc_of_one_half_at_layer_0(measured):
    """The last token of every prompt is the same, so a shared embedding knows nothing."""
    models = {"x": {0: measured[0]}, pool.CLEAN: {0: measured[1]}}
    found = experiments.auroc_of_seed_pairs(models, "x", pool.CLEAN, 0, "GSM-ii")
    assert found.auroc_pct == 50.0
    assert experiments.auroc_of_seed_pairs(models, "x", pool.CLEAN, 2, "GSM-ii").auroc_pct == 100.0


def test_one_forward_pass_gives_all_layers(lms, monkeypatch):
    calls = []
    forward = type(lms[0].model.base_model).forward
    monkeypatch.setattr(
        type(lms[0].model.base_model),
        "forward",
        lambda self, *a, **k: calls.append(len(k["input_ids"])) or forward(self, *a, **k),
    )
    prompts = mixtures.prompts_of(PROBLEMS)
    states = detector.states_by_layer(lms[0], prompts)
    assert states.shape == (2, 4, 16)
    assert sum(calls) == len(prompts)


def test_highest_block_is_read_before_the_final_norm(lms):
    lm, prompts = lms[0], mixtures.prompts_of(PROBLEMS)
    raw, normed = hidden_states(lm, prompts, [BEFORE_FINAL_NORM, 2]).swapaxes(0, 1)
    assert not np.allclose(raw, normed)
    expected = lm.model.base_model.norm(torch.from_numpy(raw)).detach().numpy()
    assert np.allclose(normed, expected, atol=1e-5)
    *_, states = next(layer_batches(lm, prompts))
    assert len(states) == 4


def test_distances_by_hand():
    first = np.array([[[3.0, 4.0], [1.0, 0.0]]])
    second = np.array([[[0.0, 0.0], [0.0, 1.0]]])
    with np.errstate(invalid="ignore"):
        found = detector.distances(first, second)
    assert found["euclidean"].tolist() == [[5.0, pytest.approx(np.sqrt(2))]]
    assert found["relative"][0].tolist() == pytest.approx([2.0, np.sqrt(2)])
    assert found["cosine"][0, 1] == 1.0


def test_all_tokens_of_one_token_are_the_last_token(lms):
    """The beginning-of-sequence token is the same in both, so a single token decides."""
    found = detector.distances_all_tokens(*lms, ["a", mixtures.PROMPT.format("b")])
    states = [detector.states_by_layer(lm, ["a"]) for lm in lms]
    one, other = (next(layer_batches(lm, ["a"]))[2][2][0] for lm in lms)
    squared = float(((one[:2] - other[:2]) ** 2).sum())
    found = found["euclidean, all tokens"]
    assert found[0, 2] == pytest.approx(np.sqrt(squared), rel=1e-4)
    assert found[0, 2] >= detector.distances(*states)["euclidean"][0, 2]
    assert found[:, 0].tolist() == [0.0, 0.0]


def test_located_layer_is_the_commonest_argmax_and_never_the_normed_one(measured):
    def model(*by_layer):
        states = np.zeros((3, 5, 2), dtype=np.float32)
        states[:, :, 0] = np.array(by_layer).T + 1
        return pool.ModelMeasurements({"GSM-i": states}, {})

    # Three prompts with their largest distance at block 1, 2 and 2; the norm's is larger still.
    models = {
        "x": {0: model([9] * 3, [5, 1, 1], [1, 5, 5], [0] * 3, [9] * 3)},
        pool.CLEAN: {0: model(*[[0] * 3] * 5)},
        pool.OTHER_CLEAN: {0: model(*[[1] * 3] * 5)},
    }
    rows = experiments.layer_rows(models, "x")
    assert experiments.located_layer(rows) == 2
    euclidean = rows[rows["distance"] == "euclidean"].reset_index(drop=True)
    assert euclidean["layer"].tolist() == [0, 1, 2, 3]
    assert euclidean["null_mean"].tolist() == [1.0] * 4


def test_answer_log_probs_cover_the_answer_alone(lms):
    lm = lms[0]
    found = answers.answer_log_probs(lm, PROBLEMS)
    n_tokens = [
        len(lm.tokenizer(text, add_special_tokens=False).input_ids) for text in PROBLEMS["answer"]
    ]
    assert [len(values) for values in found] == n_tokens
    means = []
    for (prompt, text), values in zip(mixtures.rows_of(PROBLEMS), found, strict=True):
        ids = torch.tensor([lm.tokenizer(prompt + text).input_ids])
        with torch.inference_mode():
            expected = lm.model(ids).logits[0, :-1].log_softmax(-1).numpy()
        expected = expected[np.arange(ids.shape[1] - 1), ids[0, 1:]][-len(values) :]
        assert values == pytest.approx(expected, abs=1e-4)
        means.append(expected.mean())
    row = answers.accuracy_row(lm, PROBLEMS, max_new_tokens=4)
    assert row["n"] == 2 and 0 <= row["n_valid"] <= 2
    assert row["answer_log_prob"] == pytest.approx(np.mean(means), abs=1e-4)


# Detector


def groups(shift, n=40, d=8, seed=0):
    states = np.random.default_rng(seed).normal(size=(2 * n, d)).astype(np.float32)
    states[:n, 0] += shift
    return states, np.arange(2 * n) < n


@pytest.mark.parametrize("method", list(detector.TRAINERS))
def test_detector_scores_the_contaminated_higher(method):
    score = detector.TRAINERS[method](*groups(4.0), seed=0)
    states, labels = groups(4.0, seed=1)
    assert score(states)[labels].mean() > score(states)[~labels].mean() + 1


@pytest.fixture
def networks(monkeypatch):
    """The scikit-learn networks that the detector trains, in order."""
    trained = []

    class Recorded(detector.MLPClassifier):
        def fit(self, *states_and_labels):
            trained.append(self)
            return super().fit(*states_and_labels)

    monkeypatch.setattr(detector, "MLPClassifier", Recorded)
    return trained


def test_scores_are_the_log_odds_of_the_network_that_was_trained(networks):
    """scikit-learn's own probabilities stand against the layers multiplied here."""
    states, labels = groups(1.0)
    score = detector.train_mlp(states, labels, seed=3)
    assert networks[0].hidden_layer_sizes == (8, 8, 8)
    assert detector.probability(score(states)) == pytest.approx(
        networks[0].predict_proba(states)[:, 1], abs=1e-5
    )


@pytest.mark.filterwarnings("error")
def test_detector_is_trained_for_exactly_the_stated_epochs(networks):
    """The loss on groups far apart is soon level; training goes on all the same, unwarned."""
    detector.train_mlp(*groups(8.0, n=80, d=64))
    assert networks[0].n_iter_ == len(networks[0].loss_curve_) == detector.N_EPOCHS


def test_auroc_is_averaged_and_folded_over_pairs_of_models():
    """One pair is split perfectly, one perfectly the wrong way round."""
    up, down = np.array([2.0, 3.0]), np.array([0.0, 1.0])
    found = detector.auroc_over_models([(up, down), (down, up)])
    assert (found.auroc_pct, found.folded_auroc_pct) == (50.0, 100.0)
    assert (found.ci_low, found.ci_high) == (0.0, 100.0)
    single = detector.auroc_over_models([(up, down)])
    assert single.auroc_pct == 100.0 and np.isnan(single.ci_low) and not single.resampled


@pytest.mark.parametrize("kind", [0, 1])
def test_pairs_that_share_a_model_are_not_drawn_as_if_they_were_many(kind):
    """One model of two of a kind is told from all of the other kind, the other from none.

    There are two models to draw from, so in a quarter of the draws each all
    pairs are won or lost; eight pairs drawn one by one would hardly ever be.
    """
    up, down = np.array([2.0, 3.0]), np.array([0.0, 1.0])
    models = [(few, many) if kind == 0 else (many, few) for few in (0, 1) for many in range(4)]
    scored = [(up, down) if pair[kind] == 0 else (down, up) for pair in models]
    found = detector.auroc_over_models(scored, models)
    assert (found.auroc_pct, found.ci_low, found.ci_high) == (50.0, 0.0, 100.0)
    assert found.resampled == detector.MODELS
    apart = detector.auroc_over_models(scored)
    assert apart.ci_low > 0 and apart.ci_high < 100 and apart.resampled == detector.PAIRS


# Controls


def pool_of(n_models, shift_contaminated, shift_seen, identity, shift_set=0.0):
    """Models whose states hold a mark of the model, of contamination and of membership."""
    rng = np.random.default_rng(0)
    sets = (*mixtures.IN_DISTRIBUTION, "MATH")

    def model(contaminated, read="GSM-i"):
        mark = rng.normal(size=6) * identity
        states = {}
        for name in sets:
            part = rng.normal(size=(12, 3, 6)) * 0.3 + mark
            part[:, 1:, 0] += shift_contaminated * contaminated
            part[:, 1:, 0] += shift_seen * contaminated * (name == read)
            part[:, 1:, 0] += shift_set * (name == "GSM-i")
            part[:, 0] = mark
            states[name] = part.astype(np.float32)
        scores = pd.DataFrame(rng.normal(size=(12, 4)), columns=list(answers.BASELINES))
        return pool.ModelMeasurements(states, dict.fromkeys(sets, scores))

    names = dict.fromkeys([pool.CLEAN, pool.OTHER_CLEAN, "MATH x5"], 0) | {"GSM-i x5": 1}
    models = {name: {s: model(bad) for s in range(n_models)} for name, bad in names.items()}
    models["GSM-ii x5"] = {s: model(1, read="GSM-ii") for s in range(n_models)}
    return models | {pool.BASE: dict.fromkeys(range(n_models), model(0))}


def table_of(models):
    return experiments.control_table(models, 1, topic="MATH", centred_on="MATH").set_index(
        "control"
    )


def test_controls_tell_a_model_detector_from_a_contamination_detector():
    """Models with marks of their own and nothing else: pairs split, strangers do not."""
    found = table_of(pool_of(5, 0.0, 0.0, identity=3.0))
    assert found.loc[experiments.TWO_CLEAN, "auroc_pct"] > 95
    assert not found.loc[experiments.TWO_CLEAN, "holds"]
    assert not found["holds"].fillna(False)[experiments.HELD_OUT]
    assert found.loc[experiments.LAYER_0, "auroc_pct"] == 100


def test_controls_recognise_contamination_and_membership():
    found = table_of(pool_of(5, 6.0, 4.0, identity=0.0))
    assert abs(found.loc[experiments.TWO_CLEAN, "auroc_pct"] - 50) < 20
    membership = (
        experiments.WITHIN,
        experiments.SWAPPED,
        experiments.PAIRED,
        experiments.SWAPPED_PAIRED,
    )
    for name in (experiments.HELD_OUT, *membership, experiments.WITHIN_TAUGHT):
        assert found.loc[name, "holds"], name
    expected = found["expected_if_detector_works"]
    names = [experiments.TWO_CLEAN, experiments.HELD_OUT, experiments.DIRECTION]
    assert expected.loc[names].tolist() == ["at chance", "above chance", "below the MLP"]
    assert found.loc[experiments.TWO_CLEAN_LEARNED, "resampled"] == "pairs of models"
    assert found.loc[experiments.HELD_OUT, "resampled"].startswith("models of each kind")


def test_exchanged_roles_unmask_sets_that_differ_by_themselves():
    """GSM-i lies higher in every model, nothing else: what looks like membership turns round.

    Beside a clean partner too: the detector is steepest where it was trained.
    """
    found = table_of(pool_of(6, 3.0, 0.0, identity=0.0, shift_set=2.0))
    for name, swapped in (
        (experiments.WITHIN, experiments.SWAPPED),
        (experiments.WITHIN_CLEAN, experiments.SWAPPED_CLEAN),
        (experiments.PAIRED, experiments.SWAPPED_PAIRED),
    ):
        assert found.loc[name, "ci_low"] > 50 > found.loc[swapped, "ci_high"]
    for name in (experiments.PAIRED_CLEAN, experiments.SWAPPED_PAIRED_CLEAN):
        assert 30 < found.loc[name, "auroc_pct"] < 70


def test_scores_beside_a_partner_are_differences_on_the_same_questions():
    """By hand: 3 - 1 and 5 - 2 above 4 - 3 and 1 - 1; without the partner one pair is wrong."""

    def model(seen, fresh):
        states = {"GSM-i": seen, "GSM-ii": fresh}
        return pool.ModelMeasurements(
            {k: np.array(v, float)[:, None, None] for k, v in states.items()}, {}
        )

    models = {"x": {0: model([3, 5], [4, 1])}, pool.CLEAN: {0: model([1, 2], [3, 1])}}
    how = {0: lambda states: states[:, 0]}, "x", 0, "GSM-i", "GSM-ii"
    assert experiments.auroc_within_models(models, *how).auroc_pct == 75.0
    paired = experiments.auroc_within_models(models, *how, partner=pool.CLEAN)
    assert (paired.auroc_pct, paired.n_models, paired.n) == (100.0, 2, 4)


def test_a_model_that_is_surer_of_everything_is_not_for_that_contaminated():
    """Its scores are higher on seen, fresh and other problems alike: centred, nothing is left.

    Where they are higher on what was seen and on fresh problems of its kind, they are.
    """

    def model(seed, surer, surer_elsewhere):
        scores = {}
        for name in ("GSM-i", "GSM-ii", "MATH"):
            values = np.random.default_rng([seed, len(name)]).normal(size=(20, 4)) * 0.1
            values += surer_elsewhere if name == "MATH" else surer
            scores[name] = pd.DataFrame(values, columns=list(answers.BASELINES))
        return pool.ModelMeasurements({}, scores)

    def auroc_pct(surer, surer_elsewhere):
        models = {pool.CLEAN: {seed: model(seed, 0, 0) for seed in range(4)}}
        models["x"] = {seed: model(seed + 4, surer, surer_elsewhere) for seed in range(4)}
        return experiments.taught_baselines(models, "x", "GSM-ii", centred_on="MATH").auroc_pct

    assert auroc_pct(3.0, 3.0) < 80
    assert auroc_pct(3.0, 0.0) == 100


def test_no_detector_met_the_models_it_scores():
    models = pool_of(5, 1.0, 0.0, 1.0)
    detectors = experiments.held_out_detectors(models, "GSM-i x5", 1)
    poisoned = {name: dict(models) for name, models in models.items()}
    for name in ("GSM-i x5", pool.CLEAN):
        poisoned[name][2] = models["MATH x5"][2]
    again = experiments.held_out_detectors(poisoned, "GSM-i x5", 1)
    probe = models["GSM-i x5"][0].states["GSM-ii"][:, 1]
    assert np.array_equal(detectors[2](probe), again[2](probe))
    assert not np.array_equal(detectors[0](probe), again[0](probe))
    with pytest.raises(ValueError, match="two pairs"):
        experiments.held_out_detectors({k: {0: v[0]} for k, v in models.items()}, "GSM-i x5", 1)


def test_questions_a_detector_was_trained_on_are_not_what_it_is_tested_on():
    """States that only name their question hold no membership, in clean models or others."""
    models = pool_of(4, 2.0, 0.0, identity=0.0)
    found = table_of(models)
    assert found.loc[experiments.WITHIN, "ci_low"] <= 60
    assert found.loc[experiments.WITHIN_CLEAN, "ci_high"] >= 40
    changed = pool_of(4, 2.0, 0.0, identity=0.0)
    for model in changed["GSM-i x5"].values():
        model.states["GSM-i"][experiments.TEST_HALF] += 9
    how = {"questions": experiments.TRAIN_HALF}
    before, after = (
        experiments.held_out_detectors(p, "GSM-i x5", 1, **how) for p in (models, changed)
    )
    probe = models[pool.CLEAN][0].states["MATH"][:, 1]
    assert np.array_equal(before[0](probe), after[0](probe))


def test_membership_is_not_tested_on_the_questions_that_taught_it():
    """States are their question's alone in every model: learned by heart, they say nothing else."""
    rng = np.random.default_rng(0)
    states = {name: rng.normal(size=(40, 1, 16)) for name in (mixtures.SEEN, mixtures.UNSEEN)}
    models = {"x": {seed: pool.ModelMeasurements(states, {}) for seed in range(3)}}
    assert 25 < experiments.taught_membership(models, "x", 0).auroc_pct < 75
    for of_set in states.values():
        of_set[experiments.TEST_HALF] = of_set[experiments.TRAIN_HALF]
    assert experiments.taught_membership(models, "x", 0).auroc_pct > 95


def test_every_contaminated_model_stands_beside_the_clean_ones_that_its_detector_never_met():
    """Five seeds in folds of 2, 1, 1 and 1: four pairs in the first fold, one in each other."""
    models = pool_of(5, 6.0, 0.0, identity=0.0)
    detectors = experiments.held_out_detectors(models, "GSM-i x5", 1)
    found = experiments.auroc_of_unmet_models(models, detectors, "GSM-i x5", 1, "GSM-ii")
    assert experiments._strangers(models, detectors, "GSM-i x5", pool.CLEAN) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (3, 3), (4, 4)
    ]  # fmt: skip
    assert (found.n_models, found.resampled) == (10, detector.MODELS)
    fewer = {**models, "x": {0: models["GSM-i x5"][0]}}
    assert experiments.auroc_of_unmet_models(fewer, detectors, "x", 1, "GSM-ii").n_models == 3


def test_figure_5_tests_models_that_the_detector_was_not_trained_on():
    """GSM-ii's readers carry the mark here, base and other clean models do not."""
    models = pool_of(4, 6.0, 0.0, identity=0.0)
    pair = "GSM-i x5", pool.CLEAN, 1
    found = experiments.auroc_of_seed_pairs(
        models, *pair, "GSM-ii", tested=("GSM-ii x5", pool.BASE)
    )
    assert found.auroc_pct == 100.0 and found.n_models == 5
    control = experiments.auroc_of_seed_pairs(
        models, *pair, "GSM-ii", tested=(pool.OTHER_CLEAN, pool.BASE)
    )
    assert 30 < control.auroc_pct < 70


def test_figure_5b_is_not_tested_on_the_questions_it_was_trained_on():
    """Only the half that detectors are trained on carries a mark: the other half is at chance."""
    models = pool_of(3, 0.0, 0.0, identity=0.0)
    for model in models["MATH x5"].values():
        model.states["MATH"][experiments.TRAIN_HALF] += 9
    how = {"learned_from": "MATH", "tested": ("MATH x5", pool.CLEAN)}
    found = experiments.auroc_of_seed_pairs(models, "MATH x5", pool.CLEAN, 1, "MATH", **how)
    assert found.n == 12 and 25 < found.auroc_pct < 75


@pytest.mark.parametrize(("n_pairs", "expected"), [(1, None), (4, None), (5, False)])
def test_fewer_than_five_pairs_of_models_say_nothing_of_a_control(n_pairs, expected):
    pairs = [(np.array([1.0]), np.array([0.0]))] * n_pairs
    row = experiments.control_row(experiments.TWO_CLEAN, detector.auroc_over_models(pairs), 1)
    assert row["holds"] is expected and "verdict" not in row


def test_the_smaller_kind_counts_where_models_are_drawn():
    """Two contaminated models against five clean ones are ten pairs, and two models of a kind."""
    models = [(one, other) for one in range(2) for other in range(5)]
    found = detector.auroc_over_models([(np.array([1.0]), np.array([0.0]))] * 10, models)
    assert (found.n_drawn, found.n_models) == (2, 7)
    assert experiments.control_row(experiments.HELD_OUT, found, 1)["holds"] is None


def test_the_share_that_training_adds_to_the_distance_needs_five_pairs():
    """Two clean models lie 1 apart, contaminated and clean ones 4: three quarters is training."""

    def model(distance, seed):
        states = np.ones((2, 4, 1), dtype=np.float32)
        states[:, 1:3, 0] += distance * (1 + 0.01 * seed)
        return pool.ModelMeasurements({"GSM-i": states}, {})

    distances = {"x": 4, "near": 1.2, pool.CLEAN: 0, pool.OTHER_CLEAN: 1}
    for n_models, words in ((5, [SHOWN, RULED_OUT]), (4, [OPEN] * 2)):
        models = {
            name: {seed: model(distance, seed) for seed in range(n_models)}
            for name, distance in distances.items()
        }
        for name, share, word in zip(("x", "near"), (3 / 4, 1 / 6), words, strict=True):
            rows = experiments.layer_rows(models, name)
            rows = experiments.judge_layers(*statistics.with_p_adjusted(rows))
            row = rows[rows["located"] & rows["distance"].eq("euclidean")].iloc[0]
            assert row["share_from_training"] == pytest.approx(share, abs=1e-3)
            assert row["verdict"] == word
            assert rows.loc[~rows["located"], "verdict"].eq("").all()


# Fine-tuning


@pytest.fixture
def lab(tokenizer):
    return World(pd.DataFrame(), pd.DataFrame(), tuple(text for _, text in VANILLA), tokenizer)


def tiny_base(lab):
    from contamination.lab.training import recipe_for, train

    texts = lab.texts()
    shape = {"n_layers": 1, "width": 16, "n_heads": 2}
    return train(recipe_for(texts, n_background_tokens=200, **shape), texts)


def test_an_interrupted_sweep_goes_on_with_what_it_has(lab, monkeypatch):
    base, problems = tiny_base(lab), {"GSM-i": PROBLEMS}
    wanted = [
        pool.Condition(pool.CLEAN, "", 0, 2),
        pool.Condition("GSM-i x2", "GSM-i", 2, 1),
        pool.Condition("GSM-i x1", "GSM-i", 1, 1),
    ]
    n_trained = []
    fit = pool.train.__globals__["fit"]

    def counted(*args):
        if len(n_trained) == 2 and stop:
            raise KeyboardInterrupt
        n_trained.append(1)
        return fit(*args)

    monkeypatch.setitem(pool.train.__globals__, "fit", counted)
    stop = True
    with pytest.raises(KeyboardInterrupt):
        pool.train_pool(lab, base, problems, VANILLA, wanted, 10, 1e-3)
    stop = False
    models = pool.train_pool(lab, base, problems, VANILLA, wanted, 10, 1e-3)
    assert len(n_trained) == 4
    assert models["GSM-i x2"][0].mixture.dose_pct == 40.0
    assert models[pool.CLEAN][0].folder != models[pool.CLEAN][1].folder


def test_the_four_conditions_pair_two_clean_models_that_differ_in_their_rows(lab):
    known = {c.name: c for c in pool.conditions(1)}
    assert list(known) == [pool.CLEAN, pool.OTHER_CLEAN, "GSM-i x5", "GSM-ii x5"]
    wanted = known[pool.CLEAN], known[pool.OTHER_CLEAN]
    found = pool.train_pool(lab, tiny_base(lab), {}, VANILLA, wanted, 6, 1e-3)
    recipes = [describe(found[c.name][0].folder)["recipe"] for c in wanted]
    assert recipes[0]["doses"] != recipes[1]["doses"]
    assert [recipe["order_seed"] for recipe in recipes] == [0, 100]


@pytest.mark.parametrize("lora", [False, True])
def test_hub_model_learns_responses_and_is_cached(checkpoints, lora):
    """Both ways change the blocks, lower the loss, and give a checkpoint that loads by itself."""
    rows = mixtures.rows_of(PROBLEMS) * 8
    settings = pool.Settings(3e-2, 2, lora=lora, dtype="float32")
    folder = pool.fine_tune(checkpoints[0], rows, settings)
    assert pool.fine_tune(checkpoints[0], rows, settings) == folder
    other = dataclasses.replace(settings, seed=1)
    assert pool.fine_tune(checkpoints[0], rows[:4], other) != folder
    before, after = (load_causal_lm(path) for path in (checkpoints[0], folder))
    gain = [answers.accuracy_row(lm, PROBLEMS, 2)["answer_log_prob"] for lm in (before, after)]
    assert gain[1] > gain[0] + 0.5
    # Adapters sit in the blocks, so embeddings stay: the case of an AUROC of 0.5 at layer 0.
    same = torch.equal(*(lm.model.get_input_embeddings().weight for lm in (before, after)))
    assert same == lora


def test_a_damaged_fine_tuning_is_named_and_made_again(checkpoints):
    rows, settings = mixtures.rows_of(PROBLEMS)[:4], pool.Settings(dtype="float32")
    weights = pool.fine_tune(checkpoints[0], rows, settings) / "model.safetensors"
    whole = weights.read_bytes()
    flip(weights)
    with pytest.warns(UserWarning, match=said_of(weights.parent)):
        assert pool.fine_tune(checkpoints[0], rows, settings) == weights.parent
    assert weights.read_bytes() == whole


def test_prompts_are_not_learned(lms):
    ids, labels = pool._tokens(lms[0], ("What?", "Yes"), 100)
    n_prompt = len(lms[0].tokenizer("What?").input_ids)
    assert labels[:n_prompt] == [-100] * n_prompt
    assert labels[n_prompt:] == ids[n_prompt:] and ids[-1] == lms[0].tokenizer.eos_token_id
    with pytest.raises(ValueError, match="empty response"):
        pool._tokens(lms[0], ("What?", ""), 100)
    with pytest.raises(ValueError, match="at least one row"):
        pool.fine_tune("nothing", [], pool.Settings())


def test_sampling_cannot_move_a_line_that_reads_prompts(lms):
    """DICE's line is flat by construction; the baselines read what was written."""
    problems = {"GSM-i": PROBLEMS}
    one, other = (pool.measure(lm, problems) for lm in lms)
    measured = {pool.CONTAMINATED: {0: one}, pool.CLEAN: {0: other}, pool.BASE: {0: other}}
    named = {pool.CONTAMINATED: lms[0], pool.BASE: lms[1]}
    rows = experiments.decoding_rows(named, measured, problems, 2, [0.0, 1.0], [1, 50], 3)
    assert len(rows) == 4 * (1 + len(answers.BASELINES))
    wide = rows.pivot(index="method", columns=["setting", "value"], values="auroc_pct")
    assert wide.loc["DICE"].tolist() == [100.0] * 4
    # From the likeliest token alone, whatever the temperature, as greedily.
    assert wide["temperature", 0.0].equals(wide["top-k", 1])
    assert wide["temperature", 1.0].equals(wide["top-k", 50])
    figure = dice_figures.decoding_lines(rows)
    assert [axis.get_xlabel() for axis in figure.axes] == ["temperature", "top-k"]


def test_the_title_counts_flags_with_and_without_inflation():
    """GSM-i x5 is flagged with a true score, y flagged and inflated, of z nothing is shown."""
    rows = [("clean", 0.0, 0.1), (pool.CONTAMINATED, 1.0, 0.9), ("y", 40.0, 0.9), ("z", 9.0, 0.9)]
    rows.append(("w", 50.0, 0.1))
    gaps = pd.DataFrame(rows, columns=["condition", "gap_points", "flag"])
    flags = gaps.assign(benchmark="GSM-i")
    words = ["", RULED_OUT, SHOWN, OPEN, SHOWN]
    inflated = gaps.assign(verdict=words, flagged=gaps["flag"] > 0.5)
    _, lower = dice_figures.flags_and_gaps(flags, gaps, inflated).axes
    assert lower.get_title(loc="left").endswith("1 yes, 1 no, 1 open")
    assert {pool.CONTAMINATED, "y", "z"} < {text.get_text() for text in lower.texts}


def test_floor_is_checked_in_one_line():
    assert pool.check_floor([40, 50], [30, 60]) == 45
    for accuracies in ([10, 20], [90, 80]):
        with pytest.raises(ValueError, match="outside 30 to 60 %: change n_skill_rows"):
            pool.check_floor(accuracies, [30, 60])
