"""What notebooks 02 to 05 found on lab models of their own, as rows of the panel.

Each method there has more models or rows than the common ones give it, and the
control of its own notebook.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from contamination.dcq.study import RESPONDENT, UNSEEN, WITH_LABEL
from contamination.dice.controls import TWO_CLEAN, TWO_CLEAN_LEARNT
from contamination.dice.detector import MLP
from contamination.dice.mixtures import SEEN, SYN
from contamination.dice.mixtures import UNSEEN as FRESH_PROBLEMS
from contamination.evidence.conditions import FRESH, PARAPHRASE, TRUTHS, VERBATIM
from contamination.evidence.lab_panel import Statistic
from contamination.evidence.measuring import DCQ, DICE, MIN_K, RANKING, REPLICATION
from contamination.evidence.panel import CONTROL_FORBIDS, RECOGNISED
from contamination.replication.instructions import GUIDED
from contamination.replication.study import ALGORITHM_2, RULE_JUDGE
from contamination.statistics import share_interval

Row = tuple[str, str, str, Statistic]  # model, dataset, truth, and what a method says


def dcq_rows(lab: pd.DataFrame) -> Iterator[Row]:
    """Sets read with their labels against the set that the same model never read.

    Args:
        lab: ``dcq_lab``.
    """
    keys = ["dataset", "model", "respondent"]
    unseen = lab[lab["condition"] == UNSEEN].set_index(keys)
    for row in lab[lab["condition"] == WITH_LABEL].itertuples():
        control = unseen.loc[(row.dataset, row.model, row.respondent)]
        is_quiz = row.respondent == RESPONDENT
        found = Statistic(
            method=DCQ if is_quiz else RANKING,
            name="right in the best quiz" if is_quiz else "share right",
            value=row.max_pct / 100,
            interval=(row.ci_low_pct / 100, row.ci_high_pct / 100),
            # A respondent that may abstain has no chance of its own: its control stands for it.
            chance=control["max_pct"] / 100 if is_quiz else 0.25,
            control="the same model, rows it never read",
            control_value=control["max_pct"] / 100,
            control_high=control["ci_high_pct"] / 100,
            n=row.n,
        )
        name = f"notebook 02, {row.model}"
        yield name, f"{row.dataset}, {row.copies} copies", TRUTHS[VERBATIM], found


def replication_rows(lab: pd.DataFrame) -> Iterator[Row]:
    """Partitions completed under the guided instruction against the clean ones of their benchmark.

    Args:
        lab: ``replication_lab``.
    """
    is_asked = lab["method"].eq(ALGORITHM_2) & lab["metric"].eq(RULE_JUDGE)
    rows = lab[is_asked & lab["instruction"].eq(GUIDED)]
    for row in rows.itertuples():
        clean = rows["benchmark"].eq(row.benchmark) & rows["copies"].eq(0)
        others = rows[clean & rows["dataset"].ne(row.dataset)]
        n_matches = int(row.n_exact + row.n_near_exact)
        n_clean = int(others["n_valid"].sum())
        n_clean_matches = int((others["n_exact"] + others["n_near_exact"]).sum())
        found = Statistic(
            method=REPLICATION,
            name="share of matches",
            value=n_matches / row.n_valid,
            interval=share_interval(n_matches, row.n_valid),
            chance=0.0 if row.contaminated else 1.0,
            control="the same model, partitions it never read",
            control_value=n_clean_matches / n_clean if n_clean else float("nan"),
            control_high=share_interval(n_clean_matches, n_clean)[1],
            n=row.n_valid,
        )
        truth = TRUTHS[VERBATIM if row.copies else FRESH]
        dataset = f"{row.dataset}, {row.split}, {row.copies} copies"
        yield f"notebook 03, {row.model}, seed {row.seed}", dataset, truth, found


def min_k_rows(aucs: pd.DataFrame, blind: pd.DataFrame) -> Iterator[Row]:
    """Members of each dose against non-members, beside the best classifier of words alone.

    Args:
        aucs: ``min_k_auc``.
        blind: ``blind_baselines``.
    """
    is_asked = aucs["setting"].eq("random") & aucs["method"].eq(MIN_K) & aucs["seed"].notna()
    for row in aucs[is_asked].itertuples():
        copies = f"{row.copies:.0f} copies"  # read from a file, a column with gaps is no integer
        words = blind[blind["setting"].eq(f"random, {copies}") & blind["seed"].eq(row.seed)]
        best = words.loc[words["auc"].idxmax()]
        found = Statistic(
            method=MIN_K,
            name="AUC",
            value=row.auc,
            interval=(row.ci_low, row.ci_high),
            chance=0.5,
            control=f"{best['baseline']}, no model",
            control_value=best["auc"],
            control_high=best["ci_high"],
            n=row.n_members + row.n_non_members,
        )
        name = f"notebook 04, {row.model}, seed {row.seed:.0f}"
        yield name, f"{row.benchmark}, {copies}", TRUTHS[VERBATIM], found


def dice_rows(aurocs: pd.DataFrame, controls: pd.DataFrame) -> Iterator[Row]:
    """Contaminated against clean models by the paper's protocol, beside two clean models.

    Args:
        aurocs: ``dice_auroc``.
        controls: ``dice_controls``.
    """
    truths = {SEEN: VERBATIM, FRESH_PROBLEMS: FRESH, SYN: PARAPHRASE}
    clean = controls.set_index("control")
    is_asked = aurocs["method"].eq(MLP) & aurocs["trained_on"].str.startswith(f"{SEEN} ")
    for row in aurocs[is_asked & aurocs["tested_on"].isin(truths)].itertuples():
        # GSM-i is what detectors are trained on, so two clean models are asked it too.
        control = clean.loc[TWO_CLEAN_LEARNT if row.tested_on == SEEN else TWO_CLEAN]
        found = Statistic(
            method=DICE,
            name="AUROC",
            value=row.auroc_pct / 100,
            interval=(row.ci_low / 100, row.ci_high / 100),
            chance=0.5,
            control=control.name,
            control_value=control["auroc_pct"] / 100,
            control_high=control["ci_high"] / 100,
            n=row.n_models,
        )
        truth = TRUTHS[truths[row.tested_on]]
        yield f"notebook 05, {row.trained_on}, models", row.tested_on, truth, found


def wide(evidence: pd.DataFrame) -> pd.DataFrame:
    """For display, a row for each notebook, method and truth.

    Returns:
        notebook, method, truth, n (models and datasets), recognised, control forbids.
    """
    notebook = evidence["model"].str.extract(r"notebook (\d+)", expand=False)
    grouped = evidence.assign(notebook=notebook).groupby(
        ["notebook", "method", "truth"], sort=False
    )
    table = grouped["verdict"].agg(
        n="size",
        recognised=lambda found: int(found.eq(RECOGNISED).sum()),
        forbidden=lambda found: int(found.eq(CONTROL_FORBIDS).sum()),
    )
    return table.reset_index()
