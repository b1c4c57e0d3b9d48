"""Neighbours of a passage, and scores of passages under a model."""

import sys
import warnings
import zlib

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from contamination.core import storage
from contamination.min_k import neighbors as neighbors_module
from contamination.min_k.detect import detect
from contamination.min_k.neighbors import neighbors
from contamination.models import local
from contamination.models.local import load_causal_lm, load_masked_lm, token_log_probs

PASSAGES = [
    "The old river ran past a small stone house.",
    "Nobody had lived in the Stone house for years, or so",
    "a river ran past nobody",
]
VOCABULARY = sorted({word.strip(".,") for text in PASSAGES for word in text.lower().split()})
METHODS = ["PPL", "Zlib", "Lowercase", "Smaller Ref", "Neighbor", "Min-k% Prob", "Min-K%++"]


def word_tokenizer(entries, special, normalizer=None, template=None):
    entries = {entry: number for number, entry in enumerate([*special.values(), *entries])}
    tokenizer = Tokenizer(models.WordPiece(entries, unk_token=special["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    if normalizer:
        tokenizer.normalizer = normalizer
    if template:
        pairs = [(token, entries[token]) for token in template.split() if token in entries]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=pairs
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def save_causal(folder, seed, width, max_length=64, more_entries=()):
    special = {"unk_token": "[UNK]", "bos_token": "<s>", "eos_token": "</s>"}
    entries = [*VOCABULARY, "The", "Nobody", "Stone", ".", ",", *more_entries]
    tokenizer = word_tokenizer(entries, special, template="<s> $A")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=width,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=max_length,
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return load_causal_lm(folder, device="cpu")


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    return save_causal(tmp_path_factory.mktemp("target"), seed=0, width=32)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return save_causal(tmp_path_factory.mktemp("reference"), seed=1, width=16)


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory):
    """An uncased BERT: its tokenizer lowers every letter and tears "years" in two."""
    folder = tmp_path_factory.mktemp("masked")
    special = {
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
        "pad_token": "[PAD]",
    }
    entries = [*(set(VOCABULARY) - {"years"}), "year", "##s", ".", ","]
    tokenizer = word_tokenizer(
        sorted(entries), special, normalizers.BertNormalizer(lowercase=True), "[CLS] $A [SEP]"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    return load_masked_lm(folder, device="cpu")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))


# Neighbours


def differing_words(passage, neighbor):
    pairs = zip(passage.split(" "), neighbor.split(" "), strict=True)
    return [(old, new) for old, new in pairs if old != new]


def test_a_neighbour_differs_in_one_whole_word_and_nothing_else(masked_lm):
    for passage, found in zip(
        PASSAGES, neighbors(PASSAGES, masked_lm, n_neighbors=20), strict=True
    ):
        assert len(found) == len(set(found)) == 20
        for neighbor in found:
            ((old, new),) = differing_words(passage, neighbor)
            # Punctuation stays; "##s" is not a word and so no replacement.
            assert new.strip(".,") in {*VOCABULARY, "year"}
            assert old.casefold() != new.casefold()


def test_replacements_are_ranked_by_probability_given_that_the_word_is_another(
    masked_lm, monkeypatch
):
    """Embeddings are dropped whole, so that what the model sees can be written down by hand."""
    monkeypatch.setattr(neighbors_module, "_kept", lambda blank, width, seed: np.zeros(width))
    passage = "the old river"
    found = neighbors([passage], masked_lm, n_neighbors=6)[0]
    tokenizer, swaps = masked_lm.tokenizer, {}
    for place, original in enumerate(passage.split()):
        inputs = masked_lm.model.get_input_embeddings()(
            tokenizer(passage, return_tensors="pt").input_ids
        ).detach()
        inputs[0, place + 1] = 0
        with torch.inference_mode():
            probs = masked_lm.model(inputs_embeds=inputs).logits[0, place + 1].softmax(-1)
        own = probs[tokenizer.convert_tokens_to_ids(original)]
        for word in {*VOCABULARY, "year"} - {"years", original}:
            words = passage.split()
            words[place] = word
            prob = probs[tokenizer.convert_tokens_to_ids(word)]
            swaps[" ".join(words)] = (prob / (1 - own)).item()
    assert found == sorted(swaps, key=swaps.get, reverse=True)[:6]


def test_seven_tenths_of_a_hidden_words_embedding_are_dropped_and_the_rest_made_up_for():
    blank = neighbors_module._Blank(0, 5, "river", (2, 7, 3), 1)
    kept = neighbors_module._kept(blank, 10_000, 0)
    assert set(np.round(kept, 6)) == {0, round(1 / 0.3, 6)}
    assert np.mean(kept == 0) == pytest.approx(0.7, abs=0.02)
    assert (kept == neighbors_module._kept(blank, 10_000, 0)).all()
    assert (kept != neighbors_module._kept(blank, 10_000, 1)).any()


def test_a_word_of_several_tokens_is_left_as_it_is(masked_lm):
    """ "years" is "year" and "##s" here: no half of it may stay behind."""
    found = neighbors([PASSAGES[1]], masked_lm, n_neighbors=60)[0]
    assert all("years," in neighbor.split() for neighbor in found)


def test_the_words_tried_are_drawn_by_seed_and_do_not_depend_on_other_passages(
    masked_lm, tmp_path, monkeypatch
):
    how = {"n_neighbors": 5, "n_words": 2}
    together = neighbors(PASSAGES, masked_lm, seed=3, **how)
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "empty"))
    assert neighbors(PASSAGES[1:2], masked_lm, seed=3, **how)[0] == together[1]
    places = {
        PASSAGES[1].split(" ").index(differing_words(PASSAGES[1], neighbor)[0][0])
        for neighbor in together[1]
    }
    assert len(places) <= 2
    others = [neighbors(PASSAGES[1:2], masked_lm, seed=seed, **how)[0] for seed in range(5)]
    assert any(other != together[1] for other in others)


