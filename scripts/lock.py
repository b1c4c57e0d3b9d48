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


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"]
    wanted += project["project"]["optional-dependencies"]["dev"]
    build = project["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", TORCH], check=True)
        subprocess.run([*pip, "install", "--quiet", *wanted, *build], check=True)
        freeze = [*pip, "freeze", "--all"]
        lines = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    pinned = [re.sub(r"\+\S+$", "", line.split(" @ ")[0]) for line in lines.splitlines()]
    lines = [line for line in pinned if "==" in line and not line.startswith("pip==")]
    kept = sorted(line for line in lines if not CUDA_ONLY.match(line))
    header = "# Complete lock, Python 3.11. Written by make lock; edit pyproject.toml instead.\n"
    (ROOT / "requirements.txt").write_text(header + "\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
