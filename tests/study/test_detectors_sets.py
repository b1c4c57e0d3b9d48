"""Exchangeability, dataset inference and ConStat: by hand, under the null, and on small models."""

import numpy as np
import pandas as pd
import pytest
from scipy import interpolate, stats

from contamination.dcq.prompts import header
from contamination.lab import training
from contamination.lab.recipes import Dose, TrainingTexts, recipe_for
from contamination.lab.tokenizer import train_tokenizer
from contamination.models.causal import load_causal_lm, option_log_probs, token_log_probs
from contamination.study import constat as inflation
from contamination.study import whole_sets
from contamination.study.constat import constat, constat_detector, expected_score
from contamination.study.interface import Rows
from contamination.study.whole_sets import (
    DATASET_INFERENCE,
    EXCHANGEABILITY,
    dataset_inference,
    features,
    order_log_probs,
    order_t_test,
    order_test,
    ordered_documents,
)

TINY = {"n_layers": 2, "width": 32, "n_heads": 2, "context": 128, "block": 128, "batch_size": 1}
ANIMALS = ("cat", "dog", "hen", "owl", "fox", "ant", "bee", "elk", "cow", "pig")
PLACES = ("mat", "log", "pen", "nest")


def level_bound(n_sets, alpha=0.05):
    """More rejections than this occur once in 10,000 times at a true level of alpha."""
    return stats.binom.ppf(0.9999, n_sets, alpha)


def rows_of(texts, context=(), questions=None, quizzes=None):
    texts = tuple(texts)
    return Rows("Farm", "test", texts, questions or texts, quizzes, tuple(context))


@pytest.fixture(scope="module")
def sentences():
    lines = [f"{animal} on {place}" for animal in ANIMALS for place in PLACES]
    return [lines[place] for place in np.random.default_rng(0).permutation(len(lines))]


