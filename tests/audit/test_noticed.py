"""What an audit would have noticed: the largest tabulated sizes that are not above its own."""

import re
from itertools import product

import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.audit import power
from contamination.audit.plan import DCQ, MIN_K, RANKING, REPLICATION
from contamination.core import storage


def a_table():
    rows = [
        (MIN_K, model, n, m, share, copies, 100, noticed_ + (model == "large") / 10)
        for model in ("small", "large")
        for n, m in ((30, 20), (60, 60))
        for share in (0.1, 0.3333)
        for copies, noticed_ in ((16, 0.8), (4, 0.3), (1, 0.1))
    ]
    columns = ["method", "model", "n", "n_comparison", "share", "copies", "n_draws", "noticed"]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize(
    ("n", "m", "sizes"), [(60, 60, (60, 60)), (400, 90, (60, 60)), (59, 30, (30, 20)), (29, 60, ())]
)
def test_the_largest_sizes_that_are_not_above_ones_own_are_taken(n, m, sizes):
    found = power.of_sizes(a_table(), MIN_K, n, m)
    assert {*zip(found["n"], found["n_comparison"], strict=True)} == ({sizes} if sizes else set())


def test_the_sentence_gives_the_range_over_models_for_a_third_of_the_rows():
    said = power.describe(a_table(), MIN_K, 60, 60)
    assert (
        "seen sixteen times in 80 to 90 %, four times in 30 to 40 % and once in 10 to 20 %" in said
    )
    assert said.startswith(f"{MIN_K}, 60 rows and 60 comparison rows: seen ")
    assert "not measured" in power.describe(a_table(), MIN_K, 10, 60)
    assert "not measured" in power.describe(a_table(), "no method", 60, 60)


def test_the_table_of_the_package_has_every_setting_once():
    table = storage.read_csv(power.PATH)
    keys = ["method", "model", "n", "n_comparison", "share", "copies"]
    assert not table.duplicated(keys).any() and table["noticed"].between(0, 1).all()
    assert {*table["method"]} == {DCQ, REPLICATION, RANKING, MIN_K} and table[
        "model"
    ].nunique() == 2


PAGE = (ROOT / "docs/audit.md").read_text()


def test_the_page_has_the_numbers_of_the_simulation():
    table = storage.read_csv(power.PATH)
    of_min_k = table[table["method"].eq(MIN_K)]
    for (n, m), share in product(((30, 20), (60, 60), (90, 180)), (0.1, 1 / 3, 2 / 3)):
        rows = of_min_k[of_min_k["n"].eq(n) & of_min_k["n_comparison"].eq(m)]
        rows = rows[(rows["share"] - share).abs() < 0.01]
        cells = [
            " / ".join(f"{100 * one:.0f}" for one in rows.loc[rows["copies"].eq(c), "noticed"])
            for c in (16, 4, 1)
        ]
        assert f"| {n}, {m} | {100 * share:.0f} % | {' % | '.join(cells)} % |" in PAGE
    simulated = storage.read_csv(ROOT / "docs/audit_simulation.csv")
    exposed = simulated[simulated["copies"].gt(0)].rename(columns={"scores": "model"})
    exposed = exposed.rename(columns={"shown": "noticed"})[[*table]].reset_index(drop=True)
    pd.testing.assert_frame_equal(exposed, table, check_dtype=False)
    null = simulated[simulated["share"].eq(0)]
    made = null.loc[null["scores"].eq("made"), "shown"]
    assert f"in {100 * made.mean():.1f} % of these audits on average" in PAGE
    assert f"in {100 * made.max():.1f} % in the worst setting" in PAGE
    of_study = null.loc[null["scores"].ne("made"), "shown"].max()
    assert f"at most {100 * of_study:.1f} %" in PAGE
    # What every page of an audit says of itself.
    assert f"{100 * made.mean():.1f} % of them on average" in power.WRONG
    assert f"at most {100 * null['shown'].max():.1f} % in any setting" in power.WRONG
    assert null["shown"].max() <= 0.06 + (0.05 * 0.95 / null["n_draws"].min()) ** 0.5


def test_the_verdict_at_the_head_of_the_page_is_the_stored_one():
    head = PAGE.split("## One command")[0]
    stored = storage.read_csv(ROOT / "outputs/reference/demo/tables/audit_verdicts.csv")
    says = stored.loc[stored["model"].eq("lab:contaminated"), "says"].item()
    seen = re.search(r"At least \d+ of \d+ rows of sample test \(\d+ %\) were seen", says)[0]
    assert seen in head and re.search(r"\d+ of \d+ rows are listed as seen", says)[0] in head
    said = power.describe(storage.read_csv(power.PATH), MIN_K, 60, 60)
    for times in ("sixteen times in", "four times in", "once in"):
        assert re.search(rf"{times} [\d to]+ %", said)[0] in head
    wrong = power.WRONG.split(" (docs/audit.md)")[0].partition("this rule said shown ")[2]
    assert wrong in head


def test_the_page_has_the_audits_of_models_that_were_trained():
    for row in storage.read_csv(ROOT / "docs/audited_models.csv").itertuples():
        seen = f"| {row.model} | {row.n_seen} of {row.n} | {row.passes} | {row.auc:.2f}, "
        (line,) = [one for one in PAGE.splitlines() if one.startswith(seen)]
        assert line.endswith(f" {row.n_listed} ({row.n_listed_seen}) | {row.exit_code} |")
        assert f" | {row.verdict} | " in line
        assert (row.verdict == "shown") == (row.exit_code == 1) == (row.n_at_least > 0)
    shares = storage.read_csv(ROOT / "docs/audited_shares.csv")
    assert shares["n_audits"].eq(10).all() and shares["passes"].unique().tolist() == [1, 4, 16]
    for n_read, shown in shares.groupby("n_read")["n_shown"]:
        assert f"| {n_read} | {' | '.join(map(str, shown))} |\n" in PAGE
    unread = shares[shares["n_read"].eq(0)]
    assert f"({unread['n_shown'].sum()} of {unread['n_audits'].sum()})" in PAGE
    n_listed, n_right = shares[["n_listed", "n_listed_read"]].sum()
    assert f"named {n_listed} items, of which the model had read {n_right}." in PAGE
