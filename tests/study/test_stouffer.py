"""One p-value over several models, by Stouffer's method."""

import numpy as np
import pandas as pd
import pytest

from contamination.study.conditions import BASE, DOSED, VERBATIM
from contamination.study.stouffer import combine_p_values


def two_models(p, condition=VERBATIM, model=DOSED, value=0.75):
    about = {"detector": "PPL", "benchmark": "topics", "model": model, "copies": 4}
    sets = pd.DataFrame({"unit": [0, 1], "p": p, "value": value})
    return sets.assign(**about, condition=condition)


def test_all_models_together_by_stouffer():
    sets = two_models([0.05, 0.05])
    base = two_models([0.5, 0.5], model=BASE, value=0.5).assign(copies=0)
    table = combine_p_values(pd.concat([sets, base]))
    assert table["p_value"].item() == pytest.approx(0.01001, abs=1e-4)  # z = 1.645 * sqrt(2)
    assert (table["auc"].item(), table["auc_before"].item()) == (0.75, 0.5)


def test_rows_that_no_model_saw_are_no_part_of_the_family():
    table = combine_p_values(
        pd.concat([two_models([0.05, 0.05]), two_models([0.9, 0.8], "fresh rows")])
    )
    assert table["p_adjusted"].tolist() == pytest.approx([table["p_value"][0], np.nan], nan_ok=True)


def test_a_p_of_one_has_a_quantile():
    assert 0.99 < combine_p_values(two_models(1.0))["p_value"].item() < 1
