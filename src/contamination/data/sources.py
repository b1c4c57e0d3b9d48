"""The authors' and benchmark files: named by commit, checked, downloaded or taken from a mirror.

Two tables travel with the package: ``sources.csv`` (owner/repo/commit/path,
SHA-256 and size of every file) and ``sources_repositories.csv`` (what each
repository holds, under which licence). A file is looked up, in this order,

* in the folder that ``CONTAMINATION_MIRROR`` names, and then nowhere else;
* in the download cache, ``sources`` under :func:`contamination.core.storage.cache_folder`;
* at ``https://raw.githubusercontent.com/<owner>/<repo>/<commit>/<path>``.

All three have the same layout. ``python -m contamination.data.sources`` (``make
data``) fetches everything. Messages and manifests name the folders by their
variables, never by their paths on this machine.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import requests
import tenacity
import urllib3
from tqdm import tqdm

from contamination.core import storage

MIRROR_VARIABLE = "CONTAMINATION_MIRROR"
BASE_URL = "https://raw.githubusercontent.com"
TIMEOUT_SECONDS = (5, 30)  # to connect; between two bytes
N_ATTEMPTS = 3
N_THREADS = 4
WAIT_BETWEEN_ATTEMPTS = tenacity.wait_exponential(multiplier=0.5, max=4)


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
        """Repository and path, as messages and manifests call the file."""
        return f"{self.owner_repo}/{self.path}"

    @property
    def location(self) -> str:
        """Repository, commit and path: where the file lies below a host or a mirror."""
        return f"{self.owner_repo}/{self.commit}/{self.path}"


@dataclass(frozen=True)
class FetchReport:
    """What :func:`fetch_all` did; ``failures`` holds a line for each file that failed."""

    n_downloaded: int
    n_present: int
    n_not_tried: int
    failures: tuple[str, ...]


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
    for location, sha256, n_bytes in _package_table("sources.csv").itertuples(index=False):
        owner, repo, commit, path = location.split("/", 3)
        sources.append(Source(f"{owner}/{repo}", commit, path, sha256, int(n_bytes)))
    return {source.name: source for source in sources}


def _package_table(name: str) -> pd.DataFrame:
    with (resources.files("contamination.data") / name).open(encoding="utf-8") as stream:
        return pd.read_csv(stream, keep_default_na=False)


def cards() -> pd.DataFrame:
    """One row per repository: what it holds, how much, under which terms.

    owner_repo, what, rows (text, one number per file or split), n_files, size_mb (10^6 bytes),
    licence, redistribution, caveat, commit.
    """
    listed = pd.DataFrame([vars(source) for source in _listed().values()])
    totals = listed.groupby("owner_repo").agg(
        n_files=("path", "size"), n_bytes=("n_bytes", "sum"), commit=("commit", "first")
    )
    table = _package_table("sources_repositories.csv").join(totals, on="owner_repo")
    table["size_mb"] = table["n_bytes"] / 1e6
    order = ["owner_repo", "what", "rows", "n_files", "size_mb"]
    return table[[*order, "licence", "redistribution", "caveat", "commit"]]


# One file, all files


def source_file(owner_repo: str, path: str) -> Path:
    """Local path of one listed file, its checksum verified once per process.

    ``path`` is inside the repository, such as ``"openai/grade-school-math"``, without the
    commit. ValueError if the file is not listed, or its bytes are not the listed ones;
    FileNotFoundError if the mirror lacks it or it could not be downloaded.
    """
    name = f"{owner_repo}/{path}"
    if name not in _listed():
        close = get_close_matches(name, _listed(), n=1)
        hint = f' (did you mean "{close[0]}"?)' if close else ""
        raise ValueError(
            f"{name} is not a listed source{hint}: see contamination.data.sources.cards()"
        )
    source = _listed()[name]
    local = _local_path(source)
    if not local.is_file():
        if _mirror_folder():
            raise FileNotFoundError(
                f"{_shown(source)} is missing: complete the mirror, "
                f'or unset {MIRROR_VARIABLE} and run "make data"'
            )
        _download(source, local)
    _verify_once(local, source)
    storage.record("input", name=source.name, sha256=source.sha256)
    return local


def available() -> bool:
    """Whether files can be read without a network: a mirror is set, or the cache is complete.

    Looks at names and sizes only; :func:`source_file` verifies checksums.
    """
    if _mirror_folder():
        return True
    local_paths = ((_local_path(source), source.n_bytes) for source in _listed().values())
    return all(path.is_file() and path.stat().st_size == size for path, size in local_paths)


def fetch_all() -> FetchReport:
    """Fetch every listed file into the cache, or verify the mirror's.

    A cached file with the right bytes is not fetched again, one with other bytes is replaced.
    The first time that the server is out of reach ends the run, since every other file would
    wait for the same failure.
    """
    _mirror_folder()
    counts: Counter[str] = Counter()
    failures = []
    out_of_reach = threading.Event()
    with ThreadPoolExecutor(N_THREADS) as pool:
        futures = [pool.submit(_fetch, source, out_of_reach) for source in _listed().values()]
        try:
            for future in tqdm(
                as_completed(futures), total=len(futures), unit="file", disable=None
            ):
                try:
                    counts[future.result()] += 1
                except (FileNotFoundError, ValueError) as error:
                    failures.append(str(error))
                    if isinstance(error, OutOfReachError):
                        break
        finally:
            pool.shutdown(cancel_futures=True)
    n_not_tried = len(futures) - counts["downloaded"] - counts["present"] - len(failures)
    return FetchReport(counts["downloaded"], counts["present"], n_not_tried, tuple(failures))


def _fetch(source: Source, out_of_reach: threading.Event) -> str:
    if out_of_reach.is_set():
        return "not tried"
    if _mirror_folder():
        source_file(source.owner_repo, source.path)
        return "present"
    local = _local_path(source)
    if local.is_file() and storage.sha256_of_file(local) == source.sha256:
        return "present"
    try:
        _download(source, local)
    except OutOfReachError:
        # Set here, not by the caller: this thread's next file follows at once.
        out_of_reach.set()
        raise
    return "downloaded"


# Where a file lies


def _mirror_folder() -> Path | None:
    mirror = os.environ.get(MIRROR_VARIABLE)
    if not mirror:
        return None
    if not Path(mirror).is_dir():
        raise FileNotFoundError(
            f"{MIRROR_VARIABLE} names a folder that does not exist: correct it, "
            f'or unset it and run "make data"'
        )
    return Path(mirror)


def _local_path(source: Source) -> Path:
    return (_mirror_folder() or storage.cache_folder("sources")) / source.location


def _shown(source: Source) -> str:
    """The local path as a message may show it: the folder by its variable."""
    if _mirror_folder():
        return f"${MIRROR_VARIABLE}/{source.location}"
    return storage.shown(_local_path(source))


@functools.cache  # which keeps what returns and forgets what raises
def _verify_once(local: Path, source: Source) -> None:
    original = f"put the original file there, or unset {MIRROR_VARIABLE}"
    cure = original if _mirror_folder() else "delete it"
    _verify(local, source, _shown(source), f'{cure} and run "make data"')


def _verify(local: Path, source: Source, shown: str, cure: str) -> None:
    sha256 = storage.sha256_of_file(local)
    if sha256 != source.sha256:
        raise ValueError(
            f"{shown} has a wrong checksum: expected {source.sha256}, got {sha256} "
            f"({local.stat().st_size:,} bytes, {source.n_bytes:,} listed); {cure}"
        )


# Download


def _download(source: Source, target: Path) -> None:
    attempts = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(N_ATTEMPTS),
        wait=WAIT_BETWEEN_ATTEMPTS,
        retry=tenacity.retry_if_exception(_may_pass),
        reraise=True,
    )
    try:
        attempts(_download_once, source, target)
    except requests.RequestException as error:
        kind = OutOfReachError if _may_pass(error) else FileNotFoundError
        raise kind(f"{source.name} could not be downloaded: {_reason_and_cure(error)}") from error


def _download_once(source: Source, target: Path) -> None:
    # No redirect: the raw-file address answers itself, and https stays https.
    address = f"{BASE_URL}/{quote(source.location)}"
    with (
        storage.atomic_path(target) as temporary,
        requests.get(
            address, timeout=TIMEOUT_SECONDS, stream=True, allow_redirects=False
        ) as response,
    ):
        response.raise_for_status()
        with temporary.open("wb") as stream:
            for data in response.iter_content(2**16):
                stream.write(data)
                if stream.tell() > source.n_bytes:
                    raise ValueError(
                        f"{source.name} is larger than the {source.n_bytes:,} bytes listed: "
                        'nothing was kept; run "make data" again'
                    )
        _verify(temporary, source, source.name, 'nothing was kept; run "make data" again')


def _may_pass(error: BaseException) -> bool:
    """Whether another attempt may succeed: the line or the server failed, not the file."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return error.response.status_code == 429 or error.response.status_code >= 500
    return isinstance(error, requests.RequestException)


