"""Execute one notebook with one parameter file: a strict, thin layer over papermill.

    python -m contamination.core.run notebooks/02_dcq.ipynb params/demo/02_dcq.yaml outputs/demo

Names, types and ranges are checked before anything runs; ``--help-notebook`` in place of
file and folder lists them. Results go to a staging
folder; only when every code cell has completed do tables, figures, manifest
and, last, the executed notebook move to the output folder. So a failed or
killed run leaves no target, and Make runs it again.
"""

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
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.core import storage
from contamination.core.parameters import (
    ParameterError,
    checked_parameters,
    declared_in,
    load_parameter_file,
)
from contamination.core.visible import visible

if TYPE_CHECKING:  # slow to import, and what a bad file needs is one line at once
    import nbformat

KERNEL = "python3"
PACKAGES = (
    *("contamination", "numpy", "pandas", "scipy", "scikit-learn", "torch", "transformers"),
    *("tokenizers", "datasets", "openai", "rouge-score", "wordfreq", "papermill", "jupyterlab"),
)
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SECRET_SHAPE = re.compile(r"\b(?:sk|hf|ghp|xox[a-z])[-_][A-Za-z0-9_-]{16,}")
_SHORTEST_SECRET = 8


class RunError(RuntimeError):
    """A run that cannot start or did not finish; the message is one line."""


def versions() -> dict[str, str]:
    """Python and the versions of the packages that can change a number."""
    by_package = {"python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            # Without the local build label, so that CPU and GPU builds read alike.
            by_package[package] = metadata.version(package).partition("+")[0]
    return by_package


def run_notebook(notebook_path: Path, parameter_path: Path, output_folder: Path) -> Path:
    """Execute a notebook and move its results to the output folder.

    Returns the executed notebook, beside tables/, figures/ and manifests/. RunError or
    ParameterError: one line that names cause and cure.
    """
    notebook_path, parameter_path = Path(notebook_path), Path(parameter_path)
    output_folder = Path(output_folder).absolute()
    parameters = check(notebook_path, parameter_path)
    name = notebook_path.stem
    target = output_folder / "notebooks" / f"{name}.ipynb"
    with _staging(output_folder, name) as staging, _environment(output_folder, staging):
        started = time.perf_counter()
        executed = staging / f"{name}.ipynb"
        try:
            _execute(notebook_path, executed, parameters)
        except RunError as error:
            kept = _keep_failed(executed, output_folder, name)
            raise RunError(f"{name}: {error} (parameters: {parameter_path}{kept})") from None
        _scrub_notebook(executed)
        outputs = {
            str(path.relative_to(staging)): storage.sha256_of_file(path)
            for folder in ("tables", "figures")
            for path in sorted((staging / folder).glob("*"))
        }
        manifest = {
            "notebook": notebook_path.name,
            "parameters": parameters,
            "seconds": round(time.perf_counter() - started, 2),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
            "outputs": outputs,
            **_provenance(notebook_path, parameter_path),
            **_recorded(staging),
        }
        manifest_name = f"manifests/{name}.json"
        _remove_outdated(output_folder, output_folder / manifest_name, outputs)
        text = json.dumps(manifest, indent=2, sort_keys=True)
        storage.write_text(staging / manifest_name, _scrub(text) + "\n")
        for relative in [*outputs, manifest_name]:
            _move(staging / relative, output_folder / relative)
        (output_folder / "failed" / f"{name}.ipynb").unlink(missing_ok=True)
        # Last: Make takes the executed notebook as proof that all the rest is there.
        _move(executed, target)
    return target


def check(notebook_path: Path, parameter_path: Path) -> dict[str, Any]:
    """Full, checked parameters of a run; nothing is executed."""
    declared = declared_in(notebook_path)
    return checked_parameters(load_parameter_file(parameter_path), declared, str(parameter_path))


@contextlib.contextmanager
def _staging(output_folder: Path, name: str) -> Iterator[Path]:
    """A fresh staging folder on the output's own file system, one run of a notebook at a time."""
    root = output_folder / ".staging"
    folder = root / name
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / f"{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(
                    f"{name}: another run of it is writing to {output_folder.name}; wait for it"
                ) from None
            # What a killed run left behind.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise RunError(f"{name}: {_cannot_write(error)}") from None


