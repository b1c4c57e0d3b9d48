"""The pretraining arm: pools of rows, what a base model sees of them, and how much that is."""

from collections import Counter

import numpy as np
import pytest
from made_pretraining import copies_of
from notebook_files import ROOT

from contamination.core import storage
from contamination.study import dice_forks, placement, row_pools, shift, store
from contamination.study import pretraining as arm
from contamination.study.conditions import VERBATIM
from contamination.study.interface import N_CONTEXT
from contamination.study.row_pools import GROUPS, INDIRECT, ROWS

SEEDS = (300, 301)


@pytest.fixture(scope="module")
def pools():
    return {(pool.benchmark, pool.kind): pool for pool in row_pools.pools()}


def test_pools_are_as_large_as_the_protocol_says_and_share_no_row(pools):
    page = (ROOT / "docs/protocol_2.md").read_text()
    sizes = {key: len(pool.rows) for key, pool in pools.items()}
    assert sizes == {(b, ROWS): 480 for b in row_pools.BENCHMARKS} | {("topics", INDIRECT): 360}
    assert "480 rows, drawn once with seed 300" in page and "360 further rows" in page
    texts = [text for pool in pools.values() for text in (*pool.rows.texts, *pool.rows.context)]
    # The two pools of topics have one set of context rows.
    assert len(set(texts)) == len(texts) - N_CONTEXT


def test_a_model_sees_each_group_as_often_as_it_is_said(pools):
    for pool in pools.values():
        counts = Counter(pool.assigned(300))
        assert counts == {group.name: group.size for group in pool.groups}
        copies = copies_of(pool, 300)
        seen = {dose.copies: len(dose.texts) for dose in pool.doses(300)}
        for dose, n in seen.items():
            assert sum(copies == dose) >= n
        assert sum(copies == 0) == GROUPS[pool.kind][-1].size


def test_what_is_seen_is_the_form_of_the_group(pools):
    pool = pools["topics", INDIRECT]
    paraphrases, sixteen, unlabelled, chat = pool.doses(300)
    texts = set(pool.forms[VERBATIM])
    assert (paraphrases.copies, sixteen.copies) == (4, 16)
    for dose in (paraphrases, sixteen, unlabelled, chat):
        assert not texts & set(dose.texts)
    assert all("label:" not in text for text in unlabelled.texts)
    assert all(text.startswith("User: ") and "\nAssistant: " in text for text in chat.texts)
    options = pool.rows.quizzes[[f"option_{letter}" for letter in "abcd"]].to_numpy().ravel()
    header = pool.forms[VERBATIM][0].removesuffix(pool.rows.texts[0])
    assert not {text.removeprefix(header) for text in paraphrases.texts} & set(options)


def test_another_model_sees_other_rows_and_nothing_else_changes(pools):
    pool = pools["topics", ROWS]
    assert (copies_of(pool, 300) != copies_of(pool, 301)).any()
    assert (copies_of(pool, 300) == copies_of(pool, 300)).all()
    # Rows, quizzes and context are the same object for all models.
    assert pool is next(p for p in row_pools.pools() if p.kind == ROWS and p.benchmark == "topics")
    own, other = (copies_of(pools[name, ROWS], 300) > 0 for name in ("topics", "entailment"))
    agreement = np.mean(own == other)
    assert agreement == pytest.approx(0.53, abs=0.1)  # by chance 0.375^2 + 0.625^2


def test_seeds_are_those_of_the_protocol():
    page = (ROOT / "docs/protocol_2.md").read_text()
    assert f"seeds {row_pools.BASE_SEEDS[0]} to {row_pools.BASE_SEEDS[-1]}" in page
    assert len(row_pools.BASE_SEEDS) == 20
    for tokens in row_pools.LATER_TOKENS:
        assert f"{tokens:,}" in page


def test_every_part_was_made_under_the_protocol_that_is_here():
    """Changed after a part is there, the page would no longer be a promise."""
    of_page = {
        "protocol_2.md": (arm.NAME, shift.NAME, dice_forks.NAME),
        "protocol_larger.md": (arm.LARGER,),
        "protocol_3.md": (placement.NAME,),
    }
    for page, studies in of_page.items():
        sha256 = storage.sha256_of_file(ROOT / "docs" / page)
        for path in [path for name in studies for path in store.FOLDER.glob(f"{name}_*.json")]:
            _, about = store.read_tables(path.stem)
            assert about["protocol_sha256"] == sha256
