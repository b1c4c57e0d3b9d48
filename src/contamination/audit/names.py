"""Names of models, checked before anything is read, planned or paid."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from contamination.audit.settings import CLEAN, CONTAMINATED, LAB
from contamination.models.source import PACKAGED, check_model, check_name_on_hub

PACKAGE = "package:"
MOST_LISTED = 5  # models that a message names


def check_name(name: str) -> None:
    """Raise, in one line with its cure, if no model has this name; no weights are read.

    Args:
        name: a folder, a GGUF file, a hub id, ``PACKAGED``, "lab:contaminated", "lab:clean" or
            "lab:clean:1" and so on.

    Raises:
        FileNotFoundError: for a folder or file that is not there, a hub id that is not found, and
            the packaged model before ``make pretrained``.
        ValueError: for another name of the lab or of a package, and as ``models.source``.
    """
    if name.startswith(LAB):
        if name != CONTAMINATED and name.rstrip("0123456789").rstrip(":") != CLEAN:
            raise ValueError(
                f'the lab has "{CONTAMINATED}" and "{CLEAN}", not "{name}"'
                f"{_meant(name, (CONTAMINATED, CLEAN))}"
            )
    elif name.startswith(PACKAGE) and name != PACKAGED:
        raise ValueError(f'no packaged model is called "{name}": did you mean "{PACKAGED}"?')
    elif _is_path(name) and not Path(name).expanduser().exists():
        raise FileNotFoundError(f'no folder or file is called "{name}"{_nearby(Path(name))}')
    elif name == PACKAGED or Path(name).exists():
        check_model(name)
    else:
        check_name_on_hub(name)


def _is_path(name: str) -> bool:
    """Whether a name can only be a path; "owner/name" is a hub id too."""
    return name.startswith((".", "/", "~")) or name.endswith(".gguf") or name.count("/") > 1


def _meant(name: str, known: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f': did you mean "{nearest[0]}"?' if nearest else ""


def _nearby(path: Path) -> str:
    """The models in the folder in which a model was looked for, as the end of a sentence."""
    folder = path.expanduser().parent
    if not folder.is_dir():
        return f': "{folder}" is not there either'
    models = [
        entry.name
        for entry in sorted(folder.iterdir())
        if entry.suffix == ".gguf" or (entry / "config.json").is_file()
    ]
    if not models:
        return f': "{folder}" holds no folder with config.json and no GGUF file'
    shown = ", ".join(models[:MOST_LISTED])
    return f': "{folder}" holds {shown}{" and more" if len(models) > MOST_LISTED else ""}'
