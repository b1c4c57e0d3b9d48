"""Execute one notebook with one parameter file: a strict, thin layer over papermill.

    python -m contamination.core.run notebooks/02_dcq.ipynb params/demo/02_dcq.yaml outputs/demo

Names, types and ranges are checked before anything runs; ``--help-notebook`` in place of
file and folder lists them. Results go to a staging
folder; only when every code cell has completed do tables, figures, manifest
and, last, the executed notebook move to the output folder. So a failed or
killed run leaves no target, and Make runs it again. What a failed or interrupted
run has written so far is kept for reading, in failed/ of the output folder.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from contamination.core import keys, manifest, storage
from contamination.core.parameters import (
    ParameterError,
    checked_parameters,
    declared_in,
    load_parameter_file,
)
from contamination.core.progress_line import ProgressLine
from contamination.core.scrub import ScrubbedFile, scrubber
from contamination.core.visible import visible

if TYPE_CHECKING:  # slow to import, and what a bad file needs is one line at once
    import nbformat
    from jupyter_client import AsyncKernelManager
    from papermill.engines import NBClientEngine

KERNEL = "python3"
ENGINE = "saves now and then"
SAVE_EVERY = 10.0  # seconds; writing a notebook down after each cell takes longer than most cells


# Errors whose own message names cause and cure.
EXPLAINED = ("ValueError", "FileNotFoundError", "ParameterError", "ChatError", "UnsupportedError")


class RunError(RuntimeError):
    """A run that cannot start or did not finish; the message is one line.

    Attributes:
        cause: the failed cell's own message, if it is one of ``EXPLAINED``, else "".
    """

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause

    @property
    def short(self) -> str:
        """The cause alone, for somebody who did not open the notebook; else the message."""
        return self.cause or str(self)


def run_notebook(
    notebook_path: Path,
    parameter_path: Path,
    output_folder: Path,
    watched_on: TextIO | None = None,
) -> Path:
    """Execute a notebook and move its results to the output folder.

    What its progress bars say is shown on the terminal ``watched_on``, as one line.

    Returns the executed notebook, beside tables/, figures/ and manifests/. RunError or
    ParameterError: one line that names cause and cure.
    """
    notebook_path, parameter_path = Path(notebook_path), Path(parameter_path)
    output_folder = Path(output_folder).absolute()
    parameters = check(notebook_path, parameter_path)
    name = notebook_path.stem
    target = output_folder / "notebooks" / f"{name}.ipynb"
    with (
        _staging(output_folder, name) as staging,
        _environment(output_folder, staging, watched_on is not None),
    ):
        started, spent = time.perf_counter(), manifest.cpu_seconds()
        executed = staging / f"{name}.ipynb"
        scrub = scrubber(parameters)
        try:
            with contextlib.closing(ProgressLine(watched_on, scrub)) as progress:
                _execute(notebook_path, executed, parameters, scrub, progress)
        except RunError as error:
            kept = _keep_failed(executed, output_folder, name)
            message = f"{name}: {error} (parameters: {parameter_path}{kept})"
            raise RunError(message, error.cause) from None
        except KeyboardInterrupt:
            _keep_failed(executed, output_folder, name)
            raise
        _tidy(executed)
        outputs = {
            str(path.relative_to(staging)): storage.sha256_of_file(path)
            for folder in ("tables", "figures")
            for path in sorted((staging / folder).glob("*"))
        }
        said = {
            "notebook": notebook_path.name,
            "parameters": parameters,
            "seconds": round(time.perf_counter() - started, 2),
            "cpu_seconds": round(manifest.cpu_seconds() - spent, 2),
            "peak_memory_mb": manifest.peak_memory_mb(),
            "outputs": outputs,
            **manifest.provenance(notebook_path, parameter_path),
            **manifest.recorded(staging),
        }
        manifest_name = f"manifests/{name}.json"
        _remove_outdated(output_folder, output_folder / manifest_name, outputs)
        text = json.dumps(scrub(said), indent=2, sort_keys=True)
        storage.write_text(staging / manifest_name, text + "\n")
        for relative in [*outputs, manifest_name]:
            _move(staging / relative, output_folder / relative)
        (output_folder / "failed" / f"{name}.ipynb").unlink(missing_ok=True)
        shutil.rmtree(failed_tables(output_folder, name), ignore_errors=True)
        # Last: Make takes the executed notebook as proof that all the rest is there.
        _move(executed, target)
    return target


def failed_tables(output_folder: Path, name: str) -> Path:
    """Folder of the tables that a failed or interrupted run of a notebook has written so far."""
    return Path(output_folder) / "failed" / name


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
                    f"{name}: another run is writing to {output_folder.name}: wait for its end"
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
def _environment(output_folder: Path, staging: Path, is_watched: bool) -> Iterator[None]:
    """What the kernel inherits: where to write, and an absolute mirror."""
    before = dict(os.environ)
    os.environ |= {
        storage.OUTPUTS_VARIABLE: str(output_folder),
        storage.STAGING_VARIABLE: str(staging),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    if is_watched:
        os.environ[storage.PROGRESS_VARIABLE] = "1"
    if mirror := os.environ.get("CONTAMINATION_MIRROR"):
        # The kernel works in another folder than the caller.
        os.environ["CONTAMINATION_MIRROR"] = str(Path(mirror).absolute())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def _execute(
    notebook_path: Path,
    executed: Path,
    parameters: dict[str, Any],
    scrub: Callable[[Any], Any],
    progress: ProgressLine,
) -> None:
    # Validates a kind of web address that no notebook has, and importing it takes 2 to 3 s.
    cast("dict[str, Any]", sys.modules).setdefault("rfc3987_syntax", None)
    import nbformat
    import papermill
    from papermill.engines import papermill_engines
    from papermill.exceptions import PapermillExecutionError
    from papermill.iorw import papermill_io

    source = nbformat.read(notebook_path, as_version=4)
    papermill_io.register(str(executed), ScrubbedFile(scrub))
    papermill_engines.register(ENGINE, _sparing_engine())
    try:
        notebook = papermill.execute_notebook(
            str(notebook_path.absolute()),
            str(executed),
            parameters=parameters,
            engine_name=ENGINE,
            kernel_name=KERNEL,
            kernel_manager_class=_kernel_of_this_python(),
            language="python",
            cwd=str(notebook_path.parent.absolute()),
            progress_bar=False,
            stderr_file=progress,
            # The kernel's own notices (transport, debugger) are none of the user's business.
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        where = _where(source, error.source)
        said = _one_line(scrub(error.ename), scrub(error.evalue))
        cause = said.removeprefix(f"{error.ename}: ") if error.ename in EXPLAINED else ""
        raise RunError(f"{where} failed: {said}", cause) from None
    except OSError as error:
        raise RunError(f"stopped: {_cannot_write(error)}") from None
    except Exception as error:
        # A dead or a missing kernel.
        said = _one_line(type(error).__name__, scrub(str(error)))
        raise RunError(f"stopped: {said}") from None
    last = ""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if cell.metadata.papermill.status != "completed":
            where = _where(source, cell.source if cell.execution_count else last)
            raise RunError(f"{where} ended the notebook early; the cells after it did not run")
        last = cell.source


def _sparing_engine() -> type[NBClientEngine]:
    """papermill's engine, which saves a running notebook at most every ``SAVE_EVERY`` seconds."""
    from papermill.engines import NBClientEngine

    class SparingEngine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, *settings: Any, **named: Any) -> None:
            save = nb_man.save

            def save_now_and_then() -> None:
                if (nb_man.now() - nb_man.last_save_time).total_seconds() >= SAVE_EVERY:
                    save()

            nb_man.save = save_now_and_then
            try:
                super().execute_managed_notebook(nb_man, *settings, **named)
            finally:
                nb_man.save = save  # the last one is always made

    return SparingEngine


