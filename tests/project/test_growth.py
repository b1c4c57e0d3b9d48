"""The page on growth: what counts as flat, and how it is said."""

import sys

import pytest
from notebook_files import ROOT

sys.path.append(str(ROOT / "benchmarks"))
import bench_growth as growth


def runs(costs_ms=(1.0, 1.0, 1.0), peaks=(100.0, 100.0, 100.0), changed=()):
    """One run of every task and size; the ``changed`` tasks have these costs and peaks."""
    rows = []
    for task in growth.TASKS:
        for n, cost, peak in zip(growth.SIZES, costs_ms, peaks, strict=True):
            is_changed = task in changed
            seconds = n * (cost if is_changed else 1.0) / 1000
            peak_mb = peak if is_changed else 100.0
            rows.append({"task": task, "items": n, "seconds": seconds, "peak_mb": peak_mb})
    return rows


def test_the_least_time_and_the_highest_peak_of_the_repeats_count():
    rows = growth.least(
        runs() + runs(costs_ms=(2, 0.5, 3), peaks=(90, 120, 100), changed=growth.TASKS)
    )
    assert [1000 * row["seconds"] / row["items"] for row in rows[:3]] == [1, 0.5, 1]
    assert [row["peak_mb"] for row in rows[:3]] == [100, 120, 100]
    assert len(rows) == len(growth.TASKS) * len(growth.SIZES)


def test_change_is_from_the_middle_size_to_the_largest():
    rows = runs(costs_ms=(9, 2, 3), peaks=(10, 100, 190), changed=["texts scored"])
    cost, peak, each = growth.change("texts scored", rows)
    assert (cost, peak) == pytest.approx((1.5, 1.9))
    assert each == pytest.approx(1024 * 90 / 90_000)