@contextlib.contextmanager
def _environment(output_folder: Path, staging: Path) -> Iterator[None]:
    """What the kernel inherits: where to write, which kernel, an absolute mirror."""
    before = dict(os.environ)
    os.environ |= {
        storage.OUTPUTS_VARIABLE: str(output_folder),
        storage.STAGING_VARIABLE: str(staging),
        # The kernel of this environment, not one of the same name elsewhere.
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    if mirror := os.environ.get("CONTAMINATION_MIRROR"):
        # The kernel works in another folder than the caller.
        os.environ["CONTAMINATION_MIRROR"] = str(Path(mirror).absolute())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def _execute(notebook_path: Path, executed: Path, parameters: dict[str, Any]) -> None:
    import nbformat
    import papermill
    from papermill.exceptions import PapermillExecutionError

    source = nbformat.read(notebook_path, as_version=4)
    try:
        notebook = papermill.execute_notebook(
            str(notebook_path.absolute()),
            str(executed),
            parameters=parameters,
            kernel_name=KERNEL,
            language="python",
            cwd=str(notebook_path.parent.absolute()),
            progress_bar=False,
            # The kernel's own notices (transport, debugger) are none of the user's business.
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        where = _where(source, error.source)
        raise RunError(f"{where} failed: {_one_line(error.ename, error.evalue)}") from None
    except OSError as error:
        raise RunError(f"stopped: {_cannot_write(error)}") from None
    except Exception as error:
        # A dead or a missing kernel.
        raise RunError(f"stopped: {_one_line(type(error).__name__, str(error))}") from None
    last = ""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if cell.metadata.papermill.status != "completed":
            where = _where(source, cell.source if cell.execution_count else last)
            raise RunError(f"{where} ended the notebook early; the cells after it did not run")
        last = cell.source


def _where(notebook: nbformat.NotebookNode, code: str) -> str:
    """A code cell as a reader finds it: its number and the heading above it."""
    heading = ""
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "markdown":
            titles = [line for line in cell.source.splitlines() if line.startswith("#")]
            heading = titles[-1].lstrip("# ") if titles else heading
        elif cell.source == code:
            return f'cell {number}, under "{heading}",' if heading else f"cell {number}"
    return "the parameters cell"


def _cannot_write(error: OSError) -> str:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"cannot write to the output folder: {reason}; free or unlock it and run again"


def _one_line(kind: str, message: str) -> str:
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    return visible(_scrub(f"{kind}: {lines[0]}" if lines else kind))


def _keep_failed(executed: Path, output_folder: Path, name: str) -> str:
    """Keep the unfinished notebook for reading, apart from the targets."""
    try:
        _scrub_notebook(executed)
        _move(executed, output_folder / "failed" / f"{name}.ipynb")
    except (OSError, ValueError):
        # Nothing readable to keep: the disk is full, or no cell has run yet.
        return ""
    return f"; read {output_folder.name}/failed/{name}.ipynb"


def _remove_outdated(output_folder: Path, manifest_path: Path, outputs: dict[str, str]) -> None:
    """Remove tables and figures that an earlier version of the notebook wrote and this one not."""
    if manifest_path.exists():
        earlier = json.loads(manifest_path.read_text(encoding="utf-8"))["outputs"]
        for relative in set(earlier) - set(outputs):
            (output_folder / relative).unlink(missing_ok=True)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)


# What must not be published: paths of this machine, keys


def _scrub(text: str) -> str:
    """Text without keys and without this machine's folders."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    text = _SECRET_SHAPE.sub("***", text)
    folders = {
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
    for folder in sorted(folders, key=len, reverse=True):
        if len(folder) > 1:
            text = text.replace(folder, folders[folder])
    return text


def _scrub_notebook(path: Path) -> None:
    """Remove paths, keys and clock times from an executed notebook, and name the kernel used."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for key in ("start_time", "end_time", "duration"):
            cell.metadata.get("papermill", {}).pop(key, None)
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("papermill", None)
    notebook.metadata.kernelspec = {
        "name": KERNEL,
        "display_name": "Python 3",
        "language": "python",
    }
    storage.write_text(path, _scrub(nbformat.writes(notebook)))


# The manifest


def _provenance(notebook_path: Path, parameter_path: Path) -> dict[str, Any]:
    return {
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
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _git_state() -> dict[str, Any]:
    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=storage.project_root(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def _recorded(staging: Path) -> dict[str, Any]:
    """Inputs and cache use that the notebook recorded through ``storage.record``."""
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
    return {"inputs": inputs, "models": list(models.values()), "cache": caches}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m contamination.core.run", description=__doc__)
    parser.add_argument("notebook", type=Path, help="notebook to execute")
    parser.add_argument("parameters", type=Path, nargs="?", help="YAML file with its parameters")
    parser.add_argument("outputs", type=Path, nargs="?", help="folder of what it writes")
    parser.add_argument(
        "--help-notebook", action="store_true", help="list the parameters and what each may be"
    )
    options = parser.parse_args(arguments)
    if not (options.help_notebook or options.outputs):
        parser.error("name a parameter file and a folder of outputs, or --help-notebook")
    started = time.perf_counter()
    try:
        if options.help_notebook:
            for each in declared_in(options.notebook).values():
                print(f"{each.name}: {each.type_name} = {each.default!r}\n    {each.comment}")
            return 0
        target = run_notebook(options.notebook, options.parameters, options.outputs)
    except (RunError, ParameterError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"error: {options.notebook.stem}: interrupted; nothing was written", file=sys.stderr)
        return 130
    seconds = time.perf_counter() - started
    here = target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target
    print(f"{target.stem}: done in {seconds:.0f} s, {here}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
