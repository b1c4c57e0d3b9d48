"""Local causal models: padding, first token, windows, cache, options, completions, states."""

import json
import math
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from damage import flip, said_of
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    Cohere2Config,
    Gemma2Config,
    GPTNeoXConfig,
    LlamaConfig,
    OPTConfig,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from contamination.core import storage
from contamination.models import local, source
from contamination.models.local import (
    complete,
    hidden_states,
    load_causal_lm,
    option_log_probs,
    scores_first_token,
    token_log_probs,
)

SENTENCE = "the old river ran past a small stone house where nobody had lived for years"
WORDS = SENTENCE.split()
CONTEXT = 32
SMALL = {
    "vocab_size": 200,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "initializer_range": 0.3,  # far from uniform, so that a wrong token shows
}
CONFIGS = {
    "llama": LlamaConfig(**SMALL, intermediate_size=64),
    "neox": GPTNeoXConfig(**SMALL, intermediate_size=64),
    "opt": OPTConfig(**SMALL, ffn_dim=64, word_embed_proj_dim=32, init_std=0.3),
}
# Architectures that change their logits behind the output head.
CAPPED = {
    "gemma2": Gemma2Config(
        **SMALL,
        intermediate_size=64,
        num_key_value_heads=2,
        head_dim=16,
        final_logit_softcapping=2.0,
    ),
    "cohere2": Cohere2Config(
        **SMALL, intermediate_size=64, num_key_value_heads=2, logit_scale=0.25
    ),
}


