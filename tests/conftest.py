"""Shared fixtures, and the count of what ran and what was skipped per group."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from contamination.core import parallel, storage
from contamination.data import sources
from contamination.models.response_log import ResponseLog

ROOT = Path(__file__).resolve().parents[1]
# The same examples every time; --hypothesis-profile=long looks further.
settings.register_profile("suite", max_examples=25, derandomize=True, deadline=None, database=None)
settings.register_profile("long", max_examples=5000, deadline=None, database=None)
settings.load_profile("suite")
# Tests that need something beyond the installed packages, by marker.
GROUPS = ("mirror", "servers")
# What the lab keeps of its texts, named by the hash of all that decides it.
LAB_TEXTS = ("background", "docstrings", "passages", "signatures", "tokenizers")
OFFLINE = "TESTS_OFFLINE_LOG"  # what children tried to reach off this machine, see tests/offline


def pytest_configure(config):
    """Every Python that a test starts is held to this machine; workers inherit it."""
    try:
        sources.available()
    except (
        OSError
    ) as error:  # a mirror was named, and skipping its tests would hide that it is gone
        raise pytest.UsageError(str(error)) from None
    # The suite has one worker for each core already.
    os.environ.setdefault(parallel.PROCESSES_VARIABLE, "1")
    if OFFLINE not in os.environ:
        os.environ[OFFLINE] = tempfile.mkstemp(prefix="offline")[1]
        folders = [str(ROOT / "tests/offline"), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))


def _is_present(group: str) -> bool:
    # Tests of servers are only selected by make test-servers, which sets up what they need.
    return sources.available() if group == "mirror" else True


def pytest_collection_modifyitems(items):
    skip = pytest.mark.skip(reason='needs the authors\' files: run "make data"')
    for item in items:
        if item.get_closest_marker("mirror") and not _is_present("mirror"):
            item.add_marker(skip)
    # What takes longest starts first; a file is one process's (--dist loadfile).
    items.sort(key=lambda item: item.path.name != "test_notebooks.py")


def _group_of(report) -> str:
    return next((group for group in GROUPS if group in report.keywords), "offline")


def pytest_terminal_summary(terminalreporter):
    counts = Counter()
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            counts[_group_of(report), outcome != "skipped"] += 1
    terminalreporter.section("groups")
    for group in sorted({group for group, _ in counts}):
        executed, skipped = counts[group, True], counts[group, False]
        terminalreporter.line(f"{group}: {executed} executed, {skipped} skipped")


def pytest_sessionfinish(session, exitstatus):
    """A group that could run and was skipped is a failure, not a pass."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    wrongly = {_group_of(report) for report in skipped} & {g for g in GROUPS if _is_present(g)}
    if wrongly and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.line(f"skipped although present: {', '.join(sorted(wrongly))}", red=True)
    if reporter and (tried := Path(os.environ[OFFLINE]).read_text()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.line(f"tried to reach off this machine:\n{tried}", red=True)


@pytest.fixture
def forked_kernels(monkeypatch):
    """Kernels that need not import the libraries again; macOS has libraries that bear no fork."""
    if sys.platform == "linux":
        from forked_kernels import ForkedKernel
        from jupyter_client.provisioning import local_provisioner

        monkeypatch.setattr(local_provisioner, "launch_kernel", ForkedKernel)


@pytest.fixture
def hub_offline(monkeypatch):
    """No hub; the client keeps a session that was opened before, with or without it."""
    from huggingface_hub import constants
    from huggingface_hub.utils import reset_sessions

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    reset_sessions()
    yield
    reset_sessions()


@pytest.fixture(scope="session")
def lab_texts(tmp_path_factory):
    """Folder of the lab's texts, whose making takes 20 s: all tests of all workers share it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    for part in LAB_TEXTS:
        (folder / "lab_texts" / part).mkdir(parents=True, exist_ok=True)
    return folder / "lab_texts"


def _new_cache(path: Path, lab_texts: Path) -> Path:
    (path / "lab").mkdir(parents=True)
    for part in LAB_TEXTS:
        (path / "lab" / part).symlink_to(lab_texts / part, target_is_directory=True)
    return path


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch, lab_texts):
    """No test reads or writes the user's outputs or caches."""
    monkeypatch.setenv(storage.OUTPUTS_VARIABLE, str(tmp_path / "outputs"))
    monkeypatch.delenv(storage.STAGING_VARIABLE, raising=False)
    # What make data fetched lies in the user's cache, and tests of it read there.
    if os.environ.get(sources.MIRROR_VARIABLE) or not sources.available():
        # Beside it: tests look at what is in their folder.
        cache = _new_cache(tmp_path.with_name(f"{tmp_path.name}_cache"), lab_texts)
        monkeypatch.setenv(storage.CACHE_VARIABLE, str(cache))


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory, lab_texts):
    return _new_cache(tmp_path_factory.mktemp("notebooks") / "cache", lab_texts)


@pytest.fixture
def one_lab_for_all(shared_cache, monkeypatch):
    """Notebooks share the lab's texts and models, as they do in make reproduce."""
    if storage.CACHE_VARIABLE in os.environ:
        monkeypatch.setenv(storage.CACHE_VARIABLE, str(shared_cache))


@pytest.fixture(scope="module")
def world_of_seed():
    from contamination.lab import world

    return functools.cache(world.build_world)


@pytest.fixture
def one_world(world_of_seed, monkeypatch):
    """The lab's texts, made once for all notebooks that run in this process."""
    from contamination.lab import world

    monkeypatch.setattr(world, "build_world", world_of_seed)


@pytest.fixture(scope="module")
def smoke_outputs(tmp_path_factory):
    """Output folder of the notebooks of one file, run in order in the smoke profile."""
    return tmp_path_factory.mktemp("smoke")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """Servers of the tests are on this machine, and no proxy stands between."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(scope="module")
def one_thread():
    """Matrices this small are slower on two threads, and far slower on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def log(tmp_path):
    with ResponseLog(tmp_path / "log.sqlite") as log:
        yield log
