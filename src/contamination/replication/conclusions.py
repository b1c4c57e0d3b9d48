"""Titles, sentences and conclusions on replication, worded by their tables."""

from __future__ import annotations

import pandas as pd

from contamination.core.statistics import mcnemar_p
from contamination.core.tables import interval_text, listed, p_text
from contamination.core.verdicts import ALPHA, INCONCLUSIVE, NOT_RUN, SUPPORTED
from contamination.replication.algorithm1 import PARTITION
from contamination.replication.algorithm2 import MARK_NONE
from contamination.replication.asterisks import summarize_tests
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
        f"{text} (two-sided exact test: {p_text(p)}). So {more} rows are recited under the "
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
        f"{p_text(p)})."
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
