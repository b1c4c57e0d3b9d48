"""The unlearning audit: items, labels to forget by, selection, table, judge."""

import dataclasses
import hashlib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scripted_server import MODEL, ScriptedServer, failure, good
from transformers import BertConfig, BertForMaskedLM, BertModel

from contamination.cases import published, unlearning, unlearning_items, unlearning_judge
from contamination.cases.unlearning_items import EASIEST, MIN_K, MIN_K_SHARE, PPL, PPL_SHARE, STORY
from contamination.cases.unlearning_labels import generic_labels
from contamination.cases.unlearning_own import OwnModels, judge_settings, own_items
from contamination.core import storage
from contamination.lab import training
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import Dose, Recipe, TrainingTexts, recipe_for
from contamination.models.chat import Answer, Endpoint
from contamination.models.local import load_causal_lm, token_log_probs
from contamination.models.response_log import ResponseLog
from contamination.models.sentences import load_sentence_encoder, similarities

pytestmark = pytest.mark.usefixtures("one_thread")
STORY_TEXTS = tuple(f"Wenekko number {n} of Galmere met the green fox at dawn" for n in range(8))
BACKGROUND = tuple(f"the cat number {n} sat on the mat all day" for n in range(24))
# Of the recipe below without the field "ascent".
RECIPE_HASH = "0a1dac5e4e30a7ae3b23e4051539a7fb216386973dbdbea745d86c4efd78db62"
TINY = {"n_layers": 2, "width": 16, "n_heads": 2, "context": 64, "block": 32}
TINY |= {"batch_size": 4, "learning_rate": 1e-2}


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer([*BACKGROUND, *STORY_TEXTS, "Maria of London"], 340, context=64)


