"""What the lesson and the lab on the Data Contamination Quiz conclude, worded by their tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from contamination.core.claims import CLAIMS
from contamination.core.tables import interval_text, listed
from contamination.core.verdicts import INCONCLUSIVE, NOT_RUN, NOT_SUPPORTED, SUPPORTED, VERDICTS
from contamination.dcq.comparison import COVERAGE, MAXIMUM, QUARTER, WRONG
from contamination.dcq.known_truth import RESPONDENT, UNSEEN, WITH_LABEL
from contamination.dcq.respondent_sweep import RANGE_READING

MODEL, FREQUENCY = "GPT-4", "word frequency"
PICKS = {
    FREQUENCY: "picks the text whose words are most common",
    "centrality": "picks the text that shares the most words with the others",
    "length": "picks the longest text",
}
SIDES = {"below": "below", "above": "above", "neither": "on no one side of"}
_WORDS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def levels_title(
    levels: pd.DataFrame, rule_levels: pd.DataFrame, rules: pd.DataFrame, model: str = MODEL
) -> str:
    """Title of the figure of levels: on how many datasets a model's dot is ahead of the rule's."""
    chosen = _of_chosen_rule(rules, model)
    n_right = _n_ahead(levels, rule_levels, chosen)
    names = " or ".join(chosen["control"].unique())
    return f"{model} is ahead of {names} on {n_right} of {len(chosen)} datasets, before any test"


def _n_ahead(levels: pd.DataFrame, rule_levels: pd.DataFrame, chosen: pd.DataFrame) -> int:
    """On how many datasets a model finds more originals at its best letter than the chosen rule."""
    keys = ["model", "dataset"]
    marks = chosen.merge(rule_levels, on=[*keys, "control"], suffixes=("", "_of_rule"))
    dots = marks[[*keys, "max_pct"]].merge(levels, on=keys, suffixes=("_of_rule", ""))
    return int((dots["max_pct"] > dots["max_pct_of_rule"]).sum())


def differences_title(rules: pd.DataFrame, control: str = FREQUENCY, model: str = MODEL) -> str:
    """Title of the figure of differences: on how many datasets a rule keeps up with a model."""
    rows = rules[(rules["model"] == model) & (rules["control"] == control)]
    verdicts = rows.drop_duplicates("dataset")["verdict"]
    n_level, n_behind = (int(verdicts.eq(word).sum()) for word in (SUPPORTED, NOT_SUPPORTED))
    return (
        f"{control.capitalize()} is shown to keep up with {model}\n"
        f"on {n_level} of {len(verdicts)} datasets, and to be behind on {n_behind}"
    )


def own_quizzes(n_right: Mapping[str, float], n: int) -> str:
    """How the rules did in the reader's own quizzes, from the right answers of each."""
    rules = {
        name.removeprefix("rule: "): value
        for name, value in n_right.items()
        if name.startswith("rule: ")
    }
    best = max(rules, key=lambda name: rules[name])
    frequency = (
        "" if best == FREQUENCY else f" {FREQUENCY.capitalize()} finds {rules[FREQUENCY]:g}."
    )
    return (
        f"In your {_word(n)} quizzes, {best} is the best rule and finds {rules[best]:g} originals."
        f"{frequency} {_word(n).capitalize()} quizzes are few, so look at the paper's quizzes."
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
        f"At its best letter, and averaged over {_word(len(of_model))} benchmarks, {model} finds "
        f"{found} % of the originals. The best rule, {best}, finds {number}."
    )


def usual_verdict(rules: pd.DataFrame, control: str = FREQUENCY, model: str = MODEL) -> str:
    """Which verdict a rule gets on most datasets against a model, from ``dcq_rules``."""
    rows = rules[(rules["model"] == model) & (rules["control"] == control)]
    counts = rows.drop_duplicates("dataset")["verdict"].value_counts()
    names = [name for name in VERDICTS if counts.get(name) == counts.max()]
    noun = "verdict is" if len(names) == 1 else "verdicts are"
    each = "" if len(names) == 1 else " each"
    n_of = f"{_word(int(counts.max()))} of {_word(int(counts.sum()))} datasets{each}"
    return f"For {control} against {model}, the most common {noun} {listed(names)} ({n_of})."


