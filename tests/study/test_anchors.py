"""Published AUCs by number of copies: each has a source, and is a number that can be one."""

import pandas as pd
from notebook_files import ROOT

from contamination.study.figures import STAGES

PUBLISHED = ROOT / "src/contamination/data/published"
ANCHORS = pd.read_csv(PUBLISHED / "anchors.csv", dtype={"arxiv": str})


def test_every_anchor_names_where_it_was_read():
    assert ANCHORS["arxiv"].str.fullmatch(r"\d{4}\.\d{5}").all()
    # A place in the paper, or a file of a repository at a commit.
    place = r"arXiv [\d.]+(?:v\d+)?, (?:abstract|Table \d+)|github\.com/\S+ [0-9a-f]{8}, \S.+"
    assert ANCHORS["source"].str.fullmatch(place).all()
    assert ANCHORS[["paper", "model", "where", "data", "method", "note"]].notna().all(axis=None)


def test_every_anchor_is_an_auc_of_a_model_that_saw_its_rows():
    assert ANCHORS["auc"].between(0, 1).all()
    assert ANCHORS["copies"].ge(1).all() and ANCHORS["parameters"].gt(0).all()
    assert set(ANCHORS["stage"]) == set(STAGES)
    with_ends = ANCHORS.dropna(subset=["ci_low"])
    assert (with_ends["ci_low"] < with_ends["auc"]).all()
    assert (with_ends["auc"] < with_ends["ci_high"]).all()
    assert ANCHORS["ci_high"].notna().eq(ANCHORS["ci_low"].notna()).all()


def test_the_papers_own_table_is_quoted_rightly():
    """The package has Table 4 of arXiv:2310.16789 a second time, among the printed cells."""
    path = PUBLISHED / "published_min_k_dice.csv"
    printed = pd.read_csv(path).query("paper == 'Min-k% Prob' and table == 'Table 4'")
    printed = printed.assign(is_raised=printed["setting"].str.contains("1e-4"))
    quoted = ANCHORS[ANCHORS["source"].eq("arXiv 2310.16789, Table 4")]
    quoted = quoted.assign(is_raised=quoted["note"].str.startswith("learning rate 1e-4"))
    keys = ["is_raised", "dataset"]
    both = printed.merge(quoted.rename(columns={"data": "dataset"}), on=keys, how="outer")
    assert len(both) == 10 and both["value"].astype(float).eq(both["auc"]).all()