def test_padding_does_not_change_which_neighbours_are_likeliest(masked_lm, monkeypatch):
    """Words at either end have fewer words around them, so their rows are padded."""
    how = {"n_neighbors": 60, "context_words": 2}
    together = neighbors(PASSAGES, masked_lm, **how)
    monkeypatch.setattr(neighbors_module, "budget", lambda *_: 1)  # one row a batch
    assert together == neighbors(PASSAGES, masked_lm, **how)


def test_neighbours_are_kept(masked_lm, monkeypatch):
    first = neighbors(PASSAGES, masked_lm, n_neighbors=5)
    monkeypatch.setattr(neighbors_module, "_replacements", None)
    assert neighbors(PASSAGES, masked_lm, n_neighbors=5) == first


def test_a_word_far_away_is_outside_the_masked_models_window(masked_lm):
    long = " ".join(["river"] * 40)
    with pytest.raises(ValueError, match="lower context_words"):
        neighbors([long], masked_lm, n_neighbors=3)
    assert len(neighbors([long], masked_lm, n_neighbors=3, context_words=10)[0]) == 3


def test_bad_neighbour_requests_are_refused(masked_lm, lm, tmp_path):
    with pytest.raises(ValueError, match="passage 1 has no word"):
        neighbors(["the river", "..."], masked_lm, n_neighbors=2)
    with pytest.raises(ValueError, match=r"10000 neighbours asked for, \d+ exist"):
        neighbors(["the river"], masked_lm, n_neighbors=10_000)
    with pytest.raises(ValueError, match="at least 1"):
        neighbors(["the river"], masked_lm, n_neighbors=0)
    masked_lm.model.save_pretrained(tmp_path)
    lm.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="has no mask token"):
        load_masked_lm(tmp_path)


# Scores of passages


