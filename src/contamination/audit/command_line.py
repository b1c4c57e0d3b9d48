"""Was this model trained on this data? An audit in one line.

    contamination audit --model MODEL --data DATA [--unseen FILE] [--served-at URL]

MODEL is a folder, a GGUF file, a hub id, "lab:contaminated", or a name at an address; DATA a file,
a log of an evaluation, a hub id, one of the benchmarks below, or "sample". The audit says what the
access allows, what it takes and what it costs at most, asks before it pays, runs notebook 10, and
ends in a page of verdicts with their controls. All that it was told is in a parameter file, which
``--settings`` reads the next time. Names and files are checked first, before anything that loads
models is imported, which takes seconds. Several datasets are one audit each, in a folder of its
own; all are checked before the first begins.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import yaml

from contamination.audit import arguments as line
from contamination.audit import asked, evaluation_logs, folders, prepared, rows
from contamination.audit.arguments import BENCHMARKS, benchmark
from contamination.audit.log_values import Log
from contamination.audit.rows import Rows
from contamination.audit.settings import LAB, SAMPLE, UNSEEN, Data, Settings, check_name
from contamination.core import keys, storage
from contamination.core.parameters import (
    ParameterError,
    checked_parameters,
    declared_in,
    load_parameter_file,
)
from contamination.core.run import RunError, failed_tables, run_notebook
from contamination.data import partitions
from contamination.models.chat import ChatError
from contamination.models.source import loaded_bytes

if TYPE_CHECKING:  # imports what loads models, which takes seconds
    from contamination.audit.prepared import Audit

NOTEBOOK = storage.project_root() / "notebooks/10_audit.ipynb"
SUMMARY = {"task": "summary", "label_column": ""}  # prompts that show no label
SAMPLE_NAME = "sample"
FOUND, ERROR, INTERRUPTED = 1, 2, 130  # exit codes


@dataclass(frozen=True)
class Planned:
    """One audit, checked and planned.

    Attributes:
        outputs: folder of its results, with ``audit.yaml`` and the page.
        values: parameters of notebook 10, as that file has them.
        log: of an evaluation, where that is the dataset.
        is_dry: whether the parameters ask for the plan alone.
    """

    outputs: Path
    values: dict[str, Any]
    prepared: Audit
    log: Log | None
    is_dry: bool

    @property
    def file(self) -> Path:
        """The file with the settings of this audit, in the folder of its results."""
        return self.outputs / folders.SETTINGS


def from_here(name: str) -> str:
    """A file or folder as named in the working directory: the notebook runs in another one."""
    is_elsewhere = Path.cwd() != storage.project_root() and name and Path(name).exists()
    return str(Path(name).absolute()) if is_elsewhere else name


def data_of(name: str, split: str, text: str, label: str) -> dict[str, Any]:
    """Parameter ``data`` of notebook 10 for a benchmark by its name, a file or a hub dataset.

    Of a file or a hub dataset, the columns of the text are there if they were named.

    >>> data_of("gsm8k", "", "", "")["dataset"]
    'openai/gsm8k:main'
    """
    if name.lower() == SAMPLE_NAME:
        of_sample = {"dataset": SAMPLE, "text_columns": [text or "text"]}
        return of_sample | {"names": [SAMPLE_NAME, "test"], "label_column": label or "label"}
    if known := benchmark(name):
        source, usual, column = BENCHMARKS[known]
        split = split or usual
        of_known = {"dataset": source, "split": split, "names": [known, split]}
        return of_known | {"text_columns": [text or column]} | SUMMARY
    with_label = {"label_column": label} if label else SUMMARY
    of_file = {"dataset": name, "split": split} | ({"text_columns": [text]} if text else {})
    return of_file | with_label


def check_key_and_address(options: argparse.Namespace) -> None:
    """ValueError, which repeats neither, if a key or a password was given on the command line."""
    if options.served_at and (why := keys.why_no_address(options.served_at)):
        raise ValueError(f"--served-at {why}")
    if options.key and (why := keys.why_no_variable(options.key)):
        raise ValueError(f"--key {why}")


def parameters_of(options: argparse.Namespace, dataset: str, unseen: str) -> dict[str, Any]:
    """Parameters of notebook 10 from the command line; ValueError if prices are no two numbers."""
    model: dict[str, Any] = {"names": options.model}
    if options.device:
        model["device"] = options.device
    if options.served_at:
        model |= {"base_url": options.served_at, "key_variable": options.key}
        model |= {"cost_cap": options.cap or 0.0}
    if options.prices:
        try:
            prices = [float(part) for part in options.prices.split(",")]
        except ValueError:
            raise ValueError(
                f'--prices is "{options.prices}": write IN,OUT such as 2.5,10'
            ) from None
        model |= {"prices": prices, "price_date": options.price_date}
    data = data_of(dataset, options.split, options.text, options.label)
    if options.columns:
        data["column_names"] = [name.strip() for name in options.columns.split(",")]
    if options.names:
        data["names"] = [name.strip() for name in options.names.split(",")]
    unseen = unseen or (UNSEEN if dataset.lower() == SAMPLE_NAME else "")
    sizes = {"n_instances": options.rows, "n_passages": options.passages}
    values = {"model": model, "data": data, "comparison": unseen, **sizes}
    if options.methods:
        values["methods"] = [name.strip() for name in options.methods.split(",")]
    if options.completion_tokens is not None:
        values["replication"] = {"completion_tokens": options.completion_tokens}
    return values


def with_files_from_here(full: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parameters that may name files, with names that the notebook can follow."""
    model, data = dict(full["model"]), dict(full["data"])
    found: dict[str, Any] = {"model": model, "data": data}
    if model.get("names") and not model.get("base_url"):
        model["names"] = [from_here(name) for name in model["names"]]
    data["dataset"] = from_here(data.get("dataset", ""))
    for block in filter(full.get, ("dice", "min_k", "replication")):
        found[block] = {name: _here(name, value) for name, value in full[block].items()}
    return found | {"comparison": from_here(full["comparison"])}


