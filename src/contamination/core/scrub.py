"""What must not be published, and taking it out: keys, and the folders of this machine."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from contamination.core import keys, storage

# What stands before a folder and after it, so that /tmp is found neither in /a/tmp nor in /tmpfoo:
# a letter before it belongs to the mark of a colour or to an escape, or the path is another one.
_BEFORE = r"(?:(?<![\w.~<})\]*$/-])|(?<=\\[nrt])|(?<=//)|(?<=[0-9\[]m))"
_AFTER = r"(?![\w~+-]|\.\w)"
_FORMS = (os.path.abspath, os.path.realpath)


def scrubber(parameters: Mapping[str, Any]) -> Callable[[Any], Any]:
    """What takes keys and this machine's folders out of JSON values.

    Both are those of the environment and the parameters at the time of this call.
    """
    secrets = keys.secrets(parameters)
    named = {
        os.environ.get("CONTAMINATION_MIRROR", ""): "$CONTAMINATION_MIRROR",
        os.environ.get(storage.STAGING_VARIABLE, ""): "outputs",
        os.environ.get(storage.OUTPUTS_VARIABLE, ""): "outputs",
        os.environ.get(storage.CACHE_VARIABLE, ""): "$CONTAMINATION_CACHE",
        sys.prefix: "$VENV",
        sys.base_prefix: "$PYTHON",
        str(storage.project_root()): ".",
        str(Path.home()): "~",
        tempfile.gettempdir(): "$TMPDIR",
    }
    # A link's target too: a kernel may know its folder by that name.
    names = {form(path): name for path, name in named.items() if path for form in _FORMS}
    folders = sorted(filter(lambda path: len(path) > 1, names), key=len, reverse=True)
    place = re.compile(f"{_BEFORE}(?:{'|'.join(map(re.escape, folders))}){_AFTER}")

    def clean_text(text: str) -> str:
        return place.sub(lambda found: names[found[0]], keys.remove_keys(text, secrets))

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, Mapping):
            return {clean(name): clean(each) for name, each in value.items()}
        return [clean(each) for each in value] if isinstance(value, list) else value

    return clean