def _reason_and_cure(error: requests.RequestException) -> str:
    mirror = f"point {MIRROR_VARIABLE} at a folder with the same layout"
    if isinstance(error, requests.HTTPError) and error.response is not None:
        again = 'Run "make data" later, or p' if _may_pass(error) else "P"
        return f"the server answered {error.response.status_code}. {again}{mirror[1:]}"
    if isinstance(error, requests.exceptions.SSLError):
        return f"the server's certificate was not accepted. Correct the network, or {mirror}"
    # requests wraps what failed before a connection stood in urllib3's MaxRetryError.
    if isinstance(error.args[0] if error.args else None, urllib3.exceptions.MaxRetryError):
        return f'no network. Run "make data" where there is one, or {mirror}'
    return f'the connection was lost. Run "make data" again, or {mirror}'


def main() -> int:
    """Fetch everything and say so; 0 if every file is there, else 1."""
    try:
        report = fetch_all()
    except KeyboardInterrupt:
        print('stopped; "make data" goes on from here', file=sys.stderr)
        return 1
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    for failure in report.failures:
        print(failure, file=sys.stderr)
    n_bytes = sum(source.n_bytes for source in _listed().values())
    print(
        f"{len(_listed())} files, {n_bytes / 1e6:.1f} MB: {report.n_downloaded} downloaded, "
        f"{report.n_present} already there, {len(report.failures)} failed, "
        f"{report.n_not_tried} not tried"
    )
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
