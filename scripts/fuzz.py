"""Coverage-guided fuzzing of every parser of untrusted input: make fuzz FUZZ_SECONDS=60.

The targets are the properties of tests/core/test_untrusted.py, whose drawn values are made of the
fuzzer's bytes, and the parsers of files, which read these bytes as they are. Each runs in a
process of its own; what broke one lies in the folder that is named, and the exit status is 1.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("rows.jsonl", "rows.json", "rows.csv", "rows.tsv", "rows.parquet", "p.yaml")


def targets() -> dict[str, Callable[[bytes], object]]:
    """Name to function of bytes; it raises where a promise of the tests is broken."""
    import atheris

    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/core")]
    with atheris.instrument_imports(include=["contamination"]):
        import test_untrusted as tests

    folder = Path(tempfile.mkdtemp())
    found = {}
    for name, test in vars(tests).items():
        property_of = getattr(test, "hypothesis", None)
        # Fixtures and parameters of pytest are not there.
        if name.startswith("test_") and property_of and not inspect.signature(test).parameters:
            found[name] = property_of.fuzz_one_input
    for name in FILES:
        read = tests.read_parameters if name.endswith("yaml") else tests.read_file
        found[name] = lambda content, name=name, read=read: read(folder, name, content)
    return found


def main(seconds: str = "60", target: str = "") -> int:
    if target:
        import atheris

        function = targets()[target]
        atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-verbosity=1"], function)
        atheris.Fuzz()  # ends the process
    broken = []
    for name in targets():
        # What breaks a target is written to the working folder.
        kept = Path(tempfile.mkdtemp(prefix=f"fuzz_{name}_"))
        again = [sys.executable, __file__, seconds, name]
        done = subprocess.run(again, cwd=kept, capture_output=True, text=True, errors="replace")
        n_runs = re.findall(r"^Done (\d+) runs", done.stderr, re.MULTILINE)
        print(f"{name}: {n_runs[-1] if n_runs else 'no'} runs, exit {done.returncode}", flush=True)
        if done.returncode:
            broken.append(name)
            print(f"{done.stderr[-2000:]}\nkept in {kept}")
        elif not any(kept.iterdir()):
            kept.rmdir()
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
