"""The study of notebook 03: partitions whose contamination is known, and one's own.

A partition of the lab has a name of its own ("Topics C") and a split; its
instances are read a known number of times, 0 for the clean ones, by one model.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

import numpy as np
import pandas as pd
from scipy import stats

from contamination import overlap
from contamination.judging import EXACT, INEXACT, NEAR_EXACT, rule_verdict
from contamination.lab.benchmarks import BENCHMARKS
from contamination.lab.grammar import draw_groups, draw_instances
from contamination.lab.recipes import Dose
from contamination.models.causal import CausalLM, option_log_probs
from contamination.models.chat import ERROR, REFUSED, UNPARSABLE
from contamination.models.loading import Bleurt, load_bleurt
from contamination.replication import did_chatgpt_cheat
from contamination.replication.algorithm1 import ALPHA
from contamination.replication.algorithm2 import is_contaminated
from contamination.replication.completions import by_local_model
from contamination.replication.cutting import cut_rows
from contamination.replication.instructions import (
    CONTINUE,
    GENERAL,
    GUIDED,
    NAMED_LINE,
    document,
    prompt_for,
    prompts_of,
)
from contamination.replication.prompts import CLASSIFICATION, NLI
from contamination.statistics import paired_bootstrap_p, sign_flip_p

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

PAIRED_BOOTSTRAP, SIGN_FLIPS = "paired bootstrap", "sign flips"
ALGORITHM_1, ALGORITHM_2 = "Algorithm 1", "Algorithm 2"
RULE_JUDGE, ICL_JUDGE = "rule judge", "ICL judge"
RULE_COLUMN, ICL_COLUMN = "rule", "icl"
OPTION_RANKING = "option ranking"
DID_CHATGPT_CHEAT = "Did-ChatGPT-Cheat?"

PARTITION = ["benchmark", "task", "dataset", "split", "copies"]
LAB_COLUMNS = [
    *PARTITION,
    "model",
    "seed",
    "method",
    "instruction",
    "metric",
    "test",
    "n",
    "n_valid",
    "n_refused",
    "n_error",
    "n_unparsable",
    "n_bare_yes",
    "n_repeated",
    "mean",
    "mean_guided",
    "p_value",
    "n_exact",
    "n_near_exact",
    "outcome",
    "contaminated",
    "truth",
]


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
        One row per instance and paraphrase: benchmark, task, dataset and split
        (the names that prompts say), copies, group, option (0 the original),
        label, first_piece, second_piece, is_mid_sentence, document.

    Raises:
        ValueError: if ``copies`` lacks a clean or a contaminated partition, or
            holds more than there are names.
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

    The clean ones, half with a first line that names another dataset and half
    with one that names none, are drawn apart. They make either first line
    familiar, so that the general instruction is no strange format.
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
    return pd.concat(
        [
            prompts_of(
                rows,
                task,
                dataset=dataset,
                split=split,
                other_dataset=other_dataset(benchmark),
                other_split=SPLITS[1 - SPLITS.index(split)],
                labels=instances.loc[instances["benchmark"] == benchmark, "label"],
                form=CONTINUE,
            )
            for (benchmark, task, dataset, split, _), rows in originals.groupby(
                PARTITION, sort=False
            )
        ],
        ignore_index=True,
    )


def bleurt_or_reason(checkpoint: str) -> tuple[Bleurt | None, str]:
    """A BLEURT scorer, or None and why there is none, as a sentence."""
    if not checkpoint:
        return None, "BLEURT is not computed: no bleurt_checkpoint is set, so its column is empty."
    try:
        return load_bleurt(checkpoint), ""
    except OSError as error:  # FileNotFoundError of ours, and the hub's own errors
        return None, f"BLEURT is not computed and its column is empty: {error}"


def with_scores(
    completed: pd.DataFrame,
    near_exact_threshold: float,
    scorer: Bleurt | None = None,
    joining: str = overlap.JOINED_AS_PAPER,
    min_reference_words: int = 4,
) -> pd.DataFrame:
    """Overlap and rule verdict of each completion.

    Args:
        completed: ``completions.with_completions``.
        near_exact_threshold, min_reference_words: of ``judging.rule_verdict``; a
            shorter reference is no match, whatever was written.
        scorer: BLEURT, or None for an empty column.
        joining: of ``overlap.bleurt_texts``.

    Returns:
        The rows with rouge and bleurt (0 to 1; empty where the model gave no
        answer) and rule (empty there too).
    """
    is_valid = _is_valid(completed)
    rouge, rule = [], []
    for row, valid in zip(completed.itertuples(), is_valid, strict=True):
        pair = row.second_piece, row.completion
        rouge.append(overlap.rouge_l(*pair) if valid else np.nan)
        verdict = rule_verdict(*pair, near_exact_threshold, min_reference_words, False)
        rule.append(verdict if valid else None)
    table = completed.assign(rouge=rouge, bleurt=np.nan, rule=rule)
    if scorer is not None:
        chosen = table[is_valid]
        texts = [
            overlap.bleurt_texts(
                row.first_piece,
                row.second_piece,
                row.completion,
                is_pair=row.task == NLI,
                is_mid_sentence=row.is_mid_sentence,
                joining=joining,
            )
            for row in chosen.itertuples()
        ]
        table.loc[is_valid, "bleurt"] = overlap.bleurt(scorer, *map(list, zip(*texts, strict=True)))
    return table


def _is_valid(completed: pd.DataFrame) -> pd.Series:
    """Whether the model answered; an empty answer is one, a refusal or an error is none."""
    return ~completed["status"].isin([REFUSED, ERROR])


def partition_rows(
    scored: pd.DataFrame, judges: dict[str, str], by: Sequence[str] = PARTITION
) -> pd.DataFrame:
    """Decisions of Algorithms 1 and 2 on every partition.

    Algorithm 1 compares guided with each other instruction on the instances
    answered under both, by the paper's paired bootstrap and by sign flips.
    Algorithm 2 reads the verdicts of one instruction's completions.

    Args:
        scored: ``with_scores``.
        judges: name of a judge to its column of verdicts.
        by: columns that make a partition.

    Returns:
        Rows with the columns of ``LAB_COLUMNS`` that are known here. mean is
        that of the instruction's own scores (for a judge: the share of
        matches); for Algorithm 1 mean, mean_guided and n_valid rest on the
        instances answered under both instructions. p_value is that of guided
        being no better, contaminated the decision; both are empty where nothing
        was answered.
    """
    rows = []
    for partition, group in scored.groupby(list(by), sort=False, dropna=False):
        key = dict(zip(by, partition, strict=True))
        of = {name: part.set_index("group") for name, part in group.groupby("instruction")}
        for name in group["instruction"].unique():
            part = of[name]
            counts = {"instruction": name} | _counts(part, next(iter(judges.values())))
            for metric, column in {"ROUGE-L": "rouge", "BLEURT": "bleurt"}.items():
                if name != GUIDED and part[column].notna().any():
                    for row in _algorithm_1(of[GUIDED][column], part[column]):
                        rows.append(key | counts | {"metric": metric} | row)
            for judge, column in judges.items():
                rows.append(
                    key | counts | _counts(part, column) | _algorithm_2(part, judge, column)
                )
    return pd.DataFrame(rows)


def _counts(part: pd.DataFrame, column: str) -> dict[str, int]:
    verdicts = part[column].tolist()
    # A completion, or the ICL judge's answer to it, may be missing.
    of_judge = part["judge_status"] if column == ICL_COLUMN else part["status"]
    is_bare = part["is_bare_yes"] if column == ICL_COLUMN else pd.Series(False, part.index)
    return {
        "n": len(part),
        "n_valid": int(part[column].notna().sum()),
        "n_refused": int((part["status"].eq(REFUSED) | of_judge.eq(REFUSED)).sum()),
        "n_error": int((part["status"].eq(ERROR) | of_judge.eq(ERROR)).sum()),
        "n_unparsable": int((part[column].isna() & of_judge.eq(UNPARSABLE)).sum()),
        "n_bare_yes": int(is_bare.sum()),
        "n_repeated": int(part["is_repeated"].sum()),
        "n_exact": verdicts.count(EXACT),
        "n_near_exact": verdicts.count(NEAR_EXACT),
    }


def _algorithm_1(guided: pd.Series, other: pd.Series) -> list[dict]:
    # The tests work on whole hundredths, as the released scores are.
    pairs = pd.concat([guided, other.reindex(guided.index)], axis=1).dropna()
    both = pairs.round(2).to_numpy()
    mean_guided, mean = (float(pairs.iloc[:, place].mean()) for place in (0, 1))
    rows = []
    for test, p_of in ((PAIRED_BOOTSTRAP, paired_bootstrap_p), (SIGN_FLIPS, sign_flip_p)):
        p_value = p_of(both[:, 0], both[:, 1]) if len(both) else None
        rows.append(
            {"method": ALGORITHM_1, "test": test, "p_value": p_value, "n_valid": len(pairs)}
            | {"mean": mean, "mean_guided": mean_guided}
            | {"contaminated": None if p_value is None else p_value <= ALPHA}
        )
    return rows


def _algorithm_2(part: pd.DataFrame, judge: str, column: str) -> dict:
    verdicts = part[column].dropna()
    found = {"method": ALGORITHM_2, "metric": judge, "test": "1 exact or 2 near-exact"}
    if verdicts.empty:
        return found | {"mean": None, "contaminated": None}
    share = float(verdicts.ne(INEXACT).mean())
    return found | {"mean": share, "contaminated": is_contaminated(verdicts)}


def ranking_rows(lm: CausalLM, instances: pd.DataFrame) -> pd.DataFrame:
    """Option ranking: how often the original is the likeliest of its group.

    The model scores the whole text of the original and of each paraphrase
    after the line that names dataset and split. Without memory nothing but
    chance picks the original out (``lab.grammar``), so p_value is binomial.
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
        n_right = sum(int(values.argmax() == 0) for values in scores)
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

    A model that only continues text gets the line that names dataset and split
    and goes on. All instances of a partition count as its first ones, its
    labels as what gives the dataset away.
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


