"""A figure whose title counts what its table holds."""

import pandas as pd

from contamination.core import plots


def test_the_title_counts_benchmarks_that_words_tell_apart_without_the_controls():
    rows = pd.DataFrame({"benchmark": ["a", "b", "c"], "auc": [0.9, 0.6, 0.7]})
    rows = rows.assign(ci_low=[0.8, 0.4, 0.6], ci_high=1.0, n_members=10, n_non_members=10)
    rows = rows.assign(simplest=0.5, published_auc=float("nan"), is_control=[False, False, True])
    axis = plots.words_alone(rows).axes[0]
    assert axis.get_title().endswith("on 1 of 2 benchmarks")
    names = [tick.get_text() for tick in axis.get_yticklabels()]
    assert names == ["b (10 / 10)", "c (10 / 10)", "a (10 / 10)"]
