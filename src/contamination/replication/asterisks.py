"""Algorithm 1's asterisks in notebook 03: how many are left by which test."""

from __future__ import annotations

import pandas as pd

from contamination.core.verdicts import ALPHA
from contamination.replication.published_tables import no_sign_flip_can_reject


def title_of_asterisks(by_test: pd.DataFrame) -> str:
    """What the choice of the test changes, among tests that could mark a row at all."""
    n_marked = by_test.loc[by_test["can_mark"], "n_marked"]
    if n_marked.min() == n_marked.max():
        return f"{n_marked.iloc[0]} asterisks under every test"
    low, high = n_marked.min(), n_marked.max()
    where = "" if by_test["can_mark"].all() else " where any is possible"
    return f"The number of asterisks depends on the test: {low} to {high}{where}"


def asterisks_left(by_test: pd.DataFrame) -> str:
    """How many asterisks the exact test and the correction leave, from ``asterisks_by_test``."""
    marked = by_test.set_index("test")["n_marked"]
    paired, flips = marked["paired bootstrap"], marked["sign flips"]
    change = "fewer than" if flips < paired else "more than" if flips > paired else "as many as"
    return (
        f"The sign-flip test gives {flips} asterisks, {change} the paired bootstrap ({paired}). "
        f"With Holm's correction, the paired bootstrap gives {marked['paired bootstrap, Holm']}."
    )


def summarize_tests(published: pd.DataFrame) -> str:
    """How many of the paper's asterisks an exact test and a correction leave."""
    columns = ["significant", "significant_sign_flip", "significant_sign_flip_holm"]
    bootstrap, exact, corrected = (int(published[column].sum()) for column in columns)
    n = len(published)
    text = (
        f"Algorithm 1 runs {n} tests, and its result depends on the kind of test. By the paper's "
        f"paired bootstrap, the guided instruction raises the overlap significantly in {bootstrap} "
        f"of them, and by the exact sign-flip test in {exact}."
    )
    if no_sign_flip_can_reject(published):
        smallest = published["p_sign_flip_smallest"].min()
        return (
            f"{text} With the correction for {n} tests, the sign-flip test could not find a "
            "significant effect anywhere, even if the models remembered every row. There are too "
            f"few instances: the smallest possible p-value is 1/{1 / smallest:,.0f}, and the "
            f"correction asks for 1/{n / ALPHA:,.0f}."
        )
    if bootstrap == exact == corrected:
        return (
            f"Algorithm 1 runs {n} tests. The guided instruction raises the overlap significantly "
            f"in {exact} of them, both by the paper's paired bootstrap and by the exact sign-flip "
            "test, corrected or not."
        )
    return f"{text} Of the latter, {corrected} remain after a correction for {n} tests."
