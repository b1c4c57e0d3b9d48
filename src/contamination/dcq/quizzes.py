"""The Data Contamination Quiz: perturbations, prompts, quizzes, and a model that takes them
(sections 3.1 and 3.2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import pandas as pd

from contamination.core.overlap import normalised
from contamination.core.statistics import correct_family, end_p, share_difference_interval
from contamination.core.verdicts import CLAIMS, NOT_RUN
from contamination.data.partitions import format_instance
from contamination.data.published import DCQ_DATASETS, WILD_DATASETS
from contamination.data.sources import source_file
from contamination.dcq.assessment import (
    CHOICES,
    POSITIONS,
    assess,
    assessment_row,
    positions_to_quiz,
    standard_answers_of,
)
from contamination.models.chat import ERROR, OK, REFUSED, Answer, Request

LETTERS = "ABCD"
# Section 4: of a quiz temperature zero and one token, of a perturbation 1.00 and at most 4,000.
QUIZ_OPTIONS = {"temperature": 0.0, "max_tokens": 1}
PERTURBER_OPTIONS = {"temperature": 1.0, "max_tokens": 4000}

PAPER, RELEASED = "paper", "released"  # layouts
# Figure 1, and Table 5 of appendix A, which differs in dataset and split alone.
PAPER_QUIZ = """\
Instruction: You are provided with a five-choice quiz. Your task is to correctly select the option \
that exactly corresponds to an instance from the {split} split of the {dataset} dataset. When \
selecting the option, you must ensure that you follow the following rules:
(1) You must ensure that you only generate a single option letter as your answer.
(2) If you do not know the dataset or the correct answer, you must select option "E) None of the \
provided options."
Hint: While all the following options seem similar in terms of meaning, there is only one option \
that reflects the exact wording with respect to the original instance.
- - -
A) {a}
B) {b}
C) {c}
D) {d}
E) None of the provided options.
- - -
Answer:"""

# Figure 3.
PAPER_PERTURBATION = """\
Instruction: Your task is to create a four-choice quiz by replacing the words in the provided \
"Input Text" with their contextually relevant synonyms. The meaning and sentence structure of the \
four options must exactly match every detail in the Input Text. You must not include the provided \
Input Text as an option.
You must make sure that:
(1) You generate distinct options based on the provided Input Text;
(2) The only difference between options is word-level perturbations.
(3) Options are ordered;
(4) There is not any extra explanation;
(5) You follow the following "Format" to generate options;
(6) You comply with every specific symbol and letter detail in the given Input Text; and
(7) All options retain the exact label from the Input Text, if there is one.
- - -
Input Text:
{instance}
- - -
Format:
{form}
- - -"""

RELEASED_QUIZ = """\
You are provided with a five-choice quiz. Your task is to CORRECTLY select the option that EXACTLY \
corresponds to an instance from the {split} split of the {dataset} dataset.

When selecting the option, you MUST ensure that you follow the following rules:
(1) You MUST ensure that you ONLY generate a single option letter as your answer.
(2) If you do not know the dataset or the correct answer, you MUST select option "E) None of the \
provided options."

Hint: While all the following options seem similar in terms of meaning, there is ONLY one option \
that reflects the EXACT WORDING with respect to the original instance.
---
A)
{a}

B)
{b}

C)
{c}

D)
{d}

E)
None of the provided options.
---
ANSWER:
"""
RELEASED_PERTURBATION = """\
Your task is to create a four-choice quiz by replacing the words in the provided INPUT TEXT with \
their contextually relevant synonyms.
The meaning and sentence structure of the four options MUST EXACTLY match every detail in the \
INPUT TEXT.
You MUST NOT include the provided INPUT TEXT as an option.

You MUST make sure that:
(1) You generate DISTINCT options based on the provided INPUT TEXT;
(2) The ONLY difference between options is WORD-LEVEL PERTURBATIONS.
(3) Options are ORDERED;
(4) There is NOT any extra explanation;
(5) You follow the following FORMAT to generate options;
(6) You comply with every specific symbol and letter detail in the given INPUT TEXT; and
(7) All options retain the EXACT LABEL from the INPUT TEXT, if there is one.
---
INPUT TEXT:
{instance}
---
FORMAT:

