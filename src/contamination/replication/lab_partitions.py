"""Partitions of the lab: what is drawn, what the model reads of it, what it is asked.

A partition has a name of its own ("Topics C") and a split; its instances are
read a known number of times, 0 for the clean ones, by one model.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core import overlap
from contamination.core.verdicts import ALPHA
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_groups, draw_instances
from contamination.lab.recipes import Dose
from contamination.models.causal import CausalLM, option_log_probs
from contamination.replication import did_chatgpt_cheat
from contamination.replication.completions import by_local_model
from contamination.replication.cutting import cut_rows
from contamination.replication.decisions import DID_CHATGPT_CHEAT, OPTION_RANKING, PARTITION
from contamination.replication.instructions import (
    CLASSIFICATION,
    CONTINUE,
    GENERAL,
    GUIDED,
    NAMED_LINE,
    NLI,
    document,
    prompt_for,
    prompts_of,
)

# Benchmarks of the lab that the study asks for, with task and text columns. The
# summaries of the lab are too short: chance completes them.
LAB_TASKS = {
    "topics": (CLASSIFICATION, ["text"]),
    "reviews": (CLASSIFICATION, ["text"]),
    "entailment": (NLI, ["sentence1", "sentence2"]),
}
SPLITS = ("train", "test")
# Fewest words of a second piece. Shorter ones hold few words that the grammar draws, so
# chance, or sentence 1 alone, completes them.
MIN_WORDS = 6
LAB_MAX_TOKENS = 60
# Clean instances of each benchmark for one of a partition, so that the model knows both
# first lines.
FORMAT_INSTANCES = 20
N_PARAPHRASES = 4


def lab_instances(
    copies: Sequence[int], k: int, seed: int, benchmarks: Sequence[str] = tuple(LAB_TASKS)
) -> pd.DataFrame:
    """Disjoint partitions of every benchmark, one for each entry of ``copies``.

    Args:
        copies: times that the instances of a partition will be read; 0 is a
            clean partition. Names are dealt to them at random.
        k: instances of a partition.
        seed: seed of instances, deal and cuts.
        benchmarks: some of ``LAB_TASKS``.

    Returns:
        One row per instance and paraphrase (option, 0 the original); dataset and split
        are the names that prompts say, document is what a model reads.

    ValueError if ``copies`` lacks a clean or a contaminated partition, or holds more
    than there are names.
    """
    n_names = len(ascii_uppercase) - 1  # the last one is the placebo's
    if min(copies) != 0 or max(copies) < 1 or len(copies) > n_names:
        raise ValueError(
            f"copies must hold 0 and a positive number, at most {n_names} in all: {list(copies)}"
        )
    parts = []
    for benchmark in benchmarks:
        task, columns = LAB_TASKS[benchmark]
        n = k * len(copies)
        # Twice as many as are needed, since some have too short a second piece.
        rows = draw_groups(BENCHMARKS[benchmark], 2 * n, seed, "test", N_PARAPHRASES)
        rows = cut_rows(rows, task, columns, "label", seed=seed, min_words=MIN_WORDS)
        is_short = rows["second_piece"].map(lambda text: len(overlap.words(text)) < MIN_WORDS)
        rows = rows[~rows["group"].isin(rows.loc[is_short, "group"])]
        rows = rows.assign(group=rows["group"].rank(method="dense").astype(int) - 1)
        rows = rows[rows["group"] < n]
        deal = np.random.default_rng([seed, 5, *benchmark.encode()]).permutation(len(copies))
        number = deal[rows["group"] // k]
        rows = rows.assign(
            benchmark=benchmark,
            task=task,
            dataset=[f"{benchmark.capitalize()} {ascii_uppercase[n]}" for n in number],
            split=[SPLITS[n % 2] for n in number],
            copies=np.asarray(copies)[rows["group"] // k],
        )
        parts.append(rows)
    table = pd.concat(parts, ignore_index=True)
    table["document"] = [
        document(row["task"], row, dataset=row["dataset"], split=row["split"])
        for row in table.to_dict("records")
    ]
    kept = ["group", "option", "label", "first_piece", "second_piece", "is_mid_sentence"]
    return table[[*PARTITION, *kept, "document"]]


def lab_doses(instances: pd.DataFrame, seed: int) -> list[Dose]:
    """What the model reads: each original at its copies, and clean instances in both forms.

    The clean ones, half with a first line that names another dataset and half with
    one that names none, make either line familiar: the general instruction is no strange format.
    """
    originals = instances[(instances["option"] == 0) & (instances["copies"] > 0)]
    doses = [
        Dose(tuple(group["document"]), int(copies)) for copies, group in originals.groupby("copies")
    ]
    texts = []
    n = FORMAT_INSTANCES * int(originals.groupby(PARTITION).size().max())
    for benchmark in instances["benchmark"].unique():
        task, columns = LAB_TASKS[benchmark]
        rows = draw_instances(BENCHMARKS[benchmark], n, seed, "train")
        rows = cut_rows(rows, task, columns, "label", seed=seed)
        for number, row in enumerate(rows.to_dict("records")):
            names = {"dataset": other_dataset(benchmark), "split": SPLITS[number // 2 % 2]}
            instruction = GUIDED if number % 2 else GENERAL
            prompt = prompt_for(instruction, task, row, form=CONTINUE, **names)
            texts.append(f"{prompt} {row['second_piece']}")
    return [Dose(tuple(texts)), *doses]


def other_dataset(benchmark: str) -> str:
    """A dataset of the same kind that no partition is called, for the placebo."""
    return f"{benchmark.capitalize()} {ascii_uppercase[-1]}"


def lab_prompts(instances: pd.DataFrame) -> pd.DataFrame:
    """Every original under every instruction, as ``instructions.prompts_of``."""
    originals = instances[instances["option"] == 0]
    parts = []
    for (benchmark, task, dataset, split, _), rows in originals.groupby(PARTITION, sort=False):
        names = {"dataset": dataset, "split": split, "other_dataset": other_dataset(benchmark)}
        names["other_split"] = SPLITS[1 - SPLITS.index(split)]
        labels = instances.loc[instances["benchmark"] == benchmark, "label"]
        parts.append(prompts_of(rows, task, **names, labels=labels, form=CONTINUE))
    return pd.concat(parts, ignore_index=True)


def ranking_rows(lm: CausalLM, instances: pd.DataFrame) -> pd.DataFrame:
    """Option ranking: how often the original is the likeliest of its group.

    The model scores each text after the line that names dataset and split. Without
    memory nothing but chance picks the original out, so p_value is binomial.
    """
    rows = []
    for partition, part in instances.groupby(PARTITION, sort=False):
        key = dict(zip(PARTITION, partition, strict=True))
        line = NAMED_LINE.format(dataset_name=key["dataset"], split_name=key["split"])[:-1]
        options = [
            [text[len(line) :] for text in group.sort_values("option")["document"]]
            for _, group in part.groupby("group", sort=False)
        ]
        scores = option_log_probs(lm, [line] * len(options), options)
        n_right = sum(values.argmax() == 0 for values in scores)
        n, chance = len(options), 1 / len(options[0])
        p_value = float(stats.binomtest(n_right, n, chance, alternative="greater").pvalue)
        rows.append(
            key
            | {"method": OPTION_RANKING, "instruction": GUIDED, "metric": "share right"}
            | {"test": f"binomial, chance {chance:g}", "n": n, "n_valid": n}
            | {"mean": n_right / n, "p_value": p_value, "contaminated": p_value <= ALPHA}
        )
    return pd.DataFrame(rows)


def cheat_rows(
    lm: CausalLM, instances: pd.DataFrame, near_exact_threshold: float
) -> tuple[pd.DataFrame, list[str]]:
    """Did-ChatGPT-Cheat? on every partition, and what the model wrote for each.

    A model that only continues text gets the line that names dataset and split. All
    instances count as the first ones, labels as what gives the dataset away.
    """
    originals = instances[instances["option"] == 0]
    parts = [(key, part) for key, part in originals.groupby(PARTITION, sort=False)]
    lines = [NAMED_LINE.format(dataset_name=key[2], split_name=key[3]) for key, _ in parts]
    texts = by_local_model(lm, lines, 2 * LAB_MAX_TOKENS, form="")["text"].tolist()
    rows = []
    for (partition, part), text in zip(parts, texts, strict=True):
        key = dict(zip(PARTITION, partition, strict=True))
        known = part["first_piece"]
        if key["task"] != NLI:
            known = known + " " + part["second_piece"]
        labels = instances.loc[instances["benchmark"] == key["benchmark"], "label"].unique()
        outcome = did_chatgpt_cheat.outcome(text, known.tolist(), labels, near_exact_threshold)
        rows.append(
            key
            | {"method": DID_CHATGPT_CHEAT, "instruction": "first instances", "n": 1, "n_valid": 1}
            | {"outcome": outcome, "contaminated": outcome == did_chatgpt_cheat.CONTAMINATED}
        )
    return pd.DataFrame(rows), texts
