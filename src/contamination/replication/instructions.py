"""First and second pieces of an instance, and the instructions around them (Time Travel, 3.1)."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from contamination.core import storage
from contamination.core.words import sentence_ends, unit_ends

CLASSIFICATION, NLI = "classification", "NLI"
SUMMARY, ONE_SENTENCE_SUMMARY = "summary", "one-sentence summary"
CODE, QUESTION = "code", "question"  # of the quiz paper's Table 2: HumanEval; DROP and GSM8k
# Of the judge, Figure 2.
JUDGE_OPTIONS = {"temperature": 0, "max_tokens": 10}

_LABELLED = "\nLabel: {label}\nFirst Piece: {input}\nSecond Piece:"
_PAIRED = "\nSentence 1: {input}\nLabel: {label}\nSentence 2:"
_PLAIN = "\nFirst Piece: {input}\nSecond Piece:"

# Table 3, left column.
GUIDED_INSTRUCTION = {
    CLASSIFICATION: "Instruction: You are provided with the first piece of an instance from the"
    " {split_name} split of the {dataset_name} dataset. Finish the second piece of the instance as"
    " exactly appeared in the dataset. Only rely on the original form of the instance in the"
    " dataset to finish the second piece." + _LABELLED,
    NLI: "Instruction: You are provided with Sentence 1 from the {split_name} split of the"
    " {dataset_name} dataset. Finish Sentence 2 as appeared in the dataset. Sentence 2 must exactly"
    " match the instance in the dataset." + _PAIRED,
    SUMMARY: "Instruction: You are provided with the first piece of a summary from the"
    " {split_name} split of the {dataset_name} dataset. Finish the second piece of the summary as"
    " exactly appeared in the dataset. Only rely on the original form of the summary in the"
    " dataset to finish the second piece." + _PLAIN,
}

# Table 3, right column.
GENERAL_INSTRUCTION = {
    CLASSIFICATION: "Instruction: Finish the second piece based on the first piece, such that"
    " these two pieces become a single instance with the following label." + _LABELLED,
    NLI: "Instruction: Finish Sentence 2 based on Sentence 1, such that the following label shows"
    " the logical relationship between Sentence 1 and Sentence 2." + _PAIRED,
    SUMMARY: "Instruction: Finish the second piece based on the first piece, such that these two"
    " pieces become a single summary." + _PLAIN,
}

# The same as the released code sends it: shahriargolchin/time-travel-in-llms at 010c5e56,
# src/prompts/guided_instructions.py and general_instructions.py.
PAPER, RELEASED = "paper", "released"  # layouts
_RELEASED_LABELLED = "\n\nLABEL: {label}\n\nFIRST PIECE:\n{input}\n\nSECOND PIECE:\n"
_RELEASED_PAIRED = "\n\nSENTENCE 1:\n{input}\n\nLABEL: {label}\n\nSENTENCE 2:\n"
_RELEASED_PLAIN = "\n\nFIRST PIECE:\n{input}\n\nSECOND PIECE:\n"
RELEASED_GUIDED = {
    CLASSIFICATION: "INSTRUCTION:\nYou are provided with the FIRST PIECE of an instance from the"
    " {split_name} split of the {dataset_name} dataset.\nFinish the SECOND PIECE of the instance as"
    " EXACTLY appeared in the dataset.\nONLY rely on the original form of the instance in the"
    " dataset to finish the SECOND PIECE." + _RELEASED_LABELLED,
    NLI: "INSTRUCTION:\nYou are provided with SENTENCE 1 from the {split_name} split of the"
    " {dataset_name} dataset.\nFinish SENTENCE 2 as appeared in the dataset.\nSENTENCE 2 MUST"
    " EXACTLY match the instance in the dataset." + _RELEASED_PAIRED,
    SUMMARY: "INSTRUCTION:\nYou are provided with the FIRST PIECE of a summary from the"
    " {split_name} split of the {dataset_name} dataset.\nFinish the SECOND PIECE of the summary as"
    " EXACTLY appeared in the dataset.\nONLY rely on the original form of the summary in the"
    " dataset to finish the SECOND PIECE." + _RELEASED_PLAIN,
}
RELEASED_GENERAL = {
    CLASSIFICATION: "INSTRUCTION:\nFinish the SECOND PIECE based on the FIRST PIECE, such that"
    " these two pieces become a single instance with the following LABEL." + _RELEASED_LABELLED,
    NLI: "INSTRUCTION:\nFinish SENTENCE 2 based on SENTENCE 1, such that the following LABEL shows"
    " the logical relationship between SENTENCE 1 and SENTENCE 2." + _RELEASED_PAIRED,
    SUMMARY: "INSTRUCTION:\nFinish the SECOND PIECE based on the FIRST PIECE, such that these two"
    " pieces become a single summary." + _RELEASED_PLAIN,
}
for _one in (GUIDED_INSTRUCTION, GENERAL_INSTRUCTION, RELEASED_GUIDED, RELEASED_GENERAL):
    # Table 3 says so once, where a summary is first named.
    _one[ONE_SENTENCE_SUMMARY] = re.sub(
        "(a|single) summary", r"\1 one-sentence summary", _one[SUMMARY]
    )
    # The quiz paper's released scripts (shahriargolchin/DCQ, scripts/comparative_framework/
    # reported_contamination/*.sh, line 2) put the word "code" or "question" in place of "summary".
    _one |= {word: _one[SUMMARY].replace(SUMMARY, word) for word in (CODE, QUESTION)}
# Guided and general instructions of a layout
_LAYOUTS = {
    PAPER: (GUIDED_INSTRUCTION, GENERAL_INSTRUCTION),
    RELEASED: (RELEASED_GUIDED, RELEASED_GENERAL),
}

# Figure 2; examples 1 to 4 stay, the fifth is what is judged.
JUDGE_PROMPT = """\
Instruction: You are provided with a reference text and a candidate text. The candidate text is a \
generated replica of the reference text. Your task is to determine if the candidate text is an \
exact or near-exact match of the reference text. Near-exact match candidates must precisely match \
the reference candidate in terms of sentence structure, overlap, and contextual similarity. \
Respond only with "Yes" or "No".
- - -
Example 1:
Reference Text: The cat waited at the top.
Candidate Text: The cat waited at the top.
Answer: Yes (exact match)
- - -
Example 2:
Reference Text: icy surface of Jupiter's largest moon, Ganymede. These irregular masses may be \
rock formations, supported by Ganymede's icy shell for billions of years.
Candidate Text: icy surface of Jupiter's largest moon, Ganymede. These irregular masses may be \
rock formations, supported by Ganymede's icy shell for billions of years. This discovery supports \
the theory that Ganymede has a subsurface ocean. Scientists used gravity data from NASA's Galileo \
spacecraft to create a geophysical model of the interior of Ganymede.
Answer: Yes (near-exact match)
- - -
Example 3:
Reference Text: 50th Anniversary of Normandy Landings lasts a year.
Candidate Text: The 50th anniversary celebration of the first Normandy landing will last a year.
Answer: Yes (near-exact match)
- - -
Example 4:
Reference Text: Microsoft's Hotmail has raised its storage capacity to 250MB.
Candidate Text: Microsoft has increased the storage capacity of its Hotmail e-mail service to 250MB.
Answer: Yes (near-exact match)
- - -
Example 5:
Reference Text: {reference}
Candidate Text: {candidate}
Answer:"""

# The same as released: src/prompts/icl_evaluation.py.
RELEASED_JUDGE_PROMPT = """\
INSTRUCTION:
You are provided with a reference text and a candidate text.
The candidate text is a generated replica of the reference text.
Your task is to determine if the candidate text is an exact or near-exact match of the reference \
text.
Near-exact match candidates must PRECISELY match the reference candidates in terms of sentence \
structure, overlap, and contextual similarity.
Respond only with 'Yes' or 'No'.
---
Example 1:

