"""What the lesson and the lab conclude follows their tables, and turns where the tables turn."""

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.core.blind_scores import BAG_OF_WORDS, DATE_RULE
from contamination.core.scores import MIN_K
from contamination.data import published
from contamination.lab.benchmarks import DEFAULT_DRIFT, event_articles
from contamination.lab.grammar import draw_groups
from contamination.min_k import checks, conclusions, wikimia_tables


def training_of(change, half=0.03):
    row = {"before": 0.53, "after": 0.53 + change, "change": change, "n_assignments": 5}
    row["found_pct"] = 40.0
    return pd.DataFrame([row | {"ci_low": change - half, "ci_high": change + half}])


@pytest.fixture(scope="module")
def wikimia():
    return wikimia_tables.wikimia_blind_table(n_resamples=200)


@pytest.fixture(scope="module")
def articles():
    drawn = draw_groups(event_articles(DEFAULT_DRIFT), 400, 0, "test", n_paraphrases=0)
    by_date = drawn["era"].eq("older").to_numpy()
    by_chance = np.random.default_rng([0, 40]).permutation(by_date)
    texts = drawn["text"].tolist()
    return checks.words_by_label(texts, by_chance, by_date, n_resamples=200)


PAPER_AUC = wikimia_tables.printed_average().loc[MIN_K, "paper_auc"]


def by_score(low=0.81, high=0.89):
    names = list(checks.LABELLED_BY[:2])
    rows = pd.DataFrame({"who is a member": names * 2, "auc": [0.5, 0.53, 0.54, (low + high) / 2]})
    rows["trained_on"] = np.repeat(["no article", "100 other articles"], 2)
    return rows.assign(ci_low=[0.44, 0.47, 0.48, low], ci_high=[0.56, 0.59, 0.6, high])


@pytest.mark.parametrize("ends", [(0.45, 0.55), (0.41, 0.49)])
def test_a_score_that_does_not_follow_the_date_is_not_said_to(wikimia, articles, ends):
    text = conclusions.conclusion(training_of(0.3), wikimia, 0.72, articles, by_score(*ends))
    assert "Min-k% Prob itself is not shown to follow the date" in text
    assert "The date is enough for" not in text and "can give a high AUC" not in text


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


def test_the_lesson_concludes_what_its_tables_show(wikimia, articles):
    text = conclusions.conclusion(
        training_of(0.30), wikimia, float(PAPER_AUC), articles, by_score()
    )
    assert "does respond to training" in text and "from 0.53 to 0.83 over 5" in text
    assert f"at all 4 passage lengths, and that is higher than the {PAPER_AUC}" in text
    lowest = wikimia.loc[wikimia["baseline"] == BAG_OF_WORDS, "auc"].min()
    assert f"AUC of {np.floor(100 * lowest) / 100:.2f} or more" in text
    assert "A high AUC on WikiMIA need not come from training" in text
    assert "A date can be enough for words to tell members from non-members, as the inv" in text
    assert "The date is enough for Min-k% Prob, too: under a model trained on 100 other" in text
    assert "its AUC is 0.85 [0.81, 0.89] if the date decides. Under a model trained on" in text
    assert "no article, it is 0.53 [0.47, 0.59]. So dated labels can give a high AUC" in text
    assert "This could explain the paper's AUC, but we have not shown that it does" in text
    assert text.count("\n\n") == 3  # a paragraph each: training, WikiMIA, the articles, advice


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (-0.3, "in the wrong direction: a step on each member lowers"),
        (0.01, "on each member is inconclusive"),
    ],
)
def test_a_score_that_falls_or_stays_is_not_said_to_respond(wikimia, articles, change, said):
    text = conclusions.conclusion(training_of(change), wikimia, 0.72, articles, by_score())
    assert said in text and "does respond" not in text and "raises" not in text


