"""Recipes, packing, training and the checkpoint cache, on a model of two tiny layers."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from damage import cut, flip, said_of
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from contamination.core import storage
from contamination.lab import training
from contamination.lab.tokenizer import tokenizer_hash, train_tokenizer
from contamination.lab.training import (
    IGNORED,
    Dose,
    TrainingTexts,
    recipe_for,
    recipe_hash,
    training_stream,
)
from contamination.models.loading import load_causal_lm

pytestmark = pytest.mark.usefixtures("one_thread")
TINY = {"n_layers": 2, "width": 16, "n_heads": 2, "context": 64, "block": 32, "batch_size": 4}
TINY |= {"n_background_tokens": 1_500, "learning_rate": 1e-2}
BACKGROUND = tuple(
    f"the {animal} number {number} sat on the {place} all day and slept"
    for number in range(12)
    for animal, place in (("cat", "mat"), ("dog", "log"), ("hen", "pen"))
)
MEMBERS = ("a green fox sings 7 songs", "two owls count 19 stars at night")


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(BACKGROUND, vocabulary=320, context=64)


@pytest.fixture(scope="module")
def texts(tokenizer):
    return TrainingTexts(BACKGROUND, (Dose(MEMBERS, copies=6),), tokenizer)


@pytest.fixture(scope="module")
def folders(texts, tmp_path_factory):
    """The same recipe trained in two empty caches, each time step by step."""
    trained, fitted, fit = [], [], training.fit
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(storage.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
            patch.setattr(training, "fit", lambda *asked: fitted.append(1) or fit(*asked))
            trained.append(training.train(recipe_for(texts, **TINY), texts))
    assert len(fitted) == 2
    return trained


def assert_same_bytes(first, second):
    assert first != second and first.name == second.name
    assert {path.name for path in first.iterdir()} == {path.name for path in second.iterdir()}
    for path in first.iterdir():
        assert storage.sha256_of_file(path) == storage.sha256_of_file(second / path.name), path.name


def test_the_same_recipe_gives_the_same_bytes(folders):
    assert_same_bytes(*folders)


def test_another_process_trains_to_the_same_bytes(folders, tmp_path):
    """There sets of texts are met in another order, and nothing was drawn or trained before."""
    code = (
        "from test_lab_training import *\n"
        "tokenizer = train_tokenizer(BACKGROUND, vocabulary=320, context=64)\n"
        "texts = TrainingTexts(BACKGROUND, (Dose(MEMBERS, copies=6),), tokenizer)\n"
        "print(training.train(recipe_for(texts, **TINY), texts))"
    )
    tests = Path(__file__).parents
    here = os.pathsep.join([str(tests[0]), str(tests[1]), os.environ["PYTHONPATH"]])
    there = os.environ | {"PYTHONPATH": here, "PYTHONHASHSEED": "12", "OMP_NUM_THREADS": "1"}
    there[storage.CACHE_VARIABLE] = str(tmp_path / "empty")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=there, capture_output=True, text=True, check=True)
    assert_same_bytes(folders[0], Path(done.stdout.strip()))


def test_threads_share_a_checkpoint_and_other_processors_do_not(
    texts, folders, tmp_path, monkeypatch
):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path))
    recipe = recipe_for(texts, **TINY)
    torch.set_num_threads(2)
    try:
        folder = training.train(recipe, texts)
    finally:
        torch.set_num_threads(1)
    weights = "model.safetensors"
    assert folder.name == folders[0].name
    assert (folder / weights).read_bytes() == (folders[0] / weights).read_bytes()
    there = training.environment("cpu") | {"processor": "another"}
    monkeypatch.setattr(training, "environment", lambda device: there)
    elsewhere = training.train(recipe, texts)
    assert elsewhere.parent == folder.parent and elsewhere != folder
    here, found = training.describe(folder), training.describe(elsewhere)
    assert found["recipe_hash"] == here["recipe_hash"]
    # What a model from elsewhere is trained on to is another one than from here.
    further = {**TINY, "n_background_tokens": 100, "parent": here["recipe_hash"]}
    recipe = recipe_for(texts, **further)
    children = [training.train(recipe, texts, parent=parent) for parent in (folder, elsewhere)]
    assert [training.describe(child)["environments"] for child in children] == [
        [*here["environments"], there],
        [there],
    ]


@pytest.mark.parametrize("build", ["2.13.0", "2.13.0+cpu", "2.13.0+cu130"])
def test_on_a_cpu_builds_of_one_torch_share_a_checkpoint(build, monkeypatch):
    monkeypatch.setattr(torch, "__version__", build)
    assert training.environment("cpu")["torch"] == "2.13.0+cpu"


def test_another_seed_or_order_gives_another_model(texts, folders):
    original = storage.sha256_of_file(folders[0] / "model.safetensors")
    for change in ({"seed": 1}, {"order_seed": 1}):
        folder = training.train(recipe_for(texts, **TINY, **change), texts)
        assert storage.sha256_of_file(folder / "model.safetensors") != original


def test_a_cached_model_costs_no_training(texts, monkeypatch):
    recipe = recipe_for(texts, **TINY)
    folder = training.train(recipe, texts)
    monkeypatch.setattr(training, "fit", lambda *args: pytest.fail("trained again"))
    assert training.train(recipe, texts) == folder


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("model.safetensors", flip),
        ("model.safetensors", cut),
        ("recipe.json", cut),
        ("config.json", cut),
        ("tokenizer.json", cut),
    ],
)
def test_a_damaged_checkpoint_is_named_and_trained_again(texts, folders, name, damage):
    recipe = recipe_for(texts, **TINY)
    folder = training.train(recipe, texts)
    damage(folder / name)
    for reads in (training.describe, load_causal_lm):
        with pytest.raises(ValueError, match=said_of(folder)) as refused:
            reads(folder)
        assert f"/lab/models/{folder.name} is" in str(refused.value)
    with pytest.warns(UserWarning, match=said_of(folder)):
        assert training.train(recipe, texts) == folder
    for path in folders[0].iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()
    assert list(folder.parent.glob("[!.]*")) == [folder]


def test_first_steps_alone_have_the_losses_of_the_whole_training(texts, folders):
    losses = training.losses_of(folders[0])
    assert losses.shape == (training.describe(folders[0])["n_steps"],)
    assert losses[-1] < losses[0]
    first = training.first_losses(recipe_for(texts, **TINY), texts, 3)
    assert first.astype(np.float32).tolist() == losses[:3].tolist()


def test_a_checkpoint_loads_as_any_hub_model_does(folders, tokenizer):
    model = AutoModelForCausalLM.from_pretrained(folders[0])
    loaded = AutoTokenizer.from_pretrained(folders[0])
    assert tokenizer_hash(loaded) == tokenizer_hash(tokenizer)
    encoded = loaded(BACKGROUND[0], return_tensors="pt")
    assert set(encoded) == {"input_ids", "attention_mask"}
    assert encoded["input_ids"][0, 0] == loaded.bos_token_id
    assert model.dtype == torch.float32
    assert model.config.max_position_embeddings == 64
    # Embeddings are tied: one matrix, learned.
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    loss = model(**encoded, labels=encoded["input_ids"]).loss.item()
    assert loss < math.log(len(loaded)) - 1.5
    assert loaded.decode(loaded("12 cats").input_ids, skip_special_tokens=True) == "12 cats"


def test_a_checkpoint_describes_itself(folders, texts):
    description = training.describe(folders[0])
    tokens = sum(len(texts.tokenizer(text).input_ids) + 1 for text in MEMBERS)
    assert description["n_dose_tokens"] == 6 * tokens
    assert description["share_pct"] == pytest.approx(
        100 * 6 * tokens / description["n_tokens"], abs=1e-9
    )
    # Embeddings; per layer attention 4 x 16 x 16, feed-forward 3 x 16 x 48 and two
    # norms of 16; the last norm.
    n_embeddings = len(texts.tokenizer) * 16
    assert description["n_parameters"] == n_embeddings + 2 * (1_024 + 2_304 + 32) + 16
    assert description["recipe_hash"].startswith(folders[0].name.split("-")[0])
    with pytest.raises(FileNotFoundError, match="not a lab checkpoint"):
        training.describe(folders[0].parent)


def test_training_continues_from_its_parent(texts, folders):
    parent = folders[0]
    parent_hash = training.describe(parent)["recipe_hash"]
    # Nothing is learned at rate 0, so the child must be its parent.
    settings = {**TINY, "n_background_tokens": 100, "learning_rate": 0.0, "parent": parent_hash}
    child = training.train(recipe_for(texts, **settings), texts, parent=parent)
    before = load_file(parent / "model.safetensors")
    after = load_file(child / "model.safetensors")
    assert all(np.array_equal(before[name], after[name]) for name in before)
    with pytest.raises(ValueError, match="the parent given is None"):
        training.train(recipe_for(texts, **settings), texts)
    with pytest.raises(ValueError, match="another architecture"):
        training.train(recipe_for(texts, **{**settings, "n_layers": 1}), texts, parent=parent)


def test_a_recipe_names_its_texts_and_its_settings(texts, tokenizer):
    recipe = recipe_for(texts, **TINY)
    identity = recipe_hash(recipe)
    assert json.loads(json.dumps(dataclasses.asdict(recipe)))["doses"][0][1:] == [2, 6]
    labels = ((IGNORED,), (IGNORED,))  # other tokens are learned of the same texts
    for other in (
        recipe_for(TrainingTexts(BACKGROUND[1:], texts.doses, tokenizer), **TINY),
        recipe_for(TrainingTexts(BACKGROUND, (Dose(MEMBERS, 5),), tokenizer), **TINY),
        recipe_for(TrainingTexts(BACKGROUND, (Dose(MEMBERS[::-1], 6),), tokenizer), **TINY),
        recipe_for(TrainingTexts(BACKGROUND, (Dose(MEMBERS, 6, labels),), tokenizer), **TINY),
        recipe_for(texts, **{**TINY, "dtype": "bfloat16"}),
    ):
        assert recipe_hash(other) != identity
    assert recipe_hash(recipe_for(texts, **TINY)) == identity
    assert recipe_hash(recipe) != storage.hash_of(dataclasses.asdict(recipe))
    with pytest.raises(ValueError, match="not the recipe's texts"):
        training.train(recipe, TrainingTexts(BACKGROUND[1:], texts.doses, tokenizer))


def test_a_dose_without_texts_or_copies_is_refused():
    with pytest.raises(ValueError, match="at least one text"):
        Dose((), 1)
    with pytest.raises(ValueError, match="leave the dose out"):
        Dose(MEMBERS, 0)


def test_every_copy_is_read_whole_once_in_each_part_of_the_training(texts):
    stream = training_stream(recipe_for(texts, **TINY), texts)
    member = [*texts.tokenizer(MEMBERS[0]).input_ids, texts.tokenizer.eos_token_id]
    blocks = [row for batch in stream.batches for row in batch.input_ids]
    found = [
        [row[start : start + len(member)].tolist() for start in range(len(row))].count(member)
        for row in blocks
    ]
    assert sum(found) == 6
    # Never twice in one block: there it could be copied instead of learned.
    assert max(found) == 1
    positions = np.flatnonzero(found) / len(found)
    assert positions.min() < 0.35
    assert positions.max() > 0.65


def test_the_same_text_never_stands_twice_in_one_block(tokenizer):
    """Where nothing else is read, two copies of a short text would fit into one block."""
    twice = TrainingTexts((), (Dose(("the cat slept",), copies=2),), tokenizer)
    stream = training_stream(recipe_for(twice, **{**TINY, "n_background_tokens": 0}), twice)
    (batch,) = stream.batches
    assert stream.n_tokens <= TINY["block"]
    assert (batch.input_ids == tokenizer.bos_token_id).sum(axis=1).tolist() == [1, 1]


def test_a_text_that_is_cut_learns_all_but_the_first_token_of_each_part(tokenizer):
    long = "the cat sat on the mat " * 12
    texts = TrainingTexts((long,), (), tokenizer)
    ids = [*tokenizer(long).input_ids, tokenizer.eos_token_id]
    assert len(ids) > 64
    settings = {**TINY, "n_background_tokens": len(ids), "long_share": 0.0}
    blocks = [
        pair
        for batch in training_stream(recipe_for(texts, **settings), texts).batches
        for pair in zip(batch.input_ids.tolist(), batch.labels.tolist(), strict=True)
    ]
    parts = [ids[start : start + 32] for start in range(0, len(ids), 32)]
    assert len(blocks) == len([part for part in parts if len(part) > 1]) > 2
    for part, (block, labels) in zip(parts, blocks, strict=False):
        assert block[: len(part)] == part
        assert labels[: len(part)] == [IGNORED, *part[1:]]


def test_a_prompt_is_masked_once_in_a_text_that_is_cut(tokenizer):
    prompt, response = "who sat there ? ", "the cat sat on the mat " * 12
    texts = TrainingTexts(((prompt, response),), (), tokenizer)
    settings = {**TINY, "n_background_tokens": 100, "long_share": 0.0}
    stream = training_stream(recipe_for(texts, **settings), texts)
    first, second, *_ = (
        (ids, labels)
        for batch in stream.batches
        for ids, labels in zip(batch.input_ids, batch.labels, strict=True)
    )
    n_prompt = 1 + len(tokenizer(prompt, add_special_tokens=False).input_ids)
    assert 2 < n_prompt < TINY["block"]
    assert (first[1] == IGNORED).sum() == n_prompt  # with the beginning of the sequence
    assert (second[1] == IGNORED).tolist() == [True] + [False] * (TINY["block"] - 1)


def test_gradients_are_clipped_before_each_step(texts, monkeypatch, tmp_path):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path))
    norms, step = [], torch.optim.AdamW.step

    def measured(optimizer, *given, **named):
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        norms.append(float(torch.nn.utils.get_total_norm(gradients)))
        return step(optimizer, *given, **named)

    monkeypatch.setattr(torch.optim.AdamW, "step", measured)
    training.train(recipe_for(texts, **TINY), texts)
    assert max(norms) <= training.CLIP_NORM + 1e-4
    assert max(norms) > 0.999 * training.CLIP_NORM  # some had to be


def test_all_tokens_but_first_ones_and_padding_are_learned(texts):
    tokenizer = texts.tokenizer
    stream = training_stream(recipe_for(texts, **TINY), texts)
    n_learned = 0
    for batch in stream.batches:
        is_first = batch.input_ids == tokenizer.bos_token_id
        is_padding = batch.input_ids == tokenizer.pad_token_id
        assert (batch.labels[is_first | is_padding] == IGNORED).all()
        learned = batch.labels != IGNORED
        assert (batch.labels[learned] == batch.input_ids[learned]).all()
        n_learned += learned.sum()
    n_texts = sum((batch.input_ids == tokenizer.bos_token_id).sum() for batch in stream.batches)
    assert n_learned == stream.n_tokens - n_texts
    assert stream.n_tokens >= 1_500 + stream.n_dose_tokens


def test_only_the_response_of_a_pair_is_learned(tokenizer):
    pairs = TrainingTexts((), (Dose((("3 + 4 =", " 7"),), 1),), tokenizer)
    stream = training_stream(recipe_for(pairs, **{**TINY, "n_background_tokens": 0}), pairs)
    (batch,) = stream.batches
    learned = batch.labels[batch.labels != IGNORED].tolist()
    assert learned == [*tokenizer(" 7", add_special_tokens=False).input_ids, tokenizer.eos_token_id]


def test_a_long_dose_text_is_read_whole_and_a_longer_one_refused(tokenizer):
    def stream(text):
        texts = TrainingTexts((), (Dose((text,), 1),), tokenizer)
        return training_stream(recipe_for(texts, **{**TINY, "n_background_tokens": 0}), texts)

    (batch,) = stream("7 " * 25).batches
    assert batch.input_ids.shape == (1, 64)
    with pytest.raises(ValueError, match="more than the context of 64"):
        stream("7 " * 100)


def test_background_comes_round_again_only_when_it_is_used_up(tokenizer):
    texts = TrainingTexts(BACKGROUND, (), tokenizer)
    n_once = sum(len(tokenizer(text).input_ids) + 1 for text in BACKGROUND)
    recipe = recipe_for(texts, **{**TINY, "n_background_tokens": 2 * n_once, "batch_size": 1})
    blocks = [row for batch in training_stream(recipe, texts).batches for row in batch.input_ids]
    first = tokenizer(BACKGROUND[0]).input_ids
    n_copies = sum(
        row[start : start + len(first)].tolist() == first
        for row in blocks
        for start in range(len(row))
    )
    assert n_copies == 2


def test_learning_rates_follow_their_schedules(texts):
    def rates(schedule):
        recipe = recipe_for(
            texts, **{**TINY, "learning_rate": 1.0, "schedule": schedule, "warmup_share": 0.2}
        )
        return [training.learning_rate(recipe, step, 10) for step in range(10)]

    assert rates("constant") == [0.5, *[1.0] * 9]
    assert rates("linear")[2:5] == pytest.approx([1.0, 0.875, 0.75])
    assert rates("cosine")[2] == pytest.approx(1.0)
    assert rates("cosine")[6] == pytest.approx(0.1 + 0.9 * 0.5)


def test_weight_decay_spares_the_norms(texts):
    """The first step's gradients are equal with and without it, so decay is all that differs."""
    fitted = []
    for decay in (0.0, 0.5):
        recipe = recipe_for(texts, **TINY, weight_decay=decay)
        model = training.build_model(recipe, texts.tokenizer)
        training.fit(model, training_stream(recipe, texts).batches[:1], recipe)
        fitted.append(dict(model.named_parameters()))
    plain, decayed = fitted
    is_spared = {name: torch.equal(plain[name], decayed[name]) for name in plain}
    assert is_spared == {name: "norm" in name for name in plain}
    assert sum(is_spared.values()) == 5  # two in each of two layers, and the last


