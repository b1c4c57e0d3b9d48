"""Tables and sentences of the Min-k% study, the check of one's own input, the ready parameters."""

import json

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from contamination import run
from contamination.min_k import findings, published_tables, study
from contamination.min_k.own import OwnPassages, own_passages
from contamination.scores import MIN_K, PPL

IS_MEMBER = np.array([True, True, False, False])


def detected(min_k, ppl, k_percent=20.0):
    """What ``detect`` returns for four passages, one row per passage and method."""
    rows = [
        (number, method, k, value)
        for method, k, values in ((MIN_K, k_percent, min_k), (PPL, None, ppl))
        for number, value in enumerate(values)
    ]
    table = pd.DataFrame(rows, columns=["passage", "method", "k_percent", "score"])
    return table.assign(n_tokens=9, n_scored=9, n_windows=1, first_token_scored=True)


PERFECT, REVERSED = [4, 3, 2, 1], [1, 2, 3, 4]


# Tables


def test_rows_of_one_model_and_of_both():
    models = {5: detected(PERFECT, PERFECT), 6: detected(REVERSED, PERFECT)}
    rows = study.auc_rows(models, IS_MEMBER, n_resamples=20, benchmark="b", copies=4)
    assert list(rows.columns) == study.AUC_COLUMNS
    of_min_k = rows[rows["method"] == MIN_K]
    assert of_min_k["seed"].fillna(-1).tolist() == [5, 6, -1]
    assert of_min_k["auc"].tolist() == [1.0, 0.0, 0.5]
    over_all = study.of_all_models(rows)
    assert over_all["seed"].isna().all()
    assert dict(zip(over_all["method"], over_all["auc"], strict=True)) == {MIN_K: 0.5, PPL: 1.0}
    assert set(rows["n_members"]) == {2}


def test_of_one_model_every_row_stays():
    rows = study.auc_rows({0: detected(PERFECT, PERFECT)}, IS_MEMBER, n_resamples=5)
    assert len(study.of_all_models(rows)) == len(rows) == 2


def test_selected_passages_are_numbered_anew():
    kept = study.select(detected(PERFECT, REVERSED), [False, True, False, True])
    of_min_k = kept[kept["method"] == MIN_K]
    assert of_min_k["passage"].tolist() == [0, 1]
    assert of_min_k["score"].tolist() == [3, 1]


def test_one_k_and_the_methods_without_k():
    both = pd.concat([detected(PERFECT, PERFECT), detected(REVERSED, [], k_percent=50.0)])
    kept = study.at_k(both, 50.0)
    assert set(kept["method"]) == {MIN_K, PPL}
    assert kept.loc[kept["method"] == MIN_K, "score"].tolist() == REVERSED


def test_difference_has_the_sign_of_min_k():
    low, high = study.difference_interval(
        {0: detected(PERFECT, REVERSED)}, IS_MEMBER, 20.0, n_resamples=20
    )
    assert (low, high) == (1.0, 1.0)


def test_k_is_chosen_on_one_half_and_judged_on_the_other():
    """At k = 5 every member is above every non-member, at k = 50 below."""
    is_member = np.repeat([True, False], 8)
    high, low = np.arange(16, 0, -1), np.arange(1, 17)
    both = pd.concat([detected(high, [], 5.0), detected(low, [], 50.0)])
    sweep = study.swept_k(both, is_member)
    assert sweep["auc_chosen_on"].tolist() == sweep["auc_held_out"].tolist() == [1.0, 0.0]
    assert sweep["is_best"].tolist() == [True, False]


def test_null_deals_are_halves_and_miss_means_outside():
    texts = [f"word{number} and more" for number in range(20)]
    null = study.null_study(np.arange(20.0), texts, range(4), n_resamples=50)
    assert null.groupby("method").size().tolist() == [4, 4]
    outside = (null["ci_low"] > 0.5) | (null["ci_high"] < 0.5)
    assert null["misses"].tolist() == outside.tolist()
    again = study.null_study(np.arange(20.0), texts, range(4), n_resamples=50)
    pd.testing.assert_frame_equal(null, again)


def test_blind_rows_find_words_that_give_members_away():
    texts = [f"old page number {n}" for n in range(12)] + [f"new page number {n}" for n in range(6)]
    rows = study.blind_rows(
        texts,
        np.repeat([True, False], [12, 6]),
        benchmark="b",
        setting="s",
        n_permutations=2,
        n_resamples=10,
    )
    assert rows["benchmark"].tolist() == ["b"] * 3
    assert rows.set_index("baseline").loc["bag of words", "auc"] == 1.0