def test_words_that_do_not_beat_the_paper_leave_its_result_alone(wikimia, articles):
    """The AUC alone decides nothing: the lower end of its interval has to lie above the paper's."""
    wide = wikimia.assign(ci_low=0.7)
    text = conclusions.conclusion(training_of(0.3), wide, 0.72, articles, by_score())
    assert "does not overturn the paper's result" in text and "at none of the 4" in text
    assert "need not come from training" not in text
    assert "could explain the paper's AUC" not in text
    one = wikimia["length"].eq(64)
    some = wide.assign(ci_low=wide["ci_low"].mask(one, wikimia["ci_low"]))
    text = conclusions.conclusion(training_of(0.3), some, 0.72, articles, by_score())
    assert "depends on the passage length" in text and "at 1 of 4 lengths" in text


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(-0.1, 0.2, "contains zero"), (-0.3, -0.1, "lies below zero")],
)
def test_articles_without_a_difference_do_not_explain(wikimia, articles, low, high, said):
    gap = articles["who is a member"].eq(checks.LABELLED_BY[2])
    other = articles.assign(ci_low=articles["ci_low"].mask(gap, low))
    other["ci_high"] = articles["ci_high"].mask(gap, high)
    text = conclusions.conclusion(training_of(0.3), wikimia, 0.72, other, by_score())
    assert "do not show that a date is enough for such an AUC" in text and said in text
    assert "show how that can" not in text


# What a table of the lesson shows


@pytest.mark.parametrize(
    ("gap", "said", "unusual"),
    [(1.0, " 0.0 % of 10,000", True), (0.0, " 100.0 % of 10,000", False)],
)
def test_the_gap_before_training_is_compared_with_random_assignments(gap, said, unusual):
    """Members lie above all non-members, or both groups have the same scores."""
    is_member = np.repeat([True, False], 20)
    before = np.tile(np.arange(20.0), 2) + 30 * gap * is_member
    text = conclusions.what_moved(before, before + np.where(is_member, 0.5, -0.2), is_member)
    assert "the members' mean changes by +0.50 and the non-members' by -0.20" in text
    assert f"The gap before training, {30 * gap:+.3f}, is the luck" in text and said in text
    assert ("this assignment is an unusual one" in text) == unusual


def test_words_that_are_years_are_counted(wikimia):
    words = published.wikimia_words()
    rule = wikimia.loc[wikimia["baseline"] == DATE_RULE, "auc"]
    text = conclusions.giveaway(words, wikimia)
    n_years = words["word"].str.isdigit().mul(words["word"].str.len() == 4).sum()
    assert text.startswith(f"{n_years} of these 20 words are years.") and n_years > 1
    assert f"Its AUC is {rule.min():.2f} to {rule.max():.2f} over the 4 passage lengths" in text
    one = words.assign(word=["2014", *["was"] * 19])
    assert conclusions.giveaway(one, wikimia).startswith("1 of these 20 words is a year.")


def test_what_the_words_of_the_articles_show_turns_with_their_intervals(articles):
    text = conclusions.words_result(articles)
    assert "If chance decides, the interval contains 0.5, as it should." in text
    assert "If the date decides, the words tell members from non-members, although" in text
    text = conclusions.words_result(articles.assign(ci_low=0.4, ci_high=0.6))
    assert "as it should" in text and "are not shown to tell members" in text
    assert "so the check fails" in conclusions.words_result(articles.assign(ci_low=0.6))


def test_what_the_score_of_the_articles_shows_turns_with_its_intervals():
    text = conclusions.score_result(by_score())
    assert "If chance decides, both intervals contain 0.5. If the date decides, only the" in text
    assert "only the second interval lies above 0.5. The second model has seen" in text
    assert "both intervals lie above 0.5" in conclusions.score_result(
        by_score().assign(ci_low=[0.4, 0.51, 0.4, 0.8])
    )
    text = conclusions.score_result(by_score(0.45, 0.55))
    assert "the score need not follow the date" in text and "has seen" not in text
    assert "so the check fails" in conclusions.score_result(by_score().assign(ci_low=0.6))


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
