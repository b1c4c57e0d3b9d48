"""What notebook 07 says of its results, in words that its tables choose."""

from __future__ import annotations

import pandas as pd

from contamination.cases.downstream import insertions
from contamination.core.scores import MIN_K
from contamination.core.tables import auc_text, difference_text, interval_text, listed
from contamination.core.verdicts import FEWEST_MODELS, INCONCLUSIVE

LEVEL_OF_TPR = 0.05  # false-positive rate of the notebook's TPR


def top_of_the_list(auc: float, tpr: float) -> str:
    """What the share of inserted rows above the limit adds to the AUC."""
    if tpr >= LEVEL_OF_TPR:
        return (
            f"The limit finds {100 * tpr:.0f} % of the inserted rows. With a score that knows "
            f"nothing, it would find about {100 * LEVEL_OF_TPR:.0f} %."
        )
    found = f"fewer than {100 * LEVEL_OF_TPR:.0f} % of the inserted rows are above the limit"
    if auc <= 0.5:
        return f"The AUC is not above chance, and {found}."
    return (
        f"Although the AUC is above chance, {found}: some held-out rows also have very high "
        "scores. An AUC does not tell you what is at the top of the list."
    )


def words_by_occurrence(rows: pd.DataFrame) -> str:
    """Which examples a classifier of the words alone finds, by how often they were inserted.

    ``rows`` as in ``downstream.summarize_occurrences``, with the AUC of the words (blind_auc).
    """
    is_off = rows["blind_ci_low"].gt(0.5) | rows["blind_ci_high"].lt(0.5)
    if not is_off.any():
        return (
            "The interval of the words alone contains one half for every number of insertions, so "
            "no group of examples is known to differ by its words."
        )
    uneven = [
        f"{insertions(row.occurrence)} ({row.blind_auc:.2f} "
        f"{interval_text(row.blind_ci_low, row.blind_ci_high, 2)})"
        for row in rows[is_off].itertuples()
    ]
    return (
        "The words alone are not at chance for the examples that were inserted "
        f"{listed(uneven)}. There the words may explain a part of the score's AUC, so look at its "
        "change and not at its height."
    )


def rates_result(average: pd.DataFrame) -> str:
    """Whether a higher learning rate makes inserted examples easier to find, or more often right.

    ``average`` has the row of the lower rate, then that of the raised one, Min-k% Prob on average
    over the datasets, with the columns of ``downstream.with_accuracy``.
    """
    lower, raised = (row for _, row in average.iterrows())
    gaps = [row["accuracy_contaminants"] - row["accuracy_others"] for row in (lower, raised)]
    texts = [
        f"{gap:+.2f} {interval_text(row['gap_low'], row['gap_high'], 2)}"
        for gap, row in zip(gaps, (lower, raised), strict=True)
    ]
    said = (
        f"The AUC at the raised rate minus that at the lower one is {difference_text(raised)}. "
        "The share of correct answers on inserted minus that on held-out examples is "
        f"{texts[0]} at the lower rate and {texts[1]} at the raised one. "
    )
    if raised["gap_low"] > 0:
        said += "The second interval lies above 0, so this model answers inserted examples better. "
    else:
        said += "The second interval contains 0 or lies below it, so no gap is shown. "
    return f"{said}{_few(raised['n_models'], 'for each rate')}".strip()


def sizes_result(of_size: pd.DataFrame, spread: float) -> str:
    """How the AUC changes from the smallest to the largest corpus, for each kind of text.

    ``of_size`` has Min-k% Prob rows (setting, n_tokens, the difference to the smallest corpus and
    n_models); ``spread`` is by how much the AUCs of models of one size differ.
    """
    compared = of_size[of_size["difference"].notna()]
    if compared.empty:
        return "With one corpus size, there is nothing to compare."
    last = compared.sort_values("n_tokens").groupby("setting", sort=False).last()
    changes = [f"{difference_text(row)} ({name})" for name, row in last.iterrows()]
    said = f"From the smallest to the largest corpus, the AUC changes by {listed(changes)}. "
    if spread:
        said += f"The order of the texts alone changes it by {spread:.3f}. "
    return f"{said}{_few(last['n_models'].min(), 'for each corpus size')}".strip()


def _few(n_models: float, each: str) -> str:
    """That a comparison has too few models; empty where it has enough."""
    if n_models >= FEWEST_MODELS:
        return ""
    models = "one model" if n_models == 1 else f"{n_models:.0f} models"
    return f"With {models} {each}, what this says about other models is {INCONCLUSIVE}."


def conclusion(once: pd.Series, correction: pd.DataFrame) -> str:
    """What the study shows about inserted examples, in paragraphs.

    Args:
        once: Min-k% Prob on average over datasets where examples are inserted once, with
            difference, n_models, share_pct and paper_auc (as printed; empty if it is not).
        correction: of ``score_correction.correction_table``.
    """
    found = "raises" if once["difference_low"] > 0 else "is not shown to raise"
    said = (
        f"In our models, inserting a row once {found} its AUC: {MIN_K} reaches {auc_text(once)}, "
        f"and the change is {difference_text(once)}. Of the tokens that these models saw, "
        f"{once['share_pct']:.0f} % are inserted rows."
    )
    paper = pd.to_numeric(once["paper_auc"], errors="coerce")
    if pd.notna(paper):
        said += (
            f" The paper prints {paper:.2f} with a far smaller share. The two studies "
            "also differ in the models and in the texts, so do not compare these numbers."
        )
    row = correction.sort_values("copies").iloc[-1]
    inflation = difference_text(row, "inflation", "ci")
    copies = f"{row['copies']:.0f} copies"
    if row["ci_low"] > 0:
        said += f"\n\nThe score on the inserted rows is inflated: with {copies}, by {inflation}."
    else:
        said += (
            "\n\nThat a row can be found does not mean that it inflates the score. With "
            f"{copies}, the inflation is {inflation}, so none is shown, and this run cannot say "
            "how well a correction works."
        )
    return f"{said} {_few(once['n_models'], 'from one base')}".strip()
