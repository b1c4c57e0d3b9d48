"""The line ``contamination audit``: options, help on one screen, errors in one line, exit codes.

All else is imported when the line has been read, so that help comes at once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

from contamination.core import keys

# Benchmarks by their names: hub id with configuration, split with public rows, column of the text.
BENCHMARKS = {
    "GSM8K": ("openai/gsm8k:main", "test", "question"),
    "MMLU": ("cais/mmlu:all", "test", "question"),
    "HumanEval": ("openai/openai_humaneval", "test", "prompt"),
    "ARC": ("allenai/ai2_arc:ARC-Challenge", "test", "question"),
    "TruthfulQA": ("truthfulqa/truthful_qa:generation", "validation", "question"),
    "HellaSwag": ("Rowan/hellaswag", "validation", "ctx"),
}
WORDS = ("shown", "control fails", "open", "not run")  # ``verdicts.OF_AUDIT``
WITH_SETTINGS = ("settings", "output", "plan", "yes", "fail_on", "quiet")  # all else is in the file
FOUND, ERROR, INTERRUPTED = 1, 2, 130  # exit codes

HELP = f"""usage: contamination audit --model MODEL --data DATA --unseen FILE [options]
       contamination audit --log-probs FILE [options], or --settings FILE [options]

Was this model trained on this data? The audit says what it costs, asks, and writes its verdict.
An example without a download: contamination audit --model lab:contaminated --data sample

  --model MODEL ...   folder, GGUF file, hub id, lab:contaminated, lab:clean, name at --served-at
  --data DATA         file, log of an evaluation, hub id, sample,
                      {", ".join(BENCHMARKS)}
  --unseen FILE       rows like DATA that the model cannot have seen; nothing is shown without them
  --log-probs FILE    log-probabilities of the rows' tokens from anywhere, in place of a model
  --split NAME        split of a hub dataset; --columns A,B names all columns of a headless CSV
  --text COLUMN       column of the text; a.b is a field of a column, a,b joins two
  --label COLUMN      column of the label, for prompts; --names NAME,SPLIT as they call the data
  --served-at URL     OpenAI-compatible address up to /v1; --key NAME of the variable with its key
  --prices IN,OUT     per million tokens, read on --price-date YYYY-MM-DD; --cap is the most to pay
  --methods A,B       dcq, replication, ranking, min_k, dice (all); --completion-tokens N at most
  --rows N            rows that are quizzed and completed (60); --passages N, of Min-k% Prob (400)
  --power             train copies of a local model on comparison rows: what would be noticed?
  --settings FILE     all of the above from a file, such as the audit.yaml that an audit writes
  --output FOLDER     where the results go (contamination-audit); --device cuda, mps or cpu
  --plan              say what it takes and what it costs, and stop; --yes pays without asking
  --fail-on VERDICT   exit with 1 if the verdict is this word, as shown; --quiet: errors alone"""


class _Parser(argparse.ArgumentParser):
    """One with help on one screen and errors of one line, which repeat no key."""

    def format_help(self) -> str:
        return f"{HELP}\n"

    def error(self, message: str) -> NoReturn:
        message = keys.mask_likely_keys(message)
        self.exit(ERROR, f"error: {message}: contamination audit --help lists the options\n")


def parser() -> argparse.ArgumentParser:
    """The parser of the line."""
    made = _Parser(prog="contamination audit")
    add = made.add_argument
    add("--model", nargs="+", default=[])
    add("--fail-on", nargs="+", default=[], choices=WORDS)
    texts = "data", "unseen", "log-probs", "split", "text", "label", "columns", "methods", "names"
    for name in (*texts, "settings", "served-at", "key", "device", "prices", "price-date"):
        add(f"--{name}", default="")
    for name in ("power", "plan", "yes", "quiet"):
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
    if not options.settings and not options.log_probs and not (options.model and options.data):
        known.error("--model and --data are needed, or --log-probs, or --settings")
    if options.cap is not None and not options.cap > 0:
        known.error("--cap must be above 0: leave it out for no cap, or add --plan to pay nothing")
    given = [name for name, value in vars(options).items() if value != known.get_default(name)]
    if options.settings and (beside := sorted({*given} - {*WITH_SETTINGS})):
        names = ", ".join(f"--{name.replace('_', '-')}" for name in beside)
        known.error(f"--settings takes everything from its file: write {names} there")
    return options


@contextlib.contextmanager
def quiet_output(is_quiet: bool) -> Iterator[None]:
    """Nothing is printed by what runs inside, if it is to be quiet; errors are printed outside."""
    with contextlib.ExitStack() as stack:
        if is_quiet:
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
            stack.enter_context(contextlib.redirect_stderr(nowhere))
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
    options = parse_options(arguments)
    from contamination.audit import session

    try:
        with sigterm_interrupts(), quiet_output(options.quiet):
            reached = session.audit(options)
    except (RuntimeError, ValueError, OSError) as error:  # such as a ChatError, or no memory
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"error: {keys.mask_likely_keys(message)}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("error: interrupted; what was answered is kept", file=sys.stderr)
        return INTERRUPTED
    return FOUND if {*options.fail_on} & {*reached} else 0
