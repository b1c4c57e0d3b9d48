"""Was this model trained on this data? An audit in one line.

    contamination audit --model MODEL --data DATA [--unseen FILE] [--served-at URL]

MODEL is a folder, a GGUF file, a hub id, "lab:contaminated", or a name at an address; DATA a file,
a hub id, one of the benchmarks below, or "sample". The audit says what the access allows, what it
takes and what it costs at most, asks before it pays, runs notebook 10, and ends in a page of
verdicts with their controls. All that it was told is in a parameter file, which ``--settings``
reads the next time. Names and files are checked first, before anything that loads models is
imported, which takes seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import psutil
import yaml

from contamination.audit import rows
from contamination.audit.rows import Rows
from contamination.audit.settings import LAB, Data, Settings, check_name
from contamination.core import keys, storage
from contamination.core.parameters import (
    ParameterError,
    checked_parameters,
    declared_in,
    load_parameter_file,
)
from contamination.core.run import RunError, failed_tables, run_notebook
from contamination.data import partitions
from contamination.models.retry import ChatError
from contamination.models.source import loaded_bytes

NOTEBOOK = storage.project_root() / "notebooks/10_audit.ipynb"
SUMMARY = {"task": "summary", "label_column": ""}  # prompts that show no label
# Hub id with configuration, split with public rows, column of the text.
BENCHMARKS = {
    "GSM8K": ("openai/gsm8k:main", "test", "question"),
    "MMLU": ("cais/mmlu:all", "test", "question"),
    "HumanEval": ("openai/openai_humaneval", "test", "prompt"),
    "ARC": ("allenai/ai2_arc:ARC-Challenge", "test", "question"),
    "TruthfulQA": ("truthfulqa/truthful_qa:generation", "validation", "question"),
    "HellaSwag": ("Rowan/hellaswag", "validation", "ctx"),
}
# Rows and comparison rows that come with the package; lab:contaminated was trained on the first.
SAMPLE, UNSEEN = "params/audit/sample.jsonl", "params/audit/unseen.jsonl"
SAMPLE_NAME = "sample"
WITH_SETTINGS = ("settings", "output", "plan", "yes")  # all else is in the file


def from_here(name: str) -> str:
    """A file or folder as named in the working directory: the notebook runs in another one."""
    is_elsewhere = Path.cwd() != storage.project_root() and name and Path(name).exists()
    return str(Path(name).absolute()) if is_elsewhere else name


def benchmark(name: str) -> str:
    """A benchmark of ``BENCHMARKS`` in any case of its letters; "" for any other name."""
    return {known.lower(): known for known in BENCHMARKS}.get(name.lower(), "")


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


def check_key_and_address(told: argparse.Namespace) -> None:
    """ValueError, which repeats neither, if a key or a password was given on the command line."""
    if told.served_at and (why := keys.why_no_address(told.served_at)):
        raise ValueError(f"--served-at {why}")
    if told.key and (why := keys.why_no_variable(told.key)):
        raise ValueError(f"--key {why}")
    if told.key and not keys.is_plain_name(told.key):  # a short password could be a name as well
        raise ValueError("--key names a variable that is not set: export the key in it, or check")


def parameters_of(told: argparse.Namespace) -> dict[str, Any]:
    """Parameters of notebook 10 from the command line; ValueError if prices are no two numbers."""
    model: dict[str, Any] = {"names": told.model}
    if told.device:
        model["device"] = told.device
    if told.served_at:
        model |= {"base_url": told.served_at, "key_variable": told.key}
        model |= {"cost_cap": told.cap}
    if told.prices:
        try:
            prices = [float(part) for part in told.prices.split(",")]
        except ValueError:
            raise ValueError(f'--prices is "{told.prices}", want IN,OUT such as 2.5,10') from None
        model |= {"prices": prices, "price_date": told.price_date}
    data = data_of(told.data, told.split, told.text, told.label)
    if told.columns:
        data["column_names"] = [name.strip() for name in told.columns.split(",")]
    unseen = told.unseen or (UNSEEN if told.data.lower() == SAMPLE_NAME else "")
    sizes = {"n_instances": told.rows, "n_passages": told.passages}
    values = {"model": model, "data": data, "comparison": unseen, **sizes}
    if told.methods:
        values["methods"] = [name.strip() for name in told.methods.split(",")]
    if told.completion_tokens is not None:
        values["replication"] = {"completion_tokens": told.completion_tokens}
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
    """A setting's value, with names that the notebook can follow if it names local models."""
    if name == "reference_models":
        return [from_here(one) for one in value]
    is_model = name in ("reference_model", "neighbor_model", "bleurt_checkpoint")
    return from_here(value) if is_model else value


