"""DICE for one's own pairs: training at a small rate, tables and figures of one's own models."""

import dataclasses

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from contamination.dice import fine_tuning, mixtures
from contamination.lab.tokenizer import tokenizer_files, train_tokenizer
from contamination.models.causal import load_causal_lm
from contamination.storage import write_json

VANILLA = [(mixtures.PROMPT.format(f"mean(x{n})"), f"Return mean {n}.") for n in range(200)]


@pytest.fixture(scope="module")
def tokenizer():
    questions = [f"Sam has {n} cards and gets 3. How many? #### {n + 3}" for n in range(9)]
    return train_tokenizer([*questions, *(prompt + text for prompt, text in VANILLA)], 320)


def random_model(folder, tokenizer, seed):
    """A model of two blocks, its weights about 0.02 as those of real ones, kept in bfloat16."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).bfloat16().float().save_pretrained(folder)
    for name, value in tokenizer_files(tokenizer).items():
        write_json(folder / name, value)
    return folder


@pytest.fixture(scope="module")
def base(tokenizer, tmp_path_factory):
    return random_model(tmp_path_factory.mktemp("models") / "base", tokenizer, 0)


def moved(folder, base):
    """Euclidean distance of a checkpoint's weights from its base, and the share that moved."""
    pairs = [load_causal_lm(path).model.state_dict() for path in (folder, base)]
    steps = torch.cat([(pairs[0][name] - pairs[1][name]).flatten() for name in pairs[1]])
    return float(steps.norm()), float((steps != 0).float().mean())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_move_as_far_whatever_the_arithmetic(base, dtype):
    """At 1e-5 a step lies below the spacing of bfloat16 at most weights and would round away."""
    full = fine_tuning.Settings(1e-5, 4, dtype="float32")
    folders = [
        fine_tuning.fine_tune(base, VANILLA, dataclasses.replace(full, dtype=name))
        for name in ("float32", dtype)
    ]
    assert folders[0] != folders[1]
    (expected, n_expected), (found, n_found) = (moved(folder, base) for folder in folders)
    assert found == pytest.approx(expected, rel=0.05)
    assert n_found == pytest.approx(n_expected, abs=0.02)
    # The checkpoint holds what was trained: no weight was rounded when it was saved.
    saved = load_file(folders[1] / "model.safetensors")
    assert {values.dtype for values in saved.values()} == {torch.float32}