def test_one_row_for_each_passage_and_method(lm, reference):
    near = [[text.replace("river", "house").replace("lived", "ran")] for text in PASSAGES]
    found = detect(PASSAGES, lm, reference=reference, neighbors=near)
    assert found.groupby("passage")["method"].agg(list).tolist() == [METHODS] * 3
    by_method = found.pivot(index="passage", columns="method", values="score")
    own = token_log_probs(lm, PASSAGES)
    other = token_log_probs(reference, PASSAGES)
    perturbed = token_log_probs(lm, [text for (text,) in near])
    assert [values.token_log_probs.size for values in own] == [10, 12, 5]
    kept = [2, 2, 1]  # a fifth of them, rounded down
    for number, text in enumerate(PASSAGES):
        log_probs = own[number].token_log_probs
        expected = {
            "PPL": -np.exp(-log_probs.astype(float).mean()),
            "Zlib": log_probs.mean() / len(zlib.compress(text.encode())),
            "Smaller Ref": log_probs.mean() - other[number].token_log_probs.mean(),
            "Neighbor": log_probs.mean() - perturbed[number].token_log_probs.mean(),
            "Min-k% Prob": np.sort(log_probs)[: kept[number]].mean(),
        }
        for method, value in expected.items():
            assert by_method.loc[number, method] == pytest.approx(value, abs=1e-5)
    # Only the third passage has no capital.
    assert by_method.loc[2, "Lowercase"] == 1
    assert (by_method.loc[:1, "Lowercase"] != 1).all()


def test_a_reference_of_another_tokenizer_is_compared_and_named(lm, reference, tmp_path):
    """As the authors do with GPT-Neo and GPT-NeoX: each model has the mean over its own tokens."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = detect(PASSAGES, lm, reference=reference)
    assert same["method"].eq("Smaller Ref").sum() == len(PASSAGES)
    other = save_causal(tmp_path, seed=1, width=16, more_entries=["riv", "##er"])
    with pytest.warns(UserWarning, match="has another tokenizer"):
        found = detect(PASSAGES, lm, reference=other)
    found = found[found["method"].eq("Smaller Ref")].set_index("passage")["score"]
    for number, (own, of_other) in enumerate(
        zip(token_log_probs(lm, PASSAGES), token_log_probs(other, PASSAGES), strict=True)
    ):
        difference = own.token_log_probs.mean() - of_other.token_log_probs.mean()
        assert found[number] == pytest.approx(difference, abs=1e-5)


def test_columns_say_how_a_passage_was_scored(lm):
    found = detect(PASSAGES, lm, k_percents=(10, 50))
    names = "passage method k_percent score n_windows first_token_scored"
    assert list(found) == names.split()
    assert found["first_token_scored"].all()  # behind the beginning-of-sequence token
    assert (found["n_windows"] == 1).all()
    of_min_k = found["method"].isin(["Min-k% Prob", "Min-K%++"])
    assert set(found.loc[of_min_k, "k_percent"]) == {10, 50}
    assert found.loc[~of_min_k, "k_percent"].isna().all()


def test_a_passage_longer_than_the_context_is_counted(tmp_path):
    lm = save_causal(tmp_path, seed=0, width=16, max_length=8)
    found = detect([PASSAGES[0], "the river"], lm)
    assert (found.loc[found["passage"] == 0, "n_windows"] > 1).all()
    assert (found.loc[found["passage"] == 1, "n_windows"] == 1).all()


def test_another_k_costs_no_forward_pass(lm, monkeypatch):
    first = detect(PASSAGES, lm, k_percents=(20,))
    monkeypatch.setattr(local, "_score_batch", int)  # which would be given too much
    again = detect(PASSAGES, lm, k_percents=(20, 40))
    kept = again[again["k_percent"] != 40].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, first)


def test_passages_detected_in_parts_keep_their_numbers_and_neighbours(lm, monkeypatch):
    around = [[f"{text} river"] for text in PASSAGES]
    whole = detect(PASSAGES, lm, neighbors=around)
    monkeypatch.setattr(sys.modules[detect.__module__], "STREAM_TEXTS", 2)
    parts = detect(PASSAGES, lm, neighbors=around)
    pd.testing.assert_frame_equal(parts, whole, rtol=1e-4)
    assert parts["passage"].unique().tolist() == [0, 1, 2]


def test_bad_passages_are_refused(lm):
    with pytest.raises(ValueError, match="text 1 is empty"):
        detect(["the river", ""], lm)
    with pytest.raises(ValueError, match="no passage"):
        detect([], lm)
    with pytest.raises(ValueError, match="3 passages but neighbours of 1"):
        detect(PASSAGES, lm, neighbors=[["the river"]])
