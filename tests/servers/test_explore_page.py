"""The page to play with in a browser: every control, the keyboard, no request."""

import json
import re

import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.study.power import power

pytestmark = pytest.mark.servers

PAGE = ROOT / "docs/explore.html"
TABLES = ROOT / "outputs/reference/demo/tables"
NAMED = re.compile(r"catches ([\d.]+) of 100 seen rows and accuses ([\d.]+) of 100 held-out rows")
EXPERIMENTS = ("quiz", "dial", "clean", "rows")


class Visit:
    """The page in a window of its own, and what it complained about or asked for."""

    def __init__(self, browser):
        self.page = browser.new_page(reduced_motion="reduce")
        self.complaints, self.asked = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(PAGE.as_uri())

    def play(self):
        """Take the quiz, always the first text, and answer every prediction."""
        for _ in range(5):
            self.page.locator("#card label").first.click()
            self.page.locator("#card button").click()
            self.page.locator("#card button").click()
        for name in EXPERIMENTS:
            assert not self.page.locator(f"#{name}-panel").is_visible()  # a guess comes first
            self.page.locator(f".guess[data-of={name}] button").click()

    def choose(self, box, value):
        self.page.locator(f"#{box} input[value='{value}']").check()

    def text(self, name):
        return " ".join(self.page.locator(f"#{name}").inner_text().split())


@pytest.fixture
def visit(browser):
    visit = Visit(browser)
    yield visit
    assert visit.complaints == [] and visit.asked == [PAGE.as_uri()]
    visit.page.close()


def table(name):
    return pd.read_csv(TABLES / f"{name}.csv")


def test_the_dial_shows_the_numbers_of_the_tables(visit):
    visit.play()
    names = ("pretraining_detection", "pretraining_controls")
    aucs = pd.concat([table(name) for name in names]).set_index(["models", "detector", "copies"])
    rates = table("pretraining_tpr").set_index(["models", "detector", "copies", "fpr"])
    parts = table("pretraining_timing").set_index(["models", "detector", "part"])
    detectors = visit.page.locator("#dial-detector option").all_inner_texts()
    drawings = set()
    for size in ("small", "larger"):
        visit.choose("dial-size", size)
        for detector in detectors:
            visit.page.select_option("#dial-detector", detector)
            for copies in (16, 4, 1):
                visit.choose("dial-copies", copies)
                row = aucs.loc[size, detector, copies]
                assert visit.text("dial-auc") == f"AUC {row.auc:.2f}"
                interval = f"95 % interval {row.ci_low:.2f} to {row.ci_high:.2f}"
                assert visit.text("dial-interval") == interval
                for at, fpr in ((0, 0.01), (2, 0.05)):
                    visit.page.locator("#dial-accused").fill(str(at))
                    if (size, detector, copies, fpr) in rates.index:
                        row = rates.loc[size, detector, copies, fpr]
                        shown = NAMED.search(visit.text("dial-caught")).groups()
                        # Halves may be rounded up or down.
                        expected = pytest.approx([100 * row.tpr, 100 * row.fpr_found], abs=0.0501)
                        assert [*map(float, shown)] == expected
                drawings.add(visit.page.locator("#dial-chart").inner_html())
                assert visit.page.locator("#dial-place").is_disabled() == (copies != 1)
            for part in "12345":
                visit.page.select_option("#dial-place", part)
                if (size, detector, part) in parts.index:
                    auc = parts.loc[(size, detector, part), "auc"]
                    assert visit.text("dial-auc") == f"AUC {auc:.2f}"
            visit.page.select_option("#dial-place", "")
    # Each setting has a drawing of its own; length scores rows of both sizes of models alike.
    assert len(drawings) == 3 * (2 * len(detectors) - 1)


def test_false_alarms_are_counted_as_in_the_tables(visit):
    visit.play()
    length, shift = table("pretraining_length"), table("pretraining_shift")
    for detector in visit.page.locator("#clean-detector option").all_inner_texts():
        visit.page.select_option("#clean-detector", detector)
        stored = length[length["detector"].eq(detector)]
        shares = [*stored["rate_longer"][::-1], *stored["rate_shorter"][1:]]
        expected = {"length": [(stored["n_pairs"].iloc[0], share) for share in shares]}
        for row in shift.query("shift == 'date' and detector == @detector").itertuples():
            expected["date"] = [(row.n_sets, row.rate_b), (row.n_sets, row.rate_a)]
        assert visit.page.locator("#clean-kind [value=date]").is_enabled() == ("date" in expected)
        for kind, of in expected.items():
            visit.choose("clean-kind", kind)
            for at, (n, share) in enumerate(of):
                visit.page.locator("#clean-amount").fill(str(at))
                assert visit.text("clean-text").startswith(f"{n * share:.0f} of {n} audits accuse")
                assert visit.page.locator("#dots i.on").count() == round(n * share)
                assert visit.page.locator("#dots i").count() == n
        visit.choose("clean-kind", "length")


def test_power_is_that_of_the_study(visit):
    visit.play()
    stored = table("pretraining_rows").set_index(["models", "detector", "copies"])
    for detector in visit.page.locator("#rows-detector option").all_inner_texts():
        visit.page.select_option("#rows-detector", detector)
        for size in ("small", "larger"):
            visit.choose("rows-size", size)
            for copies in (1, 4, 16):
                visit.choose("rows-copies", copies)
                row = stored.loc[size, detector, copies]
                for n in (7, 60, 200, 3000):
                    visit.page.locator("#rows-n").fill(str(n))
                    of_100 = f"{100 * float(power(row.auc, n)):.0f} of 100 audits"
                    assert f"With {n:,} rows of each kind, {of_100} find" in visit.text("rows-text")
                assert f"You need {row.rows_needed:,.0f} rows" in visit.text("rows-text")
    for wrong in ("", "1", "20000"):
        visit.page.locator("#rows-n").fill(wrong)
        assert visit.text("rows-text").startswith("Type a whole number")


def test_it_is_played_by_the_keyboard_alone(visit):
    page, key = visit.page, visit.page.keyboard
    cards = json.loads(page.locator("#data").text_content())["quiz"]["cards"]

    def focus_on(selector):
        for _ in range(60):
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                return
            key.press("Tab")
        raise AssertionError(f"the Tab key does not reach {selector}")

    for card in cards:
        focus_on("#card input")
        key.press("Space")
        for _ in range(card["original"]):
            key.press("ArrowDown")
        key.press("Enter")  # picks the text
        assert visit.text("card .said") == "Right."
        key.press("Enter")  # the next card
    assert visit.text("score").startswith("You found 5 of 5 originals.")
    for name in EXPERIMENTS:
        focus_on(f"#guess-{name}")
        key.press("ArrowRight")
        guess = page.locator(f"output[for=guess-{name}]").inner_text()
        focus_on(f".guess[data-of={name}] button")
        key.press("Space")
        said = page.evaluate("document.activeElement.textContent")  # is read out
        assert said.startswith(f"You said {guess}. It is ")
    page.locator("h1").click()
    for radio, output in (("dial-copies", "dial-auc"), ("dial-size", "dial-auc")):
        before = visit.text(output)
        focus_on(f"#{radio} input")
        key.press("ArrowRight")
        assert visit.text(output) != before
    for slider, output in (("dial-accused", "dial-caught"), ("clean-amount", "clean-text")):
        before = visit.text(output)
        focus_on(f"#{slider}")
        key.press("ArrowRight")
        assert visit.text(output) != before
    focus_on("#rows-n")
    key.type("9")
    assert visit.text("rows-text").startswith("With 9 rows")  # the Tab key selects what stood there
