"""Detectors of rows: their formulas by hand, and their direction on a model that read rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from contamination.core import storage
from contamination.core.statistics import auc
from contamination.dcq.contaminating import training_texts
from contamination.lab import training
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import Dose, TrainingTexts, recipe_for
from contamination.models.local import load_causal_lm
from contamination.study import baselines, context, sampling
from contamination.study.interface import Rows

WORDS = [
    a + b
    for a in ("ba", "do", "ki", "lu", "me", "no", "pi")
    for b in ("bat", "dog", "kin", "lot", "mug")
]
N_READ = 6
TINY = {
    "n_layers": 2,
    "width": 64,
    "n_heads": 2,
    "context": 512,
    "block": 128,
    "batch_size": 1,
    "n_background_tokens": 1_000,
    "learning_rate": 5e-3,
}


def drawn_rows(n, seed):
    generator = np.random.default_rng(seed)
    drawn = generator.choice(WORDS, (n, 16))
    return tuple(f"text: {' '.join(words)}\nlabel: {words[0]}" for words in drawn)


@pytest.fixture(scope="module")
def rows():
    """The first ``N_READ`` of the tested rows are read."""
    texts = drawn_rows(2 * N_READ, seed=1)
    questions = tuple(text.partition("\n")[0] for text in texts)
    shots = drawn_rows(context.N_SHOTS, seed=2)
    return Rows("Animals A", "test", texts, questions, pd.DataFrame(), shots)


@pytest.fixture(scope="module")
def lm(rows, tmp_path_factory):
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # matrices this small are slower on two
    background = drawn_rows(60, seed=3)
    read = training_texts(rows.texts[:N_READ], rows.dataset, rows.split)
    tokenizer = train_tokenizer((*background, *read), vocabulary=400, context=512)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(storage.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        texts = TrainingTexts(background, (Dose(read, copies=60),), tokenizer)
        folder = training.train(recipe_for(texts, **TINY), texts)
        yield load_causal_lm(folder, device="cpu")
    torch.set_num_threads(before)


def test_codec_is_what_context_takes_from_the_tokens_after_the_first():
    alone, in_context = np.array([-9.0, -2.0, -1.0]), np.array([-1.0, -3.0, -4.0])
    assert context.codec_score(alone, in_context, n_skipped=1) == pytest.approx(-1.5 + 3.5)
    assert context.codec_score(in_context, alone, n_skipped=1) == pytest.approx(-2.0)
    with pytest.raises(ValueError, match="3 tokens has none after the first 3"):
        context.codec_score(alone, in_context, n_skipped=3)
    with pytest.raises(ValueError, match="3 tokens alone but 2 in context"):
        context.codec_score(alone, in_context[1:])


def test_recall_is_the_ratio_and_above_1_where_the_prefix_hurts():
    alone, in_context = np.array([-1.0, -3.0]), np.array([-2.0, -4.0])
    assert context.recall_score(alone, in_context) == pytest.approx(1.5)
    assert context.recall_score(in_context, alone) < 1
    with pytest.raises(ValueError, match="log-likelihood of 0"):
        context.recall_score(np.zeros(2), in_context)


def test_edit_distances_of_hand_counted_pairs():
    kitten, sitting = ([ord(letter) for letter in word] for word in ("kitten", "sitting"))
    distances = sampling.edit_distances(kitten, [sitting, kitten, [], kitten[::-1], kitten[1:]])
    assert distances.tolist() == [3, 0, 6, 4, 1]
    assert sampling.edit_distances([], [[1, 2], []]).tolist() == [2, 0]


def test_peakedness_counts_samples_within_alpha_of_the_longest():
    greedy = list(range(19))
    near, far = greedy[:-1], greedy[:-2]
    longest = [*range(100, 120)]  # 20 tokens: one edit is allowed, two are not
    assert sampling.peakedness(greedy, [greedy, near, far, longest]) == 0.5
    assert sampling.peakedness(greedy, [greedy, near, far]) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="at least one"):
        sampling.peakedness(greedy, [])


def test_coverage_counts_words_of_the_rest_in_runs_of_three():
    rest = "the old mat, by the red hill"  # eight words with the comma
    assert sampling.coverage(rest, rest) == 1
    assert sampling.coverage(rest, "an old mat, by a red hill") == pytest.approx(4 / 8)
    assert sampling.coverage(rest, "old mat the red") == 0
    assert sampling.coverage(rest, "The Old Mat") == 0
    with pytest.raises(ValueError, match="2 words holds no run of 3"):
        sampling.coverage("red hill", rest)


DETECTORS = [
    context.RECALL,
    baselines.PPL,
    baselines.ZLIB,
    baselines.LOWERCASE,
    baselines.MIN_K,
    baselines.MIN_K_PLUS_PLUS,
]


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_read_rows_score_higher_than_their_unread_siblings(detector, lm, rows):
    scores = detector.score(lm, rows)
    assert scores.shape == (len(rows),)
    assert auc(scores, np.arange(len(rows)) < N_READ) > 0.8


def test_context_disturbs_read_rows_as_the_paper_of_codec_says(lm, rows):
    read, unread = np.split(context.CODEC.score(lm, rows), 2)
    assert (read > 0).mean() > 0.5
    assert (read > 0).mean() > (unread > 0).mean()


def test_samples_are_drawn_once_and_show_what_was_read(lm, rows, monkeypatch):
    monkeypatch.setattr(sampling, "N_SAMPLES", 4)
    monkeypatch.setattr(sampling, "MAX_TOKENS", 20)
    is_read = np.arange(len(rows)) < N_READ
    assert auc(sampling.CDD.score(lm, rows), is_read) > 0.8

    def nothing_missing(*asked, **how):
        raise AssertionError("a batch was computed again")

    monkeypatch.setattr(lm.model, "generate", nothing_missing)
    assert auc(sampling.COVERAGE.score(lm, rows), is_read) > 0.8
    with pytest.raises(AssertionError, match="computed again"):
        sampling.CDD.score(lm, replace(rows, seed=1))


def test_a_method_that_needs_another_model_is_refused(lm, rows):
    with pytest.raises(ValueError, match='no scores of method "Smaller Ref"'):
        baselines.method_scores(lm, rows, "Smaller Ref")


@pytest.mark.parametrize("detector", [context.CODEC, context.RECALL], ids=lambda d: d.name)
def test_context_must_suffice_and_fit(detector, lm, rows):
    with pytest.raises(ValueError, match="rows of context are needed, got 0"):
        detector.score(lm, replace(rows, context=()))
    long = tuple(text * 30 for text in rows.context)
    with pytest.raises(ValueError, match="the model reads 51"):
        detector.score(lm, replace(rows, context=long))


def test_the_context_alone_changes_what_context_detectors_say(lm, rows):
    """Scores of the row alone do not depend on it, and the header is never scored."""
    others = replace(rows, context=drawn_rows(context.N_SHOTS, seed=9))
    assert not np.array_equal(context.RECALL.score(lm, rows), context.RECALL.score(lm, others))
    alone, in_context = context._log_probs(lm, rows, [()] * len(rows))[0]
    np.testing.assert_allclose(alone, in_context, atol=1e-5)
    assert len(alone) == len(lm.tokenizer(rows.texts[0], add_special_tokens=False).input_ids)


def test_a_question_that_does_not_fit_is_refused(lm, rows):
    long = replace(rows, questions=tuple(question * 60 for question in rows.questions))
    with pytest.raises(ValueError, match="the model reads 51"):
        sampling.CDD.score(lm, long)
