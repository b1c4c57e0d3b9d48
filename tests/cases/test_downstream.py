"""Inserted examples: formats, the deal, occurrences, tables over models and datasets, headlines."""

import numpy as np
import pandas as pd
import pytest

from contamination.cases import downstream, downstream_examples, published
from contamination.core import blind
from contamination.core.scores import MIN_K, PPL
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import Dose, TrainingTexts, recipe_for, train
from contamination.models.local import load_causal_lm

# Two datasets, three inserted and three held-out examples each.
EXAMPLES = pd.DataFrame(
    {
        "dataset": ["a"] * 6 + ["b"] * 6,
        "text": [f"word{n} and more" for n in range(12)],
        "is_member": [True, True, True, False, False, False] * 2,
        "options": [[" 0", " 1"]] * 6 + [[" A", " B", " C", " D"]] * 6,
    }
)
PERFECT = [3, 3, 3, 0, 0, 0]
REVERSED = [0, 0, 0, 3, 3, 3]
NOTHING = [1] * 6


def scored(*values, method=MIN_K):
    """Scores of the examples, dataset after dataset."""
    flat = np.concatenate(values).astype(float)
    return pd.DataFrame({"passage": range(flat.size), "method": method, "score": flat})


# Examples


def test_lab_examples_ask_for_the_label_they_hold():
    examples = downstream_examples.lab_examples(3, 0)
    assert examples["dataset"].unique().tolist() == list(downstream_examples.LAB_DATASETS)
    for row in examples.to_dict("records"):
        right = row["prompt"] + row["options"][row["answer"]]
        assert row["text"].startswith(right + " (")
        assert len(row["options"]) == (4 if row["dataset"] == "topics" else 2)


@pytest.mark.mirror
def test_released_examples_are_the_papers_datasets():
    examples = downstream_examples.released_examples()
    counts = examples.groupby("dataset").size().to_dict()
    expected = {"BoolQ": 3270, "CommonsenseQA": 1221, "IMDB": 2195, "LSAT QA": 547}
    assert counts == expected | {"TruthfulQA": 813}
    for row in examples.to_dict("records"):
        assert row["text"] == row["prompt"] + row["options"][row["answer"]]
        assert len(set(row["options"])) > 1
    printed = set(published.printed_learning_rates()["dataset"]) - {downstream.AVERAGE}
    assert set(counts) == printed
    first = examples.drop_duplicates("dataset").set_index("dataset")["text"]
    assert first["BoolQ"].startswith("question: does ethanol take more energy")
    assert first["BoolQ"].endswith("\nanswer: false")
    assert first["CommonsenseQA"].endswith("(E) new york\nanswer: A")


def pool(**sizes):
    rows = [(name, f"{name} {n}") for name, size in sizes.items() for n in range(size)]
    return pd.DataFrame(rows, columns=["dataset", "text"])


def test_deal_takes_as_many_of_each_kind_and_leaves_out_what_is_long_or_repeated():
    examples = pool(a=10, b=5)
    examples.loc[1, "text"] = "a 0"
    n_tokens = [99 if text == "a 9" else 3 for text in examples["text"]]
    dealt = downstream_examples.deal(examples, 3, 0, n_tokens=n_tokens, max_tokens=50)
    assert dealt.groupby(["dataset", "is_member"]).size().tolist() == [3, 3, 2, 2]
    assert not dealt["text"].duplicated().any() and "a 9" not in set(dealt["text"])
    again = downstream_examples.deal(examples, 3, 0, n_tokens=n_tokens, max_tokens=50)
    pd.testing.assert_frame_equal(dealt, again)
    other = downstream_examples.deal(examples, 3, 1, n_tokens=n_tokens, max_tokens=50)
    assert other["text"].tolist() != dealt["text"].tolist()


def test_a_dataset_with_too_few_short_examples_is_named():
    with pytest.raises(ValueError, match='dataset "b" has 3 examples of at most 50 tokens'):
        downstream_examples.deal(pool(a=8, b=3), 3, 0, n_tokens=[1] * 11, max_tokens=50)


# Tables


def test_rows_of_datasets_and_their_average():
    rows = downstream.auc_rows(
        {5: scored(PERFECT, NOTHING)}, EXAMPLES, n_resamples=20, setting="s", occurrence=1
    )
    assert list(rows.columns) == downstream.COLUMNS
    assert rows["dataset"].tolist() == ["a", "b", downstream.AVERAGE]
    assert rows["auc"].tolist() == [1.0, 0.5, 0.75]
    assert rows["n_members"].tolist() == [3, 3, 6] and rows["seed"].tolist() == [5, 5, 5]
    assert rows["tpr_at_5_fpr"].tolist() == [1.0, 0.0, 0.5]
    assert rows["difference"].isna().all() and set(rows["setting"]) == {"s"}
    alone = downstream.auc_rows({0: scored(PERFECT)}, EXAMPLES.head(6), n_resamples=5)
    assert alone["dataset"].tolist() == ["a"]


