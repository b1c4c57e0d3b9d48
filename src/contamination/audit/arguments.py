"""The options of ``contamination audit``, their help on one screen and their errors in one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from contamination.core import keys, verdicts

# Hub id with configuration, split with public rows, column of the text.
BENCHMARKS = {
    "GSM8K": ("openai/gsm8k:main", "test", "question"),
    "MMLU": ("cais/mmlu:all", "test", "question"),
    "HumanEval": ("openai/openai_humaneval", "test", "prompt"),
    "ARC": ("allenai/ai2_arc:ARC-Challenge", "test", "question"),
    "TruthfulQA": ("truthfulqa/truthful_qa:generation", "validation", "question"),
    "HellaSwag": ("Rowan/hellaswag", "validation", "ctx"),
}
WITH_SETTINGS = ("settings", "output", "plan", "yes", "fail_on", "quiet")  # all else is in the file

HELP = f"""usage: contamination audit --model MODEL --data DATA [options]
       contamination audit --settings FILE [--output FOLDER] [--plan] [--yes] [--fail-on VERDICT]

Was this model trained on this data? The audit says what it costs, asks, and writes its verdicts.
An example without a download: contamination audit --model lab:contaminated --data sample

  --model MODEL ...   folder, GGUF file, hub id, lab:contaminated, lab:clean, name at --served-at
  --data DATA ...     file, log of an evaluation, hub id, sample,
                      {", ".join(BENCHMARKS)}
  --unseen FILE ...   rows like DATA that the model cannot have seen; a weak audit without them
  --split NAME        split of a hub dataset; --columns A,B names all columns of a headless CSV
  --text COLUMN       column of the text; a.b is a field of a column, a,b joins two
  --label COLUMN      column of the label, for prompts; --names NAME,SPLIT as they call the data
  --served-at URL     OpenAI-compatible address up to /v1
  --key NAME          NAME of the environment variable with its key, never the key itself
  --prices IN,OUT     per million tokens, read on --price-date YYYY-MM-DD; --cap is the most to pay
  --completion-tokens N   the longest answer of a served model
  --methods A,B       of dcq, replication, ranking, min_k, dice (default: all)
  --rows N            rows that are quizzed and completed (60); --passages N, of Min-k% Prob (400)
  --settings FILE     all of the above from a file, such as the audit.yaml that an audit writes
  --output FOLDER     where the results go (contamination-audit); --device cuda, mps or cpu
  --plan              say what it takes and what it costs, and stop; --yes pays without asking
  --fail-on VERDICT   exit with 1 if the verdict is this word, as shown; --quiet: errors alone"""


def benchmark(name: str) -> str:
    """A benchmark of ``BENCHMARKS`` in any case of its letters; "" for any other name."""
    return {known.lower(): known for known in BENCHMARKS}.get(name.lower(), "")


class _Parser(argparse.ArgumentParser):
    """One with help on one screen and errors of one line, which repeat no key."""

    def format_help(self) -> str:
        return f"{HELP}\n"

    def error(self, message: str) -> NoReturn:
        message = keys.mask_likely_keys(message)
        self.exit(2, f"error: {message}: contamination audit --help lists the options\n")


def parser() -> argparse.ArgumentParser:
    """The parser of the line."""
    made = _Parser(prog="contamination audit")
    add = made.add_argument
    for name in ("model", "data", "unseen"):
        add(f"--{name}", nargs="+", default=[])
    add("--fail-on", nargs="+", default=[], choices=verdicts.OF_AUDIT)
    texts = "split", "text", "label", "columns", "methods", "names", "settings"
    for name in (*texts, "served-at", "key", "device", "prices", "price-date"):
        add(f"--{name}", default="")
    for name in ("plan", "yes", "quiet"):
        add(f"--{name}", action="store_true")
    add("--cap", type=float)
    add("--rows", type=int, default=60)
    add("--passages", type=int, default=400)
    add("--completion-tokens", type=int)
    add("--output", default="contamination-audit")
    return made


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; exit with 2, in one line, where they do not go together."""
    known = parser()
    options = known.parse_args(arguments)
    if not options.settings and not (options.model and options.data):
        known.error("--model and --data are needed, or --settings")
    if options.cap is not None and not options.cap > 0:
        known.error("--cap must be above 0: leave it out for no cap, or add --plan to pay nothing")
    given = [name for name, value in vars(options).items() if value != known.get_default(name)]
    if options.names and len(options.data) > 1:
        known.error("--names is for one dataset: audit one at a time")
    if options.settings and (beside := sorted({*given} - {*WITH_SETTINGS})):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in beside)
        known.error(f"--settings takes everything from its file: write {names} there")
    return options
