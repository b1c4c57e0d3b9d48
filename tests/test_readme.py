"""The README's numbers are those of the tables."""

import re

import pytest
from notebook_files import NOTEBOOKS, ROOT

from contamination import published
from contamination.dcq import published_tables as dcq_tables
from contamination.published import compare
from contamination.replication import published_tables as replication_tables

README = (ROOT / "README.md").read_text()


def test_match_count():
    tests = replication_tables.replication_published(
        published.released_instances("Time Travel"), 50
    )
    judged = replication_tables.judged_instances(published.released_instances("Time Travel"))
    marks = replication_tables.replication_marks(judged)
    success = replication_tables.replication_success(tests, judged)
    both = [
        dcq_tables.recomputed_cells(dcq_tables.dcq_published(20)),
        replication_tables.recomputed_cells(tests, marks, success),
    ]
    matches = [compare.published_vs_recomputed(cells)["matches"].dropna() for cells in both]
    n_matching, n = sum(m.sum() for m in matches), sum(len(m) for m in matches)
    assert f"{n_matching} of the {n} that can be recomputed" in README
    printed = published.printed_cells()["paper"].isin(["DCQ", "Time Travel"]).sum()
    assert f"(of {printed} printed)" in README
    counts = {name: tests[name].sum() for name in tests if name.startswith("significant")}
    assert f"{counts['significant']} with the paired bootstrap" in README
    assert f"{counts['significant_unpaired']} unpaired" in README
    assert f"{counts['significant_sign_flip']} by sign flips" in README
    holm = counts["significant_holm"], counts["significant_sign_flip_holm"]
    assert f"{holm[0]} (bootstrap) or {holm[1]} (sign flips)" in README
    right = success.set_index(["model", "algorithm", "test"])["n_right"]
    judge = [right[model, "Algorithm 2: GPT-4 ICL", "judge"] for model in published.MODELS]
    assert f"{judge[0]} of 14 partitions of GPT-4, {judge[1]} of 14 of GPT-3.5" in README
    clean = [right[model, "always clean", "constant"] for model in published.MODELS]
    assert f'always answering "clean" is right in {clean[0]} and {clean[1]}' in README


def test_reciprocal_counts():
    table = dcq_tables.dcq_reciprocal()
    right, n = table["n_right_best_quiz"].sum(), table["n_replicas"].sum()
    assert f"{right} of {n} in the best quiz" in README
    assert f"{table['n_right_any_quiz'].sum()} of {n} in at least one" in README
    assert f"{table['expected_if_independent'].sum():.1f} of {n} if" in README


@pytest.mark.mirror
def test_rule_without_memory():
    from contamination.dcq.controls import beyond_rules, control_table
    from contamination.dcq.released import released_quizzes

    levels = dcq_tables.dcq_published(20).query("model == 'GPT-4'")
    table = control_table(released_quizzes(), levels).query("control == 'word frequency'")
    n_equalled = (table["max_pct"] >= table["paper_max_pct"]).sum()
    assert f"equals or exceeds GPT-4 on {n_equalled} of {len(table)} datasets" in README
    low, high = levels["max_pct"].min(), levels["max_pct"].max()
    assert f"recognises {low:.0f} to {high:.0f} % of a partition" in README
    beyond = beyond_rules(released_quizzes(), published.released_instances("DCQ"))
    beyond = beyond.query("model == 'GPT-4' and control == 'word frequency'")
    xsum = beyond.set_index("dataset").loc["XSum", "right_where_rule_wrong_pct"]
    assert f"on XSum GPT-4 is right in {xsum:.0f} %" in README


def test_every_notebook_stands_in_the_map_and_every_path_exists():
    for path in NOTEBOOKS:
        assert f"notebooks/{path.name}" in README
    for path in re.findall(r"`((?:params|notebooks)/[\w./]+)`|\]\(([\w./]+)\)", README):
        assert (ROOT / (path[0] or path[1])).exists()


def test_make_lists_every_notebook():
    makefile = (ROOT / "Makefile").read_text()
    for path in NOTEBOOKS:
        assert re.search(rf"^{path.stem}: ## ", makefile, re.M)