def save_model(folder, config, adds_begin):
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    bpe.train_from_iterator(
        [SENTENCE] * 3,
        trainers.BpeTrainer(
            vocab_size=200,
            special_tokens=list(special.values()),
            initial_alphabet=["A", "B", "R", "T", "!", "."],
            show_progress=False,
        ),
    )
    if adds_begin:
        bpe.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
    PreTrainedTokenizerFast(tokenizer_object=bpe, **special).save_pretrained(folder)
    torch.manual_seed(0)
    MODEL_FOR_CAUSAL_LM_MAPPING[type(config)](config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("models")
    return {
        name: save_model(base / name, config, adds_begin=name != "neox")
        for name, config in {**CONFIGS, **CAPPED}.items()
    }


@pytest.fixture(scope="module")
def loaded(folders):
    return {name: load_causal_lm(folder, device="cpu") for name, folder in folders.items()}


@pytest.fixture(params=CONFIGS)
def lm(request, loaded):
    return loaded[request.param]


@pytest.fixture
def llama(loaded):
    return loaded["llama"]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def forward_passes(monkeypatch):
    """Batches that really went through a model."""
    passes = []
    real = local._score_batch

    def counted(lm, batch, with_moments):
        passes.append(len(batch))
        return real(lm, batch, with_moments)

    monkeypatch.setattr(local, "_score_batch", counted)
    return passes


def texts_of(*lengths):
    """Texts of so many words, no two alike."""
    return [
        " ".join(WORDS[(start + place) % len(WORDS)] for place in range(length))
        for start, length in enumerate(lengths)
    ]


def scores(scored):
    """Bytes of what was scored."""
    return [text.token_log_probs.tobytes() for text in scored]


def expected_scores(lm, token_ids):
    """Log-probabilities of token_ids[1:], each given those before it."""
    log_probs = direct_log_probs(lm, token_ids)
    return [log_probs[place, token].item() for place, token in enumerate(token_ids[1:])]


def direct_log_probs(lm, token_ids):
    """Log-probabilities of token_ids[1:] from the model's own logits, one text alone."""
    with torch.inference_mode():
        logits = lm.model(input_ids=torch.tensor([token_ids])).logits[0].float()
    return logits.log_softmax(-1)


# Token log-probabilities


def test_a_text_scores_the_same_alone_and_in_a_padded_batch(lm):
    texts = texts_of(3, 12, 5, 9, 2, 7)
    together = token_log_probs(lm, texts, max_batch_tokens=10_000, cache=False)
    for text, in_batch in zip(texts, together, strict=True):
        alone = token_log_probs(lm, [text], cache=False)[0]
        np.testing.assert_allclose(in_batch.token_log_probs, alone.token_log_probs, atol=1e-4)
        assert in_batch.token_log_probs.dtype == np.float32


def test_targets_are_shifted_by_one_and_padding_is_never_scored(lm):
    texts = texts_of(12, 4)
    for text, scored in zip(texts, token_log_probs(lm, texts, score_first_token=True), strict=True):
        token_ids = [0, *lm.tokenizer(text, add_special_tokens=False).input_ids]
        np.testing.assert_allclose(
            scored.token_log_probs, expected_scores(lm, token_ids), atol=1e-4
        )
        assert scored.token_ids.tolist() == token_ids[1:]


@pytest.mark.parametrize("name", CAPPED)
def test_what_follows_the_output_head_is_not_forgotten(loaded, name):
    token_ids = loaded[name].tokenizer("the old river ran", add_special_tokens=False).input_ids
    expected = expected_scores(loaded[name], token_ids)
    scored = token_log_probs(loaded[name], ["the old river ran"], score_first_token=False)[0]
    np.testing.assert_allclose(scored.token_log_probs, expected, atol=1e-4)


def test_an_output_head_that_is_not_covered_is_refused(loaded, monkeypatch):
    lm = loaded["gemma2"]
    monkeypatch.setattr(type(lm), "logits", lambda self, states: self.model.lm_head(states))
    with pytest.raises(ValueError, match="Gemma2ForCausalLM changes its logits"):
        lm.check_logits()


def test_small_output_chunks_change_nothing(llama, monkeypatch):
    texts = texts_of(12, 9, 4)
    whole = token_log_probs(llama, texts, with_moments=True, cache=False)
    monkeypatch.setattr(local, "LOGITS_PER_CHUNK", {"cpu": 1})
    monkeypatch.setattr(local, "LEAST_PER_CHUNK", 5)
    for one, other in zip(
        whole, token_log_probs(llama, texts, with_moments=True, cache=False), strict=True
    ):
        np.testing.assert_allclose(one.token_log_probs, other.token_log_probs, atol=1e-5)
        np.testing.assert_allclose(one.vocabulary_std, other.vocabulary_std, atol=1e-5)


def test_moments_over_the_vocabulary_match_the_full_logits(lm):
    text = texts_of(8)[0]
    token_ids = lm.tokenizer(text, add_special_tokens=False).input_ids
    log_probs = direct_log_probs(lm, token_ids)[:-1].double()
    mean = (log_probs.exp() * log_probs).sum(-1)
    std = ((log_probs.exp() * log_probs**2).sum(-1) - mean**2).sqrt()
    scored = token_log_probs(lm, [text], score_first_token=False, with_moments=True)[0]
    np.testing.assert_allclose(scored.vocabulary_mean, mean, atol=1e-4)
    np.testing.assert_allclose(scored.vocabulary_std, std, atol=1e-4)


def test_scoring_the_first_token_needs_a_begin_token(llama):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=llama.tokenizer.backend_tokenizer)
    with pytest.raises(ValueError, match="no beginning-of-sequence token"):
        token_log_probs(replace(llama, tokenizer=tokenizer), ["the"], score_first_token=True)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_refused(llama, text):
    with pytest.raises(ValueError, match="text 1 is empty"):
        token_log_probs(llama, ["the old river", text])


def test_a_single_token_without_context_is_refused(loaded):
    with pytest.raises(ValueError, match="text 0 has one token, which nothing precedes"):
        token_log_probs(loaded["neox"], ["the"])


def test_undefined_log_probabilities_are_refused(folders):
    lm = load_causal_lm(folders["llama"], device="cpu")
    with torch.no_grad():
        lm.model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="undefined values as token_log_probs"):
        token_log_probs(lm, ["the old river"])


@pytest.mark.parametrize(
    ("lengths", "batches"),
    [
        ([60, 44, 43], [[0, 1], [2]]),  # a third of 44 tokens is 14, and 16 may always be added
        ([120, 90, 89], [[0, 1], [2]]),  # a third of 90 is 30, of 89 it is 29
        ([20, 4, 3], [[0, 1], [2]]),
        ([20, 40], [[1], [0]]),
    ],
)
def test_no_row_is_padded_by_more_than_a_third_or_16_tokens(lengths, batches):
    assert local.batches_of(lengths, max_batch_tokens=1_000) == batches


# Windows


def long_text(lm):
    text = texts_of(60)[0]
    assert len(lm.tokenizer(text, add_special_tokens=False).input_ids) > CONTEXT
    return text


