"""Sentences that state a result of the case studies on books and on downstream datasets.

Each is built from its table, puts the paper's direction beside what is found
here, and is tested with a table that confirms it and one that refutes it.
"""

from __future__ import annotations

import pandas as pd

from contamination.cases.books import top_rates
from contamination.cases.downstream import MOST_OCCURRENCES
from contamination.scores import MIN_K, PPL

FULL_RATE_PCT = 50  # a rate above this means: most snippets count as read


def _interval(low: float, high: float, decimals: int = 2) -> str:
    return f"[{low:.{decimals}f}, {high:.{decimals}f}]"


def _auc(row: pd.Series) -> str:
    return f"{row['auc']:.2f} {_interval(row['ci_low'], row['ci_high'])}"


def _is_chance(row: pd.Series) -> bool:
    return row["ci_low"] <= 0.5 <= row["ci_high"]


def _direction(low: float, high: float, sign: int) -> str:
    """What a difference's interval says about the paper's direction (+1 or -1)."""
    if low <= 0 <= high:
        return "the interval holds 0: no direction can be told here"
    return "the same direction here" if (low > 0) == (sign > 0) else "the other direction here"


def _compared(low: float, high: float) -> str:
    if low > 0:
        return "better, as in the paper"
    return "worse, against the paper" if high < 0 else "no difference can be told here"


# Books


def books_auc_sentence(rows: pd.DataFrame, difference: tuple[float, float]) -> str:
    """Does Min-k% Prob find the books, and better than perplexity and the words alone?

    Args:
        rows: rows of ``books_auc.csv`` of one part, one model and of the blind baselines.
        difference: paired interval of AUC(Min-k% Prob) - AUC(PPL).
    """
    of = rows.set_index("method")
    words = rows[rows["model"] == "none"]
    best = words.loc[words["auc"].idxmax()]
    text = (
        f"Snippets of books that were read: Min-k% Prob reaches {_auc(of.loc[MIN_K])}, against "
        f"perplexity (PPL) it differs by {_interval(*difference, 3)}: {_compared(*difference)} "
        f"(printed: 0.88 and 0.84). The best blind baseline, {best['method']}, reaches "
        f"{_auc(best)}"
    )
    if best["ci_low"] <= 0.5:
        text += ", no better than chance: "
        return text + (
            "the words do not explain the AUC of Min-k% Prob."
            if of.loc[MIN_K, "ci_low"] > 0.5
            else "but Min-k% Prob is no better than chance either."
        )
    return text + ": the words alone tell the groups apart, and the AUC is no evidence of training."


def books_clean_sentence(clean: pd.DataFrame, differences: dict[str, tuple[float, float]]) -> str:
    """What a model that read none of the books makes of the same deal.

    Args:
        clean: Min-k% rows of that model, one for each part.
        differences: part to the paired interval of AUC under the model that read
            half of the books minus AUC under this one.
    """
    parts, off, n_above = [], [], 0
    for _, row in clean.iterrows():
        low, high = differences[row["part"]]
        n_above += low > 0
        off += [] if _is_chance(row) else [row["part"]]
        parts.append(
            f"{_auc(row)} on the {row['part']} books (reading adds {_interval(low, high)})"
        )
    text = f"Under the model that read none of them, Min-k% Prob gives {', '.join(parts)}. "
    if off:
        text += (
            f"On the {' and '.join(off)} books that is off chance without any reading: a few dozen "
            "books, dealt at random, may differ in ease by luck alone. "
        )
    if n_above == len(clean):
        return text + "Beyond that, reading raises the AUC on both parts."
    return text + f"Reading raises the AUC beyond its interval on {n_above} of {len(clean)} parts."


def books_threshold_sentence(read: pd.DataFrame, clean: pd.DataFrame) -> str:
    """What the threshold of the validation books is worth on other books.

    Args:
        read: Min-k% rows, validation and test, of the model that read the books.
        clean: those of a model that read none of them.
    """
    parts = []
    for name, rows in (("the model that read them", read), ("a model that read none", clean)):
        on, off = (rows[rows["part"] == part].iloc[0] for part in ("validation", "test"))
        parts.append(
            f"under {name} {100 * on['accuracy']:.0f} % of the validation snippets are told right, "
            f"of the test snippets {100 * off['accuracy']:.0f} % "
            f"{_interval(100 * off['accuracy_low'], 100 * off['accuracy_high'], 0)}"
        )
    text = f"With the threshold of the validation books, {'; '.join(parts)}. Chance is 50 %. "
    of_read, of_clean = (rows.set_index("part").loc["test"] for rows in (read, clean))
    if of_read["accuracy_low"] <= 0.5:
        return text + "It does not hold for books that had no say in it."
    if of_read["accuracy_low"] > of_clean["accuracy_high"]:
        return text + "It holds for books that had no say in it, beyond the model that read none."
    return text + (
        "It is better than chance on books that had no say in it, but the intervals of the two "
        "models meet: reading need not be the reason."
    )