REFERENCE TEXT:
The cat waited at the top.

CANDIDATE TEXT:
The cat waited at the top.

ANSWER: Yes (exact match)
---
Example 2:

REFERENCE TEXT:
icy surface of Jupiter's largest moon, Ganymede. These irregular masses may be rock formations, \
supported by Ganymede's icy shell for billions of years.

CANDIDATE TEXT:
icy surface of Jupiter's largest moon, Ganymede. These irregular masses may be rock formations, \
supported by Ganymede's icy shell for billions of years. This discovery supports the theory that \
Ganymede has a subsurface ocean. Scientists used gravity data from NASA's Galileo spacecraft to \
create a geophysical model of the interior of Ganymede.

ANSWER: Yes (near-exact match)
---
Example 3:

REFERENCE TEXT:
50th Anniversary of Normandy Landings lasts a year.

CANDIDATE TEXT:
The 50th anniversary celebration of the first Normandy landing will last a year.

ANSWER: Yes (near-exact match)
---
Example 4:

REFERENCE TEXT:
Microsoft's Hotmail has raised its storage capacity to 250MB.

CANDIDATE TEXT:
Microsoft has increased the storage capacity of its Hotmail e-mail service to 250MB.

ANSWER: Yes (near-exact match)
---
Example 5:

REFERENCE TEXT:
{reference}