def check_models(local: Sequence[str]) -> None:
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
                "memory are free: serve it elsewhere and name --served-at"
            )


def read_rows(
    full: Mapping[str, Any], data: dict[str, Any], comparison: str
) -> tuple[Rows, Rows | None]:
    """Dataset and comparison rows, with a line about each file; errors as ``rows.both``.

    ``full`` are all parameters as they were told, ``data`` and ``comparison`` those to load. What
    is found out is added to ``data``: the commit of a hub dataset, and the column of the text
    where none was named and one column alone may be it.
    """
    told = full["data"]["dataset"], full["comparison"] or full["data"]["dataset"]
    data["revision"] = data.get("revision") or partitions.commit_of(data["dataset"])
    found, settings = None, Data.read(data, "data")
    if "text_columns" not in data:
        found = rows.load(settings, settings.dataset, settings.first_split, settings.revision)
        data["text_columns"] = [rows.text_column(found, told[0])]
        print(f'the text is the column "{data["text_columns"][0]}": --text names another one')
    n = max(full["n_instances"], full["n_passages"])
    loaded = rows.both(Data.read(data, "data"), comparison, n, full["seed"], found)
    for source, of_file in zip(told, loaded, strict=True):
        if of_file is not None:
            print(rows.described(source, of_file), flush=True)
    return loaded


def told_by(values: Mapping[str, Any]) -> Settings:
    """The settings of all parameters of notebook 10, which has some that are no settings."""
    names = {field.name for field in fields(Settings)}
    return Settings.read({k: v for k, v in values.items() if k in names}, "audit")


def audit(told: argparse.Namespace) -> Path | None:
    """The page of verdicts; None where it was only to be planned, or no was said.

    Nothing is written before all of it is checked.
    """
    outputs = Path(told.output)
    if not told.settings:
        check_key_and_address(told)
    values = load_parameter_file(told.settings) if told.settings else parameters_of(told)
    full = checked_parameters(values, declared_in(NOTEBOOK), told.settings or "command line")
    settings = told_by(full)
    settings.check()
    who = settings.model
    check_models(() if who.base_url else who.names)
    files = with_files_from_here(full)
    data = files["data"]
    loaded = read_rows(full, data, files["comparison"])
    # What loads models is imported here and not above, since it takes seconds.
    from contamination.audit import announcing, asked, auditing, comparison, page, plan, prepared
    from contamination.models.loading import device_named

    if not who.base_url:
        device_named(who.device)
    found = auditing.compared(prepared.prepare(told_by(full | files), loaded))
    for copies in filter(comparison.warning, found.near_copies):
        print(comparison.warning(copies))
    if not who.base_url:
        check_memory([name for name in files["model"]["names"] if not name.startswith(LAB)])
    probed = plan.probed_methods(found)  # the plan's own lines speak of these
    reasons = {name: why for name, why in plan.why_not(found).items() if name not in probed}
    for reason in dict.fromkeys(reasons.values()):
        methods = ", ".join(method for method, its in reasons.items() if its == reason)
        print(f"{methods}: {'not run, ' + reason if reason else 'will be run'}")
    print(announcing.announce_audit(found))
    file = outputs / "audit.yaml"
    text = yaml.safe_dump(values | files, sort_keys=False, allow_unicode=True)
    storage.write_text(file, text)
    print(f"written for the next time: {file}")
    if told.plan or full["dry_run"]:
        return None
    asked.check_ready(found.asked, settings.dice.reference_models)
    if found.asked.endpoints and not told.yes:
        if not sys.stdin.isatty():
            raise ValueError("nothing was asked: add --yes to pay what the plan says")
        if input("Ask? [y/N] ").strip().lower() not in ("y", "yes"):
            return None
    counts = auditing.rows_table(found)
    try:
        run_notebook(NOTEBOOK, file, outputs, sys.stderr if sys.stderr.isatty() else None)
    except (RunError, KeyboardInterrupt) as error:
        names = [prepared.name_of(model) for model in found.asked.models]
        why = keys.unsaid(str(error)) or "by hand"
        stopped = page.Stopped(why, names, failed_tables(outputs, NOTEBOOK.stem))
        print(f"what was found so far: {page.write_verdict(outputs, data, counts, stopped)}")
        raise
    return page.write_verdict(outputs, data, counts)


