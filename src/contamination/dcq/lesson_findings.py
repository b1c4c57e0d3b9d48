"""What each table of the lesson on the quiz says, in sentences next to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from contamination.core.tables import listed
from contamination.core.verdicts import INCONCLUSIVE, NOT_SUPPORTED, SUPPORTED
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.comparison import COVERAGE, MAXIMUM, QUARTER
from contamination.dcq.controls import N_OPTIONS, credits_of

MODEL, FREQUENCY = "GPT-4", "word frequency"
COUNTED_AS = {
    MAXIMUM: "best letter, E is wrong",
    COVERAGE: "the rule skips as many quizzes as the model",
    QUARTER: "E counts as a quarter",
}
CHANCE_PCT = 100 // N_OPTIONS
WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def in_words(n: int) -> str:
    """A number up to ten as a word.

    >>> in_words(7), in_words(17)
    ('seven', '17')
    """
    return WORDS[n] if n < len(WORDS) else str(n)


def few_names(datasets: list[str]) -> str:
    """Their names in parentheses, if there are few."""
    return f" ({listed(datasets)})" if 0 < len(datasets) <= 3 else ""


def best_letter(instances: pd.DataFrame, dataset: str, model: str = MODEL) -> str:
    """What a best letter is, by an example: the shares of one model on one dataset.

    Args:
        instances: ``published.released_instances("DCQ")``.
    """
    rows = instances[instances["model"].eq(model) & instances["dataset"].eq(dataset)]
    asked = {p: rows[f"answer_at_{p.lower()}"] for p in POSITIONS}
    shares = {p: 100 * got.eq(p).mean() for p, got in asked.items() if got.ne("").any()}
    best = max(shares, key=lambda letter: shares[letter])
    found = listed([f"{share:.0f} % at {letter}" for letter, share in shares.items()])
    return (
        f"For example, of the originals in {dataset}, {model} finds {found}. So its best letter "
        f"there is {best}, and its result is {shares[best]:.0f} %."
    )


def averages(levels: pd.DataFrame, rule_levels: pd.DataFrame, model: str = MODEL) -> str:
    """Whether a model finds more originals than the best rule, averaged over its datasets.

    Args:
        levels: ``dcq_published``.
        rule_levels: ``controls.control_table``.
    """
    of_rules = rule_levels[rule_levels["model"] == model].groupby("control")["max_pct"].mean()
    of_model = levels.loc[levels["model"] == model, "max_pct"]
    best, rule, found = of_rules.idxmax(), round(of_rules.max()), round(of_model.mean())
    number = "as many" if rule == found else f"{'more' if rule > found else 'fewer'}, {rule} %"
    return (
        f"At its best letter, and averaged over {in_words(len(of_model))} datasets, {model} finds "
        f"{found} % of the originals. The best rule, {best}, finds {number}."
    )


def own_quizzes(n_right: Mapping[str, float], n: int, rewrites: Sequence[bool]) -> str:
    """How the rules did in the reader's own quizzes.

    Args:
        n_right: originals that each rule finds, keyed "rule: " and its name.
        n: number of quizzes.
        rewrites: for each rewrite, whether its words are more common than the original's.
    """
    rules = {
        name.removeprefix("rule: "): value
        for name, value in n_right.items()
        if name.startswith("rule: ")
    }
    best = max(rules, key=lambda name: rules[name])
    text = f"In your {in_words(n)} quizzes, {best} is the best rule."
    if rules[best] > rules[FREQUENCY] and any(rewrites):
        text += (
            f" {FREQUENCY.capitalize()} finds fewer, because our program replaced words in both "
            f"directions: {sum(rewrites)} of its {len(rewrites)} rewrites have more common words "
            "than the original."
        )
    return text


def lead_at_best_letter(
    levels: pd.DataFrame, rule_levels: pd.DataFrame, control: str = FREQUENCY, model: str = MODEL
) -> str:
    """On how many datasets a model's dot in the figure of levels is ahead of a rule's marker."""
    marks = rule_levels[rule_levels["model"].eq(model) & rule_levels["control"].eq(control)]
    dots = levels[levels["model"] == model].merge(marks, on="dataset", suffixes=("", "_of_rule"))
    n_ahead = int((dots["max_pct"] > dots["max_pct_of_rule"]).sum())
    return (
        f"{model}'s dot is ahead of {control} on {n_ahead} of {len(dots)} datasets. Part of this "
        "may be luck, so a test near the end of this lesson compares the two."
    )


def beside_a_level(
    levels: pd.DataFrame,
    rule_levels: pd.DataFrame,
    dataset: str,
    control: str = FREQUENCY,
    model: str = MODEL,
) -> str:
    """How many originals of one dataset a rule finds, next to the model's contamination level."""
    level, of_rule = (
        rows[rows["dataset"].eq(dataset) & rows["model"].eq(model)]
        for rows in (levels, rule_levels[rule_levels["control"] == control])
    )
    low, found, rule = level["min_pct"].item(), level["max_pct"].item(), of_rule["max_pct"].item()
    comparison = "as many as" if rule == found else f"{'more' if rule > found else 'fewer'} than"
    return (
        f"So the paper gives {model} a contamination level of {low:.1f} to {found:.1f} % on "
        f"{dataset}. The rule {control} has never seen a text from {dataset}. In the same quizzes, "
        f"it finds {rule:.0f} % of the originals, {comparison} {model}."
    )


