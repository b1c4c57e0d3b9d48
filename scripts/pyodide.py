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
    archive = storage.cache_folder("pyodide") / f"{PACKAGE.replace('@', '-')}.tgz"
    if not archive.is_file():
        print(f"fetching {PACKAGE} once, 6 MB, so that exercises run in the pages", flush=True)
        command = ["npm", "pack", PACKAGE, "--ignore-scripts", "--fetch-retries=0"]
        command += ["--pack-destination", str(archive.parent)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            cure = 'run "make site" again where there are npm and a network'
            print(f"the site has no Python: npm could not fetch {PACKAGE}; {cure}")
            return 0
    if hashlib.sha512(archive.read_bytes()).hexdigest() != SHA512:
        archive.unlink()
        raise SystemExit(f"error: {archive} was not {PACKAGE}: its SHA-512 differs; it is deleted")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as package:
        for name in FILES:
            (folder / name).write_bytes(package.extractfile(f"package/{name}").read())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
