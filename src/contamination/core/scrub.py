"""What must not be published, and taking it out: keys, and the folders of this machine."""

from __future__ import annotations

import functools
import json
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

    @functools.cache  # a notebook is saved again and again, and most of it is as before
    def clean_text(text: str) -> str:
        return place.sub(lambda found: names[found[0]], keys.remove_keys(text, secrets))

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, Mapping):
            return {clean(name): clean(each) for name, each in value.items()}
        return [clean(each) for each in value] if isinstance(value, list) else value

    return clean


class ScrubbedFile:
    """Where papermill saves a running notebook: no key reaches the disk, even for a while.

    A run that is killed leaves what it saved last.
    """

    def __init__(self, scrub: Callable[[Any], Any]) -> None:
        self._scrub = scrub

    def pretty_path(self, path: str) -> str:
        """The path as it is; papermill asks for it."""
        return path

    def write(self, text: str, path: str) -> None:
        """Write a notebook, given as JSON, without keys; ValueError for a text that is no JSON."""
        notebook = self._scrub(json.loads(text))
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        storage.write_bytes(Path(path), text.encode())
