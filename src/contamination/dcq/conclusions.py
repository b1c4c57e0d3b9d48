"""What the lesson and the lab on the Data Contamination Quiz conclude, worded by their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from contamination.core.tables import listed
from contamination.core.verdicts import INCONCLUSIVE, NOT_RUN, NOT_SUPPORTED, SUPPORTED
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.comparison import COVERAGE, MAXIMUM, QUARTER
from contamination.dcq.controls import N_OPTIONS, credits_of
from contamination.dcq.known_truth import RESPONDENT, UNSEEN, WITH_LABEL
from contamination.dcq.respondent_sweep import RANGE_READING

MODEL, FREQUENCY = "GPT-4", "word frequency"
PICKS = {
    FREQUENCY: "picks the text whose words are most common",
    "centrality": "picks the text that shares the most words with the others",
    "length": "picks the longest text",
}
COUNTED_AS = {
    MAXIMUM: "best letter, E is wrong",
    COVERAGE: "the rule skips as many quizzes as the model",
    QUARTER: "E counts as a quarter",
}
CHANCE_PCT = 100 // N_OPTIONS
SIDES = {"below": "below", "above": "above", "neither": "on no one side of"}
_WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


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


def predicted_verdicts(rules: pd.DataFrame, control: str = FREQUENCY, model: str = MODEL) -> str:
    """The answer to the prediction: on which datasets a rule does as well, and on which worse."""
    rows = rules[(rules["model"] == model) & (rules["control"] == control)]
    rows = rows.drop_duplicates("dataset")
    counts = []
    for verdict in (SUPPORTED, NOT_SUPPORTED, INCONCLUSIVE):
        names = rows.loc[rows["verdict"] == verdict, "dataset"].tolist()
        counts.append(f"{verdict} on {_word(len(names))}{_where(names)}")
    return f"Of {_word(len(rows))} datasets, the claim is {listed(counts)}."


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
    text = f"In your {_word(n)} quizzes, {best} is the best rule."
    if rules[best] > rules[FREQUENCY] and any(rewrites):
        text += (
            f" {FREQUENCY.capitalize()} finds fewer, because our program replaced words in both "
            f"directions: {sum(rewrites)} of its {len(rewrites)} rewrites have more common words "
            "than the original."
        )
    return text


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
        f"At its best letter, and averaged over {_word(len(of_model))} datasets, {model} finds "
        f"{found} % of the originals. The best rule, {best}, finds {number}."
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
        f"words of the four texts in {shares.mean():.0f} % of the quizzes (mean over {_word(n)} "
        f"datasets, from {shares.min():.0f} % on {shares.idxmin()} to {shares.max():.0f} % on "
        f"{shares.idxmax()}). If rewriting did not change how common the words are, this would be "
        f"about {CHANCE_PCT} %."
    )
    if n_above == n:
        return f"{text} So the rewrites by {MODEL} do tend to use rarer words."
    return f"{text} The share is higher than that on {_word(n_above)} of {_word(n)} datasets."


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


def moves_title(moves: pd.DataFrame) -> str:
    """Title of Figure 2: for how many panels answers move to the original and to nothing else."""
    asked = moves[moves["verdict"] != NOT_RUN]
    n_moved = int(asked["verdict"].eq(SUPPORTED).sum())
    return f"Answers follow the original in {n_moved} of {len(asked)} panels with a control"


def conclusion(levels: pd.DataFrame, rules: pd.DataFrame) -> str:
    """What the lesson concludes, in words that its tables choose.

    Args:
        levels: ``dcq_published``.
        rules: ``dcq_rules``, of which GPT-4 and any other models are compared with the rule that
            is chosen on the other datasets.
    """
    rows = _of_chosen_rule(rules, MODEL)
    n_behind = int(rows["verdict"].eq(NOT_SUPPORTED).sum())
    first = " ".join([_arithmetic(levels), _against_the_rule(rules)])
    parts = [first, _other_verdicts(rules), _meaning(n_behind, len(rows))]
    return "\n\n".join(filter(None, parts))


def _of_chosen_rule(rules: pd.DataFrame, model: str) -> pd.DataFrame:
    rows = rules[rules["chosen_on_others"] & (rules["model"] == model)]
    return rows.drop_duplicates("dataset")


def _word(n: int) -> str:
    return _WORDS[n] if n < len(_WORDS) else str(n)


def _where(datasets: list[str]) -> str:
    """Their names in parentheses, if there are few."""
    return f" ({listed(datasets)})" if 0 < len(datasets) <= 3 else ""


def _arithmetic(levels: pd.DataFrame) -> str:
    n_same, n = int(levels["matches"].sum()), len(levels)
    if n_same == n:
        return f"The paper's arithmetic is right: we reproduce the numbers of all {n} pairs."
    if n_same > n / 2:
        return (
            f"We reproduce the paper's numbers for {n_same} of {n} pairs of model and dataset, to "
            "the last printed digit."
        )
    return (
        f"We cannot confirm the paper's arithmetic: from the released answers we reproduce the "
        f"numbers for only {n_same} of {n} pairs of model and dataset."
    )


def _against_the_rule(rules: pd.DataFrame) -> str:
    """On which datasets each model beats the rule that the other datasets choose."""
    chosen = rules.loc[rules["chosen_on_others"], "control"].unique()
    picks = " or ".join(PICKS.get(name, f"follows the rule {name}") for name in chosen)
    parts = []
    for model in dict.fromkeys(rules["model"]):
        rows = _of_chosen_rule(rules, model)
        behind = rows.loc[rows["verdict"] == NOT_SUPPORTED, "dataset"].tolist()
        n_of = f"{_word(len(rows))} datasets{_where(behind)}"
        if behind:
            parts.append(f"{model} is shown to beat it on {_word(len(behind))} of {n_of}.")
        else:
            parts.append(f"{model} is not shown to beat it on any of {n_of}.")
    return (
        "What the levels mean is a different question, since a rule that never saw the data can "
        "take the same quizzes. A rule may be the best on a dataset by luck. So on each "
        f"dataset we use the rule that is best on the other datasets: the one that {picks}. "
        f"{' '.join(parts)}"
    )


def _other_verdicts(rules: pd.DataFrame) -> str:
    """What is known of the datasets on which no model beats the rule."""
    sentences = []
    for model in dict.fromkeys(rules["model"]):
        rows = _of_chosen_rule(rules, model)
        equal = rows.loc[rows["verdict"] == SUPPORTED, "dataset"].tolist()
        n_open = int(rows["verdict"].eq(INCONCLUSIVE).sum())
        n, where = f" of {_word(len(rows))} datasets", _word(len(equal))
        parts = []
        if equal:
            parts.append(
                f"the rule does as well, to within five points, on {where}{n}{_where(equal)}"
            )
        if n_open:
            number = _word(n_open) + ("" if equal else n)
            parts.append(f"the comparison is inconclusive on {number}")
        if parts:
            sentences.append(f"Against {model}, {', and '.join(parts)}.")
    return " ".join(sentences)


def _meaning(n_behind: int, n: int) -> str:
    if n_behind == n:
        return (
            f"So this rule does not explain what {MODEL} knows. Memory is one explanation, and a "
            "better rule is another."
        )
    if n_behind > n / 2:
        start = f"So on most datasets {MODEL} knows more than this rule, and memory may be why."
    elif n_behind:
        start = (
            f"So on most datasets the answers do not show that {MODEL} remembers anything, because "
            "a rule that never saw the data may do as well."
        )
    else:
        start = (
            f"So on no dataset do the answers show that {MODEL} remembers anything, because a rule "
            "that never saw the data may do as well."
        )
    if n_behind:
        start += (
            f" Where {MODEL} is ahead, it may remember the rows. But a better rule might do as "
            f"well, and {MODEL} may recognise its own style, because it wrote the rewrites."
        )
    return (
        f"{start} Even where the rule does as well, {MODEL} may have seen the dataset: the quiz "
        "just cannot show it. Before you believe a contamination level, ask how many originals a "
        "rule without memory finds in the same quizzes."
    )


def lab_conclusion(
    lab: pd.DataFrame,
    readings: pd.DataFrame,
    rises: pd.DataFrame,
    covered: pd.DataFrame,
    reciprocal: pd.DataFrame,
    beyond: pd.DataFrame,
) -> str:
    """What the lab concludes, three paragraphs in words that its tables choose.

    Args:
        lab, readings, reciprocal, beyond: ``dcq_lab``, ``dcq_readings``, ``dcq_reciprocal`` and
            ``dcq_beyond_rules``.
        rises: ``known_truth.dial_rises``.
        covered: bias_profile and covered_share (mean over the true shares, 0 to 1) where every
            contaminated instance is recognised.
    """
    paragraphs = [
        [_known_truth(lab, readings), _settings(readings)],
        [_dial(rises), _covered(covered)],
        [_replicas(reciprocal), _where_the_rule_fails(beyond)],
    ]
    return "\n\n".join(" ".join(sentences) for sentences in paragraphs)


def _known_truth(lab: pd.DataFrame, readings: pd.DataFrame) -> str:
    rows = lab[lab["respondent"] == RESPONDENT]
    most = rows["condition"].eq(WITH_LABEL) & rows["copies"].eq(rows["copies"].max())
    seen, unseen = rows[most], rows[rows["condition"] == UNSEEN]
    (side,) = readings.loc[readings["reading"] == RANGE_READING, ["stated", "verdict"]].itertuples()
    lies = f"For most sets of rows that were seen, the range lies {SIDES[side.stated]} the truth"
    if side.verdict == SUPPORTED:
        robust = "at every setting of the simulated respondent"
    else:
        robust = "but not so at every setting of the simulated respondent"
    return (
        f"{lies}, {robust}. With {seen['copies'].iloc[0]} copies of each row the true level is "
        f"{seen['true_contamination_pct'].mean():.0f} %. At the setting that we chose, the quiz "
        f"gives these rows a maximum of {seen['max_pct'].mean():.0f} %. Rows that the same models "
        f"never saw get {unseen['max_pct'].mean():.0f} %."
    )


def _settings(readings: pd.DataFrame) -> str:
    n_same, n = int(readings["verdict"].eq(SUPPORTED).sum()), len(readings)
    if n_same == n:
        return f"All {_word(n)} findings on these models are the same at every setting."
    verb = "is" if n_same == 1 else "are"
    if not n_same:
        return "No finding on these models is the same at every setting."
    return (
        f"Of {_word(n)} findings on these models, only {_word(n_same)} {verb} the same at every "
        "setting of the respondent. Do not transfer the others to a chat model."
    )


def _dial(rises: pd.DataFrame) -> str:
    raised = rises[rises["verdict"] == SUPPORTED]
    if raised.empty:
        return "We have not shown that natural paraphrases give the original away."
    return (
        "Natural paraphrases give the original away. With them, "
        f"{_word(len(raised))} of {_word(len(rises))} respondents that never saw a row find it "
        f"more often than with interchangeable ones, by up to {raised['rise_pct'].max():.0f} "
        "points."
    )


def _covered(covered: pd.DataFrame) -> str:
    shares = 100 * covered["covered_share"]
    n_good = int(shares.gt(50).sum())
    habits = "answer habit" if len(covered) == 1 else "answer habits"
    return (
        "The formula itself has a fault too. Even if the model recognises every row it saw, the "
        "range contains the true level in most partitions for only "
        f"{_word(n_good)} of {_word(len(covered))} {habits}."
        if n_good < len(covered)
        else "If the model recognises every row it saw, the range contains the true level in most "
        "partitions, for all answer habits that we tried."
    )


def _replicas(reciprocal: pd.DataFrame) -> str:
    counts = reciprocal["verdict"].value_counts()
    n_asked = int(reciprocal["n_replicas"].gt(0).sum())
    n_refuted = int(counts.get(NOT_SUPPORTED, 0))
    if n_refuted:
        return (
            "The paper says that every replicated row is also answered right in the quiz. This is "
            f"refuted for {_word(n_refuted)} of {_word(n_asked)} pairs of model and dataset."
        )
    return (
        "The paper says that every replicated row is also answered right in the quiz. This is "
        "refuted for no pair of model and dataset, and supported for "
        f"{_word(int(counts.get(SUPPORTED, 0)))} of {_word(n_asked)}."
    )


def _where_the_rule_fails(beyond: pd.DataFrame) -> str:
    rows = beyond[(beyond["model"] == MODEL) & (beyond["control"] == FREQUENCY)]
    rows = rows[rows["verdict"] != NOT_RUN]
    ahead = rows.loc[rows["verdict"] == SUPPORTED, "dataset"].tolist()
    start = f"On the quizzes that {FREQUENCY} gets wrong, {MODEL} is shown to beat"
    if not ahead:
        return f"{start} every other rule on no dataset."
    return (
        f"{start} every other rule on {_word(len(ahead))} of {_word(len(rows))} datasets"
        f"{_where(ahead)}. If you are looking for signs of {MODEL}'s memory, look there."
    )
