"""Completions that the authors released, with their scores and labels.

Time Travel: 280 pairs of guided and general completions. DCQ: 1,706 guided
completions, taken for its comparison with replication.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from contamination.core.overlap import JOINED_AS_PAPER, rouge_l
from contamination.core.words import sentence_ends
from contamination.data.published import DCQ_DATASETS, MODELS, WILD_DATASETS
from contamination.data.sources import source_file
from contamination.models.judging import parse_label
from contamination.models.loading import LanguageModel
from contamination.replication.agreement import agreement_row, corrected
from contamination.replication.algorithm1 import PARTITION
from contamination.replication.decisions import bleurt_scores
from contamination.replication.instructions import (
    CLASSIFICATION,
    NLI,
    ONE_SENTENCE_SUMMARY,
    SUMMARY,
    prompts_of,
)

TIME_TRAVEL = "shahriargolchin/time-travel-in-llms"
DCQ = "shahriargolchin/DCQ"
_MODEL_FOLDERS = {"GPT-4": "gpt4", "GPT-3.5": "gpt3.5"}
_SPLIT_FILES = {"train": "train", "test": "test", "validation": "valid"}
_DCQ_SPLITS = dict.fromkeys(DCQ_DATASETS, "test") | {"GSM8k": "train"}
_DCQ_SPLITS |= dict.fromkeys(("DROP", "RTE", "WNLI"), "validation")
_TASKS = {"RTE": NLI, "WNLI": NLI, "SAMSum": SUMMARY, "XSum": ONE_SENTENCE_SUMMARY}
_PIECES = ["first_piece", "second_piece", "is_pair", "is_mid_sentence"]


def _slug(dataset: str) -> str:
    return dataset.lower().replace(" ", "_")


def _read(repository: str, path: str) -> pd.DataFrame:
    rows = pd.read_csv(source_file(repository, path), dtype=str, keep_default_na=False)
    # Sentence pairs have no cut: sentence 2 is what had to be completed.
    pair = {"sentence1": "first_piece", "sentence2": "second_piece"}
    is_pair = "sentence2" in rows
    rows = rows.rename(columns=pair if is_pair else {})
    first = rows["first_piece"]
    is_mid_sentence = [not (is_pair or len(t) in sentence_ends(f"{t} x")) for t in first]
    return rows.assign(index=range(len(rows)), is_pair=is_pair, is_mid_sentence=is_mid_sentence)


def _splits(dataset: str) -> tuple[str, str]:
    return "train", _DCQ_SPLITS[dataset]


def _time_travel(model: str, dataset: str, split: str) -> pd.DataFrame:
    name, part = _slug(dataset), _SPLIT_FILES[split]
    folder = f"results/{_MODEL_FOLDERS[model]}/{name}/{part}"
    return _read(TIME_TRAVEL, f"{folder}/{name}_{part}.csv")


def instruction_prompts(n_rows: int = 0) -> pd.DataFrame:
    """Time Travel's 140 instances under every instruction, for ``completions.with_completions``.

    The placebos name another dataset of the seven, the other split, or another label. The paper
    gave both models the same instances. ``n_rows`` of each of the 14 partitions, 0 for all 10.
    """
    parts = []
    for place, dataset in enumerate(WILD_DATASETS):
        rows = {split: _time_travel("GPT-4", dataset, split) for split in _splits(dataset)}
        labels = pd.concat(rows.values()).get("label", pd.Series(dtype=str)).unique()
        for split, other in (_splits(dataset), _splits(dataset)[::-1]):
            pieces = rows[split].reindex(columns=["index", "label", *_PIECES[:2]], fill_value="")
            names = {"dataset": dataset, "split": split, "other_split": other}
            names["other_dataset"] = WILD_DATASETS[place - 1]
            task = _TASKS.get(dataset, CLASSIFICATION)
            found = prompts_of(pieces.head(n_rows or None), task, labels=labels, **names)
            about = {"benchmark": dataset, "task": task, "dataset": dataset, "split": split}
            parts.append(found.assign(**about, copies=None, group=found["index"]))
    return pd.concat(parts, ignore_index=True)


def time_travel_completions() -> pd.DataFrame:
    """Time Travel's 560 released completions, one row per instruction (guided or general).

    second_piece is the reference; released_rouge and released_bleurt are 0 to 1, two decimals.
    """
    parts = []
    for model in MODELS:
        for dataset in WILD_DATASETS:
            for split in _splits(dataset):
                rows = _time_travel(model, dataset, split)
                key = {"model": model, "dataset": dataset, "split": split}
                parts += [
                    rows[["index", *_PIECES]].assign(
                        **key,
                        instruction=instruction,
                        completion=rows[f"generated_{instruction}_completion"],
                        released_rouge=rows[f"rouge_score_for_{instruction}_completion"],
                        released_bleurt=rows[f"bleurt_score_for_{instruction}_completion"],
                    )
                    for instruction in ("guided", "general")
                ]
    scores = ["released_rouge", "released_bleurt"]
    table = pd.concat(parts, ignore_index=True).astype(dict.fromkeys(scores, float))
    return table[[*PARTITION, "index", "instruction", *_PIECES, "completion", *scores]]


def dcq_completions() -> pd.DataFrame:
    """The DCQ repository's 1,706 guided completions with GPT-4's labels (judge)."""
    parts = []
    for model in MODELS:
        for dataset in DCQ_DATASETS if model == "GPT-4" else WILD_DATASETS:
            split, name = _DCQ_SPLITS[dataset], _slug(dataset)
            group = f"wild_evaluation/{_MODEL_FOLDERS[model]}"
            if dataset not in WILD_DATASETS:
                group = "reported_contamination"
            path = f"results/comparative_framework/{group}/{name}/{name}_{_SPLIT_FILES[split]}.csv"
            rows = _read(DCQ, path)
            parts.append(
                rows[["index", "second_piece"]].assign(
                    model=model,
                    dataset=dataset,
                    split=split,
                    completion=rows["generated_guided_completion"],
                    judge=[parse_label(text)[0] for text in rows["gpt4_icl_evaluation"]],
                )
            )
    table = pd.concat(parts, ignore_index=True)
    return table[[*PARTITION, "index", "second_piece", "completion", "judge"]]


def rescored(
    completions: pd.DataFrame, scorer: LanguageModel | None = None, joining: str = JOINED_AS_PAPER
) -> pd.DataFrame:
    """ROUGE-L and BLEURT recomputed from the texts of ``time_travel_completions``.

    The released BLEURT values are BLEURT-20's (section 4; the default of the
    authors' code too), so another checkpoint gives others. differs and bleurt_differs:
    the value does not round to the released two decimals; empty without a scorer.
    """
    pairs = zip(completions["second_piece"], completions["completion"], strict=True)
    rouge = np.array([rouge_l(*pair) for pair in pairs])
    bleurt = bleurt_scores(completions, scorer, joining)
    released_bleurt = completions["released_bleurt"]
    return completions.assign(
        rouge=rouge,
        differs=_differs(rouge, completions["released_rouge"]),
        bleurt=bleurt,
        bleurt_by="" if scorer is None else scorer.identity["bleurt_by"],
        bleurt_differs=None if scorer is None else _differs(bleurt, released_bleurt),
    )


def _differs(scores: np.ndarray, released: pd.Series) -> pd.Series:
    return np.abs(scores - released) > 0.005 + 1e-9


def rule_agreement(judged: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``judge_agreement.csv``: the column rule of ``dcq_completions`` against GPT-4.

    holds and p_adjusted are corrected over these rows alone: other texts, another reference.
    """
    subsets = {"all": judged} | dict(list(judged.groupby("model", sort=False)))
    table = pd.DataFrame(
        {"judge": "rule (texts)", "reference": "GPT-4 ICL", "subset": f"DCQ completions, {name}"}
        | agreement_row(rows["rule"], rows["judge"], rows[PARTITION].agg(", ".join, axis=1))
        for name, rows in subsets.items()
    )
    return corrected(table)
