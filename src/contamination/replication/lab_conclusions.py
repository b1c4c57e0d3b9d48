"""Titles, sentences and the conclusion of the replication lab, worded by their tables."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import listed
from contamination.core.verdicts import ALPHA, CONTROL_FAILS, SUPPORTED
from contamination.replication.algorithm2 import ERRORS_PCT, SIZES
from contamination.replication.decisions import (
    ALGORITHM_1,
    ALGORITHM_2,
    DID_CHATGPT_CHEAT,
    OPTION_RANKING,
    PAIRED_BOOTSTRAP,
)
from contamination.replication.instructions import GENERAL, GUIDED

CLOSE = 0.02  # means of ROUGE-L that differ by less look the same in a table
FEWEST_PARTITIONS = 5  # fewer carry no general statement
FEW_REPLICAS_PCT = 5
_EXPLAINED = {
    OPTION_RANKING: "is the original likelier than its paraphrases?",
    DID_CHATGPT_CHEAT: "can the model write the first rows?",
}


def method_labels(methods: pd.DataFrame) -> pd.Series:
    """Rows of a figure or table, named by method and, where there are several, by their kind.

    Args:
        methods: ``decisions.by_dose`` without placebos and BLEURT, or ``method_verdicts`` of it.
    """
    parts = [_parts(*row) for row in methods[["method", "instruction"]].to_numpy()]
    labels = [f"{name}, {kind}" if kind else name for name, kind in parts]
    return pd.Series(labels, index=methods.index)


def _parts(method: str, instruction: str) -> tuple[str, str]:
    """An algorithm and which test or completions it uses; of another method no second part."""
    if method.startswith(ALGORITHM_1):
        return ALGORITHM_1, method.split(", ")[-1]
    if method.startswith(ALGORITHM_2):
        return ALGORITHM_2, f"{instruction} completions"
    return method, ""


def title_of_methods(methods: pd.DataFrame) -> str:
    """How many methods call the partitions contaminated that the model saw most often.

    A method counts once, and only if all its tests or kinds of completions notice them.

    Args:
        methods: ``decisions.method_verdicts``.
    """
    names = [_parts(*row)[0] for row in methods[["method", "instruction"]].to_numpy()]
    notices = methods["verdict"].eq(SUPPORTED).groupby(names).all()
    n, n_supported = len(notices), int(notices.sum())
    if n_supported == n:
        return f"All {n} methods notice the partitions that were seen most often"
    return f"{n_supported or 'None'} of {n} methods notice the partitions that were seen most often"


def summarize_few_copies(scored: pd.DataFrame, ranked: pd.DataFrame) -> str:
    """Whether the smallest number of copies is visible in completions, and in likelihoods.

    Args:
        scored: ``decisions.with_scores`` of all completions.
        ranked: ``lab_partitions.ranking_rows``.
    """
    means = scored[scored["instruction"].eq(GUIDED)].groupby("copies")["rouge"].mean()
    few = means.index[means.index > 0].min()
    rows = ranked[ranked["copies"].eq(few)]
    n, n_found = len(rows), int(rows["contaminated"].sum())
    is_better = means[few] > means[0] + CLOSE
    text = (
        f"Rows seen {few} times are completed {'better' if is_better else 'no better'} than rows "
        f"that were never seen (ROUGE-L {means[few]:.2f} and {means[0]:.2f} with the right name)."
    )
    but = "But" if n_found > n / 2 and not is_better else "And"
    return (
        f"{text} {but} option ranking, which compares likelihoods and is explained below, calls "
        f"{n_found} of these {n} partitions contaminated."
    )


def summarize_algorithm_1(lab: pd.DataFrame) -> str:
    """How many partitions Algorithm 1 finds by the paired bootstrap, at its best and at the end.

    Args:
        lab: ``decisions.lab_table``.
    """
    rows = lab[lab["method"].eq(ALGORITHM_1) & lab["metric"].eq("ROUGE-L")]
    rows = rows[rows["test"].eq(PAIRED_BOOTSTRAP) & rows["instruction"].eq(GENERAL)]
    doses = rows[rows["copies"] > 0].groupby("copies")
    flagged, n = doses["contaminated"].sum().astype(int), doses.size()
    most, peak = n.index.max(), flagged.idxmax()
    at_most = f"{flagged[most] or 'none'} of {n[most]} partitions that were seen {most} times"
    if flagged[most] == flagged[peak]:
        return f"By the paired bootstrap, Algorithm 1 calls {at_most} contaminated."
    text = (
        f"By the paired bootstrap, Algorithm 1 calls {flagged[peak]} of {n[peak]} partitions "
        f"contaminated that were seen {peak} times, but {at_most}."
    )
    guided, general = (doses[name].mean()[most] for name in ("mean_guided", "mean"))
    if guided - general > CLOSE:
        return text
    return (
        f"{text} There ROUGE-L is {guided:.2f} with the name and {general:.2f} without it, so "
        "hardly any difference is left to find."
    )


def title_of_curves(curves: pd.DataFrame) -> str:
    """How often a clean partition is called contaminated, from few to many instances.

    Args:
        curves: ``algorithm2.operating_curves``.
    """
    few, many = _false_alarms(curves)
    if many <= few:
        return "More instances do not bring more false alarms"
    return f"With {SIZES[-1]} instances a judge's errors add up to false alarms"


def _false_alarms(curves: pd.DataFrame) -> tuple[float, float]:
    """Chance in percent that a clean partition is called contaminated, by few and many instances.

    It is that under the judge who errs most often.
    """
    clean = curves[curves["true_share_pct"].eq(0) & curves["judge_error_pct"].eq(ERRORS_PCT[-1])]
    by_size = 100 * clean.set_index("k")["flag_probability"]
    return float(by_size[SIZES[0]]), float(by_size[SIZES[-1]])


def conclusion(
    methods: pd.DataFrame, placebos: pd.DataFrame, curves: pd.DataFrame, lab: pd.DataFrame
) -> str:
    """What the lab concludes, in words that its tables choose.

    Args:
        methods: ``decisions.method_verdicts``.
        placebos: ``decisions.placebo_verdicts``.
        curves: ``algorithm2.operating_curves``.
        lab: ``decisions.lab_table``.
    """
    return "\n\n".join((_of_methods(methods, lab), _of_placebos(placebos), _of_sizes(curves)))


def _of_sizes(curves: pd.DataFrame) -> str:
    """What more instances change for a partition with few replicas, and for a clean one."""
    is_such = curves["true_share_pct"].eq(FEW_REPLICAS_PCT) & curves["judge_error_pct"].eq(0)
    found = 100 * curves[is_such].set_index("k")["flag_probability"]
    few, many = _false_alarms(curves)
    grow = "But its false alarms grow" if many > few else "Its false alarms do not grow"
    return (
        f"How many instances does Algorithm 2 need? If {FEW_REPLICAS_PCT} % of the rows of a "
        "partition are replicated and the judge makes no mistakes, the partition is called "
        f"contaminated in {found[SIZES[0]]:.0f} % of cases with {SIZES[0]} instances and in "
        f"{found[SIZES[-1]]:.0f} % with {SIZES[-1]}. {grow} with the number of instances. If the "
        f"judge errs on {ERRORS_PCT[-1]:.0f} % of the completions, a clean partition is called "
        f"contaminated in {few:.0f} % of cases with {SIZES[0]} instances and in {many:.0f} % with "
        f"{SIZES[-1]}."
    )


def _named(methods: pd.DataFrame) -> list[str]:
    """Methods of ``decisions.method_verdicts`` as a sentence calls them, each algorithm once."""
    kinds: dict[str, list[str]] = {}
    for name, kind in (_parts(*row) for row in methods[["method", "instruction"]].to_numpy()):
        kinds.setdefault(name, []).append(kind or _EXPLAINED.get(name, ""))
    named = {name: listed([kind for kind in of if kind] or [""]) for name, of in kinds.items()}
    return [f"{name} ({kind})" if kind else name for name, kind in named.items()]


def _of_methods(methods: pd.DataFrame, lab: pd.DataFrame) -> str:
    text = (
        "We trained one small model, so we know which partitions it never saw and which it saw "
        "most often. A method is useful if the share of partitions that it calls "
        "contaminated is larger among those seen most often than among the held-out ones."
    )
    seen = methods[methods["verdict"].eq(SUPPORTED)].sort_values("seen_from", kind="stable")
    failing = methods[methods["verdict"].eq(CONTROL_FAILS)]
    others = methods[~methods["verdict"].isin([SUPPORTED, CONTROL_FAILS])]
    if seen.empty:
        return f"{text} No method of this lab is shown to be useful."
    text += f" That is supported for {listed(_named(seen))}."
    if seen["seen_from"].notna().any():
        first = seen.iloc[0]
        times = "one copy" if first["seen_from"] == 1 else f"{first['seen_from']} copies"
        name = method_labels(seen).iloc[0]
        n_of_dose = lab.loc[lab["copies"] > 0, ["copies", "dataset", "split"]].drop_duplicates()
        n = n_of_dose["copies"].value_counts().min()
        text += (
            f" The fewest copies are needed by {name}, which notices at least half of the "
            f"partitions from {times} of each row upwards. But we have only one model, and {n} "
            "partitions for each number of copies."
        )
    if len(others):
        text += f"\n\nThe claim is not shown for {listed(_named(others))}."
        if others["method"].str.startswith(ALGORITHM_1).any():
            text += f" {summarize_algorithm_1(lab)}"
    if len(failing):
        text += f" We cannot judge {listed(_named(failing))}, because of too many false alarms."
    return text


def _of_placebos(placebos: pd.DataFrame) -> str:
    n = int(placebos["n_flagged"].max())
    if not n:
        return (
            "The completions with the name of the dataset beat those without it in no partition, "
            "so we cannot ask whether the right name matters."
        )
    kept = [f"a {row.placebo} keeps {100 * row.kept:.0f} %" for row in placebos.itertuples()]
    verdicts = set(placebos["verdict"])
    n_tested = int(placebos["n_partitions"].max())
    where = (
        "By the uncorrected paired bootstrap, the completions with the right name are closer to "
        f"the original than those without a name in {n} of {n_tested} partitions. Chance alone "
        f"would give about {ALPHA * n_tested:.0f}."
    )
    if verdicts == {SUPPORTED}:
        return (
            f"The right name matters. {where} In these partitions, they also beat those with a "
            f"wrong name: {listed(kept)} of the gain."
        )
    if verdicts == {CONTROL_FAILS}:
        wrong = f"In these partitions, a wrong name helps as well: {listed(kept)} of the gain."
        if n < FEWEST_PARTITIONS:
            return (
                f"We see no sign that the right name matters. {where} {wrong} This speaks for the "
                "form of the prompt, but so few partitions cannot settle it."
            )
        return (
            f"The right name matters little. {where} {wrong} So at least half of the gain comes "
            "from the form of the prompt."
        )
    return (
        f"Whether the right name matters is inconclusive. {where} In these partitions, "
        f"{listed(kept)} of the gain."
    )