def original_is_most_common(choices: pd.DataFrame) -> str:
    """In what share of the released quizzes the original has the most common words.

    Args:
        choices: ``published.rule_choices()``, which say which of the four texts that is.
    """
    rows = choices[choices["control"] == FREQUENCY]
    shares = 100 * credits_of(rows).groupby(rows["dataset"], sort=False).mean()
    n, n_above = len(shares), int(shares.gt(CHANCE_PCT).sum())
    text = (
        "This was one of our own quizzes. In the paper's quizzes, the original has the most common "
        f"words of the four texts in {shares.mean():.0f} % of the quizzes (mean over {in_words(n)} "
        f"datasets, from {shares.min():.0f} % on {shares.idxmin()} to {shares.max():.0f} % on "
        f"{shares.idxmax()}). If rewriting did not change how common the words are, this would be "
        f"about {CHANCE_PCT} %."
    )
    if n_above == n:
        return f"{text} So the rewrites by {MODEL} do tend to use rarer words."
    return f"{text} The share is higher than that on {in_words(n_above)} of {in_words(n)} datasets."


def predicted_verdicts(rules: pd.DataFrame, control: str = FREQUENCY, model: str = MODEL) -> str:
    """The answer to the prediction: on which datasets a rule does as well, and on which worse."""
    rows = rules[(rules["model"] == model) & (rules["control"] == control)]
    rows = rows.drop_duplicates("dataset")
    counts = []
    for verdict in (SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE):
        names = rows.loc[rows["verdict"] == verdict, "dataset"].tolist()
        counts.append(f"{verdict} on {in_words(len(names))}{few_names(names)}")
    return f"Of {in_words(len(rows))} datasets, the claim is {listed(counts)}."


def decided_by_answer_e(
    rules: pd.DataFrame, control: str = FREQUENCY, model: str = MODEL
) -> pd.DataFrame:
    """Where the figure of levels shows a rule ahead and the answer E leaves the verdict open.

    Args:
        rules: ``dcq_rules``. Of several datasets, the one with the largest lead is told.

    Returns:
        Rows of that dataset: at the best letter, and in the two ways that a verdict needs. No
        rows if there is no such dataset.
    """
    rows = rules[rules["control"].eq(control) & rules["model"].eq(model)]
    by_count = rows.pivot(index="dataset", columns="counted", values=["word", "difference_pct"])
    words, leads = by_count["word"], by_count["difference_pct"]
    is_example = words[QUARTER].eq(SUPPORTED) & words[COVERAGE].ne(SUPPORTED)
    found = leads.loc[is_example & leads[MAXIMUM].gt(0), MAXIMUM].astype(float)
    dataset = "" if found.empty else found.idxmax()
    of_dataset = rows[rows["dataset"] == dataset].set_index("counted")
    return of_dataset.reindex(COUNTED_AS if dataset else []).reset_index()


def example_of_answer_e(example: pd.DataFrame) -> str:
    """What the table of :func:`decided_by_answer_e` shows, "" without rows."""
    if example.empty:
        return ""
    at_best, skip, quarter = example.itertuples()
    n_none = 4 * (quarter.model_pct - skip.model_pct)  # a quarter of it is the difference
    return (
        f"On {skip.dataset}, the first figure shows the rule {at_best.difference_pct:.0f} points "
        f"ahead of {skip.model}, and yet the verdict is {skip.verdict}. The reason is that "
        f"{skip.model} answers {n_none:.0f} % of the quizzes with E. If each E counts as a "
        "quarter, the rule does at least as well. If the rule skips as many quizzes as "
        f"{skip.model} answers with E, that is not shown: the interval reaches below the margin of "
        "five points."
    )
