"""Shift without exposure: sets that no model has seen, their p-values, and the verdicts."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT
from scipy import stats
from tiny_models import saved, tiny_llama

from contamination.lab import passages, world
from contamination.lab.passages import version_order
from contamination.lab.tokenizer import train_tokenizer
from contamination.models.local import load_causal_lm
from contamination.study import baselines, protocol, row_pools, shift, store
from contamination.study import pretraining as arm
from contamination.study.interface import LOG_PROBABILITIES, N_CONTEXT, Detector
from contamination.study.shift import DATE, DOCSTRINGS, LABELS, LENGTH, NATURALNESS, NONE

SEED = 300


def made_docstrings():
    """Docstrings of two packages without common words; versions rise within a package."""
    rng = np.random.default_rng(0)
    rows = []
    for package, n in (("first", 300), ("second", 200)):
        for number in range(n):
            words = [f"{package}{number}x{word}" for word in rng.integers(0, 9_999, 34)]
            family = f"{package}.module{number % 40}"
            page = f"{family}.page{number}"
            version = f"1.{number % 20}" if number % 5 else None
            rows.append((package, "1.0", page, family, " ".join(words), len(words), version))
    columns = ["package", "package_version", "page", "family", "text", "n_words", "version"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture(scope="module")
def lab():
    docstrings = made_docstrings()
    split = passages.split_by_family(docstrings, shift.WORLD_SEED)
    background = tuple(split.loc[split["role"] == "background", "text"])[:50]
    texts = [text for pool in row_pools.pools() for text in pool.rows.texts[:100]]
    tokenizer = train_tokenizer([*texts, *background], vocabulary=600)
    return world.World(docstrings, split, background, tokenizer)


@pytest.fixture(scope="module")
def pairs(lab):
    every = {(one.shift, one.benchmark): one for one in shift.pairs(lab, SEED) if one.draw == 0}
    assert len(every) == sum(map(len, shift.SHIFTS.values()))
    return every


@pytest.fixture(scope="module")
def tiny(lab, tmp_path_factory):
    model = tiny_llama(lab.tokenizer, context=1024)
    return saved(tmp_path_factory.mktemp("tiny"), model, lab.tokenizer)


def chosen(rows, is_kept):
    """The rows that are marked."""
    texts = {name: tuple(np.array(getattr(rows, name))[is_kept]) for name in ("texts", "questions")}
    return replace(rows, quizzes=rows.quizzes[is_kept].reset_index(drop=True), **texts)


def sets_of(pair):
    return chosen(pair.rows, pair.is_a), chosen(pair.rows, ~pair.is_a)


def labels_of(rows):
    return pd.Series([text.rpartition("label: ")[2] for text in rows.texts]).value_counts()


def tokens_of(lab, rows):
    encode = lab.tokenizer.backend_tokenizer.encode_batch
    return np.array([len(one.ids) for one in encode(list(rows.texts), add_special_tokens=False)])


# Drawing


def test_shifts_are_those_of_the_protocol():
    section = (ROOT / "docs/protocol_2.md").read_text().partition("## Shift without exposure")[2]
    lines = [line.split(" | ") for line in section.split("\n") if line.startswith("| ")]
    stated = {cells[0].strip("| "): cells[-1] for cells in lines[2:7]}
    assert list(stated) == list(shift.SHIFTS)
    for name, benchmarks in shift.SHIFTS.items():
        assert all(benchmark in stated[name] for benchmark in benchmarks)
        assert stated[name].count("`") == 2 * len([b for b in benchmarks if b != DOCSTRINGS])
    assert f"sets of {shift.N_ROWS} rows" in section and "Three draws" in section
    assert shift.N_DRAWS * len(row_pools.BASE_SEEDS) == 60


def test_every_set_has_sixty_rows_and_no_model_sees_any_of_them(pairs):
    seen = {text for pool in row_pools.pools() for dose in pool.forms.values() for text in dose}
    seen = {text.rpartition("Split: test\n")[2] for text in seen}
    for (_, benchmark), pair in pairs.items():
        rows = pair.rows
        assert pair.is_a.sum() == (~pair.is_a).sum() == len(rows) / 2 == shift.N_ROWS
        assert len(set(rows.texts)) == len(rows)
        assert not set(rows.texts) & (seen | set(rows.context))
        assert rows.dataset not in {pool.rows.dataset for pool in row_pools.pools()}
        if benchmark != DOCSTRINGS:
            assert list(rows.quizzes["instance"]) == list(rows.texts)


def test_a_candidate_that_a_pool_holds_is_left_out(monkeypatch):
    first = shift._candidates("topics", 7)
    taken = frozenset(first["instance"].iloc[:3])
    monkeypatch.setattr(shift, "_texts_of_pools", lambda: taken)
    assert list(shift._candidates("topics", 7)["index"]) == list(first["index"].iloc[3:])


def test_draws_depend_on_base_model_draw_and_shift_alone(lab, pairs):
    again = shift.pair(lab, NONE, "topics", SEED, 0)
    assert again.rows.texts == pairs[NONE, "topics"].rows.texts
    others = [shift.pair(lab, NONE, "topics", *which) for which in ((SEED + 1, 0), (SEED, 1))]
    for other in (*others, pairs[NATURALNESS, "topics"]):
        assert len(set(other.rows.texts) & set(again.rows.texts)) <= 1
    with pytest.raises(ValueError, match='no shift "length" is made on "entailment"'):
        shift.pair(lab, LENGTH, "entailment", SEED, 0)


@pytest.mark.parametrize("benchmark", ["topics", "grade_school"])
def test_no_row_of_b_is_as_long_as_any_of_a(lab, pairs, benchmark):
    n_a, n_b = (tokens_of(lab, rows) for rows in sets_of(pairs[LENGTH, benchmark]))
    assert n_a.min() > n_b.max()
    n_a, n_b = (tokens_of(lab, rows) for rows in sets_of(pairs[NONE, benchmark]))
    assert abs(n_a.mean() - n_b.mean()) < 3 * np.hypot(n_a.std(), n_b.std()) / np.sqrt(60)


def test_one_label_has_four_fifths_of_b_and_a_quarter_of_a(lab):
    most = set()
    for draw in range(8):
        set_a, set_b = sets_of(shift.pair(lab, LABELS, "topics", SEED, draw))
        assert labels_of(set_a).tolist() == [15] * 4
        assert labels_of(set_b).tolist() == [48, 4, 4, 4]
        most.add(labels_of(set_b).index[0])
    assert len(most) > 1


def test_the_dial_changes_the_paraphrases_and_no_row(lab, pairs):
    pair = pairs[NATURALNESS, "topics"]
    seed = pair.rows.seed
    drawn = shift._candidates("topics", seed).iloc[: 2 * shift.N_ROWS]
    assert list(pair.rows.texts) == list(drawn["instance"])
    options = [f"option_{letter}" for letter in "abcd"]
    same = (pair.rows.quizzes[options].to_numpy() == drawn[options].to_numpy()).all(axis=1)
    assert same[pair.is_a].all() and not same[~pair.is_a].any()

    def kept_words(rows):  # an edit leaves most words of the row alone, a fresh draw does not
        texts = rows.quizzes[["instance", *options]].to_numpy()
        return np.mean(
            [np.mean(np.isin(o.split(), first.split())) for first, *rest in texts for o in rest]
        )

    at_0, at_half = map(kept_words, sets_of(pair))
    assert at_half > at_0 + 0.05


def test_docstrings_of_a_are_older_and_like_those_of_b_in_all_else(lab, pairs):
    pair = pairs[DATE, DOCSTRINGS]
    known = lab.docstrings.assign(start=[" ".join(t.split()[:20]) for t in lab.docstrings["text"]])
    known = known.set_index("start")
    table = known.loc[[" ".join(text.split()[:20]) for text in pair.rows.texts]].assign(
        is_a=pair.is_a
    )
    for _, of_package in table.groupby("package"):
        order = of_package["version"].map(version_order)
        assert order[of_package["is_a"]].max() < order[~of_package["is_a"]].min()
        assert of_package["is_a"].mean() == 0.5
    background = lab.passages.loc[lab.passages["role"] == "background", "family"]
    assert not table["family"].isin(background).any()
    assert {len(text.split()) for text in pair.rows.texts} == {shift.N_WORDS}
    # Context is held aside by all draws, half of it older.
    other = shift.pair(lab, DATE, DOCSTRINGS, SEED + 1, 0)
    assert other.rows.context == pair.rows.context and len(pair.rows.context) == N_CONTEXT
    assert not set(pair.rows.context) & {*pair.rows.texts, *other.rows.texts}
    assert set(other.rows.texts) != set(pair.rows.texts)


def test_another_lab_is_noticed(lab):
    other = lab.passages.assign(role="background")
    with pytest.raises(ValueError, match="use the study's lab"):
        shift.pair(replace(lab, passages=other), DATE, DOCSTRINGS, SEED, 0)


def test_a_bag_of_words_sees_what_differs_and_nothing_else(pairs):
    assert pairs[LABELS, "topics"].auc_of_words() > 0.65
    assert pairs[LENGTH, "topics"].auc_of_words() > 0.8
    assert 0.3 < pairs[NONE, "topics"].auc_of_words() < 0.7


# Scores


def test_both_directions_of_a_pair_by_hand(pairs, monkeypatch):
    pair = pairs[NONE, "topics"]
    few = np.r_[np.arange(3), 60 + np.arange(3)]
    is_few = np.isin(np.arange(120), few)
    pair = replace(pair, rows=chosen(pair.rows, is_few), is_a=pair.is_a[is_few])
    monkeypatch.setattr(shift.Pair, "auc_of_words", lambda self: 0.5)
    detectors = [
        Detector("split", LOG_PROBABILITIES, lambda lm, rows: np.array([6, 5, 4, 3, 2, 1])),
        Detector("mixed", LOG_PROBABILITIES, lambda lm, rows: np.array([6, 4, 1, 5, 3, 2])),
        Detector("equal", LOG_PROBABILITIES, lambda lm, rows: np.ones(6)),
    ]
    table, seconds = shift.score_pair(None, pair, detectors, SEED)
    assert list(table) == shift.COLUMNS and [one["detector"] for one in seconds] == [
        *table["detector"]
    ]
    # Of the 20 ways to choose three of six: all of A above B is one, A at 6, 4, 1 wins 5 of 9.
    assert table["auc"].tolist() == [1, pytest.approx(5 / 9), 0.5]
    sums = [sum(ranks) for ranks in product(range(1, 7), repeat=3) if len({*ranks}) == 3]
    share_a, share_b = np.mean(np.array(sums) >= 11), np.mean(np.array(sums) >= 10)
    assert table["p_a"].tolist() == pytest.approx([1 / 20, share_a, 1], abs=0.02)
    assert table["p_b"].tolist() == pytest.approx([1, share_b, 1], abs=0.02)
    broken = Detector("broken", LOG_PROBABILITIES, lambda lm, rows: np.full(6, np.nan))
    with pytest.raises(ValueError, match="broken gives NaN or infinity for 6 rows"):
        shift.score_pair(None, pair, [broken], SEED)


def test_a_part_is_written_and_read_back(lab, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(shift.row_pools, "the_lab", lambda: lab)
    monkeypatch.setattr(shift.row_pools, "base_model", lambda lab, seed: tiny)
    monkeypatch.setattr(shift.store, "environment", lambda: {"torch": "made"})
    monkeypatch.setattr(shift.world, "describe", lambda folder: {"recipe_hash": "of the model"})
    asked = (*arm.token_detectors(lab), *baselines.CONTROLS)
    by_benchmark = dict.fromkeys(("topics", "grade_school", DOCSTRINGS), asked)
    monkeypatch.setattr(shift, "detectors_by_benchmark", lambda lab: by_benchmark)
    monkeypatch.setattr(shift, "N_DRAWS", 1)
    shift.write_part(tmp_path, "shift_300", {"protocol_sha256": "of the page"}, SEED)
    sets, made_by = store.read_all(shift.NAME, "sets", tmp_path)
    assert list(sets) == [*shift.COLUMNS, "base_seed"] and len(sets) == len(asked) * 7
    assert sets["base_seed"].eq(SEED).all() and sets[["n_a", "n_b"]].eq(60).all(axis=None)
    assert not sets.isna().any(axis=None)
    assert made_by[0]["protocol_sha256"] == "of the page"
    assert made_by[0]["recipe_hash"] == "of the model"
    assert set(made_by[0]["seconds"]) == {one.name for one in asked}
    one = shift.pair(lab, LENGTH, "topics", SEED, 0)
    again, _ = shift.score_pair(load_causal_lm(tiny), one, asked, SEED)
    stored = sets[sets["shift"].eq(LENGTH) & sets["benchmark"].eq("topics")]
    stored = stored[shift.COLUMNS].reset_index(drop=True)
    pd.testing.assert_frame_equal(stored, again, check_dtype=False)
    weights = sets[sets["detector"].eq("was fine-tuned at all")]
    assert weights[["auc", "p_a", "p_b"]].eq([0.5, 1, 1]).all(axis=None)
    is_long = sets["detector"].eq("length") & sets["shift"].eq(LENGTH)
    assert sets.loc[is_long, "p_a"].eq(1 / 10_000).all()
    assert store.names(shift.NAME, tmp_path) == ["shift_300"]


def test_detectors_are_those_of_the_protocol_on_each_kind_of_rows(lab, tiny, monkeypatch):
    monkeypatch.setattr(arm.world, "base_model", lambda *asked: tiny)
    asked = shift.detectors_by_benchmark(lab)
    names = {benchmark: [one.name for one in of] for benchmark, of in asked.items()}
    assert set(names) == {"topics", "grade_school", DOCSTRINGS}
    page = (ROOT / "docs/protocol_2.md").read_text()
    for name in shift.LEFT_OUT:
        assert name in page and not any(name in of for of in names.values())
    assert "ReCaLL" in names["topics"] and "ReCaLL" not in names["grade_school"]
    assert sum("number twins" in name for name in names["grade_school"]) == 2
    assert {"DCQ", "CoDeC", "noise"} <= {*names["topics"]} & {*names["grade_school"]}
    assert set(names[DOCSTRINGS]) < set(names["topics"])
    assert not {"DCQ", "ReCaLL", "option ranking (not DCQ)"} & set(names[DOCSTRINGS])
    assert set(shift.EXPLORATORY) < set(names["topics"])


def test_docstrings_need_no_quiz(pairs, lab, tiny):
    pair, lm = pairs[DATE, DOCSTRINGS], load_causal_lm(tiny)
    asked = [*arm.token_detectors(lab), shift.context.CODEC, *baselines.CONTROLS]
    table, _ = shift.score_pair(lm, pair, asked, SEED)
    assert table["detector"].tolist() == [one.name for one in asked]


# Verdicts


def made_sets(flagged, detector="made", shift_name=NONE, n_models=20, n_draws=3):
    """Pairs of which the first so many of each base model are called seen, as A."""
    rows = [
        (detector, shift_name, "topics", draw, 60, 60, 0.6, 0.01 if is_a else 0.6, 0.4, 0.55, base)
        for base, n in zip(range(n_models), flagged, strict=True)
        for draw, is_a in enumerate(np.arange(n_draws) < n)
    ]
    return pd.DataFrame(rows, columns=[*shift.COLUMNS, "base_seed"])


def judged(*parts):
    return shift.false_verdicts(pd.concat(parts, ignore_index=True)).set_index("detector")


def test_a_detector_that_calls_many_sets_seen_does_not_keep_its_level():
    table = judged(
        made_sets([1] * 20, "often"), made_sets([0] * 20, "never"), made_sets([3] * 20, "always")
    )
    assert table["holds"].to_dict() == {"often": False, "never": True, "always": False}
    assert table["rate"].tolist() == pytest.approx([1 / 3, 0, 1])
    assert table[["n_sets", "n_models"]].to_numpy().tolist() == [[60, 20]] * 3
    assert table["suspect"].tolist() == ["A"] * 3 and table["rate_b"].eq(0).all()


def test_p_of_a_rate_by_hand():
    # One flag a base model, no model differs from another: 60 sets but for t on 59 and 19.
    n = 60 * (stats.t.ppf(0.95, 59) / stats.t.ppf(0.95, 19)) ** 2
    table = judged(made_sets([1] * 20))
    by_hand = 2 * stats.beta.cdf(0.05, n / 3, n - n / 3 + 1)
    assert table["p_value"].item() == pytest.approx(by_hand)
    assert protocol.binomial_p(3, 20, 0.05) == pytest.approx(stats.binom.sf(2, 20, 0.05))
    assert table[["low", "high"]].iloc[0].tolist() == pytest.approx(
        protocol.clopper_pearson(n / 3, n, 0.05)
    )


def test_sets_that_agree_under_a_model_count_less():
    spread = judged(made_sets([1] * 9 + [0] * 11))
    agreeing = judged(made_sets([3] * 3 + [0] * 17))
    assert spread["rate"].item() == agreeing["rate"].item() == 0.15
    assert (spread["holds"].item(), agreeing["holds"].item()) == (False, None)


def test_the_worse_direction_decides_and_is_named():
    sets = made_sets([1] * 20)
    turned = sets.assign(p_a=sets["p_b"], p_b=sets["p_a"])
    table, other = judged(sets), judged(turned)
    assert (table["suspect"].item(), other["suspect"].item()) == ("A", "B")
    same = ["rate", "p_value", "low", "high", "holds"]
    assert table[same].equals(other[same])


def test_holm_goes_over_the_family_and_leaves_the_exploratory_out():
    border = made_sets([1] * 10 + [0] * 10, "border")
    alone = judged(border)["p_value"].item()
    others = [made_sets([0] * 20, f"other {number}") for number in range(4)]
    exploratory = made_sets([3] * 20, shift.EXPLORATORY[0])
    table = judged(border, *others, exploratory)
    assert table.loc["border", "p_adjusted"] == pytest.approx(5 * alone)
    left_out = table.loc[shift.EXPLORATORY[0]]
    assert left_out["holds"] is None and np.isnan(left_out["p_adjusted"])
    assert left_out["rate"] == 1


def test_fewer_than_five_models_are_open():
    table = judged(made_sets([3] * 4, n_models=4))
    assert table["holds"].item() is None


def test_controls_hold_or_fail():
    noise, length, weights = (one.name for one in baselines.CONTROLS)
    table = judged(
        made_sets([0] * 20, noise),
        made_sets([3] * 20, length, LENGTH),
        made_sets([0] * 20, length),
        made_sets([0] * 20, weights),
    )
    assert table["holds"].tolist() == [True, None, True, True]  # none must or must not
    worse = judged(made_sets([3] * 20, noise), made_sets([0] * 20, length, LENGTH))
    assert worse["holds"].tolist() == [False, False]
