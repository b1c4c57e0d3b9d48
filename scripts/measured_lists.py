"""How good are the audit's lists of rows? Audits of models of which we know every row they saw.

    python scripts/measured_lists.py       # make pretrained and make ledger before; 40 CPU minutes

Each assignment deals one draw of news items at random: 20 rows that a model is trained on, 20 rows
of the same dataset that it is not, and 80 comparison rows. The audit gets the first two as one
dataset, once with the comparison rows, once without any, and once with reviews in their place. The
pretrained model is trained on its 20 rows by adapters, eight times or once. Ten base models of the
pretraining study saw 60 rows 16, 4 or 1 times among everything else; there a dataset has 60 more
rows, and 180 are for comparison. Writes the table in docs/audit.md, and
``docs/measured_lists.csv``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from contamination.audit import auditing, listed_rows
from contamination.audit.lab_models import Lab
from contamination.audit.prepared import INSTANCE, MIN_K, TEXT, prepare
from contamination.audit.settings import Settings
from contamination.core import storage
from contamination.core.statistics import share_interval
from contamination.dcq.perturbation import quizzes_of_groups
from contamination.dice.fine_tuning import fine_tune
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_groups
from contamination.models.causal import CausalLM, load_causal_lm
from contamination.models.source import PACKAGED, resolve_path
from contamination.study import pretrained, row_pools

DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLE, PAGE = DOCS / "measured_lists.csv", DOCS / "audit.md"
MARKS = "<!-- measured lists -->\n", "<!-- end of measured lists -->"
ASSIGNMENTS = tuple(range(500, 510))
N_SEEN = N_UNSEEN = 20
N_COMPARISON = 80
N_PASSAGES = 200  # at most, of either file
COPIES = (8, 1)  # of the pretrained model's rows
SAME, NONE, OTHER = "of the same kind", "none", "of another kind"
PRETRAINED, BASE = "pretrained model, fine-tuned", "base model of the pretraining study"
N_RESAMPLES = 500
RATE = 0.1  # of false names, as the audit takes it
HALF = 0.5  # of the seen rows: from here on a list is called useful
_ROW = re.compile(r"text: (?P<text>.*)\nlabel: (?P<label>.*)", re.DOTALL)


def draw_rows(benchmark: str, n: int, seed: int) -> list[str]:
    """Rows of one draw of the lab's grammar, as the papers print an instance."""
    groups = draw_groups(BENCHMARKS[benchmark], n, seed, "test")
    return quizzes_of_groups(groups, BENCHMARKS[benchmark].columns)["instance"].tolist()


def assign_rows(rows: Sequence[str], seed: int) -> tuple[list[str], list[str], list[str]]:
    """Rows dealt at random: seen, unseen, and comparison rows."""
    order = np.random.default_rng([seed, 1]).permutation(len(rows))
    shuffled = [rows[place] for place in order]
    return (
        shuffled[:N_SEEN],
        shuffled[N_SEEN : N_SEEN + N_UNSEEN],
        shuffled[N_SEEN + N_UNSEEN :][:N_COMPARISON],
    )


def fine_tune_on_rows(rows: Sequence[str], copies: int, seed: int) -> Path:
    """The pretrained model after it saw every row so many times, in a new order each time."""
    generator = np.random.default_rng([seed, 2])
    order = [rows[place] for _ in range(copies) for place in generator.permutation(len(rows))]
    settings = replace(pretrained.READING, seed=seed)
    return fine_tune(resolve_path(PACKAGED), [("", text) for text in order], settings)


def write_rows(file: Path, rows: Sequence[str]) -> Path:
    """A file of rows with columns text and label."""
    lines = [json.dumps(_ROW.fullmatch(row).groupdict()) for row in rows]
    file.write_text("\n".join(lines) + "\n")
    return file


