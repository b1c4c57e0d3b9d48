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
    assert (compare.distance_in_units(value, printed) == compare.HALFWAY) is tie


def test_every_cell_of_the_two_black_box_papers(recomputed):
    cells = compare.published_vs_recomputed(recomputed)
    assert len(published.printed_cells()) - len(cells) == 6  # DICE's dashes are no numbers
    assert cells["matches"].notna().sum() == 301
    assert cells["matches"].eq(True).sum() == 296
    differing = cells[cells["matches"].eq(False)]
    assert differing["note"].value_counts().to_dict() == {
        Reason.BOTH_MARKS: 2,
        Reason.EXCHANGED: 2,
        Reason.ROUNDED_INPUTS: 1,
    }
    assert set(cells["note"]) <= set(Reason)


def test_table_5_prints_the_scores_of_its_review_exchanged(recomputed):
    cells = compare.published_vs_recomputed(recomputed)
    examples = cells[cells["paper"].eq("Time Travel") & cells["table"].isin(["Table 4", "Table 5"])]
    assert len(examples) == 12
    review = examples[examples["note"].eq(Reason.EXCHANGED)].set_index("metric")
    assert review["published"].to_dict() == {"BLEURT": "0.18", "ROUGE-L": "0.41"}
    assert review["recomputed"].to_dict() == {"BLEURT": 0.41, "ROUGE-L": 0.18}
    assert examples["matches"].eq(True).sum() == 10


def means(table, average="average"):
    """Mean of the printed cells of each row of one of Min-k% Prob's tables, and its average."""
    cells = published.printed_cells()
    cells = cells[cells["paper"].eq("Min-k% Prob") & cells["table"].eq(table)]
    is_average = cells["dataset"].eq("average") | cells["model"].eq("average")
    methods = cells["row"].str.removeprefix("original, ").str.removeprefix("paraphrased, ")
    methods = methods.str.removeprefix("all, ")
    of_cells = cells["value"][~is_average].astype(float).groupby(methods[~is_average]).mean()
    return of_cells, cells["value"][is_average].set_axis(methods[is_average])


@pytest.mark.parametrize("table", ["Table 1", "Table 3", "Table 6", "Table 7", "Table 8"])
def test_averages_of_min_k_follow_from_the_printed_cells(table):
    of_cells, printed = means(table)
    assert len(printed) in (4, 5, 6)
    assert all(compare.matches_printed(of_cells[name], printed[name]) for name in printed.index)


@pytest.mark.parametrize(
    ("table", "said", "found"), [("Table 1", 7.4, 6.4), ("Table 7", 12.2, 9.0)]
)
def test_improvements_in_the_text_are_larger_than_the_cells_give(table, said, found):
    of_cells, _ = means(table)
    gain = 100 * (of_cells["Min-k% Prob"] / of_cells.drop("Min-k% Prob").max() - 1)
    assert round(gain, 1) == found < said


def test_more_than_eighty_times_holds_in_one_setting_of_the_quiz_paper():
    """Of 21; in ten of them replication finds nothing, so that there is no ratio."""
    cells = published.printed_cells().query(
        "paper == 'DCQ' and table in @tables",
        local_dict={"tables": ["Table 1", "Table 2", "Table 3"]},
    )
    keys = ["table", "model", "dataset", "split"]
    cells = cells.assign(arm=cells["row"].where(cells["table"].eq("Table 1"), ""))
    wide = (
        cells[cells["metric"].isin(["rplc_pct", "dcq_max_pct"])]
        .pivot(index=[*keys, "arm"], columns="metric", values="value")
        .astype(float)
    )
    found = wide[wide["rplc_pct"].gt(0)]
    ratio = found["dcq_max_pct"] / found["rplc_pct"]
    assert (len(wide), len(found)) == (21, 11)
    assert ratio.round(1).nlargest(2).tolist() == [87.0, 71.0] and round(ratio.min(), 1) == 3.3


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
    assert summary["n_printed"].sum() == published.printed_cells()["value"].ne("").sum()
    assert (summary["n_recomputed"] == summary["n_matching"] + summary["n_differing"]).all()
