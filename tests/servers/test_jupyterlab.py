"""Notebooks in a real JupyterLab, started by `make lab` on a fresh checkout: open, run all, save.

The checkout is a copy whose notebooks have the values of the smoke profile.
"""

import os
import shutil
import subprocess
import time

import nbformat
import pytest
import yaml
from notebook_files import ROOT, edit_parameters
from server_process import ServerProcess
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed
from waiting import LIMIT_SECONDS

from contamination.core import storage
from contamination.core.storage import write_json, write_text

pytestmark = pytest.mark.servers

RUN = ("00_start_here", "06_case_books")
TOKEN = "a-token-for-this-test"  # noqa: S105
OF_THE_SESSION = (storage.OUTPUTS_VARIABLE, storage.STAGING_VARIABLE, "JUPYTER_PREFER_ENV_PATH")


def git(checkout, *arguments):
    command = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org", *arguments]
    done = subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A repository with one commit, as a clone would be."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, git(ROOT, *listed).split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    for name in RUN:
        values = yaml.safe_load((folder / f"params/smoke/{name}.yaml").read_text())
        edit_parameters(folder / f"notebooks/{name}.ipynb", values)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "All")
    return folder


@pytest.fixture(scope="module")
def server(checkout, lab_cache, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    # Another kernel of the same name, which a user may well have.
    write_json(
        home / ".local/share/jupyter/kernels/python3/kernel.json",
        {"argv": ["/bin/false"], "display_name": "Python 3 (elsewhere)", "language": "python"},
    )
    leave_out = (*OF_THE_SESSION, "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    environment = {name: value for name, value in os.environ.items() if name not in leave_out}
    environment |= {
        "HOME": str(home),
        # The copy's package, not the one that .venv points at.
        "PYTHONPATH": str(checkout / "src"),
        storage.CACHE_VARIABLE: str(lab_cache),
        "OMP_NUM_THREADS": "1",
    }
    flags = "--no-browser --allow-root --ServerApp.port={port} --ServerApp.ip=127.0.0.1"
    # The environment is that of this checkout: nothing is to be installed.
    venv = ["VENV=" + str(ROOT / ".venv"), "--old-file=" + str(ROOT / ".venv/.installed")]
    with ServerProcess(
        ["make", "lab", *venv, f"LAB_FLAGS={flags} --IdentityProvider.token={TOKEN}"],
        health="/api",
        log_path=home / "lab.log",
        cwd=checkout,
        env=environment,
    ) as server:
        yield server


class Lab:
    """One notebook in a browser window."""

    def __init__(self, browser, server, checkout, name):
        self.path = checkout / f"notebooks/{name}.ipynb"
        self.page = browser.new_page(viewport={"width": 1400, "height": 900})
        self.page.goto(f"{server.url}/lab/tree/notebooks/{name}.ipynb?reset&token={TOKEN}")
        self.page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for(timeout=60_000)
        self.status = self.page.locator("#jp-main-statusbar")
        self.status.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)

    def contents(self):
        """Headings in the contents pane, in order."""
        self.page.locator('.jp-SideBar [data-id="table-of-contents"]').click()
        entries = self.page.locator(".jp-TableOfContents-content .jp-tocItem-content")
        entries.first.wait_for()
        return [text.strip() for text in entries.all_inner_texts()]

    def run_all(self):
        """Run All Cells, wait, save; the notebook as it is on the disk afterwards."""
        self._menu("Run", "Run All Cells")
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            self.page.wait_for_timeout(2000)
            self._menu("File", "Save Notebook")
            saved = self.saved()
            code = [cell for cell in saved.cells if cell.cell_type == "code"]
            failed = [each for cell in code for each in cell.outputs if "ename" in each]
            if code[-1].execution_count or failed:
                break
            assert time.monotonic() < deadline, "still running"
        self.status.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        self._menu("File", "Save Notebook")
        self.page.locator(".jp-mod-dirty").wait_for(state="detached")
        return self.saved()

    @retry(
        retry=retry_if_exception_type((nbformat.reader.NotJSONError, UnicodeDecodeError)),
        wait=wait_fixed(0.2),
        stop=stop_after_delay(10),
        reraise=True,
    )
    def saved(self):
        """The notebook on the disk; Jupyter writes in place, so it may be half there."""
        return nbformat.read(self.path, as_version=4)

    def _menu(self, name, entry):
        self.page.locator(".lm-MenuBar-item", has_text=name).first.click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text(entry, exact=True).click()


def headings(notebook):
    lines = [
        line
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
    ]
    return [line.lstrip("# ") for line in lines if line.startswith("#")]


def test_the_first_screen_is_the_question_and_nobody_is_asked_for_news(browser, server):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    addresses = []
    page.on("request", lambda request: addresses.append(request.url))
    page.goto(f"{server.url}/?token={TOKEN}")
    question = page.locator(".jp-MarkdownOutput p").first
    question.wait_for(timeout=60_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
    page.wait_for_timeout(3000)  # the question whether to fetch news came as late as the kernel
    assert "?" in question.inner_text() and question.bounding_box()["y"] < 400
    assert page.locator(".jp-Dialog, .Toastify__toast").count() == 0
    own = (server.url, server.url.replace("http", "ws", 1), "data:", "blob:")
    assert [address for address in addresses if not address.startswith(own)] == []
    page.close()


@pytest.mark.parametrize("name", RUN)
def test_opens_runs_all_and_saves(browser, server, checkout, name):
    lab = Lab(browser, server, checkout, name)
    assert lab.contents() == headings(lab.saved())
    saved = lab.run_all()
    assert lab.page.locator(".jp-Dialog, .Toastify__toast").count() == 0
    lab.page.close()
    code = [cell for cell in saved.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [out for cell in code for out in cell.outputs if out.output_type == "error"]
    assert not [out.text for cell in code for out in cell.outputs if out.get("name") == "stderr"]


def test_a_saved_run_is_no_change_for_git(checkout, server):
    """After the runs above: outputs stay in the files, and git sees what was written."""
    for name in RUN:
        assert '"execution_count": 1,' in (checkout / f"notebooks/{name}.ipynb").read_text()
    assert git(checkout, "status", "--porcelain") == ""
    path = checkout / f"notebooks/{RUN[0]}.ipynb"
    write_text(path, path.read_text().replace("## Change one thing", "## Change one more"))
    assert git(checkout, "diff", "--numstat").split() == ["1", "1", f"notebooks/{RUN[0]}.ipynb"]


def test_results_of_these_runs_have_a_folder_of_their_own(checkout):
    folders = {path.name for path in (checkout / "outputs").iterdir() if path.is_dir()}
    assert folders == {"interactive", "reference"}  # the second is committed
    assert (checkout / "outputs/interactive/tables/books.csv").exists()
