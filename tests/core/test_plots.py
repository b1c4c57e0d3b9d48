"""Figures show what the table holds, with the chance line and the numbers of passages."""

import matplotlib.pyplot as plt
import pandas as pd

from contamination.core import plots


def texts_of(figure):
    legend = figure.axes[0].get_legend()
    return [text.get_text() for text in legend.get_texts()]


def test_auc_lines_keep_order_intervals_and_chance():
    before = plt.get_fignums()
    rows = pd.DataFrame({"method": ["Min-k% Prob"] * 2, "length": [64, 32], "auc": [0.7, 0.6]})
    rows = rows.assign(ci_low=rows["auc"] - 0.1, ci_high=rows["auc"] + 0.1)
    blind = pd.DataFrame({"length": [32, 64], "auc": [0.5, 0.51]})
    figure = plots.auc_lines(rows, "length", "words", "2 models", blind)
    axis = figure.axes[0]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["32", "64"]
    line = axis.containers[0].lines[0]
    assert [float(y) for y in line.get_ydata()] == [0.6, 0.7]
    assert {"words alone, no model", "chance", "Min-k% Prob"} <= set(texts_of(figure))
    assert plt.get_fignums() == before  # a notebook would show the figure twice
    # Words alone have error bars where their interval is known.
    assert [c.has_yerr for c in axis.containers] == [True, False]
    axis = plots.auc_lines(rows, "length", "w", "t", blind.assign(ci_low=0.4, ci_high=0.6)).axes[0]
    assert [c.has_yerr for c in axis.containers] == [True, True]


def test_auc_lines_on_a_logarithmic_axis_stand_at_their_values():
    rows = pd.DataFrame({"method": ["m", "m", "n"], "tokens": [27656, 145414, 34213], "auc": 0.6})
    rows = rows.assign(ci_low=0.5, ci_high=0.7)
    axis = plots.auc_lines(rows, "tokens", "tokens", "title", log_x=True).axes[0]
    assert axis.get_xscale() == "log"
    assert [list(c.lines[0].get_xdata()) for c in axis.containers] == [[27656, 145414], [34213]]


def test_the_title_counts_benchmarks_that_words_tell_apart_without_the_controls():
    rows = pd.DataFrame({"benchmark": ["a", "b", "c"], "auc": [0.9, 0.6, 0.7]})
    rows = rows.assign(ci_low=[0.8, 0.4, 0.6], ci_high=1.0, n_members=10, n_non_members=10)
    rows = rows.assign(simplest=0.5, published_auc=float("nan"), is_control=[False, False, True])
    axis = plots.words_alone(rows).axes[0]
    assert axis.get_title().endswith("on 1 of 2 benchmarks")
    names = [tick.get_text() for tick in axis.get_yticklabels()]
    assert names == ["b (10 / 10)", "c (10 / 10)", "a (10 / 10)"]