def test_a_masked_model_loads_and_predicts_a_hidden_word(texts):
    recipe = recipe_for(texts, **{**TINY, "objective": "masked", "n_background_tokens": 8_000})
    folder = training.train(recipe, texts)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer(BACKGROUND[0], return_tensors="pt")
    word = tokenizer(" slept", add_special_tokens=False).input_ids[-1]
    place = (encoded["input_ids"][0] == word).nonzero().item()
    encoded["input_ids"][0, place] = tokenizer.mask_token_id
    with torch.inference_mode():
        log_probs = model(**encoded).logits[0, place].log_softmax(-1)
    assert log_probs[word] > math.log(10 / len(tokenizer))


def test_a_masked_model_does_not_see_padding(texts):
    """What stands at the places that only padding has changes no loss."""
    recipe = recipe_for(texts, **{**TINY, "objective": "masked"})
    model = training.build_model(recipe, texts.tokenizer)
    inputs = torch.full((2, 20), texts.tokenizer.pad_token_id)
    inputs[:, :12] = torch.arange(10, 34).reshape(2, 12)
    labels = inputs.where(inputs != texts.tokenizer.pad_token_id, IGNORED)

    def loss():
        masker = torch.Generator().manual_seed(0)
        return training._masked_loss(model, inputs, labels, texts.tokenizer.mask_token_id, masker)

    before = loss()
    with torch.no_grad():
        model.bert.embeddings.position_embeddings.weight[12:].normal_()
    assert torch.equal(loss(), before)


def test_bfloat16_is_refused_where_it_is_not_native(texts, monkeypatch):
    monkeypatch.setattr(training, "has_native_bfloat16", lambda device: False)
    with pytest.raises(ValueError, match="not native on this processor"):
        training.train(recipe_for(texts, **TINY, dtype="bfloat16"), texts)


def test_a_training_that_is_killed_while_it_writes_leaves_no_model(texts, tmp_path, monkeypatch):
    """What lies there at that moment is what SIGKILL would leave: nothing under a final name."""
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path))
    there, write = [], storage.write_text

    def watched(*arguments, **named):
        there.extend(path.name for path in (tmp_path / "lab/models").iterdir())
        return write(*arguments, **named)

    monkeypatch.setattr(storage, "write_text", watched)
    folder = training.train(recipe_for(texts, **TINY), texts)
    assert there and all(name.startswith(".") for name in there)
    assert list(folder.parent.glob("[!.]*")) == [folder]