def _here(name: str, value: Any) -> Any:
    """A setting's value, with names that the notebook can follow if it names a model or a file."""
    if name == "reference_models":
        return [from_here(one) for one in value]
    names = ("reference_model", "neighbor_model", "bleurt_checkpoint", "human_labels")
    return from_here(value) if name in names else value


def print_unchecked_models(local: Sequence[str]) -> None:
    """Prints which names of models could not be checked; an error in one line if one is wrong."""
    for name in local:
        if unchecked := check_name(name):
            print(unchecked)


def check_memory(local: Sequence[str]) -> None:
    """ValueError if a model's weights, loaded as fp32, are larger than free memory."""
    free = psutil.virtual_memory().available
    for name in local:
        n_bytes = loaded_bytes(name)
        if n_bytes is None:
            print(f'whether "{name}" fits into memory is not known: the hub gives no size')
        elif n_bytes > free:
            raise ValueError(
                f'the weights of "{name}" take {n_bytes / 1e9:.1f} GB and {free / 1e9:.1f} GB of '
                "memory are free: serve it elsewhere and name its address by --served-at"
            )


def read_rows(
    full: Mapping[str, Any], data: dict[str, Any], comparison: str, log: Log | None = None
) -> tuple[Rows, Rows | None]:
    """Dataset and comparison rows, with a line about each file.

    Errors as ``rows.load_with_comparison``.

    ``full`` are all parameters as they were told, ``data`` and ``comparison`` those to load, and
    ``log`` is the dataset where it is the log of an evaluation. What is found out is added to
    ``data``: the commit of a hub dataset, the names of what was evaluated, and the column of the
    text where none was named and one column alone may be it.
    """
    told = full["data"]["dataset"], full["comparison"] or full["data"]["dataset"]
    data["revision"] = data.get("revision") or partitions.commit_of(data["dataset"])
    found, settings = None, Data.read(data, "data")
    if log:
        print(evaluation_logs.describe_log(told[0], log))
        found = log.rows
        if not settings.names:
            data["names"] = log.names
    if "text_columns" not in data:
        if found is None:
            found = rows.load(settings, settings.dataset, settings.first_split, settings.revision)
        data["text_columns"] = [rows.text_column(found, told[0])]
        print(f'the text is the column "{data["text_columns"][0]}": --text names another one')
    n = max(full["n_instances"], full["n_passages"])
    loaded = rows.load_with_comparison(Data.read(data, "data"), comparison, n, full["seed"], found)
    for source, of_file in zip(told, loaded, strict=True):
        if of_file is not None:
            print(rows.describe_rows(source, of_file), flush=True)
    return loaded


def settings_of_parameters(values: Mapping[str, Any]) -> Settings:
    """The settings of all parameters of notebook 10, which has some that are no settings."""
    names = {field.name for field in fields(Settings)}
    return Settings.read({k: v for k, v in values.items() if k in names}, "audit")


def plan_audit(values: dict[str, Any], outputs: Path, of: str, is_plan: bool) -> Planned:
    """One audit from its parameters, read from ``of``, checked, loaded and its plan printed.

    Keys, prices, addresses and models must be there, unless only the plan is wanted.
    """
    full = checked_parameters(values, declared_in(NOTEBOOK), of)
    settings_of_parameters(full).check()
    files = with_files_from_here(full)
    settings, data = settings_of_parameters(full | files), files["data"]
    who = settings.model
    endpoints = prepared.collect_endpoints(settings, of)
    print_unchecked_models(() if who.base_url else who.names)
    if not (is_plan or full["dry_run"]):
        asked.check_ready(endpoints, settings.dice.reference_models)
    log = evaluation_logs.read(data["dataset"])
    loaded = read_rows(full, data, files["comparison"], log)
    folders.check_folder(outputs, files)
    # What loads models is imported here and not above, since it takes seconds.
    from contamination.audit import announcing, auditing, comparison, plan
    from contamination.models.loading import device_named

    if not who.base_url:
        device_named(who.device)
    found = auditing.add_text_controls(
        prepared.prepare(settings_of_parameters(full | files), loaded)
    )
    for copies in filter(comparison.warning, found.near_copies):
        print(comparison.warning(copies))
    if not who.base_url:
        check_memory([name for name in who.names if not name.startswith(LAB)])
    probed = plan.probed_methods(found)  # the plan's own lines speak of these
    reasons = {name: why for name, why in plan.skip_reasons(found).items() if name not in probed}
    for reason in dict.fromkeys(reasons.values()):
        methods = ", ".join(method for method, its in reasons.items() if its == reason)
        print(f"{methods}: {'not run, ' + reason if reason else 'will be run'}")
    name, split = found.names
    print(f'prompts call the data "{name}", split "{split}": --names NAME,SPLIT changes this')
    print(announcing.announce_audit(found))
    return Planned(outputs, values | files, found, log, full["dry_run"])


