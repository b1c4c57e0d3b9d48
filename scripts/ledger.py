"""Train the detector study's models, score them, and write the ledger of the package.

    python scripts/ledger.py                          # rows inserted while base models are trained
    python scripts/ledger.py --study larger           # the same with larger models (GPU)
    python scripts/ledger.py --study positions        # the training step of every copy
    python scripts/ledger.py --study tokens           # token log-probabilities of these models
    python scripts/ledger.py --study placement        # rows seen once, by tenths of training
    python scripts/ledger.py --study shift            # rows that these models have not seen
    python scripts/ledger.py --study dice             # fine-tuned base models, told apart by DICE
    python scripts/ledger.py --study pretrained       # a real model (make pretrained, make data)
    python scripts/ledger.py --study forms            # the same model, three forms of a row
    python scripts/ledger.py --study scale            # three sizes, two amounts of text
    python scripts/ledger.py --study company          # rows alone, and among similar rows
    python scripts/ledger.py --jobs 2                 # two parts at a time
    python scripts/ledger.py --engine ray             # each part a task of a Ray cluster
    python scripts/ledger.py --detector mine.py       # one detector more, on the first of these

The files of a part are written when it is done. A run that was stopped goes on with the next part,
and finds trained models and scored batches in the cache.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from contamination.core import storage
from contamination.core.parallel import in_processes
from contamination.study import (
    company,
    dice_forks,
    forms,
    placement,
    pretrained,
    pretraining,
    row_pools,
    scale,
    scores,
    shift,
    store,
    tokens,
    yours,
)

DOCS = Path(__file__).parents[1] / "docs"


class Study(NamedTuple):
    """What one study trains: numbers of its parts, the page that fixes it, what writes a part.

    ``plan`` says what parts will take, where there is one.
    """

    numbers: Sequence[int]
    protocol: str
    write: Callable[..., None]
    plan: Callable[[Sequence[int]], str] | None = None


STUDIES = {
    pretraining.NAME: Study(row_pools.BASE_SEEDS, "protocol_2.md", pretraining.write_part),
    pretraining.LARGER: Study(
        row_pools.BASE_SEEDS, "protocol_larger.md", pretraining.write_larger_part
    ),
    scores.POSITIONS: Study(row_pools.BASE_SEEDS, "protocol_2.md", placement.write_positions),
    tokens.NAME: Study(row_pools.BASE_SEEDS, "protocol_2.md", tokens.write_part),
    placement.NAME: Study(
        (placement.REFERENCE, *placement.BASE_SEEDS), "protocol_3.md", placement.write_part
    ),
    shift.NAME: Study(row_pools.BASE_SEEDS, "protocol_2.md", shift.write_part),
    dice_forks.NAME: Study(dice_forks.BASE_SEEDS, "protocol_2.md", dice_forks.write_part),
    pretrained.NAME: Study(
        pretrained.UNITS, "protocol_pretrained.md", pretrained.write_unit, pretrained.plan
    ),
    forms.NAME: Study(forms.MODELS, "protocol_forms.md", forms.write_part, forms.plan),
    company.NAME: Study(company.BASE_SEEDS, "protocol_company.md", company.write_part),
    scale.NAME: Study(scale.BASE_SEEDS, "protocol_scale.md", scale.write_part),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--study", choices=STUDIES, default=pretraining.NAME)
    parser.add_argument("--units", type=int, nargs="+", help="numbers of parts; default: all")
    parser.add_argument("--detector", type=Path, help="a module that defines DETECTOR")
    parser.add_argument("--folder", type=Path, default=store.FOLDER, help="where parts are written")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one part")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    options = parser.parse_args()
    study, name, settings = STUDIES[options.study], options.study, ()
    folder = options.folder.absolute()
    if not folder.is_dir():
        parser.error(f"there is no folder {folder}: all parts would be made anew in it")
    if unknown := {*(options.units or ())} - {*study.numbers}:
        known = ", ".join(map(str, study.numbers))
        parser.error(f"{name} has no part {min(unknown)}: its parts are {known}")
    try:
        if options.detector:
            if name != pretraining.NAME:
                parser.error(f"--detector adds to the study {pretraining.NAME}: leave --study out")
            called = re.sub(r"\W+", "_", yours.load(options.detector).name.lower())
            name, settings = f"{yours.NAME}_{called}", (options.detector.absolute(),)
            study = study._replace(write=yours.write_part)
        names = {number: f"{name}_{number}" for number in options.units or study.numbers}
        missing = [n for n, part in names.items() if not (folder / f"{part}.json").exists()]
        if missing and study.plan:
            print(study.plan(missing), flush=True)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    about = {"protocol_sha256": storage.sha256_of_file(DOCS / study.protocol)}
    jobs = [(folder, names[number], about, number, *settings) for number in missing]
    if options.engine == "local":
        in_processes(study.write, jobs, options.jobs)
        return
    from contamination.models import ray_cluster

    try:
        ray_cluster.sweep(study.write, jobs)
    except (ModuleNotFoundError, ConnectionError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
