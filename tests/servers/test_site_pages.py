"""The static site in a browser: every page and every link.

Built by `make site` from notebooks that are executed here and one that this
file writes: what untrusted answers, formulas and wide tables become.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_files import NOTEBOOKS, ROOT
from server_process import ServerProcess

from contamination.core import storage, tables

pytestmark = pytest.mark.servers

EXECUTED = ("00_start_here", "01_data_prep")
OWN = "99_own"
ATTACK = "<script>window.attacked = 1</script><img src=x onerror='window.attacked = 1'> 3 $ or 4 $"
LONG = "word" * 40
EXERCISES = "notebooks/exercises/02_dcq.html"
KAPPA = """def kappa(right, chosen, n):
    if n == chosen:
        raise ValueError("habit leaves nothing open")
    return (right - chosen) / """


def own_notebook():
    """As ``core.run`` leaves one: hostile answers, formulas, a table wider than any page."""
    table = pd.DataFrame([[ATTACK, LONG, *range(30)]], columns=["a", "b", *map(str, range(30))])
    shown = tables.show(table, caption=ATTACK)._repr_html_()
    said = tables.say(ATTACK).data
    outputs = [
        new_output("display_data", data={"text/html": shown, "text/plain": ""}),
        new_output("display_data", data={"text/markdown": said, "text/plain": ""}),
        new_output("stream", name="stdout", text=f"{ATTACK} {LONG}\n"),
    ]
    text = r"""# 99 · Own page

The mean of $n$ tokens, see `partitions.csv` and [the cards](../docs/datasets.md):

$$\frac{1}{n} \sum_{i=1}^{n} \log p(x_i \mid x_{<i})$$
"""
    cells = [new_markdown_cell(text), new_code_cell(f"# {LONG}", outputs=outputs)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def make_site(outputs, cache):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    environment |= {storage.CACHE_VARIABLE: str(cache), "OMP_NUM_THREADS": "1"}
    command = ["make", "site", "PROFILE=smoke", f"OUTPUTS={outputs}"]
    command += [f"NOTEBOOKS={' '.join(EXECUTED)}"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory, lab_cache):
    """An output folder with the site in it."""
    folder = tmp_path_factory.mktemp("smoke")
    (folder / "notebooks").mkdir()
    nbformat.write(own_notebook(), folder / "notebooks" / f"{OWN}.ipynb")
    done = make_site(folder, lab_cache)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def server(outputs, tmp_path_factory):
    serve = [sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1"]
    log = tmp_path_factory.mktemp("log") / "access.log"
    with ServerProcess(
        [*serve, "--directory", str(outputs / "site")], health="/index.html", log_path=log
    ) as server:
        yield server


class Visit:
    """A browser window, and what it complained about or asked of others."""

    def __init__(self, browser, base):
        self.base, self.complaints, self.strangers = base, [], []
        self.page = browser.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{self.page.url}: {message.text}")

    def _asked(self, request):
        if not request.url.startswith((self.base, "data:")):
            self.strangers.append(request.url)

    def links(self):
        """Where the page's links lead on this site, and the names in it that links can lead to."""
        found = self.page.eval_on_selector_all("a[href]", "all => all.map(each => each.href)")
        names = self.page.eval_on_selector_all("[id]", "all => all.map(each => each.id)")
        return {link for link in found if link.startswith(self.base)}, {*names, ""}


class Crawl:
    """All pages that links reach from the start page."""

    def __init__(self, browser, base):
        visit = Visit(browser, base)
        self.links, self.names = {}, {}
        waiting = [f"{base}/index.html"]
        while waiting:
            address = waiting.pop()
            if address in self.names:
                continue
            visit.page.goto(address)
            self.links[address], self.names[address] = visit.links()
            targets = {urldefrag(link)[0] for link in self.links[address]}
            waiting += [target for target in targets if urlsplit(target).path.endswith(".html")]
        self.complaints, self.strangers = visit.complaints, visit.strangers
        visit.page.close()


@pytest.fixture(scope="module")
def crawl(browser, server):
    return Crawl(browser, server.url)


def test_links_reach_every_page(crawl, server, outputs):
    site = outputs / "site"
    pages = [path.relative_to(site) for path in site.rglob("*.html")]
    there = {f"{server.url}/{path}" for path in pages if path.parts[0] != "_static"}
    assert set(crawl.names) == there - {f"{server.url}/search.html"}
    assert {f"{server.url}/notebooks/{path.stem}.html" for path in NOTEBOOKS} <= there


def test_every_internal_link_leads_somewhere(crawl, browser):
    links = {link for found in crawl.links.values() for link in found}
    files = {urldefrag(link)[0] for link in links} - set(crawl.names)
    with browser.new_context() as context:
        assert {file for file in files if context.request.get(file).status != 200} == set()
    lost = set()
    for link in links:
        address, name = urldefrag(link)
        if name and name not in crawl.names[address]:
            lost.add(link)
    assert lost == set()


def test_browser_has_nothing_to_say_and_asks_nobody_else(crawl):
    assert crawl.complaints == []
    assert crawl.strangers == []


class Exercise:
    """The exercise "kappa" of a page, as a student meets it."""

    def __init__(self, page, base):
        page.goto(f"{base}/{EXERCISES}")
        self.editor = page.get_by_label("Your kappa")
        cell = page.locator(".tag_in_browser", has_text='grade("kappa"')
        self.button, self.output = cell.get_by_role("button"), cell.locator("output")

    def check(self, lines):
        """What the page says of these lines."""
        self.editor.fill(lines)
        self.button.click()
        self.until("Check")
        return self.output.inner_text()

    def until(self, label):
        self.button.filter(has_text=re.compile(f"^{label}$")).wait_for(timeout=120_000)