def _kernel_of_this_python() -> type[AsyncKernelManager]:
    """Starts a kernel in the interpreter that runs this code.

    The kernels that Jupyter finds in folders may be of other environments, and an isolated
    environment registers none.
    """
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpecManager

    class OwnKernelManager(AsyncKernelManager):
        def __init__(self, **settings: Any) -> None:
            # Without folders to search, the name "python3" is ipykernel's own, in this Python.
            super().__init__(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]), **settings)

    return OwnKernelManager


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
    return visible(f"{kind}: {lines[0]}" if lines else kind)


def _keep_failed(executed: Path, output_folder: Path, name: str) -> str:
    """Keep the unfinished notebook and its tables for reading, apart from the targets."""
    shutil.rmtree(failed_tables(output_folder, name), ignore_errors=True)
    try:
        for table in sorted((executed.parent / "tables").glob("*")):
            _move(table, failed_tables(output_folder, name) / table.name)
        _tidy(executed)
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


def _tidy(path: Path) -> None:
    """Remove clock times from an executed notebook, and name the kernel used."""
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
    storage.write_text(path, nbformat.writes(notebook))


def main(arguments: list[str] | None = None) -> int:
    """Run one notebook from the command line; returns the exit status, 0 or 1."""
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
                said = f"{each.name}: {each.type_name} = {each.default!r}\n    {each.comment}"
                print(keys.remove_keys(said))
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
