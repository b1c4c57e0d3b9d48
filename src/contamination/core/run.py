"""Execute one notebook with one parameter file, and say in a manifest what made its tables."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from contamination.core import keys, storage
from contamination.core.keys import one_line
from contamination.core.parameters import (
    ParameterError,
    checked_parameters,
    declared_in,
    load_parameter_file,
)

# What stands before a folder and after it, so that /tmp is found neither in /a/tmp nor in /tmpfoo:
# a letter before it belongs to the mark of a colour or to an escape, or the path is another one.
_BEFORE = r"(?:(?<![\w.~<})\]*$/-])|(?<=\\[nrt])|(?<=//)|(?<=[0-9\[]m))"
_AFTER = r"(?![\w~+-]|\.\w)"
_FORMS = (os.path.abspath, os.path.realpath)


def scrubber(parameters: Mapping[str, Any]) -> Callable[[Any], Any]:
    """What takes keys and this machine's folders, as of now, out of JSON values."""
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
    caches. ``finished_at`` is in UTC.
    """
    return _recorded(staging) | {
        "notebook": notebook_path.name,
        "notebook_sha256": storage.sha256_of_file(notebook_path),
        "parameters_sha256": storage.sha256_of_file(parameter_path),
        "git": _git_state(),
        "versions": versions(),
        "hardware": {"machine": platform.machine(), "system": platform.system()},
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
    for entry in map(json.loads, lines):
        kind = entry.pop("kind")
        if kind == "input":
            inputs[entry["name"]] = entry["sha256"]
        elif kind == "model":
            models[storage.hash_of(entry)] = entry
        else:
            use = caches.setdefault(entry["name"], {"hits": 0, "misses": 0})
            use["hits"] += entry["hits"]
            use["misses"] += entry["misses"]
    return {
        "inputs": inputs,
        "models": [models[identity] for identity in sorted(models)],
        "cache": caches,
    }


ADDED = {"injected-parameters", "papermill-error-cell-tag"}  # tags of papermill's own cells


class RunError(RuntimeError):
    """A run that did not finish, in one line."""


def check(notebook_path: Path, parameter_path: Path) -> dict[str, Any]:
    """All parameters of a run; ParameterError if the file does not fit. Nothing is executed."""
    declared = declared_in(notebook_path)
    return checked_parameters(load_parameter_file(parameter_path), declared, str(parameter_path))


def run_notebook(
    notebook_path: Path,
    parameter_path: Path,
    output_folder: Path,
) -> Path:
    """Execute a notebook and return its executed copy, next to its tables, figures and manifest.

    What a run that fails or is interrupted has written so far is kept in ``failed``. RunError,
    ParameterError or OSError if the run cannot start or does not finish.
    """
    notebook_path, output = Path(notebook_path), Path(output_folder).absolute()
    name, parameters = notebook_path.stem, check(notebook_path, parameter_path)
    executed, manifest_name = f"notebooks/{name}.ipynb", f"manifests/{name}.json"
    failed, tables = output / f"failed/{name}.ipynb", output / "failed" / name
    with _staging(output, name) as staging:
        started, spent = time.perf_counter(), cpu_seconds()
        saved = _Saved(scrubber(parameters), notebook_path.absolute().parent, output / "notebooks")
        hint = f"(parameters: {parameter_path}; read {output.name}/failed/{failed.name})"
        try:
            _execute(notebook_path, parameters, saved, hint)
        except (RunError, KeyboardInterrupt):
            storage.write_text(failed, saved.tidied())
            shutil.rmtree(tables, ignore_errors=True)
            if (staging / "tables").exists():
                (staging / "tables").replace(tables)
            raise
        record: dict[str, Any] = describe(notebook_path, Path(parameter_path), staging) | {
            "parameters": parameters,
            "seconds": round(time.perf_counter() - started, 2),
            "cpu_seconds": round(cpu_seconds() - spent, 2),
        }
        storage.write_json(staging / manifest_name, saved.scrub(record))
        storage.write_text(staging / executed, saved.tidied())
        if (output / manifest_name).exists():
            earlier = json.loads((output / manifest_name).read_text(encoding="utf-8"))["outputs"]
            for relative in earlier.keys() - record["outputs"]:  # the notebook no longer writes it
                (output / relative).unlink(missing_ok=True)
        for relative in (*record["outputs"], manifest_name, executed):
            (output / relative).parent.mkdir(parents=True, exist_ok=True)
            (staging / relative).replace(output / relative)
        failed.unlink(missing_ok=True)
        shutil.rmtree(tables, ignore_errors=True)
    return output / executed


@contextlib.contextmanager
def _staging(output: Path, name: str) -> Iterator[Path]:
    """A fresh folder on the output's file system, which the kernel finds in its environment.

    One run of a notebook at a time: two would mix their tables.
    """
    folder, before = output / ".staging" / name, dict(os.environ)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy = f"{name}: another run is writing to {output.name}: wait for its end"
            raise RunError(busy) from None
        shutil.rmtree(folder, ignore_errors=True)  # what a killed run left behind
        folder.mkdir()
        os.environ |= {storage.OUTPUTS_VARIABLE: str(output), storage.STAGING_VARIABLE: str(folder)}
        try:
            yield folder
        finally:
            os.environ.clear()
            os.environ |= before
            shutil.rmtree(folder, ignore_errors=True)


_LINK = re.compile(r"(\]\()([^)#\s]+)")  # a link of Markdown up to its fragment


def with_links(text: str, folder: Path, home: Path, root: Path) -> str:
    """Markdown of a notebook in ``home`` with relative links that work from ``folder``.

    Both lie in the checkout ``root``; notebooks are next to each other in either.
    """

    def link(found: re.Match[str]) -> str:
        place = (home / found[2]).resolve()
        is_sibling = place.parent == root / "notebooks" and place.suffix == ".ipynb"
        if ":" in found[2] or is_sibling or not place.exists() or not place.is_relative_to(root):
            return found[0]
        return found[1] + Path(os.path.relpath(place, folder)).as_posix()

    return _LINK.sub(link, text)


class _Saved:
    """Where papermill saves the running notebook: in memory, since it may show a key."""

    def __init__(self, scrub: Callable[[Any], Any], home: Path, folder: Path) -> None:
        self.scrub, self.notebook = scrub, {"cells": [], "metadata": {}}
        self.home, self.folder = home, folder

    def write(self, text: str, _: str) -> None:
        self.notebook = json.loads(text)

    def pretty_path(self, path: str) -> str:
        return path

    def where(self) -> str:
        """The code cell that was started last: its number in the source, and the heading above."""
        found, heading, number = "the parameters cell", "", 0
        for cell in self.notebook["cells"]:
            number += not ADDED & {*cell["metadata"]["tags"]}
            if cell["cell_type"] == "markdown":
                heading = [heading, *re.findall("^#+ (.*)", "".join(cell["source"]), re.M)][-1]
            elif cell["execution_count"]:
                found = f'cell {number}, under "{heading}",' if heading else f"cell {number}"
        return found

    def tidied(self) -> str:
        """The notebook without keys, folders of this machine and times of day; its links work."""
        notebook, root = self.scrub(self.notebook), storage.checkout()
        is_inside = root is not None and self.folder.is_relative_to(root)
        for cell in notebook["cells"]:
            if is_inside and cell["cell_type"] == "markdown":
                text = with_links("".join(cell["source"]), self.folder, self.home, root)
                cell["source"] = text.splitlines(keepends=True)
            cell["metadata"].pop("execution", None)
            for key in ("start_time", "end_time", "duration"):
                cell["metadata"].get("papermill", {}).pop(key, None)
        notebook["metadata"].pop("papermill", None)
        python = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook["metadata"]["kernelspec"] = python
        return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)


def _execute(
    notebook_path: Path,
    parameters: dict[str, Any],
    saved: _Saved,
    hint: str,
) -> None:
    """Run all cells; RunError, which names the cell and ends with ``hint``, if not all complete."""
    # These take seconds to import, and what a bad file needs is one line at once.
    import papermill
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from papermill.exceptions import PapermillExecutionError
    from papermill.iorw import papermill_io

    class OwnKernel(AsyncKernelManager):
        """Of this Python: one of the same name elsewhere may have other versions of packages."""

        def __init__(self, **settings: Any) -> None:
            super().__init__(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]), **settings)

    papermill_io.register("memory:", saved)
    try:
        papermill.execute_notebook(
            str(notebook_path.absolute()),
            "memory:.ipynb",
            parameters=parameters,
            kernel_name="python3",
            kernel_manager_class=OwnKernel,
            language="python",
            cwd=str(notebook_path.parent.absolute()),
            progress_bar=False,
            # The kernel's own notice about its transport is none of the user's business.
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        why = f"failed: {error.ename}: {error.evalue}"
    except RuntimeError as error:  # the kernel died, or did not start
        why = f"failed: {type(error).__name__}: {error}"
    else:
        cells = saved.notebook["cells"]
        if all(cell["metadata"]["papermill"]["status"] == "completed" for cell in cells):
            return
        why = "ended the notebook early; the cells after it did not run"  # sys.exit()
    why = one_line(saved.scrub(why), 1000)
    raise RunError(f"{notebook_path.stem}: {saved.where()} {why} {hint}")


def main(arguments: list[str] | None = None) -> int:
    """Run one notebook from the command line; returns the exit status, 0 or 1."""
    parser = argparse.ArgumentParser(prog="python -m contamination.core.run", description=__doc__)
    for name in ("notebook", "parameters", "outputs"):
        parser.add_argument(name, type=Path)
    options, started = parser.parse_args(arguments), time.perf_counter()
    try:
        target = run_notebook(options.notebook, options.parameters, options.outputs)
    except (RunError, ParameterError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    here = target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target
    print(f"{target.stem}: done in {time.perf_counter() - started:.0f} s, {here}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
