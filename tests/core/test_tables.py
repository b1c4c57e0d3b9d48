"""Tables and sentences as a browser gets them."""

import numpy as np
import pandas as pd

from contamination.core.tables import (
    format_p,
    interval_text,
    marked_tokens,
    say,
    show,
    with_interval,
)

ATTACK = '<img src=x onerror="alert(1)">'


def test_untrusted_text_is_escaped_everywhere():
    table = pd.DataFrame({"text": [ATTACK], ATTACK: ["x"]})
    page = show(table, caption=ATTACK).data
    assert "<img" not in page
    assert page.count("&lt;img") == 3
    labelled = show(pd.DataFrame({"a": ["x"]}), labels={"a": ATTACK}).data
    assert "<img" not in labelled
    assert "<img" not in say(ATTACK).data


def test_missing_values_say_what_is_missing():
    table = pd.DataFrame({"ours": [np.nan, 1.0], "paper": [None, "1.00"]})
    page = show(table, paper_columns="paper").data
    assert "not reported" in page
    assert ">–<" in page
    assert "nan" not in page.lower().replace("nan;", "")


def test_numbers_are_rounded_for_display_only():
    table = pd.DataFrame({"p": [0.123456], "n": [12], "yes": [True]})
    page = show(table, decimals={"p": 4}).data
    assert "0.1235" in page
    assert ">12<" in page
    assert ">yes<" in page
    assert table["p"][0] == 0.123456


def test_a_p_value_never_reads_as_zero():
    assert format_p(0.00004) == format_p(0.0) == "< 0.001"
    assert format_p(0.001) == "0.001" and format_p(0.0496) == "0.050"
    assert format_p(0.00004, decimals=4) == "< 0.0001"
    assert format_p(np.nan) == "–"


def test_a_p_value_that_is_as_small_as_the_test_allows_says_so():
    assert format_p(1 / 1024, 2**-10) == "1/1,024 (the smallest possible)"
    assert format_p(2 / 1024, 2**-10) == "0.002"
    assert format_p(0, 1 / 10_000) == "< 1/10,000"  # none of ten thousand resamples


def test_intervals():
    assert interval_text(1.25, 2.0, 1) == "[1.2, 2.0]"
    assert interval_text(np.nan, 2.0) == "–"
    table = with_interval(pd.DataFrame({"low": [1.0], "high": [2.0]}), "low", "high", decimals=0)
    assert table["interval"][0] == "[1, 2]"


def test_sentences_read_as_text_not_as_markup():
    assert say("5 * 3 [a](b) `x` _y_").data == r"5 \* 3 \[a\](b) \`x\` \_y\_"


def test_least_likely_tokens_are_marked_and_escaped():
    page = marked_tokens(["a", "<b>", "c", "d"], [-1.0, -9.0, -2.0, -0.5], k_percent=25).data
    assert page.count("#F5B7A0") == 1
    assert "<b>" not in page
    assert page.index("#F5B7A0") < page.index("&lt;b&gt;") < page.index(">c<")
