"""The mini-benchmarks: exchangeable groups, disjoint parts, right answers.

The tests for a give-away use 2,000 groups of five per benchmark: chance is 0.2,
and a rule fails the test if an exact two-sided binomial test rejects chance at
0.001 divided by the number of tests made (45: three rules on 15 benchmarks).
The draws are seeded, so a test that passes keeps passing.
"""

import operator

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binomtest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from wordfreq import zipf_frequency

from contamination.data import partitions
from contamination.lab import grammar
from contamination.lab.grammar import BENCHMARKS, OTHER_DISTRIBUTIONS, event_articles

N_GROUPS = 2_000
WORD = r"\w+"
NAMES = sorted(BENCHMARKS)
ALPHA = 0.001 / (3 * len(NAMES))


def words_of_groups(name: str, naturalness: float, n_groups: int) -> tuple[csr_matrix, list[str]]:
    """Word counts, five rows a group with the original first, and the vocabulary."""
    benchmark = BENCHMARKS[name]
    groups = grammar.draw_groups(benchmark, n_groups, seed=11, part="test", naturalness=naturalness)
    assert groups["option"].tolist() == [0, 1, 2, 3, 4] * n_groups
    texts = groups[benchmark.columns[0]].str.cat(
        [groups[column] for column in benchmark.columns[1:]], sep=" "
    )
    assert texts.is_unique
    vectorizer = CountVectorizer(token_pattern=WORD, dtype=np.float64)
    counts = vectorizer.fit_transform(texts)
    return counts.tocsr(), vectorizer.get_feature_names_out().tolist()


def share_found(scores: np.ndarray) -> int:
    """In how many groups the original has the highest score; ties are broken by lot."""
    lots = np.random.default_rng(5).random(scores.shape)
    best = scores.max(axis=1, keepdims=True)
    return int((np.argmax(np.where(np.isclose(scores, best), lots, -1), axis=1) == 0).sum())


def by_classifier(counts: csr_matrix, vocabulary: list[str]) -> np.ndarray:
    """Naive Bayes of the words, taught on one half of the groups, asked about the other."""
    is_original = np.arange(counts.shape[0]) % 5 == 0
    half = np.arange(counts.shape[0]) < counts.shape[0] // 2
    scores = np.empty(counts.shape[0])
    for taught in (half, ~half):
        model = MultinomialNB(fit_prior=False).fit(counts[taught], is_original[taught])
        log_odds = model.feature_log_prob_[1] - model.feature_log_prob_[0]
        scores[~taught] = counts[~taught] @ log_odds
    return scores.reshape(-1, 5)


def by_frequency(counts: csr_matrix, vocabulary: list[str]) -> np.ndarray:
    """Mean frequency of the words in English."""
    zipf = np.array([zipf_frequency(word, "en") for word in vocabulary])
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    return ((counts @ zipf) / lengths).reshape(-1, 5)


