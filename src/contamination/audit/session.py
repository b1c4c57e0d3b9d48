"""One audit from the words of its line to its page: settings, plan, question, run, results."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import yaml

from contamination.audit import auditing, comparison, logs, plan, rows
from contamination.audit.command_line import BENCHMARKS
from contamination.audit.finding import Finding, Target
from contamination.audit.logs import Log
from contamination.audit.prepared import Audit, collect_endpoints
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
    prepared, log = plan_audit(told, values, outputs, is_dry)
    found_out = {"dataset", "text_columns", "names", "revision", "split"}
    given = values.get("data", {})
    data = {name: getattr(prepared.data, name) for name in found_out}
    data = {name: value for name, value in data.items() if value or name in given}
    text = yaml.safe_dump(values | {"data": given | data}, sort_keys=False, allow_unicode=True)
    storage.write_text(outputs / FILE, text)
    print(f"written for the next time: {outputs / FILE}")
    if is_dry:
        why = "" if options.plan else ", because the settings say dry_run: true"
        print(f"this was the plan; no audit was run{why}")
        return []
    if prepared.asked.endpoints and not options.yes:
        if options.quiet or not sys.stdin.isatty():
            raise ValueError("nothing was asked: add --yes to pay what the plan says")
        if input("Ask? [y/N] ").strip().lower() not in ("y", "yes"):
            return []
    return run_audit(prepared, log, outputs)


# What the line says


def values_of(options: argparse.Namespace) -> dict[str, Any]:
    """Settings from the words of the line; ValueError, which repeats no key, where one is wrong."""
    if options.served_at and (why := keys.why_no_address(options.served_at)):
        raise ValueError(f"--served-at {why}")
    if options.key and (why := keys.why_no_variable(options.key)):
        raise ValueError(f"--key {why}")
    model: dict[str, Any] = {"names": options.model or [Path(options.log_probs).stem]}
    model |= {"device": options.device} if options.device else {}
    model |= {"log_probs": options.log_probs} if options.log_probs else {}
    if options.served_at:
        model |= {"base_url": options.served_at, "key_variable": options.key}
        model |= {"cost_cap": options.cap or 0.0}
    if options.prices:
        try:
            prices = [float(part) for part in options.prices.split(",")]
        except ValueError:
            message = f'--prices is "{options.prices}": write IN,OUT such as 2.5,10'
            raise ValueError(message) from None
        model |= {"prices": prices, "price_date": options.price_date}
    if options.data:
        data = data_of(options.data, options.split, options.text, options.label)
    else:
        data = {"dataset": options.log_probs} | logs.LOG_PROBS_DATA
        if logs.read_log_probs(options.log_probs)[logs.TEXT].eq("").all():
            raise ValueError(
                f"{options.log_probs} has no texts: name the rows by --data and --unseen"
            )
    data |= {"column_names": _parts(options.columns)} if options.columns else {}
    data |= {"names": _parts(options.names)} if options.names else {}
    is_sample = options.data.lower() == SAMPLE_NAME
    values = {"model": model, "data": data, "comparison": options.unseen or UNSEEN * is_sample}
    values |= {"n_instances": options.rows, "n_passages": options.passages}
    values |= {"methods": _parts(options.methods)} if options.methods else {}
    if options.completion_tokens is not None:
        values["replication"] = {"completion_tokens": options.completion_tokens}
    return values | ({"power": True} if options.power else {})


def _parts(said: str) -> list[str]:
    return [part.strip() for part in said.split(",")]


def data_of(name: str, split: str, text: str, label: str) -> dict[str, Any]:
    """Settings ``data`` for a benchmark by its name, a file or a hub dataset.

    Of a file or a hub dataset, the columns of the text are there if they were named.

    >>> data_of("gsm8k", "", "", "")["dataset"]
    'openai/gsm8k:main'
    """
    if name.lower() == SAMPLE_NAME:
        of_sample = {"dataset": SAMPLE, "text_columns": [text or "text"]}
        return of_sample | {"names": [SAMPLE_NAME, "test"], "label_column": label or "label"}
    if known := {one.lower(): one for one in BENCHMARKS}.get(name.lower()):
        source, usual, column = BENCHMARKS[known]
        split = split or usual
        of_known = {"dataset": source, "split": split, "names": [known, split]}
        return of_known | {"text_columns": [text or column]} | SUMMARY
    with_label = {"label_column": label} if label else SUMMARY
    of_file = {"dataset": name, "split": split} | ({"text_columns": [text]} if text else {})
    return of_file | with_label


# The plan


def plan_audit(
    told: Settings, values: Mapping[str, Any], outputs: Path, is_dry: bool
) -> tuple[Audit, Log | None]:
    """The audit, checked and compared, its plan printed; and the log that the dataset is, if any.

    Keys, prices, addresses and models must be there, unless only the plan is wanted. Each is
    checked before what takes longer.
    """
    told.check()
    if told.dcq.tuning_epochs:
        raise ValueError(
            "dcq: tuning_epochs starts a training (Appendix E of DCQ), which notebook 10 does: "
            "run the notebook with this file, or leave it out to audit"
        )
    model, endpoints = told.model, collect_endpoints(told)
    local = [] if model.base_url or model.log_probs else model.names
    for unchecked in filter(None, map(check_name, local)):
        print(unchecked)
    if model.log_probs:
        logs.read_log_probs(model.log_probs)  # raises before anything is written
    elif not is_dry:
        plan.check_ready(endpoints, told.dice.reference_models)
    log = logs.read_log(told.data.dataset)
    told, loaded = read_rows(told, "text_columns" in values.get("data", {}), log)
    check_folder(outputs, told)
    if local:
        if model.device:
            from contamination.models.loading import device_named

            device_named(model.device)
        check_memory([name for name in local if not name.startswith(LAB)])
    prepared = auditing.prepare(told, loaded)
    for copies in filter(comparison.warning, prepared.near_copies):
        print(comparison.warning(copies))
    probed = plan.probed_methods(prepared)  # the plan's own lines speak of these
    reasons = {one: why for one, why in plan.skip_reasons(prepared).items() if one not in probed}
    for reason in dict.fromkeys(reasons.values()):
        methods = ", ".join(method for method, its in reasons.items() if its == reason)
        print(f"{methods}: {'not run, ' + reason if reason else 'will be run'}")
    name, split = prepared.names
    print(f'prompts call the data "{name}", split "{split}": --names NAME,SPLIT changes this')
    print(plan.announce_audit(prepared))
    if told.power:
        from contamination.audit.power import N_COPIES, PASSES

        n = N_COPIES * len(PASSES)
        print(f"power: {n} copies of each model will be trained on comparison rows and audited")
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
    data = replace(data, revision=data.revision or partitions.commit_of(data.dataset))
    if log:
        print(logs.describe_log(data.dataset, log))
        found = log.rows
        data = data if data.names else replace(data, names=log.names)
    if not has_columns:
        if found is None:
            found = rows.load(data, data.dataset, data.first_split, data.revision)
        data = replace(data, text_columns=[rows.text_column(found, data.dataset)])
        print(f'the text is the column "{data.text_columns[0]}": --text names another one')
    n = max(told.n_instances, told.n_passages)
    loaded = rows.load_with_comparison(data, told.comparison, n, told.seed, found)
    for source, of_file in zip(
        (data.dataset, told.comparison or data.dataset), loaded, strict=True
    ):
        if of_file is not None:
            print(rows.describe_rows(source, of_file), flush=True)
    return replace(told, data=data), loaded


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


# The run


def run_audit(prepared: Audit, log: Log | None, outputs: Path) -> list[str]:
    """The verdict on each model; the page is written, also where the run stops, with what is there.

    Errors as ``auditing.run``.
    """
    from contamination.audit import page, power

    found: dict[str, dict[str, Finding]] = {}
    targets: dict[str, Target] = {}
    powers: list[power.Power] = []
    stopped = ""
    if sys.stderr.isatty():
        os.environ[storage.PROGRESS_VARIABLE] = "1"  # somebody sees the bars
    try:
        measure = partial(power.measure, prepared) if prepared.told.power else None
        powers = auditing.run(prepared, found, targets, measure)
    except BaseException as error:
        stopped = (
            "by hand" if isinstance(error, KeyboardInterrupt) else " ".join(str(error).split())
        )
        raise
    finally:
        results = page.Results(
            prepared, found, targets, log, powers, keys.mask_likely_keys(stopped)
        )
        written = page.write(results, outputs)
        said = [*results.says, *results.noticed, *(line for one in powers for line in one.lines)]
        print("\n".join([*said, f"the page: {written}"]), flush=True)
    return results.words