def audit_against_truth(
    model: Path,
    files: tuple[Path, Path | None],
    form: str,
    seen: Sequence[str],
    lab: Lab,
    clean: CausalLM,
) -> dict[str, object]:
    """The verdict of Min-k% Prob and the list, against the rows that were seen."""
    rows, comparison = files
    data = {"dataset": str(rows), "names": ["news", "test"], "label_column": "label"}
    data |= {"text_columns": ["text"]}
    told = {"model": {"names": [str(model)]}, "data": data, "methods": ["min_k"]}
    told |= {"min_k": {"form": form}}
    told |= {"comparison": str(comparison or ""), "n_passages": N_PASSAGES, "n_instances": 4}
    audit = auditing.add_text_controls(prepare(Settings.read(told)))
    target = auditing.target_of(audit, str(model), lab)
    found = {target.name: auditing.findings_of(audit, target, clean, [], N_RESAMPLES)}
    evidence = auditing.audit_table(found).set_index("method").loc[MIN_K]
    named, lists = listed_rows.listed_rows(audit, found)
    texts = {_ROW.fullmatch(row)["text"] for row in seen}
    by_index = audit.rows.rows.set_index("index")["text"]
    is_listed = named["is_listed"].fillna(False).astype(bool)
    is_seen = by_index.loc[named["index"]].isin(texts).to_numpy()
    return {
        "verdict": evidence["verdict"],
        "auc": evidence["value"],
        "has_list": bool(lists["n_listed"].notna().all()),
        "n_listed": int(is_listed.sum()),
        "n_false": int((is_listed & ~is_seen).sum()),
        "n_seen": int(is_seen.sum()),
        "note": lists["note"].iloc[0],
    }


def models_with_rows(
    n: int, kinds: Sequence[str]
) -> Iterator[tuple[dict[str, object], Path, tuple]]:
    """What is said of a model, its folder, and its rows: seen, unseen, comparison."""
    rows = draw_rows("topics", N_SEEN + N_UNSEEN + N_COMPARISON, ASSIGNMENTS[0])
    for seed in ASSIGNMENTS[: n * (PRETRAINED in kinds)]:
        of_seed = assign_rows(rows, seed)
        for copies in COPIES:
            about = {"model": PRETRAINED, "seed": seed, "copies": copies}
            yield about, fine_tune_on_rows(of_seed[0], copies, seed), of_seed
    pool = row_pools.pools()[0]
    for seed in row_pools.BASE_SEEDS[: n * (BASE in kinds)]:
        folder, copies_of = row_pools.base_model(row_pools.the_lab(), seed), pool.copies(seed)
        texts = np.array(pool.rows.texts, dtype=object)
        for copies in sorted(row_pools.DOSES, reverse=True):
            seen = texts[copies_of == copies].tolist()
            held_out = texts[copies_of == 0].tolist()
            unseen, comparison = held_out[: len(seen)], held_out[len(seen) :][: 3 * len(seen)]
            about = {"model": BASE, "seed": seed, "copies": copies}
            yield about, folder, (seen, unseen, comparison)


def measure_lists(n: int, kinds: Sequence[str]) -> pd.DataFrame:
    """One row for each model and each kind of comparison rows."""
    lab, found = Lab(0, 1_000_000, 8), []
    clean = load_causal_lm(lab.base())
    others = draw_rows("reviews", N_COMPARISON, ASSIGNMENTS[0])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        other = write_rows(folder / "reviews.jsonl", others)
        for about, model, (seen, unseen, comparison) in models_with_rows(n, kinds):
            rows = write_rows(folder / "rows.jsonl", [*seen, *unseen])
            same = write_rows(folder / "comparison.jsonl", comparison)
            asked = [(form, SAME, same) for form in (TEXT, INSTANCE)]
            for form, kind, file in [*asked, (TEXT, NONE, None), (TEXT, OTHER, other)]:
                row = about | {"form": form, "comparison": kind}
                row |= audit_against_truth(model, (rows, file), form, seen, lab, clean)
                print(json.dumps(row), file=sys.stderr, flush=True)
                found.append(row)
    return pd.DataFrame(found)


