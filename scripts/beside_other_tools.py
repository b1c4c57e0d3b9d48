"""Our audit next to benchleak and contamcheck, on models of which we know what they have seen.

    pip download benchleak==0.4.0 contamcheck==0.1.0 --no-deps
    python scripts/beside_other_tools.py benchleak-0.4.0-*.whl contamcheck-0.1.0-*.whl

The rows of a dataset and its comparison rows come from one draw of a lab's grammar. One lab model
was trained on the rows, another was not, and neither was a pretrained model (make pretrained). The
five models of ``audited_models.py`` were trained on thirty rows among others.
benchleak runs with its own reference and with our comparison rows; contamcheck runs with number
twins and with our comparison rows, and its reference model is what a model was trained from, the
lab's base model or SmolLM2, since its usual one, GPT-2, has to be downloaded. Both come from their
wheels for this run and are installed nowhere. Writes the table in docs/audit.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import audited_models
import pandas as pd

from contamination.audit import auditing
from contamination.audit.settings import CLEAN, CONTAMINATED, LAB, Settings
from contamination.audit.verdict import decide
from contamination.core.statistics import share_interval
from contamination.core.verdicts import SHOWN
from contamination.dcq.quizzes import OPTION_COLUMNS, quizzes_of_groups
from contamination.lab import world
from contamination.lab.grammar import BENCHMARKS, draw_groups
from contamination.models.source import PACKAGED, resolve_path

PAGE = Path(__file__).resolve().parents[1] / "docs/audit.md"
MARKS = "<!-- beside other tools -->\n", "<!-- end of beside other tools -->"
SETS = [("topics", 100), ("reviews", 100), ("topics", 101), ("reviews", 101)]
N_ROWS, N_QUIZZED, N_RESAMPLES, COPIES = 60, 24, 500, 8
N_PRETRAINED, N_QUIZZED_PRETRAINED = 1, 4  # data sets, and rows that it is quizzed on
OURS, OURS_BUNDLED = "our audit", "our audit, benchleak's bundled text as comparison rows"
DEFAULT, SAME = "benchleak as it comes", "benchleak, our comparison rows as its reference"
TWINS = "contamcheck, number twins"
CONTROL = "contamcheck, our comparison rows as its control"
FLAGGED, NOT_FLAGGED, REFUSED = "flagged", "not flagged", "refused"
PARTLY = "trained on 30 of 60 or 90 rows"
Outcome = tuple[str, str]  # what a tool's verdict comes to, and what it said
_AUC = re.compile(r"Separation \(AUC\):\s+([\d.]+)")


def write_set(folder: Path, name: str, seed: int) -> tuple[Path, Path]:
    """Files of the rows and of the comparison rows, of one draw and dealt in turn."""
    benchmark = BENCHMARKS[name]
    groups = draw_groups(benchmark, 2 * N_ROWS, seed, "test")
    quizzes = quizzes_of_groups(groups, benchmark.columns).set_index("index")
    rows = groups[groups["option"] == 0].set_index("group").sort_values("template", kind="stable")
    rows = rows[list(benchmark.columns)].join(quizzes[list(OPTION_COLUMNS)])
    files = folder / f"{name}_{seed}.jsonl", folder / f"{name}_{seed}_comparison.jsonl"
    for file, part in zip(files, (rows.iloc[::2], rows.iloc[1::2]), strict=True):
        part.to_json(file, orient="records", lines=True)
    return files


def ours(model: str, rows: Path, comparison: Path, n_quizzed: int) -> Outcome:
    """Whether the verdict is shown, and what each method says.

    It is refused where the texts alone allow no verdict above open.
    """
    data = {"dataset": str(rows), "names": [rows.stem, "test"]}
    told = {"model": {"names": [model]}, "data": data, "comparison": str(comparison)}
    told |= {"n_instances": n_quizzed, "n_passages": N_ROWS, "n_resamples": N_RESAMPLES}
    audit = auditing.prepare(Settings.read(told | {"copies": COPIES}))
    target = auditing.target_of(audit, model)
    found = auditing.findings_of(audit, target)
    decided = decide(audit, target.name, target.truth, found)
    outcome = FLAGGED if decided.word == SHOWN else NOT_FLAGGED
    is_refused = not all(row["holds"] for row in audit.text_alone)
    verdicts = dict(zip(decided.methods["method"], decided.methods["verdict"], strict=True))
    return REFUSED if is_refused else outcome, json.dumps(verdicts)


def ours_in_part(model: Path, data: list[str], seen: list[str], unseen: list[str]) -> Outcome:
    """As :func:`ours`, by the command and Min-k% Prob alone, as ``audited_models.py`` runs it."""
    with contextlib.redirect_stdout(io.StringIO()):
        row = audited_models.audited(model, data, seen, unseen)
    return FLAGGED if row["verdict"] == SHOWN else NOT_FLAGGED, json.dumps(row, default=str)


def benchleak(
    main: Callable[[list[str]], int], folder: str, rows: Path, reference: Path | None
) -> Outcome:
    """Whether it flags the rows, and the AUC that it prints."""
    words = ["--model", folder, "--benchmark", str(rows), "--field", "text"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        code = main([*words, *(["--reference", str(reference)] if reference else [])])
    if code not in (0, 1):
        raise RuntimeError(f"benchleak ended with {code}: {said.getvalue()}")
    return FLAGGED if code else NOT_FLAGGED, _AUC.search(said.getvalue())[1]


def contamcheck(
    main: Callable[[list[str]], int], folder: str, rows: Path, base: str, control: Path | None
) -> Outcome:
    """Whether it calls contamination likely, and the rate and p-value of each of its tests."""
    words = [folder, str(rows), "--field", "text", "--json", "--device", "cpu"]
    words += ["--reference", base or "none", *(["--control", str(control)] if control else [])]
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = main(words)
    if code == 2:  # too few rows with numbers, for example
        return REFUSED, errors.getvalue().strip().rpartition("contamcheck: ")[2]
    found = json.loads(said.getvalue())
    return FLAGGED if code else NOT_FLAGGED, json.dumps(found)


def without_token_types(place: Path, folder: Path) -> str:
    """The folder of a model, linked, whose tokenizer gives ``generate`` nothing that it refuses.

    Our copies of SmolLM2 have a tokenizer of transformers' general class, with token types.
    """
    linked = folder / "linked" / place.name
    if not linked.exists():
        shutil.copytree(place, linked, copy_function=os.symlink)
        config = linked / "tokenizer_config.json"
        names = {"model_input_names": ["input_ids", "attention_mask"]}
        told = json.loads(config.read_text()) | names
        config.unlink()
        config.write_text(json.dumps(told))
    return str(linked)


def text_file(source: Path, folder: Path) -> Path:
    """The texts of a file of rows, one a line, as benchleak reads a reference."""
    texts = [json.loads(line)["text"] for line in source.read_text().splitlines()]
    file = folder / f"{source.stem}.txt"
    file.write_text("".join(" ".join(text.split()) + "\n" for text in texts))
    return file


def compare(wheels: Sequence[Path], folder: Path, n_pretrained: int) -> pd.DataFrame:
    """One row for each model, data set and tool: kind, set, is_read, tool, outcome, said."""
    for wheel in wheels:
        zipfile.ZipFile(wheel).extractall(folder / "wheels")
    sys.path.insert(0, str(folder / "wheels"))
    from benchleak.cli import main as benchleak_main
    from benchleak.data import load_reference
    from contamcheck.cli import main as contamcheck_main

    def others(place: str, rows: Path, texts: Path, base: str) -> dict[str, Callable[[], Outcome]]:
        return {
            DEFAULT: partial(benchleak, benchleak_main, place, rows, None),
            SAME: partial(benchleak, benchleak_main, place, rows, texts),
            TWINS: partial(contamcheck, contamcheck_main, place, rows, base, None),
            CONTROL: partial(contamcheck, contamcheck_main, place, rows, base, texts),
        }

    bundled = folder / "bundled.jsonl"
    columns = {"label": "0 (none)"} | dict.fromkeys(OPTION_COLUMNS, "")
    lines = [json.dumps({"text": text} | columns) for text in load_reference()]
    bundled.write_text("\n".join(lines) + "\n")
    lab_base, found = str(world.base_model(world.build_world(0), 1_000_000, 0)), []
    smollm2 = without_token_types(Path(resolve_path(PACKAGED)), folder)
    models = [("contaminated lab model", CONTAMINATED, one) for one in SETS]
    models += [("clean lab model", f"{CLEAN}:{one[1]}", one) for one in SETS]
    models += [("pretrained model", PACKAGED, one) for one in SETS[:n_pretrained]]
    for kind, model, (name, seed) in models:
        rows, comparison = write_set(folder, name, seed)
        n_quizzed = N_QUIZZED if model.startswith(LAB) else N_QUIZZED_PRETRAINED
        data = {"dataset": str(rows), "names": [rows.stem, "test"]}
        told = {"model": {"names": [model]}, "data": data, "n_passages": N_ROWS}
        audit = auditing.prepare(Settings.read(told | {"copies": COPIES}))
        place = without_token_types(Path(resolve_path(auditing.source_of(audit, model))), folder)
        base = lab_base if model.startswith(LAB) else ""
        own = {
            OURS: partial(ours, model, rows, comparison, n_quizzed),
            OURS_BUNDLED: partial(ours, model, rows, bundled, n_quizzed),
        }
        runs = others(place, rows, text_file(comparison, folder), base) | own
        about = {"kind": kind, "set": rows.stem, "is_read": model == CONTAMINATED}
        found += [about | measured(tool, run) for tool, run in runs.items()]
    for kind, n, passes in audited_models.CASES:
        data, seen, unseen = audited_models.news(n)
        model_folder = audited_models.trained(kind, seen, passes)
        place = without_token_types(model_folder, folder)
        rows, comparison = folder / f"{n}.jsonl", folder / f"{n}_comparison.jsonl"
        for file, texts in ((rows, data), (comparison, unseen)):
            file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        base = smollm2 if kind == audited_models.SMOLLM2 else lab_base
        runs = others(place, rows, text_file(comparison, folder), base)
        runs |= {OURS: partial(ours_in_part, model_folder, data, seen, unseen)}
        about = {"kind": PARTLY, "set": f"{kind}, {len(seen)} of {n}, {passes}", "is_read": True}
        found += [about | measured(tool, run) for tool, run in runs.items()]
    return pd.DataFrame(found)


def measured(tool: str, run: Callable[[], Outcome]) -> dict[str, str | float]:
    """What came out of one run, and its CPU seconds."""
    start = time.process_time()
    outcome, said = run()
    row = {"tool": tool, "outcome": outcome, "seconds": time.process_time() - start, "said": said}
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def page_table(found: pd.DataFrame) -> str:
    """False alarms and misses, with the 95 % interval of each share (Wilson)."""
    lines = ["| Model | Tool | Wrong | 95 % interval | Refused | CPU seconds a run |"]
    lines.append("| --- | --- | --- | --- | --- | ---: |")
    for (kind, tool), rows in found.groupby(["kind", "tool"], sort=False):
        is_read = rows["is_read"].iloc[0]
        answered, cells = rows[rows["outcome"] != REFUSED], [kind, tool, "–", "–"]
        if n := len(answered):
            wrong = int((answered["outcome"] == (NOT_FLAGGED if is_read else FLAGGED)).sum())
            low, high = (100 * end for end in share_interval(wrong, n))
            what = "missed" if is_read else "false alarms in"
            cells[2:] = [f"{what} {wrong} of {n}", f"{low:.0f} to {high:.0f} %"]
        cells += [f"{len(rows) - n} of {len(rows)}", f"{rows['seconds'].mean():.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheels", type=Path, nargs=2, help="of benchleak and of contamcheck")
    parser.add_argument("--table", type=Path, help="CSV of every run")
    parser.add_argument("--no-pretrained", action="store_true")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = compare(told.wheels, Path(folder), 0 if told.no_pretrained else N_PRETRAINED)
    if told.table:
        found.to_csv(told.table, index=False)
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    PAGE.write_text(before + MARKS[0] + page_table(found) + MARKS[1] + rest.partition(MARKS[1])[2])


if __name__ == "__main__":
    main()