def example_of_test(rules: pd.DataFrame, control: str = FREQUENCY) -> str:
    """The test in numbers: a model's lead at its best letter that is not shown, "" without one.

    Args:
        rules: ``dcq_rules``. Of several leads, the largest is told.
    """
    rows = rules[rules["control"].eq(control) & rules["verdict"].eq(INCONCLUSIVE)]
    by_count = rows.set_index(["model", "dataset", "counted"])
    at_best = rows[rows["counted"] == MAXIMUM].set_index(["model", "dataset"])["difference_pct"]
    if not (at_best < 0).any():
        return ""
    model, dataset = at_best.idxmin()
    best, mean, skip, quarter = (
        by_count.loc[(model, dataset, counted)] for counted in (MAXIMUM, WRONG, COVERAGE, QUARTER)
    )
    ends = [interval_text(row["ci_low_pct"], row["ci_high_pct"]) for row in (skip, quarter)]
    return (
        f"An example is {model} on {dataset}. At the best letter, {model} finds "
        f"{best['model_pct']:.0f} % of the originals and the rule {best['rule_pct']:.0f} %. "
        f"Averaged over the letters, {model} finds {mean['model_pct']:.0f} % and the rule "
        f"{mean['rule_pct']:.0f} %. If the rule skips as many quizzes as {model}, it finds "
        f"{skip['rule_pct']:.0f} %, and rule minus model is {skip['difference_pct']:.1f} points "
        f"{ends[0]}. If each E counts as a quarter, {model} finds {quarter['model_pct']:.0f} %, "
        f"and the difference is {quarter['difference_pct']:.1f} points {ends[1]}. The lead at the "
        "best letter is not shown to be more than luck or a habit, and the verdict is inconclusive."
    )


def example_of_answer_e(rules: pd.DataFrame, control: str = FREQUENCY, model: str = MODEL) -> str:
    """Where the figure shows a rule ahead and the answer E leaves the verdict open, "" if nowhere.

    Args:
        rules: ``dcq_rules``. Of several datasets, the one with the largest lead is named.
    """
    rows = rules[rules["control"].eq(control) & rules["model"].eq(model)]
    by_count = rows.pivot(index="dataset", columns="counted", values=["word", "difference_pct"])
    words, leads = by_count["word"], by_count["difference_pct"]
    is_example = words[QUARTER].eq(SUPPORTED) & words[COVERAGE].ne(SUPPORTED)
    found = leads.loc[is_example & leads[MAXIMUM].gt(0), MAXIMUM].astype(float)
    if found.empty:
        return ""
    dataset = found.idxmax()
    same = rows[rows["dataset"].eq(dataset) & rows["counted"].eq(COVERAGE)].iloc[0]
    interval = interval_text(same["ci_low_pct"], same["ci_high_pct"])
    return (
        f"On {dataset}, the first figure shows the rule {found[dataset]:.0f} points ahead of "
        f"{model}, and yet the verdict is inconclusive. The reason is the answer E, which the "
        "first figure counts as wrong. If the rule may skip as many quizzes as "
        f"{model} answered with E, the difference is {same['difference_pct']:.1f} points "
        f"(95 % interval {interval}). If each E counts as a quarter of a right answer, the rule is "
        f"{leads.loc[dataset, QUARTER]:.1f} points ahead. So the two ways disagree."
    )


def example_of_correction(rules: pd.DataFrame, control: str = FREQUENCY, model: str = MODEL) -> str:
    """Where both intervals lie on one side and many tests leave the verdict open, "" if nowhere."""
    rows = rules[rules["control"].eq(control) & rules["model"].eq(model)]
    rows = rows[rows["counted"].isin([QUARTER, COVERAGE]) & rows["verdict"].eq(INCONCLUSIVE)]
    ends = rows.groupby("dataset", sort=False).agg({"ci_low_pct": "min", "ci_high_pct": "max"})
    margin = CLAIMS["dcq_rules"].null
    parts = []
    if ahead := ends.index[ends["ci_low_pct"] > margin].tolist():
        parts.append(f"On {listed(ahead)}, both intervals lie to the right of the dashed line.")
    if behind := ends.index[ends["ci_high_pct"] < 0].tolist():
        parts.append(f"On {listed(behind)}, both lie to the left of zero.")
    if not parts:
        return ""
    return " ".join(parts) + (
        " And yet these verdicts are inconclusive: the figure shows many intervals, and some may "
        "miss the truth by chance. The test corrects for this."
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
        "take the same quizzes. On each dataset we use the rule that is best on the other "
        f"datasets. The chosen rule {picks}. {' '.join(parts)}"
    )


def _other_verdicts(rules: pd.DataFrame) -> str:
    """What is known of the datasets on which no model beats the rule."""
    sentences = []
    for model in dict.fromkeys(rules["model"]):
        rows = _of_chosen_rule(rules, model)
        equal = rows.loc[rows["verdict"] == SUPPORTED, "dataset"].tolist()
        n_open = int(rows["verdict"].eq(INCONCLUSIVE).sum())
        n, where = f" of {_word(len(rows))} datasets", _word(len(equal))
        parts = [f"the rule does at least as well on {where}{n}{_where(equal)}"] if equal else []
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
            f" Where {MODEL} is ahead, a better rule or the style of the paraphrases, which "
            f"{MODEL} wrote, might also explain its lead."
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