def by_centrality(counts: csr_matrix, vocabulary: list[str]) -> np.ndarray:
    """Mean share of words in common with the other four options."""
    present = (counts > 0).astype(float)
    sizes = np.asarray(present.sum(axis=1)).reshape(-1, 5)
    scores = np.zeros((counts.shape[0] // 5, 5))
    options = [present[option::5] for option in range(5)]
    for one in range(5):
        for other in range(5):
            if one != other:
                common = np.asarray(options[one].multiply(options[other]).sum(axis=1)).ravel()
                scores[:, one] += common / (sizes[:, one] + sizes[:, other] - common)
    return scores


@pytest.mark.parametrize("name", NAMES)
def test_interchangeable_groups_do_not_give_their_original_away(name):
    counts, vocabulary = words_of_groups(name, 0.0, N_GROUPS)
    for rule in (by_classifier, by_frequency, by_centrality):
        n_found = share_found(rule(counts, vocabulary))
        p_value = binomtest(n_found, N_GROUPS, 0.2).pvalue
        assert p_value > ALPHA, f"{rule.__name__} finds {n_found} of {N_GROUPS}"


@pytest.mark.parametrize("name", NAMES)
def test_natural_groups_have_their_original_as_centre(name):
    n = 400
    counts, vocabulary = words_of_groups(name, 1.0, n)
    assert share_found(by_centrality(counts, vocabulary)) > 0.5 * n
    # Rarer words in the paraphrases show too.
    assert share_found(by_frequency(counts, vocabulary)) > 0.3 * n


def test_the_originals_do_not_depend_on_the_dial_or_the_number_of_paraphrases():
    benchmark = BENCHMARKS["grade_school"]
    alone = grammar.draw_instances(benchmark, 50, seed=3, part="train")
    for naturalness in (0.0, 0.5, 1.0):
        groups = grammar.draw_groups(benchmark, 50, 3, "train", naturalness=naturalness)
        originals = groups[groups["option"] == 0].reset_index(drop=True)
        pd.testing.assert_frame_equal(originals[alone.columns], alone)


def test_a_quarter_turn_of_the_dial_is_seen_less_than_a_full_one():
    benchmark = BENCHMARKS["topics"]
    found = []
    for naturalness in (0.0, 0.5, 1.0):
        groups = grammar.draw_groups(benchmark, 500, 1, "test", naturalness=naturalness)
        counts = CountVectorizer(token_pattern=WORD).fit_transform(groups["text"])
        found.append(share_found(by_centrality(counts, [])))
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize("name", NAMES)
def test_parts_never_overlap_and_hold_a_million_instances(name):
    benchmark = BENCHMARKS[name]
    assert grammar.count_instances(benchmark) >= 10**6 * len(grammar.PARTS)
    seen = set()
    for part in grammar.PARTS:
        for seed in (0, 1):
            rows = grammar.draw_groups(benchmark, 100, seed, part, n_paraphrases=1)
            texts = {
                partitions.format_instance(row, benchmark.columns) for _, row in rows.iterrows()
            }
            assert len(texts) == 200
            if seed == 0:
                assert seen.isdisjoint(texts)
                of_part = texts
        seen |= of_part | texts


def test_a_tiny_grammar_is_counted_and_used_up():
    template = grammar.Template(
        name="tiny",
        fields={"text": "{n} {thing} and {thing_2}"},
        facts={"n": tuple(range(10))},
        wording={"thing": ("cats", "dogs"), "unused": ("a", "b")},
    )
    tiny = grammar.Benchmark("tiny", "", (template,))
    assert grammar.count_instances(tiny) == 10 * 2 * 2
    # Forty instances over five parts: one part at least holds fewer than nine.
    with pytest.raises(ValueError, match=r"cannot give \d+ more distinct texts"):
        for part in grammar.PARTS:
            assert grammar.draw_instances(tiny, 9, 0, part)["text"].is_unique


def test_numbers_label_and_answer_stay_over_a_group():
    fixed = ["label", "answer", "summary", "era"]
    for benchmark in BENCHMARKS.values():
        groups = grammar.draw_groups(benchmark, 40, seed=2, part="validation")
        groups["numbers"] = groups[benchmark.columns[0]].str.findall(r"\d+").str.join(" ")
        for column in ["numbers", *(column for column in fixed if column in benchmark.columns)]:
            of_original = groups.groupby("group")[column].transform("first")
            assert (groups[column] == of_original).all(), (benchmark.name, column)


@pytest.mark.parametrize(
    "benchmark",
    [
        BENCHMARKS["grade_school"],
        BENCHMARKS["harder_numbers"],
        BENCHMARKS["one_step"],
        *OTHER_DISTRIBUTIONS,
    ],
    ids=lambda benchmark: benchmark.name,
)
def test_every_step_of_an_answer_is_true_and_the_last_one_is_the_answer(benchmark):
    signs = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
    for row in grammar.draw_instances(benchmark, 200, seed=4, part="test").itertuples():
        *steps, last = row.answer.split("\n")
        for step in steps:
            left, sign, right, _, result = step.split()
            assert signs[sign](int(left), int(right)) == int(result) >= 0
        assert last == f"#### {result}"


def test_a_question_holds_the_numbers_its_answer_needs():
    row = {"a": 3, "b": 4, "left": 5}
    spend = next(t for t in BENCHMARKS["grade_school"].templates if t.name == "spend")
    assert spend.derive(row) == {
        "cost": 12,
        "budget": 17,
        "answer": "3 * 4 = 12\n17 - 12 = 5\n#### 5",
    }


def test_one_step_problems_stay_within_what_a_small_model_can_learn():
    rows = grammar.draw_instances(BENCHMARKS["one_step"], 300, seed=0, part="train")
    results = rows["answer"].str.extract(r"#### (\d+)")[0].astype(int)
    assert results.max() <= 81
    assert (rows["answer"].str.count("\n") == 1).all()


def test_drift_is_the_only_difference_between_the_eras():
    def share_with_year(drift: float) -> float:
        rows = grammar.draw_instances(event_articles(drift), 400, seed=0, part="train")
        return rows["text"].str.contains(r"in 20\d\d").mean()

    assert share_with_year(0.0) == 0
    assert share_with_year(1.0) == 1
    assert 0.2 < share_with_year(0.3) < 0.4
    rows = grammar.draw_instances(event_articles(1.0), 400, seed=0, part="train")
    years = rows["text"].str.extract(r"in (20\d\d)")[0].astype(int)
    assert (years[rows["era"] == "older"] < 2016).all()
    assert (years[rows["era"] == "newer"] > 2021).all()


def test_words_are_listed_from_frequent_to_rare():
    for benchmark in BENCHMARKS.values():
        for template in benchmark.templates:
            for name, words in template.wording_slots().items():
                if name in template.weights:
                    continue
                frequencies = [zipf_frequency(word, "en") for word in words]
                assert len(set(words)) == len(words)
                assert frequencies == sorted(frequencies, reverse=True), (benchmark.name, name)
