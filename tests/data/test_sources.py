"""The listed files: what is listed, where it is looked for, and that nothing wrong stays."""

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from notebook_files import ROOT
from waiting import LIMIT_SECONDS

from contamination.core import storage
from contamination.data import sources

OWNER_REPO = "owner/repo"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONTENT = {f"data/{letter}.txt": f"{letter}\n".encode() * 500 for letter in "abc"}
SOURCE_FOLDER = str(Path(sources.__file__).parents[2])


def listed(path: str) -> sources.Source:
    content = CONTENT[path]
    return sources.Source(
        OWNER_REPO, COMMIT, path, hashlib.sha256(content).hexdigest(), len(content)
    )


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append(self.path)
        path = self.path.removeprefix(f"/{OWNER_REPO}/{COMMIT}/")
        faults = server.faults.get(path, [])
        fault = faults.pop(0) if faults else "none"
        content = CONTENT.get(path, b"")
        body = b"x" * len(content) if fault == "wrong" else content
        if fault == "drop":
            return
        status = fault if isinstance(fault, int) else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault in ("truncated", "stall"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if fault == "stall":
                server.stalled.set()
                server.released.wait()
            return
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server on this machine; ``faults[path]`` lists what goes wrong, one request at a time."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.faults = [], {}
    server.stalled, server.released = threading.Event(), threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setattr(sources, "BASE_URL", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, no mirror, three listed files, no waiting between attempts."""
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(sources.MIRROR_VARIABLE, raising=False)
    names = {f"{OWNER_REPO}/{path}": listed(path) for path in CONTENT}
    monkeypatch.setattr(sources, "_listed", lambda: names)
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda _: None))
    return tmp_path / "cache" / "sources" / OWNER_REPO / COMMIT


@pytest.fixture
def mirror(cache, tmp_path, monkeypatch):
    """A complete mirror of the three listed files; its commit's folder."""
    folder = tmp_path / "mirror" / OWNER_REPO / COMMIT
    for path, content in CONTENT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    return folder


@pytest.fixture
def no_network(monkeypatch):
    """A base address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setattr(sources, "BASE_URL", f"http://127.0.0.1:{port}")


def files_in(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def one_line(error: pytest.ExceptionInfo, tmp_path: Path) -> str:
    """The message; it is one line and shows no folder of this machine."""
    text = str(error.value)
    assert "\n" not in text
    assert str(tmp_path) not in text
    return text


# The list


def test_every_listed_file_has_one_commit_one_checksum_and_a_size():
    listed_sources = sources._listed()
    assert len(listed_sources) == 287
    assert sum(source.n_bytes for source in listed_sources.values()) == 48_437_432
    for source in listed_sources.values():
        assert re.fullmatch(r"[0-9a-f]{40}", source.commit)
        assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
        assert source.n_bytes > 0
        assert ".." not in source.path.split("/")
    commits = {(source.owner_repo, source.commit) for source in listed_sources.values()}
    assert len(commits) == 21


def test_every_repository_has_its_card_with_the_commit():
    page = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    for source in sources._listed().values():
        assert f"https://github.com/{source.owner_repo}/tree/{source.commit})" in page


# Download


def test_a_file_is_fetched_once_and_then_read_from_the_cache(server, cache):
    path = sources.source_file(OWNER_REPO, "data/a.txt")
    assert path == cache / "data/a.txt"
    assert path.read_bytes() == CONTENT["data/a.txt"]
    assert path.stat().st_mode & 0o444 == 0o444
    sources.source_file(OWNER_REPO, "data/a.txt")
    assert server.requests == [f"/{OWNER_REPO}/{COMMIT}/data/a.txt"]


def test_fetch_all_fetches_the_missing_only(server, cache):
    sources.source_file(OWNER_REPO, "data/b.txt")
    assert sources.fetch_all() == sources.fetch_all() == []
    assert len(server.requests) == 3
    assert files_in(cache) == sorted(CONTENT)


@pytest.mark.parametrize(
    ("fault", "error_type", "words"),
    [
        ("wrong", ValueError, "owner/repo/data/a.txt: SHA256 hash of downloaded file"),
        (404, FileNotFoundError, "owner/repo/data/a.txt could not be downloaded: 404"),
        ("drop", sources.OutOfReachError, "could not be downloaded: ('Connection aborted"),
        ("truncated", sources.OutOfReachError, "could not be downloaded: ('Connection broken"),
        (503, sources.OutOfReachError, "could not be downloaded: 503"),
        (429, sources.OutOfReachError, "could not be downloaded: 429"),
    ],
)
def test_a_failure_is_tried_three_times_and_leaves_nothing(
    server, cache, tmp_path, fault, error_type, words
):
    server.faults["data/a.txt"] = [fault] * 3 + [fault] * 2
    with pytest.raises(error_type) as error:
        sources.source_file(OWNER_REPO, "data/a.txt")
    assert words in one_line(error, tmp_path)
    if fault == "wrong":
        assert f"expected {listed('data/a.txt').sha256}" in str(error.value)
        assert f"got {hashlib.sha256(b'x' * 1000).hexdigest()}" in str(error.value)
    assert len(server.requests) == 3
    assert files_in(cache) == []
    # Two failures are forgiven.
    assert sources.source_file(OWNER_REPO, "data/a.txt").read_bytes() == CONTENT["data/a.txt"]
    assert files_in(cache) == ["data/a.txt"]


def test_one_wrong_file_does_not_stop_the_others(server, cache, capsys):
    server.faults["data/b.txt"] = ["wrong"] * 3
    assert sources.main() == 1
    printed = capsys.readouterr()
    assert printed.out == "3 files, 0.0 MB: 1 failed\n"
    assert [line.split()[0] for line in printed.err.splitlines()] == ["owner/repo/data/b.txt:"]
    assert files_in(cache) == ["data/a.txt", "data/c.txt"]
    assert sources.main() == 0
    assert len(server.requests) == 6


def test_a_server_out_of_reach_ends_the_run_early(cache, no_network, monkeypatch, capsys):
    many = [sources.Source(OWNER_REPO, COMMIT, f"{i}.txt", "0" * 64, 1) for i in range(260)]
    monkeypatch.setattr(sources, "_listed", lambda: {source.name: source for source in many})
    tried = []
    fetched = sources._fetched
    monkeypatch.setattr(sources, "_fetched", lambda source: tried.append(source) or fetched(source))
    assert sources.main() == 1
    printed = capsys.readouterr()
    assert printed.out == "" and "make data" in printed.err and "\n" not in printed.err.strip()
    assert len(tried) < 20


def test_a_killed_download_leaves_no_final_file_and_the_next_run_goes_on(server, cache):
    server.faults["data/a.txt"] = ["stall"]
    code = (
        "import json, sys; from contamination.data import sources\n"
        "source = sources.Source(**json.loads(sys.argv[2])); sources.BASE_URL = sys.argv[1]\n"
        "sources._listed = lambda: {source.name: source}\n"
        "sources.fetch_all()\n"
    )
    source = json.dumps(vars(listed("data/a.txt")))
    process = subprocess.Popen(
        [sys.executable, "-c", code, sources.BASE_URL, source],
        env=os.environ | {"PYTHONPATH": SOURCE_FOLDER},
    )
    try:
        assert server.stalled.wait(LIMIT_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert "data/a.txt" not in files_in(cache)
    assert not sources.available()
    server.released.set()
    assert sources.fetch_all() == []
    assert sources.available()


# The cache


def test_a_changed_cached_file_is_fetched_again(server, cache):
    (cache / "data").mkdir(parents=True)
    (cache / "data/a.txt").write_bytes(b"edited")
    assert sources.source_file(OWNER_REPO, "data/a.txt").read_bytes() == CONTENT["data/a.txt"]
    assert len(server.requests) == 1


def test_available_asks_for_every_file_at_its_size_and_for_no_network(server, cache):
    assert not sources.available()
    sources.fetch_all()
    n_requests = len(server.requests)
    assert sources.available()
    (cache / "data/c.txt").write_bytes(b"cut")
    assert not sources.available()
    assert len(server.requests) == n_requests


# The mirror


def test_a_mirror_is_read_in_place_and_asks_nobody(server, mirror, cache):
    assert sources.available()
    assert sources.source_file(OWNER_REPO, "data/a.txt") == mirror / "data/a.txt"
    assert sources.fetch_all() == []
    assert server.requests == []
    assert not cache.exists()


def test_a_file_missing_from_the_mirror_is_not_fetched_elsewhere(server, mirror, tmp_path):
    (mirror / "data/b.txt").unlink()
    with pytest.raises(FileNotFoundError) as error:
        sources.source_file(OWNER_REPO, "data/b.txt")
    assert one_line(error, tmp_path) == (
        f"$CONTAMINATION_MIRROR/owner/repo/{COMMIT}/data/b.txt is missing: complete the mirror, "
        'or unset CONTAMINATION_MIRROR and run "make data"'
    )
    assert sources.fetch_all() == [str(error.value)]
    assert server.requests == []


def test_a_corrupted_mirror_file_is_refused_and_left_alone(server, mirror, tmp_path):
    (mirror / "data/b.txt").write_bytes(b"corrupted")
    with pytest.raises(ValueError, match="has a wrong checksum") as error:
        sources.source_file(OWNER_REPO, "data/b.txt")
    text = one_line(error, tmp_path)
    assert text.startswith(f"$CONTAMINATION_MIRROR/owner/repo/{COMMIT}/data/b.txt has a wrong")
    assert hashlib.sha256(b"corrupted").hexdigest() in text
    assert listed("data/b.txt").sha256 in text
    assert sources.fetch_all() == [text]
    assert (mirror / "data/b.txt").read_bytes() == b"corrupted"
    assert server.requests == []


def test_a_mirror_that_does_not_exist_is_one_line_without_its_path(tmp_path, monkeypatch):
    missing = tmp_path / "nowhere"
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(missing))
    with pytest.raises(FileNotFoundError) as error:
        sources.available()
    one_line(error, tmp_path)


def test_the_manifest_learns_the_name_and_the_checksum_alone(mirror, tmp_path, monkeypatch):
    monkeypatch.setenv(storage.STAGING_VARIABLE, str(tmp_path))
    sources.source_file(OWNER_REPO, "data/a.txt")
    assert json.loads((tmp_path / storage.RECORD_NAME).read_text()) == {
        "kind": "input",
        "name": "owner/repo/data/a.txt",
        "sha256": listed("data/a.txt").sha256,
    }


# Names


def test_an_unknown_file_is_refused_with_the_nearest_name(cache):
    with pytest.raises(ValueError, match=r'not a listed source \(did you mean "owner/repo/data/a'):
        sources.source_file(OWNER_REPO, "data/a.text")


# The files themselves: the caveats that the cards name


def frame(owner_repo: str, path: str) -> pd.DataFrame:
    file = sources.source_file(owner_repo, path)
    if path.endswith(".jsonl"):
        with file.open(encoding="utf-8") as lines:
            return pd.DataFrame([json.loads(line) for line in lines])
    return pd.read_csv(file, sep="\t" if path.endswith(".tsv") else ",", keep_default_na=False)


@pytest.mark.mirror
def test_every_file_has_the_listed_bytes():
    assert sources.fetch_all() == []


@pytest.mark.mirror
def test_option_d_is_the_original_in_all_wild_rows_and_in_no_reported_one():
    counts = {}
    for arm in ("wild", "reported"):
        dcq = "shahriargolchin/DCQ"
        pattern = f"{dcq}/data/our_dcq/processed/{arm}_*.csv"
        paths = [
            source.path for name, source in sources._listed().items() if fnmatch(name, pattern)
        ]
        rows = pd.concat(frame(dcq, path) for path in sorted(paths))
        # 21 SAMSum rows differ in white space alone.
        same = rows["option_d"].str.split() == rows["instance"].str.split()
        counts[arm] = (len(rows), int(same.sum()))
    assert counts == {"wild": (671, 671), "reported": (364, 0)}


@pytest.mark.mirror
def test_longer_wikimia_passages_begin_with_a_32_word_passage():
    repo = "nlp-titech/samia"
    short = set(frame(repo, "wikimia/32.jsonl")["input"].str.split().str.join(" "))
    assert len(short) == 776
    members = {32: (387, 776), 64: (284, 542), 128: (139, 250), 256: (51, 82)}
    for length, expected in members.items():
        passages = frame(repo, f"wikimia/{length}.jsonl")
        words = passages["input"].str.split()
        assert (int(passages["label"].sum()), len(passages)) == expected
        assert (words.map(len) == length).all()
        assert words.map(lambda passage: " ".join(passage[:32]) in short).all()


@pytest.mark.mirror
def test_the_counts_that_the_cards_name():
    answers = pd.concat(
        frame("openai/grade-school-math", f"grade_school_math/data/{split}.jsonl")["answer"]
        for split in ("train", "test")
    ).str.extract(r"#### *(.+)")[0]
    assert (answers.str.contains(",").sum(), answers.str.startswith("-").sum()) == (93, 5)

    targets = frame("reasoning-machines/pal", "datasets/gsmhardv2.jsonl")["target"]
    assert ((targets < 0).sum(), (targets % 1 != 0).sum()) == (146, 303)

    mawps = frame("microsoft/ToRA", "src/data/mawps/test.jsonl")
    assert mawps["input"].duplicated().sum() == 84

    tables = sources.source_file("lupantech/PromptPG", "data/tabmwp/problems_test1k.json")
    kinds = [problem["ans_type"] for problem in json.loads(tables.read_text()).values()]
    assert sum(kind.endswith("_text") for kind in kinds) == 249

    boolq = sources.source_file("AGI-Edgerunners/LLM-Adapters", "dataset/boolq/test.json")
    questions = json.loads(boolq.read_text())
    assert {question["input"] for question in questions} == {""}
    assert sum(question["answer"] == "true" for question in questions) == 2033

    for section in ("ar", "rc"):
        questions = frame("ruixiangcui/AGIEval", f"data/v1/lsat-{section}.jsonl")
        assert questions["passage"].nunique() == 40
