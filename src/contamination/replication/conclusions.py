"""Titles, sentences and conclusions on replication, worded by their tables."""

from __future__ import annotations

import pandas as pd

from contamination.core.statistics import mcnemar_p
from contamination.core.tables import format_p, interval_text, listed
from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_RUN, SUPPORTED
from contamination.replication.algorithm1 import ALPHA, PARTITION
from contamination.replication.algorithm2 import ERRORS_PCT, MARK_NONE, SIZES
from contamination.replication.asterisks import summarize_tests
from contamination.replication.decisions import (
    ALGORITHM_1,
    ALGORITHM_2,
    DID_CHATGPT_CHEAT,
    OPTION_RANKING,
    PAIRED_BOOTSTRAP,
)
from contamination.replication.instructions import GENERAL, GUIDED
from contamination.replication.published_tables import BOTH_MODELS, PRINTED_TESTS, RULE_JUDGE

ALWAYS_CLEAN = "always clean"
JUDGE, PERSON = "GPT-4 ICL", "annotator 1"


# The released scores and labels


def _of_paper(success: pd.DataFrame, model: str = BOTH_MODELS) -> tuple[pd.DataFrame, pd.Series]:
    """Rows of the paper's three algorithms, and the row of the answer that needs no model."""
    rows = success[success["model"].eq(model)]
    (clean,) = rows[rows["algorithm"].eq(ALWAYS_CLEAN)].to_dict("records")
    return rows[rows["test"].isin(PRINTED_TESTS)], pd.Series(clean)


def _spoken(algorithms: pd.Series) -> list[str]:
    """Algorithms of Table 1 as a sentence calls them."""
    spoken = [name.replace(": ", " with ") for name in algorithms]
    return [name.replace(f"with {JUDGE}", "with GPT-4 as the judge") for name in spoken]


def title_of_decisions(success: pd.DataFrame) -> str:
    """Which of the paper's algorithms is shown to do better than always answering "clean"."""
    paper, _ = _of_paper(success)
    better = paper[paper["verdict"].eq(SUPPORTED)]
    if better.empty:
        return "No algorithm is shown to beat the control"
    if len(better) == len(paper):
        return "Every algorithm beats the control"
    names = [name.removesuffix(f": {JUDGE}") for name in better["algorithm"]]
    verb = "is" if len(names) == 1 else "are"
    return f"Only {listed(names)} {verb} shown to beat the control"


def summarize_decisions(success: pd.DataFrame) -> str:
    """How often each of the paper's algorithms decides as the person does, on both models."""
    paper, clean = _of_paper(success)
    counts = zip(_spoken(paper["algorithm"]), paper["n_right"], strict=True)
    return (
        f"Always answering “clean” gives the person's decision in {clean['n_right']} of "
        f"{clean['n_partitions']} cases. The count is "
        f"{listed([f'{n_right} for {name}' for name, n_right in counts])}."
    )


def summarize_exact(guided: pd.Series, general: pd.Series) -> str:
    """Whether naming the dataset leads to more exact completions of the same rows.

    Both say for each row whether a completion is exact, shape (n_rows,). The exact test looks at
    the rows in which one completion is exact and the other is not.
    """
    only_guided, only_general, p = _discordant(guided, general)
    text = (
        f"Of {len(guided)} completions, {guided.sum() or 'none'} are right word for word if the "
        f"instruction names the dataset, and {general.sum() or 'none'} if it does not"
    )
    if p > ALPHA:
        return f"{text}. That is too small a difference to say whether the instruction matters."
    more = "more" if only_guided > only_general else "fewer"
    return (
        f"{text} (two-sided exact test: p = {format_p(p)}). So {more} rows are recited under the "
        "guided instruction."
    )


def _discordant(guided: pd.Series, general: pd.Series) -> tuple[int, int, float]:
    """In how many cases only the first is true, only the second, and p of McNemar's exact test."""
    only_guided, only_general = int((guided & ~general).sum()), int((general & ~guided).sum())
    return only_guided, only_general, mcnemar_p(only_guided, only_general)


def summarize_names(marks: pd.DataFrame) -> str:
    """In how many cases the rule judge finds matches with the dataset's name and without it.

    McNemar's exact test says whether the two numbers differ by more than chance.

    Args:
        marks: ``published_tables.replication_marks``.
    """
    rows = marks[marks["judge"].eq(RULE_JUDGE)]
    found = rows.assign(is_found=rows["mark"].ne(MARK_NONE))
    found = found.pivot(index=PARTITION, columns="instruction", values="is_found")
    text = (
        f"Our rule judge, which only counts shared words, calls {found['guided'].sum()} of "
        f"{len(found)} cases contaminated if the instruction names the dataset, and "
        f"{found['general'].sum() or 'none'} if it does not."
    )
    only_guided, only_general, p = _discordant(found["guided"], found["general"])
    if p > ALPHA:
        return f"{text} That is too small a difference to say whether the name matters."
    direction = "more" if only_guided > only_general else "fewer"
    n_apart, towards = only_guided + only_general, max(only_guided, only_general)
    how = "always" if towards == n_apart else f"in {towards} of them"
    return (
        f"{text} So {direction} cases are called contaminated under the guided instruction. The "
        f"decision differs in {n_apart} cases, {how} in this direction (exact test: "
        f"p = {format_p(p)})."
    )