def books_rates_sentence(rates: pd.DataFrame, n_top: int) -> str:
    """What a contamination rate per book is worth where the truth is known.

    Args:
        rates: rows of ``books.csv`` of the model that read half of the test books.
        n_top: books in the top list; those that share the last rate all belong to it.
    """
    read = rates["in_training"].astype(bool)
    high = rates["contamination_rate_pct"] > FULL_RATE_PCT
    top = top_rates(rates, n_top)
    n_true = int(top["in_training"].astype(bool).sum())
    means = rates["contamination_rate_pct"].groupby(read).mean()
    text = (
        f"Mean rate of the {int(read.sum())} test books that were read: {means[True]:.0f} %; of "
        f"the {int((~read).sum())} that were not: {means[False]:.0f} %. More than half of the "
        f"snippets count as read in {int((high & read).sum())} books of the first kind and in "
        f"{int((high & ~read).sum())} of the second. Of the {len(top)} books with the highest "
        f"rates {n_true} were read. "
    )
    if n_true < len(top):
        return text + "A place in the list is no proof; the paper cannot see such a row in its own."
    if (high & ~read).any():
        return text + "The top of the list holds, but a high rate alone is no proof of reading."
    return text + "Here every book with a high rate was read, as the paper takes for granted."


def clean_rates_sentence(rates: pd.DataFrame) -> str:
    """The same list from a model that has read none of the books.

    Args:
        rates: rows of ``books.csv`` of the clean model.
    """
    n_high = int((rates["contamination_rate_pct"] > FULL_RATE_PCT).sum())
    highest = rates["contamination_rate_pct"].max()
    text = (
        f"Under the model that read none of them, {n_high} of {len(rates)} test books have a rate "
        f"above {FULL_RATE_PCT} %, the highest {highest:.0f} %. "
    )
    if n_high:
        return text + "So a list of high rates arises without reading: books differ in ease."
    return text + "So high rates do not arise here without reading."


# Downstream datasets


def downstream_methods_sentence(rows: pd.DataFrame, difference: tuple[float, float]) -> str:
    """Which methods find inserted examples, and whether Min-k% Prob beats perplexity.

    Args:
        rows: rows of the average over datasets, one for each method.
        difference: paired interval of AUC(Min-k% Prob) - AUC(PPL).
    """
    of = rows.set_index("method")
    best = rows.loc[rows["auc"].idxmax()]
    above = int((rows["ci_low"] > 0.5).sum())
    text = (
        f"Average over datasets: Min-k% Prob {_auc(of.loc[MIN_K])}, PPL {_auc(of.loc[PPL])}; "
        f"{above} of {len(rows)} methods have an interval above 0.5, the highest AUC is "
        f"{best['method']} with {best['auc']:.2f}. "
    )
    gain = of.loc[MIN_K, "difference_low"], of.loc[MIN_K, "difference_high"]
    text += (
        f"Against the model before insertion Min-k% Prob changes by "
        f"{of.loc[MIN_K, 'difference']:+.2f} {_interval(*gain)}: "
        + ("insertion is found. " if gain[0] > 0 else "insertion is not found. ")
    )
    return text + (
        "The paper has Min-k% Prob first (0.86 against 0.84 for PPL); the difference here is "
        f"{_interval(*difference, 3)}: {_compared(*difference)}."
    )


def random_membership_sentence(words: pd.DataFrame, base: pd.Series) -> str:
    """Whether anything but training tells inserted from held-out examples.

    Args:
        words: blind rows of all datasets, with p_value, and of their average.
        base: Min-k% row of the average under the model before insertion.
    """
    single = words[words["dataset"] != "average"]
    single = words if single.empty else single
    n_off = int((single["p_value"] <= 0.05).sum())
    average = words[words["dataset"] == "average"] if len(single) < len(words) else single
    text = (
        f"Words alone: {n_off} of {len(single)} have p at most 0.05 (about 5 % do by chance); "
        + ", ".join(f"{row['method']} {_auc(row)} on average" for _, row in average.iterrows())
        + f". Before insertion the model itself gives {_auc(base)}. "
    )
    if average.apply(_is_chance, axis=1).all() and _is_chance(base):
        return text + "Chance alone dealt the examples, and nothing but training can tell them."
    return text + (
        "Chance alone dealt the examples, and yet not all of these hold 0.5: luck of this deal, "
        "which an AUC below carries with it. What counts there is the change from before "
        "insertion, on the same examples."
    )


