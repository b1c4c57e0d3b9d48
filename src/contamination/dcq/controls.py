"""Rules that take the quizzes without any memory, and whether they do as well as a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.overlap import normalised, word_overlap, words
from contamination.core.statistics import (
    correct_family,
    end_p,
    holm,
    percentile_interval,
    share_interval,
)
from contamination.core.verdicts import (
    CLAIMS,
    FOUND,
    NOT_RUN,
    OPEN,
    RULED_OUT,
    SHOWN,
    SMALL,
    strongest,
)
from contamination.dcq.assessment import (
    POSITIONS,
    assess,
    levels_of_counts,
    resample_counts,
    standard_answers_of,
    usable_positions,
)
from contamination.dcq.quizzes import OPTION_COLUMNS

N_OPTIONS = len(OPTION_COLUMNS)
Rule = Callable[[Sequence[str]], np.ndarray]


def centrality(options: Sequence[str]) -> np.ndarray:
    """Mean word overlap of each option with the others, shape (n_options,), 0 to 1."""
    overlap = np.array([[word_overlap(a, b) for b in options] for a in options])
    np.fill_diagonal(overlap, 0)
    return overlap.sum(axis=1) / (len(options) - 1)


def word_frequency(options: Sequence[str]) -> np.ndarray:
    """Mean Zipf frequency of each option's words in general English, shape (n_options,).

    From the ``wordfreq`` package, never from the quizzed instances. Zipf = log10
    of occurrences per billion words; unknown words count 0.
    """
    from wordfreq import zipf_frequency

    return np.array([np.mean([zipf_frequency(w, "en") for w in words(o)] or [0]) for o in options])


def length(options: Sequence[str]) -> np.ndarray:
    """Number of words of each option, shape (n_options,): a rewriter may drop some."""
    return np.array([len(words(option)) for option in options], dtype=float)


RULES: dict[str, Rule] = {
    "centrality": centrality,
    "word frequency": word_frequency,
    "length": length,
}


def pick_letters(scores: np.ndarray) -> tuple[str, float]:
    """Letters of the highest score of the texts at A to D ("BD" for a tie), and its margin.

    The margin to the next score is in units of the score, 0 for a tie.
    """
    best = np.isclose(scores, scores.max())
    letters = "".join(letter for letter, is_best in zip(POSITIONS, best, strict=True) if is_best)
    return letters, float(scores.max() - scores[~best].max()) if best.sum() == 1 else 0.0


def quiz_texts(quiz: pd.Series, position: str) -> tuple[list[str], int]:
    """The four texts of a standard quiz with the original at one position, and its place.

    Where option_d already is the original (the seven "wild" datasets) the four
    released options are the quiz, at every position.
    """
    options = [quiz[column] for column in OPTION_COLUMNS]
    if options[-1] == quiz["instance"] or normalised(options[-1]) == normalised(quiz["instance"]):
        return options, N_OPTIONS - 1
    place = POSITIONS.index(position)
    return [*options[:place], quiz["instance"], *options[place + 1 :]], place


def chance_of_best(n: int, n_quizzes: int) -> float:
    """Expected best share of random guessers over several quizzes of n questions.

    Exact for independent guesses.
    """
    counts = np.arange(n + 1)
    below = stats.binom.cdf(counts, n, 1 / N_OPTIONS) ** n_quizzes
    return float((1 - below[:-1]).sum() / n)


def rule_choices(
    quizzes: pd.DataFrame,
    rules: Mapping[str, Rule] = RULES,
    positions: Sequence[str] = POSITIONS,
) -> pd.DataFrame:
    """What each rule takes in each quiz: letters and margins, no text.

    ``positions`` are where the original is put; a dataset whose option D already is the
    original has one quiz for each instance, with it at D.

    Returns:
        dataset, index, position (of the original), control, choice (its letter,
        several where they tie), margin (over the next option, units of the rule).
    """
    rows = []
    for dataset, of_dataset in quizzes.groupby("dataset", sort=False):
        records = [quiz for _, quiz in of_dataset.iterrows()]
        is_fixed = all(quiz_texts(quiz, POSITIONS[0])[1] for quiz in records)
        for quiz in records:
            for position in POSITIONS[-1:] if is_fixed else positions:
                texts, _ = quiz_texts(quiz, position)
                rows += [
                    (dataset, quiz["index"], position, name, *pick_letters(rule(texts)))
                    for name, rule in rules.items()
                ]
    columns = ["dataset", "index", "position", "control", "choice", "margin"]
    return pd.DataFrame(rows, columns=columns)


def credits_of(choices: pd.DataFrame) -> pd.Series:
    """Chance that each choice is the original, 0 to 1: ties are drawn by lot."""
    pairs = zip(choices["position"], choices["choice"], strict=True)
    found = [(position in choice) / len(choice) for position, choice in pairs]
    return pd.Series(found, choices.index, dtype=float)


def by_position(of_rule: pd.DataFrame, column: str, positions: Sequence[str]) -> np.ndarray:
    """A column of one rule's choices on one dataset, shape (n_positions, n_instances).

    Where the original's place is fixed, its one quiz stands for every position.
    """
    wide = of_rule.pivot(index="index", columns="position", values=column)
    wide = wide.loc[of_rule["index"].unique()]
    if len(wide.columns) == 1:
        return np.repeat(wide.to_numpy().T, len(positions), axis=0)
    return wide[list(positions)].to_numpy().T


def control_table(choices: pd.DataFrame, levels: pd.DataFrame) -> pd.DataFrame:
    """``dcq_controls.csv``: every rule on every dataset next to every model's level.

    Where the original's place is free (three datasets), the rules take one quiz
    per position that the model was quizzed at, and the best of them counts.
    Which rule does as well is decided in ``dcq.controls``. Of ``levels``
    (``dcq_published``) paper_max_pct and difference_pct (rule minus model, points) come.
    """
    rows = []
    choices = choices.assign(credit=credits_of(choices))
    for (dataset, name), of_rule in choices.groupby(["dataset", "control"], sort=False):
        is_fixed = len(of_rule["position"].unique()) == 1
        for model in levels[levels["dataset"] == dataset].itertuples():
            positions = POSITIONS[-1:] if is_fixed else tuple(model.least_preferred) or POSITIONS
            row = {"dataset": dataset, "control": name}
            row |= _control_level(by_position(of_rule, "credit", positions))
            row |= {"model": model.model, "paper_max_pct": model.max_pct}
            rows.append(row | {"difference_pct": row["max_pct"] - model.max_pct})
    return pd.DataFrame(rows)


def _control_level(credits_of_rule: np.ndarray) -> dict[str, float | int]:
    n_quizzes, n = credits_of_rule.shape
    share = float(credits_of_rule.mean(axis=1).max())
    low, high = share_interval(round(share * n), n)
    return {
        "n": n,
        "n_quizzes": n_quizzes,
        "chance_pct": 100 * chance_of_best(n, n_quizzes),
        "max_pct": 100 * share,
        "ci_low_pct": 100 * low,
        "ci_high_pct": 100 * high,
    }


def audit_options(quizzes: pd.DataFrame) -> pd.DataFrame:
    """What the released options give away before any model is asked, one row per dataset.

    n_line_breaks_alone counts rows where the original's number of line breaks
    differs from that of every perturbation while those agree.
    """
    plain = quizzes[list(OPTION_COLUMNS)].map(normalised)
    texts = quizzes[["instance", *OPTION_COLUMNS]]
    n_breaks = texts.map(lambda text: text.strip().count("\n"))
    n_breaks, n_of_original = n_breaks.drop(columns="instance"), n_breaks["instance"]
    is_other = n_breaks.ne(n_of_original, axis=0).all(axis=1)
    rows = pd.DataFrame(
        {
            "dataset": quizzes["dataset"],
            "n": 1,
            "n_option_d_is_original": plain["option_d"].eq(quizzes["instance"].map(normalised)),
            "n_repeated_options": plain.nunique(axis=1).lt(N_OPTIONS),
            "n_line_breaks_alone": is_other & n_breaks.nunique(axis=1).eq(1),
        }
    )
    return rows.groupby("dataset", sort=False).sum().astype(int).reset_index()


WRONG, COVERAGE, QUARTER = "E wrong", "equal coverage", "E a quarter"
MAXIMUM = "maximum, E wrong"
COUNTS = (WRONG, COVERAGE, QUARTER, MAXIMUM)
CLAIMED_BY = (COVERAGE, QUARTER)  # a claim needs both
RULES_CLAIM, BEYOND_CLAIM = CLAIMS["dcq_rules"], CLAIMS["dcq_beyond_rules"]
ALPHA = 0.025  # one-sided
FEWEST_QUIZZES = 10  # quizzes a rule gets wrong, below which nothing is said of them


@dataclass(frozen=True)
class Answers:
    """What one model answered on one partition, n instances in the order of ``index``.

    ``positions`` are the least preferred, or all of A to D where there is none;
    ``is_right`` and ``is_none`` (E) hold for these, shape (n_positions, n). ``bias`` says
    which of A to D the modified quiz took, ``right`` where the original at A to D was
    found (0 where not asked), shape (n, 4).
    """

    model: str
    dataset: str
    index: np.ndarray
    positions: tuple[str, ...]
    is_right: np.ndarray
    is_none: np.ndarray
    bias: np.ndarray
    right: np.ndarray

    @property
    def n(self) -> int:
        """The number of instances."""
        return len(self.index)

    @property
    def was_quizzed(self) -> np.ndarray:
        """For each of A to D whether the original stood there in a quiz, booleans of shape (4,)."""
        return np.array([position in self.positions for position in POSITIONS])

    def weights(self, n_resamples: int, seed: int) -> np.ndarray:
        """How often each instance counts: once in the data itself, then in each resample."""
        return np.vstack([np.ones(self.n), *resample_counts(self.n, n_resamples, seed)])


def answers_of(instances: pd.DataFrame) -> Answers:
    """Answers of one model on one partition, from rows of ``published.released_instances``."""
    modified, standard = instances["modified_answer"], standard_answers_of(instances)
    positions = assess(modified.tolist(), standard).least_preferred or POSITIONS
    at = {position: np.array(standard[position]) for position in positions}
    none = np.zeros(len(instances))
    return Answers(
        model=instances["model"].iloc[0],
        dataset=instances["dataset"].iloc[0],
        index=instances["index"].to_numpy(),
        positions=positions,
        is_right=np.array([at[p] == p for p in positions], float),
        is_none=np.array([at[p] == "E" for p in positions], float),
        bias=np.array([modified == p for p in POSITIONS], float).T,
        right=np.array([at[p] == p if p in at else none for p in POSITIONS], float).T,
    )


def compare_rules(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """``dcq_rules.csv``: every rule against every model, E counted in each way.

    With fewer resamples than about 40 x the number of comparisons no adjusted p value
    can be small enough, and every verdict is open. The corrected interval is then
    unbounded.

    Args:
        choices: of ``controls.rule_choices``.
        instances: ``published.released_instances("DCQ")``.

    Returns:
        Among others chosen_on_others (this rule has most right answers on the other
        datasets, no model asked), counted (how E counts; "maximum, E wrong" is the
        paper's maximum for both, whose bootstrap selects positions and best quiz
        anew), difference_pct (rule minus model, points), adjusted p values (p_as_well: of a
        rule at most five points below the model), word: the verdict of this count, and
        verdict: what equal coverage and E at a quarter both say, else open. From
        corrected_low_pct to corrected_high_pct is the interval of :func:`corrected_interval`.
    """
    chosen, rows, resampled = rule_chosen_on_others(choices), [], []
    choices = choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        weights = answers.weights(n_resamples, seed)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        for control, of_rule in of_dataset.groupby("control", sort=False):
            credit, margin = (_of_rule(answers, of_rule, name) for name in ("credit", "margin"))
            row = {"model": answers.model, "dataset": answers.dataset, "control": control}
            row["chosen_on_others"] = chosen[answers.dataset] == control
            for counted in COUNTS:
                levels = 100 * _levels(weights, answers, credit, margin, counted)
                row |= {"counted": counted, "n": answers.n, "n_positions": len(answers.positions)}
                rows.append(row | _difference(*levels))
                resampled.append((levels[0] - levels[1])[1:])
    table = _with_corrected_intervals(pd.DataFrame(rows), resampled)
    table["word"] = [word_of(row) for row in table.itertuples()]
    keys = ["model", "dataset", "control"]
    claims = table[table["counted"].isin(CLAIMED_BY)].groupby(keys)["word"].agg(verdict_of)
    return table.merge(claims.rename("verdict").reset_index(), on=keys, how="left")


def rule_chosen_on_others(choices: pd.DataFrame) -> dict[str, str]:
    """The rule that does best on all other datasets, by dataset; "" where there is no other."""
    shares = credits_of(choices).groupby([choices["dataset"], choices["control"]], sort=False)
    shares = shares.mean().unstack(sort=False)
    if len(shares) == 1:
        return {shares.index[0]: ""}
    return {dataset: shares.drop(index=dataset).mean().idxmax() for dataset in shares.index}


def _of_rule(answers: Answers, of_rule: pd.DataFrame, column: str) -> np.ndarray:
    if not np.array_equal(of_rule["index"].unique(), answers.index):
        raise ValueError(
            f"a rule has no choice for some instances of {answers.dataset}: make it choose again"
        )
    return by_position(of_rule, column, answers.positions)


def _levels(
    weights: np.ndarray, answers: Answers, credit: np.ndarray, margin: np.ndarray, counted: str
) -> np.ndarray:
    """Shares of rule and model in each sample, shape (2, n_samples), 0 to 1."""
    if counted == MAXIMUM:
        return _maxima(weights, answers, credit)
    rule, model = weights @ credit.T, weights @ answers.is_right.T
    n_none = weights @ answers.is_none.T
    if counted == QUARTER:
        model = model + n_none / 4
    if counted == COVERAGE:
        columns = zip(credit, margin, n_none.T, strict=True)
        rule = np.column_stack([_right_at_coverage(weights, *column) for column in columns])
    return np.array([rule.mean(axis=1), model.mean(axis=1)]) / answers.n


def _right_at_coverage(
    weights: np.ndarray, credit: np.ndarray, margin: np.ndarray, n_none: np.ndarray
) -> np.ndarray:
    """Right answers of a rule that leaves out ``n_none`` quizzes, smallest margin first.

    Quizzes of one margin are left out in equal parts. Shape (n_samples,).
    """
    order = np.argsort(margin, kind="stable")
    starts = np.unique(margin[order].round(9), return_index=True)[1]
    n_quizzes = np.add.reduceat(weights[:, order], starts, axis=1)
    n_right = np.add.reduceat((weights * credit)[:, order], starts, axis=1)
    before = np.cumsum(n_quizzes, axis=1) - n_quizzes
    left_out = np.clip(n_none[:, None] - before, 0, n_quizzes)
    return (n_right * (1 - left_out / np.maximum(n_quizzes, 1))).sum(axis=1)


def _maxima(weights: np.ndarray, answers: Answers, credit: np.ndarray) -> np.ndarray:
    bias, right = weights @ answers.bias, weights @ answers.right
    model = levels_of_counts(bias, right, answers.n, answers.was_quizzed).maximum
    usable = usable_positions(bias, answers.n, answers.was_quizzed)
    rule = np.full(usable.shape, -np.inf)
    rule[:, answers.was_quizzed] = weights @ credit.T / answers.n
    rule = np.where(usable, rule, -np.inf).max(axis=1)
    return np.array([np.where(np.isfinite(rule), rule, np.nan), model])


def _difference(rule: np.ndarray, model: np.ndarray) -> dict[str, float]:
    """Point values, interval and one-sided p values; the first sample is the data itself."""
    differences = (rule - model)[1:]
    low, high = percentile_interval(differences)
    return {
        "rule_pct": rule[0],
        "model_pct": model[0],
        "difference_pct": rule[0] - model[0],
        "ci_low_pct": low,
        "ci_high_pct": high,
        "p_better": _p_above(differences, 0),
        "p_as_well": _p_above(differences, -RULES_CLAIM.smallest_effect),
        "p_worse": _p_above(-differences, 0),
    }


def _p_above(values: np.ndarray, bound: float) -> float:
    values = values[~np.isnan(values)]
    return float((1 + (values <= bound + 1e-9).sum()) / (1 + values.size))


def _with_corrected_intervals(table: pd.DataFrame, resampled: Sequence[np.ndarray]) -> pd.DataFrame:
    """The table with adjusted p values, and with the intervals that lead to the same words."""
    p_values = ["p_better", "p_as_well", "p_worse"]
    table[p_values] = table.groupby("counted")[p_values].transform(holm)
    is_left = table[p_values].gt(ALPHA)
    n_left = is_left.groupby(table["counted"]).transform("sum")
    n_left = zip(resampled, n_left["p_as_well"], n_left["p_worse"], strict=True)
    ends = [corrected_interval(*one) for one in n_left]
    table[["corrected_low_pct", "corrected_high_pct"]] = ends
    return table


def corrected_interval(
    differences: np.ndarray, n_as_well: int, n_worse: int
) -> tuple[float, float]:
    """Interval that excludes a value exactly where Holm's corrected test of a row does.

    Holm's correction rejects the rows whose p value is at most ``ALPHA`` divided by the number of
    rows that it does not reject. So each end is the resample at that level.

    Args:
        differences: of each resample, points; undefined ones are left out.
        n_as_well, n_worse: rows that the two tests, of the lower and the upper end, do not reject.

    Returns:
        The ends, -100 or 100 points where there are too few resamples for an end.
    """
    values = np.sort(differences[~np.isnan(differences)])
    n_below, n_above = (
        int(ALPHA / max(1, n) * (1 + values.size) + 1e-9) for n in (n_as_well, n_worse)
    )
    low = float(values[n_below - 1]) if n_below else -100.0
    return low, float(values[-n_above]) if n_above else 100.0


def word_of(row: Any) -> str:
    """The verdict of one count: is the model ahead of the rule?

    The interval is the rule's share minus the model's. That the model is less than five points
    ahead needs the adjusted p value of a test of its own.
    """
    ends = -row.ci_high_pct, -row.ci_low_pct
    word = RULES_CLAIM.verdict(*ends, p_adjusted=min(1.0, 2 * row.p_worse))
    if row.p_as_well <= ALPHA:
        return word
    return {SMALL: SHOWN, RULED_OUT: OPEN}.get(word, word)


def verdict_of(words: pd.Series) -> str:
    """What every count says, else open; shown where both counts show it and one of them little."""
    if set(words) == {*FOUND}:
        return SHOWN
    return words.iloc[0] if len(set(words)) == 1 else OPEN


def beyond_rules(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """``dcq_beyond_rules.csv``: is a model right where a rule is right, and where it fails?

    All shares are over the model's least preferred positions. On the quizzes that
    a rule gets wrong chance is not known, so the model is held against every
    other rule on the same quizzes. E counts as wrong, which is hard on the model.

    Args:
        choices: of ``controls.rule_choices``; may also hold models without memory.
        instances: ``published.released_instances("DCQ")``.

    Returns:
        Numbers n_... are means over quizzes; a tie of the rule counts in both by its
        chance. strongest_other is right most often where the rule is wrong;
        difference_pct is the model minus it, points; p_more (than every other rule)
        and p_less (than one of them) are one-sided, adjusted by Holm over all rows.
        verdict: whether the model is right more often than every other rule there, and note:
        why this was not asked.
    """
    rows, choices = [], choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        weights = answers.weights(n_resamples, seed)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        credit = {
            name: _of_rule(answers, of_rule, "credit")
            for name, of_rule in of_dataset.groupby("control", sort=False)
        }
        rows += [
            _where_right(answers, credit[name], name) | _where_wrong(weights, answers, credit, name)
            for name in credit
        ]
    table = pd.DataFrame(rows)
    p_values = ["p_more", "p_less"]
    table[p_values] = table[p_values].apply(holm)
    table["verdict"] = [_beyond(row) for row in table.itertuples()]
    note = f"fewer than {FEWEST_QUIZZES} quizzes that the rule gets wrong"
    return table.assign(note=np.where(table["verdict"].eq(NOT_RUN), note, ""))


def _where_right(answers: Answers, credit: np.ndarray, control: str) -> dict:
    return {
        "model": answers.model,
        "dataset": answers.dataset,
        "control": control,
        "n": answers.n,
        "n_answered_none": answers.is_none.sum(axis=1).mean(),
        "max_pct": 100 * answers.is_right.mean(axis=1).max(),
        "right_when_chosen_pct": share_pct(answers.is_right, 1 - answers.is_none),
        "n_rule_right": credit.sum(axis=1).mean(),
        "right_where_rule_right_pct": share_pct(answers.is_right, credit),
        "n_rule_wrong": (1 - credit).sum(axis=1).mean(),
        "right_where_rule_wrong_pct": share_pct(answers.is_right, 1 - credit),
    }


def _where_wrong(
    weights: np.ndarray, answers: Answers, credit: dict[str, np.ndarray], control: str
) -> dict:
    """The model against every other rule on the quizzes that one rule gets wrong."""
    wrong = 1 - credit[control]
    n_wrong = weights @ wrong.sum(axis=0)
    others = [name for name in credit if name != control]
    if not others or not n_wrong[0]:
        return {"strongest_other": "", "p_more": 1.0, "p_less": 1.0}
    gaps = {}
    for other in others:
        gap = weights @ ((answers.is_right - credit[other]) * wrong).sum(axis=0)
        with np.errstate(invalid="ignore"):
            gaps[other] = 100 * gap / n_wrong
    shares = {other: share_pct(credit[other], wrong) for other in others}
    strongest = max(shares, key=shares.__getitem__)
    low, high = percentile_interval(gaps[strongest][1:])
    p_less = min(_p_above(-gap[1:], 0) for gap in gaps.values())
    return {
        "strongest_other": strongest,
        "other_where_rule_wrong_pct": shares[strongest],
        "difference_pct": gaps[strongest][0],
        "ci_low_pct": low,
        "ci_high_pct": high,
        "p_more": max(_p_above(gap[1:], 0) for gap in gaps.values()),
        "p_less": min(1.0, len(others) * p_less),
    }


def _beyond(row: Any) -> str:
    if row.n_rule_wrong < FEWEST_QUIZZES:
        return NOT_RUN
    two_sided = min(1.0, 2 * row.p_more)
    return BEYOND_CLAIM.verdict(row.ci_low_pct, row.ci_high_pct, p_adjusted=two_sided)


def share_pct(is_right: np.ndarray, weights: np.ndarray) -> float:
    """Weighted share of right answers in percent, NaN without weights; arrays of one shape."""
    total = weights.sum()
    return 100 * float((is_right * weights).sum() / total) if total else float("nan")


def compare_with_released_answers(
    choices: pd.DataFrame, instances: pd.DataFrame, n_resamples: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Every taker of ``choices`` next to a model's released answers, on the instances it took.

    Shares are means over the model's least preferred positions, found on all its instances; E
    counts as wrong. The interval of difference_pct (taker minus model, points) is a paired
    bootstrap over instances.

    Returns:
        model, dataset, control, n, model_pct, control_pct, difference_pct, ci_low_pct,
        ci_high_pct, n_control_wrong (mean over positions) and model_where_wrong_pct, the model's
        share on the quizzes that the taker gets wrong: ``beyond_rules`` judges it.
    """
    rows, choices = [], choices.assign(credit=credits_of(choices))
    for _, of_pair in instances.groupby(["model", "dataset"], sort=False):
        answers = answers_of(of_pair)
        of_dataset = choices[choices["dataset"] == answers.dataset]
        for control, of_control in of_dataset.groupby("control", sort=False):
            credit = by_position(of_control, "credit", answers.positions)
            taken = np.isin(answers.index, of_control["index"].unique())
            right = answers.is_right[:, taken]
            gain = 100 * (credit - right).mean(axis=0)
            weights = np.vstack(list(resample_counts(len(gain), n_resamples, seed)))
            low, high = percentile_interval(weights @ gain / len(gain))
            row = {"model": answers.model, "dataset": answers.dataset, "control": control}
            row |= {"n": len(gain), "model_pct": 100 * right.mean()}
            row |= {"control_pct": 100 * credit.mean(), "difference_pct": gain.mean()}
            row |= {"ci_low_pct": low, "ci_high_pct": high}
            row["n_control_wrong"] = (1 - credit).sum(axis=1).mean()
            rows.append(row | {"model_where_wrong_pct": share_pct(right, 1 - credit)})
    return pd.DataFrame(rows)


