"""Rewrite requirements.txt: what a fresh environment installs from pyproject.toml.

Local build labels are dropped (2.13.0+cpu becomes 2.13.0) and so are the CUDA
packages that only some builds of torch bring along, so that one lock serves
machines with and without a GPU.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCH = "torch==2.13.0"
CUDA_ONLY = re.compile(r"^(nvidia-|cuda-|triton)")
EXTRAS = ("site", "cluster", "browser")
HEADER = "# {what}, Python 3.11. Written by make lock; edit pyproject.toml instead.\n"


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    optional = project["project"]["optional-dependencies"]
    wanted = project["project"]["dependencies"] + optional["dev"]
    build = project["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", TORCH], check=True)
        subprocess.run([*pip, "install", "--quiet", *wanted, *build], check=True)
        lock = pinned(pip)
        write("requirements.txt", "Complete lock", lock)
        extras = [requirement for name in EXTRAS for requirement in optional[name]]
        constraint = ["--constraint", str(ROOT / "requirements.txt")]
        subprocess.run([*pip, "install", "--quiet", *extras, *constraint], check=True)
        added = [line for line in pinned(pip) if line not in lock]
        write("requirements-extra.txt", "On top of requirements.txt: " + ", ".join(EXTRAS), added)


def pinned(pip: list[str]) -> list[str]:
    freeze = [*pip, "freeze", "--all"]
    lines = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout.splitlines()
    names = [re.sub(r"\+\S+$", "", line.split(" @ ")[0]) for line in lines]
    kept = [line for line in names if "==" in line and not line.startswith(("#", "pip=="))]
    return sorted(line for line in kept if not CUDA_ONLY.match(line))


def write(name: str, what: str, lines: list[str]) -> None:
    (ROOT / name).write_text(HEADER.format(what=what) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