@pytest.fixture(scope="module")
def trained(tokenizer, tmp_path_factory):
    """Folders of a model that read the story and of its two unlearned continuations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(storage.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        texts = TrainingTexts(BACKGROUND, (Dose(STORY_TEXTS, 10),), tokenizer)
        original = training.train(recipe_for(texts, n_background_tokens=800, **TINY), texts)
        parent = {"parent": training.describe(original)["recipe_hash"], "n_background_tokens": 0}
        forget = TrainingTexts(BACKGROUND, (Dose(STORY_TEXTS),), tokenizer)
        settings = TINY | parent | {"learning_rate": 3e-3}
        folders = {"original": original}
        for name, ascent in (("descent", False), ("ascent", True)):
            recipe = recipe_for(forget, ascent=ascent, **settings)
            folders[name] = training.train(recipe, forget, original)
        mat = tokenizer(" mat", add_special_tokens=False).input_ids[0]
        n_tokens = [len(tokenizer(text).input_ids) + 1 for text in STORY_TEXTS]
        labels = tuple((-100, *[mat] * (n - 1)) for n in n_tokens)
        relabelled = TrainingTexts(BACKGROUND, (Dose(STORY_TEXTS, 10, labels),), tokenizer)
        recipe = recipe_for(relabelled, **TINY | parent)
        folders["relabelled"] = training.train(recipe, relabelled, original)
        return folders


@pytest.fixture(scope="module")
def lms(trained):
    return {name: load_causal_lm(folder) for name, folder in trained.items()}


def nll(lm, texts=STORY_TEXTS):
    found = token_log_probs(lm, list(texts), cache=False)
    return -np.mean([values.token_log_probs.mean() for values in found])


# Unlearning in the lab


def test_a_recipe_without_ascent_keeps_its_hash():
    """Checkpoints that were cached before there was gradient ascent stay valid."""
    recipe = Recipe("b", (("d", 2, 3),), "t", 300, 50)
    assert training.recipe_hash(recipe) == RECIPE_HASH
    rising = dataclasses.replace(recipe, ascent=True)
    assert training.recipe_hash(rising) != RECIPE_HASH


def test_a_dose_without_labels_keeps_its_hash():
    """SHA-256 of the texts as JSON, as it was before there were labels."""
    assert Dose(("a", "b")).hash == hashlib.sha256(b'["a", "b"]').hexdigest()
    assert Dose(("a",), labels=((1, 2),)).hash != Dose(("a",), labels=((1, 3),)).hash


def test_ascent_raises_the_loss_where_descent_lowers_it(lms):
    assert nll(lms["descent"]) < nll(lms["original"]) < nll(lms["ascent"])


def test_alternative_labels_are_learned_in_place_of_the_text(lms):
    mats = [" mat mat mat mat"]
    assert nll(lms["relabelled"], mats) < nll(lms["original"], mats)
    assert nll(lms["relabelled"]) > nll(lms["original"])


def test_generic_labels_put_what_a_generic_model_would_write(tokenizer):
    """A model that predicts the very text: replaced names alone get another label."""

    def logits(input_ids):
        following = input_ids.roll(-1, dims=1)
        return torch.nn.functional.one_hot(following, len(tokenizer)).float()

    cpu = torch.device("cpu")
    lm = SimpleNamespace(tokenizer=tokenizer, device=cpu, states=lambda ids: ids, logits=logits)
    text = "the fox of Galmere, sat"
    labels = generic_labels(lm, [text], {"Galmere": "London", "Zan": "Tom"})[0]
    ids = [*tokenizer(text).input_ids, tokenizer.eos_token_id]
    of_galmere = tokenizer(" Galmere,", add_special_tokens=False).input_ids
    start = ids.index(of_galmere[0])
    london = tokenizer(" London", add_special_tokens=False).input_ids[0]
    assert len(of_galmere) > 1
    expected = [-100, *ids[1:start], london, *[-100] * (len(of_galmere) - 1)]
    assert list(labels) == expected + ids[start + len(of_galmere) :]


# Items


def test_chunks_of_words_and_what_is_left_over():
    items = unlearning_items.chunk_items("a b c d e f g", n_words=3, n_prompt_words=1)
    assert items.to_numpy().tolist() == [["a b c", "a", "b c"], ["d e f", "d", "e f"]]
    with pytest.raises(ValueError, match="7 words: ask for chunks of fewer than 8"):
        unlearning_items.chunk_items("a b c d e f g", 8, 1)
    with pytest.raises(ValueError, match="1 to 2 words of a chunk of 3"):
        unlearning_items.chunk_items("a b c", 3, 3)


def test_the_question_is_scored_without_its_answer_unless_asked():
    items = unlearning_items.question_items(["Who?"], ["a cat"])
    assert items.iloc[0].tolist() == ["Who?", "Question: Who?\nAnswer:", "a cat"]
    both = unlearning_items.question_items(["Who?"], ["a cat"], score_answers=True)
    assert both["text"].tolist() == ["Question: Who?\nAnswer: a cat"]


# Selection


def ratios(min_k, ppl, easiest=None):
    easiest = [np.nan] * len(min_k) if easiest is None else easiest
    return pd.DataFrame({MIN_K: min_k, PPL: ppl, EASIEST: easiest})


def test_the_window_holds_its_ends_and_a_share_is_nearest_to_one():
    table = ratios([0.5, 0.8, 1.25, 1.1], [3.0, 1.3, 4.0, 0.7], [-4, -3, -1, -2])
    chosen = unlearning_items.selections(table, 0.8, 1.25, share=0.5)
    assert chosen[MIN_K].tolist() == [False, True, True, True]
    assert chosen[PPL].tolist() == [False] * 4
    # |log 0.8| and |log 1.25| are equal but for the last bit; 1.1 is nearest.
    assert chosen[MIN_K_SHARE].tolist()[::3] == [False, True]
    assert chosen[PPL_SHARE].tolist() == [False, True, False, True]
    assert chosen[EASIEST].tolist() == [False, False, True, True]
    assert {int(c.sum()) for name, c in chosen.items() if name not in (MIN_K, PPL)} == {2}


def test_without_an_unseen_model_nothing_is_easiest():
    few = unlearning_items.selections(ratios([1, 2], [1, 2]), 0.9, 1.1, 0.1)
    assert EASIEST not in few
    assert few[MIN_K_SHARE].tolist() == [True, False]


def test_a_model_that_forgot_nothing_has_ratios_of_one(lms):
    texts = list(STORY_TEXTS[:3])
    same = unlearning_items.score_ratios(
        texts, lms["original"], lms["original"], 20.0, lms["original"]
    )
    assert (same[[MIN_K, PPL]] == 1).all(axis=None)
    changed = unlearning_items.score_ratios(texts, lms["original"], lms["ascent"], 20.0)
    assert (changed[[MIN_K, PPL]] > 1).all(axis=None)
    assert changed[EASIEST].isna().all()


# What the models write


def test_samples_come_in_order_and_again_the_same(lms):
    items = unlearning_items.chunk_items(" ".join(STORY_TEXTS[:3]), 11, 3)
    lm = lms["original"]
    longest = unlearning_items.longest_reference(lm, items)
    samples = unlearning_items.sampled(lm, items, 2, longest, seed=0)
    assert samples["item"].tolist() == [0, 0, 1, 1, 2, 2]
    assert samples["sample"].tolist() == [0, 1] * 3
    assert samples["reference"].tolist() == items["reference"].repeat(2).tolist()
    assert samples.equals(unlearning_items.sampled(lm, items, 2, longest, seed=0))
    scored = unlearning_items.scored_samples(samples, unlearning_items.STORY_METRICS)
    assert scored["rouge_l"].between(0, 1).all()


def test_a_completion_may_be_as_long_as_the_longest_reference_and_its_end():
    def words(texts, add_special_tokens):
        return SimpleNamespace(input_ids=[text.split() for text in texts])

    items = pd.DataFrame({"reference": ["a b", "a b c d", "a"]})
    assert unlearning_items.longest_reference(SimpleNamespace(tokenizer=words), items) == 5


def test_the_two_readings_of_rouge_l_recall_differ_in_order_alone():
    pair = "a fox of Galmere", "Galmere of a dog"
    found = {name: metric(*pair) for name, metric in unlearning_items.ANSWER_METRICS.items()}
    assert found == {"unigram_recall": 0.75, "rouge_l_recall": 0.25}
    with pytest.raises(ValueError, match="no word"):
        unlearning_items.ANSWER_METRICS["rouge_l_recall"]("?", "a")


# The table


def samples_of(*values):
    """Two samples of each item; the values are the item's mean."""
    rows = [(item, n, v + d) for item, v in enumerate(values) for n, d in ((0, -0.1), (1, 0.1))]
    return pd.DataFrame(rows, columns=["item", "sample", "rouge_l"])