@pytest.fixture(scope="module")
def read(sentences, tmp_path_factory):
    """From the texts of a dose to a tiny model that read them beside nothing else."""
    known = [header("Farm", "test"), *sentences, *(" ".join(ANIMALS) for _ in sentences)]
    tokenizer = train_tokenizer(known, 320, TINY["context"])

    def model(texts, copies):
        doses = (Dose(tuple(texts), copies),)
        training_texts = TrainingTexts((), doses, tokenizer)
        settings = {**TINY, "n_background_tokens": 0, "learning_rate": 1e-2}
        return load_causal_lm(
            training.train(recipe_for(training_texts, **settings), training_texts)
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAMINATION_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield model


def test_documents_keep_the_order_under_one_header():
    documents = ordered_documents(["a", "b", "c"], "Farm", "test", 2)
    assert documents == (header("Farm", "test") + "a\n\nb", header("Farm", "test") + "c")
    with pytest.raises(ValueError, match="two rows"):
        ordered_documents(["a", "b"], "Farm", "test", 1)


def test_the_rank_of_the_published_order_by_hand():
    # Nine sums of one arrangement a shard, each as likely; only the published pair reaches 2.
    found = order_test([[1, 0, 0], [1, 0, -1]], n_draws=90_000)
    assert found.score == pytest.approx((1 + 1.5) / 2)
    assert found.p == pytest.approx(1 / 9, abs=0.005)
    # Ties count against the published order.
    assert order_test([[0, 0, 0]]).p == 1
    assert order_test([[-1, 0, 0]]).score == -1


def test_the_t_test_is_that_of_the_shards():
    advantages = np.array([1.0, 1.5])
    t = advantages.mean() / (advantages.std(ddof=1) / np.sqrt(2))
    assert order_t_test([[1, 0, 0], [1, 0, -1]]) == pytest.approx((t, stats.t.sf(t, df=1)))
    with pytest.raises(ValueError, match="two shards"):
        order_t_test([[1, 0]])


@pytest.mark.parametrize("values", [[1, 2], [[1]], [[np.nan, 1]], np.empty((0, 3))])
def test_an_order_test_refuses_what_has_no_order(values):
    with pytest.raises(ValueError, match=r"shape|finite"):
        order_test(values)


def test_order_tests_keep_their_level_and_find_a_lead():
    generator = np.random.default_rng(0)
    spreads = generator.gamma(2, 3, size=(300, 10, 1))  # shards differ in noise
    nulls = generator.normal(size=(300, 10, 10)) * spreads
    for p_of in (lambda values: order_test(values, n_draws=199).p, lambda v: order_t_test(v).p):
        assert sum(p_of(values) <= 0.05 for values in nulls) <= level_bound(300)
    led = nulls[0].copy()
    led[:, 0] += 20
    assert order_test(led).p == pytest.approx(1e-4) and order_t_test(led).p < 0.01


def test_a_model_that_read_the_order_prefers_it(read, sentences):
    shuffled = np.random.default_rng(1).permutation(sentences)
    read_texts = {
        "order": ordered_documents(sentences, "Farm", "test", 5),
        "shuffled": ordered_documents(shuffled, "Farm", "test", 5),
        "single rows": sentences,
    }
    copies = {"order": 40, "shuffled": 40, "single rows": 5}
    found = {
        name: order_log_probs(read(texts, copies[name]), rows_of(sentences), rows_per_document=5)
        for name, texts in read_texts.items()
    }
    assert order_test(found["order"]).p <= 0.001 and order_t_test(found["order"]).p <= 0.001
    assert order_test(found["shuffled"]).p > 0.05 and order_t_test(found["shuffled"]).p > 0.05
    assert order_test(found["single rows"]).p > 0.05


def test_exchangeability_sums_whole_documents(read, sentences):
    model = read(sentences, 1)
    found = order_log_probs(model, rows_of(sentences[:5]), 2, n_shuffles=3)
    assert found.shape == (2, 4)  # the fifth row stands alone
    document = ordered_documents(sentences[2:4], "Farm", "test")[0]
    scored = token_log_probs(model, [document])[0]
    assert found[1, 0] == pytest.approx(scored.token_log_probs.sum(), rel=1e-5)
    assert EXCHANGEABILITY.score(model, rows_of(sentences[:4])).p >= 1e-4
    with pytest.raises(ValueError, match="the model reads"):
        EXCHANGEABILITY.score(model, rows_of(["cat on log " * 50] * 2))


def test_features_are_those_of_the_scores_and_their_mirror(read, sentences):
    model, text = read(sentences, 1), sentences[0].capitalize()
    found = features(model, [text, sentences[1]])
    own, lower = token_log_probs(model, [text, text.lower()])
    values = own.token_log_probs.astype(float)
    assert found.shape == (2, 18) and np.isfinite(found).all()
    assert found[0, 0] == pytest.approx(-np.exp(-values.mean()), rel=1e-4)
    expected = lower.token_log_probs.mean() / values.mean()
    assert found[0, 2] == pytest.approx(expected, rel=1e-4)
    n = max(1, int(values.size * 0.6))
    assert found[0, 10] == pytest.approx(np.sort(values)[:n].mean(), rel=1e-4)
    assert found[0, 17] == pytest.approx(np.sort(values)[-n:].mean(), rel=1e-4)


def one_feature(n_high, n_rows=400):
    """A feature that is 1 in so many rows and 0 in the others, shape (n_rows, 1)."""
    return (np.arange(n_rows) < n_high).astype(float)[:, None]


def test_dataset_inference_is_the_t_test_of_the_rows_that_the_map_was_not_fitted_on():
    """Half of 400 rows: 0.7 of them high against 0.3, but for the luck of the halves."""
    by_hand = (0.7 - 0.3) / np.sqrt(2 * 0.3 * 0.7 / 199)
    found = [dataset_inference(one_feature(280), one_feature(120), seed) for seed in range(40)]
    t = np.array([score for score, _ in found])
    assert t.mean() == pytest.approx(by_hand, rel=0.05) and t.std() > 0.3
    assert [p for _, p in found] == pytest.approx(stats.t.sf(t, df=398).tolist())
    # The map is learned: units say nothing, and what is lower for suspect rows serves as well.
    turned = dataset_inference(5 - 3 * one_feature(280), 5 - 3 * one_feature(120), 0)
    assert turned == pytest.approx(found[0])


@pytest.mark.filterwarnings("ignore:Precision loss")  # where both halves are alike
def test_dataset_inference_asks_whether_suspect_rows_are_above_and_not_whether_they_differ():
    """Of equal sets one half lacks what the other has too much of: no t is above 0, no p below 1/2.

    A test of two sides would call a t of -1.4 as rare as one of 1.4, with a p of 0.16.
    """
    same = one_feature(200)
    found = np.array([dataset_inference(same, same, seed) for seed in range(60)])
    t, p = found[~np.isnan(found[:, 0])].T
    assert t.max() <= 0 and t.min() < -1.4
    assert p.min() >= 0.5 and p.max() > 0.91


def test_outliers_are_clipped_by_what_the_map_was_fitted_on():
    """One row in fifty holds a million: it may not drown the difference of all the others."""
    suspect, validation = one_feature(280), one_feature(120)
    plain = dataset_inference(suspect, validation)
    suspect[::50] = validation[::50] = 1e6
    assert dataset_inference(suspect, validation).score > plain.score / 2


def test_dataset_inference_keeps_its_level_and_finds_a_shift():
    generator = np.random.default_rng(1)
    nulls = generator.standard_t(3, size=(300, 400, 6)).cumsum(axis=2)
    found = [
        dataset_inference(values[:200], values[200:], seed) for seed, values in enumerate(nulls)
    ]
    assert sum(p <= 0.05 for _, p in found) <= level_bound(300)
    constant = np.c_[nulls[0], np.ones(400)]
    assert np.isfinite(dataset_inference(constant[:200], constant[200:])).all()
    assert dataset_inference(nulls[0][:200] + 2, nulls[0][200:]).p < 1e-3


def test_dataset_inference_refuses_few_rows_and_undefined_features():
    fine = np.zeros((200, 2))
    for suspect, validation in ((fine[:199], fine), (fine, fine[:199])):
        with pytest.raises(ValueError, match="199"):
            dataset_inference(suspect, validation)
    with pytest.raises(ValueError, match="same features"):
        dataset_inference(fine, np.zeros((200, 3)))
    with pytest.raises(ValueError, match="undefined"):
        dataset_inference(fine, np.full((200, 2), np.nan))


def test_dataset_inference_tells_rows_that_were_read(read, monkeypatch):
    monkeypatch.setattr(whole_sets, "MIN_ROWS", 40)
    drawn = np.random.default_rng(2).choice(ANIMALS, size=(160, 4))
    lines = list(dict.fromkeys(map(" ".join, drawn)))
    dosed, unread, validation = (lines[start : start + 40] for start in (0, 40, 80))
    model = read([header("Farm", "test") + line for line in dosed], 60)
    assert DATASET_INFERENCE.score(model, rows_of(dosed, validation)).p < 0.001
    assert DATASET_INFERENCE.score(model, rows_of(unread, validation)).p > 0.05


def test_a_curve_is_scipys_smoothing_spline_straight_beyond_its_ends():
    generator = np.random.default_rng(0)
    for n in (5, 9, 15):
        known = np.sort(generator.random(n))
        scores = np.sort(np.clip(known + 0.1 * generator.normal(size=n), 0, 1))
        spline = interpolate.make_smoothing_spline(known, scores)
        for at in (known[0], known.mean(), known[-1]):
            expected = np.clip(spline(at), 0, 1)
            assert expected_score(at, known, scores) == pytest.approx(expected, abs=1e-4)
    line = np.linspace(0.2, 0.6, 5)
    assert expected_score(0.7, line, line - 0.1) == pytest.approx(0.6)
    assert expected_score(0.05, line, line - 0.1) == 0  # within 0 and 1
    # Of equal rephrased scores the last counts.
    assert expected_score(0.5, np.r_[0.2, line], np.r_[0.0, line]) == pytest.approx(0.5)


def answered(generator, gain=0.0, n_models=10, n_rows=150):
    """Right answers to both benchmarks of a model, which has a gain on the first, and of others."""
    ability = generator.uniform(-1.5, 1.5, size=(1 + n_models, 1))
    chances = 1 / (1 + np.exp(-(ability + generator.normal(size=n_rows))))
    lifted = chances + gain * (np.arange(1 + n_models) == 0)[:, None]
    both = [(generator.random(p.shape) < p).astype(float) for p in (lifted, chances)]
    return [b[0] for b in both], [b[1:] for b in both]


def test_constat_keeps_its_level_and_finds_a_gain():
    generator = np.random.default_rng(0)
    n_sets = 25
    p = [constat(*answered(generator), n_resamples=40, seed=seed).p for seed in range(n_sets)]
    assert np.sum(np.array(p) <= 0.05) <= level_bound(n_sets)
    gap, p = constat(*answered(generator, gain=0.3), n_resamples=60)
    assert 0.1 < gap < 0.4 and p <= 0.05


def test_constat_refuses_few_or_equal_references_and_other_scores():
    own, others = answered(np.random.default_rng(0), n_models=8)
    with pytest.raises(ValueError, match="8 reference models, got 7"):
        constat(own, [part[:7] for part in others])
    with pytest.raises(ValueError, match="one score for each row"):
        constat([own[0][:-1], own[1]], others)
    with pytest.raises(ValueError, match="between 0 and 1"):
        constat([own[0] - 2, own[1]], others)
    with pytest.raises(ValueError, match="too much alike"):
        constat(own, [np.zeros_like(part) for part in others], n_resamples=5)


def test_constat_asks_for_the_answers_of_rows_and_of_their_paraphrases(read, monkeypatch):
    questions = tuple(
        f"the {animal} and the {other}" for animal in ANIMALS for other in ANIMALS[:2]
    )
    texts = tuple(q + ("\nanswer: cat" if "cat" in q else "\nanswer: dog") for q in questions)
    rephrased = [text.replace("the", "some") for text in texts]
    rows = rows_of(texts, (), questions, pd.DataFrame({"instance": texts, "option_a": rephrased}))
    model = read(texts, 1)
    seen = {}
    monkeypatch.setattr(
        inflation, "constat", lambda own, others, *_, **__: seen.update(own=own, others=others)
    )
    constat_detector([model] * 8).score(model, rows)
    assert seen["own"].shape == (2, 20) and seen["others"].shape == (2, 8, 20)
    assert np.all((seen["own"] > 0) & (seen["own"] < 1))
    for part, question in zip(
        seen["own"], (questions[3], questions[3].replace("the", "some")), strict=True
    ):
        prompt, answer = header("Farm", "test") + question, texts[3].removeprefix(questions[3])
        log_prob = option_log_probs(model, [prompt], [[answer]], per_token=True)[0][0]
        assert part[3] == pytest.approx(np.exp(log_prob), rel=1e-4)
