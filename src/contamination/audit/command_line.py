"""Was this model trained on this data? An audit in one line.

    python -m contamination.audit --model MODEL --data DATA [--unseen FILE] [--served-at URL]

MODEL is a folder, a GGUF file, a hub id, "lab:contaminated", or a name at an address; DATA a file,
a hub id, or one of the benchmarks below. It says what the access allows, what it takes and what it
costs at most, asks before it pays, runs notebook 10, and ends in a page of verdicts with their
controls. All that it was told stands in a parameter file, for the next time.
"""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import psutil
import yaml

from contamination.audit import asked, auditing, plan
from contamination.audit.names import check_name
from contamination.audit.settings import LAB
from contamination.core import keys, storage
from contamination.core.parameters import ParameterError, checked_parameters, declared_in
from contamination.core.run import RunError, run_notebook
from contamination.core.tables import show, with_interval
from contamination.core.visible import visible
from contamination.data import partitions
from contamination.models.retry import ChatError
from contamination.models.source import loaded_bytes

NOTEBOOK = storage.project_root() / "notebooks/10_audit.ipynb"
# A table that is wider than the window scrolls by itself.
HEAD = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Audit</title><style>
body { font: 16px/1.5 sans-serif; max-width: 72rem; margin: 1rem auto; padding: 0 1rem }
p { overflow-wrap: anywhere } div { overflow-x: auto; margin: 1.5rem 0 }
table { min-width: 56rem } td, th { padding: .2rem .6rem .2rem 0; vertical-align: top }
</style>"""
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


def data_of(name: str, split: str, text: str, label: str) -> dict[str, Any]:
    """Parameter ``data`` of notebook 10 for a benchmark by its name, a file or a hub dataset.

    >>> data_of("gsm8k", "", "", "")["dataset"]
    'openai/gsm8k:main'
    """
    known = {known.lower(): known for known in BENCHMARKS}.get(name.lower())
    if known:
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
    if told.served_at:
        model |= {"base_url": told.served_at, "key_variable": told.key}
        model |= {"gives_log_probs": told.log_probs, "cost_cap": told.cap}
        if told.completion_tokens is not None:
            model |= {"completion_tokens": told.completion_tokens}
    if told.prices:
        try:
            prices = [float(part) for part in told.prices.split(",")]
        except ValueError:
            raise ValueError(f'--prices is "{told.prices}", want IN,OUT such as 2.5,10') from None
        model |= {"prices": prices, "price_date": told.price_date}
    data = data_of(told.data, told.split, told.text, told.label)
    sizes = {"n_instances": told.rows, "n_passages": told.passages}
    return {"model": model, "data": data, "comparison": from_here(told.unseen), **sizes}


def check_memory(names: Sequence[str]) -> None:
    """ValueError if a model's weights, loaded as fp32, are larger than free memory."""
    free = psutil.virtual_memory().available
    for name in names:
        n_bytes = loaded_bytes(name)
        if n_bytes is None:
            print(f'whether "{name}" fits into memory is not known: the hub gives no size')
        elif n_bytes > free:
            raise ValueError(
                f'the weights of "{name}" take {n_bytes / 1e9:.1f} GB and {free / 1e9:.1f} GB of '
                "memory are free: serve it elsewhere and name --served-at"
            )


def write_verdict(outputs: Path, data: Mapping[str, Any]) -> Path:
    """``verdict.html`` and ``verdict.json`` from a run's tables and its ``data``; the page."""
    evidence, controls = (
        storage.read_csv(outputs / "tables" / f"{name}.csv", keep_default_na=False, na_values=[""])
        for name in ("audit", "audit_controls")
    )
    words = ["truth", "note"]
    evidence[words] = evidence[words].astype(object).fillna("")
    lines = {m: auditing.headline(m, rows) for m, rows in evidence.groupby("model", sort=False)}
    deciding = controls[controls["decides"].eq(True)]
    by_text = controls[controls["method"].eq(auditing.COMPARISON)].drop_duplicates("control")
    model = "model " if len(lines) > 1 else ""  # one model's name stands in the line above
    tables = {
        "Verdicts": (evidence, f"{model}method verdict n value interval control note"),
        "The controls that decide": (deciding, f"{model}method control n value interval"),
        "Dataset against comparison rows, by their text alone; chance and p where it was needed": (
            by_text,
            "control n value interval chance p_value holds",
        ),
    }
    about = " ".join(filter(None, (data["dataset"], data.get("split"), data.get("revision"))))
    parts = [f"<p>{html.escape(visible(line))}</p>" for line in [*lines.values(), about]]
    labels, decimals = {"control": "control", "p_value": "p", "note": "note"}, {"p_value": 3}
    parts += [
        f"<div>{show(with_interval(rows), name, columns, labels, decimals).to_html()}</div>"
        for name, (rows, columns) in tables.items()
        if len(rows)
    ]
    page = outputs / "verdict.html"
    storage.write_text(page, f"{HEAD}\n<h1>Audit</h1>\n" + "\n".join(parts) + "\n")
    found: dict[str, Any] = {"says": lines, "data": dict(data)}
    for name, rows in (("evidence", evidence), ("controls", deciding), ("text_alone", by_text)):
        found[name] = json.loads(rows.to_json(orient="records"))
    storage.write_text(outputs / "verdict.json", json.dumps(found, indent=2) + "\n")
    return page


def audit(told: argparse.Namespace) -> Path | None:
    """The page of verdicts; None where it was only to be planned, or no was said.

    Nothing is written before all of it is checked.
    """
    outputs = Path(told.outputs)
    check_key_and_address(told)
    for name in () if told.served_at else told.model:
        check_name(name)
    values = parameters_of(told)
    data = values["data"]
    full = checked_parameters(values, declared_in(NOTEBOOK), "command line")
    data["revision"] = partitions.commit_of(data["dataset"])
    names = "model", "data", "comparison", "n_instances", "n_passages", "seed"
    prepared = auditing.prepare(*(full[name] for name in names))
    check_memory([name for name in told.model if not (told.served_at or name.startswith(LAB))])
    reasons = plan.why_not(prepared)
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
    run_notebook(NOTEBOOK, file, outputs)
    return write_verdict(outputs, data)


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
    add("--text", default="", help="column of the text")
    add("--label", default="", help="column of the label, if prompts are to show it")
    add("--unseen", default="", help="file of rows with the same columns that it cannot have seen")
    add("--served-at", default="", help="OpenAI-compatible address up to /v1")
    add("--key", default="", help="NAME of the variable of the environment with its key")
    add("--log-probs", action="store_true", help="the address echoes log-probabilities")
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
        page = audit(parser.parse_args(arguments))
    except (ParameterError, RunError, ChatError, ValueError, OSError) as error:
        print(f"error: {keys.unsaid(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; what was answered is kept", file=sys.stderr)
        return 130
    if page:
        for line in json.loads(page.with_suffix(".json").read_text())["says"].values():
            print(line)
        print(f"verdicts and controls: {page}")
    return 0
