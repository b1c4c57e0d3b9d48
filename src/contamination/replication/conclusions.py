"""Titles, sentences and conclusions on replication, worded by their tables."""

from __future__ import annotations

import pandas as pd

from contamination.core.tables import interval_text, listed
from contamination.core.verdicts import CONTROL_FAILS, INCONCLUSIVE, NOT_RUN, SUPPORTED
from contamination.replication.algorithm2 import ERRORS_PCT, SIZES
from contamination.replication.decisions import ALGORITHM_2, DID_CHATGPT_CHEAT, OPTION_RANKING
from contamination.replication.published_tables import (
    BOTH_MODELS,
    PRINTED_TESTS,
    no_sign_flip_can_reject,
)

ALWAYS_CLEAN = "always clean"
JUDGE = "GPT-4 ICL"


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
        return "No algorithm is shown to beat the answer “clean”"
    if len(better) == len(paper):
        return "Every algorithm beats the answer “clean”"
    names = [name.removesuffix(f": {JUDGE}") for name in better["algorithm"]]
    verb = "is" if len(names) == 1 else "are"
    return f"Only {listed(names)} {verb} shown to beat the answer “clean”"


def summarize_decisions(success: pd.DataFrame) -> str:
    """How often each of the paper's algorithms decides as the person does, on both models."""
    paper, clean = _of_paper(success)
    counts = zip(_spoken(paper["algorithm"]), paper["n_right"], strict=True)
    return (
        f"Always answering “clean” agrees with the person on {clean['n_right']} of "
        f"{clean['n_partitions']} cases, "
        f"{listed([f'{name} on {n_right}' for name, n_right in counts])}."
    )


def summarize_tests(published: pd.DataFrame) -> str:
    """How many of the paper's asterisks an exact test and a correction leave."""
    columns = ["significant", "significant_sign_flip", "significant_sign_flip_holm"]
    bootstrap, exact, corrected = (int(published[column].sum()) for column in columns)
    n = len(published)
    text = (
        "By the paper's paired bootstrap, naming the dataset raises the overlap significantly in "
        f"{bootstrap} of the {n} tests of Algorithm 1"
    )
    if why := no_sign_flip_can_reject(published):
        return (
            f"{text}, and by an exact test of the same differences in {exact}. Once we correct "
            f"for {n} tests, the exact test could find none, even if the models remembered every "
            f"row: {why}."
        )
    if bootstrap == exact == corrected:
        return f"{text}, and by an exact test of the same differences in as many, corrected or not."
    return (
        f"{text}, and by an exact test of the same differences in {exact}. Of these, {corrected} "
        f"remain after a correction for {n} tests."
    )


def title_of_asterisks(by_test: pd.DataFrame) -> str:
    """What the choice of the test changes, among tests that could mark a row at all."""
    n_marked = by_test.loc[by_test["can_mark"], "n_marked"]
    if n_marked.min() == n_marked.max():
        return f"{n_marked.iloc[0]} asterisks under every test"
    return f"The choice of the test moves the asterisks from {n_marked.max()} to {n_marked.min()}"


def conclusion(success: pd.DataFrame, published: pd.DataFrame, agreement: pd.DataFrame) -> str:
    """What the lesson concludes, in words that its tables choose.

    Args:
        success: ``published_tables.replication_success``.
        published: ``published_tables.replication_published``.
        agreement: ``published_tables.judge_agreement``.
    """
    limits = (
        "The person does not know what the models were trained on, either. So *contaminated* means "
        "only that a model wrote down some rows, which is a reason to ask how it learned them. A "
        "case that is called clean may still be one of training."
    )
    of_judges = " ".join(filter(None, [_by_model(success), _completions(agreement)]))
    parts = [_decisions(success), of_judges, summarize_tests(published), limits]
    return "\n\n".join(part for part in parts if part)


def _decisions(success: pd.DataFrame) -> str:
    paper, clean = _of_paper(success)
    is_better = paper["verdict"].eq(SUPPORTED)
    counts = zip(_spoken(paper["algorithm"]), paper["n_right"], strict=True)
    names = pd.Series([f"{name} ({n_right})" for name, n_right in counts], index=paper.index)
    better, others = (listed(names[kind].tolist() or [""]) for kind in (is_better, ~is_better))
    models = [name for name in success["model"].unique() if name != BOTH_MODELS]
    text = (
        f"{listed(models)} were asked to complete the beginnings of benchmark rows. A person "
        f"graded the completions, and the grades say in which of {clean['n_partitions']} cases "
        "(one model, one split of a dataset) the model knows the rows. Algorithm 1 asks whether "
        "naming the dataset brings the completions closer to the original text, and Algorithm 2 "
        "asks a judge whether they match it. Always answering “clean” agrees with the person on "
        f"{clean['n_right']} cases."
    )
    if not better:
        return f"{text} No algorithm of the paper is shown to do better than that: {others}."
    if others:
        are = "is" if is_better.sum() == 1 else "are"
        text += f" Only {better} {are} shown to do better; we cannot show it for {others}."
    else:
        text += f" All algorithms of the paper are shown to do better: {better}."
    if is_better[paper["test"].eq("judge")].any():
        text += (
            " The comparison favours the judge, because we turn the person's grades into a "
            "decision by the judge's own rule."
        )
    return text


