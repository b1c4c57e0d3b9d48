"""Store the tables of notebook 12 that a run of the profile pretrained has written.

    python scripts/store_real_model.py outputs/pretrained

Names one folder of outputs or several, such as one for each part of the notebook. The tables go to
``src/contamination/study/real_model/``, where notebook 12 finds them in every other profile.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

from contamination.study import real_model

PARAMETERS = Path(__file__).parents[1] / f"params/pretrained/{real_model.NOTEBOOK}.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outputs", type=Path, nargs="+")
    parameters = yaml.safe_load(PARAMETERS.read_text())
    for folder in parser.parse_args().outputs:
        try:
            parts = real_model.store(folder, parameters)
        except (OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        print(f"{folder}: stored {', '.join(parts)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
