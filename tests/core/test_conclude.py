"""A sentence stands only where the facts that it rests on are carried by the run's tables."""

import json

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.core.tables import NOT_CARRIED, conclude

TABLE = pd.DataFrame({"name": ["a", "b"], "auc": [0.7, 0.8]})


def said(**facts):
    return conclude("The words win.", **facts).data


def test_carried_facts_let_the_sentence_stand():
    assert said(all_high=lambda: TABLE["auc"] > 0.6, first=lambda: True) == "The words win."


@pytest.mark.parametrize(
    "fact",
    [
        lambda: False,
        lambda: None,
        lambda: np.nan,
        lambda: pd.NA,
        lambda: [],
        lambda: TABLE["auc"] > 0.75,  # only one of two rows
        lambda: TABLE.query("name == 'c'")["auc"] > 0.6,  # no row at all
        lambda: TABLE.set_index("name").loc["c", "auc"] > 0.6,
        lambda: TABLE.query("name == 'c'")["auc"].iloc[0] > 0.6,
        lambda: pd.Series([True, None], dtype=object),
    ],
)
def test_a_fact_that_is_not_carried_replaces_the_sentence(fact):
    assert said(first=lambda: True, rule=fact) == f"{NOT_CARRIED}: rule."


def test_values_are_formatted_and_escaped():
    values = {"auc": 0.7251, "model": "<b>my_model</b>"}
    text = conclude("*{model}* reaches {auc:.2f}.", values=lambda: values, fact=lambda: True).data
    assert text == "*&lt;b&gt;my\\_model&lt;/b&gt;* reaches 0.73."


@pytest.mark.parametrize("values", [lambda: {"auc": np.nan}, lambda: {"auc": TABLE["p"].iloc[0]}])
def test_a_value_that_is_missing_replaces_the_sentence(values):
    assert conclude("{auc:.2f}", values=values, fact=lambda: True).data.startswith(NOT_CARRIED)


def test_no_value_is_asked_for_where_a_fact_is_not_carried():
    assert said(values=lambda: 1 / 0, fact=lambda: False).startswith(NOT_CARRIED)


def test_a_mistake_in_a_fact_is_an_error():
    with pytest.raises(AttributeError):
        said(fact=lambda: TABLE.ci_low > 0)
    with pytest.raises(TypeError, match="at least one fact"):
        said()


def test_every_conclusion_of_the_stored_notebooks_is_carried():
    for path in sorted((ROOT / "outputs/reference/demo/notebooks").glob("*.ipynb")):
        outputs = [
            "".join(out.get("data", {}).get(kind, ""))
            for cell in json.loads(path.read_text())["cells"]
            for out in cell.get("outputs", [])
            for kind in ("text/markdown", "text/html")  # the latter where it is folded
        ]
        assert not [text for text in outputs if NOT_CARRIED in text], path.name
