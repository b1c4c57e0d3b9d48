"""Benchmark examples to insert into a training corpus: the lab's, the paper's and one's own.

Shi et al., arXiv:2310.16789, section 6. Chance alone decides which examples
are inserted and which are held out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from contamination import partitions
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_instances
from contamination.own.scoring import own_passages
from contamination.own.settings import OwnPassages, OwnTarget
from contamination.parameters import setting
from contamination.sources import source_file

# One of each kind of task whose answer is a label that the text decides.
LAB_DATASETS = ("topics", "reviews", "pronouns", "entailment")
EXAMPLE_COLUMNS = ["dataset", "text", "prompt", "options", "answer"]


def lab_examples(n: int, seed: int, datasets: Sequence[str] = LAB_DATASETS) -> pd.DataFrame:
    """Instances of mini-benchmarks with what a model is asked to answer them.

    Args:
        n: instances of each dataset.
        seed: seed of the draw.
        datasets: names of mini-benchmarks whose last column is a label.

    Returns:
        Columns ``EXAMPLE_COLUMNS``: text is what is inserted and scored, prompt
        the text up to the answer, options the beginnings of all answers (the
        label's number), answer the place of the right one.
    """
    frames = []
    for name in datasets:
        benchmark = BENCHMARKS[name]
        rows = draw_instances(benchmark, n, seed, "test")
        labels = sorted({label for kind in benchmark.templates for label in kind.facts["label"]})
        texts = partitions.format_instances(rows, benchmark.columns)
        frames.append(
            pd.DataFrame(
                {
                    "dataset": name,
                    "text": texts,
                    "prompt": [text[: text.rindex("label:") + 6] for text in texts],
                    "options": [[f" {label.split()[0]}" for label in labels]] * n,
                    "answer": [labels.index(label) for label in rows["label"]],
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def released_examples() -> pd.DataFrame:
    """Rows of the paper's own datasets, formatted alike; what was released of each.

    BoolQ comes without its passages, IMDB with 100 reviews of the test part,
    LSAT QA as the questions of its logical reasoning and logic games, one for
    each passage, since a passage on both sides would give its question away.

    Returns:
        Columns ``EXAMPLE_COLUMNS``.

    Raises:
        FileNotFoundError: if the files are not at hand.
    """
    readers = (_boolq, _commonsense_qa, _imdb, _lsat, _truthful_qa)
    rows = [row for reader in readers for row in reader()]
    return pd.DataFrame(rows, columns=EXAMPLE_COLUMNS)


def _rows(owner_repo: str, path: str) -> list[dict[str, Any]]:
    return partitions.load_rows(str(source_file(owner_repo, path))).to_dict("records")


def _example(dataset: str, fields: dict[str, str], options: Sequence[str], answer: int) -> tuple:
    asked = partitions.format_instance(fields, list(fields))
    prompt, options = f"{asked}\nanswer:", [f" {option}" for option in options]
    return dataset, prompt + options[answer], prompt, options, answer


def _boolq() -> list[tuple]:
    found = []
    for row in _rows("AGI-Edgerunners/LLM-Adapters", "dataset/boolq/test.json"):
        question = row["instruction"].split("question: ", 1)[1].split("\n")[0].strip()
        options = ["true", "false"]
        answer = options.index(row["answer"])
        found.append(_example("BoolQ", {"question": question}, options, answer))
    return found


def _commonsense_qa() -> list[tuple]:
    found = []
    path = "dataset/CommonsenseQA/dev_rand_split.jsonl"
    for row in _rows("kojima-takeshi188/zero_shot_cot", path):
        choices = {choice["label"]: choice["text"] for choice in row["question"]["choices"]}
        listed = " ".join(f"({label}) {text}" for label, text in choices.items())
        fields = {"question": row["question"]["stem"], "choices": listed}
        answer = list(choices).index(row["answerKey"])
        found.append(_example("CommonsenseQA", fields, list(choices), answer))
    return found


def _imdb() -> list[tuple]:
    found = []
    path = "data/our_dcq/raw/wild_evaluation/imdb_test.csv"
    for row in _rows("shahriargolchin/DCQ", path):
        options = ["negative", "positive"]
        answer = int(row["label"].startswith("1"))
        found.append(_example("IMDB", {"review": row["text"]}, options, answer))
    return found


def _lsat() -> list[tuple]:
    found, passages = [], set()
    for part in ("lr", "ar"):
        for row in _rows("ruixiangcui/AGIEval", f"data/v1/lsat-{part}.jsonl"):
            if row["passage"] in passages:
                continue
            passages.add(row["passage"])
            letters = [option[1] for option in row["options"]]
            fields = {"passage": row["passage"], "question": row["question"]}
            fields["choices"] = " ".join(row["options"])
            found.append(_example("LSAT QA", fields, letters, letters.index(row["label"])))
    return found


def _truthful_qa() -> list[tuple]:
    found = []
    for row in _rows("frankxwang/probing-experiments", "TruthfulQA.csv"):
        wrong = [text.strip() for text in row["Incorrect Answers"].split(";") if text.strip()]
        options = [row["Best Answer"].strip(), *wrong]
        found.append(_example("TruthfulQA", {"question": row["Question"]}, options, 0))
    return found


def deal(
    examples: pd.DataFrame, n: int, seed: int, *, n_tokens: Sequence[int], max_tokens: int
) -> pd.DataFrame:
    """Of each dataset n examples to insert and n to hold out, at random.

    Args:
        examples: columns ``EXAMPLE_COLUMNS``; equal texts count once.
        n: examples of each kind and dataset; half of a dataset where it has fewer
            than 2 n.
        seed: seed of the deal.
        n_tokens: length of each example.
        max_tokens: longer examples are left out of both kinds.

    Returns:
        The columns of ``examples`` and is_member, by dataset.

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


def poisson_occurrences(is_member: Sequence[bool], mean: float, seed: int) -> np.ndarray:
    """How often each example is inserted: Poisson distributed for members, never for others.

    Returns:
        Counts, shape (n_examples,); a member may be inserted 0 times too.
    """
    is_member = np.asarray(is_member, dtype=bool)
    return np.random.default_rng([seed, 9]).poisson(mean, is_member.size) * is_member


# One's own


@dataclass(frozen=True)
class OwnExamples(OwnTarget):
    """Part C of notebook 07: one's own model and data."""

    datasets: list[str] = setting([], "labelled files (JSONL, CSV, Parquet), one for each dataset")
    text_column: str = setting("text", "column with the examples as they were inserted")
    label_column: str = setting("label", "column with 1 for inserted, 0 for held-out examples")


def own_examples(mine: OwnExamples, k_percent: float) -> pd.DataFrame | None:
    """One's own examples, checked before they cost anything; None without a model.

    Args:
        mine: model and labelled files.
        k_percent: share of tokens that will be asked for.

    Returns:
        dataset (the file's name), text, is_member.

    Raises:
        FileNotFoundError, ValueError: as ``own.own_passages``; also if two files
            have the same name.
    """
    parts = []
    names = (each.name for each in dataclasses.fields(OwnExamples) if each.name != "datasets")
    same = mine.only(*names)
    for dataset in mine.datasets or [""]:
        found = own_passages(OwnPassages(**same, dataset=dataset), [k_percent])
        parts += [
            pd.DataFrame({"dataset": name, "text": texts, "is_member": is_member})
            for name, (texts, is_member) in found.items()
        ]
    if not parts:
        return None
    names = [part["dataset"].iloc[0] for part in parts]
    if len(set(names)) < len(names):
        raise ValueError(f"two datasets have the same name ({', '.join(names)}): rename one file")
    return pd.concat(parts, ignore_index=True)
