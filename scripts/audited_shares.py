"""How often does the audit find a part of a dataset in a real model, and what had --power said?

    python scripts/audited_shares.py        # make pretrained before; an hour of one core

Ten times, by lot: SmolLM2 reads 60 of 180 rows, by adapters, 1, 4 or 16 times. A dataset has 60
rows, of which it read 0, 10, 33 or 100 %; 60 others are for comparison. The command audits the
log-probabilities of each. Writes ``docs/audited_shares.csv``. All numbers here were fixed before
the first audit.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from contamination.audit import command_line
from contamination.core import storage
from contamination.core.statistics import share_interval
from contamination.dice.pool import fine_tune
from contamination.lab.grammar import BENCHMARKS, draw_instances
from contamination.models.loading import load_causal_lm
from contamination.models.local import token_log_probs
from contamination.models.source import PACKAGED, resolve_path
from contamination.study import pretrained

TABLE = Path(__file__).resolve().parents[1] / "docs/audited_shares.csv"
PASSES, SHARES, N_ASSIGNMENTS, N = (1, 4, 16), (0, 0.1, 0.33, 1), 10, 60


def audits(assignment: int, passes: int) -> list[dict]:
    """The verdict for each share, of one model."""
    rows = draw_instances(BENCHMARKS["topics"], 3 * N, 701, "test")["text"].to_numpy()
    generator = np.random.default_rng([assignment, 701])
    read, unread, comparison = np.split(generator.permutation(rows), 3)
    order = [read[place] for _ in range(passes) for place in generator.permutation(N)]
    settings = replace(pretrained.READING, seed=assignment)
    model = fine_tune(resolve_path(PACKAGED), [("", text) for text in order], settings)
    lm = load_causal_lm(model)
    asked = [*read, *unread, *comparison]
    scored = token_log_probs(lm, asked, cache=False)
    values = {t: s.token_log_probs.tolist() for t, s in zip(asked, scored, strict=True)}
    shutil.rmtree(model)
    found = []
    for share in SHARES:
        n_read = round(share * N)
        data = generator.permutation([*read[:n_read], *unread[n_read:]])
        lines = [
            {"id": n, "suspected": n < N, "log_probs": values[text], "text": text}
            for n, text in enumerate([*data, *comparison])
        ]
        with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
            file = Path(name, "rows.jsonl")
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
            told = ["--log-probs", str(file), "--methods", "min_k", "--output", f"{name}/out"]
            command_line.main(told)
            verdict = json.loads(Path(name, "out/verdict.json").read_text())
        (row,) = [row for row in verdict["evidence"] if row["n_at_least"] is not None] or [{}]
        found.append(
            {
                "assignment": assignment,
                "passes": passes,
                "n_read": n_read,
                "shown": verdict["verdicts"][0]["verdict"] == "shown",
                "n_at_least": row.get("n_at_least"),
                "n_listed": len(verdict["listed_rows"]),
                "n_listed_read": sum(data[r["index"]] in read for r in verdict["listed_rows"]),
            }
        )
    return found


def main() -> None:
    rows = []
    for assignment in range(N_ASSIGNMENTS):
        for passes in PASSES:
            rows += audits(assignment, passes)
            print(*rows[-len(SHARES) :], sep="\n", flush=True)
    by = pd.DataFrame(rows).groupby(["passes", "n_read"])
    table = by[["shown", "n_listed", "n_listed_read"]].sum().rename(columns={"shown": "n_shown"})
    table.insert(0, "n_audits", by.size())
    ends = [share_interval(*pair) for pair in zip(table["n_shown"], table["n_audits"], strict=True)]
    table["ci_low"], table["ci_high"] = np.transpose(ends)
    at_least = pd.DataFrame(rows).query("shown").groupby(["passes", "n_read"])["n_at_least"]
    table["at_least_median"] = at_least.median()
    storage.write_csv(TABLE, table.round({"ci_low": 4, "ci_high": 4}).reset_index())


if __name__ == "__main__":
    main()