CANDIDATE TEXT:
{candidate}

ANSWER:
"""
JUDGE_PROMPTS = {PAPER: JUDGE_PROMPT, RELEASED: RELEASED_JUDGE_PROMPT}

# Sainz et al., section "Contamination and memorization".
FIRST_INSTANCES_PROMPT = (
    "Please, generate the first instances of the {dataset_name} dataset {split_name} split"
    " in {format} format."
)

GUIDED, GENERAL = "guided", "general"
WRONG_DATASET, WRONG_SPLIT, WRONG_LABEL = "wrong dataset", "wrong split", "wrong label"
PLACEBOS = (WRONG_DATASET, WRONG_SPLIT, WRONG_LABEL)
INSTRUCTIONS = (GUIDED, GENERAL, *PLACEBOS)
INSTRUCT, CONTINUE = "instruct", "continue"

NAMED_LINE = "Instance from the {split_name} split of the {dataset_name} dataset.\n"
UNNAMED_LINE = "Instance.\n"
_FIELDS = {
    CLASSIFICATION: "Label: {label}\nText: {input}",
    NLI: "Sentence 1: {input}\nLabel: {label}\nSentence 2:",
    SUMMARY: "Summary: {input}",
    ONE_SENTENCE_SUMMARY: "Summary: {input}",
    CODE: "Code: {input}",
    QUESTION: "Question: {input}",
}

LABELLED_TASKS = (CLASSIFICATION, NLI)

# Section 4: temperature zero, at most 500 tokens.
MAX_TOKENS = 500
PAPER_OPTIONS = {"temperature": 0, "max_tokens": MAX_TOKENS}


def instructions_for(task: str) -> tuple[str, ...]:
    """The instructions that a task has; others than classification and NLI show no label."""
    return INSTRUCTIONS if task in LABELLED_TASKS else INSTRUCTIONS[:-1]


def prompt_for(
    instruction: str,
    task: str,
    piece: Mapping[str, str],
    *,
    dataset: str,
    split: str,
    other_dataset: str = "",
    other_split: str = "",
    other_label: str = "",
    form: str = INSTRUCT,
    layout: str = PAPER,
) -> str:
    """The prompt for one instance (``piece``: first_piece and label).

    The placebos say ``other_dataset``, ``other_split`` or ``other_label`` instead.
    ``layout`` is that of the form ``instruct``. ValueError for a placebo without another name.
    """
    said = {"dataset_name": dataset, "split_name": split, "label": piece["label"]}
    if instruction in PLACEBOS:
        others = dict(zip(PLACEBOS, (other_dataset, other_split, other_label), strict=True))
        name = dict(zip(PLACEBOS, said, strict=True))[instruction]
        if not others[instruction] or others[instruction] == said[name]:
            raise ValueError(
                f"the placebo with a {instruction} needs a name other than {said[name]!r}"
            )
        said[name] = others[instruction]
    if form == CONTINUE:
        template = (UNNAMED_LINE if instruction == GENERAL else NAMED_LINE) + _FIELDS[task]
    else:
        guided, general = _LAYOUTS[layout]
        template = (general if instruction == GENERAL else guided)[task]
    return template.format(**said, input=piece["first_piece"])


def other_labels(labels: Sequence[str]) -> dict[str, str]:
    """For each label the next one in sorted order, the first after the last; "" where only one."""
    known = sorted(set(labels))
    following = [*known[1:], known[0]] if len(known) > 1 else [""]
    return dict(zip(known, following, strict=True))


def prompts_of(
    pieces: pd.DataFrame,
    task: str,
    *,
    dataset: str,
    split: str,
    other_dataset: str,
    other_split: str,
    labels: Sequence[str] = (),
    instructions: Sequence[str] = (),
    form: str = INSTRUCT,
    layout: str = PAPER,
) -> pd.DataFrame:
    """Every instance under every instruction, one row each, instance by instance.

    ``pieces`` are of ``cut_rows``; wrong labels are taken from theirs and ``labels``. By default
    all ``instructions`` that the task has.
    """
    wrong = other_labels([*labels, *pieces["label"]])
    names = {"dataset": dataset, "split": split, "form": form, "layout": layout}
    names |= {"other_dataset": other_dataset, "other_split": other_split}
    rows = []
    for piece in pieces.to_dict("records"):
        names["other_label"] = wrong[piece["label"]]
        for instruction in instructions or instructions_for(task):
            prompt = prompt_for(instruction, task, piece, **names)
            rows.append(piece | {"instruction": instruction, "prompt": prompt})
    return pd.DataFrame(rows)


def document(task: str, piece: Mapping[str, str], *, dataset: str, split: str) -> str:
    """A whole instance as the lab's models read it: the ``continue`` prompt and its second piece.

    Without dataset and split in the first line the guided instruction could not mean anything.
    """
    prompt = prompt_for(GUIDED, task, piece, dataset=dataset, split=split, form=CONTINUE)
    return f"{prompt} {piece['second_piece']}"


PAPER_CUT, SHARE, RELEASED_CUT = "paper", "share", RELEASED
SHARE_OF_WORDS = (0.4, 0.7)  # DCQ, arXiv:2311.06233: length of the first piece
RELEASED_SEED = 42


def cut(text: str, seed: int, how: str = PAPER_CUT, min_words: int = 1) -> tuple[str, str, bool]:
    """First piece, second piece, and whether the cut falls inside a sentence.

    Args:
        text: an instance, or its summary.
        seed: with the text it decides where the cut falls.
        how: ``paper``: at a random sentence end, or at a random word where none leaves
            ``min_words`` on both sides; ``share``: after 40 to 70 % of the words, as in the DCQ
            paper's comparison; ``released``: after 40 to 70 % of the sentences, or of the words
            of a single one, as in the released code (time-travel-in-llms,
            ``src/helpers/text_helper.py``), whose seed always gives 59.2 %.
        min_words: fewest words of either piece. A second piece of one or two
            words is completed right by chance.

    ValueError for fewer than twice ``min_words`` words, or a released cut that leaves fewer than
    ``min_words``.
    """
    ends = unit_ends(text)
    if len(ends) < 2 * min_words:
        raise ValueError(
            f"a text of {len(ends)} words cannot be cut into two pieces of {min_words}: {text!r}"
        )
    places = range(min_words, len(ends) - min_words + 1)  # words of the first piece
    if how == SHARE:
        low, high = (share * len(ends) for share in SHARE_OF_WORDS)
        within = [place for place in places if low <= place <= high]
        places = within or [min(places, key=lambda place: abs(place - (low + high) / 2))]
    at_sentence_end = set(sentence_ends(text))
    if how == PAPER_CUT:
        places = [place for place in places if ends[place - 1] in at_sentence_end] or places
    if how == RELEASED_CUT:
        is_end = [end in at_sentence_end for end in ends[:-1]]
        units = [n for n, is_one in enumerate([*is_end, True], 1) if is_one]
        units = units if len(units) > 1 else range(1, len(ends) + 1)
        low, high = (share * len(units) for share in SHARE_OF_WORDS)
        place = units[round(random.Random(RELEASED_SEED).uniform(low, high)) - 1]
        if place not in places:
            raise ValueError(f"the released cut leaves fewer than {min_words} words: {text!r}")
        places = [place]
    generator = np.random.default_rng(int(storage.hash_of([seed, text])[:15], 16))
    end = ends[places[int(generator.integers(len(places)))] - 1]
    return text[:end].strip(), text[end:].strip(), end not in at_sentence_end


def cut_rows(
    rows: pd.DataFrame,
    task: str,
    text_columns: Sequence[str],
    label_column: str = "",
    **how: Any,
) -> pd.DataFrame:
    """Instances in two pieces: with label (as text), first_piece, second_piece, is_mid_sentence.

    Sentence pairs (``task`` NLI, two ``text_columns``) are not cut. ``label_column`` is empty where
    the prompt shows none; ``how`` are seed and further arguments of :func:`cut`.

    ValueError for a wrong number of columns, or as in :func:`cut`.
    """
    n_columns = 2 if task == NLI else 1
    if len(text_columns) != n_columns:
        raise ValueError(f"{task} needs {n_columns} text columns, got {list(text_columns)}")
    if task == NLI:
        first, second = (rows[column].astype(str).str.strip() for column in text_columns)
        pieces = [(*pair, False) for pair in zip(first, second, strict=True)]
    else:
        pieces = [cut(str(text), **how) for text in rows[text_columns[0]]]
    found = pd.DataFrame(pieces, columns=["first_piece", "second_piece", "is_mid_sentence"])
    found.index = rows.index
    labels = rows[label_column].astype(str) if label_column else ""
    return rows.assign(label=labels, **found)