def test_the_best_words_stand_beside_every_method():
    texts = [f"old page number {n}" for n in range(4)] + [f"new page number {n}" for n in range(4)]
    is_member = np.repeat([True, False], 4)
    scored = {0: detected(np.arange(8, 0, -1), np.arange(8))}
    how = {"n_permutations": 2, "n_resamples": 10, "benchmark": "b", "length": 32}
    rows, words = study.beside_words(scored, texts, is_member, **how)
    assert dict(zip(rows["method"], rows["auc"], strict=True)) == {MIN_K: 1.0, PPL: 0.0}
    assert rows["blind_auc"].tolist() == [words["auc"].max()] * 2 == [1.0] * 2
    assert set(rows["length"]) == set(words["length"]) == {32}


def test_folds_follow_the_smaller_kind():
    assert study.n_folds([True] * 30 + [False] * 20) == 10
    assert study.n_folds([True] * 30 + [False] * 3) == 3


def test_printed_average_stands_beside_the_methods_it_has():
    rows = pd.DataFrame({"method": [PPL, "Min-K%++", MIN_K]}, index=[7, 7, 9])
    beside = published_tables.with_printed_wikimia(rows)
    assert beside["paper_auc"].fillna("").tolist() == ["0.67", "", "0.72"]


# One's own input


