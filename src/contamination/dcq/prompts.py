"""The two prompts of DCQ, as the paper prints them and as its released code sends them.

They are experimental conditions and quoted: layout "paper" from arXiv:2311.06233v5, Figures 1 and
3, where the lines' ends are our reading; layout "released" from shahriargolchin/DCQ at 04bd66bb
(src/prompts/quiz_question.py and option_generation.py), which has the same words with capitals,
without "Instruction:", and each option below its letter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contamination.data.partitions import format_instance
from contamination.models.exchange import Request

LETTERS = "ABCD"
# Section 4: of a quiz temperature zero and one token, of a perturbation 1.00 and at most 4,000.
QUIZ_OPTIONS = {"temperature": 0.0, "max_tokens": 1}
PERTURBER_OPTIONS = {"temperature": 1.0, "max_tokens": 4000}
NONE_OPTION = "E) None of the provided options."

# Figure 1, and Table 5 of appendix A, which differs in dataset and split alone.
QUIZ_INSTRUCTION = (
    "Instruction: You are provided with a five-choice quiz. Your task is to correctly select the "
    "option that exactly corresponds to an instance from the {split} split of the {dataset} "
    "dataset. When selecting the option, you must ensure that you follow the following rules:\n"
    "(1) You must ensure that you only generate a single option letter as your answer.\n"
    "(2) If you do not know the dataset or the correct answer, you must select option "
    '"E) None of the provided options."'
)
QUIZ_HINT = (
    "Hint: While all the following options seem similar in terms of meaning, there is only one "
    "option that reflects the exact wording with respect to the original instance."
)

# Figure 3.
PERTURBATION_INSTRUCTION = (
    "Instruction: Your task is to create a four-choice quiz by replacing the words in the provided "
    '"Input Text" with their contextually relevant synonyms. The meaning and sentence structure of '
    "the four options must exactly match every detail in the Input Text. You must not include the "
    "provided Input Text as an option.\n"
    "You must make sure that:\n"
    "(1) You generate distinct options based on the provided Input Text;\n"
    "(2) The only difference between options is word-level perturbations.\n"
    "(3) Options are ordered;\n"
    "(4) There is not any extra explanation;\n"
    '(5) You follow the following "Format" to generate options;\n'
    "(6) You comply with every specific symbol and letter detail in the given Input Text; and\n"
    "(7) All options retain the exact label from the Input Text, if there is one."
)
SEPARATOR = "- - -"

PAPER, RELEASED = "paper", "released"  # layouts
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


def header(dataset: str, split: str) -> str:
    """What stands above every instance; nothing where no dataset is named."""
    return f"Dataset: {dataset}\nSplit: {split}\n" if dataset else ""


def quiz_prompt(
    options: Sequence[str],
    dataset: str,
    split: str,
    *,
    instruction: str = QUIZ_INSTRUCTION,
    hint: str = QUIZ_HINT,
    layout: str = PAPER,
) -> str:
    """The question of one quiz (Figure 1), which ends where the letter is due.

    Another ``instruction`` (with ``{dataset}`` and ``{split}``) or ``hint`` is a departure, and
    for ``layout`` "paper" only. ValueError if there are not four texts.
    """
    if len(options) != len(LETTERS):
        raise ValueError(f"a quiz has four texts, got {len(options)}")
    if layout == RELEASED:
        texts_of = dict(zip(LETTERS.lower(), options, strict=True))
        return RELEASED_QUIZ.format(dataset=dataset, split=split, **texts_of)
    texts = [f"{letter}) {text}" for letter, text in zip(LETTERS, options, strict=True)]
    asked = instruction.format(dataset=dataset, split=split)
    return "\n".join([asked, hint, SEPARATOR, *texts, NONE_OPTION, SEPARATOR, "Answer:"])


def perturbation_prompt(
    row: Mapping[str, str],
    columns: Sequence[str],
    *,
    instruction: str = PERTURBATION_INSTRUCTION,
    layout: str = PAPER,
) -> str:
    """What asks for four perturbations of one instance (Figure 3); other words are a departure."""
    if layout == RELEASED:
        return RELEASED_PERTURBATION.format(instance=format_instance(row, columns))
    form = [f"{letter}) " + "\n".join(f"{column}:" for column in columns) for letter in LETTERS]
    text = f"Input Text:\n{format_instance(row, columns)}"
    return "\n".join([instruction, SEPARATOR, text, SEPARATOR, "Format:", *form, SEPARATOR])


def perturbation_request(
    row: Mapping[str, str],
    columns: Sequence[str],
    replicate: int = 0,
    instruction: str = PERTURBATION_INSTRUCTION,
    layout: str = PAPER,
) -> Request:
    """What is asked for one instance; sampling options are the endpoint's."""
    prompt = perturbation_prompt(row, columns, instruction=instruction, layout=layout)
    return Request(messages=[{"role": "user", "content": prompt}], replicate=replicate)
