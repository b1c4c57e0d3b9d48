"""What notebooks 02 to 05 measured on lab models of their own, for ``panel.judge_evidence``.

Each method there has more models or rows than the common ones give it, and the
control of its own notebook. Everything is read from their tables.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from contamination.core.scores import MIN_K
from contamination.core.statistics import share_interval
from contamination.dice import controls as dice_controls
from contamination.study.conditions import FRESH, PARAPHRASE, TRUTHS, VERBATIM
from contamination.study.four_methods import DCQ, DICE, RANKING, REPLICATION

SAME_MODEL = "the same model, rows it never read"


def dcq_rows(lab: pd.DataFrame) -> Iterator[dict]:
    """Sets read with their labels against the set that the same model never read."""
    keys = ["dataset", "model", "respondent"]
    unseen = lab.query("condition == 'unseen, same model'").set_index(keys)
    for row in lab.query("condition == 'with label'").itertuples():
        control = unseen.loc[(row.dataset, row.model, row.respondent)]
        is_quiz = row.respondent == "respondent"
        yield {
            "model": f"notebook 02, {row.model}",
            "dataset": f"{row.dataset}, {row.copies} copies",
            "truth": TRUTHS[VERBATIM],
            "method": (DCQ if is_quiz else RANKING).name,
            "statistic": "right in the best quiz" if is_quiz else "share right",
            "value": row.max_pct / 100,
            "ci_low": row.ci_low_pct / 100,
            "ci_high": row.ci_high_pct / 100,
            # A respondent that may abstain has no chance of its own: its control stands for it.
            "chance": control["max_pct"] / 100 if is_quiz else 0.25,
            "control": SAME_MODEL,
            "control_value": control["max_pct"] / 100,
            "control_low": control["ci_low_pct"] / 100,
            "control_high": control["ci_high_pct"] / 100,
            "n": row.n,
        }


def replication_rows(lab: pd.DataFrame) -> Iterator[dict]:
    """Guided completions of partitions against the clean ones of their benchmark.

    How many completions match by chance is not known by construction: clean partitions show it.
    """
    rows = lab.query(
        "method == 'Algorithm 2' and metric == 'rule judge' and instruction == 'guided'"
    )
    rows = rows.assign(n_matches=rows["n_exact"] + rows["n_near_exact"])
    for row in rows.itertuples():
        clean = rows.query("benchmark == @row.benchmark and copies == 0")
        clean = clean[clean["dataset"] != row.dataset]
        n_clean, n_clean_matches = int(clean["n_valid"].sum()), int(clean["n_matches"].sum())
        clean_share = n_clean_matches / n_clean if n_clean else float("nan")
        low, high = share_interval(int(row.n_matches), row.n_valid)
        clean_low, clean_high = share_interval(n_clean_matches, n_clean)
        yield {
            "model": f"notebook 03, {row.model}, seed {row.seed}",
            "dataset": f"{row.dataset}, {row.split}, {row.copies} copies",
            "truth": TRUTHS[VERBATIM if row.copies else FRESH],
            "method": REPLICATION.name,
            "statistic": "share of matches",
            "value": row.n_matches / row.n_valid,
            "ci_low": low,
            "ci_high": high,
            "chance": clean_share,
            "control": "the same model, partitions it never read",
            "control_value": clean_share,
            "control_low": clean_low,
            "control_high": clean_high,
            "n": row.n_valid,
        }


def min_k_rows(aucs: pd.DataFrame, blind: pd.DataFrame) -> Iterator[dict]:
    """Members of each dose against non-members, beside the best classifier of words alone."""
    rows = aucs[aucs["setting"].eq("random") & aucs["method"].eq(MIN_K) & aucs["seed"].notna()]
    for row in rows.itertuples():
        copies = f"{row.copies:.0f} copies"  # read from a file, a column with gaps is no integer
        words = blind[blind["setting"].eq(f"random, {copies}") & blind["seed"].eq(row.seed)]
        best = words.loc[words["auc"].idxmax()]
        yield {
            "model": f"notebook 04, {row.model}, seed {row.seed:.0f}",
            "dataset": f"{row.benchmark}, {copies}",
            "truth": TRUTHS[VERBATIM],
            "method": MIN_K,
            "statistic": "AUC",
            "value": row.auc,
            "ci_low": row.ci_low,
            "ci_high": row.ci_high,
            "chance": 0.5,
            "control": f"{best['baseline']}, no model",
            "control_value": best["auc"],
            "control_low": best["ci_low"],
            "control_high": best["ci_high"],
            "n": row.n_members + row.n_non_members,
        }


def dice_rows(aurocs: pd.DataFrame, controls: pd.DataFrame) -> Iterator[dict]:
    """Contaminated against clean models by the paper's protocol, beside two clean models.

    They cannot support that a model was trained on a dataset unless the other controls of 05 show
    that the detector sees which questions were read.
    """
    sees = dice_controls.sees_membership(controls)
    truths = {"GSM-i": VERBATIM, "GSM-ii": FRESH, "GSM-i-Syn": PARAPHRASE}
    clean = controls.set_index("control")
    rows = aurocs[aurocs["method"].eq("DICE") & aurocs["trained_on"].str.startswith("GSM-i ")]
    for row in rows[rows["tested_on"].isin(truths)].itertuples():
        # GSM-i is what detectors are trained on, so two clean models are asked it too.
        is_learned = row.tested_on == "GSM-i"
        control = clean.loc[
            "the same, on the detector's training questions"
            if is_learned
            else "two clean models, other texts"
        ]
        yield {
            "model": f"notebook 05, {row.trained_on}, models",
            "dataset": row.tested_on,
            "truth": TRUTHS[truths[row.tested_on]],
            "method": DICE.name,
            "statistic": "AUROC",
            "value": row.auroc_pct / 100,
            "ci_low": row.ci_low / 100,
            "ci_high": row.ci_high / 100,
            "chance": 0.5,
            "control": control.name,
            "control_value": control["auroc_pct"] / 100,
            "control_low": control["ci_low"] / 100,
            "control_high": control["ci_high"] / 100,
            "n": row.n_models,
            "n_models": row.n_models // 2,  # of either kind
            "may_support": sees,
            "note": "" if sees else "it cannot say which questions were read",
        }
