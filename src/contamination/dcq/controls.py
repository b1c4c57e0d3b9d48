"""Rules that take the released quizzes without any knowledge of the datasets.

What they get right measures how far the four texts give the original away: by
taste (originals use commoner words), by centrality (each perturbation is an edit
of the original, so the others resemble it most) or by mere length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
from scipy import stats

from contamination.core.overlap import normalised, word_overlap, words
from contamination.core.statistics import share_interval
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.quizzes import OPTION_COLUMNS

N_OPTIONS = len(OPTION_COLUMNS)
_PUNCTUATION = ".,;:!?"  # around a word
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


def rarer_words(original: str, rewritten: Sequence[str], n_pairs: int = 3) -> list[tuple[str, str]]:
    """Words of a text and the rarer words that its rewritten versions have in their place.

    The pairs that lose most Zipf frequency come first, and each word of the original comes once.
    Replacements by more or by fewer words are left out, because their words form no pairs.

    >>> rarer_words("Talks opened in Peru.", ["Talks recommenced in Peru.", "Talks began in Peru."])
    [('opened', 'recommenced')]
    """
    from wordfreq import zipf_frequency

    losses: dict[tuple[str, str], float] = {}
    before = [word.strip(_PUNCTUATION) for word in original.split()]
    for text in rewritten:
        after = [word.strip(_PUNCTUATION) for word in text.split()]
        for kind, i, i_end, j, j_end in SequenceMatcher(None, before, after, False).get_opcodes():
            if kind == "replace" and i_end - i == j_end - j:
                for pair in zip(before[i:i_end], after[j:j_end], strict=True):
                    common, rare = (zipf_frequency(word, "en") for word in pair)
                    losses[pair] = common - rare
    ordered = sorted((pair for pair in losses if losses[pair] > 0), key=lambda pair: -losses[pair])
    first = {word: (word, other) for word, other in reversed(ordered)}  # its rarest replacement
    return [pair for pair in ordered if first[pair[0]] == pair][:n_pairs]


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
    released options are the quiz, whatever the position.
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
    """``dcq_controls.csv``: every rule on every dataset beside every model's level.

    Where the original's place is free (three datasets), the rules take one quiz
    per position that the model was quizzed at, and the best of them counts.
    Which rule does as well is decided in ``dcq.comparison``. Of ``levels``
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