def run_audit(planned: Planned) -> Path:
    """The page of verdicts of one audit; of one that stops, what was found until then."""
    from contamination.audit import auditing, page

    asked_about, data, outputs = planned.prepared, planned.values["data"], planned.outputs
    counts, log = auditing.rows_table(asked_about), planned.log
    shown: dict[str, Any] = {"log": log, "texts": _texts_of(asked_about.rows)}
    watched_on = sys.stderr if sys.stderr.isatty() else None
    try:
        run_notebook(NOTEBOOK, planned.file, outputs, watched_on)
    except (RunError, KeyboardInterrupt) as error:
        names = [prepared.name_of(model) for model in asked_about.asked.models]
        why = error.short if isinstance(error, RunError) else "by hand"
        so_far = failed_tables(outputs, NOTEBOOK.stem)
        stopped = page.Stopped(keys.mask_likely_keys(why), names, so_far)
        found = page.write_verdict(outputs, data, counts, stopped, **shown)
        print(f"what was found so far: {found}")
        raise
    return page.write_verdict(outputs, data, counts, **shown)


def _texts_of(found: Rows) -> dict[int, str]:
    """The text of each row by its number in the file."""
    return dict(zip(found.rows["index"], found.passages, strict=True))


def audit(options: argparse.Namespace) -> list[str]:
    """All verdicts that were reached, with a line for each model and dataset.

    None where it was only to be planned, or no was said. Nothing is written before all of it is
    checked.
    """
    outputs = Path(options.output)
    if options.settings:
        given = {outputs: load_parameter_file(options.settings)}
    else:
        check_key_and_address(options)
        names, unseen = options.data, options.unseen or [""] * len(options.data)
        if len({*names}) < len(names) or len(unseen) != len(names):
            raise ValueError(
                "--data needs different datasets, and --unseen one file for each of them"
            )
        pairs = zip(folders.folders_of(outputs, names), names, unseen, strict=True)
        given = {folder: parameters_of(options, *of_one) for folder, *of_one in pairs}
    of = options.settings or "command line"
    audits = [plan_audit(values, folder, of, options.plan) for folder, values in given.items()]
    for one in audits:
        text = yaml.safe_dump(one.values, sort_keys=False, allow_unicode=True)
        storage.write_text(one.file, text)
        print(f"written for the next time: {one.file}")
    if options.plan or any(one.is_dry for one in audits):
        why = "" if options.plan else ", because the settings say dry_run: true"
        print(f"this was the plan; no audit was run{why}")
        return []
    if any(one.prepared.asked.endpoints for one in audits) and not options.yes:
        if options.quiet or not sys.stdin.isatty():
            raise ValueError("nothing was asked: add --yes to pay what the plan says")
        if input("Ask? [y/N] ").strip().lower() not in ("y", "yes"):
            return []
    reached: list[str] = []
    for one in audits:
        page = run_audit(one)
        found = json.loads(page.with_suffix(".json").read_text())
        says = [row["says"] for row in found["verdicts"]]
        print("\n".join([*says, *found["noticed"], f"the page: {page}"]), flush=True)
        reached += [row["verdict"] for row in found["verdicts"]]
    return reached


@contextlib.contextmanager
def quiet_output(is_quiet: bool) -> Iterator[None]:
    """Nothing is printed by what runs inside, if it is to be quiet; errors are printed outside."""
    if not is_quiet:
        yield
        return
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


@contextlib.contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """SIGTERM, which schedulers send to end a job, interrupts the block as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 if a model's verdict is in ``--fail-on``; 2 after an error; 130 if interrupted."""
    options = line.parse_options(arguments)
    try:
        with sigterm_interrupts(), quiet_output(options.quiet):
            reached = audit(options)
    except RunError as error:
        print(f"error: {keys.mask_likely_keys(error.short)}", file=sys.stderr)
        return ERROR
    except (ParameterError, ChatError, ValueError, OSError) as error:
        print(f"error: {keys.mask_likely_keys(str(error))}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("error: interrupted; what was answered is kept", file=sys.stderr)
        return INTERRUPTED
    return FOUND if {*options.fail_on} & {*reached} else 0
