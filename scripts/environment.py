"""An environment that holds what the lock names: make setup.

``python scripts/environment.py FOLDER -- [pip's options]`` builds one, unless FOLDER
has it already; ``FOLDER/bin/python scripts/environment.py --check`` says why one does not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
LOCK, BUILDS = "requirements.txt", ("cpu", "cuda")
LOWEST, BEYOND = (3, 11, 5), (3, 14)
QUIET = ["--quiet", "--disable-pip-version-check"]
NAME_ONE = (
    'name one that does with make setup PIP_FLAGS="--extra-index-url URL", or a folder of wheels '
    'with PIP_FLAGS="--no-index --find-links FOLDER"'
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--check", action="store_true", help="compare this Python with the lock")
    parser.add_argument("--torch", choices=("", *BUILDS), default="", help="which build")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser.add_argument("--lock", help="build an environment of this lock, without this project")
    options, pip_flags = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1 :]
    if not LOWEST <= sys.version_info[:3] < BEYOND:
        stop(
            f"Python {text(LOWEST)} or newer, below {text(BEYOND)}, is needed and {sys.executable} "
            f"is {text(sys.version_info[:3])}: name another with make PYTHON=/path/to/python3.13"
        )
    if options.check:
        sys.exit(summary(differences()))
    if options.lock:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(options.folder)], check=True)
        install_lock(options.folder / "bin/python", options.torch, pip_flags, options.lock)
    else:
        set_up(options.folder, options.torch, pip_flags)


def set_up(folder: Path, torch: str, pip_flags: list[str]) -> None:
    """Build an environment, or complete one that satisfies the lock, with this project in it."""
    python = folder / "bin/python"
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    if active and Path(active).resolve() != folder.resolve():
        why = unlike_lock(Path(active) / "bin/python")
        if why:
            print(f"the active environment {active} does not satisfy the lock: {why}")
    why = unlike_lock(python) if python.exists() else "missing"
    if why and (folder / "conda-meta").exists():
        stop(f"{folder} is conda's and does not satisfy the lock: {why}")
    if why:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install_lock(python, torch, pip_flags)
    project = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
    run_pip(python, ["install", *QUIET, *project])


def install_lock(python: Path, torch: str, pip_flags: list[str], lock: str = LOCK) -> None:
    """Install a lock and torch, each file by its hash; a local wheel may stand in for torch."""
    hashed = ["install", *QUIET, *pip_flags, "--no-deps", "--require-hashes"]
    with tempfile.TemporaryDirectory() as temporary:
        # What builds the packages that come as source; it, too, by its hash. It comes first,
        # since every index has it: where it is found nowhere, no index can be reached.
        tools = Path(temporary, "tools.txt")
        tools.write_text(re.search(r"^setuptools==.*\n(?:[ \t].+\n)*", read(LOCK), re.M)[0])
        run_pip(python, [*hashed, "--requirement", str(tools)])
    build, wheel = torch_build(python, torch, pip_flags)
    locks = [str(ROOT / lock)]
    if wheel:
        run_pip(python, ["install", *QUIET, "--no-deps", str(wheel)])
    else:
        locks.append(str(ROOT / f"requirements-torch-{build}.txt"))
    files = [word for lock in locks for word in ("--requirement", lock)]
    run_pip(python, [*hashed, "--no-build-isolation", *files])
    run_pip(python, ["check", *QUIET])


def torch_build(python: Path, torch: str, pip_flags: list[str]) -> tuple[str, Path | None]:
    """Which build of torch to install, and the local wheel that stands in for it, if one does."""
    if torch == "cuda":
        return torch, None
    lock = read("requirements-torch-cpu.txt")
    with tempfile.TemporaryDirectory() as temporary:
        names, report = Path(temporary, "names.txt"), Path(temporary, "report.json")
        names.write_text("\n".join(re.findall(r"^torch==[^\\\n]+", lock, re.M)) + "\n")
        asked = ["--dry-run", "--ignore-installed", "--no-deps", "--report", str(report)]
        command = [*pip_flags, *asked, "--requirement", str(names)]
        done = run_pip(python, ["install", *QUIET, *command], check=False)
        if done.returncode:
            served = versions_served(done.stderr)
            if torch or not served or not served[1]:
                stop_of_pip(done)
            print(
                f"no package index in use serves {served[0]}: installing the build with CUDA, "
                "several GB (for the other see docs/install.md)"
            )
            return "cuda", None
        found = json.loads(report.read_text())["install"][0]
    url = found["download_info"]["url"]
    if not url.startswith("file:"):
        return "cpu", None
    wheel = Path(unquote(urlsplit(url).path))
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest in lock:
        return "cpu", None
    print(
        f"a local wheel stands in for torch: {wheel}, SHA-256 {digest}, "
        "which the lock does not name"
    )
    return "cpu", wheel


def run_pip(
    python: Path, arguments: list[str], check: bool = True
) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode:
        stop_of_pip(done)
    return done


def stop_of_pip(done: subprocess.CompletedProcess[str]) -> None:
    """Say in one line what pip found nowhere; if it failed otherwise, show all that it printed."""
    served = versions_served(done.stderr)
    if not served:
        stop(f"{' '.join(done.args)}\n{done.stdout}{done.stderr}")
    requirement, versions = served
    if requirement.startswith("setuptools==") and not versions:
        stop(f"no package index can be reached: connect to a network, or {NAME_ONE}")
    stop(f"no package index in use serves {requirement}: {NAME_ONE}")


def versions_served(printed: str) -> tuple[str, list[str]] | None:
    """The requirement that pip could not satisfy, and the versions that it found instead.

    None where pip failed for another reason.

    >>> versions_served("ERROR: No version satisfies the requirement a==3 (from versions: 1, 2)")
    ('a==3', ['1', '2'])
    >>> versions_served("ERROR: No version satisfies the requirement a==3 (from versions: none)")
    ('a==3', [])
    """
    found = re.search(r"the requirement (\S+) .*\(from versions: (.*)\)", printed)
    if not found:
        return None
    return found[1], [] if found[2] == "none" else found[2].split(", ")


def unlike_lock(python: Path) -> str:
    """Why an environment does not satisfy the lock, in one line; empty if it does."""
    command = [str(python), __file__, "--check"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stderr.strip()
    except OSError as error:
        return str(error)


def differences() -> list[str]:
    """What this Python's packages have otherwise than the lock, from pip's metadata.

    Any build of the locked torch will do; packages beside the lock do no harm.
    """
    try:
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name
        from packaging.version import Version
    except ImportError:
        return ["packaging is missing"]
    installed = {}
    for distribution in metadata.distributions():
        # The first on the path is the one that is imported.
        installed.setdefault(canonicalize_name(distribution.name), distribution.version)
    found = []
    for name in (LOCK, "requirements-torch-cpu.txt"):
        for line in re.findall(r"^[^#\s][^\\\n]*", read(name), re.M):
            requirement = Requirement(line)
            if requirement.marker and not requirement.marker.evaluate():
                continue
            version = installed.get(canonicalize_name(requirement.name))
            wanted = next(iter(requirement.specifier)).version
            if version is None:
                found.append(f"{requirement.name} is missing")
            elif requirement.name == "torch":
                if Version(version).public != Version(wanted).public:
                    found.append(f"torch is {version}, not {Version(wanted).public}")
            elif Version(version) != Version(wanted):
                found.append(f"{requirement.name} is {version}, not {wanted}")
    return found


def summary(found: list[str]) -> str | None:
    """The first difference and how many more; None if there is none.

    >>> summary(["numpy is missing", "torch is missing"])
    'numpy is missing, and 1 more'
    """
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0]}{more}" if found else None


def read(name: str) -> str:
    return (ROOT / name).read_text()


def text(version: tuple) -> str:
    return ".".join(map(str, version))


def stop(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