A)
First word-level perturbation goes here

B)
Second word-level perturbation goes here

C)
Third word-level perturbation goes here

D)
Fourth word-level perturbation goes here
---
"""
_QUIZZES = {PAPER: PAPER_QUIZ, RELEASED: RELEASED_QUIZ}
_PERTURBATIONS = {PAPER: PAPER_PERTURBATION, RELEASED: RELEASED_PERTURBATION}


def header(dataset: str, split: str) -> str:
    """What stands above every instance; nothing where no dataset is named."""
    return f"Dataset: {dataset}\nSplit: {split}\n" if dataset else ""


def quiz_prompt(options: Sequence[str], dataset: str, split: str, layout: str = PAPER) -> str:
    """The question of one quiz (Figure 1), which ends where the letter is due.

    ValueError if there are not four texts.
    """
    texts = dict(zip(LETTERS.lower(), options, strict=True))
    return _QUIZZES[layout].format(dataset=dataset, split=split, **texts)


def perturbation_prompt(row: Mapping[str, str], columns: Sequence[str], layout: str = PAPER) -> str:
    """What asks for four perturbations of one instance (Figure 3)."""
    empty = "\n".join(f"{column}:" for column in columns)
    form = "\n".join(f"{letter}) {empty}" for letter in LETTERS)
    return _PERTURBATIONS[layout].format(instance=format_instance(row, columns), form=form)


def perturbation_request(
    row: Mapping[str, str], columns: Sequence[str], replicate: int = 0, layout: str = PAPER
) -> Request:
    """What is asked for one instance; sampling options are the endpoint's."""
    prompt = perturbation_prompt(row, columns, layout)
    return Request(messages=[{"role": "user", "content": prompt}], replicate=replicate)


FIFTH = "fifth"
# Counted over all rounds, one column each.
COUNTS = ("n_calls", "n_refused", "n_error", "n_missing", "n_repeated", "n_identical")

Ask = Callable[[list[Request]], list[Answer]]
Row = Mapping[str, str]


