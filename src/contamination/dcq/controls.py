"""Rules that take the released quizzes without any knowledge of the datasets.

DCQ reads a right answer as a trace of memory. A rule that sees nothing but the
four texts has no memory, so what it gets right measures how far the texts
themselves give the original away: by taste (originals use commoner words), by
centrality (each perturbation was written as an edit of the original, so the
original is the text that the others resemble most) or by mere length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from contamination.dcq.assessment import POSITIONS, assess, standard_answers_of
from contamination.dcq.released import OPTION_COLUMNS
from contamination.overlap import normalised, word_overlap, words
from contamination.statistics import share_interval

N_OPTIONS = len(OPTION_COLUMNS)
Rule = Callable[[Sequence[str]], np.ndarray]


def centrality(options: Sequence[str]) -> np.ndarray:
    """Mean word overlap of each option with the others, shape (n_options,), 0 to 1."""
    overlap = np.array([[word_overlap(a, b) for b in options] for a in options])
    np.fill_diagonal(overlap, 0)
    return overlap.sum(axis=1) / (len(options) - 1)


def word_frequency(options: Sequence[str]) -> np.ndarray:
    """Mean Zipf frequency of each option's words in general English, shape (n_options,).

    Frequencies come from the ``wordfreq`` package (a blend of Wikipedia,
    subtitles, news, books and web text up to 2021), never from the quizzed
    instances. Zipf = log10 of occurrences per billion words; unknown words
    count 0.
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


def credit(scores: np.ndarray, original: int) -> float:
    """Chance of picking the original when the highest score wins and ties are drawn by lot."""
    best = np.isclose(scores, scores.max())
    return float(best[original] / best.sum())


def quiz_texts(quiz: pd.Series, position: str) -> tuple[list[str], int]:
    """The four texts of a standard quiz with the original at one position, and its place.

    Where option_d already is the original (the seven "wild" datasets) the four
    released options are the quiz, whatever the position.
    """
    options = [quiz[column] for column in OPTION_COLUMNS]
    if options[-1] == quiz["instance"] or normalised(options[-1]) == normalised(quiz["instance"]):
        return options, N_OPTIONS - 1
    place = POSITIONS.index(position)
    return [*options[:place], quiz["instance"], *options[place + 1 :]], place


def chance_of_best(n: int, n_quizzes: int) -> float:
    """Expected best share of random guessers over several quizzes of n questions.

    Exact for independent guesses; DCQ reports the best of several quizzes, so
    chance lies above one in four.
    """
    counts = np.arange(n + 1)
    below = stats.binom.cdf(counts, n, 1 / N_OPTIONS) ** n_quizzes
    return float((1 - below[:-1]).sum() / n)


def rule_credits(quizzes: pd.DataFrame, rule: Rule, positions: Sequence[str]) -> pd.DataFrame:
    """Credit of one rule on every quiz, shape (n_quizzes, n_positions), 0 to 1.

    Args:
        quizzes: rows of one dataset, as ``released_quizzes`` gives them.
        rule: scores of four texts; the highest is taken for the original.
        positions: where the original stands, one standard quiz each.
    """
    credits_ = {
        position: [
            credit(rule(texts), place)
            for texts, place in (quiz_texts(quiz, position) for _, quiz in quizzes.iterrows())
        ]
        for position in positions
    }
    return pd.DataFrame(credits_, index=quizzes.index)


def control_table(
    quizzes: pd.DataFrame, levels: pd.DataFrame, rules: Mapping[str, Rule] = RULES
) -> pd.DataFrame:
    """``dcq_controls.csv``: every rule on every dataset beside every model's level.

    Where the original's place is free (three datasets), the rules take one quiz
    per position that the model was quizzed at, and the best of them counts as
    it does for the model.

    Args:
        quizzes: ``released_quizzes``.
        levels: ``dcq_published``: model, dataset, least_preferred, max_pct.
        rules: name to rule, in the order of the table.

    Returns:
        dataset, control, n, n_quizzes, chance_pct, max_pct with its Wilson
        interval, model, paper_max_pct (the model's recomputed maximum) and
        difference_pct (rule minus model, points).
    """
    rows = []
    for dataset, of_dataset in quizzes.groupby("dataset", sort=False):
        models = levels[levels["dataset"] == dataset]
        is_fixed = all(quiz_texts(quiz, "A")[1] for _, quiz in of_dataset.iterrows())
        positions = POSITIONS[-1:] if is_fixed else tuple(models["least_preferred"].iloc[0])
        for name, rule in rules.items():
            row = {"dataset": dataset, "control": name}
            row |= _control_level(rule_credits(of_dataset, rule, positions or POSITIONS))
            rows += [
                row
                | {"model": model.model, "paper_max_pct": model.max_pct}
                | {"difference_pct": row["max_pct"] - model.max_pct}
                for model in models.itertuples()
            ]
    return pd.DataFrame(rows)


