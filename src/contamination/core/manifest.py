"""What a manifest says of one run: files, versions, machine, inputs and use of the caches."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from contamination.core import storage

PACKAGES = (
    *("contamination", "numpy", "pandas", "scipy", "scikit-learn", "torch", "transformers"),
    *("tokenizers", "datasets", "openai", "rouge-score", "wordfreq", "papermill", "jupyterlab"),
)


def versions() -> dict[str, str]:
    """Python and the versions of the packages that can change a number."""
    by_package = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            # Without the local build label, so that CPU and GPU builds read alike.
            by_package[package] = metadata.version(package).partition("+")[0]
    return by_package


def describe(notebook_path: Path, parameter_path: Path, staging: Path) -> dict[str, Any]:
    """What made a run's results, as JSON values: hashes of all files, commit, versions, hardware.

    ``staging`` holds the results, and what ``storage.record`` has noted of inputs, models and
    caches. Memory is in GiB, the peak of the largest process in MiB, ``finished_at`` in UTC.
    """
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return _recorded(staging) | {
        "notebook": notebook_path.name,
        "notebook_sha256": storage.sha256_of_file(notebook_path),
        "parameters_sha256": storage.sha256_of_file(parameter_path),
        "git": _git_state(),
        "versions": versions(),
        "hardware": {
            "machine": platform.machine(),
            "system": platform.system(),
            "n_cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        },
        # In bytes on macOS, else in kilobytes.
        "peak_memory_mb": peak // (1024**2 if sys.platform == "darwin" else 1024),
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "outputs": {
            str(path.relative_to(staging)): storage.sha256_of_file(path)
            for folder in ("tables", "figures")
            for path in sorted((staging / folder).glob("*"))
        },
    }


def cpu_seconds() -> float:
    """Processor time of all processes that this one has started and that have ended, seconds."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _git_state() -> dict[str, Any]:
    folder = storage.checkout()
    if folder is None:  # installed: a repository around it would be somebody else's
        return {"commit": None, "dirty": None}

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def _recorded(staging: Path) -> dict[str, Any]:
    path = staging / storage.RECORD_NAME
    lines = path.read_text().splitlines() if path.exists() else []
    inputs: dict[str, str] = {}
    models: dict[str, dict[str, Any]] = {}
    caches: dict[str, dict[str, int]] = {}
    shared_seconds = 0.0
    for entry in map(json.loads, lines):
        kind = entry.pop("kind")
        if kind == "input":
            inputs[entry["name"]] = entry["sha256"]
        elif kind == "model":
            models[storage.hash_of(entry)] = entry
        elif kind == "shared":
            shared_seconds += entry["seconds"]
        else:
            use = caches.setdefault(entry["name"], {"hits": 0, "misses": 0})
            use["hits"] += entry["hits"]
            use["misses"] += entry["misses"]
    by_identity = [models[identity] for identity in sorted(models)]
    return {
        "inputs": inputs,
        "models": by_identity,
        "cache": caches,
        "shared_seconds": round(shared_seconds, 2),
    }
