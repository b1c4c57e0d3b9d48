"""The authors' and benchmark files: named by commit, checked, downloaded or taken from a mirror.

``sources.csv`` lists owner/repo/commit/path, SHA-256 and size of every file, and docs/datasets.md
says what each repository holds, under which licence. A file is looked up, in this order,

* in the folder that ``CONTAMINATION_MIRROR`` names, and then nowhere else;
* in the download cache, ``sources`` under :func:`contamination.core.storage.cache_folder`;
* at ``https://raw.githubusercontent.com/<owner>/<repo>/<commit>/<path>``, by pooch.

All three have the same layout. ``python -m contamination.data.sources`` (``make
data``) fetches everything. What we say about a mirror names it by its variable, never by its path.
"""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pandas as pd
import pooch
import requests
from tqdm.contrib.concurrent import thread_map

from contamination.core import storage
from contamination.core.keys import reason

MIRROR_VARIABLE = "CONTAMINATION_MIRROR"
BASE_URL = "https://raw.githubusercontent.com"
N_RETRIES = 2
N_THREADS = 4
pooch.get_logger().setLevel("WARNING")  # else a line for each file, with folders of this machine


@dataclass(frozen=True)
class Source:
    """One listed file; ``path`` is its path inside the repository."""

    owner_repo: str
    commit: str
    path: str
    sha256: str
    n_bytes: int

    @property
    def name(self) -> str:
        """What messages and manifests call the file."""
        return f"{self.owner_repo}/{self.path}"

    @property
    def location(self) -> str:
        """Repository, commit and path: where the file lies below a host or a mirror."""
        return f"{self.owner_repo}/{self.commit}/{self.path}"


class OutOfReachError(FileNotFoundError):
    """The server failed, not one file: the next file would fail as well."""


# A notebook's kernel works in another folder, where a relative name would mean something else.
if os.environ.get(MIRROR_VARIABLE):
    os.environ[MIRROR_VARIABLE] = str(Path(os.environ[MIRROR_VARIABLE]).absolute())


# What is listed


@functools.cache
def _listed() -> dict[str, Source]:
    """Every listed file by its name, owner/repo/path."""
    sources = []
    table = pd.read_csv(Path(__file__).with_name("sources.csv"))
    for location, sha256, n_bytes in table.itertuples(index=False):
        owner, repo, commit, path = location.split("/", 3)
        sources.append(Source(f"{owner}/{repo}", commit, path, sha256, int(n_bytes)))
    return {source.name: source for source in sources}


# One file, all files


def source_file(owner_repo: str, path: str) -> Path:
    """Local path of one listed file, its checksum verified; fetched if it is not there.

    ``path`` is inside the repository, such as ``"openai/grade-school-math"``, without the
    commit. ValueError if the file is not listed, or its bytes are not the listed ones;
    FileNotFoundError if the mirror lacks it or it could not be downloaded.
    """
    name = f"{owner_repo}/{path}"
    if name not in _listed():
        close = get_close_matches(name, _listed(), n=1)
        hint = f' (did you mean "{close[0]}"?)' if close else ""
        raise ValueError(f"{name} is not a listed source{hint}: see docs/datasets.md")
    source, mirror = _listed()[name], mirror_folder()
    local = _mirrored(source, mirror) if mirror else _fetched(source)
    storage.record("input", name=source.name, sha256=source.sha256)
    return local


def available() -> bool:
    """Whether files can be read without a network: a mirror is set, or the cache is complete.

    Looks at names and sizes only; :func:`source_file` verifies checksums.
    """
    if mirror_folder():
        return True
    cache = storage.cache_folder("sources")
    files = [(cache / source.location, source.n_bytes) for source in _listed().values()]
    return all(path.is_file() and path.stat().st_size == size for path, size in files)


def fetch_all() -> list[str]:
    """Fetch every listed file into the cache, or verify the mirror's; a line for each that failed.

    What is in the cache with the right bytes is not fetched again. OutOfReachError ends it: every
    other file would wait for the same failure.
    """

    def fetch(source: Source) -> str:
        try:
            source_file(source.owner_repo, source.path)
        except OutOfReachError:
            raise
        except (FileNotFoundError, ValueError) as error:
            return str(error)
        return ""

    mirror_folder()
    bar = {"max_workers": N_THREADS, "unit": "file", "disable": None}
    return [*filter(None, thread_map(fetch, _listed().values(), **bar))]


def mirror_folder() -> Path | None:
    """The folder that CONTAMINATION_MIRROR names; FileNotFoundError if it does not exist."""
    mirror = os.environ.get(MIRROR_VARIABLE)
    if not mirror:
        return None
    if not Path(mirror).is_dir():
        raise FileNotFoundError(
            f"{MIRROR_VARIABLE} names a folder that does not exist: correct it, "
            f'or unset it and run "make data"'
        )
    return Path(mirror)


def _mirrored(source: Source, mirror: Path) -> Path:
    local, shown = mirror / source.location, f"${MIRROR_VARIABLE}/{source.location}"
    cure = f'or unset {MIRROR_VARIABLE} and run "make data"'
    if not local.is_file():
        raise FileNotFoundError(f"{shown} is missing: complete the mirror, {cure}")
    found = storage.sha256_of_file(local)
    if found != source.sha256:
        raise ValueError(
            f"{shown} has a wrong checksum: expected {source.sha256}, got {found}; "
            f"put the original file there, {cure}"
        )
    return local


def _fetched(source: Source) -> Path:
    registry, folder = {source.location: source.sha256}, storage.cache_folder("sources")
    cache = pooch.Pooch(folder, f"{BASE_URL}/", registry, retry_if_failed=N_RETRIES)
    # pooch makes the folder too, and fails where another thread makes it first.
    (folder / source.location).parent.mkdir(parents=True, exist_ok=True)
    try:
        local = Path(cache.fetch(source.location))
    except ValueError as error:  # names what was expected and what was found
        raise ValueError(f"{source.name}: {error}") from error
    except requests.RequestException as error:
        is_absent = error.response is not None and error.response.status_code == 404
        kind = FileNotFoundError if is_absent else OutOfReachError
        raise kind(
            f'{source.name} could not be downloaded: {reason(error)}; run "make data" again, or '
            f"point {MIRROR_VARIABLE} at a folder with the same layout"
        ) from error
    if not local.stat().st_mode & 0o077:
        local.chmod(0o644)  # pooch leaves it readable for its owner alone
    return local


def main() -> int:
    """Fetch everything and say so; 0 if every file is there, else 1."""
    try:
        failures = fetch_all()
    except KeyboardInterrupt:
        failures = ['stopped; "make data" goes on from here']
    except OSError as error:
        failures = [str(error)]
    else:
        n_bytes = sum(source.n_bytes for source in _listed().values())
        said = f"{len(failures)} failed" if failures else "all there, checked by SHA-256"
        print(f"{len(_listed())} files, {n_bytes / 1e6:.1f} MB: {said}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