def _control_level(credits_of_rule: pd.DataFrame) -> dict[str, float | int]:
    n, n_quizzes = credits_of_rule.shape
    share = credits_of_rule.mean().max()
    low, high = share_interval(round(share * n), n)
    return {
        "n": n,
        "n_quizzes": n_quizzes,
        "chance_pct": 100 * chance_of_best(n, n_quizzes),
        "max_pct": 100 * share,
        "ci_low_pct": 100 * low,
        "ci_high_pct": 100 * high,
    }


def beyond_rules(
    quizzes: pd.DataFrame, instances: pd.DataFrame, rules: Mapping[str, Rule] = RULES
) -> pd.DataFrame:
    """How often a model is right where a rule is right, and where the rule fails.

    A rule must choose a text; a model may answer E. So beside the share of all
    quizzes stands the share of those in which the model chose a text, and how
    often it did; which quizzes it answered was its own choice.

    The model's quiz is its best one. In the "wild" datasets only the quiz with
    the original at D is released, so the rule may have seen one other
    perturbation than the model did.

    Args:
        quizzes: ``released_quizzes``.
        instances: ``published.released_instances("DCQ")``.
        rules: name to rule.

    Returns:
        model, dataset, control, n, n_answered_none (E in the best quiz),
        max_pct, right_when_chosen_pct, n_rule_right, right_where_rule_right_pct,
        n_rule_wrong, right_where_rule_wrong_pct. A tie of the rule counts in
        both by its chance.
    """
    rows = []
    for (model, dataset), answers in instances.groupby(["model", "dataset"], sort=False):
        of_dataset = quizzes[quizzes["dataset"] == dataset]
        standard = standard_answers_of(answers)
        found = assess(answers["modified_answer"].tolist(), standard)
        best = np.array(standard[found.best_position])
        is_right, is_none = best == found.best_position, best == "E"
        for name, rule in rules.items():
            rule_right = rule_credits(of_dataset, rule, [found.best_position]).to_numpy()[:, 0]
            rows.append(
                {"model": model, "dataset": dataset, "control": name, "n": len(best)}
                | {"n_answered_none": int(is_none.sum()), "max_pct": 100 * is_right.mean()}
                | {"right_when_chosen_pct": _share_pct(is_right, ~is_none)}
                | {"n_rule_right": rule_right.sum(), "n_rule_wrong": (1 - rule_right).sum()}
                | {"right_where_rule_right_pct": _share_pct(is_right, rule_right)}
                | {"right_where_rule_wrong_pct": _share_pct(is_right, 1 - rule_right)}
            )
    return pd.DataFrame(rows)


def _share_pct(is_right: np.ndarray, weights: np.ndarray) -> float:
    total = weights.sum()
    return 100 * float((is_right * weights).sum() / total) if total else float("nan")


def worked_example(quiz: pd.Series, position: str) -> pd.DataFrame:
    """One quiz in full: its four texts, which one is the original, every rule's scores.

    The rule's pick carries an arrow.
    """
    texts, place = quiz_texts(quiz, position)
    table = pd.DataFrame({"position": POSITIONS, "text": texts})
    table["original"] = [index == place for index in range(N_OPTIONS)]
    for name, rule in RULES.items():
        scores = rule(texts)
        picked = np.isclose(scores, scores.max())
        table[name] = [f"{s:.2f}{' ←' if p else ''}" for s, p in zip(scores, picked, strict=True)]
    return table


def audit_options(quizzes: pd.DataFrame) -> pd.DataFrame:
    """What the released options give away before any model is asked, one row per dataset.

    Returns:
        dataset, n, n_option_d_is_original, n_repeated_options, and
        n_line_breaks_alone: rows where the original's number of line breaks
        differs from that of every perturbation while those agree.
    """
    return quizzes.groupby("dataset", sort=False).apply(_audit).astype(int).reset_index()


def _audit(rows: pd.DataFrame) -> pd.Series:
    options = rows[list(OPTION_COLUMNS)]
    plain = options.map(normalised)
    n_breaks = options.map(_line_breaks)
    original_breaks = rows["instance"].map(_line_breaks)
    alone = n_breaks.ne(original_breaks, axis=0).all(axis=1) & n_breaks.nunique(axis=1).eq(1)
    return pd.Series(
        {
            "n": len(rows),
            "n_option_d_is_original": plain["option_d"].eq(rows["instance"].map(normalised)).sum(),
            "n_repeated_options": plain.nunique(axis=1).lt(N_OPTIONS).sum(),
            "n_line_breaks_alone": alone.sum(),
        }
    )


def _line_breaks(text: str) -> int:
    return text.strip().count("\n")
