"""Train the detector study's models, score them, and write the ledger of the package.

    python scripts/ledger.py                          # what is not there yet, unit by unit
    python scripts/ledger.py --jobs 2                 # the same, two units at a time
    python scripts/ledger.py --engine ray             # the same, a unit a task of a cluster
    python scripts/ledger.py --detector mine.py       # one detector on the models in the cache
    python scripts/ledger.py --room pretrained        # a real model's room (make pretrained, data)

A unit's three files are written when it is done; a run that was stopped goes on with the next,
and finds trained models and scored batches in the cache.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from contamination.core import storage
from contamination.models.engine import ENGINES, sweep
from contamination.study import pretrained, store, study, yours

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--room", choices=("lab", pretrained.NAME), default="lab")
    parser.add_argument("--units", type=int, nargs="+", help="those of the room's protocol")
    parser.add_argument("--benchmarks", nargs="+", default=study.BENCHMARKS)
    parser.add_argument("--copies", type=int, nargs="+", default=study.COPIES)
    parser.add_argument("--detector", type=Path, help="a module that defines DETECTOR")
    parser.add_argument("--folder", type=Path, default=store.FOLDER, help="where parts are written")
    parser.add_argument("--name", help="of the ledger, as that of the room")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one unit")
    parser.add_argument("--engine", choices=ENGINES, default="local")
    parser.add_argument("--ray-address", default="")
    options = parser.parse_args()
    is_lab = options.room == "lab"
    if options.detector and not is_lab:
        parser.error("--detector adds to the lab's room; the other has detectors of its own")
    options.units = options.units or (study if is_lab else pretrained).UNITS
    options.name = options.name or (store.STUDY if is_lab else pretrained.NAME)
    detector, suffix = None, ""
    if options.detector:
        detector = yours.load(options.detector)
        suffix = "_" + re.sub(r"\W+", "_", detector.name.lower())
    names = {unit: f"{options.name}_{unit}{suffix}" for unit in options.units}
    missing = [u for u in options.units if not (options.folder / f"{names[u]}.json").exists()]
    if missing and not is_lab:
        try:
            print(pretrained.plan(missing), flush=True)
        except (OSError, ValueError) as error:
            sys.exit(str(error))
    if options.jobs > 1 and len(missing) > 1:
        again = [sys.executable, *sys.argv, "--jobs", "1", "--units"]
        with ThreadPoolExecutor(options.jobs) as pool:
            runs = pool.map(lambda unit: subprocess.run([*again, str(unit)]).returncode, missing)
        sys.exit(max(runs))
    page = ROOT / "docs" / ("protocol.md" if is_lab else "protocol_pretrained.md")
    about = {"protocol_sha256": storage.sha256_of_file(page)}
    settings = (options.benchmarks, options.copies, detector) if is_lab else ()
    write = study.write_unit if is_lab else pretrained.write_unit
    jobs = [(options.folder, names[unit], about, unit, *settings) for unit in missing]
    sweep(write, jobs, engine=options.engine, ray_address=options.ray_address)


if __name__ == "__main__":
    main()
