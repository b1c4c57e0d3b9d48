"""Do the tests bite? Each fault of ``mutants.yaml`` alone must make a test fail: make mutants.

    python scripts/mutants.py          all of them
    python scripts/mutants.py dcq/     those whose name or file holds a text

A fault is put into a copy of the checkout, in a temporary folder. Its own tests run there, on
one core, until the first fails. Before that they must pass as the code is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/contamination"
LONGEST = 900  # seconds of the tests of one fault
SURVIVED, KILLED = "survived", "killed"
OUTCOMES = {0: SURVIVED, 1: KILLED}  # pytest's exit codes; others say that no test decided


class Fault(NamedTuple):
    """One wrong text in place of a right one, and the tests that should notice.

    ``file`` is in the package. ``now`` stands in it exactly once; lines after its first are
    indented from there. ``tests`` are arguments of pytest, parted by spaces.
    """

    name: str
    file: str
    now: str
    fault: str
    tests: str


def faults(path: Path = ROOT / "scripts/mutants.yaml") -> list[Fault]:
    return [Fault(**row) for row in yaml.safe_load(path.read_text())]


def with_fault(source: str, fault: Fault) -> str:
    """The source with the fault in it; ValueError unless its place is found exactly once."""
    first = fault.now.split("\n")[0]
    found = []
    for line in source.splitlines():
        if first in line:
            pad = "\n" + " " * (len(line) - len(line.lstrip()))
            found.append((fault.now.replace("\n", pad), fault.fault.replace("\n", pad)))
    places = {pair: source.count(pair[0]) for pair in found}
    if sum(places.values()) != 1:
        raise ValueError(
            f'"{fault.name}": its text occurs {sum(places.values())} times in {fault.file} and '
            "must occur once: correct it in scripts/mutants.yaml"
        )
    now, wrong = next(pair for pair, n in places.items() if n)
    return source.replace(now, wrong)


def copied(folder: Path) -> Path:
    """A copy of the checkout as it stands, without what git ignores."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def tested(folder: Path, tests: str) -> tuple[str, str]:
    """What became of a fault under its tests, and what they printed."""
    with tempfile.TemporaryDirectory() as cache:
        # An empty cache each, since wrong code fills it with wrong values; and no compiled
        # files, which are told from stale ones by size and second.
        here = {"PYTHONPATH": str(folder / "src"), "CONTAMINATION_CACHE": cache}
        here |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        kept = {k: v for k, v in os.environ.items() if k != "CONTAMINATION_MIRROR"}
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests.split()]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=kept | here,
                capture_output=True,
                text=True,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            return "no end", f"not done after {LONGEST} s"
    return OUTCOMES.get(done.returncode, "no test decided"), done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="", help="of the name or the file of faults")
    text = parser.parse_args().text
    chosen = [fault for fault in faults() if text in fault.name or text in fault.file]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = copied(Path(temporary))
        wrong, errors = [], []
        for fault in chosen:
            try:
                wrong.append(with_fault((folder / PACKAGE / fault.file).read_text(), fault))
            except (FileNotFoundError, ValueError) as error:
                errors.append(f"error: {error}")
        if errors:
            print(*errors, sep="\n", file=sys.stderr)
            return 1
        tests = dict.fromkeys(test for fault in chosen for test in fault.tests.split())
        outcome, printed = tested(folder, " ".join(tests))
        if outcome != SURVIVED:
            print(printed, "error: the tests must pass before a fault is there", file=sys.stderr)
            return 1
        print(f"{'no fault':<10}{time.monotonic() - started:6.1f} s  all tests pass", flush=True)
        outcomes = []
        for fault, code in zip(chosen, wrong, strict=True):
            path, start = folder / PACKAGE / fault.file, time.monotonic()
            right = path.read_text()
            path.write_text(code)
            outcome, printed = tested(folder, fault.tests)
            path.write_text(right)
            outcomes.append(outcome)
            seconds = time.monotonic() - start
            print(f"{outcome:<10}{seconds:6.1f} s  {fault.file}: {fault.name}", flush=True)
            if outcome not in OUTCOMES.values():
                print(printed)
    seconds = time.monotonic() - started
    print(f"{outcomes.count(KILLED)} of {len(outcomes)} faults killed, {seconds:.0f} s")
    return int(set(outcomes) != {KILLED})


if __name__ == "__main__":
    sys.exit(main())
