"""What notebook 06 says of its results, in words that its tables choose."""

from __future__ import annotations

import pandas as pd

from contamination.cases.books import top_rates
from contamination.cases.library import TEST, VALIDATION
from contamination.core import blind_scores
from contamination.core.scores import MIN_K
from contamination.core.tables import auc_text, interval_text

HIGH_RATE_PCT = 50  # a rate above this means: most snippets are suspicious
ALL_ALIKE_PCT = 90  # a threshold that accepts, or rejects, this share tells no books apart


def summarize_threshold(read: pd.DataFrame, clean: pd.DataFrame, clean_rates: pd.DataFrame) -> str:
    """Whether the threshold chosen on validation books also works on the test books.

    Args:
        read: rows of one method under the model that was trained on half of the books.
        clean: rows of the same method under the model that saw none of them.
        clean_rates: rows of ``books.csv`` for the model that saw none of them.
    """
    of_read, of_clean = (rows.set_index("part").loc[TEST] for rows in (read, clean))
    on_validation = clean.set_index("part").loc[VALIDATION, "accuracy"]
    best = "no threshold works. The best one" if of_clean["accuracy_low"] <= 0.5 else "the best one"
    low, high = of_read["accuracy_low"], of_read["accuracy_high"]
    if low <= 0.5:
        conclusion = "it is not shown to work on books that we did not use to choose it."
    elif low > of_clean["accuracy_high"]:
        conclusion = "it works on books that we did not use to choose it, and better than for the "
        conclusion += "model that saw none of the books."
    else:
        conclusion = "it is better than chance, but not better than for the model that saw none "
        conclusion += "of the books. Perhaps some books are just easier to predict."
    suspicious = clean_rates["contamination_rate_pct"].mean()
    alike = ""
    if not 100 - ALL_ALIKE_PCT < suspicious < ALL_ALIKE_PCT:
        alike = ", so its rates say nothing about single books"
    return (
        f"The threshold puts {100 * of_read['accuracy']:.0f} % of the test snippets on the right "
        f"side (95 % interval {interval_text(100 * low, 100 * high, 0)}). For this one model, "
        f"{conclusion} Another model may give another result. For the model "
        f"that saw none of the books, {best} is right for {100 * on_validation:.1f} % of "
        f"the validation snippets and {100 * of_clean['accuracy']:.1f} % of the test snippets. It "
        f"happens to call {suspicious:.0f} % of the test snippets suspicious{alike}."
    )


def summarize_book_rates(rates: pd.DataFrame, n_top: int) -> str:
    """What a high contamination rate proves if we know which books were in the training data.

    Args:
        rates: rows of ``books.csv`` for the model that was trained on half of the test books.
        n_top: number of books at the top of the list.
    """
    known = rates["in_training"].astype(bool)
    top = top_rates(rates, n_top)["in_training"].astype(bool)
    text = (
        f"{int(top.sum())} of the {len(top)} books with the highest rates were in the training "
        f"data. If the rates said nothing, we would expect {len(top) * known.mean():.3g}. "
    )
    if not top.all():
        one = int((~top).sum()) == 1
        text += (
            f"The {'other book was' if one else f'other {int((~top).sum())} were'} held out. No "
            "two of our books share a run of 13 words, but modules of one package can resemble "
            "each other. Is that the reason? We did not test it. "
        )
    return text + _of_held_out(rates)


def _of_held_out(rates: pd.DataFrame) -> str:
    held_out = rates[~rates["in_training"].astype(bool)]["contamination_rate_pct"]
    n_high = int((held_out > HIGH_RATE_PCT).sum())
    proves = "so a high rate alone proves nothing"
    if not n_high:
        proves = "so here a higher rate is a sign of training"
    return (
        f"Under the model that saw half of the books, {n_high} of the {len(held_out)} held-out "
        f"books have a rate above {HIGH_RATE_PCT} %, {proves}."
    )


def conclusion(rates: pd.DataFrame, auc: pd.DataFrame, model: str, clean: str) -> str:
    """What the notebook concludes about lists of books, in words that its tables choose.

    Args:
        rates: rows of ``books.csv`` for the model that was trained on half of the books.
        auc: ``auc_rows`` of both models and ``blind_rows``.
        model, clean: their names in auc.
    """
    of_test = auc[auc["part"] == TEST].set_index(["model", "method"])
    keys = (model, MIN_K), (clean, MIN_K), ("none", blind_scores.BAG_OF_WORDS)
    seen, none, words = (of_test.loc[key] for key in keys)
    if seen["ci_low"] > 0.5:
        found = "gives snippets of books in the training data higher scores than other snippets"
    else:
        found = "is not shown to score snippets of books in the training data higher than others"
    controls = f"that saw none of the books ({auc_text(none)}) and words alone ({auc_text(words)})"
    if none["ci_low"] <= 0.5 and words["ci_low"] <= 0.5:
        control = f"The two controls, a model {controls}, are not above chance"
    else:
        control = f"Of the two controls, a model {controls}, at least one is above chance"
    n_models = "We trained one model, so we conclude nothing about others"
    advice = "A list like the paper's says where to look first"
    if seen["ci_low"] <= 0.5:
        advice = "A list like the paper's need not say anything"
    return (
        f"On the test books, {MIN_K} {found} (AUC {auc_text(seen)}). {control}. {n_models}.\n\n"
        f"Can you trust the rate of a single book? {_of_held_out(rates)} {advice}. To judge one "
        "book on it, you need to know how high the rates of similar held-out books are. Whether "
        "GPT-3 was trained on the books of the paper's list, we cannot check."
    )