def test_models_are_resampled_too():
    """Each model alone has no spread at all, so what spread there is comes from the models."""
    models = {0: scored(PERFECT, PERFECT), 1: scored(REVERSED, REVERSED)}
    row = downstream.auc_rows(models, EXAMPLES, n_resamples=200).iloc[-1]
    assert (row["auc"], row["ci_low"], row["ci_high"]) == (0.5, 0.0, 1.0)
    assert row["n_models"] == 2 and pd.isna(row["seed"])
    one = downstream.auc_rows({0: models[0]}, EXAMPLES, n_resamples=200).iloc[-1]
    assert (one["ci_low"], one["ci_high"]) == (1.0, 1.0)


def test_difference_to_the_first_condition_is_paired():
    rng = np.random.default_rng(0)
    noisy = {0: scored(rng.normal(size=6), rng.normal(size=6))}
    same = downstream.auc_rows(noisy, EXAMPLES, first=noisy, n_resamples=50)
    columns = ["difference", "difference_low", "difference_high"]
    assert (same[columns] == 0).all(axis=None)
    rows = downstream.auc_rows(
        {0: scored(PERFECT, PERFECT)}, EXAMPLES, first={0: scored(REVERSED, NOTHING)}, n_resamples=9
    )
    assert rows["difference"].tolist() == [1.0, 0.5, 0.75]
    other = {0: scored(REVERSED, NOTHING, method=PPL)}
    rows = downstream.auc_rows({0: scored(PERFECT, PERFECT)}, EXAMPLES, first=other, n_resamples=9)
    assert rows["difference"].isna().all()


def test_difference_of_methods_has_the_sign_of_min_k():
    both = pd.concat([scored(PERFECT, PERFECT), scored(REVERSED, REVERSED, method=PPL)])
    interval = downstream.difference_interval({0: both}, EXAMPLES, n_resamples=20)
    assert interval == (1.0, 1.0)


def test_occurrences_are_compared_with_what_was_never_inserted():
    occurrence = np.array([1, 1, 7, 0, 0, 0, 1, 1, 0, 0, 0, 0])
    values = [2, 2, 3, 0, 0, 0], [2, 2, 9, 0, 0, 0]
    rows = downstream.occurrence_rows(
        {0: scored(*values)}, EXAMPLES, occurrence, n_resamples=20, setting="s"
    )
    # The one example inserted seven times is alone, so "4 or more" has no row.
    assert rows["occurrence"].tolist() == [1, 1, 1]
    by_dataset = rows.set_index("dataset")
    assert by_dataset["n_members"].to_dict() == {"a": 2, "b": 2, downstream.AVERAGE: 4}
    assert by_dataset["n_non_members"].to_dict() == {"a": 3, "b": 4, downstream.AVERAGE: 7}
    assert by_dataset["blind_auc"].tolist() == pytest.approx([0.5] * 3)
    assert by_dataset["auc"].to_dict() == {"a": 1.0, "b": 0.75, downstream.AVERAGE: 0.875}


def test_many_insertions_count_as_the_most():
    occurrence = np.array([4, 9, 5, 0, 0, 0] * 2)
    rows = downstream.occurrence_rows(
        {0: scored(PERFECT, PERFECT)}, EXAMPLES, occurrence, n_resamples=5
    )
    assert set(rows["occurrence"]) == {downstream.MOST_OCCURRENCES}


def test_accuracy_of_inserted_and_held_out_examples():
    rows = downstream.auc_rows({0: scored(PERFECT, PERFECT)}, EXAMPLES, n_resamples=5)
    right = {0: np.array([1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0], dtype=bool)}
    found = downstream.with_accuracy(rows, right, EXAMPLES, n_resamples=200).set_index("dataset")
    assert found["accuracy_contaminants"].tolist() == pytest.approx([1, 1 / 3, 2 / 3])
    assert found["accuracy_others"].tolist() == pytest.approx([0, 1 / 3, 1 / 6])
    assert found["chance_accuracy"].tolist() == pytest.approx([0.5, 0.25, 0.375])
    assert found.loc["a", ["gap_low", "gap_high"]].tolist() == [1.0, 1.0]
    assert found.loc["b", "gap_low"] < 0 < found.loc["b", "gap_high"]


