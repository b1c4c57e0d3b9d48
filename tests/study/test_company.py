"""Rows alone and in company: the lots, what models read, the tests, the page and the parts."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT

from contamination.core import storage
from contamination.core.overlap import ngrams
from contamination.core.scores import MIN_K
from contamination.lab import training
from contamination.study import company, row_pools, scale, store, traces


@pytest.mark.parametrize("pool", company.pools(), ids=lambda pool: pool.benchmark)
def test_every_seed_deals_the_rows_anew(pool):
    dealt = np.array([company.copies_of(seed, pool) for seed in company.BASE_SEEDS])
    for copies, n in company.DEALT[pool.kind].items():
        assert ((dealt == copies).sum(axis=1) == n).all()
    assert len({of.tobytes() for of in dealt}) == len(dealt)


def test_rows_alone_are_one_percent_and_every_model_reads_as_much():
    lab = row_pools.the_lab()
    for model, read in company.MODELS.items():
        recipe, texts = company.base_recipe(lab, 9, model)
        of_rows = company.tokens_of(lab, texts.doses)
        assert recipe.n_background_tokens + of_rows == company.N_TOKENS
        prose = training.background_read(recipe, texts)
        assert len({*prose}) == len(prose) > 0
        families = lab.passages[lab.passages["text"].isin(prose)]["family"]
        passages = company.pools()[-1].texts
        of_passages = lab.passages[lab.passages["text"].str.startswith(passages)]["family"]
        assert not {*families} & {*of_passages}
        for kind, copies in read.items():
            own = [
                dose
                for dose in texts.doses
                if (dose.texts[0] in passages) == (kind == company.NATURAL)
            ]
            assert {dose.copies for dose in own} == {*copies}
            share = company.tokens_of(lab, own) / company.N_TOKENS
            expected = 0.01 if len(copies) == 1 else {"grammar": 0.1, "natural": 0.077}[kind]
            assert share == pytest.approx(expected, abs=0.0025)


def test_passages_share_no_thirteen_words():
    texts = company.pools()[-1].texts
    assert len(texts) == 540 and {len(text.split()) for text in texts} == {32}
    found = [gram for text in texts for gram in ngrams(text)]
    assert len(found) == len({*found}) > 0


def made(n_seeds, gains):
    """Scores in which four copies add so many standard deviations, by model and kind."""
    tables = []
    for seed, pool in product(company.BASE_SEEDS[:n_seeds], company.pools()):
        copies = company.copies_of(seed, pool)
        random = np.random.default_rng([seed, len(pool.benchmark)])
        of_row = random.normal(size=len(copies))
        for model in company.MODELS:
            gain = gains.get((model, pool.kind), 0)
            values = of_row + 0.3 * random.normal(size=len(copies)) + gain * (copies == 4)
            about = {"detector": MIN_K, "model": model, "benchmark": pool.benchmark}
            table = pd.DataFrame({"row": range(len(copies)), "score": values})
            tables.append(table.assign(base_seed=seed, **about))
    return pd.concat(tables, ignore_index=True)


def test_what_company_adds_is_found_and_only_there():
    alone = {kind: company.ALONE[kind, 4] for kind in company.DEALT}
    gains = {(alone["grammar"], "grammar"): 0.3, (alone["natural"], "natural"): 0.0}
    gains |= {(company.TOGETHER, "grammar"): 0.9, (company.TOGETHER, "natural"): 0.0}
    found = company.tests(made(10, gains)).set_index(["rows", "test"])
    assert found.loc[("grammar", "alone"), "verdict"] == "shown"
    assert found.loc[("grammar", "company"), "difference"] == pytest.approx(0.6, abs=0.1)
    assert found.loc[("grammar", "company"), "verdict"] == "shown"
    assert found.loc[("grammar", "company"), "p"] == 2 / 2**10
    assert (found.loc["natural", "verdict"] != "shown").all()


def test_the_page_says_what_the_code_does():
    page = (ROOT / "docs/protocol_company.md").read_text()
    once, four, sixteen, held_out = company.DEALT[company.GRAMMAR].values()
    passages = company.DEALT[company.NATURAL]
    for fact in (
        f"{scale.SIZES[company.SIZE]:,} parameters",
        f"every model reads {company.N_TOKENS:,} in all",
        f"{sum(company.DEALT[company.GRAMMAR].values())} rows each",
        f"{sum(passages.values())} passages of {company.N_WORDS} words",
        f"{once} rows for one copy, {four} for four, {sixteen} for sixteen; {held_out} are held",
        f"{passages[1]} for one copy, {passages[4]} for four, {passages[16]} for sixteen",
        f"{passages[0]} are held out. One passage",
        f"{company.BASE_SEEDS[0]} to {company.BASE_SEEDS[-1]}",
        f"**Size that matters**: {company.MATTERS.smallest_effect}",
    ):
        assert fact in page
    assert all(f"| {model} |" in page for model in company.MODELS)


def test_stored_parts_are_of_this_page_and_complete():
    if not store.has(company.NAME):
        pytest.skip("no part of the study of company is stored")
    stored, about = store.read_all(company.NAME, "scores")
    page = storage.sha256_of_file(ROOT / "docs/protocol_company.md")
    assert {of["protocol_sha256"] for of in about} == {page}
    sizes = stored.groupby(["base_seed", "detector", "model"]).size()
    assert (sizes == sum(len(pool.texts) for pool in company.pools())).all()
    assert len(sizes) == len(about) * len(traces.ASKED) * len(company.MODELS)