def test_a_text_longer_than_the_context_is_scored_in_windows_of_stated_stride(llama):
    text = long_text(llama)
    token_ids = llama.tokenizer(text, add_special_tokens=False).input_ids
    capacity = CONTEXT - 1
    stride = capacity // 2
    scored = token_log_probs(llama, [text])[0]
    assert scored.token_ids.tolist() == token_ids
    assert scored.n_windows == 1 + math.ceil((len(token_ids) - capacity) / stride)
    # Token 35 belongs to the second window, which holds tokens 15 to 45 behind <s>.
    window = [0, *token_ids[stride : stride + capacity]]
    expected = direct_log_probs(llama, window)[35 - stride, token_ids[35]].item()
    assert scored.token_log_probs[35] == pytest.approx(expected, abs=1e-4)


def test_windows_without_begin_token_score_all_tokens_but_the_first(loaded):
    text = long_text(loaded["neox"])
    scored = token_log_probs(loaded["neox"], [text], score_first_token=False)[0]
    token_ids = loaded["neox"].tokenizer(text, add_special_tokens=False).input_ids
    assert scored.token_ids.tolist() == token_ids[1:]
    assert scored.n_windows > 1


def test_a_text_that_just_fits_is_one_window(llama):
    words = texts_of(60)[0]
    token_ids = llama.tokenizer(words, add_special_tokens=False).input_ids[: CONTEXT - 1]
    text = llama.tokenizer.decode(token_ids)
    assert token_log_probs(llama, [text])[0].n_windows == 1


# Cache


def stored(cache):
    return {
        path.relative_to(cache): path.read_bytes() for path in sorted(cache.rglob("*.safetensors"))
    }


def test_a_second_method_over_the_same_texts_costs_no_forward_pass(llama, forward_passes):
    """Nor do another order and repeated texts; moments asked for later do."""
    texts = texts_of(3, 12, 5)
    first = token_log_probs(llama, texts)
    again = token_log_probs(llama, [*texts[::-1], texts[0]])
    assert scores(again) == scores([*first[::-1], first[0]])
    assert len(forward_passes) == 1 and first[0].vocabulary_mean is None
    assert token_log_probs(llama, texts, with_moments=True)[0].vocabulary_mean.size > 0
    assert len(forward_passes) == 2
    assert scores(token_log_probs(llama, texts)) == scores(first)
    assert len(forward_passes) == 2


def test_a_killed_run_loses_one_batch_and_restarts_to_the_same_bytes(
    llama, empty_cache, monkeypatch, tmp_path
):
    texts, how = texts_of(12, 11, 10, 4, 3, 2), {"max_batch_tokens": 30}
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "whole"))
    expected = token_log_probs(llama, texts, **how)
    n_batches = len(stored(tmp_path / "whole"))
    assert n_batches >= 3

    monkeypatch.setenv(storage.CACHE_VARIABLE, str(empty_cache))
    real, done = local._score_batch, []

    def killed(lm, batch, with_moments):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(batch)
        return real(lm, batch, with_moments)

    monkeypatch.setattr(local, "_score_batch", killed)
    with pytest.raises(KeyboardInterrupt):
        token_log_probs(llama, texts, **how)
    assert len(stored(empty_cache)) == 2

    done.clear()
    monkeypatch.setattr(local, "_score_batch", lambda *batch: done.append(batch) or real(*batch))
    restarted = token_log_probs(llama, texts, **how)
    assert len(done) == n_batches - 2
    assert stored(empty_cache) == stored(tmp_path / "whole")
    assert scores(restarted) == scores(expected)


def test_scores_do_not_depend_on_what_was_cached_before(llama):
    texts = texts_of(12, 11, 5)
    expected = token_log_probs(llama, texts, cache=False)
    token_log_probs(llama, texts[:1])
    assert scores(token_log_probs(llama, texts)) == scores(expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda lm, folder: (load_causal_lm(folder, dtype="bfloat16", device="cpu"), {}),
        lambda lm, folder: (lm, {"score_first_token": False}),
        lambda lm, folder: (replace(lm, identity=lm.identity | {"attention": "eager"}), {}),
        lambda lm, folder: (replace(lm, identity=lm.identity | {"torch": "0"}), {}),
    ],
    ids=["dtype", "first token", "attention", "library"],
)
def test_whatever_can_change_a_score_asks_for_a_new_one(llama, folders, forward_passes, change):
    texts = texts_of(4, 6)
    token_log_probs(llama, texts)
    lm, how = change(llama, folders["llama"])
    token_log_probs(lm, texts, **how)
    assert len(forward_passes) == 2