def _by_model(success: pd.DataFrame) -> str:
    """For which models the judge is shown to beat the answer "clean", if for both at once."""
    judge = success[success["test"].eq("judge")].set_index("model")
    if judge.loc[BOTH_MODELS, "verdict"] != SUPPORTED:
        return ""
    without = [
        f"for {model} alone, where the person finds {row['n_contaminated']} of "
        f"{row['n_partitions']} cases contaminated, the judge agrees on {row['n_right']} and "
        f"the answer “clean” on {_of_paper(success, str(model))[1]['n_right']}"
        for model, row in judge.drop(index=BOTH_MODELS).iterrows()
        if row["verdict"] != SUPPORTED
    ]
    if not without:
        return "That is true of each model by itself."
    return f"The comparison also rests on few contaminated cases: {listed(without)}."


def _completions(agreement: pd.DataFrame) -> str:
    """Whether judge and person agree on single completions, not only on partitions."""
    (row,) = agreement.query("judge == @JUDGE and subset == 'all'").to_dict("records")
    if row["verdict"] == NOT_RUN:
        return "Too few completions are near-exact to compare judge and person one by one."
    interval = interval_text(100 * row["near_low"], 100 * row["near_high"], 0)
    facts = (
        f"Of {row['n']} completions, the person calls {row['n_near']} a near-exact match with the "
        f"original, the judge {row['n_near_flagged']}, and both {row['n_near_found']} (a share of "
        f"{100 * row['near_agreement']:.0f} %, 95 % interval {interval})"
    )
    if row["verdict"] == SUPPORTED:
        return f"Judge and person also agree on most near-exact completions. {facts}."
    if row["verdict"] == INCONCLUSIVE:
        return f"{facts}. It remains open whether they agree on more than half of these matches."
    return f"On most near-exact matches judge and person disagree. {facts}."


# The lab

_EXPLAINED = {
    OPTION_RANKING: "option ranking (is the original likelier than its paraphrases?)",
    DID_CHATGPT_CHEAT: "“Did-ChatGPT-Cheat?” (can the model write the first rows?)",
}


def title_of_methods(methods: pd.DataFrame) -> str:
    """How many methods call the partitions contaminated that the model saw most often.

    Args:
        methods: ``decisions.method_verdicts``.
    """
    n, n_supported = len(methods), int(methods["verdict"].eq(SUPPORTED).sum())
    if n_supported == n:
        return f"All {n} methods notice the partitions that were seen most often"
    return f"{n_supported or 'None'} of {n} methods notice the partitions that were seen most often"


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


def lab_conclusion(methods: pd.DataFrame, placebos: pd.DataFrame, curves: pd.DataFrame) -> str:
    """What the lab concludes, in words that its tables choose.

    Args:
        methods: ``decisions.method_verdicts``.
        placebos: ``decisions.placebo_verdicts``.
        curves: ``algorithm2.operating_curves``.
    """
    few, many = _false_alarms(curves)
    grows = "grow with the number of instances" if many > few else "do not grow with the instances"
    alarms = (
        f"Finally, the false alarms of Algorithm 2's rule {grows}. If the judge errs on "
        f"{ERRORS_PCT[-1]:.0f} % of the completions, the chance that a clean partition is called "
        f"contaminated is {few:.0f} % at {SIZES[0]} instances and {many:.0f} % at {SIZES[-1]}."
    )
    return " ".join((_of_methods(methods), _of_placebos(placebos), alarms))


def _named(methods: pd.DataFrame) -> list[str]:
    """Methods of ``decisions.method_verdicts`` as a sentence calls them."""
    names = []
    for row in methods.itertuples():
        name = row.method.replace(", ROUGE-L, ", " by ").replace(", rule judge", "")
        if name == ALGORITHM_2:
            name = f"{name} on {row.instruction} completions"
        names.append(_EXPLAINED.get(name, name))
    return names


def _of_methods(methods: pd.DataFrame) -> str:
    text = (
        "We trained one small model, so we know which partitions it never saw and which it saw "
        "most often. Algorithm 1 compares completions with and without the name of the dataset, "
        "and Algorithm 2 counts completions that match the original. A method is useful if it "
        "calls the partitions that were seen most often contaminated more often than those that "
        "were never seen."
    )
    seen = methods[methods["verdict"].eq(SUPPORTED)].sort_values("seen_from", kind="stable")
    failing = methods[methods["verdict"].eq(CONTROL_FAILS)]
    others = methods[~methods["verdict"].isin([SUPPORTED, CONTROL_FAILS])]
    if seen.empty:
        return f"{text} No method of this lab is shown to do so."
    text += f" That is supported for {listed(_named(seen))}."
    if seen["seen_from"].notna().any():
        first = seen.iloc[0]
        times = "one copy" if first["seen_from"] == 1 else f"{first['seen_from']} copies"
        name = _named(seen)[0].split(" (")[0]
        text += (
            f" The fewest copies are needed by {name}, which notices at least half of the "
            f"partitions from {times} of each row on."
        )
    if len(others):
        text += f" It is not shown for {listed(_named(others))}."
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
    where = f"in {n} {'partition' if n == 1 else 'partitions'}"
    if verdicts == {SUPPORTED}:
        return (
            f"The right name matters. Where the completions with it beat those without a name "
            f"({where}), they also beat completions under a wrong name: {listed(kept)} of the gain."
        )
    if verdicts == {CONTROL_FAILS}:
        return (
            f"Naming the dataset helps little by itself. Where the completions with the right name "
            f"beat those without a name ({where}), a wrong name helps as well: {listed(kept)} of "
            "the gain. So at least half of the gain comes from the form of the prompt."
        )
    return (
        f"We cannot tell whether the right name matters. Where the completions with it beat those "
        f"without a name ({where}), {listed(kept)} of the gain."
    )
