"""The map of questions (Figure 3): by words, and by the vectors of an encoder on this machine."""

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertModel

from contamination.dice import dice_figures
from contamination.lab.tokenizer import train_tokenizer
from contamination.models import sentences

WORDS = ["apple", "bottle", "candle", "dollar", "engine", "feather", "garden", "hammer"]
SUMS = [f"Sam has one {word} and gets two more" for word in WORDS]
PROOFS = [f"Prove that the {word} group is abelian" for word in WORDS[::-1]]
PROBLEMS = {"GSM-i": pd.DataFrame({"question": SUMS}), "MATH": pd.DataFrame({"question": PROOFS})}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A random encoder without a trained pooler, as a folder."""
    folder = tmp_path_factory.mktemp("models") / "encoder"
    tokenizer = train_tokenizer([*SUMS, *PROOFS], 300)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(tokenizer), intermediate_size=32, **shape)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_vector_is_the_mean_of_the_tokens_and_padding_counts_for_nothing(encoder):
    lm = sentences.load_mean_encoder(encoder)
    texts = ["Sam has 3 cards", "Prove that the group of order 5 is abelian " * 3]
    together = sentences.mean_vectors(lm, texts)
    alone = np.concatenate([sentences.mean_vectors(lm, [text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.linalg.norm(together, axis=1) == pytest.approx([1, 1])
    encoded = lm.tokenizer(texts[0], return_tensors="pt")
    with torch.inference_mode():
        states = lm.model(input_ids=encoded.input_ids).last_hidden_state[0]
    mean = states.mean(dim=0).numpy()
    assert together[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    cut = sentences.mean_vectors(lm, texts, max_tokens=2)
    assert cut[1] == pytest.approx(sentences.mean_vectors(lm, ["Prove that"], max_tokens=2)[0])


@pytest.mark.parametrize("by_set", [False, True])
def test_the_title_says_how_many_questions_lie_nearest_to_their_kind(encoder, by_set):
    """Sums and proofs share few words; a question under both names lies nearest to its twin."""
    for model in ("", str(encoder)):
        figure = dice_figures.question_map(PROBLEMS, model, 0, by_set)
        share, n = figure.axes[0].get_title().split(" % of ")
        assert n == "16 questions lie nearest to one of their own kind (by chance: 47 %)"
        assert model or share == "100"
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert legend == ({"GSM-i", "MATH"} if by_set else {"GSM sets", "other families"})
    mixed = {"GSM-i": PROBLEMS["GSM-i"], "MATH": PROBLEMS["GSM-i"]}
    assert dice_figures.question_map(mixed, "", 0).axes[0].get_title().startswith("0 % of 16")


def test_of_a_large_set_some_are_drawn(monkeypatch):
    monkeypatch.setattr(dice_figures, "MOST_OF_A_SET", 5)
    figure = dice_figures.question_map(PROBLEMS, "", 0)
    assert "of 10 questions" in figure.axes[0].get_title()
