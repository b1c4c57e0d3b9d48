"""What the lesson and the lab conclude follows their tables, and turns where the tables turn."""

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.lab.benchmarks import DEFAULT_DRIFT, event_articles
from contamination.lab.grammar import draw_groups
from contamination.min_k import checks, conclusions


@pytest.fixture(scope="module")
def articles():
    drawn = draw_groups(event_articles(DEFAULT_DRIFT), 400, 0, "test", n_paraphrases=0)
    by_date = drawn["era"].eq("older").to_numpy()
    by_chance = np.random.default_rng([0, 40]).permutation(by_date)
    texts = drawn["text"].tolist()
    return checks.words_by_label(texts, by_chance, by_date, n_resamples=200)


def test_a_score_has_an_auc_for_each_labelling():
    values, by_chance = np.arange(8.0), np.tile([True, False], 4)
    found = checks.score_by_label(values, by_chance, np.arange(8) > 3)
    assert found["who is a member"].tolist() == list(checks.LABELLED_BY[:2])
    assert found["auc"].tolist() == [pytest.approx(0.375), 1.0]
    assert (found["ci_low"] <= found["auc"]).all() and found["n_members"].tolist() == [4, 4]


def test_words_find_a_date_and_nothing_that_chance_decided(articles):
    assert articles["who is a member"].tolist() == list(checks.LABELLED_BY)
    chance, date, gap = articles.itertuples()
    assert chance.ci_low < 0.5 < chance.ci_high and date.ci_low > 0.5
    assert gap.auc == pytest.approx(date.auc - chance.auc) and gap.ci_low > 0
    assert chance.n_members + chance.n_non_members == 400 and pd.isna(gap.n_members)


# What a table of the lesson shows


# The lab


@pytest.fixture(scope="module")
def over_bases():
    return pd.read_csv(ROOT / "src/contamination/study/first_study_topics.csv")


def by_copies(n_models=2):
    rows = [{"copies": copies, "difference": 0.05 * copies} for copies in (1, 4)]
    table = pd.DataFrame(rows).assign(n_models=n_models)
    return table.assign(difference_low=table["difference"] - 0.1)


def trends(*lows):
    return pd.DataFrame({"what": ["method", "length", "model size"], "difference_low": lows})


ALL_OPEN = trends(-0.1, -0.1, 0.0)


def sweep(best=10.0, difference=0.0):
    table = pd.DataFrame({"k_percent": [10.0, 20.0, 100.0], "difference": [difference, 0.0, -0.1]})
    table["difference_low"] = [difference - 0.03, 0.0, -0.2]
    table["difference_high"] = [difference + 0.03, 0.0, -0.01]
    return table.assign(is_best=table["k_percent"].eq(best))


def dated(events=0.84, versions=0.57, difference=0.09):
    rows = [
        ("docstrings by version", 0.68, versions),
        ("events, drift 0.3, verbatim", 0.75, events),
        ("events, drift 0.3, paraphrased", 0.70, 0.85),
        ("events, two versions", 0.59, 0.47),
    ]
    table = pd.DataFrame(rows, columns=["benchmark", "auc", "words_auc"])
    for value, name in (("auc", "ci"), ("words_auc", "words")):
        table[f"{name}_low"], table[f"{name}_high"] = table[value] - 0.12, table[value] + 0.12
    ends = {"difference_low": difference - 0.05, "difference_high": difference + 0.05}
    return table.assign(difference=difference, **ends)


def concluded(*tables):
    return conclusions.lab_conclusion(*tables, k_percent=20.0)


def test_the_lab_concludes_what_its_tables_show(over_bases):
    text = concluded(over_bases, by_copies(), ALL_OPEN, sweep(), dated())
    assert "Over 20 small base models and the rows of one synthetic benchmark, " in text
    assert "held-out rows at every dose (1, 3 and 12 copies): its AUC is 0.65 at 1 copy" in text
    assert "stay at chance (0.52 [0.49, 0.55] and" in text and "read with care" not in text
    assert "changes by +0.05 at 1 copy and by +0.20 at 4 copies compared" in text
    assert "With only 2 models from one base, we conclude nothing" in text
    assert "does not lie above zero for the paper's claims that Min-k% Prob beats perp" in text
    assert "10 % is best on the half" in text and "not shown to be better or worse" in text
    by_version, events = text.split('On "docstrings by version", ')[1].split('On "events')
    assert "have an AUC of 0.57 [0.45, 0.69] and the trained model's score has 0.68" in by_version
    assert "words are not shown to tell old from new" in by_version
    assert "words alone are enough for an AUC of that size" in events
    assert "and did not test whether words and score differ." in events
    assert "in one model, training raises the score's AUC even there (+0.09 [0.04, 0.14])" in events


def test_the_lab_says_the_opposite_where_its_tables_do(over_bases):
    seen = over_bases["model"].eq("dosed") & over_bases["condition"].eq("verbatim")
    other = over_bases.assign(ci_low=np.where(seen, 0.4, 0.6))
    found = trends(0.01, -0.1, -0.1)
    many = by_copies(n_models=5)
    text = concluded(other, many, found, sweep(difference=0.05), dated(0.65, 0.7, -0.2))
    assert "is shown at no dose to tell" in text and "at every dose" not in text
    assert "do not both stay at chance" in text and "read with care" in text
    assert "lies above zero at 1 of 2 doses" in text and "conclude nothing" not in text
    assert "lies above zero for the paper's claim that Min-k% Prob beats perplexity, and" in text
    assert (
        "it does not lie above zero for the paper's claims that longer passages are easier" in text
    )
    assert "so for these models it is better" in text and "not shown to be" not in text
    by_version, events = text.split('On "docstrings by version", ')[1].split('On "events')
    assert "words alone are enough for an AUC of that size" in by_version
    assert "words alone tell old from new, though with a lower AUC" in events
    assert "training lowers the score's AUC" in text and "even there" not in text


def test_the_lab_counts_the_doses_and_says_when_it_cannot_tell(over_bases):
    first = over_bases["copies"].eq(1)
    some = over_bases.assign(ci_low=over_bases["ci_low"].mask(first, 0.4))
    text = concluded(some, by_copies(), ALL_OPEN, sweep(20.0), dated(difference=0.0))
    assert "held-out rows at 2 of 3 doses" in text
    assert "the one that we use (20 %) is best" in text
    assert "whether training changes the score's AUC is inconclusive" in text
    worse = concluded(some, by_copies(), ALL_OPEN, sweep(100.0), dated())
    assert "so for these models it is worse" in worse


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (0.17, "+0.17 [0.12, 0.22] in the raw split, and the intervals overlap, so this one model"),
        (0.02, "so it adds less in the raw split, as it should"),
        (0.40, "so it adds more in the raw split, and leakage does not explain that"),
    ],
)
def test_what_leakage_does_is_read_off_what_training_adds(raw, said):
    table = pd.DataFrame({"difference": [0.19, raw], "before_auc": [0.54, 0.52]})
    ends = {"low": table["difference"] - 0.05, "high": table["difference"] + 0.05}
    table = table.assign(difference_low=ends["low"], difference_high=ends["high"])
    assert said in conclusions.what_leakage_does(table)