def conclusion(
    success: pd.DataFrame, published: pd.DataFrame, agreement: pd.DataFrame, marks: pd.DataFrame
) -> str:
    """What the lesson concludes, in words that its tables choose.

    Args:
        success: ``published_tables.replication_success``.
        published: ``published_tables.replication_published``.
        agreement: ``published_tables.judge_agreement``.
        marks: ``published_tables.replication_marks``.
    """
    limits = (
        "Even the person does not know what the models were trained on. “Contaminated” only "
        "means that a model wrote one row exactly or two rows almost exactly, which is a reason to "
        "ask how it came to know them. Some of these matches may be good guesses: if a dataset "
        "asks whether one sentence implies another, a model can often infer the second sentence "
        "from the first. Conversely, a model may have been trained on a dataset even if the case "
        "is called clean."
    )
    parts = [_rows(marks), _decisions(success), _by_model(success), _completions(agreement)]
    parts += [summarize_tests(published), limits]
    return "\n\n".join(part for part in parts if part)


def _rows(marks: pd.DataFrame) -> str:
    """Whether the models wrote any rows word for word, and whether the name goes with it."""
    person = marks[marks["judge"].eq(PERSON)]
    n, n_exact, n_near = (int(person[column].sum()) for column in ("n", "n_exact", "n_near_exact"))
    of_model = person.groupby("model", sort=False)["n_exact"].sum()
    did, did_not = (of_model.index[kind].tolist() for kind in (of_model > 0, of_model == 0))
    wrote = []
    if did:
        wrote.append(f"{listed(did)} wrote some rows of the benchmarks word for word")
    if did_not:
        wrote.append(f"{listed(did_not)} wrote {'none' if did else 'no row word for word'}")
    return (
        f"{', and '.join(wrote)}. Under the guided instruction, the person calls "
        f"{n_exact or 'none'} of {n} completions an exact match and {n_near} of them a near-exact "
        f"match. {summarize_names(marks)}"
    )


def _decisions(success: pd.DataFrame) -> str:
    paper, clean = _of_paper(success)
    is_better = paper["verdict"].eq(SUPPORTED)
    counts = zip(_spoken(paper["algorithm"]), paper["n_right"], strict=True)
    names = pd.Series([f"{name} ({n_right})" for name, n_right in counts], index=paper.index)
    better, others = (listed(names[kind].tolist() or [""]) for kind in (is_better, ~is_better))
    text = (
        "Which of the paper's algorithms agrees with the person? Always answering “clean” does "
        f"so in {clean['n_right']} of {clean['n_partitions']} cases."
    )
    if not better:
        return f"{text} No algorithm of the paper is shown to do better than that: {others}."
    if others:
        are = "is" if is_better.sum() == 1 else "are"
        either = " or ".join(names[~is_better])
        text += f" Only {better} {are} shown to do better. We cannot show this for {either}."
    else:
        text += f" All algorithms of the paper are shown to do better: {better}."
    if is_better[paper["test"].eq("judge")].any():
        text += (
            " The comparison favours the judge: the same rule turns its labels and the "
            "person's into a decision, while Algorithm 1 decides in another way."
        )
    return text


def _by_model(success: pd.DataFrame) -> str:
    """For which models the judge is shown to beat the answer "clean", if for both at once."""
    judge = success[success["test"].eq("judge")].set_index("model")
    if judge.loc[BOTH_MODELS, "verdict"] != SUPPORTED:
        return ""
    without = [
        _of_model(str(model), row, _of_paper(success, str(model))[1]["n_right"])
        for model, row in judge.drop(index=BOTH_MODELS).iterrows()
        if row["verdict"] != SUPPORTED
    ]
    if not without:
        return "The judge is shown to do better on each model by itself, too."
    return f"The comparison also rests on few contaminated cases. {' '.join(without)}"


def _of_model(model: str, judge: pd.Series, n_clean: int) -> str:
    """For one model, how often the judge and the answer "clean" agree with the person."""
    n, n_right = judge["n_partitions"], judge["n_right"]
    clean = (
        "so does always answering “clean”"
        if n_clean == n_right
        else f"always answering “clean” in {n_clean}"
    )
    return (
        f"For {model} alone, the person calls {judge['n_contaminated']} of {n} cases contaminated. "
        f"The judge agrees with the person in {n_right} of the {n}, and {clean}."
    )


def _completions(agreement: pd.DataFrame) -> str:
    """Whether judge and person agree on single completions, not only on partitions."""
    (row,) = agreement.query("judge == @JUDGE and subset == 'all'").to_dict("records")
    if row["verdict"] == NOT_RUN:
        return "Too few completions are near-exact to compare judge and person one by one."
    interval = interval_text(100 * row["near_low"], 100 * row["near_high"], 0)
    facts = (
        f"The person calls {row['n_near']} completions near-exact, and the judge "
        f"{row['n_near_flagged']}. They agree on {row['n_near_found']} of them "
        f"({100 * row['near_agreement']:.0f} % of the larger number, 95 % interval {interval})."
    )
    if row["verdict"] == SUPPORTED:
        return f"The judge and the person agree on most of the near-exact completions. {facts}"
    if row["verdict"] == INCONCLUSIVE:
        return (
            "It remains open whether the judge and the person agree on most of the near-exact "
            f"completions. {facts}"
        )
    return f"The judge and the person disagree on most of the near-exact completions. {facts}"


# The lab

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


def lab_conclusion(
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
        f"We cannot tell whether the right name matters. {where} In these partitions, "
        f"{listed(kept)} of the gain."
    )
