"""Was this model trained on this data? An audit in one line.

    python -m contamination.audit --model MODEL --data DATA [--unseen FILE] [--served-at URL]

MODEL is a folder, a GGUF file, a hub id, "lab:contaminated", or a name at an address; DATA a file,
a hub id, or one of the benchmarks below. It says what the access allows, what it takes and what it
costs at most, asks before it pays, runs notebook 10, and ends in a page of verdicts with their
controls. All that it was told is in a parameter file, for the next time. Names and files are
checked first, before anything that loads models is imported, which takes seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import psutil
import yaml

from contamination.audit import rows
from contamination.audit.rows import Rows
from contamination.audit.settings import LAB, Data, Model, check_name
from contamination.core import keys, storage
from contamination.core.parameters import ParameterError, checked_parameters, declared_in
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


def from_here(name: str) -> str:
    """A file or folder as named in the working directory: the notebook runs in the project's."""
    is_elsewhere = Path.cwd() != storage.project_root() and name and Path(name).exists()
    return str(Path(name).absolute()) if is_elsewhere else name


def benchmark(name: str) -> str:
    """A benchmark of ``BENCHMARKS`` in any case of its letters; "" for any other name."""
    return {known.lower(): known for known in BENCHMARKS}.get(name.lower(), "")


def data_of(name: str, split: str, text: str, label: str) -> dict[str, Any]:
    """Parameter ``data`` of notebook 10 for a benchmark by its name, a file or a hub dataset.

    >>> data_of("gsm8k", "", "", "")["dataset"]
    'openai/gsm8k:main'
    """
    if known := benchmark(name):
        source, usual, column = BENCHMARKS[known]
        split = split or usual
        of_known = {"dataset": source, "split": split, "names": [known, split]}
        return of_known | {"text_columns": [text or column]} | SUMMARY
    with_label = {"label_column": label} if label else SUMMARY
    of_file = {"dataset": from_here(name), "split": split, "text_columns": [text or "text"]}
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
    names = told.model if told.served_at else [from_here(name) for name in told.model]
    model: dict[str, Any] = {"names": names}
    if told.device:
        model["device"] = told.device
    if told.served_at:
        model |= {"base_url": told.served_at, "key_variable": told.key}
        model |= {"cost_cap": told.cap}
        if told.completion_tokens is not None:
            model |= {"completion_tokens": told.completion_tokens}
    if told.prices:
        try:
            prices = [float(part) for part in told.prices.split(",")]
        except ValueError:
            raise ValueError(f'--prices is "{told.prices}", want IN,OUT such as 2.5,10') from None
        model |= {"prices": prices, "price_date": told.price_date}
    data = data_of(told.data, told.split, told.text, told.label)
    if told.columns:
        data["column_names"] = [name.strip() for name in told.columns.split(",")]
    sizes = {"n_instances": told.rows, "n_passages": told.passages}
    return {"model": model, "data": data, "comparison": from_here(told.unseen), **sizes}


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
    told: argparse.Namespace, data: dict[str, Any], n: int, seed: int
) -> tuple[Rows, Rows | None]:
    """Dataset and comparison rows, with a line about each file; errors as ``rows.both``.

    What is found out is added to ``data``: the commit of a hub dataset, and the column of the text
    where none was named and one column alone may be it.
    """
    data["revision"] = partitions.commit_of(data["dataset"])
    found, settings = None, Data.read(data, "data")
    if not told.text and not benchmark(told.data):
        found = rows.load(settings, settings.dataset, settings.split, settings.revision)
        data["text_columns"] = [rows.text_column(found, told.data)]
        print(f'the text is the column "{data["text_columns"][0]}": --text names another one')
    comparison = from_here(told.unseen)
    loaded = rows.both(Data.read(data, "data"), comparison, n, seed, found)
    for source, of_file in zip((told.data, told.unseen), loaded, strict=True):
        if of_file is not None:
            print(rows.described(source, of_file), flush=True)
    return loaded


