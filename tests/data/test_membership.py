"""Words alone on membership benchmarks: recomputed, at chance without labels, as the page says."""

import doctest

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline

from contamination.data import published
from contamination.data.sources import source_file

PAGE = ROOT / "docs/blind_baselines.md"


@pytest.fixture(scope="module")
def rules():
    return published.membership_words()


def wikimia():
    rows = pd.read_json(source_file("nlp-titech/samia", "wikimia/128.jsonl"), lines=True)
    return rows["input"], rows["label"], np.arange(len(rows))


def arxivtection():
    rows = pd.read_csv(source_file("avduarte333/DE-COP_Method", "data/arXivTection.csv"))
    return rows["Example_A"], rows["Label"], pd.factorize(rows["ID"])[0]


def functions():
    paths = [
        source_file("Yuen647/SYNPRUNE", f"dataset/{k}.jsonl") for k in ("member", "non-member")
    ]
    rows = pd.concat([pd.read_json(path, lines=True) for path in paths], ignore_index=True)
    return rows["function"], rows["label"], pd.factorize(rows["function"])[0]


@pytest.mark.mirror
@pytest.mark.parametrize(
    ("name", "load", "tolerance"),
    [
        ("WikiMIA, 128 words", wikimia, 0.01),
        ("arXivTection", arxivtection, 0.03),
        ("SynPrune", functions, 0.01),
    ],
)
def test_three_benchmarks_come_out_the_same_by_other_code(rules, name, load, tolerance):
    """scikit-learn's own words, folds and AUC; the folds differ, hence the tolerance."""
    texts, is_member, source = load()
    of = rules[rules["benchmark"].eq(name)].set_index("rule")
    assert of.loc["words", ["n_members", "n_non_members"]].tolist() == [
        is_member.sum(), (1 - is_member).sum(),
    ]  # fmt: skip
    classifier = make_pipeline(
        CountVectorizer(binary=True), LogisticRegression(class_weight="balanced", max_iter=1000)
    )
    aucs = []
    for train, test in StratifiedGroupKFold(5, shuffle=True, random_state=1).split(
        texts, is_member, source
    ):
        scores = classifier.fit(texts[train], is_member[train]).decision_function(texts[test])
        aucs.append(roc_auc_score(is_member[test], scores))
    assert np.mean(aucs) == pytest.approx(of.loc["words", "auc"], abs=tolerance)
    # What needs no folds is equal.
    assert of.loc["longer is member", "auc"] == pytest.approx(
        roc_auc_score(is_member, texts.str.len()), abs=1e-4
    )


def test_shuffled_labels_are_at_chance_and_directions_of_length_add_up(rules):
    words = rules[rules["rule"].eq("words")].set_index("benchmark")
    assert words["null"].notna().all()
    assert words["null"].sub(0.5).abs().max() < 0.07 and words["null"].mean() == pytest.approx(
        0.5, abs=0.02
    )
    one, other = (
        rules[rules["rule"].eq(f"{way} is member")].set_index("benchmark")["auc"]
        for way in ("longer", "shorter")
    )
    np.testing.assert_allclose(one + other, 1, atol=2e-4)


def test_ordinary_splits_are_at_chance_and_every_benchmark_has_a_card(rules):
    summary = published.membership_summary().set_index("benchmark")
    controls = summary[summary["is_control"]]
    assert len(controls) == 2
    assert (controls["ci_low"].lt(0.55) & controls["ci_high"].gt(0.45)).all()
    names = rules["benchmark"].str.replace(r", \d+ words$", "", regex=True)
    assert set(names) == set(summary.index) == set(published.membership_benchmarks()["benchmark"])


def test_the_page_has_the_figures_of_the_table(rules):
    lines = PAGE.read_text().split("<!-- figures -->")[1].split("<!-- end")[0].split("\n")
    shown = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    del shown["Benchmark"], shown["---"]
    words = rules[rules["rule"].eq("words")].set_index("benchmark")
    assert list(shown) == list(words.index)
    for name, row in words.iterrows():
        assert f"| {row.auc:.2f} [{row.ci_low:.2f}, {row.ci_high:.2f}] |" in shown[name]
        assert f"| {row.null:.2f} |" in shown[name]


@pytest.mark.mirror
def test_what_is_odd_in_the_data_is_so():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 40 and not found.failed
