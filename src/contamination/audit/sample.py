"""The sample dataset in ``params/audit``: rows of the lab's grammar, with options of the quizzes.

Options are interchangeable with their originals (``lab.grammar``), so a model
that has read none of the rows finds them by chance alone.
"""

from __future__ import annotations

import json

from contamination.audit.lab_models import SAMPLE_BENCHMARK
from contamination.dcq.perturbation import quizzes_of_groups
from contamination.dcq.quizzes import OPTION_COLUMNS
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_groups

N_ROWS = 60
SEED = 10


def sample_lines(name: str) -> str:
    """A file of the sample, JSON lines: text, label, option_a to option_d.

    One draw is dealt to both in turn within each pattern of the grammar, so
    that they differ in no topic; they share no row.

    Args:
        name: "sample" or "unseen".
    """
    benchmark = BENCHMARKS[SAMPLE_BENCHMARK]
    groups = draw_groups(benchmark, 2 * N_ROWS, SEED, "test")
    originals = groups[groups["option"] == 0].set_index("group")
    quizzes = quizzes_of_groups(groups, benchmark.columns).set_index("index")
    in_turn = originals.sort_values("template", kind="stable").index
    dealt = sorted(in_turn[::2] if name == "sample" else in_turn[1::2])
    rows = [
        {column: originals.loc[group, column] for column in benchmark.columns}
        | {column: quizzes.loc[group, column] for column in OPTION_COLUMNS}
        for group in dealt
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