def page_table(found: pd.DataFrame) -> str:
    """For each kind of model, copies and comparison rows: lists, share found, false names."""
    lines = [
        "| Model | Copies of a row | Comparison rows | A row is scored as | Mean AUC | "
        "Audits with a list | Rows found | False names | Realised false-discovery rate |",
        "| --- | ---: | --- | --- | ---: | --- | --- | --- | --- |",
    ]
    keys = ["model", "copies", "comparison", "form"]
    for (model, copies, comparison, form), part in found.groupby(keys, sort=False):
        auc = "–" if part["auc"].isna().all() else f"{part['auc'].mean():.2f}"
        cells = [model, str(copies), comparison, f"its {form}" if form == TEXT else f"an {form}"]
        cells += [auc, f"{part['has_list'].sum()} of {len(part)}"]
        if part["has_list"].any():
            hits, n_seen = (part["n_listed"] - part["n_false"]).sum(), part["n_seen"].sum()
            ends = " to ".join(f"{100 * end:.0f}" for end in share_interval(int(hits), int(n_seen)))
            rates = part["n_false"] / part["n_listed"].clip(lower=1)
            cells.append(f"{hits} of {n_seen} ({ends} %)")
            cells.append(f"{part['n_false'].sum()} of {part['n_listed'].sum()} names")
            error = rates.std() / np.sqrt(len(rates))
            cells.append(f"{100 * rates.mean():.1f} % (standard error {100 * error:.1f})")
        else:
            cells += ["–", "–", "–"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def page_text(found: pd.DataFrame) -> str:
    """The table with the sentences that it supports."""
    return f"{page_table(found)}\n{summarize_lists(found)}\n"


def summarize_lists(found: pd.DataFrame) -> str:
    """Are false names within the rate, and what do the best lists find?

    A sentence in between says how many audits without suitable comparison rows gave a list.
    """
    keys = ["model", "copies", "form"]
    same = found[found["comparison"].eq(SAME)]
    rates = same["n_false"].div(same["n_listed"].clip(lower=1)).groupby([same[k] for k in keys])
    means, errors = rates.mean(), rates.sem()
    n_above = int((means - errors * stats.t.ppf(0.95, rates.size() - 1) > RATE).sum())
    highest = f"the highest realised rate is {100 * means.max():.1f} %"
    if n_above:
        kept = (
            f"False names exceed {100 * RATE:.0f} % in {n_above} of {len(means)} lines; {highest}."
        )
    else:
        kept = (
            f"None of the {len(means)} realised rates with comparison rows of the same kind is "
            f"shown to exceed {100 * RATE:.0f} %; {highest}."
        )
    others = found[found["comparison"].ne(SAME)]
    n_lists = int(others["has_list"].sum())
    refused = (
        f"Without comparison rows of the same kind, {n_lists or 'none'} of {len(others)} audits "
        f"{'give' if n_lists else 'gives'} a list."
    )
    hits = (same["n_listed"] - same["n_false"]).groupby([same[k] for k in keys]).sum()
    shares = hits / same["n_seen"].groupby([same[k] for k in keys]).sum()
    model, copies, form = shares.idxmax()
    best = (
        f"Lists find few seen rows: at most {100 * shares.max():.0f} % ({model}, "
        f"{copies} copies, scored as {'its text' if form == TEXT else 'an instance'}). So an empty "
        "list is no sign that the rows were not seen."
    )
    if shares.max() >= HALF:
        best = (
            f"The best lists find {100 * shares.max():.0f} % of the seen rows ({model}, {copies} "
            f"copies, scored as {'its text' if form == TEXT else 'an instance'})."
        )
    return f"{kept} {refused} {best}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--assignments", type=int, default=len(ASSIGNMENTS), help="of each kind")
    parser.add_argument(
        "--models", nargs="+", choices=(PRETRAINED, BASE), default=(PRETRAINED, BASE)
    )
    parser.add_argument("--table", type=Path, default=TABLE)
    told = parser.parse_args()
    found = measure_lists(told.assignments, told.models)
    storage.write_csv(told.table, found.round({"auc": 4}))
    if told.table == TABLE:
        before, _, rest = PAGE.read_text().partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        PAGE.write_text(before + MARKS[0] + page_text(found) + MARKS[1] + after)


if __name__ == "__main__":
    main()