SCORED = {"forgot": samples_of(0.8, 0.6, 0.4, 0.2), "clean": samples_of(0.5, 0.1, 0.3, 0.1)}
SELECTED = np.array([True, True, False, False])
HOW = {"unlearned": "forgot", "n_resamples": 50, "task": STORY, "ratio_low": 0.9, "ratio_high": 1.1}


def test_rows_hold_means_of_both_groups_and_the_window_where_it_was_used():
    chosen = {MIN_K: SELECTED, PPL_SHARE: SELECTED}
    rows = unlearning.audit_rows(SCORED, chosen, ["rouge_l"], ["clean"], **HOW)
    assert list(rows.columns) == unlearning.ROW_COLUMNS
    by = rows.set_index(["model", "against", "selector"])
    row = by.loc[("forgot", "", MIN_K)]
    assert row[["mean_selected", "mean_other", "difference"]].tolist() == pytest.approx(
        [0.7, 0.3, 0.4]
    )
    assert (row["n_items"], row["n_selected"], row["n_samples"], row["n_valid"]) == (4, 2, 2, 8)
    assert row["ci_low"] <= row["difference"] <= row["ci_high"]
    assert row["p"] == pytest.approx(1 / 3)  # two of four items: six ways to deal them
    assert by["p"].notna().sum() == 2  # the claims of the model itself, by both selectors
    beyond = by.loc[("forgot", "clean", MIN_K)]
    assert [beyond["mean_selected"], beyond["mean_other"]] == pytest.approx([0.4, 0.1])
    assert by.loc[("clean", "", MIN_K), "difference"] == pytest.approx(0.1)
    assert row["ratio_low"] == 0.9
    assert np.isnan(by.loc[("forgot", "", PPL_SHARE), "ratio_low"])
    assert unlearning.ALONE not in set(rows["selector"])


