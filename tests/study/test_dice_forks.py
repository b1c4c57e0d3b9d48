"""The fine-tuning arm: DICE's networks, what they learn and are tested on, and what follows."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT
from scipy import stats
from verdict_words import check_verdicts

from contamination.core import verdicts
from contamination.dice import mixtures
from contamination.lab import training
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import training_stream
from contamination.study import dice_forks as arm
from contamination.study import row_pools, store
from contamination.study.conditions import TRAIN_SPLIT
from contamination.study.dice_forks import (
    CLAIMED,
    CONTAMINATED,
    KINDS,
    OTHER,
    OTHER_QUESTIONS,
)

FIRST, SECOND, THIRD = CLAIMED


def states_of(shifts, n_forks=4, n_questions=16, layer=2, width=16, seed=0):
    """Hidden states that differ by kind at one layer alone, by so much along every coordinate."""
    rng = np.random.default_rng(seed)
    of_questions = rng.normal(size=(n_questions, 6, width))
    states = {}
    for kind in KINDS:
        noise = 0.01 * rng.normal(size=(n_forks, n_questions, 6, width))
        states[kind] = (of_questions + noise).astype(np.float32)
        states[kind][:, :, layer] += shifts.get(kind, 0)
    return states


def comparisons_of(by_comparison, n_bases=10, n_networks=4):
    """A table as read from the ledger: the same number for every network of a base model."""
    rows = [
        {"comparison": name, "network": network, "auc": auc, "layer": 3, "n_questions": 8}
        | {"base_seed": 300 + base}
        for name, aucs in by_comparison.items()
        for base, auc in enumerate(np.broadcast_to(aucs, n_bases))
        for network in range(n_networks)
    ]
    return pd.DataFrame(rows)


def test_the_design_is_that_of_the_protocol():
    page = (ROOT / "docs/protocol_2.md").read_text()
    assert f"Ten base models, seeds {arm.BASE_SEEDS[0]} to {arm.BASE_SEEDS[-1]}" in page
    assert len(arm.BASE_SEEDS) == 10 and len(KINDS) * arm.N_FORKS == 12
    assert "four on the train split" in page and arm.N_FORKS == 4


# Questions and tokens


def test_forks_are_trained_on_questions_that_the_base_model_did_not_see():
    sets = arm.question_sets(200)
    assert list(sets) == list(KINDS) and {len(table) for table in sets.values()} == {16}
    questions = {kind: set(table["question"]) for kind, table in sets.items()}
    assert len(set.union(*questions.values())) == 48
    pool = next(p for p in row_pools.pools() if p.benchmark == "grade_school")
    seen = "\n".join((*pool.rows.texts, *pool.rows.context))
    assert not [text for own in questions.values() for text in own if text in seen]
    assert all("####" in answer for table in sets.values() for answer in table["answer"])
    again, other = arm.question_sets(200), arm.question_sets(201)
    assert all(sets[kind].equals(again[kind]) for kind in KINDS)
    assert not any(questions[kind] & set(other[kind]["question"]) for kind in KINDS)


def test_rows_of_the_pools_are_left_out_of_the_draw(monkeypatch):
    drawn = arm.question_sets(200)
    row = drawn[CONTAMINATED].iloc[0]
    text = f"question: {row['question']}\nanswer: {row['answer']}"
    pool = SimpleNamespace(
        benchmark="grade_school", rows=SimpleNamespace(texts=(text,), context=())
    )
    monkeypatch.setattr(arm.row_pools, "pools", lambda: (pool,))
    kept = arm.question_sets(200)
    assert row["question"] not in {*kept[CONTAMINATED]["question"], *kept[OTHER]["question"]}
    assert kept[CONTAMINATED]["question"].iloc[0] == drawn[CONTAMINATED]["question"].iloc[1]


def test_lengths_add_up_to_the_total_exactly_and_no_row_comes_twice():
    lengths = np.random.default_rng(0).integers(24, 69, size=300)
    chosen = [arm.drawn_to_total(lengths, 5_000, seed) for seed in range(20)]
    assert all(lengths[rows].sum() == 5_000 and len(set(rows)) == len(rows) for rows in chosen)
    assert len({tuple(rows) for rows in chosen}) == 20
    with pytest.raises(ValueError, match="no draw of these 2 rows has exactly 7 tokens"):
        arm.drawn_to_total(np.array([4, 4]), 7, 0)


@pytest.fixture
def lab():
    """A tokenizer is all that mixtures need of a lab."""
    words = [f"the value of {word} is a number" for word in ("first", "second", "third", "sum")]
    return SimpleNamespace(tokenizer=train_tokenizer(words * 4))


@pytest.fixture
def vanilla():
    rng = np.random.default_rng(0)
    return [
        (mixtures.PROMPT.format(f"f{n}()"), "1" * int(rng.integers(1, 40)) + str(n))
        for n in range(3_000)
    ]


def test_all_forks_of_a_base_model_have_equal_tokens_and_seeds_of_their_own(
    lab, vanilla, monkeypatch
):
    trained = []

    def fine_tuned(lab, base, mixture, seed, learning_rate):
        trained.append((mixture, seed))
        return Path(str(len(trained) - 1))

    def described(folder):
        mixture, seed = trained[int(str(folder))]
        doses = (
            training.Dose(mixture.vanilla),
            training.Dose(mixture.contamination, mixture.copies),
        )
        texts = training.TrainingTexts((), doses, lab.tokenizer)
        recipe = training.recipe_for(texts, n_background_tokens=0, order_seed=seed)
        return {"n_tokens": training_stream(recipe, texts).n_tokens}

    monkeypatch.setattr(arm, "vanilla_rows", lambda: vanilla)
    monkeypatch.setattr(arm, "fine_tune_lab", fine_tuned)
    monkeypatch.setattr(arm, "describe", described)
    sets = {
        kind: pd.DataFrame(
            {"question": [f"{kind} {n}?" for n in range(3)], "answer": ["#### 5"] * 3}
        )
        for kind in KINDS
    }
    forks = arm.train_forks(lab, Path(), sets, 200)
    assert {kind: len(of_kind) for kind, of_kind in forks.items()} == dict.fromkeys(KINDS, 4)
    assert len({seed for _, seed in trained}) == 12
    # A kind has its questions in all forks, and the instruction data of none is another's.
    assert len({mixture.contamination for mixture, _ in trained}) == 3
    assert len({mixture.vanilla for mixture, _ in trained}) == 12
    monkeypatch.setattr(arm, "describe", lambda folder: {"n_tokens": 23_999})
    with pytest.raises(ValueError, match="has 23999 tokens, not 24000"):
        arm.train_forks(lab, Path(), sets, 200)


# Networks


def test_halves_are_disjoint_and_follow_from_the_base_model_alone():
    halves = {seed: arm.halves(seed, 16) for seed in range(200, 210)}
    for learned, tested in halves.values():
        assert len(learned) == len(tested) == 8
        assert sorted([*learned, *tested]) == list(range(16))
    assert len({tuple(learned) for learned, _ in halves.values()}) > 5
    assert np.array_equal(arm.halves(200, 16)[0], halves[200][0])


def test_no_network_is_tested_on_a_fork_or_a_question_that_it_learned_on(monkeypatch):
    # Every state holds the number of its fork and of its question.
    states = {}
    for place, kind in enumerate(KINDS):
        fork, question = np.meshgrid(np.arange(4), np.arange(16), indexing="ij")
        one = np.stack([fork, question, np.full_like(fork, place)], axis=-1).astype(float)
        states[kind] = np.repeat(one[:, :, None], 6, axis=2)
    learned, tested = [], []

    def trained(states, labels, seed):
        learned.append((states, labels, seed))
        tested.append([])

        def score(others):
            tested[-1].append(others)
            return np.arange(len(others), dtype=float)

        return score

    monkeypatch.setattr(arm, "train_mlp", trained)
    table = arm.compare(states, 200)
    assert len(table) == 4 * 4 and set(table["comparison"]) == {*CLAIMED, OTHER_QUESTIONS}
    assert len({seed for *_, seed in learned}) == 4 and max(s for *_, s in learned) < 2**32
    for network, ((met, labels, _), asked) in enumerate(zip(learned, tested, strict=True)):
        asked = np.concatenate(asked)
        assert set(met[:, 0]) == {network} and set(asked[:, 0]) == {*range(4)} - {network}
        assert not set(met[:, 1]) & set(asked[:, 1])
        assert set(met[:, 1]) | set(asked[:, 1]) == set(range(16))
        # Benchmark (0) is the kind to be found, other questions (1) its counterpart.
        assert np.array_equal(met[:, 2] == 0, labels) and set(met[:, 2]) == {0, 1}
        assert set(asked[:, 2]) == {0, 1, 2}


def test_a_layer_that_differs_only_among_test_forks_is_not_located():
    states = states_of({CONTAMINATED: 1.0})
    for kind in KINDS:
        states[kind][1:, :, 4] += 50 * (kind == CONTAMINATED)
    table = arm.compare(states, 200)
    assert set(table.loc[table["network"] == 0, "layer"]) == {2}
    assert set(table.loc[table["network"] > 0, "layer"]) == {4}
    # Questions of the test count as little, though they are nine of seventeen.
    states = states_of({CONTAMINATED: 1.0}, n_questions=17)
    states[CONTAMINATED][:, arm.halves(200, 17)[1], 4] += 50
    assert set(arm.compare(states, 200)["layer"]) == {2}


@pytest.mark.parametrize(
    ("shifts", "expected"),
    [
        ({CONTAMINATED: 3.0}, {FIRST: 1.0, SECOND: 1.0}),
        # The network recognises its clean models, not contamination.
        ({OTHER: 3.0}, {FIRST: 1.0, THIRD: 1.0}),
        ({CONTAMINATED: 3.0, TRAIN_SPLIT: 3.0}, {FIRST: 1.0, THIRD: 1.0}),
    ],
)
def test_comparisons_tell_what_the_network_recognises(shifts, expected):
    means = arm.compare(states_of(shifts), 200).groupby("comparison")["auc"].mean()
    for comparison in (*CLAIMED, OTHER_QUESTIONS):
        wanted = expected.get(comparison, 0.5)
        assert means[comparison] == pytest.approx(wanted, abs=0.02 if wanted == 1 else 0.2)


def test_clean_against_clean_is_one_half_over_many_base_models():
    tables = [
        arm.compare(states_of({CONTAMINATED: 1.0}, width=8, seed=seed), seed).assign(base_seed=seed)
        for seed in range(12)
    ]
    control = arm.clean_control(pd.concat(tables)).iloc[0]
    assert control["n_bases"] == 12 and control["holds"]
    assert control["auc"] == pytest.approx(0.5, abs=0.05)


# Verdicts


def test_the_interval_is_that_of_a_t_test_with_nine_degrees_of_freedom():
    aucs = np.array([0.6, 0.7] * 5)
    one = arm.over_bases(aucs)
    error = 0.05 * np.sqrt(10 / 9) / np.sqrt(10)  # mean 0.65, deviations of 0.05
    assert one["auc"] == pytest.approx(0.65) and one["test"] == "t test"
    ends = 0.65 - 2.262157 * error, 0.65 + 2.262157 * error
    assert (one["ci_low"], one["ci_high"]) == pytest.approx(ends)
    assert one["p_value"] == pytest.approx(stats.ttest_1samp(aucs, 0.5).pvalue)
    assert arm.over_bases(np.array([1.0] * 9 + [0.9]))["ci_high"] == 1


def test_equal_numbers_take_a_sign_test():
    one = arm.over_bases(np.ones(10))
    assert (one["test"], one["p_value"]) == ("sign test", 2 / 1024)
    assert np.isnan([one["ci_low"], one["ci_high"]]).all()
    assert arm.over_bases(np.full(10, 0.5))["p_value"] == 1


SPREAD = np.linspace(-0.04, 0.04, 10)
SUPPORTING = {FIRST: 0.9 + SPREAD, SECOND: 0.8 + SPREAD, THIRD: 1.0, OTHER_QUESTIONS: 0.5 + SPREAD}
REFUTING = {FIRST: 0.5 + SPREAD, SECOND: 0.45 + SPREAD, THIRD: 0.0, OTHER_QUESTIONS: 0.7 + SPREAD}
WIDE = {FIRST: 0.55 + 5 * SPREAD, SECOND: 0.6 + 8 * SPREAD, THIRD: 0.5, OTHER_QUESTIONS: 0.5}


@pytest.mark.parametrize(
    ("by_comparison", "words", "holds"),
    [
        (SUPPORTING, [verdicts.SHOWN] * 3, True),
        (REFUTING, [verdicts.RULED_OUT] * 3, False),
        (WIDE, [verdicts.OPEN] * 2 + [verdicts.RULED_OUT], True),
    ],
)
def test_verdicts_of_tables_that_confirm_and_refute(by_comparison, words, holds):
    comparisons = comparisons_of(by_comparison)
    table = arm.verdicts(comparisons)
    assert table["claim"].tolist() == list(CLAIMED) and table["n_bases"].tolist() == [10] * 3
    assert table["verdict"].tolist() == words
    check_verdicts(table["verdict"])
    control = arm.clean_control(comparisons)
    assert "verdict" not in control and control["holds"].tolist() == [holds]


def test_p_values_are_adjusted_over_the_three_claims_alone():
    table = arm.verdicts(comparisons_of(SUPPORTING))
    p = table["p_value"].to_numpy()
    order = np.argsort(p)
    assert table["p_adjusted"].iloc[order[0]] == pytest.approx(3 * p[order[0]])
    assert table["p_adjusted"].iloc[order[2]] == pytest.approx(p[order[2]])


def test_four_base_models_are_open_and_a_missing_comparison_is_an_error():
    few = comparisons_of({name: 1.0 for name in SUPPORTING}, n_bases=4)
    assert set(arm.verdicts(few)["verdict"]) == {verdicts.OPEN}
    assert arm.clean_control(few)["holds"].isna().all()
    lacking = few[(few["comparison"] != SECOND) | (few["base_seed"] != 301)]
    with pytest.raises(ValueError, match="301"):
        arm.verdicts(lacking)


def test_a_part_is_written_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(arm.row_pools, "the_lab", lambda: None)

    def scored(lab, base_seed):
        return arm.compare(states_of({CONTAMINATED: 1.0}), base_seed), {"base_seed": base_seed}

    monkeypatch.setattr(arm, "score_base", scored)
    for seed in (300, 301):
        about = {"protocol_sha256": "of the page"}
        arm.write_part(tmp_path, f"{arm.NAME}_{seed}", about, seed)
    table, made_by = store.read_all(arm.NAME, "comparisons", tmp_path)
    assert [about["base_seed"] for about in made_by] == [300, 301]
    assert all(about["protocol_sha256"] == "of the page" for about in made_by)
    expected = scored(None, 301)[0]
    own = table[table["base_seed"] == 301].reset_index(drop=True)
    pd.testing.assert_frame_equal(own[expected.columns], expected, check_dtype=False)
    assert set(table["n_questions"]) == {8}
