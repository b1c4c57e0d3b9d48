"""The decisions of notebook 03 on partitions of the lab and on one's own.

Completions get their scores, and every partition a row for each method,
instruction and test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from contamination import overlap
from contamination.judging import EXACT, INEXACT, NEAR_EXACT, rule_verdict
from contamination.models.chat import ERROR, REFUSED, UNPARSABLE
from contamination.models.loading import Bleurt, load_bleurt
from contamination.replication.algorithm1 import ALPHA
from contamination.replication.algorithm2 import is_contaminated
from contamination.replication.instructions import (
    GUIDED,
)
from contamination.replication.prompts import NLI
from contamination.statistics import paired_bootstrap_p, sign_flip_p

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


def lab_table(parts: Sequence[pd.DataFrame], model: str, seed: int) -> pd.DataFrame:
    """``replication_lab.csv``: all decisions beside the truth, for one model.

    Args:
        parts: :func:`partition_rows`, and ``ranking_rows`` and ``cheat_rows`` of
            ``lab_partitions``.
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