def audit(told: argparse.Namespace) -> Path | None:
    """The page of verdicts; None where it was only to be planned, or no was said.

    Nothing is written before all of it is checked.
    """
    outputs = Path(told.outputs)
    check_key_and_address(told)
    values = parameters_of(told)
    data = values["data"]
    full = checked_parameters(values, declared_in(NOTEBOOK), "command line")
    Model.read(full["model"], "model").check()
    Data.read(full["data"], "data").check()
    local = [] if told.served_at else told.model
    check_models(local)
    loaded = read_rows(told, data, max(told.rows, told.passages), full["seed"])
    # What loads models is imported here and not above, since it takes seconds.
    from contamination.audit import asked, auditing, comparison, page, plan
    from contamination.models.loading import device_named

    if local:
        device_named(told.device)
    parameters = "comparison", "n_instances", "n_passages", "seed"
    of = {name: full[name] for name in parameters}
    prepared = auditing.prepare(full["model"], data, **of, loaded=loaded)
    for copies in filter(comparison.warning, prepared.near_copies):
        print(comparison.warning(copies))
    check_memory([name for name in local if not name.startswith(LAB)])
    probed = plan.probed_methods(prepared)  # the plan's own lines speak of these
    reasons = {name: why for name, why in plan.why_not(prepared).items() if name not in probed}
    for reason in dict.fromkeys(reasons.values()):
        methods = ", ".join(method for method, its in reasons.items() if its == reason)
        print(f"{methods}: {'not run, ' + reason if reason else 'will be run'}")
    print(plan.announce_audit(prepared))
    file = outputs / "audit.yaml"
    storage.write_text(file, yaml.safe_dump(values, sort_keys=False, allow_unicode=True))
    print(f"written for the next time: {file}")
    if told.plan:
        return None
    asked.check_ready(prepared.asked)
    if prepared.asked.endpoints and not told.yes:
        if not sys.stdin.isatty():
            raise ValueError("nothing was asked: add --yes to pay what the plan says")
        if input("Ask? [y/N] ").strip().lower() not in ("y", "yes"):
            return None
    counts = auditing.rows_table(prepared)
    try:
        run_notebook(NOTEBOOK, file, outputs, sys.stderr if sys.stderr.isatty() else None)
    except (RunError, KeyboardInterrupt) as error:
        names = [asked.name_of(model) for model in prepared.asked.models]
        why = keys.unsaid(str(error)) or "by hand"
        stopped = page.Stopped(why, names, failed_tables(outputs, NOTEBOOK.stem))
        print(f"what was found so far: {page.write_verdict(outputs, data, counts, stopped)}")
        raise
    return page.write_verdict(outputs, data, counts)


class _Parser(argparse.ArgumentParser):
    """One that does not repeat a key, which stands where it cannot be parsed."""

    def error(self, message: str) -> NoReturn:
        super().error(keys.unsaid(message))


def main(arguments: Sequence[str] | None = None) -> int:
    about, known = __doc__.split("\n")[0], ", ".join(BENCHMARKS)
    parser = _Parser(prog="python -m contamination.audit", description=about)
    add = parser.add_argument
    add("--model", nargs="+", required=True, help="folder, GGUF file, hub id, or name there")
    add("--data", required=True, help=f"file, hub id owner/name, or {known}")
    add("--split", default="", help="of a hub dataset")
    add("--text", default="", help="column of the text; a.b is a field of one, a,b joins two")
    add("--columns", default="", help="names of all columns of a CSV without a header, as a,b,c")
    add("--label", default="", help="column of the label, if prompts are to show it")
    add("--unseen", default="", help="file of rows with the same columns that it cannot have seen")
    add("--served-at", default="", help="OpenAI-compatible address up to /v1")
    add("--key", default="", help="NAME of the variable of the environment with its key")
    add("--device", default="", help="of local models; the first of cuda, mps, cpu that is here")
    add("--prices", default="", help="IN,OUT per million tokens")
    add("--price-date", default="", help="day on which you read them, YYYY-MM-DD")
    add("--cap", type=float, default=0.0, help="most that it may cost")
    add("--rows", type=int, default=60, help="rows that are quizzed and completed")
    add("--completion-tokens", type=int, help="most, of an answer of a served model")
    add("--passages", type=int, default=400, help="rows that Min-k%% Prob scores")
    add("--outputs", default="outputs/audit", help="folder of what it writes")
    add("--plan", action="store_true", help="say what it takes, and stop")
    add("--yes", action="store_true", help="pay without asking")
    try:
        verdicts = audit(parser.parse_args(arguments))
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
