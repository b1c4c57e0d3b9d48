"""What `make lab` tells JupyterLab: where to start, no news, and that a run is no git change."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def git(*arguments: str) -> bool:
    """Whether a git command succeeded."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True).returncode == 0


def settle(os_path: str, model: dict, **_: object) -> None:
    """After a save: make git note a notebook's new size when only outputs are new.

    Git compares sizes before it asks the filter. To add what the filter finds
    equal corrects the size in its index, and stages nothing.
    """
    if model["type"] == "notebook" and git("diff", "--quiet", "--", os_path):
        git("add", "--update", "--", os_path)


def without_news(_: object, page: dict) -> dict:
    """What JupyterLab's page is told: no plugin that asks for news and looks for updates."""
    announcements = "@jupyterlab/apputils-extension:announcements"
    return page | {"disabledExtensions": [*page.get("disabledExtensions", []), announcements]}


c = get_config()  # noqa: F821  JupyterLab provides it
c.ServerApp.tornado_settings = {"page_config_hook": without_news}
c.LabApp.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
if shutil.which("git") and (CHECKOUT / ".git").exists():
    cleaner = [sys.executable, str(CHECKOUT / "scripts" / "clean_notebook.py")]
    git("config", "filter.notebook.clean", shlex.join(cleaner))
    c.FileContentsManager.post_save_hook = settle