def test_blind_rows_find_words_that_give_members_away():
    texts = [f"seen thing{n}" for n in range(12)] + [f"unseen thing{n}" for n in range(12)]
    told = pd.DataFrame({"dataset": "told", "text": texts, "is_member": np.arange(24) < 12})
    same = [f"word{n} and more" for n in range(24)]
    random = pd.DataFrame({"dataset": "random", "text": same, "is_member": np.arange(24) % 2 == 0})
    rows = downstream.blind_rows(pd.concat([told, random], ignore_index=True), n_resamples=20)
    auc = rows.set_index(["dataset", "method"])["auc"]
    assert auc["told", blind.BAG_OF_WORDS] == 1.0
    assert auc["random", blind.BAG_OF_WORDS] == pytest.approx(0.5)
    assert auc[downstream.AVERAGE, blind.BAG_OF_WORDS] == pytest.approx(0.75)
    beside = downstream.with_blind(pd.DataFrame({"dataset": ["random", "told"]}), rows)
    assert beside["blind_auc"].tolist() == pytest.approx([0.5, 1.0])
    known = rows[rows["method"] == blind.BAG_OF_WORDS].set_index("dataset").loc["random"]
    ends = ["blind_ci_low", "blind_ci_high"]
    assert beside.loc[0, ends].tolist() == known[["ci_low", "ci_high"]].tolist()
    assert known["ci_low"] <= 0.5 <= known["ci_high"]


# A model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("CONTAMINATION_CACHE", str(tmp_path_factory.mktemp("cache")))
    texts = [f"it is number {n}, so label: {n % 2}" for n in range(40)]
    tokenizer = train_tokenizer(texts, vocabulary=300, context=64)
    training = TrainingTexts((), (Dose(tuple(texts), 2),), tokenizer)
    small = {"n_layers": 1, "width": 16, "n_heads": 2, "context": 64, "block": 32}
    yield train(recipe_for(training, n_background_tokens=0, learning_rate=1e-2, **small), training)
    patch.undo()


def test_the_preferred_option_is_the_answer_given(folder, monkeypatch):
    """Equal options are calibrated over a dataset, other options are not."""
    lm = load_causal_lm(folder)
    found = [[-1.0, -3.0], [-1.0, -2.0], [-1.0, -3.0], [-1.0, -2.0]]
    monkeypatch.setattr(downstream, "option_log_probs", lambda *_, **__: list(map(np.array, found)))
    same, free = [" 0", " 1"], [[" a", " b"], [" c", " d"]]
    examples = pd.DataFrame({"dataset": ["labels"] * 2 + ["texts"] * 2, "prompt": "p"})
    examples = examples.assign(options=[same, same, *free], answer=[0, 1, 0, 1])
    assert downstream.answers_right(lm, examples).tolist() == [True, True, True, False]


def test_a_model_answers_what_it_read(folder):
    examples = pd.DataFrame({"dataset": "d", "prompt": ["it is number 4, so label:"] * 2})
    examples = examples.assign(options=[[" 0", " zebra"], [" zebra", " 0"]], answer=[0, 0])
    assert downstream.answers_right(load_causal_lm(folder), examples).tolist() == [True, False]


def test_training_facts_are_those_of_the_recipe(folder):
    facts = downstream.training_facts(folder)
    assert facts["share_pct"] == 100 and facts["learning_rate"] == 1e-2 and facts["n_tokens"] > 0


# Printed numbers


def test_printed_cells_stand_beside_the_same_dataset_and_method():
    rows = pd.DataFrame({"dataset": ["IMDB", "topics", "average"], "method": [MIN_K, MIN_K, PPL]})
    beside = published.with_printed_downstream(rows)
    assert beside["paper_auc"].fillna("").tolist() == ["0.98", "", "0.84"]
    assert beside["paper_tpr"].fillna("").tolist() == ["83", "", "42"]


def test_printed_learning_rates():
    printed = published.printed_learning_rates().set_index(["dataset", "learning_rate"])
    assert printed.loc[("BoolQ", "raised")].tolist() == [0.91, 0.81, 0.69]
    assert printed.loc[("average", "lower")].fillna(-1).tolist() == [-1, 0.55, 0.51]


# Differences and controls


MANY = pd.DataFrame(
    {
        "dataset": "a",
        "text": [f"word{n} and more" for n in range(24)],
        "is_member": np.arange(24) < 12,
    }
)
GOOD, BAD = np.arange(24, 0, -1), np.arange(24)


def measured(values, first=None, n_models=5, **labels):
    """Min-k% Prob under models that all score alike."""
    models = dict.fromkeys(range(n_models), scored(values))
    before = None if first is None else dict.fromkeys(models, scored(first))
    return downstream.auc_rows(models, MANY, first=before, n_resamples=50, **labels).iloc[0]


def test_the_change_is_that_to_the_first_condition():
    assert measured(GOOD, first=BAD)["difference_low"] > 0
    assert measured(BAD, first=GOOD)["difference_high"] < 0
    assert measured(GOOD, first=GOOD)["difference"] == 0
    assert np.isnan(measured(GOOD)["difference"])


def test_a_control_holds_where_its_interval_contains_one_half():
    assert measured(np.tile([1, 0], 12), n_models=1, setting=downstream.BEFORE)["holds"]
    assert not measured(GOOD, n_models=1, setting=downstream.BEFORE)["holds"]
    words = downstream.blind_rows(MANY, n_resamples=20)
    assert words["holds"].notna().all()
