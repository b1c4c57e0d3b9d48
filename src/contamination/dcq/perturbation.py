"""Word-level perturbations of instances (DCQ, section 3.1 and appendix B).

A model is asked for four perturbations of an instance at a time; an option that
is missing, repeats another one or equals the original is counted and asked for
again, up to a limit. Labels are never perturbed.

The result is a table of quizzes, whoever wrote the perturbations: ``index``,
``instance`` (the original as the paper prints it), ``option_a`` to ``option_d``,
and ``fifth``, a further distinct one for the third curve of Figure 2 ("" where
none is asked for).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from contamination.core.overlap import normalised
from contamination.data.partitions import format_instance
from contamination.dcq.prompts import LETTERS, PAPER, PERTURBATION_INSTRUCTION, perturbation_request
from contamination.dcq.quizzes import OPTION_COLUMNS
from contamination.models.chat import ERROR, REFUSED, Answer, Request

FIFTH = "fifth"
# Counted over all rounds, one column each.
COUNTS = ("n_calls", "n_refused", "n_error", "n_missing", "n_repeated", "n_identical")

Ask = Callable[[list[Request]], list[Answer]]
Row = Mapping[str, str]


def parse_options(
    text: str, columns: Sequence[str], label_columns: Sequence[str] = ()
) -> list[dict[str, str] | None]:
    """The four options of an answer, column by column; None where one is missing.

    An option begins at its letter at the start of a line, letters in order, each
    column with its name; a label may be left out (it is not read), and so may the name
    where a single column is not a label (as in Table 5 of the paper).

    >>> parse_options("A) text: one\\nB) text: two\\nC)\\ntext: three", ["text"])
    [{'text': 'one'}, {'text': 'two'}, {'text': 'three'}, None]
    """
    parts: dict[str, str] = {}
    rest, previous = text, ""
    for letter in LETTERS:
        mark = re.search(rf"^[ \t*_#]*\(?{letter}[).:][*_]*[ \t]*", rest, flags=re.MULTILINE)
        if mark is None:
            continue
        if previous:
            parts[previous] = rest[: mark.start()]
        rest, previous = rest[mark.end() :], letter
    if previous:
        parts[previous] = re.split(r"^\s*(?:- - -|---)\s*$", rest, flags=re.MULTILINE)[0]
    return [_fields(parts.get(letter, ""), columns, label_columns) for letter in LETTERS]


def _fields(
    option: str, columns: Sequence[str], label_columns: Sequence[str]
) -> dict[str, str] | None:
    """The perturbed columns of one option, or None where one of them is not there."""
    wanted = [column for column in columns if column not in label_columns]
    names = "|".join(re.escape(column) for column in columns)
    pieces = re.split(rf"^[ \t]*[*_]*({names})[*_]*:[*_]*", option, flags=re.M | re.I)
    spelled = {column.lower(): column for column in columns}
    values: dict[str, str] = {}
    for name, value in zip(pieces[1::2], pieces[2::2], strict=True):
        # A line of the text itself may begin with a column's name: the first one counts.
        # Some letters match a column's without being it, such as the long s of "ſentence".
        values.setdefault(spelled.get(name.lower(), ""), value.strip())
    if len(wanted) == 1 and wanted[0] not in values:
        values[wanted[0]] = pieces[0].strip()
    if not all(values.get(column) for column in wanted):
        return None
    return {column: values[column] for column in wanted}


@dataclass
class _Instance:
    """What has been accepted for one original, and what went wrong on the way."""

    row: Row
    columns: Sequence[str]
    label_columns: Sequence[str]
    accepted: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))

    def read(self, answer: Answer, n_wanted: int) -> None:
        self.counts["n_calls"] += 1
        # A cut answer is read as far as it goes.
        if answer.status in (REFUSED, ERROR):
            self.counts[f"n_{answer.status}"] += 1
            return
        taken = {normalised(self._printed(self.row)): "n_identical"}
        taken |= {normalised(text): "n_repeated" for text in self.accepted}
        for fields in parse_options(answer.text, self.columns, self.label_columns):
            if fields is None:
                self.counts["n_missing"] += 1
                continue
            text = self._printed({**self.row, **fields})
            if reason := taken.get(normalised(text)):
                self.counts[reason] += 1
            elif len(self.accepted) < n_wanted:
                self.accepted.append(text)
                taken[normalised(text)] = "n_repeated"

    def _printed(self, row: Row) -> str:
        return format_instance(row, self.columns)


def perturb(
    rows: pd.DataFrame,
    columns: Sequence[str],
    ask: Ask,
    *,
    label_columns: Sequence[str] = (),
    with_fifth: bool = False,
    max_rounds: int = 4,
    instruction: str = PERTURBATION_INSTRUCTION,
    layout: str = PAPER,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Quizzes for a sample of instances, perturbed by a chat model.

    Every round asks once for each instance that still lacks options; a later
    round is the same request as another replicate.

    Args:
        rows: one row for each instance, with its column index.
        columns: columns of an instance, in order.
        ask: sends requests, such as ``models.chat.answer_all`` with its endpoint.
        label_columns: of these, never perturbed.
        with_fifth: also a fifth perturbation, which needs a second call.
        max_rounds: most calls for one instance.
        instruction: other words than Figure 3's; a departure.
        layout: of the prompt, "paper" or "released".

    Returns:
        The quizzes, without instances that lack an option after the last round; and
        one row per instance: index, ``COUNTS``, n_accepted, is_complete.

    Raises:
        ValueError: if nothing would be perturbed, or no instance got its options.
    """
    if set(columns) <= set(label_columns):
        raise ValueError("every column is a label: name at least one column to perturb")
    n_wanted = len(OPTION_COLUMNS) + with_fifth
    texts = rows[list(columns)].astype(str).to_dict("records")
    instances = [_Instance(row, columns, label_columns) for row in texts]
    for replicate in range(max_rounds):
        missing = [one for one in instances if len(one.accepted) < n_wanted]
        requests = [
            perturbation_request(one.row, columns, replicate, instruction, layout)
            for one in missing
        ]
        for one, answer in zip(missing, ask(requests) if requests else [], strict=True):
            one.read(answer, n_wanted)
    counts = pd.DataFrame([one.counts for one in instances])
    counts.insert(0, "index", rows["index"].to_numpy())
    counts["n_accepted"] = [len(one.accepted) for one in instances]
    counts["is_complete"] = counts["n_accepted"] == n_wanted
    complete = [one for one in instances if len(one.accepted) == n_wanted]
    if not complete:
        lacking = ", ".join(f"{name[2:]} {counts[name].sum()}" for name in COUNTS)
        raise ValueError(
            f"no instance got {n_wanted} distinct perturbations in {max_rounds} rounds ({lacking}):"
            " look at the answers in the response log, or name another perturber"
        )
    quizzes = pd.DataFrame([[one._printed(one.row), *one.accepted] for one in complete])
    quizzes.columns = ["instance", *OPTION_COLUMNS, *[FIFTH] * with_fifth]
    quizzes.insert(0, "index", counts.loc[counts["is_complete"], "index"].to_numpy())
    return quizzes if with_fifth else quizzes.assign(**{FIFTH: ""}), counts


def quizzes_of_groups(groups: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Quizzes from the lab's grammar, whose paraphrases stand for the perturber.

    ``groups`` are of ``lab.grammar.draw_groups`` with four or five paraphrases; the
    number of a group becomes ``index``.
    """
    texts = groups[list(columns)].to_dict("records")
    printed = groups.assign(text=[format_instance(row, columns) for row in texts])
    wide = printed.pivot(index="group", columns="option", values="text")
    names = ["instance", *OPTION_COLUMNS, FIFTH][: wide.shape[1]]
    wide = wide.set_axis(names, axis=1).rename_axis("index").reset_index()
    return wide if FIFTH in wide else wide.assign(**{FIFTH: ""})