def occurrence_sentence(rows: pd.DataFrame) -> str:
    """Figure 4(c): does the AUC rise with the number of insertions?

    Other examples stand behind each number of insertions, so what is compared is
    the change from before insertion, which the ease of the examples does not move.

    Args:
        rows: Min-k% rows of the average, one for each occurrence, fewest first, the
            difference taken to the model before insertion.
    """
    points = []
    for _, row in rows.iterrows():
        more = " or more" if row["occurrence"] == MOST_OCCURRENCES else ""
        change = _interval(row["difference_low"], row["difference_high"])
        points.append(
            f"{row['occurrence']:.0f}{more}: {row['auc']:.2f} ({row['difference']:+.2f} {change})"
        )
    first, last = rows.iloc[0], rows.iloc[-1]
    text = (
        f"AUC by occurrence, and its change from before insertion: {'; '.join(points)}. The "
        "paper: it rises with occurrence. "
    )
    if last["difference_low"] > first["difference_high"]:
        return text + "The first and last change do not meet: the same direction here."
    if last["difference_high"] < first["difference_low"]:
        return text + "The first and last change do not meet: the other direction here."
    return text + "The first and last change meet: no direction can be told here."


def learning_rate_sentence(rows: pd.DataFrame) -> str:
    """Table 4: does a higher learning rate raise the AUC?

    Args:
        rows: Min-k% rows of the average at two learning rates, lower first.
    """
    low, high = rows.iloc[0], rows.iloc[-1]
    found = _direction(high["difference_low"], high["difference_high"], 1)
    return (
        f"Learning rate {low['learning_rate']:g}: AUC {_auc(low)}; {high['learning_rate']:g}: "
        f"{_auc(high)}, a change of {high['difference']:+.2f} "
        f"{_interval(high['difference_low'], high['difference_high'])}. The paper: the AUC rises "
        f"in every task; {found}."
    )


def memorisation_sentence(rows: pd.DataFrame) -> str:
    """Table 8: is it memory of examples, or skill at the task, that grows with the rate?

    Args:
        rows: rows of the average at two learning rates, lower first, with accuracies.
    """
    low, high = rows.iloc[0], rows.iloc[-1]
    parts = []
    for row in (low, high):
        gap = row["accuracy_contaminants"] - row["accuracy_others"]
        parts.append(
            f"at {row['learning_rate']:g} {row['accuracy_contaminants']:.2f} of the inserted and "
            f"{row['accuracy_others']:.2f} of the held-out examples are answered right, a gap of "
            f"{gap:+.2f} {_interval(row['gap_low'], row['gap_high'])}"
        )
    text = (
        f"Chance {high['chance_accuracy']:.2f}; {'; '.join(parts)}. The paper: the gap grows with "
        "the rate (0.04 to 0.11), so examples are memorised. "
    )
    if high["gap_low"] > 0:
        return text + "A gap beyond its interval at the higher rate: memory shows in answers too."
    if high["gap_high"] < 0:
        return text + "Inserted examples are answered worse here: the other direction."
    if high["gap_low"] <= 0 <= high["gap_high"] and high["accuracy_others"] < (
        high["chance_accuracy"] + 0.05
    ):
        text += (
            "Held-out examples are answered at chance or near it: the task itself is not learnt. "
        )
    return text + "Here no gap can be told, so what was memorised does not show in the answers."


def size_sentence(
    outliers: pd.DataFrame, similar: pd.DataFrame, orders: tuple[float, float]
) -> str:
    """Figure 4(a) and (b): what a larger corpus does to outliers, and to texts like its own.

    Args:
        outliers: Min-k% rows by n_tokens, smallest first, of benchmark examples in prose.
        similar: the same of passages that the corpus is made of.
        orders: lowest and highest AUC of models that read the same examples
            among other texts of one corpus, in other orders, see ``downstream.order_spread``.
    """
    is_single = outliers["n_models"].max() == similar["n_models"].max() == 1
    parts = []
    for name, rows, sign, paper in (
        ("Outliers", outliers, 1, "rises"),
        ("Passages like the corpus", similar, -1, "falls"),
    ):
        first, last = rows.iloc[0], rows.iloc[-1]
        interval = (last["difference_low"], last["difference_high"])
        parts.append(
            f"{name}: AUC {_auc(first)} in {first['n_tokens']:,.0f} tokens and {_auc(last)} in "
            f"{last['n_tokens']:,.0f}, a change of {last['difference']:+.2f} {_interval(*interval)}"
            f". The paper: it {paper} with size; "
            + (
                "another draw of the texts around moves the AUC as much: no direction can be told."
                if is_single and abs(last["difference"]) <= orders[1] - orders[0]
                else f"{_direction(*interval, sign)}."
            )
        )
    if is_single:
        parts.append(
            "One model stands behind each size, and the intervals draw examples alone. For scale: "
            "the main models, around whose examples other texts stand in other orders, have "
            "AUCs from "
            f"{orders[0]:.3f} to {orders[1]:.3f}."
        )
    return " ".join(parts)
