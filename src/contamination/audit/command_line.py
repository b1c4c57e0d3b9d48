"""The line ``contamination audit``: options, help on one screen, errors in one line, exit codes.

All else is imported when the line has been read, so that help comes at once.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from contamination.audit import BENCHMARKS, FILLS
from contamination.core import keys

WORDS = ("shown", "control fails", "open", "not run")  # ``verdicts.OF_AUDIT``
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
  --methods A,B       dcq, replication, ranking, min_k (all); --completion-tokens N at most
  --rows N            rows that are quizzed and completed (60); --passages N, of Min-k% Prob (400)
  --power             train copies of a local model on comparison rows: what would be noticed?
  --settings FILE     all of the above from a file, such as the audit.yaml that an audit writes
  --output FOLDER     where the results go (contamination-audit); --device cuda, mps or cpu
  --plan              say what it takes and what it costs, and stop; --yes pays without asking
  --fail-on VERDICT   exit with 1 if the verdict is this word, such as shown"""


class _Parser(argparse.ArgumentParser):
    """One with help on one screen and errors of one line, which repeat no key."""

    def format_help(self) -> str:
        return f"{HELP}\n"

    def error(self, message: str) -> NoReturn:
        message = keys.mask_likely_keys(message)
        self.exit(ERROR, f"error: {message}: contamination audit --help lists the options\n")


def _parts(said: str) -> list[str]:
    return [part.strip() for part in said.split(",")]


def _prices(said: str) -> list[float]:
    try:
        return [float(part) for part in said.split(",")]
    except ValueError:
        message = f'it is "{said}": write IN,OUT such as 2.5,10'
        raise argparse.ArgumentTypeError(message) from None


def parser() -> argparse.ArgumentParser:
    """The parser of the line; an option of ``FILLS`` that is not given has no value."""
    made = _Parser(prog="contamination audit", argument_default=argparse.SUPPRESS)
    add = made.add_argument
    kinds: dict[str, dict[str, Any]] = {"model": {"nargs": "+"}, "text": {"nargs": 1}}
    kinds["power"] = {"action": "store_true"}
    types: dict[str, Any] = {"cap": float, "prices": _prices}
    types |= dict.fromkeys(("rows", "passages", "completion-tokens"), int)
    types |= dict.fromkeys(("columns", "names", "methods"), _parts)
    for name in FILLS:
        add(f"--{name}", **kinds.get(name, {"type": types.get(name, str)}))
    for name in ("plan", "yes"):
        add(f"--{name}", action="store_true", default=False)
    add("--settings", default="")
    add("--output", default="contamination-audit")
    add("--fail-on", nargs="+", default=[], choices=WORDS)
    return made


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; exit with 2, in one line, where they do not go together."""
    known = parser()
    options = known.parse_args(arguments)
    given = [name for name in FILLS if name.replace("-", "_") in options]
    if options.settings and given:
        names = ", ".join(f"--{name}" for name in given)
        known.error(f"--settings takes everything from its file: write {names} there")
    if not options.settings and "log-probs" not in given and not {"model", "data"} <= {*given}:
        known.error("--model and --data are needed, or --log-probs, or --settings")
    if "cap" in options and not options.cap > 0:
        known.error("--cap must be above 0: leave it out for no cap, or add --plan to pay nothing")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """0; 1 if a model's verdict is in ``--fail-on``; 2 after an error; 130 if interrupted."""
    options = parse_options(arguments)
    from contamination.audit import session

    is_main = threading.current_thread() is threading.main_thread()
    # A scheduler that ends a job interrupts it as Ctrl-C does.
    before = is_main and signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        reached = session.audit(options)
    except (RuntimeError, ValueError, OSError) as error:  # such as a ChatError, or no memory
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"error: {keys.mask_likely_keys(message)}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("error: interrupted; what was answered is kept", file=sys.stderr)
        return INTERRUPTED
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)
    return FOUND if {*options.fail_on} & {*reached} else 0
