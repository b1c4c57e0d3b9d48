"""Python for the pages of exercises: the core of Pyodide (MPL-2.0), put beside a built site.

    python scripts/pyodide.py outputs/demo/site/_static/pyodide

npm fetches the package once, into the cache; its SHA-512 is pinned. Without npm or a network one
line says so, nothing is written, and the pages say that Python is missing.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from contamination.core import storage

PACKAGE = "pyodide@0.29.4"
SHA512 = (
    "b42b1e4eca94de44b16488e4b9ee735f14cc344c2b299c0e20811044103f5731"
    "f114dd61a02c5ee30e35a617c274777d8adf517023506f92bf45ed089ea320bc"
)
FILES = ["pyodide.js", "pyodide.asm.js", "pyodide-lock.json", "python_stdlib.zip"]
FILES += ["pyodide.asm.wasm"]  # the last: make waits for it


def main(folder: Path) -> int:
    try:
        archive = fetched()
    except FileNotFoundError as error:
        print(f"the site has no Python: {error}")
        return 0
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as package:
        for name in FILES:
            (folder / name).write_bytes(package.extractfile(f"package/{name}").read())
    return 0


def fetched() -> Path:
    """The package, in the cache.

    FileNotFoundError without npm or a network, ValueError if the bytes are not those pinned.
    """
    archive = storage.cache_folder("pyodide") / f"{PACKAGE.replace('@', '-')}.tgz"
    if archive.is_file():
        return verified(archive)
    print(f"fetching {PACKAGE} once, 6 MB, so that exercises run in the pages", flush=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as work:
        command = ["npm", "pack", PACKAGE, "--ignore-scripts", "--fetch-retries=0"]
        try:
            subprocess.run([*command, "--pack-destination", work], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            cure = 'run "make site" again where there are npm and a network'
            raise FileNotFoundError(f"npm could not fetch {PACKAGE}; {cure}") from None
        return verified(Path(work, archive.name)).rename(archive)


def verified(archive: Path) -> Path:
    if hashlib.sha512(archive.read_bytes()).hexdigest() != SHA512:
        raise ValueError(f"{archive} is not {PACKAGE}: its SHA-512 differs; delete it")
    return archive


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
