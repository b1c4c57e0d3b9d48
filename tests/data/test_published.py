"""The papers' cells: what is in the package, and when a number counts as equal."""

import pytest
from released_tables import recomputed_cells

from contamination.data import published
from contamination.data.published import compare
from contamination.data.published.compare import Reason


@pytest.fixture(scope="module")
def recomputed():
    return recomputed_cells()


def test_released_instances_are_complete():
    dcq = published.released_instances("DCQ")
    answers = dcq.filter(like="answer")
    assert len(dcq) == 1706
    assert answers.ne("").sum().sum() == 7166
    assert set(answers.to_numpy().ravel()) <= set("ABCDE") | {""}
    assert len(published.released_instances("Time Travel")) == 280
    with pytest.raises(ValueError, match='choose "DCQ" or "Time Travel"'):
        published.released_instances("dcq")


def test_printed_cells_have_unique_keys_and_one_spelling():
    cells = published.printed_cells()
    assert not cells.duplicated(compare.CELL_KEYS).any()
    golchin = cells[cells["paper"].isin(["DCQ", "Time Travel"])]
    assert set(golchin["model"]) == set(published.MODELS)
    assert set(published.DCQ_DATASETS) <= set(golchin["dataset"])


@pytest.mark.parametrize(
    ("value", "printed", "matches", "tie"),
    [
        (0.4349, "0.43", True, False),
        (0.435, "0.43", True, True),
        (0.435, "0.44", True, True),
        (0.4351, "0.43", False, False),
        (7.4627, "7.47", False, False),
        (55.625, "55.62", True, True),
        (0.1 + 0.2, "0.3", True, False),
        ("*", "*", True, False),
        ("✓", "✓✓", False, False),
    ],
)
def test_equal_at_the_printed_decimals(value, printed, matches, tie):
    assert compare.matches_printed(value, printed) is matches
    assert compare.is_tie(value, printed) is tie


def test_every_cell_of_the_two_black_box_papers(recomputed):
    cells = compare.published_vs_recomputed(recomputed)
    assert len(cells) == len(published.printed_cells())
    assert cells["matches"].notna().sum() == 289
    assert cells["matches"].eq(True).sum() == 286
    differing = cells[cells["matches"].eq(False)]
    assert differing["note"].value_counts().to_dict() == {
        Reason.BOTH_MARKS: 2,
        Reason.ROUNDED_INPUTS: 1,
    }
    assert set(cells["note"]) <= set(Reason)


def test_the_books_of_table_2_are_printed_and_cannot_be_recomputed(recomputed):
    cells = compare.published_vs_recomputed(recomputed)
    books = cells[(cells["paper"] == "Min-k% Prob") & (cells["table"] == "Table 2")]
    assert books["published"].value_counts().to_dict() == {"100": 7, "99": 9, "98": 4}
    assert books["row"].is_unique and books["matches"].isna().all()
    # A hosted model that nobody can train again: its answers were not released.
    assert set(books["note"]) == {Reason.NOT_RELEASED}
    others = cells[(cells["paper"] == "Min-k% Prob") & (cells["model"] == "LLaMA-7B continued")]
    assert set(others["note"]) == {Reason.NEEDS_MODELS}


def test_a_wrong_value_is_a_difference_without_excuse(recomputed):
    wrong = recomputed.copy()
    is_maximum = wrong["metric"].eq("dcq_max_pct") & wrong["dataset"].eq("IMDB")
    wrong.loc[is_maximum, "recomputed"] = 12.34
    cells = compare.published_vs_recomputed(wrong)
    assert cells["note"].eq(Reason.DIFFERS).sum() == 2


def test_a_cell_that_is_not_printed_is_refused(recomputed):
    stray = recomputed.assign(table="Table 9").head(1)
    with pytest.raises(ValueError, match="no printed cell"):
        compare.published_vs_recomputed(stray)


def test_summary_adds_up(recomputed):
    summary = compare.match_summary(compare.published_vs_recomputed(recomputed))
    assert summary["n_printed"].sum() == len(published.printed_cells())
    assert (summary["n_recomputed"] == summary["n_matching"] + summary["n_differing"]).all()