def test_what_two_shares_select_alone_is_compared_and_what_both_select_is_not():
    other = np.array([True, False, True, False])
    rows = unlearning.audit_rows(
        SCORED, {MIN_K_SHARE: SELECTED, PPL_SHARE: other}, ["rouge_l"], **HOW
    )
    row = rows[(rows["selector"] == unlearning.ALONE) & (rows["model"] == "forgot")].iloc[0]
    assert (row["n_items"], row["n_selected"]) == (2, 1)
    assert [row["mean_selected"], row["mean_other"]] == pytest.approx([0.6, 0.4])
    same = {MIN_K_SHARE: SELECTED, PPL_SHARE: SELECTED}
    rows = unlearning.audit_rows(SCORED, same, ["rouge_l"], **HOW)
    assert rows[rows["selector"] == unlearning.ALONE]["difference"].isna().all()


@pytest.mark.parametrize("is_selected", [np.zeros(4, bool), np.ones(4, bool)])
def test_a_group_without_items_has_no_mean(is_selected):
    row = unlearning.audit_rows(SCORED, {MIN_K: is_selected}, ["rouge_l"], **HOW).iloc[0]
    assert np.isnan([row["difference"], row["ci_low"], row["ci_high"]]).all()
    means = row["mean_selected"], row["mean_other"]
    assert sorted(np.isnan(means)) == [False, True]


def test_items_left_out_are_a_row_of_their_own():
    left_out = np.array([True, False, False, False])
    row = unlearning.left_out_rows(left_out, {MIN_K: SELECTED}, **HOW).iloc[0]
    assert (row["metric"], row["model"]) == ("left_out", "forgot")
    assert (row["mean_selected"], row["mean_other"]) == (0.5, 0.0)
    # Wilson: 1 of 2 is 0.0945 to 0.9055, 0 of 2 is 0 to 0.6576.
    assert row["ci_low"] == pytest.approx(0.5 - np.hypot(0.5 - 0.0945, 0.6576), abs=1e-3)
    assert row["ci_high"] == pytest.approx(0.9055, abs=1e-3)


def test_an_interval_of_shares_is_wide_where_all_are_alike_and_empty_without_a_group():
    left_out = np.array([True, True, False, False])
    chosen = {MIN_K: SELECTED, PPL: np.ones(4, bool)}
    rows = unlearning.left_out_rows(left_out, chosen, **HOW).set_index("selector")
    assert rows.loc[MIN_K, "difference"] == 1
    assert rows.loc[MIN_K, "ci_low"] == pytest.approx(1 - np.hypot(0.6576, 0.6576), abs=1e-3)
    assert rows.loc[PPL, ["ci_low", "ci_high"]].isna().all()


# Similarity of meaning


def test_similarity_of_a_text_with_itself_is_one(tokenizer, tmp_path):
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(tokenizer), intermediate_size=32, **shape)
    BertModel(config).save_pretrained(tmp_path / "pooled")
    BertForMaskedLM(config).save_pretrained(tmp_path / "masked")
    for name in ("pooled", "masked"):
        tokenizer.save_pretrained(tmp_path / name)
    encoder = load_sentence_encoder(tmp_path / "pooled")
    first, second = ["the cat", "the green fox at dawn " * 40], ["the cat", "the mat"]
    found = similarities(encoder, first, second, batch_size=2)
    assert found[0] == pytest.approx(1, abs=1e-5)
    assert -1 <= found[1] < 1
    assert found == pytest.approx(similarities(encoder, first, second, batch_size=1), abs=1e-5)
    with pytest.raises(ValueError, match="such as pooler"):
        load_sentence_encoder(tmp_path / "masked")


