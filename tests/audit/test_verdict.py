"""One function decides: word, share, list and headline agree, whatever the scores are."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from contamination.audit import verdict
from contamination.audit.finding import Finding
from contamination.audit.plan import DCQ, MIN_K, REPLICATION
from contamination.core.verdicts import CONTROL_FAILS, NOT_RUN, OPEN, SHOWN

WORDS = ["harbour", "ship", "salt", "wool", "corn", "iron", "coal", "rice", "town", "sea", "wind"]


def a_file(n, seed):
    """Rows in random order, with texts of one draw."""
    generator = np.random.default_rng(seed)
    texts = [" ".join(generator.choice(WORDS, generator.integers(6, 14))) for _ in range(n)]
    return SimpleNamespace(rows=pd.DataFrame({"index": np.arange(n)[::-1]}), passages=texts)


def an_audit(n=60, n_comparison=60, refusal="", rate=0.1):
    rows, unseen = a_file(n, 0), a_file(n_comparison, 1) if n_comparison else None
    return SimpleNamespace(
        rows=rows,
        unseen=unseen,
        sets=[rows] + [unseen] * bool(unseen),
        refusal=refusal,
        names=("rows", "test"),
        title="rows.jsonl",
        told=SimpleNamespace(false_discovery_rate=rate, seed=0),
        scored_texts=lambda of: of.passages,
    )


def scored(audit, suspected, comparison=()):
    parts = [one.rows.assign(is_unseen=bool(k)) for k, one in enumerate(audit.sets)]
    table = pd.concat(parts, ignore_index=True)
    return Finding("a score", table.assign(score=[*suspected, *comparison]))


def drawn(audit, n_seen, effect, seed=0):
    generator = np.random.default_rng(seed)
    n, n_comparison = len(audit.rows.rows), len(audit.unseen.rows)
    suspected = generator.normal(size=n) + effect * (np.arange(n) < n_seen)
    return scored(audit, suspected, generator.normal(size=n_comparison))


def decide(audit, **findings):
    names = {"min_k": MIN_K, "dcq": DCQ, "replication": REPLICATION}
    found = {names[name]: one for name, one in findings.items()}
    return verdict.decide(audit, "m", "", found)


@pytest.mark.parametrize("n_seen", [0, 6, 20, 60])
@pytest.mark.parametrize("effect", [0.5, 1.5, 5.0])
def test_word_share_list_and_headline_agree(n_seen, effect):
    audit = an_audit()
    for seed in range(3):
        found = decide(audit, min_k=drawn(audit, n_seen, effect, seed))
        (row,) = found.methods.to_dict("records")
        is_shown = found.word == SHOWN
        assert is_shown == (row["verdict"] == SHOWN) == (row["p_adjusted"] <= 0.05)
        assert (
            is_shown == (row["share_at_least"] > 0) == found.says.startswith("m: shown. At least")
        )
        assert is_shown == found.rows["is_listed"].notna().all()
        assert found.rows["is_listed"].eq(True).any() <= is_shown
        assert is_shown or "Do not take" not in found.says


def test_a_third_of_the_rows_is_shown_with_its_share_and_named():
    """Rows of files are in random order: the first twenty scored are rows 59 to 40."""
    audit = an_audit()
    found = decide(audit, min_k=drawn(audit, 20, 5.0))
    assert found.word == SHOWN and 14 <= found.methods["n_at_least"].item() <= 20
    named = found.rows.loc[found.rows["is_listed"], "index"]
    assert {*range(40, 60)} <= {*named} and len(named) <= 24
    assert found.of_list["n_listed"] == len(named)


def test_something_can_be_shown_although_no_row_can_be_named():
    audit = an_audit(n_comparison=20)
    found = decide(audit, min_k=drawn(audit, 60, 1.0))
    assert found.word == SHOWN and found.of_list["n_listed"] == 0
    assert "a list needs at least 29 rows that score above all 20 comparison rows" in found.says


def test_below_twenty_comparison_rows_p_is_given_and_the_verdict_is_open():
    audit = an_audit(n_comparison=19)
    found = decide(audit, min_k=drawn(audit, 60, 5.0))
    assert found.word == OPEN and found.methods["p"].item() < 0.001
    assert "19 comparison rows, and a verdict needs 20" in found.methods["note"].item()


def test_without_comparison_rows_the_verdict_is_open_and_says_what_to_bring():
    audit = an_audit(n_comparison=0)
    found = decide(audit, dcq=scored(audit, np.ones(60)))
    assert found.word == OPEN and found.methods["p"].isna().all()
    assert "Without comparison rows nothing can be shown: name rows" in found.says


def test_files_that_length_tells_apart_are_open_without_a_list():
    audit = an_audit()
    audit.rows.passages = [text * 4 for text in audit.rows.passages]
    found = decide(audit, min_k=drawn(audit, 60, 5.0))
    assert found.word == OPEN and found.rows["is_listed"].isna().all()
    assert found.methods["text_auc"].item() > 0.85
    assert "length and word frequency tell the two files apart" in found.methods["note"].item()


def test_files_that_words_tell_apart_fail_their_control():
    audit = an_audit(refusal="without any model, TF-IDF tells them apart")
    found = decide(audit, min_k=drawn(audit, 60, 5.0), dcq=Finding(why_not=audit.refusal))
    assert found.methods["verdict"].eq(CONTROL_FAILS).all() and found.word == CONTROL_FAILS
    assert found.says == "m: control fails. Without any model, TF-IDF tells them apart."
    assert found.rows["is_listed"].isna().all()


def test_comparison_rows_that_score_higher_are_said():
    audit = an_audit()
    found = decide(audit, min_k=drawn(audit, 60, -1.0))
    assert found.word == OPEN and found.says.endswith("are the two files exchanged?")


def test_tied_scores_show_nothing_and_have_an_interval():
    audit = an_audit()
    found = decide(audit, min_k=scored(audit, np.zeros(60), np.zeros(60)))
    (row,) = found.methods.to_dict("records")
    assert (found.word, row["value"], row["p"]) == (OPEN, 0.5, 1)
    assert row["ci_high"] - row["ci_low"] > 0.15


def test_rows_without_an_answer_are_not_among_the_rows():
    audit = an_audit()
    scores = drawn(audit, 60, 5.0).scores
    half = scores.assign(score=scores["score"].where(np.arange(120) % 2 == 0))
    (row,) = decide(audit, min_k=Finding("s", half)).methods.to_dict("records")
    assert (row["verdict"], row["n"], row["n_comparison"]) == (SHOWN, 30, 30)
    few = scores.assign(score=scores["score"].where(np.arange(120) % 60 < 25))
    found = decide(audit, min_k=Finding("s", few))
    assert found.word == OPEN and "fewer than half" in found.methods["note"].item()
    none = decide(audit, min_k=Finding("s", scores.assign(score=np.nan)))
    assert none.word == NOT_RUN and "no row has a usable answer" in none.says


def test_methods_are_corrected_together_and_the_clearest_names_the_rows():
    audit = an_audit()
    weak = next(
        one
        for one in (drawn(audit, 60, 0.35, seed) for seed in range(50))
        if 0.03 < decide(audit, min_k=one).methods["p"].item() < 0.05
    )
    assert decide(audit, min_k=weak).word == SHOWN
    both = decide(audit, min_k=weak, replication=drawn(audit, 0, 0.0, 7))
    assert both.word == OPEN
    assert "corrected for" not in decide(audit, min_k=weak).says
    clear = decide(audit, min_k=weak, replication=drawn(audit, 20, 6.0))
    assert "corrected for 2 methods" in clear.says
    assert clear.word == SHOWN and clear.of_list["method"] == REPLICATION


def test_a_method_with_too_few_comparison_rows_does_not_weaken_the_others():
    audit = an_audit()
    alone = drawn(audit, 20, 2.0)
    few = drawn(audit, 0, 0.0, 7)
    place = few.scores.index[few.scores["is_unseen"]]
    few.scores.loc[place[19:], "score"] = np.nan
    both = decide(audit, min_k=alone, dcq=few)
    table = both.methods.set_index("method")
    assert table.loc[DCQ, ["p", "p_adjusted"]].isna().tolist() == [False, True]
    assert table.loc[MIN_K, "p_adjusted"] == decide(audit, min_k=alone).methods["p"].item()
    assert "19 comparison rows" in table.loc[DCQ, "note"] and "corrected" not in both.says


# The list and a score of an evaluation


def test_the_score_of_an_evaluation_is_split_by_the_list():
    rows = pd.DataFrame({"index": [0, 1, 2, 3, 4], "is_listed": [True, False, True, False, pd.NA]})
    scores = pd.Series([1.0, 0.0, 1.0, 1.0, 0.0])  # row 4 was not scored by any method
    table = verdict.scores_by_list(scores, rows).set_index("rows")
    assert table["n"].tolist() == [4, 2, 2] and table["value"].tolist() == [0.75, 1.0, 0.5]
    listed = table.loc[verdict.LISTED]
    assert (listed["ci_low"], listed["ci_high"]) == pytest.approx((0.342, 1.0), abs=0.001)  # Wilson
    graded = verdict.scores_by_list(pd.Series([0.2, 0.5, 0.4, 0.7, 0.9]), rows)
    assert graded["value"].tolist() == pytest.approx([0.45, 0.3, 0.6])
    assert graded["ci_low"].iloc[1] == pytest.approx(0.3 - 12.706 * 0.1, abs=0.001)  # t, 1 df
    same = verdict.scores_by_list(pd.Series([0.2] * 5), rows)
    assert same["ci_low"].isna().all()  # no width, and no precision


def test_without_a_list_or_scores_no_score_is_split():
    rows = pd.DataFrame({"index": [0, 1], "is_listed": [pd.NA, pd.NA]})
    assert verdict.scores_by_list(pd.Series([1.0, 0.0]), rows).empty
    rows["is_listed"] = [True, False]
    assert verdict.scores_by_list(pd.Series([np.nan, np.nan]), rows).empty
