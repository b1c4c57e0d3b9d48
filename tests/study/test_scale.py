"""Three sizes and two amounts of text: the lots, the shares, the trace, the page and the parts."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT
from scipy import stats

from contamination.core import storage
from contamination.core.scores import MIN_K
from contamination.lab import training
from contamination.models.local import n_tokens
from contamination.study import row_pools, scale, store, traces


def test_every_seed_deals_sixty_rows_of_each_benchmark_anew():
    for benchmark in scale.BENCHMARKS:
        dealt = np.array([scale.copies_of(seed, benchmark) for seed in scale.BASE_SEEDS])
        assert ((dealt == 4).sum(axis=1) == 60).all() and ((dealt == 0).sum(axis=1) == 200).all()
        assert len({of.tobytes() for of in dealt}) == len(dealt)


def test_rows_are_the_same_share_of_all_tokens_and_no_docstring_is_read_twice():
    lab, shares = row_pools.the_lab(), []
    for n in (scale.LESS, scale.MORE):
        recipe, texts = scale.base_recipe(lab, 9, "XS", n)
        of_rows = sum(
            dose.copies * n_tokens(lab.tokenizer, dose.texts, n_special=2).sum()
            for dose in texts.doses
        )
        shares.append(of_rows / (of_rows + n))
        read = training.background_read(recipe, texts)
        assert len({*read}) == len(read) > 0
    assert shares == pytest.approx([0.09, 0.09], abs=0.003)
    rows = [text for pool, fillers in scale.pools() for text in (*pool.forms["verbatim"], *fillers)]
    assert len({*rows}) == len(rows) == 3 * (260 + 360)


def made(n_seeds, gains):
    """Scores in which four copies add so many standard deviations, by size and tokens."""
    tables = []
    for seed, benchmark in product(scale.BASE_SEEDS[:n_seeds], scale.BENCHMARKS):
        copies = scale.copies_of(seed, benchmark)
        random = np.random.default_rng([seed, len(benchmark)])
        of_row = random.normal(size=len(copies))
        for (size, n), gain in gains.items():
            values = of_row + 0.3 * random.normal(size=len(copies)) + gain * (copies > 0)
            about = {"detector": MIN_K, "model": scale.name_of(size, n), "benchmark": benchmark}
            table = pd.DataFrame({"row": range(len(copies)), "score": values})
            tables.append(table.assign(base_seed=seed, **about))
    return pd.concat(tables, ignore_index=True)


def test_differences_are_found_with_their_sign_and_only_where_they_are():
    kinds = product(scale.SIZES, (scale.LESS, scale.MORE))
    gains = {(size, n): 0.2 + 0.4 * (size == "M") for size, n in kinds}
    found = scale.differences(made(10, gains)).set_index("test")
    of_size = found[found.index.str.startswith("size")]
    assert of_size["difference"].between(0.3, 0.5).all() and (of_size["verdict"] == "shown").all()
    assert (of_size["p"] == 2 / 2**10).all()
    of_text = found[found.index.str.startswith("text")]
    assert of_text["verdict"].isin(["ruled out"]).all()
    reversed_ = {kind: 0.8 - gain for kind, gain in gains.items()}
    assert (scale.differences(made(10, reversed_))["verdict"] == "ruled out").all()


def test_the_trace_is_the_distance_and_seeds_after_a_gap_do_not_count():
    stored = made(9, {("M", scale.LESS): 1.0})
    pools = scale.crossed(stored, MIN_K, "M", scale.LESS)
    rank = [stats.rankdata(pool.scores[0]) for pool in pools]
    n_pairs, lowest = 60 * 200, 60 * 61 / 2
    aucs = [
        (of[pool.copies[0] == 4].sum() - lowest) / n_pairs
        for of, pool in zip(rank, pools, strict=True)
    ]
    by_hand = np.sqrt(2) * stats.norm.ppf(np.mean(aucs))
    assert traces.trace(pools, scale.COPIES).by_model[0] == pytest.approx(by_hand)
    assert by_hand == pytest.approx(1 / np.sqrt(1.09), abs=0.3)
    with_gap = stored[stored["base_seed"] != 705]
    assert len(scale.crossed(with_gap, MIN_K, "M", scale.LESS)[0].scores) == 5


def test_the_page_says_what_the_code_does():
    page = (ROOT / "docs/protocol_scale.md").read_text()
    sizes = [f"{n:,}" for n in scale.SIZES.values()]
    for fact in (
        f"{', '.join(sizes[:2])} and {sizes[2]} parameters",
        f"{scale.LESS:,} or {scale.MORE:,} tokens",
        f"{scale.N_SEEN} rows are seen four times",
        f"{scale.N_HELD_OUT} are held out",
        f"{scale.N_FILLERS} other rows of each benchmark",
        f"{scale.BASE_SEEDS[0]} to {scale.BASE_SEEDS[-1]}",
        f"**Size that matters**: {scale.MATTERS.smallest_effect}",
    ):
        assert fact in page
    for name, *_ in scale.TESTS:
        assert f"| {name} |" in page


def test_stored_parts_are_of_this_page_and_complete():
    if not store.has(scale.NAME):
        pytest.skip("no part of the study of scale is stored")
    stored, about = store.read_all(scale.NAME, "scores")
    page = storage.sha256_of_file(ROOT / "docs/protocol_scale.md")
    assert {of["protocol_sha256"] for of in about} == {page}
    sizes = stored.groupby(["base_seed", "detector", "model", "benchmark"]).size()
    assert (sizes == scale.N_SEEN + scale.N_HELD_OUT).all()
    assert len(sizes) == len(about) * len(traces.ASKED) * 6 * len(scale.BENCHMARKS)
    for of in about:
        for model, known in of["models"].items():
            assert known["n_parameters"] == scale.SIZES[model.partition(",")[0]]