# The chat judge


def answer(text, status="ok"):
    return Answer(text=text, status=status)


def test_the_rating_is_read_and_what_is_none_is_counted():
    texts = ["Score: 4. Reason: alike", "‘Score: 2’", "Score: 4.5", "I cannot", "Score: 6"]
    answers = [*map(answer, texts), answer("Score: 5", "refused"), answer("", "error")]
    samples = pd.DataFrame({"item": range(7), "sample": 0})
    found = unlearning_judge.with_judge(samples, answers)
    assert found["judge"].tolist()[:2] == [4, 2]
    assert found["judge"].isna().sum() == 5
    assert found["judge_status"].tolist() == ["ok"] * 2 + ["unparsable"] * 3 + ["refused", "error"]
    chosen = {MIN_K: np.array([True] * 3 + [False] * 4)}
    row = unlearning.audit_rows({"forgot": found}, chosen, ["judge"], **HOW).iloc[0]
    assert (row["n_valid"], row["n_refused"], row["n_error"]) == (2, 1, 4)
    assert row["mean_selected"] == 3
    assert np.isnan(row["mean_other"])


def test_the_judge_is_asked_with_table_9(tmp_path):
    samples = pd.DataFrame(
        {"item": [0, 1], "sample": 0, "reference": ["gold {x}"] * 2, "completion": ["{y}", "z"]}
    )
    with (
        ScriptedServer(
            lambda body, n: (
                failure(400, "content_filter")
                if body["messages"][-1]["content"].endswith("z")
                else good("Score: 5 Reason: same")
            )
        ) as server,
        ResponseLog(tmp_path / "log") as log,
    ):
        endpoint = Endpoint(server.base_url, MODEL, None)
        found = unlearning_judge.rate_samples(samples, endpoint, log=log, progress=False)
        asked = next(b["messages"] for b in server.bodies if "{y}" in b["messages"][1]["content"])
    assert asked[0]["content"].startswith("You are a helpful assistant in evaluating the similari")
    assert asked[1]["content"].endswith("Output (a): gold {x} Output (b): {y}")
    assert "avoid giving a rating of 3 (neutral) whenever possible" in asked[1]["content"]
    assert found["judge"].tolist()[0] == 5
    assert found["judge_status"].tolist() == ["ok", "refused"]


def test_judge_settings_are_checked_before_anything_costs(monkeypatch):
    monkeypatch.delenv("A_KEY", raising=False)

    def settings(model, **given):
        mine = {"judge_model": model, "judge_base_url": "http://127.0.0.1/v1"}
        return judge_settings(OwnModels.read(mine | {"judge_key_variable": ""} | given))

    assert settings("", judge_key_variable="A_KEY") == {}
    for given, message in (
        ({"judge_base_url": ""}, "judge_base_url is empty"),
        ({"judge_key_variable": "A_KEY"}, "A_KEY is not set"),
        ({"prices": [1.0], "price_date": "2026-01-01"}, "prices must be two"),
        ({"prices": [1.0, 2.0]}, "prices must be two"),
        ({"cost_cap": 1.0}, "fill in prices and price_date"),
    ):
        with pytest.raises(ValueError, match=message):
            settings("m", **given)
    found = settings("m", prices=[1.0, 2.0], price_date="2026-01-01", cost_cap=3.0)
    assert (found["endpoint"].model, found["price"].output_per_million, found["cap"]) == ("m", 2, 3)


# One's own models


def own(original, unlearned, **given):
    mine = {"model": {"names": [str(one) for one in (original, unlearned) if one]}}
    mine = mine if mine["model"]["names"] else {}
    return own_items(OwnModels.read(mine | {"chunk_words": 3, "own_prompt_words": 1} | given))