def test_an_exercise_is_checked_in_the_page(browser, server):
    visit = Visit(browser, server.url)
    fetched = []
    visit.page.on("request", lambda request: fetched.append(request.url))
    kappa = Exercise(visit.page, server.url)
    assert not any("pyodide" in address for address in fetched)  # before it is asked for
    assert kappa.check(f"{KAPPA}(n - chosen)") == "kappa: all 7 cases pass.\n"
    assert any("pyodide.asm.wasm" in address for address in fetched)
    wrong = kappa.check(f"{KAPPA}n")
    assert wrong.startswith("kappa: 3 of 7 cases pass.") and "Looks like: denominator" in wrong
    assert "SyntaxError" in kappa.check(f"{KAPPA}(n")
    assert kappa.check("print(1 / 0)").endswith("ZeroDivisionError: division by zero\n")
    kappa.check(KAPPA + "n")
    assert Exercise(visit.page, server.url).editor.input_value() == KAPPA + "n"  # kept, here alone
    assert visit.complaints == [] and visit.strangers == []
    visit.page.close()


def test_a_later_exercise_may_use_an_earlier_one_by_the_keyboard_alone(browser, server):
    page = browser.new_page()
    kappa = Exercise(page, server.url)
    page.get_by_label("Your take_quiz").fill("def fraction(part, whole):\n    return part / whole")
    kappa.editor.fill("")
    kappa.editor.focus()
    for line in ("def kappa(right, chosen, n):", "if n == chosen:", "raise ValueError", "x"):
        page.keyboard.type(line)
        page.keyboard.press("Enter")
    assert kappa.editor.input_value().splitlines()[2:4] == [
        " " * 8 + "raise ValueError",
        " " * 8 + "x",
    ]
    kappa.editor.fill(KAPPA.partition("return")[0] + "return fraction(right - chosen, n - chosen)")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    kappa.until("Check")
    assert kappa.output.inner_text() == "kappa: all 7 cases pass.\n"
    page.close()


def test_an_endless_loop_is_stopped_and_the_page_goes_on(browser, server):
    page = browser.new_page()
    page.clock.install()
    kappa = Exercise(page, server.url)
    for stop in (lambda: page.clock.fast_forward(21_000), kappa.button.click):
        kappa.editor.fill("def kappa(right, chosen, n):\n    while True:\n        pass")
        kappa.button.click()
        kappa.output.filter(has_text="Running").wait_for(timeout=120_000)
        stop()
        kappa.until("Check")
        assert kappa.output.inner_text().startswith("Stopped")
    assert kappa.check(f"{KAPPA}(n - chosen)") == "kappa: all 7 cases pass.\n"
    page.close()


def test_without_python_the_page_says_so(browser, server, outputs):
    page = browser.new_page()
    page.goto(f"{(outputs / 'site').as_uri()}/{EXERCISES}")
    assert page.get_by_text("Opened from a disk, this page cannot run Python").is_visible()
    assert page.locator("article textarea, article button").count() == 0
    python = outputs / "site/_static/pyodide"
    python.rename(python.with_name("elsewhere"))
    kappa = Exercise(page, server.url)
    assert kappa.check(KAPPA).startswith("Python did not start: this copy of the site may lack it.")
    python.with_name("elsewhere").rename(python)
    page.close()


def test_every_table_can_be_downloaded_from_its_page_and_from_the_list(crawl, server, outputs):
    written = {path.name for path in (outputs / "tables").glob("*.csv")}
    assert "partitions.csv" in written
    tables_of = {f"{server.url}/tables/{name}" for name in written}
    assert tables_of <= crawl.links[f"{server.url}/tables.html"]
    executed = ("00_start_here", "01_data_prep")
    linked = [crawl.links[f"{server.url}/notebooks/{name}.html"] for name in executed]
    assert tables_of <= set().union(*linked)
    for name in written:
        assert (outputs / "site/tables" / name).read_bytes() == (
            outputs / "tables" / name
        ).read_bytes()


def test_answers_stay_text_and_formulas_are_set(browser, server):
    visit = Visit(browser, server.url)
    visit.page.goto(f"{server.url}/notebooks/{OWN}.html")
    assert visit.page.evaluate("window.attacked") is None
    article = visit.page.locator("article")
    # Caption, cell, sentence and printed line; no dollar sign became a formula.
    assert article.inner_text().count(ATTACK) == 4
    heights = article.locator("math").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().height)"
    )
    assert len(heights) == 2
    inline, block = heights
    assert block > 1.5 * inline > 0
    assert visit.complaints == []
    visit.page.close()


def test_a_broken_link_is_named_and_the_earlier_site_stays(outputs, tmp_path):
    shutil.copytree(outputs, tmp_path / "smoke")
    broken = new_notebook(cells=[new_markdown_cell("# Broken\n\n[gone](../docs/gone.md)")])
    nbformat.write(broken, tmp_path / "smoke/notebooks/98_broken.ipynb")
    site = tmp_path / "smoke/site"
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*")}
    script = str(ROOT / "scripts/build_site.py")
    command = [sys.executable, script, str(tmp_path / "smoke"), str(site)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "98_broken" in done.stderr and "../docs/gone.md" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in Path(site).rglob("*")} == before
