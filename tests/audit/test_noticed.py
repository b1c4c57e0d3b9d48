"""What an audit would have noticed: the largest tabulated sizes that are not above its own."""

import re
from itertools import product

import pandas as pd
import pytest
from notebook_files import ROOT, script

from contamination.audit import power
from contamination.audit.plan import DCQ, MIN_K, RANKING, REPLICATION
from contamination.core import storage


@pytest.mark.parametrize(
    ("n", "m", "sizes"), [(60, 60, (60, 60)), (400, 90, (60, 60)), (59, 30, (30, 20))]
)
def test_the_largest_sizes_that_are_not_above_ones_own_are_quoted(n, m, sizes):
    rows = [
        (MIN_K, *size, copies, noticed, noticed + 0.1 * (copies > 1))
        for size in ((30, 20), (60, 60))
        for copies, noticed in ((16, 0.8), (4, size[0] / 200), (1, 0.1))
    ]
    columns = ["method", "n", "n_comparison", "copies", "lowest", "highest"]
    table = pd.DataFrame(rows, columns=columns)
    quoted = f"{sizes[0]} rows and {sizes[1]} comparison rows"
    if sizes != (n, m):
        quoted = f"measured with {quoted}, fewer than here"
    assert power.describe(table, MIN_K, n, m) == (
        f"{MIN_K}, {quoted}: seen sixteen times in 80 to "
        f"90 %, four times in {sizes[0] / 2:.0f} to {sizes[0] / 2 + 10:.0f} % and once in 10 % of "
        "audits."
    )
    assert "not measured" in power.describe(table, MIN_K, 29, m)
    assert "not measured" in power.describe(table, "no method", n, m)


PAGE = (ROOT / "docs/audit.md").read_text()


def test_the_page_has_the_numbers_of_the_simulation():
    simulated = storage.read_csv(ROOT / "docs/audit_simulation.csv")
    of_min_k = simulated[simulated["method"].eq(MIN_K) & simulated["copies"].gt(0)]
    for (n, m), share in product(((30, 20), (60, 60), (90, 180)), (0.1, 1 / 3, 2 / 3)):
        rows = of_min_k[of_min_k["n"].eq(n) & of_min_k["n_comparison"].eq(m)]
        rows = rows[(rows["share"] - share).abs() < 0.01]
        cells = [
            " / ".join(f"{100 * one:.0f}" for one in rows.loc[rows["copies"].eq(c), "shown"])
            for c in (16, 4, 1)
        ]
        assert f"| {n}, {m} | {100 * share:.0f} % | {' % | '.join(cells)} % |" in PAGE
    quoted = script("audit_simulation").noticed_table(simulated)
    assert {*quoted["method"]} == {DCQ, REPLICATION, RANKING, MIN_K} and len(quoted) == 4 * 3 * 3
    pd.testing.assert_frame_equal(storage.read_csv(power.PATH), quoted, check_dtype=False)
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
    # The notebook names the file, and the command calls it sample.
    seen = re.search(r"At least \d+ of \d+ rows of sample\.jsonl \(\d+ %\) were seen", says)[0]
    assert seen.replace("sample.jsonl", "sample test") in head
    assert re.search(r"\d+ of \d+ rows are listed as seen", says)[0] in head
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