def compare_with_clean_model(
    choices: pd.DataFrame,
    taker: str,
    clean: str,
    unread: Collection[str] = (),
    n_resamples: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """``pretrained_readings.csv``: a taker next to one that has read none of the quizzes.

    Both take the same quizzes. ``taker`` and ``clean`` are controls of ``choices``. A share is
    the mean over instances and positions of the original, in percent, 25 by chance. Datasets of
    ``unread`` nobody can have read, so they show what the taker's taste alone can do.

    Returns:
        dataset, n, taker_pct and clean_pct, each with a 95 % interval (taker_low_pct, ...), and
        difference_pct with its own (ci_low_pct, ci_high_pct): a bootstrap over instances, paired;
        is_unread; holds, of unread datasets alone: the taker is not ahead there; and verdict,
        of all other datasets: the taker is ahead by more than on any unread dataset, whose
        intervals are the controls; p of no difference, for datasets with a verdict alone, and
        p_adjusted (Holm over these datasets).
    """
    rows, choices = [], choices.assign(credit=100 * credits_of(choices))
    for dataset, of_dataset in choices.groupby("dataset", sort=False):
        credit = of_dataset.groupby(["control", "index"], sort=False)["credit"].mean().unstack()
        values = {"taker": credit.loc[taker].to_numpy(), "clean": credit.loc[clean].to_numpy()}
        values["difference"] = values["taker"] - values["clean"]
        n = credit.shape[1]
        weights = np.vstack(list(resample_counts(n, n_resamples, seed))) / n
        row = {"dataset": dataset, "n": n}
        for name, value in values.items():
            low, high = percentile_interval(weights @ value)
            ends = "ci" if name == "difference" else name
            row |= {f"{name}_pct": value.mean(), f"{ends}_low_pct": low, f"{ends}_high_pct": high}
        rows.append(row | {"is_unread": dataset in unread})
    table = pd.DataFrame(rows)
    claim, ends = CLAIMS["pretrained_readings"], ["ci_low_pct", "ci_high_pct"]
    by_taste = table.loc[table["is_unread"], ends].to_numpy().tolist()
    table["holds"] = (table["ci_low_pct"] <= claim.null).astype(object).where(table["is_unread"])
    table["verdict"] = [
        ""
        if row.is_unread
        else claim.verdict(
            row.ci_low_pct, row.ci_high_pct, control=strongest(by_taste, row.ci_low_pct)
        )
        for row in table.itertuples()
    ]
    ends = table["difference_pct"], table["ci_low_pct"], table["ci_high_pct"]
    p_values = pd.Series([end_p(*of_row) for of_row in zip(*ends, strict=True)], table.index)
    return correct_family(table.assign(p=p_values.mask(table["is_unread"])))
