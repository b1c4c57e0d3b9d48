"""The page to play with has the numbers of the stored tables and of the ledger."""

import json
import re

import nbformat
import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.study import pretraining
from contamination.study.scores import read_scores

PAGE = ROOT / "docs/explore.html"
REFERENCE = ROOT / "outputs/reference/demo"
DATA = re.compile(r'(?<=id="data">)[^<]+')
MIN_K = "Min-k% Prob"


def table(name):
    return pd.read_csv(REFERENCE / f"tables/{name}.csv")


@pytest.fixture(scope="module")
def page():
    return json.loads(DATA.search(PAGE.read_text())[0])


def near(value):
    return pytest.approx(value, abs=1e-6)


def test_the_page_is_its_template_small_and_alone():
    text = PAGE.read_text()
    assert DATA.sub("{{data}}", text) == (ROOT / "scripts/explore_page.html").read_text()
    assert PAGE.stat().st_size < 1e6
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", DATA.sub("", text))


def test_cards_are_those_of_the_lesson_and_shares_those_of_its_tables(page):
    lesson = nbformat.read(REFERENCE / "notebooks/02_dcq.ipynb", as_version=4)
    printed = "".join(o.get("text", "") for cell in lesson.cells for o in cell.get("outputs", []))
    printed = " ".join(printed.split())  # the lesson wraps its lines
    for number, card in enumerate(page["quiz"]["cards"], start=1):
        texts = " ".join(f"{letter}) {t}" for letter, t in zip("ABCD", card["texts"], strict=True))
        assert f"Quiz {number} {texts}" in printed
    key = re.findall(r"<td>\d</td><td>([A-D])</td>", str(lesson))
    assert ["ABCD"[card["original"]] for card in page["quiz"]["cards"]] == key[:5]
    gpt4 = table("dcq_published").query("model == 'GPT-4'")["max_pct"].mean()
    rules = table("dcq_controls").query("model == 'GPT-4'").groupby("control")["max_pct"].mean()
    assert page["quiz"]["gpt4"] == near(gpt4) and page["quiz"]["rules"] == near(rules.to_dict())


@pytest.mark.parametrize("size", ["small", "larger"])
def test_the_dial_has_the_aucs_and_rates_of_the_tables(page, size):
    of, names = page["dial"]["models"][size], ("pretraining_detection", "pretraining_controls")
    aucs = pd.concat([table(name) for name in names]).query("models == @size")
    aucs = aucs.set_index(["detector", "copies"])
    parts = table("pretraining_timing").query("models == @size").set_index(["detector", "part"])
    rates = (
        table("pretraining_tpr").query("models == @size").set_index(["detector", "copies", "fpr"])
    )
    n_checked = 0
    for detector, found in of.items():
        for name, group in found["groups"].items():
            copies, _, part = name.partition("/")
            key, stored = ((detector, part), parts) if part else ((detector, int(copies)), aucs)
            if key in stored.index:
                ends = stored.loc[key, ["auc", "ci_low", "ci_high"]].tolist()
                assert [group["auc"], group["low"], group["high"]] == near(ends)
                n_checked += 1
        for at, share in enumerate(page["dial"]["shares"]):
            for copies in (1, 4, 16):
                if (detector, copies, share) in rates.index:
                    row = rates.loc[detector, copies, share]
                    assert found["groups"][str(copies)]["caught"][at] == near(row["tpr"])
                    assert found["accused"][at] == near(row["fpr_found"])
                    n_checked += 1
    # AUCs of ten detectors by copies and of three by fifths, and rates of eight detectors.
    assert n_checked == 10 * 3 + 3 * 5 + 8 * 3 * 2


def test_histograms_count_the_rows_of_the_ledger(page):
    frame = read_scores(pretraining.NAME).query(
        "detector == @MIN_K and pool == 'rows' and model == @pretraining.PRETRAINED"
    )
    held_out = frame[frame["copies"].eq(0)].groupby(["base_seed", "benchmark"])["score"]
    ends = frame.join(held_out.agg(m="mean", s=lambda of: of.std(ddof=0)), on=held_out.keys)
    bar = np.floor(((ends["score"] - ends["m"]) / ends["s"] + 4) / 0.25).clip(0, 39).astype(int)
    shown = page["dial"]["models"]["small"][MIN_K]
    for copies, part in ((0, None), (1, None), (16, None), (1, 5)):
        is_asked = frame["copies"].eq(copies)
        if part:
            is_asked &= np.ceil(5 * frame["position"]).eq(part)
        counts = bar[is_asked].value_counts().reindex(range(40), fill_value=0).tolist()
        group = shown["groups"][f"1/{part}" if part else str(copies)] if copies else None
        assert counts == (group["bars"] if group else shown["held_out"])


def test_false_alarms_are_those_of_the_tables(page):
    length, shift = table("pretraining_length"), table("pretraining_shift")
    for detector, found in page["clean"].items():
        stored = length[length["detector"].eq(detector)].set_index("difference")
        for at, difference in ((8, "maximum"), (7, "1.0"), (6, "0.5"), (5, "0.25")):
            n, row = found["length"]["n"], stored.loc[difference]
            assert found["length"]["accused"][at] == near(n * row["rate_shorter"])
            assert found["length"]["accused"][8 - at] == near(n * row["rate_longer"])
        dated = shift.query("detector == @detector and shift == 'date'")
        assert ("date" in found) == (len(dated) == 1)
        for row in dated.itertuples():  # set B is the newer one, so A is older
            assert found["date"]["accused"] == near([60 * row.rate_b, 60 * row.rate_a])


def test_rows_needed_are_those_of_the_table(page):
    stored = table("pretraining_rows")
    for row in stored.itertuples():
        found = page["rows"][row.models][row.detector][str(row.copies)]
        assert found["auc"] == near(row.auc)
        assert (found["needed"] or np.inf) == row.rows_needed
    assert sum(len(of) for of in page["rows"].values()) * 3 == len(stored)
