"""Benchmark examples to insert into a training corpus: the lab's and the paper's.

Shi et al., arXiv:2310.16789, section 6. Chance alone decides which examples
are inserted and which are held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from contamination.data import partitions
from contamination.data.sources import source_file
from contamination.lab.grammar import BENCHMARKS, draw_instances

# One of each kind of task whose answer is a label that the text decides.
LAB_DATASETS = ("topics", "reviews", "pronouns", "entailment")
EXAMPLE_COLUMNS = ["dataset", "text", "prompt", "options", "answer"]


def lab_examples(n: int, seed: int) -> pd.DataFrame:
    """``n`` instances of each mini-benchmark, with what a model is asked to answer them.

    ``EXAMPLE_COLUMNS``: text is what is inserted and scored, prompt the text up to the answer,
    options the beginnings of all answers (the label's number), answer the place of the right one.
    """
    frames = []
    for name in LAB_DATASETS:
        benchmark = BENCHMARKS[name]
        rows = draw_instances(benchmark, n, seed, "test")
        labels = sorted({label for kind in benchmark.templates for label in kind.facts["label"]})
        texts = partitions.format_instances(rows, benchmark.columns)
        prompts = [text[: text.rindex("label:") + 6] for text in texts]
        options = [[f" {label.split()[0]}" for label in labels]] * n
        answers = [labels.index(label) for label in rows["label"]]
        columns = [name] * n, texts, prompts, options, answers
        frames.append(pd.DataFrame(dict(zip(EXAMPLE_COLUMNS, columns, strict=True))))
    return pd.concat(frames, ignore_index=True)


def released_examples() -> pd.DataFrame:
    """Rows of the paper's own datasets, formatted alike; what was released of each.

    BoolQ comes without its passages, IMDB as 2,195 of its reviews (those that have a
    counterfactual), LSAT QA as the questions of its logical reasoning and logic games, one for
    each passage, since a passage on both sides would give its question away.

    Raises:
        FileNotFoundError: if the files are not at hand.
    """
    readers = {"BoolQ": _boolq, "CommonsenseQA": _commonsense_qa, "IMDB": _imdb}
    readers |= {"LSAT QA": _lsat, "TruthfulQA": _truthful_qa}
    examples = []
    for dataset, reader in readers.items():
        for fields, answers, answer in reader():
            prompt = f"{partitions.format_instance(fields, list(fields))}\nanswer:"
            options = [f" {option}" for option in answers]
            examples.append((dataset, prompt + options[answer], prompt, options, answer))
    return pd.DataFrame(examples, columns=EXAMPLE_COLUMNS)


# What a reader yields: the fields shown, the answers offered, and the place of the right one.
_Asked = Iterator[tuple[dict[str, str], Sequence[str], int]]


def _rows(owner_repo: str, path: str) -> list[dict[str, Any]]:
    return partitions.load_rows(str(source_file(owner_repo, path))).to_dict("records")


def _boolq() -> _Asked:
    for row in _rows("AGI-Edgerunners/LLM-Adapters", "dataset/boolq/test.json"):
        question = row["instruction"].split("question: ", 1)[1].split("\n")[0].strip()
        yield {"question": question}, ["true", "false"], ["true", "false"].index(row["answer"])


def _commonsense_qa() -> _Asked:
    path = "dataset/CommonsenseQA/dev_rand_split.jsonl"
    for row in _rows("kojima-takeshi188/zero_shot_cot", path):
        choices = {choice["label"]: choice["text"] for choice in row["question"]["choices"]}
        listed = " ".join(f"({label}) {text}" for label, text in choices.items())
        fields = {"question": row["question"]["stem"], "choices": listed}
        yield fields, list(choices), list(choices).index(row["answerKey"])


def _imdb() -> _Asked:
    for part in ("train", "test"):
        path = f"sentiment/orig/{part}.tsv"
        for row in _rows("acmi-lab/counterfactually-augmented-data", path):
            answer = int(row["Sentiment"] == "Positive")
            yield {"review": row["Text"]}, ["negative", "positive"], answer


def _lsat() -> _Asked:
    passages = set()
    for part in ("lr", "ar"):
        for row in _rows("ruixiangcui/AGIEval", f"data/v1/lsat-{part}.jsonl"):
            if row["passage"] in passages:
                continue
            passages.add(row["passage"])
            letters = [option[1] for option in row["options"]]
            fields = {"passage": row["passage"], "question": row["question"]}
            fields["choices"] = " ".join(row["options"])
            yield fields, letters, letters.index(row["label"])


def _truthful_qa() -> _Asked:
    for row in _rows("frankxwang/probing-experiments", "TruthfulQA.csv"):
        wrong = [text.strip() for text in row["Incorrect Answers"].split(";") if text.strip()]
        yield {"question": row["Question"]}, [row["Best Answer"].strip(), *wrong], 0


def deal(
    examples: pd.DataFrame,
    n: int,
    seed: int,
    *,
    n_tokens: Sequence[int] | np.ndarray,
    max_tokens: int,
) -> pd.DataFrame:
    """Of each dataset n examples to insert and n to hold out (is_member), at random.

    Half of a dataset of each where it has fewer than 2 n. Equal texts count once, and examples of
    more than ``max_tokens`` are left out of both kinds (``n_tokens`` are their lengths).

    Raises:
        ValueError: if a dataset has fewer than four examples short enough.
    """
    short = examples[np.asarray(n_tokens) <= max_tokens].drop_duplicates(["dataset", "text"])
    parts = []
    for dataset in examples["dataset"].unique():
        rows = short[short["dataset"] == dataset]
        n_each = min(n, len(rows) // 2)
        if n_each < 2:
            raise ValueError(
                f'dataset "{dataset}" has {len(rows)} examples of at most {max_tokens} tokens, '
                "4 are needed"
            )
        order = np.random.default_rng([seed, 8, *dataset.encode()]).permutation(len(rows))
        dealt = rows.iloc[order[: 2 * n_each]]
        parts.append(dealt.assign(is_member=np.arange(2 * n_each) < n_each))
    return pd.concat(parts, ignore_index=True)