HELP = f"""usage: contamination audit --model MODEL --data DATA [options]
       contamination audit --settings FILE [--output FOLDER] [--plan] [--yes]

Was this model trained on this data? The audit says what it costs, asks, and writes its verdicts.
An example without a download: contamination audit --model lab:contaminated --data sample

  --model MODEL ...   folder, GGUF file, hub id, lab:contaminated, lab:clean, name at --served-at
  --data DATA         file, hub id, sample, {", ".join(BENCHMARKS)}
  --unseen FILE       rows with the same columns that the model cannot have seen
  --split NAME        split of a hub dataset
  --text COLUMN       column of the text; a.b is a field of a column, a,b joins two
  --label COLUMN      column of the label, if prompts are to show it
  --columns A,B       names of all columns of a CSV without a header
  --served-at URL     OpenAI-compatible address up to /v1
  --key NAME          NAME of the environment variable with its key, never the key itself
  --prices IN,OUT     per million tokens, read on --price-date YYYY-MM-DD; --cap is the most to pay
  --completion-tokens N   the longest answer of a served model
  --device DEVICE     where a local model runs: cuda, mps or cpu (default: the first that is here)
  --methods A,B       of dcq, replication, ranking, min_k, dice (default: all)
  --rows N            rows that are quizzed and completed (60); --passages N, of Min-k% Prob (400)
  --settings FILE     all of the above from a file, such as the audit.yaml that an audit writes
  --output FOLDER     where the results go (contamination-audit)
  --plan              say what it takes and what it costs, and stop; --yes pays without asking"""


class _Parser(argparse.ArgumentParser):
    """One with help on one screen and errors of one line, which repeat no key."""

    def format_help(self) -> str:
        return f"{HELP}\n"

    def error(self, message: str) -> NoReturn:
        message = keys.unsaid(message)
        self.exit(2, f"error: {message}: contamination audit --help lists the options\n")


def _parser() -> _Parser:
    parser = _Parser(prog="contamination audit")
    add = parser.add_argument
    add("--model", nargs="+", default=[])
    texts = "data", "unseen", "split", "text", "label", "columns", "methods", "settings"
    for name in (*texts, "served-at", "key", "device", "prices", "price-date"):
        add(f"--{name}", default="")
    for name in ("plan", "yes"):
        add(f"--{name}", action="store_true")
    add("--cap", type=float, default=0.0)
    add("--rows", type=int, default=60)
    add("--passages", type=int, default=400)
    add("--completion-tokens", type=int)
    add("--output", default="contamination-audit")
    return parser


def _told(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; exit in one line where they do not go together."""
    parser = _parser()
    told = parser.parse_args(arguments)
    if not told.settings and not (told.model and told.data):
        parser.error("--model and --data are needed, or --settings")
    given = [name for name, value in vars(told).items() if value != parser.get_default(name)]
    if told.settings and (beside := sorted({*given} - {*WITH_SETTINGS})):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in beside)
        parser.error(f"--settings names a file that says all of it: write {names} there")
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    told = _told(arguments)
    try:
        verdicts = audit(told)
    except (ParameterError, RunError, ChatError, ValueError, OSError) as error:
        print(f"error: {keys.unsaid(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; what was answered is kept", file=sys.stderr)
        return 130
    if verdicts:
        for line in json.loads(verdicts.with_suffix(".json").read_text())["says"].values():
            print(line)
        print(f"verdicts and controls: {verdicts}")
    return 0