def test_own_items_and_what_is_missing(trained, tmp_path):
    models = trained["original"], trained["ascent"]
    book, asked = tmp_path / "book.txt", tmp_path / "questions.jsonl"
    book.write_text("a b c d e f g h i")
    asked.write_text('{"question": "Who?", "answer": "a cat"}\n')
    items = own(*models, book=str(book), questions=str(asked), max_items=2)
    assert {task: len(table) for task, table in items.items()} == {
        STORY: 2,
        unlearning_items.QUESTIONS: 1,
    }
    assert own("", "", book=str(book)) == {}
    with pytest.raises(ValueError, match="must list the model before and the model after"):
        own("", models[1], book=str(book))
    with pytest.raises(ValueError, match="are empty: fill in one of them"):
        own(*models)
    with pytest.raises(ValueError, match="want 0 or more"):
        own(*models, book=str(book), max_items=-1)
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        own(*models, book="none.txt")
    book.write_bytes("a b c d ü".encode("latin-1"))
    with pytest.raises(ValueError, match=r"book\.txt: not UTF-8 text"):
        own(*models, book=str(book))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"question": "Where?", "answer": null}', "row 1 has no answer"),
        ('{"question": "Where?", "answer": " ? "}', "row 1 has no answer"),
        (None, 'no column "answer"'),
    ],
)
def test_bad_questions_are_named(trained, tmp_path, row, message):
    asked = tmp_path / "questions.jsonl"
    good = '{"question": "Who?", "answer": "a cat"}\n'
    asked.write_text(good + row if row else '{"question": "Who?"}\n')
    with pytest.raises(ValueError, match=message):
        own(trained["original"], trained["ascent"], questions=str(asked))


# Differences with their intervals


def row(ends, model="forgot", against=""):
    about = {"unlearning": "forgot", "task": STORY, "model": model, "against": against}
    ends = {"ci_low": ends[0], "ci_high": ends[1]}
    return about | {"n_selected": 10, "p_adjusted": 0.01} | ends


YES, NO, NONE = (0.1, 0.3), (-0.1, 0.05), (np.nan, np.nan)
OPEN = (-0.1, 0.3)  # a lead of 0.10 is not ruled out


def test_each_claim_is_shown_with_its_interval():
    rows = [row(YES), row(NO, "retrained"), row(NONE, against="retrained")]
    rows.append(row(OPEN, against="original"))
    table = pd.DataFrame(rows).assign(difference=[0.2, 0.0, np.nan, 0.1])
    shown = unlearning.claims_with_intervals(table, "retrained", "original").iloc[0]
    assert shown[["own", "easy"]].tolist() == ["0.20 [0.10, 0.30]", "0.00 [-0.10, 0.05]"]
    assert shown[["remembered", "spared"]].tolist() == ["–", "0.10 [-0.10, 0.30]"]
    without = table[~table["model"].eq("retrained") & ~table["against"].eq("retrained")]
    alone = unlearning.claims_with_intervals(without, "retrained", "original")
    assert list(alone)[3:] == ["own", "spared"]


def test_the_p_of_items_left_out_is_fishers():
    def tested(n_found, n_found_of_others):
        chosen = np.arange(40) < 10
        left_out = np.r_[np.arange(10) < n_found, np.arange(30) < n_found_of_others]
        return unlearning.left_out_rows(left_out, {MIN_K: chosen}, **HOW).iloc[0]

    assert tested(8, 2)["ci_low"] > 0 and tested(8, 2)["p"] < 0.001
    assert tested(0, 20)["ci_high"] < 0  # the selection avoids them
    assert round(tested(4, 6)["p"], 3) == 0.232
    nobody = unlearning.left_out_rows(np.ones(4, bool), {MIN_K: np.zeros(4, bool)}, **HOW)
    assert nobody[["p", "ci_low"]].isna().all(axis=None)


def test_printed_numbers():
    printed = published.printed_unlearning().set_index("quantity")["value"]
    assert printed["chunks selected by Min-k% Prob"] == "188"
    assert printed["chunks selected by perplexity"] == "none"
    assert printed["mean ROUGE-L recall, selected"] == "0.23"
    assert (printed == "").sum() == 2