def lab_table(parts: Sequence[pd.DataFrame], model: str, seed: int) -> pd.DataFrame:
    """``replication_lab.csv``: all decisions beside the truth, for one model.

    Args:
        parts: :func:`partition_rows`, :func:`ranking_rows`, :func:`cheat_rows`.
        model: its name.
        seed: of its training.

    Returns:
        ``LAB_COLUMNS``; truth says whether the partition was read at all, and is
        empty where ``copies`` is.
    """
    table = pd.concat([part.astype(object) for part in parts], ignore_index=True)
    always = ["n_refused", "n_error", "n_unparsable", "n_bare_yes", "n_repeated"]
    table = table.reindex(columns=[*table.columns.union(always, sort=False)])
    table[always] = table[always].fillna(0)
    truth = [None if pd.isna(copies) else bool(copies > 0) for copies in table["copies"]]
    table = table.assign(model=model, seed=seed, truth=truth)
    counts = [name for name in LAB_COLUMNS if name == "n" or name.startswith("n_")]
    table = table.reindex(columns=LAB_COLUMNS).infer_objects()
    return table.astype(dict.fromkeys([*counts, "copies"], "Int64"))


def by_dose(lab: pd.DataFrame) -> pd.DataFrame:
    """Flagged partitions by method and dose.

    Args:
        lab: ``replication_lab``.

    Returns:
        method (with metric and test where there are several), instruction (for
        Algorithm 1: the one that guided is compared with), copies, n_partitions, n_flagged.
    """
    name = lab["method"].where(
        lab["method"] != ALGORITHM_1, lab["method"] + ", " + lab["metric"] + ", " + lab["test"]
    )
    name = name.where(lab["method"] != ALGORITHM_2, lab["method"] + ", " + lab["metric"])
    grouped = lab.assign(method=name).groupby(["method", "instruction", "copies"])
    table = grouped["contaminated"].agg(
        n_partitions=lambda values: int(values.notna().sum()),
        n_flagged=lambda values: int(values.eq(True).sum()),
    )
    return table.reset_index()


def wide_by_dose(doses: pd.DataFrame) -> pd.DataFrame:
    """:func:`by_dose` for display: one column per dose, "3 of 12"."""
    texts = doses["n_flagged"].astype(str) + " of " + doses["n_partitions"].astype(str)
    wide = doses.assign(text=texts).pivot(
        index=["method", "instruction"], columns="copies", values="text"
    )
    return wide.rename(columns="{} copies".format).reset_index()
