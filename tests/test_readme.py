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
    assert f"{n_matching} of {n} equal at the printed decimals" in README
    paired, unpaired, holm = (
        tests[c].sum() for c in ("significant", "significant_unpaired", "significant_holm")
    )
    assert f"{paired} with the paired test" in README
    assert f"{unpaired} with the unpaired test, {holm} after correction" in README
    clean = success.query("model == 'GPT-3.5' and algorithm == 'always clean'")["n_right"].item()
    assert f'always answering "clean" is right in {clean} of 14' in README


def test_reciprocal_counts():
    table = dcq_tables.dcq_reciprocal()
    right, n = table["n_right_best_quiz"].sum(), table["n_replicas"].sum()
    assert f"{right} of {n} replicas" in README
    assert f"{table['expected_if_independent'].sum():.1f} of {n} if" in README


@pytest.mark.mirror
def test_rule_without_memory():
    from contamination.dcq.controls import control_table
    from contamination.dcq.released import released_quizzes

    levels = dcq_tables.dcq_published(20)
    table = control_table(released_quizzes(), levels).query("control == 'word frequency'")
    n_equalled = (table["max_pct"] >= table["paper_max_pct"]).sum()
    assert f"equals or exceeds the model in {n_equalled} of {len(table)} cases" in README
    gpt4 = levels[levels["model"] == "GPT-4"]["max_pct"]
    assert f"recognises {gpt4.min():.0f} to {gpt4.max():.0f} % of a partition" in README


def test_every_notebook_stands_in_the_map_and_every_path_exists():
    for path in NOTEBOOKS:
        assert f"notebooks/{path.name}" in README
    for path in re.findall(r"`((?:params|notebooks)/[\w./]+)`|\]\(([\w./]+)\)", README):
        assert (ROOT / (path[0] or path[1])).exists()


def test_make_lists_every_notebook():
    makefile = (ROOT / "Makefile").read_text()
    for path in NOTEBOOKS:
        assert re.search(rf"^{path.stem}: ## ", makefile, re.M)