def test_a_damaged_file_is_computed_again(llama, empty_cache, forward_passes):
    before = token_log_probs(llama, ["the old river"])[0].token_log_probs
    path = next(empty_cache.rglob("*.safetensors"))
    whole = path.read_bytes()
    flip(path)
    with pytest.warns(UserWarning, match=said_of(path)):
        again = token_log_probs(llama, ["the old river"])[0].token_log_probs
    assert (again == before).all()
    assert path.read_bytes() == whole
    assert len(forward_passes) == 2


# Beginning-of-sequence token


def rewritten(folder, tmp_path, file, change):
    """A copy of a model's folder with one JSON file changed."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    path = copy / file
    path.write_text(json.dumps(change(json.loads(path.read_text()) if path.exists() else {})))
    return copy


BERT_LIKE = {"type": "RobertaProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]}


@pytest.mark.parametrize(
    ("name", "file", "change", "expected"),
    [
        ("llama", "tokenizer_config.json", {}, "first"),
        ("neox", "tokenizer_config.json", {}, "none"),
        ("llama", "tokenizer_config.json", {"add_bos_token": False}, "none"),
        ("neox", "tokenizer_config.json", {"add_bos_token": True}, "first"),
        ("neox", "tokenizer.json", {"post_processor": BERT_LIKE}, "first"),
        (
            "neox",
            "tokenizer.json",
            {"post_processor": {"type": "Sequence", "processors": [BERT_LIKE]}},
            "first",
        ),
    ],
)
def test_what_a_checkpoint_declares_decides_whether_texts_begin_with_bos(
    folders, tmp_path, name, file, change, expected
):
    folder = rewritten(folders[name], tmp_path, file, lambda said: said | change)
    lm = load_causal_lm(folder, device="cpu")
    assert lm.identity["bos"] == expected
    assert scores_first_token(lm) == (expected == "first") == bool(lm.begin)


def test_the_parameter_outdoes_the_checkpoint_and_scores_follow_it(folders, forward_passes):
    text = ["the old river ran"]
    with_it, without = (
        load_causal_lm(folders["llama"], device="cpu", bos=bos) for bos in (True, False)
    )
    assert [lm.identity["bos"] for lm in (with_it, without)] == ["first", "none"]
    first, second = (token_log_probs(lm, text)[0] for lm in (with_it, without))
    assert len(forward_passes) == 2  # neither serves the other
    assert len(first.token_ids) == len(second.token_ids) + 1
    other_way = token_log_probs(without, text, score_first_token=True, cache=False)[0]
    assert (other_way.token_log_probs == first.token_log_probs).all()
    assert hidden_states(with_it, text, [1]).tolist() != hidden_states(without, text, [1]).tolist()
    options = [option_log_probs(lm, text, [[" to", " a"]])[0] for lm in (with_it, without)]
    assert (options[0] != options[1]).all()


def test_a_checkpoint_that_says_nothing_is_named(folders, monkeypatch):
    monkeypatch.setattr(source, "_json_file", lambda *of: None)
    with pytest.warns(UserWarning, match="pass bos=True to put it"):
        assert load_causal_lm(folders["llama"], device="cpu").identity["bos"] == "none"


def test_a_gguf_file_says_so_in_its_metadata(monkeypatch):
    field = SimpleNamespace(contents=lambda: False)
    fields = {"tokenizer.ggml.add_bos_token": field}
    monkeypatch.setitem(
        sys.modules, "gguf", SimpleNamespace(GGUFReader=lambda path: SimpleNamespace(fields=fields))
    )
    tokenizer = SimpleNamespace(bos_token="<s>", bos_token_id=0)  # noqa: S106
    assert source.bos_of(tokenizer, "a.gguf", None, None) == "none"
    field.contents = lambda: True
    assert source.bos_of(tokenizer, "a.gguf", None, None) == "first"
    assert source.bos_of(tokenizer, "a.gguf", None, False) == "none"
    tokenizer.bos_token_id = None
    with pytest.raises(ValueError, match="no beginning-of-sequence token"):
        source.bos_of(tokenizer, "a.gguf", None, True)


# Loading


def test_identity_names_the_weights_and_not_the_place(folders, tmp_path):
    first = load_causal_lm(folders["llama"], device="cpu").identity
    moved = tmp_path / "llama"
    moved.mkdir()
    for path in folders["llama"].iterdir():
        (moved / path.name).write_bytes(path.read_bytes())
    assert load_causal_lm(moved, device="cpu").identity == first
    assert first["revision"].startswith("sha256:")
    lm = load_causal_lm(moved, device="cpu")
    with torch.no_grad():
        lm.model.lm_head.weight[0, 0] += 1
    lm.model.save_pretrained(moved)
    assert load_causal_lm(moved, device="cpu").identity["revision"] != first["revision"]


def test_identity_names_the_tokenizer_by_its_rules(folders, tmp_path):
    """The weights are the same; a text that is split otherwise has other scores."""

    def without_last_merge(rules):
        return rules | {"model": rules["model"] | {"merges": rules["model"]["merges"][:-1]}}

    folder = rewritten(folders["llama"], tmp_path, "tokenizer.json", without_last_merge)
    one, other = (load_causal_lm(at, device="cpu").identity for at in (folders["llama"], folder))
    differing = {name for name, value in one.items() if other[name] != value}
    assert differing - {"model"} == {"tokenizer"}


@pytest.mark.parametrize("name", ["no-such/model", "missing/folder/of/models", "./nowhere"])
def test_an_unknown_model_is_one_clear_line(name, hub_offline):
    with pytest.raises(OSError, match=f'"{name}"') as caught:
        load_causal_lm(name)
    assert "\n" not in str(caught.value)


COMMIT = "0123456789" * 4


@pytest.fixture
def hub(tmp_path, monkeypatch, hub_offline):
    """A hub whose local cache holds one commit of someone/tiny."""
    repository = tmp_path / "hub" / "models--someone--tiny"
    (repository / "snapshots" / COMMIT).mkdir(parents=True)
    (repository / "snapshots" / COMMIT / "config.json").write_text("{}")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.mark.parametrize("revision", [None, "main"])
def test_a_floating_hub_name_is_resolved_to_a_commit_and_warned_about(hub, revision, recwarn):
    assert source.resolve_commit("someone/tiny", COMMIT) == COMMIT
    assert not recwarn.list
    with pytest.warns(UserWarning, match=f'pass revision="{COMMIT}" to pin it'):
        assert source.resolve_commit("someone/tiny", revision) == COMMIT


def test_weights_in_the_older_format_are_read_only_where_that_is_allowed(folders, tmp_path):
    folder = shutil.copytree(folders["llama"], tmp_path / "older")
    (folder / "model.safetensors").unlink()
    lm = load_causal_lm(folders["llama"])
    torch.save(lm.model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(OSError, match="safetensors"):
        load_causal_lm(folder)
    older = load_causal_lm(folder, safetensors_only=False)
    assert torch.equal(older.model.lm_head.weight, lm.model.lm_head.weight)


def test_an_unknown_dtype_is_refused(folders):
    with pytest.raises(ValueError, match="dtype must be one of float32, bfloat16, float16"):
        load_causal_lm(folders["llama"], dtype="float8")


# Options


def test_option_scores_match_the_direct_sum_over_the_options_tokens(lm):
    prompt, options = "the old river ran", [" past", " past a small stone", " nobody"]
    found = option_log_probs(lm, [prompt], [options])[0]
    means = option_log_probs(lm, [prompt], [options], per_token=True)[0]
    begin = [0] if local.scores_first_token(lm) else []
    context = begin + lm.tokenizer(prompt, add_special_tokens=False).input_ids
    for option, total, mean in zip(options, found, means, strict=True):
        option_ids = lm.tokenizer(option, add_special_tokens=False).input_ids
        log_probs = direct_log_probs(lm, context + option_ids)
        values = [
            log_probs[len(context) - 1 + place, token].item()
            for place, token in enumerate(option_ids)
        ]
        assert total == pytest.approx(sum(values), abs=1e-3)
        assert mean == pytest.approx(np.mean(values), abs=1e-3)


def test_options_of_one_token_share_one_forward_pass_of_their_prompt(llama, forward_passes):
    single = [" old", " river", " stone"]
    ids = llama.tokenizer(single, add_special_tokens=False).input_ids
    assert [len(of_option) for of_option in ids] == [1, 1, 1]
    values = option_log_probs(llama, ["the"], [single])[0]
    assert forward_passes == [1]  # one row, not three
    one_by_one = [option_log_probs(llama, ["the"], [[option]])[0][0] for option in single]
    np.testing.assert_allclose(values, one_by_one, atol=1e-4)


def test_option_rows_keep_their_order_when_rows_are_shared_across_prompts(llama):
    prompts = ["the old", "the", "the old"]
    options = [[" river", " stone"], [" stone", " past a"], [" stone", " river"]]
    found = option_log_probs(llama, prompts, options)
    assert found[0].tolist() == found[2].tolist()[::-1]
    assert found[1][0] == pytest.approx(
        option_log_probs(llama, ["the"], [[" stone"]])[0][0], abs=1e-4
    )


def test_bad_options_are_refused(llama, loaded):
    with pytest.raises(ValueError, match="prompt 0 has an empty option"):
        option_log_probs(llama, ["the"], [["A", ""]])
    with pytest.raises(ValueError, match=r"prompt 0 with an option has \d+ tokens"):
        option_log_probs(llama, [long_text(llama)], [["A"]])
    with pytest.raises(ValueError, match="no context"):
        option_log_probs(loaded["neox"], [""], [["the"]])


# Completions


def test_greedy_completions_of_a_padded_batch_match_generate_one_at_a_time(lm):
    prompts = ["the old river", "nobody", "a small stone house where"]
    completions = complete(lm, prompts, 8)
    for prompt, completion in zip(prompts, completions, strict=True):
        inputs = lm.tokenizer(prompt, return_tensors="pt")
        output = lm.model.generate(
            inputs.input_ids,
            attention_mask=inputs.attention_mask,
            do_sample=False,
            max_new_tokens=8,
            pad_token_id=2,
        )
        new = output[0, inputs.input_ids.shape[1] :]
        assert completion == lm.tokenizer.decode(new, skip_special_tokens=True)


def test_samples_of_one_prompt_differ_and_the_seed_repeats_them(llama):
    prompts = ["the old river"] * 4
    first = complete(llama, prompts, 8, temperature=1.0, seed=1, cache=False)
    assert len(set(first)) > 1
    assert complete(llama, prompts, 8, temperature=1.0, seed=1, cache=False) == first
    assert complete(llama, prompts, 8, temperature=1.0, seed=2, cache=False) != first
    greedy = complete(llama, prompts, 8, cache=False)
    assert complete(llama, prompts, 8, temperature=1.0, top_k=1, seed=1, cache=False) == greedy


def test_samples_of_one_prompt_differ_in_batches_of_one_too(llama):
    samples = complete(llama, ["the old river"] * 4, 8, temperature=1.0, max_batch_tokens=1)
    assert len(set(samples)) > 1


def test_sampling_leaves_the_callers_random_numbers_alone(llama):
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    complete(llama, ["the"], 4, temperature=1.0)
    assert torch.rand(1) == expected


def test_completions_are_kept(llama, monkeypatch):
    first = complete(llama, ["the old", "nobody"], 5)
    monkeypatch.setattr(local, "_generate", int)  # which would be given too much
    assert complete(llama, ["the old", "nobody"], 5) == first


def test_decoding_defaults_of_a_repository_do_not_change_completions(folders, tmp_path):
    lm = load_causal_lm(folders["llama"], device="cpu")
    expected = complete(lm, ["the old river"], 8)
    lm.model.generation_config.update(repetition_penalty=5.0)
    lm.model.save_pretrained(tmp_path / "penalised")
    lm.tokenizer.save_pretrained(tmp_path / "penalised")
    penalised = load_causal_lm(tmp_path / "penalised", device="cpu")
    assert penalised.identity["revision"] != lm.identity["revision"]
    assert complete(penalised, ["the old river"], 8) == expected


def test_a_completion_that_leaves_the_context_is_refused(llama):
    with pytest.raises(ValueError, match="prompt 0 with its completion has"):
        complete(llama, ["the old river"], CONTEXT)


# Hidden states


def test_hidden_states_match_output_hidden_states_of_each_text_alone(lm):
    texts, layers = texts_of(9, 3, 6), [3, 0, 2]
    last = hidden_states(lm, texts, layers)
    assert last.shape == (3, 3, 32)
    assert last.dtype == np.float32
    for item, text in enumerate(texts):
        token_ids = torch.tensor([lm.tokenizer(text).input_ids])
        with torch.inference_mode():
            found = lm.model(input_ids=token_ids, output_hidden_states=True).hidden_states
        for place, layer in enumerate(layers):
            np.testing.assert_allclose(last[item, place], found[layer][0, -1], atol=1e-4)


def test_bad_layers_and_texts_are_refused(llama):
    with pytest.raises(ValueError, match="layers must be in 0 to 3"):
        hidden_states(llama, ["the"], [4])
    with pytest.raises(ValueError, match="text 0 has"):
        hidden_states(llama, [long_text(llama)], [1])
