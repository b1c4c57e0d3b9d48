"""One audit from the words of its line to its page: settings, plan, question, run, results."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import yaml

from contamination.audit import BENCHMARKS, FILLS, auditing, logs, plan, rows
from contamination.audit.finding import Finding, Target
from contamination.audit.logs import Log
from contamination.audit.plan import Audit
from contamination.audit.rows import Rows
from contamination.audit.settings import LAB, SAMPLE, UNSEEN, Settings, check_name
from contamination.core import keys, storage
from contamination.core.parameters import load_parameter_file
from contamination.data import partitions
from contamination.models.source import loaded_bytes

FILE = "audit.yaml"  # what an audit was told, in the folder of its results
SUMMARY = {"task": "summary", "label_column": ""}  # prompts that show no label
SAMPLE_NAME = "sample"


def audit(options: argparse.Namespace) -> list[str]:
    """The verdict on each model; none where it was only to be planned, or no was said.

    Nothing is written before all of it is checked.
    """
    outputs = Path(options.output)
    values = load_parameter_file(options.settings) if options.settings else values_of(options)
    told = Settings.read(values, options.settings or "command line")
    is_dry = options.plan or told.dry_run
    prepared, log = plan_audit(told, "text_columns" in values.get("data", {}), outputs, is_dry)
    given = values.get("data", {})
    found_out = ("dataset", "text_columns", "names", "revision", "split")
    data = {name: getattr(prepared.told.data, name) for name in found_out}
    data = {name: value for name, value in data.items() if value or name in given}
    text = yaml.safe_dump(values | {"data": given | data}, sort_keys=False, allow_unicode=True)
    storage.write_text(outputs / FILE, text)
    print(f"written for the next time: {outputs / FILE}")
    if is_dry:
        why = "" if options.plan else ", because the settings say dry_run: true"
        print(f"this was the plan; no audit was run{why}")
        return []
    if told.endpoints and not options.yes:
        if not sys.stdin.isatty():
            raise ValueError("nothing was asked: add --yes to pay what the plan says")
        if input("Ask? [y/N] ").strip().lower() not in ("y", "yes"):
            return []
    return run_audit(prepared, log, outputs)


# What the line says


def values_of(options: argparse.Namespace) -> dict[str, Any]:
    """Settings from the words of the line."""
    given = vars(options)
    values: dict[str, Any] = {"model": {}, "data": data_of(given.get("data", ""))}
    if "log_probs" in given:
        values["model"] = {"names": [Path(options.log_probs).stem]}
        if "data" not in given:
            values["data"] = {"dataset": options.log_probs} | logs.LOG_PROBS_DATA
            if logs.read_log_probs(options.log_probs)[logs.TEXT].eq("").all():
                raise ValueError(
                    f"{options.log_probs} has no texts: name the rows by --data and --unseen"
                )
    if "served_at" in given:
        values["model"] = {"key_variable": ""}
    if "label" in given:
        values["data"].pop("task", None)
    if "split" in given and "names" in values["data"]:
        values["data"]["names"] = [values["data"]["names"][0], options.split]
    if given.get("data", "").lower() == SAMPLE_NAME:
        values["comparison"] = UNSEEN
    for option, path in FILLS.items():
        block, _, name = path.rpartition(".")
        if (value := given.get(option.replace("-", "_"))) is not None and option != "data":
            (values.setdefault(block, {}) if block else values)[name] = value
    return values


def data_of(name: str) -> dict[str, Any]:
    """Settings ``data`` for a benchmark by its name, a file or a hub dataset.

    >>> data_of("gsm8k")["dataset"]
    'openai/gsm8k:main'
    """
    if name.lower() == SAMPLE_NAME:
        found = {"dataset": SAMPLE, "text_columns": ["text"], "label_column": "label"}
        return found | {"names": [SAMPLE_NAME, "test"]}
    if known := {one.lower(): one for one in BENCHMARKS}.get(name.lower()):
        source, split, column = BENCHMARKS[known]
        found = {"dataset": source, "split": split, "text_columns": [column]} | SUMMARY
        return found | {"names": [known, split]}
    return {"dataset": name} | SUMMARY


# The plan


def plan_audit(
    told: Settings, has_columns: bool, outputs: Path, is_dry: bool
) -> tuple[Audit, Log | None]:
    """The audit, checked and compared, its plan printed; and the log that the dataset is, if any.

    Keys, prices, addresses and models must be there, unless only the plan is wanted. Each is
    checked before what takes longer.
    """
    if told.dcq.tuning_epochs:
        raise ValueError(
            "dcq: tuning_epochs starts a training (Appendix E of DCQ), which notebook 10 does: "
            "run the notebook with this file, or leave it out to audit"
        )
    for unchecked in filter(None, map(check_name, told.local)):
        print(unchecked)
    if not is_dry:
        plan.check_ready(told)
    log = logs.read_log(told.data.dataset)
    told, loaded = read_rows(told, has_columns, log)
    check_folder(outputs, told)
    if told.local and told.model.device:
        from contamination.models.loading import device_named

        device_named(told.model.device)
    for name in told.local:
        check_memory(name)
    prepared = auditing.prepare(told, loaded)
    # Of those that are probed the plan's own lines speak.
    reasons = {one: why for one, why in prepared.reasons.items() if one not in prepared.probed}
    for reason in dict.fromkeys(reasons.values()):
        methods = ", ".join(method for method, its in reasons.items() if its == reason)
        print(f"{methods}: {'not run, ' + reason if reason else 'will be run'}")
    name, split = prepared.names
    print(f'prompts call the data "{name}", split "{split}": --names NAME,SPLIT changes this')
    print(plan.announce_audit(prepared))
    if told.power:
        print("power: copies of each model will be trained on comparison rows and audited")
    if not is_dry:
        plan.refuse_above_cap(prepared)
    return prepared, log


def read_rows(
    told: Settings, has_columns: bool, log: Log | None
) -> tuple[Settings, tuple[Rows, Rows | None]]:
    """Dataset and comparison rows, with a line about each file; errors as ``rows.clean_rows``.

    The settings come back with what was found out: the commit of a hub dataset, the names of what
    was evaluated, and the column of the text where none was named and one column alone may be it.
    """
    data, found = told.data, None
    data = data.model_copy(update={"revision": data.revision or partitions.commit_of(data.dataset)})
    if log:
        print(logs.describe_log(data.dataset, log))
        found, data = log.rows, data.model_copy(update={"names": data.names or log.names})
    if not has_columns:
        if found is None:
            found = rows.load(data, data.dataset, data.first_split, data.revision)
        data = data.model_copy(update={"text_columns": [rows.text_column(found, data.dataset)]})
        print(f'the text is the column "{data.text_columns[0]}": --text names another one')
    n = max(told.n_instances, told.n_passages)
    loaded = rows.load_with_comparison(data, told.comparison, n, told.seed, found)
    sources = (data.dataset, told.comparison or data.dataset)
    for source, of_file in zip(sources, loaded, strict=True):
        if of_file is not None:
            print(rows.describe_rows(source, of_file), flush=True)
    return told.model_copy(update={"data": data}), loaded


def check_folder(folder: Path, told: Settings) -> None:
    """ValueError if the results of these settings cannot go there.

    The same audit may be run again, and its results are replaced. Results of another model or
    dataset would be lost, so the folder is refused.
    """
    in_the_way = next((one for one in (folder, *folder.parents) if one.is_file()), None)
    if in_the_way:
        raise ValueError(f'"{in_the_way}" is a file: name a folder for the results with --output')
    if not (folder / FILE).exists():
        return
    held = load_parameter_file(folder / FILE)
    about = _about(held.get("model", {}), held.get("data", {}))
    if about != _about(vars(told.model), vars(told.data)):
        raise ValueError(f'"{folder}" holds an audit of {about}: name another folder with --output')


def _about(model: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    split = data.get("splits") or [data.get("split")]
    on = " ".join(filter(None, [data.get("dataset"), *split]))
    return f"{', '.join(model.get('names', []))} on {on}"


def check_memory(name: str) -> None:
    """ValueError if a model's weights, loaded as fp32, are larger than free memory."""
    free = psutil.virtual_memory().available
    n_bytes = 0 if name.startswith(LAB) else loaded_bytes(name)
    if n_bytes is None:
        print(f'whether "{name}" fits into memory is not known: the hub gives no size')
    elif n_bytes > free:
        raise ValueError(
            f'the weights of "{name}" take {n_bytes / 1e9:.1f} GB and {free / 1e9:.1f} GB of '
            "memory are free: serve it elsewhere and name its address by --served-at"
        )


# The run


def run_audit(prepared: Audit, log: Log | None, outputs: Path) -> list[str]:
    """The verdict on each model; the page is written, of a run that stops with what was found.

    Errors as ``auditing.run``.
    """
    from contamination.audit import page, power

    found: dict[str, dict[str, Finding]] = {}
    targets: dict[str, Target] = {}
    powers, words, stopped = [], [], ""
    if sys.stderr.isatty():
        os.environ[storage.PROGRESS_VARIABLE] = "1"  # somebody sees the bars
    try:
        measure = power.measure if prepared.told.power else None
        announce = partial(print, flush=True)
        powers = auditing.run(prepared, found, targets, measure, announce)
    except BaseException as error:
        is_by_hand = isinstance(error, KeyboardInterrupt)
        stopped = "by hand" if is_by_hand else keys.mask_likely_keys(" ".join(str(error).split()))
        raise
    finally:
        if done := {name: of_model for name, of_model in found.items() if of_model}:
            results = page.Results(prepared, done, targets, log, powers, stopped)
            words, lines = results.words, [line for one in powers for line in one.lines]
            said = [*results.says, *results.noticed, *lines]
            written = page.write(results, outputs)
            print("\n".join([*said, f"the page: {written}"]), flush=True)
    return words
