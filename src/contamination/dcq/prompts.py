"""The two prompts of DCQ, quoted from the paper (arXiv:2311.06233v5, Figures 1 and 3).

They are experimental conditions, so the words are the paper's; where their
lines end is our reading.
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
) -> str:
    """The question of one quiz (Figure 1), which ends where the letter is due.

    Another ``instruction`` (with ``{dataset}`` and ``{split}``) or ``hint`` is a departure.
    ValueError if there are not four texts.
    """
    if len(options) != len(LETTERS):
        raise ValueError(f"a quiz has four texts, got {len(options)}")
    texts = [f"{letter}) {text}" for letter, text in zip(LETTERS, options, strict=True)]
    asked = instruction.format(dataset=dataset, split=split)
    return "\n".join([asked, hint, SEPARATOR, *texts, NONE_OPTION, SEPARATOR, "Answer:"])


def perturbation_prompt(
    row: Mapping[str, str],
    columns: Sequence[str],
    *,
    instruction: str = PERTURBATION_INSTRUCTION,
) -> str:
    """What asks for four perturbations of one instance (Figure 3); other words are a departure."""
    form = [f"{letter}) " + "\n".join(f"{column}:" for column in columns) for letter in LETTERS]
    text = f"Input Text:\n{format_instance(row, columns)}"
    return "\n".join([instruction, SEPARATOR, text, SEPARATOR, "Format:", *form, SEPARATOR])


def perturbation_request(
    row: Mapping[str, str],
    columns: Sequence[str],
    replicate: int = 0,
    instruction: str = PERTURBATION_INSTRUCTION,
) -> Request:
    """What is asked for one instance; sampling options are the endpoint's."""
    prompt = perturbation_prompt(row, columns, instruction=instruction)
    return Request(messages=[{"role": "user", "content": prompt}], replicate=replicate)