@pytest.fixture
def own(tmp_path):
    """A model folder and a labelled file, and own_passages with both."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text(json.dumps({"model_type": "llama"}))

    def check(rows=None, model="model", label_column="label", **more):
        path = tmp_path / "own.jsonl"
        rows = rows or [{"input": f"passage {n}", "label": n % 2} for n in range(6)]
        path.write_text("\n".join(map(json.dumps, rows)))
        k_percents = more.pop("k_percents", [])
        mine = {"target_model": str(tmp_path / model) if model else "", "dataset": str(path)}
        mine |= {"text_column": "input", "label_column": label_column} | more
        return own_passages(OwnPassages.read(mine), k_percents)

    return check


def test_members_and_non_members_may_be_two_files(own, tmp_path):
    others = tmp_path / "others.jsonl"
    others.write_text('"one"\n"two"\n"three"\n'.replace('"one"', '{"input": "one"}'))
    with pytest.raises(ValueError, match="holds no text at row 7"):
        own(non_member_dataset=str(others))
    others.write_text("".join(f'{{"input": "other {n}"}}\n' for n in range(3)))
    texts, is_member = own(non_member_dataset=str(others))["own.jsonl"]
    assert texts[-1] == "other 2"
    assert is_member.tolist() == [True] * 6 + [False] * 3


def test_own_passages_are_named_without_the_folder(own):
    found = own()
    assert list(found) == ["own.jsonl"]
    texts, is_member = found["own.jsonl"]
    assert texts[1] == "passage 1"
    assert is_member.tolist() == [False, True] * 3


def test_nothing_named_is_nothing_to_check(own):
    assert own(model="", dataset="") == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label_column": "lable"}, 'no column "lable"'),
        ({"rows": [{"input": "a", "label": 1}] * 4}, "4 members and 0 non-members"),
        ({"rows": [{"input": "", "label": 1}, {"input": "b", "label": 0}]}, "no text at row 0"),
        (
            {"rows": [{"input": "a", "label": 1}, {"input": "b", "label": 0}]},
            "at least two members and two non-members",
        ),
        ({"model": "mistyped"}, "is neither a folder with config.json nor found"),
        ({"model": ""}, "target_model is empty"),
        ({"dataset": ""}, "dataset is empty"),
        ({"dataset": "mistyped.jsonl"}, 'no file "mistyped.jsonl"'),
        ({"target_dtype": "int8"}, 'target_dtype must be one of .* got "int8"'),
        ({"bos": "yes"}, 'bos must be "first", "none" or empty, got "yes"'),
        ({"k_percents": [20.0, 0.0]}, "k_percent must be above 0 and at most 100, got 0"),
    ],
)
def test_bad_input_is_one_line_that_names_it(own, change, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        own(**change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "params/full/min_k").glob("*.yaml")), ids=lambda p: p.stem
)
def test_ready_parameters_fit_the_notebook(path):
    parameters = run.check(ROOT / "notebooks/04_min_k_wikimia.ipynb", path)
    mine = OwnPassages.read(parameters["own_settings"])
    assert mine.target_model and mine.reference_model
    if path.stem.startswith("mimir"):
        assert "/train/" in mine.dataset
        assert mine.non_member_dataset == mine.dataset.replace("/train/", "/test/")
    else:
        assert mine.dataset == "swj0419/WikiMIA" and len(mine.dataset_splits) == 4


def test_all_five_pairs_of_the_paper_are_ready():
    names = [path.stem for path in (ROOT / "params/full/min_k").glob("*.yaml")]
    assert sum(not name.startswith("mimir") for name in names) == 5


# Sentences: one table that confirms, one that refutes


def auc_row(auc, low, high, **more):
    return {"auc": auc, "ci_low": low, "ci_high": high} | more


def test_copies_sentence():
    rising = pd.DataFrame([auc_row(0.5, 0.4, 0.6, copies=1), auc_row(0.8, 0.7, 0.9, copies=8)])
    rising["blind_auc"] = [0.51, 0.6]
    said = findings.copies_sentence(rising)
    assert "8: 0.80 [0.70, 0.90]" in said and "rises with every step" in said
    assert "lies above 0.5 is 8" in said and said.endswith(
        "reaches 0.51 to 0.60 on the same passages."
    )
    falling = rising.assign(auc=[0.5, 0.4], ci_low=0.3)
    said = findings.copies_sentence(falling)
    assert "does not rise with every step" in said and "No dose is told from chance" in said


def test_versions_sentence():
    read = pd.DataFrame([auc_row(0.8, 0.7, 0.9, model="M continued", copies=4)])
    base = pd.DataFrame([auc_row(0.5, 0.4, 0.6, model="M base", copies=0)])
    said = findings.versions_sentence(pd.concat([read, base]))
    assert "M continued 0.80 [0.70, 0.90]" in said and "Only the model that read one" in said
    assert "Neither model" in findings.versions_sentence(pd.concat([read.assign(ci_low=0.4), base]))
    assert "not memory" in findings.versions_sentence(pd.concat([read, base.assign(ci_low=0.55)]))


@pytest.mark.parametrize(
    ("gap", "expected"),
    [((0.01, 0.1), "better"), ((-0.1, -0.01), "worse"), ((-0.1, 0.1), "no difference can be told")],
)
def test_methods_sentence(gap, expected):
    rows = pd.DataFrame(
        [auc_row(0.8, 0.7, 0.9, method=MIN_K), auc_row(0.5, 0.4, 0.6, method="Lowercase")]
    )
    said = findings.methods_sentence(rows, gap)
    assert "1 of 2 methods" in said and f"highest AUC is {MIN_K} with 0.80" in said
    assert expected in said


def test_blind_sentence():
    words = pd.DataFrame([auc_row(0.9, 0.8, 1.0, baseline="TF-IDF")])
    assert "no evidence of membership" in findings.blind_sentence(words, "arm")
    assert "no better than chance" in findings.blind_sentence(words.assign(ci_low=0.4), "arm")


def test_null_sentence_counts_the_misses():
    null = pd.DataFrame({"method": [MIN_K] * 2 + ["bag of words"] * 2, "misses": [1, 0, 0, 0]})
    assert f"{MIN_K} in 1 of 2 and for bag of words in 0 of 2" in findings.null_sentence(null)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ((0.9, 0.8, 1.0), "the same direction"),
        ((0.1, 0.0, 0.2), "the other direction"),
        ((0.55, 0.4, 0.7), "no direction can be told"),
    ],
)
def test_trend_sentence(last, expected):
    rows = pd.DataFrame([auc_row(0.5, 0.4, 0.6, length=32), auc_row(*last, length=256)])
    assert expected in findings.trend_sentence(rows, "length", "the AUC rises with length")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ((0.6, 0.5, 0.65), "hides the difference"),
        ((0.95, 0.9, 1.0), "more than leakage differs"),
        ((0.75, 0.6, 0.9), "no cost of leakage can be shown"),
    ],
)
def test_leakage_sentence(raw, expected):
    clean = pd.Series(auc_row(0.8, 0.7, 0.85))
    said = findings.leakage_sentence(clean, pd.Series(auc_row(*raw)), 0.0, 41.6)
    assert "42 % of non-members" in said and expected in said


def test_sweep_sentence():
    sweep = pd.DataFrame(
        {
            "k_percent": [10.0, 20.0],
            "auc_chosen_on": [0.9, 0.8],
            "auc_held_out": [0.85, 0.7],
            "is_best": [True, False],
        }
    )
    said = findings.sweep_sentence(sweep, 20.0)
    assert "k = 10 is best with 0.90" in said and "the choice carries over" in said
    worse = sweep.assign(auc_held_out=[0.6, 0.7])
    assert "does not carry over" in findings.sweep_sentence(worse, 20.0)
    assert findings.sweep_sentence(sweep, 10.0).endswith("it reaches 0.85.")


def test_date_sentence():
    rows = pd.DataFrame([auc_row(0.9, 0.8, 1.0, copies=4), auc_row(0.7, 0.6, 0.8, copies=0)])
    said = findings.date_sentence(rows, "arm")
    assert "0.90 [0.80, 1.00], and 0.70" in said and "needs no membership at all" in said
    said = findings.date_sentence(rows.assign(ci_low=[0.8, 0.4]), "arm")
    assert "stays at chance" in said


def test_wikimia_sentence():
    rows = pd.DataFrame([auc_row(0.5, 0.4, 0.6, length=32, paper_auc="0.72")])
    words = pd.DataFrame({"length": [32, 32], "auc": [0.97, 0.99]})
    said = findings.wikimia_sentence(rows, words)
    assert "0.99 at 32 words" in said and "prints 0.72" in said
    assert "stays at chance at every length" in said
    apart = findings.wikimia_sentence(rows.assign(ci_low=0.55), words)
    assert "cannot be membership" in apart