def parse_options(
    text: str, columns: Sequence[str], label_columns: Sequence[str] = ()
) -> list[dict[str, str] | None]:
    """The four options of an answer, column by column; None where one is missing.

    An option begins at its letter at the start of a line, letters in order, each column with its
    name; a label is not read, and the name may be left out where a single column is no label.

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
    layout: str = PAPER,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Quizzes for a sample of instances, perturbed by a chat model.

    Every round asks once for each instance that still lacks options; a later round is the same
    request as another replicate. Columns of ``label_columns`` are never perturbed; a fifth
    perturbation needs a second call. ``ask`` sends requests, such as ``models.chat.answer_all``
    with its endpoint.

    Returns:
        The quizzes, without instances that lack an option after ``max_rounds``; and one row per
        instance: index, ``COUNTS``, n_accepted, is_complete.

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
        requests = [perturbation_request(one.row, columns, replicate, layout) for one in missing]
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


MODIFIED, STANDARD, SECOND = "modified", "standard", "second perturbation"
OPTION_COLUMNS = ("option_a", "option_b", "option_c", "option_d")
REPOSITORY = "shahriargolchin/DCQ"
_WHAT_IS_PLACED = {STANDARD: "instance", SECOND: "fifth"}
# The split in a file's name, "test" for all others.
_SPLITS = {"DROP": "valid", "GSM8k": "train", "RTE": "valid", "WNLI": "valid"}

Texts = tuple[str, str, str, str]


def quiz_options(quizzes: pd.DataFrame, quiz: str, position: str = "") -> list[Texts]:
    """Texts of A to D for every instance; ValueError if there is no fifth perturbation to place.

    In the "standard" quiz the original takes the place of the perturbation at
    ``position`` (A to D), in the "second perturbation" quiz the fifth one does; the
    "modified" quiz, of four perturbations, has none.
    """
    options = quizzes[list(OPTION_COLUMNS)].copy()
    if quiz != MODIFIED:
        placed = quizzes[_WHAT_IS_PLACED[quiz]]
        if placed.eq("").any():
            raise ValueError(
                "a quiz has no fifth perturbation: make the perturbations by with_fifth"
            )
        options[OPTION_COLUMNS[POSITIONS.index(position)]] = placed
    return [tuple(texts) for texts in options.itertuples(index=False)]


def invented_quizzes() -> pd.DataFrame:
    """Five news items that no model can have seen, each with four reworded copies.

    A language model invented the items and reworded them, as GPT-4 did with the paper's rows.
    """
    with (resources.files("contamination.dcq") / "five_quizzes.csv").open() as stream:
        return pd.read_csv(stream).assign(fifth="")


def released_quizzes() -> pd.DataFrame:
    """The authors' quizzes of the ten datasets, 1,035 rows: dataset, index, instance, options.

    In the seven "wild" datasets option_d is the original itself.
    """
    parts = []
    for dataset in DCQ_DATASETS:
        group = "wild_evaluation" if dataset in WILD_DATASETS else "reported_contamination"
        name = f"{dataset.lower().replace(' ', '_')}_{_SPLITS.get(dataset, 'test')}"
        path = source_file(REPOSITORY, f"data/our_dcq/processed/{group}/{name}.csv")
        rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        parts.append(rows.assign(dataset=dataset, index=range(len(rows))))
    columns = ["dataset", "index", "instance", *OPTION_COLUMNS]
    return pd.concat(parts, ignore_index=True)[columns]


NO_LETTER = "?"
Respondent = Callable[[Sequence[Texts]], pd.DataFrame]


def answer_quizzes(
    respondent: Respondent, quizzes: pd.DataFrame, with_second: bool = False
) -> pd.DataFrame:
    """Every answer of one model on one partition: a row for each question.

    A standard quiz is taken at each least preferred position. With ``with_second`` a fifth
    perturbation goes to the (first) position that the modified quiz chose least, as in Figure 2.
    ``position`` is "" in the modified quiz; behind answer and status stands what else the
    respondent records.
    """

    def answers_to(quiz: str, position: str = "") -> pd.DataFrame:
        key = {"index": quizzes["index"].to_numpy(), "quiz": quiz, "position": position}
        answers = respondent(quiz_options(quizzes, quiz, position)).reset_index(drop=True)
        return pd.concat([pd.DataFrame(key, index=answers.index), answers], axis=1)

    parts = [answers_to(MODIFIED)]
    counts = parts[0]["answer"].value_counts().to_dict()
    parts += [answers_to(STANDARD, at) for at in positions_to_quiz(counts, len(quizzes))]
    if with_second:
        parts.append(answers_to(SECOND, min(POSITIONS, key=lambda at: counts.get(at, 0))))
    return pd.concat(parts, ignore_index=True)


def instances_of(answers: pd.DataFrame) -> pd.DataFrame:
    """One row per instance, as the released answers have it: what ``assessment`` reads.

    Answers are "" where not asked, "?" where no usable letter came.
    """
    columns = {(MODIFIED, ""): "modified_answer"}
    columns |= {(STANDARD, position): f"answer_at_{position.lower()}" for position in POSITIONS}
    wide = pd.DataFrame({"index": answers.loc[answers["quiz"] == MODIFIED, "index"]})
    wide = wide.reset_index(drop=True)
    for (quiz, position), name in columns.items():
        chosen = answers[(answers["quiz"] == quiz) & (answers["position"] == position)]
        # What was asked and not usably answered must not look like what was not asked.
        wide[name] = chosen["answer"].replace("", NO_LETTER).to_numpy() if len(chosen) else ""
    return wide


def level_row(answers: pd.DataFrame, n_resamples: int, seed: int = 0) -> dict:
    """``assessment_row`` with n_asked, n_valid, n_refused and n_error over all quizzes.

    Unusable answers stay in the denominators of the shares.
    """
    status = answers["status"]
    return assessment_row(instances_of(answers), n_resamples, seed) | {
        "n_asked": len(answers),
        "n_valid": int(status.eq(OK).sum()),
        "n_refused": int(status.eq(REFUSED).sum()),
        "n_error": int(status.eq(ERROR).sum()),
    }


def recall_precision_row(
    answers: pd.DataFrame, is_seen: Sequence[bool], n_resamples: int, seed: int = 0
) -> dict:
    """``level_row`` where it is known which instances the model has read (Table 1).

    Recall: right answers among the instances seen (``is_seen``, in the order of the quizzes).
    Precision: instances seen among the right answers. Both at the quiz of the maximum, and at
    that of the minimum: the second-best quiz where it gives the minimum, else, where kappa does,
    the best quiz again. Undefined with an empty denominator.
    """
    instances = instances_of(answers)
    standard = standard_answers_of(instances)
    level = assess(instances["modified_answer"].tolist(), standard)
    is_of_second = level.minimum == level.second
    least = level.second_position if is_of_second else level.best_position
    at = {"max": level.best_position, "min": least}
    is_seen = pd.Series(list(is_seen), dtype=bool)
    row = level_row(answers, n_resamples, seed)
    row["true_contamination_pct"] = 100 * float(is_seen.mean())
    for end, position in at.items():
        right = pd.Series(standard[position]).eq(position)
        n_both = int((right & is_seen).sum())
        for name, n in (("recall", is_seen.sum()), ("precision", right.sum())):
            row[f"{name}_{end}_pct"] = 100 * n_both / int(n) if n else float("nan")
    return row


def position_rows(answers: pd.DataFrame, **labels: str) -> pd.DataFrame:
    """Rows of ``dcq_positions.csv``: how often each choice was taken in each quiz.

    The quizzes are those of ``answer_quizzes``; ``labels`` are source, dataset, split and model.
    """
    rows = []
    for (quiz, position), of_quiz in answers.groupby(["quiz", "position"], sort=False):
        counts = of_quiz["answer"].value_counts()
        key = {**labels, "quiz": quiz, "position": position}
        rows += [key | {"option": c, "count": int(counts.get(c, 0))} for c in CHOICES]
    table = pd.DataFrame(rows).assign(paper_count=pd.NA)
    return table.astype({"count": "Int64", "paper_count": "Int64"})


def moves_table(counts: pd.DataFrame) -> pd.DataFrame:
    """Do answers move to the position where the original is put? One row per panel of Figure 2.

    Args:
        counts: panel, quiz (those of ``answer_quizzes``), answers (how often the choice was made),
            is_there (the choice is the position of the original); every choice of every quiz.

    Returns:
        Answers at that position in percent: modified_pct, standard_pct (with the original there)
        and second_pct (with a fifth perturbation there, the control); rise_pct (standard minus
        modified, points) with a 95 % interval that takes the quizzes as two samples, which is wide
        for the same instances; control_low_pct and control_high_pct, of the control's rise;
        p, p_adjusted (Holm over panels with a control), verdict, and note: why there is none.
    """
    rows, claim = [], CLAIMS["dcq_positions"]
    for panel, of_panel in counts.groupby("panel", sort=False):
        asked = of_panel.groupby("quiz")["answers"].sum()
        there = of_panel[of_panel["is_there"]].set_index("quiz")["answers"]
        row: dict[str, Any] = {"panel": panel, "verdict": NOT_RUN, "p": float("nan")}
        row |= {f"{quiz.split()[0]}_pct": 100 * there[quiz] / asked[quiz] for quiz in asked.index}
        row["rise_pct"] = row["standard_pct"] - row["modified_pct"]
        ends = {}
        for quiz in asked.index.drop(MODIFIED):
            of_both = there[quiz], asked[quiz], there[MODIFIED], asked[MODIFIED]
            low, high = share_difference_interval(*of_both)
            ends[quiz] = 100 * low, 100 * high
        low, high = ends[STANDARD]
        row |= {"ci_low_pct": low, "ci_high_pct": high}
        row["note"] = "" if SECOND in ends else "the control's answers were not released"
        if SECOND in ends:
            row |= dict(zip(("control_low_pct", "control_high_pct"), ends[SECOND], strict=True))
            row["verdict"] = claim.verdict(low, high, control=ends[SECOND])
            row["p"] = end_p(row["rise_pct"], low, high)
        rows.append(row)
    return correct_family(pd.DataFrame(rows))
