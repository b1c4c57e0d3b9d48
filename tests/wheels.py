"""A wheel of the package, built from what a checkout holds and without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from notebook_files import ROOT

# All that the build reads.
_SOURCES = (
    "pyproject.toml",
    "setup.py",
    "README.md",
    "LICENSE",
    "src",
    "notebooks",
    "params/audit",
)
_BUILD = """
import sys
from setuptools import build_meta
folder = sys.argv[1]  # a build changes sys.argv
build_meta.build_sdist(folder)
build_meta.build_wheel(folder)
"""


def built(folder: Path) -> tuple[Path, Path]:
    """Source distribution and wheel, built in a copy: a build leaves its traces in the tree."""
    tree, out = folder / "tree", folder / "out"
    unneeded = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in _SOURCES:
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=unneeded)
        else:
            shutil.copy(ROOT / name, target)
    subprocess.run(
        [sys.executable, "-c", _BUILD, str(out)], cwd=tree, check=True, capture_output=True
    )
    (source,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return source, wheel


def without_this_checkout() -> dict[str, str]:
    """The environment of a process that finds the installed package, not this checkout's."""
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return kept | {"PYTHONPATH": str(ROOT / "tests/offline")}
