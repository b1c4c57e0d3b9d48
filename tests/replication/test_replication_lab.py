"""Verdicts on the lab's partitions, each with a table that confirms and one that refutes."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from contamination.core import storage
from contamination.core.verdicts import (
    CONTROL_FAILS,
    NOT_RUN,
    OPEN,
    RULED_OUT,
    SHOWN,
)
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import Dose, TrainingTexts, recipe_for, train
from contamination.models.local import load_causal_lm
from contamination.replication import completions, decisions

SCORER = SimpleNamespace(identity={"bleurt_by": "a package"})


def verdict_of(flags, n_clean, n=4):
    """Of a method that flags so many partitions at 0, 4 and 64 copies."""
    doses = pd.DataFrame(
        {"copies": [0, 4, 64], "n_partitions": [n_clean, n, n], "n_flagged": flags}
    )
    (row,) = decisions.method_verdicts(doses.assign(method="m", instruction="guided")).to_dict(
        "records"
    )
    return row


@pytest.mark.parametrize(
    ("flags", "n_clean", "seen_from", "verdict"),
    [
        ((0, 4, 4), 1000, 4, SHOWN),
        ((0, 1, 2), 1000, 64, SHOWN),
        ((1, 4, 4), 12, 4, SHOWN),
        ((1, 4, 2), 12, 4, OPEN),  # two of four read ones, one of twelve clean ones
        ((4, 4, 4), 12, 4, CONTROL_FAILS),  # p 0.002 of so many false flags at 5 %
        ((0, 0, 0), 1000, None, RULED_OUT),
        ((0, 3, 1), 1000, None, SHOWN),  # not half of the largest dose, yet more than of clean
        ((0, 3, 1), 12, None, OPEN),
    ],
)
def test_verdict_on_a_method(flags, n_clean, seen_from, verdict):
    row = verdict_of(flags, n_clean)
    assert (row["n_clean"], row["n_false"]) == (n_clean, flags[0])
    assert row["verdict"] == verdict
    assert pd.isna(row["seen_from"]) if seen_from is None else row["seen_from"] == seen_from


def test_a_correction_for_many_methods_takes_a_small_difference_back():
    """Two of four against none of twelve is shown alone, and not as one of thirty methods."""
    doses = pd.DataFrame({"copies": [0, 64], "n_partitions": [12, 4], "instruction": "guided"})

    def words(first, n_others):
        idle = [doses.assign(method=f"{n}", n_flagged=0) for n in range(n_others)]
        return decisions.method_verdicts(pd.concat([doses.assign(method="m", **first), *idle]))

    alone, small = (words({"n_flagged": [0, 2]}, n).iloc[0] for n in (0, 29))
    assert alone["difference_low"] > 0 and alone["p"] == small["p"] < 0.05
    assert (alone["verdict"], small["verdict"]) == (SHOWN, OPEN)
    large = words({"n_flagged": [0, 40], "n_partitions": [120, 40]}, 29).iloc[0]
    assert large["verdict"] == SHOWN
    # Its own false alarms fail the control, however many methods are asked.
    assert words({"n_flagged": [6, 4]}, 29).iloc[0]["verdict"] == CONTROL_FAILS


def lab_rows(instruction, contaminated, method="Algorithm 1", **more):
    """Partitions, of which the first two of every four are clean and two contaminated."""
    row = {"metric": "ROUGE-L", "test": "paired bootstrap", "split": "test", "n_valid": 10} | more
    return pd.DataFrame(
        row
        | {"method": method, "instruction": instruction, "contaminated": flag}
        | {"dataset": f"D {place}", "copies": 8 * (place % 4 > 1), "truth": place % 4 > 1}
        for place, flag in enumerate(contaminated)
    )


NONE, DOSED = [False] * 4, [False, False, True, True]


@pytest.mark.parametrize(
    ("over_general", "over_placebo", "placebo_mean", "verdict"),
    [
        (DOSED, NONE, 0.8, CONTROL_FAILS),
        ([True] * 8, [True] * 8, 0.6, SHOWN),
        # Four of four are most of them, and not as one of two tests.
        ([True] * 4, [True] * 4, 0.6, OPEN),
        (DOSED, DOSED, 0.6, OPEN),  # two partitions are too few
        # A placebo that keeps little of the gap, and yet no flag against it: nothing is shown.
        (DOSED, NONE, 0.6, OPEN),
        ([True] * 4, NONE, 0.6, RULED_OUT),
        (NONE, NONE, 0.8, NOT_RUN),
    ],
)
def test_verdict_on_a_placebo(over_general, over_placebo, placebo_mean, verdict):
    rows = [lab_rows("general", over_general, mean=0.5)]
    names = ["wrong dataset", "wrong split"]
    rows += [lab_rows(name, over_placebo, mean=placebo_mean) for name in names]
    table = decisions.placebo_verdicts(pd.concat(rows).assign(mean_guided=0.9))
    assert table["placebo"].tolist() == names
    row = table.iloc[1]
    assert row["verdict"] == verdict
    assert (row["n_flagged"], row["n_also"]) == (sum(over_general), sum(over_placebo))
    assert bool(row["note"]) == (verdict == NOT_RUN)
    if any(over_general):
        assert row["kept"] == pytest.approx((placebo_mean - 0.5) / 0.4)


@pytest.fixture(scope="module")
def small_study(tmp_path_factory):
    """A tiny model of 2 partitions per benchmark, one read often, and its table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(storage.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        instances = decisions.lab_instances([0, 20], 2, seed=0, benchmarks=("topics", "entailment"))
        doses = decisions.lab_doses(instances, seed=0)
        tokenizer = train_tokenizer([text for dose in doses for text in dose.texts], 400)
        texts = TrainingTexts((), (Dose(doses[1].texts, 60),), tokenizer)
        how = {"n_layers": 1, "width": 32, "n_heads": 2, "learning_rate": 1e-2}
        recipe = recipe_for(texts, n_background_tokens=0, **how)
        lm = load_causal_lm(train(recipe, texts))
        asked = decisions.lab_prompts(instances)
        written = completions.by_local_model(lm, asked["prompt"], decisions.LAB_MAX_TOKENS)
        scored = decisions.with_scores(completions.with_completions(asked, written), 0.82)
        parts = [decisions.partition_rows(scored, {decisions.RULE_JUDGE: decisions.RULE_COLUMN})]
        cheated, said = decisions.cheat_rows(lm, instances, 0.82)
        parts += [decisions.ranking_rows(lm, instances), cheated]
        return scored, decisions.lab_table(parts, "tiny", 0), said


def test_the_table_holds_the_columns_and_every_method(small_study):
    scored, table, texts = small_study
    assert list(table) == decisions.LAB_COLUMNS
    needed = "dataset model instruction copies seed n metric mean p_value n_exact n_near_exact"
    assert set(needed.split()) | {"contaminated", "truth"} <= set(table)
    # 4 partitions: 4 comparisons by 2 tests, 5 instructions judged, ranking, first instances.
    assert len(table) == 4 * (4 * 2 + 5 + 1 + 1)
    assert len(scored) == 4 * 2 * 5 and len(texts) == 4
    assert (table["truth"] == (table["copies"] > 0)).all()
    assert not table["contaminated"].isna().any()


def test_what_was_read_often_is_ranked_above_its_paraphrases(small_study):
    _, table, _ = small_study
    ranking = table[table["method"] == decisions.OPTION_RANKING].set_index("copies")["mean"]
    assert ranking.loc[20].mean() > ranking.loc[0].mean()
    p_values = table.loc[table["method"] == decisions.OPTION_RANKING, "p_value"]
    # Two of two at one in five: the smallest p there is.
    assert p_values.min() == pytest.approx(0.04)


def test_without_a_checkpoint_bleurt_is_empty_and_the_reason_a_sentence(tmp_path):
    scorer, why = decisions.bleurt_or_reason("")
    assert scorer is None and "no bleurt_checkpoint is set" in why
    scorer, why = decisions.bleurt_or_reason(str(tmp_path / "nowhere"))
    assert scorer is None and "nowhere" in why and "\n" not in why


def test_bleurt_reaches_the_table(monkeypatch):
    pieces = pd.DataFrame({"first_piece": ["a b"] * 2, "second_piece": ["c d e f"] * 2})
    pieces = pieces.assign(completion="c d", status=["ok", "refused"], is_repeated=False)
    pieces = pieces.assign(task="summary", is_mid_sentence=True)
    asked = []

    def scores(scorer, references, candidates):
        asked.append((references, candidates))
        return np.array([0.5])

    monkeypatch.setattr(decisions.bleurt, "score_pairs", scores)
    table = decisions.with_scores(pieces, 0.8, scorer=SCORER)
    assert [tuple(map(list, pair)) for pair in asked] == [(["a b c d e f"], ["a b c d"])]
    assert table["bleurt_by"].tolist() == ["a package", ""]
    assert table["bleurt"].tolist()[0] == 0.5 and np.isnan(table["bleurt"].tolist()[1])
