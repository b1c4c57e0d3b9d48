"""Rewrite the locks from pyproject.toml: make lock (network).

* ``requirements.txt``: what every machine installs, without torch.
* ``requirements-torch-cuda.txt``: torch as the default package index serves it
  (with CUDA on Linux) and the packages that it brings along there.
* ``requirements-torch-cpu.txt``: the same version without CUDA. On Linux
  PyTorch's own index serves it; elsewhere it is the default index's file.
* ``requirements-extra.txt``: what the extras install on top.
* ``requirements-servers.txt``: the environment of what ``make test-servers`` starts, without
  torch, too. ``transformers serve`` needs transformers 5, which cannot stand beside the rest.
* ``requirements-evaluations.txt``: the environment of the tools whose logs an audit reads, for
  ``make test-servers`` too; without torch and with transformers 5, likewise.

One lock serves every Python that pyproject.toml allows and every platform:
markers say what differs, and each version carries the hashes of all its files.
Pins that still fit stay as they are; ``make lock LOCK_FLAGS=--upgrade`` moves them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TORCH = "2.13.0"
COMMON, EXTRA = "requirements.txt", "requirements-extra.txt"
SERVERS, SERVED = "requirements-servers.txt", "transformers[serving]==5.23.0"
EVALUATIONS = "requirements-evaluations.txt"
EVALUATED_BY = ("lm-eval[hf]==0.4.13", "inspect-ai==0.3.285")
CPU, CUDA = "requirements-torch-cpu.txt", "requirements-torch-cuda.txt"
EXTRAS = ("site", "cluster", "browser")
CUDA_ONLY = re.compile(r"^(nvidia-|cuda-|triton$)")
HEADER = "# {what}. Written by make lock; edit pyproject.toml instead.\n"


def blocks(text: str) -> dict[str, str]:
    """The entries of a lock, hashes included, by their first line's requirement.

    >>> list(blocks("# head\\na==1 ; x \\\\\\n    --hash=sha256:0\\nb==2\\n"))
    ['a==1 ; x', 'b==2']
    """
    entries = re.findall(r"^(?![#\s]).+\n(?:[ \t].+\n)*", text, re.M)
    return {block.splitlines()[0].removesuffix("\\").strip(): block for block in entries}


def name_of(requirement: str) -> str:
    return requirement.split("==")[0]


def by_torch(text: str) -> tuple[list[str], list[str]]:
    """Entries of torch and of what it brings along for CUDA, and all others."""
    torch, rest = [], []
    for requirement, block in blocks(text).items():
        brought = name_of(requirement) == "torch" or CUDA_ONLY.match(name_of(requirement))
        (torch if brought else rest).append(block)
    return torch, rest


def cpu_lock(served: str, listed: str, kept: str) -> str:
    """The entries of torch without CUDA.

    Args:
        served: a lock with torch as the default index serves it.
        listed: a lock with the build that PyTorch's own index serves; empty if
            it could not be asked.
        kept: the present lock, whose entry stays where ``listed`` is empty.

    Raises:
        ValueError: if neither has the version.
    """
    plain, build = f"torch=={TORCH}", f"torch=={TORCH}+cpu"
    elsewhere = blocks(served)[plain].replace(plain, f"{plain} ; sys_platform != 'linux'", 1)
    for text in (listed, kept):
        for requirement, block in blocks(text).items():
            if requirement.split(" ;")[0] == build:
                hashes = block.split("\n", 1)[1]
                return f"{elsewhere}{build} ; sys_platform == 'linux' \\\n{hashes}"
    raise ValueError(f"no index that could be asked serves {build}: {CPU} cannot be written")


def write(name: str, what: str, entries: list[str]) -> None:
    (ROOT / name).write_text(HEADER.format(what=what) + "".join(entries))
    print(f"{name}: {len(entries)} entries")


def read(name: str) -> str:
    path = ROOT / name
    return path.read_text() if path.exists() else ""


def main(flags: list[str]) -> None:
    project = tomllib.loads(read("pyproject.toml"))
    optional = project["project"]["optional-dependencies"]
    lowest = re.search(r">=([\d.]+)", project["project"]["requires-python"])[1]
    wanted = project["project"]["dependencies"] + optional["dev"]
    wanted += [*project["build-system"]["requires"], f"torch=={TORCH}"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "uv"], check=True)
        style = ["--universal", "--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
        compile_ = [f"{folder}/bin/uv", "pip", "compile", *style, "--python-version", lowest]

        def locked(requirements: list[str], pins: str, *more: str) -> str:
            """A lock of some requirements, keeping what fits of present pins."""
            source, output = Path(folder, "requirements.in"), Path(folder, "lock.txt")
            source.write_text("\n".join(requirements) + "\n")
            output.write_text(pins)
            command = [*compile_, *flags, *more, str(source), "--output-file", str(output)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr)
            return output.read_text()

        everything = locked(wanted, read(COMMON) + read(CUDA))
        try:
            build = [f"torch=={TORCH}+cpu"]
            listed = locked(build, "", "--no-deps", "--torch-backend", "cpu")
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1].strip()
            print(f"{CPU} keeps its hashes for Linux; PyTorch's own index: {reason}")
            listed = ""
        extras = [requirement for name in EXTRAS for requirement in optional[name]]
        servers = locked([SERVED, f"torch=={TORCH}"], read(SERVERS) + read(CUDA))
        asked = [*EVALUATED_BY, f"torch=={TORCH}"]
        evaluations = locked(asked, read(EVALUATIONS) + read(SERVERS) + read(CUDA))
        with_extras = locked([*wanted, *extras, *blocks(everything)], everything + read(EXTRA))
    torch, rest = by_torch(everything)
    added = [b for r, b in blocks(with_extras).items() if r not in blocks(everything)]
    cpu = cpu_lock(everything, listed, read(CPU))
    versions = f"Python {project['project']['requires-python']}"
    write(COMMON, f"The lock of all but torch, {versions}", rest)
    write(CUDA, "torch as the package index serves it, CUDA on Linux", torch)
    write(CPU, "torch without CUDA", list(blocks(cpu).values()))
    write(SERVERS, "What make test-servers installs apart, all but torch", by_torch(servers)[1])
    of_tools = "What writes the logs that make test-servers reads, all but torch"
    write(EVALUATIONS, of_tools, by_torch(evaluations)[1])
    write(EXTRA, f"On top of {COMMON}: {', '.join(EXTRAS)}; {versions}", added)


if __name__ == "__main__":
    main(sys.argv[1:])
