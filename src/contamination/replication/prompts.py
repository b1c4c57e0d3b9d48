"""The prompts of the method, quoted: what was asked is part of the experiment.

Table 3 and Figure 2 of Golchin & Surdeanu, arXiv:2308.08493, and the prompt of
Sainz et al., "Did ChatGPT cheat on your test?"
(https://hitz-zentroa.github.io/lm-contamination/blog). Bold type is left out;
what stands in braces is filled in.
"""

from __future__ import annotations

CLASSIFICATION, NLI = "classification", "NLI"
SUMMARY, ONE_SENTENCE_SUMMARY = "summary", "one-sentence summary"
# Of the judge, Figure 2.
JUDGE_OPTIONS = {"temperature": 0, "max_tokens": 10}
TASKS = (CLASSIFICATION, NLI, SUMMARY, ONE_SENTENCE_SUMMARY)

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
    ONE_SENTENCE_SUMMARY: "Instruction: You are provided with the first piece of a one-sentence"
    " summary from the {split_name} split of the {dataset_name} dataset. Finish the second piece"
    " of the summary as exactly appeared in the dataset. Only rely on the original form of the"
    " summary in the dataset to finish the second piece." + _PLAIN,
}

# Table 3, right column.
GENERAL_INSTRUCTION = {
    CLASSIFICATION: "Instruction: Finish the second piece based on the first piece, such that"
    " these two pieces become a single instance with the following label." + _LABELLED,
    NLI: "Instruction: Finish Sentence 2 based on Sentence 1, such that the following label shows"
    " the logical relationship between Sentence 1 and Sentence 2." + _PAIRED,
    SUMMARY: "Instruction: Finish the second piece based on the first piece, such that these two"
    " pieces become a single summary." + _PLAIN,
    ONE_SENTENCE_SUMMARY: "Instruction: Finish the second piece based on the first piece, such"
    " that these two pieces become a single one-sentence summary." + _PLAIN,
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

# Sainz et al., section "Contamination and memorization".
FIRST_INSTANCES_PROMPT = (
    "Please, generate the first instances of the {dataset_name} dataset {split_name} split"
    " in {format} format."
)
