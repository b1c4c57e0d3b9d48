"""What docs/audit.md says of lists of rows is what the measured audits carry."""

import pandas as pd
from notebook_files import ROOT, script

lists = script("measured_lists")
FOUND = pd.read_csv(lists.TABLE)


def test_the_page_shows_the_measured_audits():
    page = (ROOT / "docs/audit.md").read_text()
    shown = page.partition(lists.MARKS[0])[2].partition(lists.MARKS[1])[0]
    assert shown == lists.page_text(FOUND)


def test_every_model_was_audited_in_ten_assignments_and_four_ways():
    counts = FOUND.groupby(["model", "copies", "comparison", "form"]).size()
    assert (counts == 10).all() and len(counts) == 5 * 4


def test_the_sentences_follow_the_table():
    said = lists.summarize_lists(FOUND)
    assert "is shown to exceed 10 %" in said and "none of 100 audits" in said
    assert "Lists find few seen rows" in said and "an empty list is no sign" in said
    same = FOUND["comparison"].eq(lists.SAME)
    wrong = FOUND.assign(n_listed=same * 10, n_false=same * 5, has_list=True)
    other = lists.summarize_lists(wrong)
    assert (
        "False names exceed 10 % in 10 of 10 lines" in other and "100 of 100 audits give" in other
    )
    good = FOUND.assign(n_listed=same * FOUND["n_seen"], n_false=0)
    assert "The best lists find 100 % of the seen rows" in lists.summarize_lists(good)
