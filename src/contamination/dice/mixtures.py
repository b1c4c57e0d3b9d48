"""Training mixtures: vanilla instruction data with some share of benchmark problems.

Tu et al., arXiv:2406.04197, Section 2.2, on the set-up of Dekoninck et al.
(EAL), arXiv:2402.02823: problems are copied once or five times and filled up
with vanilla instruction data, "2 %" and "10 %" of the rows. The total number of rows stays.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from contamination.data import partitions
from contamination.data.published import gsm8k_alignment
from contamination.data.sources import source_file
from contamination.lab.grammar import (
    GRADE_SCHOOL,
    HARDER_NUMBERS,
    ONE_STEP,
    OTHER_DISTRIBUTIONS,
    draw_groups,
    draw_instances,
)
from contamination.lab.passages import collect_signatures

# Of the released code (EAL's, as DICE uses it).
PROMPT = "### Input:\n{}\n\n### Response:\n"
INSTRUCTION = "### Instruction:\n{}\n\n"  # in front of it, where a row has a system prompt
SEEN, UNSEEN, SYN, HARD = "GSM-i", "GSM-ii", "GSM-i-Syn", "GSM-hard"
IN_DISTRIBUTION = (SEEN, UNSEEN, SYN, HARD)
MATH = "MATH"
OUT_OF_DISTRIBUTION = ("SVAMP", "MAWPS", "ASDiv", "TabMWP", MATH)
# The lab's families in the order of what they stand for.
_FAMILIES = dict(zip(OUT_OF_DISTRIBUTION, OTHER_DISTRIBUTIONS, strict=True))

Row = tuple[str, str]  # prompt and response
Problems = pd.DataFrame  # columns question and answer; instruction data may have instruction


@dataclass(frozen=True)
class Mixture:
    """What one model is fine-tuned on: vanilla rows once, contamination rows ``copies`` times."""

    vanilla: tuple[Row, ...]
    contamination: tuple[Row, ...] = ()
    copies: int = 0

    @property
    def n_rows(self) -> int:
        """Rows of one epoch, copies counted."""
        return len(self.vanilla) + self.copies * len(self.contamination)

    @property
    def dose_pct(self) -> float:
        """Contamination rows in percent of all rows, copies counted."""
        return 100 * self.copies * len(self.contamination) / self.n_rows

    def rows(self, seed: int) -> list[Row]:
        """Every row as often as it is read, in random order."""
        rows = [*self.vanilla, *self.contamination * self.copies]
        return [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]


def mix(
    vanilla: Sequence[Row], contamination: Sequence[Row], copies: int, n_rows: int, seed: int
) -> Mixture:
    """Copies of the contamination, filled up with vanilla rows drawn at random.

    Every dose has the same ``n_rows`` (the paper's design); without contamination, or with 0
    copies, the mixture is clean. One seed gives the same first rows at every dose.
    ValueError if there are too few vanilla rows, or the copies leave no room for any.
    """
    if n_rows > len(vanilla):
        raise ValueError(
            f"only {len(vanilla)} vanilla rows, {n_rows} asked for: add rows or lower n_rows"
        )
    order = np.random.default_rng([seed, 5]).permutation(len(vanilla))[:n_rows]
    drawn = [vanilla[place] for place in order]
    contamination = tuple(contamination) if copies else ()
    n_kept = n_rows - copies * len(contamination)
    if n_kept < 1:
        raise ValueError(
            f"{copies} copies of {len(contamination)} problems leave no room for vanilla rows: "
            f"raise n_rows above {n_rows}"
        )
    return Mixture(tuple(drawn[:n_kept]), contamination, copies if contamination else 0)


def prompts_of(problems: Problems) -> list[str]:
    """Questions in the released code's prompt, behind an instruction that is not empty."""
    instructions = problems.get("instruction", pd.Series("", problems.index))
    return [
        (INSTRUCTION.format(instruction) if instruction else "") + PROMPT.format(question)
        for instruction, question in zip(instructions, problems["question"], strict=True)
    ]


def rows_of(problems: Problems) -> list[Row]:
    """Problems as prompt and response."""
    return list(zip(prompts_of(problems), problems["answer"], strict=True))


def vanilla_rows() -> list[Row]:
    """The lab's vanilla instruction data, in OpenOrca's place: summaries of docstrings."""
    return rows_of(vanilla_problems())


def vanilla_problems() -> Problems:
    """The same as questions and answers."""
    return collect_signatures().rename(columns={"signature": "question", "summary": "answer"})


# Problems of the lab


def skill_texts(n: int, seed: int) -> tuple[list[Row], list[str]]:
    """What gives the lab's base model a floor above zero: one-step problems and bare sums.

    ``n`` problems with operands up to 9, none of them in :func:`lab_problems`; and every sum,
    difference and product behind them as a line of its own.
    """
    facts = [
        line
        for a, b in product(range(1, 10), repeat=2)
        for line in (f"{a} + {b} = {a + b}", f"{a + b} - {b} = {a}", f"{a} * {b} = {a * b}")
    ]
    return rows_of(draw_instances(ONE_STEP, n, seed, "train")), facts


def lab_problems(n: int, n_ood: int, seed: int) -> dict[str, Problems]:
    """The lab's counterparts of the paper's sets, by the paper's names.

    Two of three GSM problems have operands up to 9, which the base model has learned to solve; all
    others are out of its reach. GSM-i-Syn paraphrases GSM-i row by row, numbers and answers kept.
    GSM-hard and the out-of-distribution sets have ``n_ood`` problems, all others ``n``.
    """
    easy, hard = (
        draw_groups(family, 2 * n, seed, "test", n_paraphrases=1).groupby("option")
        for family in (ONE_STEP, GRADE_SCHOOL)
    )
    originals, paraphrases = (
        _interleave(easy.get_group(option), hard.get_group(option), 2 * n) for option in (0, 1)
    )
    problems = {SEEN: originals[:n], UNSEEN: originals[n:], SYN: paraphrases[:n]}
    for name, family in {HARD: HARDER_NUMBERS, **_FAMILIES}.items():
        problems[name] = draw_instances(family, n_ood, seed, "test")
    return {
        name: table[["question", "answer"]].reset_index(drop=True)
        for name, table in problems.items()
    }


def _interleave(easy: pd.DataFrame, hard: pd.DataFrame, n: int) -> pd.DataFrame:
    """Two easy problems, then a hard one, and so on: n rows, so that every part holds both."""
    tables = [hard if place % 3 == 2 else easy for place in range(n)]
    rows = [table.iloc[place] for place, table in enumerate(tables)]
    return pd.DataFrame(rows, columns=["question", "answer"]).reset_index(drop=True)


# Real problems, from the released files


def real_problems(n: int, n_ood: int, seed: int) -> dict[str, Problems]:
    """GSM8K rows as DICE split them, their aligned paraphrases, and four other-distribution sets.

    As :func:`lab_problems` (0 means all, repeated questions and multiple choice of TabMWP too, as
    the paper counts them), without MATH, which is on the hub only. GSM-i-Syn holds the paraphrases
    of these GSM-i rows by the alignment file: the released ones are out of step with the test set.
    """
    folder = "OOD_test/scripts/data/gsm8k"
    test = released_rows("THU-KEG/DICE", f"{folder}/original.csv")
    rephrased = released_rows("THU-KEG/DICE", f"{folder}/rephrased1.csv")
    aligned = gsm8k_alignment().dropna(subset="rephrased_row")
    rows = {name: aligned[aligned["split"] == name] for name in (SEEN, UNSEEN)}
    if n:
        rows = {name: table.sample(n, random_state=seed) for name, table in rows.items()}
    halves = {name: test.loc[table["gsm8k_test_row"]] for name, table in rows.items()}
    halves[SYN] = rephrased.loc[rows[SEEN]["rephrased_row"].astype(int)]
    hard = released_rows("reasoning-machines/pal", "datasets/gsmhardv2.jsonl")
    svamp = released_rows("arkilpatel/SVAMP", "SVAMP.json")
    svamp = svamp.assign(question=svamp["Body"] + ". " + svamp["Question"])
    mawps = released_rows("microsoft/ToRA", "src/data/mawps/test.jsonl")
    asdiv = released_rows("microsoft/ToRA", "src/data/asdiv/test.jsonl")
    asdiv = asdiv.assign(question=asdiv["body"] + " " + asdiv["question"])
    asdiv["answer"] = asdiv["answer"].str.split(" (", regex=False).str[0]
    return {
        **{name: table.reset_index(drop=True) for name, table in halves.items()},
        HARD: _drawn(hard, "target", n_ood, seed),
        "SVAMP": _drawn(svamp, "Answer", n_ood, seed),
        "MAWPS": _drawn(mawps, "target", n_ood, seed),
        "ASDiv": _drawn(asdiv, "answer", n_ood, seed),
        "TabMWP": _drawn(_tabmwp(with_choices=not n_ood), "answer", n_ood, seed),
    }


def released_rows(repository: str, path: str) -> pd.DataFrame:
    """Rows of a table that the authors released."""
    return partitions.load_rows(str(source_file(repository, path)))


def _tabmwp(with_choices: bool) -> pd.DataFrame:
    """Its wording is that of the released code (``process_tabmwp`` in ``OOD_generate_inf.py``)."""
    text = source_file("lupantech/PromptPG", "data/tabmwp/problems_test1k.json").read_text()
    rows = []
    for row in json.loads(text).values():
        question = row["question"]
        if row["choices"] is not None:
            question += "Your answer must choice from" + ", ".join(row["choices"])
        question += "There is a table you can use" + (row["table_title"] or "") + row["table"]
        if with_choices or row["choices"] is None:
            rows.append({"question": question, "answer": row["answer"]})
    return pd.DataFrame(rows)


def _drawn(rows: pd.DataFrame, answer: str, n: int, seed: int) -> pd.DataFrame:
    """So many rows at random, or all; an answer that is a bare number gets GSM8K's ``####``."""
    question = "question" if "question" in rows else "input"
    chosen = rows.drop_duplicates(question).sample(n, random_state=seed) if n else rows
    answers = [str(value).removesuffix(".0") for value in chosen[answer]]
    answers = [value if "####" in value else f"#### {value}" for value in answers]
    return pd.DataFrame({"question": chosen[question].tolist(), "answer": answers})
