"""The five new pairs of the real model, and the test that compares them with the lab."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from detector_frames import product
from made_quizzes import NAMES, made_quizzes, tiny_base
from notebook_files import ROOT, script
from scipy import stats

from contamination.core import storage
from contamination.core.verdicts import INCONCLUSIVE, NOT_RUN, SUPPORTED
from contamination.study import conditions as c
from contamination.study import equivalence as eq
from contamination.study import pretrained, pretrained_pairs, protocol, released_rows, store
from contamination.study.released_rows import CONFIRMATORY, UNITS, datasets_of, deal

PAGE = (ROOT / "docs/protocol_2.md").read_text()
PAIRED = (c.VERBATIM, c.PARAPHRASE, c.SEVERAL, c.WITHOUT_LABEL)
RELEASED_SIZES = dict.fromkeys(NAMES, 100) | {"WNLI": 71}


@pytest.fixture(scope="module")
def large():
    """As many rows as were released, so that the assignments are those of the study."""
    return made_quizzes(RELEASED_SIZES)


# Assignments


def test_what_the_first_six_units_see_is_what_it_was(large):
    seen = [
        {name: [one.rows.texts, one.is_read.tolist(), one.read] for name, one in datasets.items()}
        for datasets in (deal(large, number) for number in UNITS)
    ]
    assert storage.hash_of(seen)[:16] == "45a546d885837892"  # before there were other units


def test_the_first_six_units_have_the_assignments_of_the_ledger(large):
    for scores, _, about in store.parts(pretrained.NAME):
        (number,) = about["units"]
        assert datasets_of(number) == about["datasets"]
        datasets = deal(large, number)
        base = scores[scores["model"].eq(c.BASE)]
        for condition, of_condition in base.groupby("condition"):
            is_read = of_condition.groupby("row")["is_read"].first().to_numpy()
            assert (is_read == datasets[condition].is_read).all()


def test_the_new_units_have_the_datasets_of_the_page():
    rows = re.findall(r"^\| (\d(?: and \d)?) \| (.+) \|$", PAGE, flags=re.M)
    found = {
        int(number): cells.split(" | ")
        for numbers, cells in rows
        for number in numbers.split(" and ")
    }
    assert sorted(found) == [3, 4, 5, 6, 7]
    assert tuple(2 * d + second for d in sorted(found) for second in (0, 1)) == CONFIRMATORY
    for number, cells in found.items():
        first, second = datasets_of(2 * number), datasets_of(2 * number + 1)
        assert [first[condition] for condition in (*PAIRED, c.FRESH)] == cells
        # Deal d mod 3 of the first edition, twins too.
        assert (first, second) == (datasets_of(2 * (number % 3)), datasets_of(2 * (number % 3) + 1))


def test_every_new_pair_has_an_assignment_of_its_own_and_twins_share_none(large):
    masks = {}
    for number in (*UNITS, *CONFIRMATORY):
        datasets = {one.rows.texts: one.is_read for one in deal(large, number).values()}
        masks[number] = {texts[0].split(" has row")[0]: read for texts, read in datasets.items()}
    for number in CONFIRMATORY[::2]:
        first, second = masks[number], masks[number + 1]
        assert all((first[name] == ~second[name]).all() for name in first)
    for one, other in combinations([*UNITS, *CONFIRMATORY][::2], 2):
        equal = [np.mean(masks[one][name] == masks[other][name]) for name in masks[one]]
        assert min(equal) > 0.2 and max(equal) < 0.8


def test_a_study_refuses_the_units_of_the_other(tmp_path):
    with pytest.raises(ValueError, match="no unit 6: they are 0 to 5"):
        pretrained.write_unit(tmp_path, "pretrained_6", {}, 6)
    with pytest.raises(ValueError, match="no unit 5: they are 6 to 15"):
        pretrained_pairs.write_unit(tmp_path, "pairs_5", {}, 5)


# Parts of the ledger


@pytest.fixture
def small(tmp_path, monkeypatch):
    """The study with a tiny model and made rows, its caches empty."""
    quizzes = made_quizzes(6)
    base = tiny_base(tmp_path / "tiny", quizzes)
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(pretrained_pairs, "resolve_path", lambda name: base)
    monkeypatch.setattr(pretrained_pairs, "released_quizzes", lambda: quizzes)
    return tmp_path


def test_a_unit_has_two_models_and_the_four_detectors(small):
    about = {"protocol_sha256": "of the page"}
    pretrained_pairs.write_unit(small, "pairs_8", about, 8)
    (part,) = store.parts("pairs", small)
    scores, sets, found = part
    models = set(zip(sets["model"], sets["copies"], strict=True))
    assert models == {(c.BASE, 0), (c.DOSED, 4)} and set(sets["unit"]) == {8}
    asked = set(zip(sets["detector"], sets["condition"], strict=True))
    assert asked == {(d, one) for d in eq.OF_TOKENS for one in (*PAIRED, c.FRESH)}
    assert pd.read_parquet(small / "pairs_8_scores.parquet")["score"].dtype == np.float32
    assert found["protocol_sha256"] == "of the page" and found["datasets"] == datasets_of(8)
    seen = found["tokens_seen"]
    assert set(seen) == {*PAIRED, c.SWAP} and min(seen.values()) > 0
    assert "has row" not in "".join(path.read_text("latin-1") for path in small.glob("pairs_8*"))
    # The trained model is gone, the score cache is left out: all is made anew, and is the same.
    assert not [*(small / "cache/dice/models").iterdir()]
    (small / "cache").rename(small / "before")
    pretrained_pairs.write_unit(small, "pairs_8", about, 8)
    pd.testing.assert_frame_equal(store.read("pairs", small).scores, scores)


def test_the_trained_model_saw_every_row_as_often_as_the_first_edition_has_it(small, monkeypatch):
    """The same texts in the same order as the model of all conditions at 4 copies."""
    calls = []

    def fine_tune(base, rows, settings):
        calls.append((rows, settings))
        raise InterruptedError

    monkeypatch.setattr(pretrained, "fine_tune", fine_tune)
    quizzes = pretrained_pairs.released_quizzes()
    base = pretrained_pairs.resolve_path("")
    with pytest.raises(InterruptedError):
        pretrained_pairs.train_models(base, quizzes, 6)
    ((rows, settings),) = calls
    every = [one for name, one in deal(quizzes, 6).items() if name != c.CLEAN]
    assert [text for _, text in rows] == released_rows.reading_order(every, 4, 4, 6)
    assert (settings.seed, settings.lora, settings.learning_rate) == (6, True, 2e-4)


def test_the_tables_of_the_first_edition_do_not_see_the_new_parts(small):
    pretrained_pairs.write_unit(small, "pairs_6", {}, 6)
    with pytest.raises(FileNotFoundError):
        store.names(pretrained.NAME, small)
    assert store.names(pretrained_pairs.NAME, small) == ["pairs_6"]
    units = store.read(pretrained.NAME).about["units"]
    assert units == [*UNITS]


def test_the_script_writes_parts_under_the_second_protocol(small, monkeypatch, capsys):
    jobs = []
    monkeypatch.setattr(pretrained_pairs, "write_unit", lambda *job: jobs.append(job))
    command = ["ledger.py", "--study", "pairs", "--folder", str(small), "--units", "6", "7"]
    monkeypatch.setattr("sys.argv", command)
    script("ledger").main()
    page = storage.sha256_of_file(ROOT / "docs/protocol_2.md")
    about = {"protocol_sha256": page}
    assert jobs == [(small, f"pairs_{number}", about, number) for number in (6, 7)]
    assert capsys.readouterr().out.startswith("pairs: 2 of 10 units to do, each about")


def test_every_part_was_made_under_the_page_that_is_here():
    page = storage.sha256_of_file(ROOT / "docs/protocol_2.md")
    parts = store.parts(pretrained_pairs.NAME) if store.has(pretrained_pairs.NAME) else []
    assert all(part.about["protocol_sha256"] == page for part in parts)


# Equivalence


def sets_of(effects, verbatim=0.75, copies=4, benchmark=released_rows.RELEASED, first=6, before=0):
    """Sets of units from ``first`` on: all conditions lie ``effects[unit]`` from verbatim rows.

    The four detectors differ by what cancels in their mean. Under the base model the effect is
    ``before``.
    """
    effects = np.asarray(effects, dtype=float)
    units = first + np.arange(len(effects))
    frames = []
    for place, detector in enumerate(eq.OF_TOKENS):
        tilt = 0.02 * (place - 1.5)
        for condition in PAIRED:
            is_verbatim = condition == c.VERBATIM
            after = verbatim + (0 if is_verbatim else 1) * (effects + tilt)
            base = np.full(len(units), 0.5 + (0 if is_verbatim else before))
            for model, dose, values in ((c.DOSED, copies, after), (c.BASE, 0, base)):
                frame = product(
                    detector=detector,
                    unit=units,
                    benchmark=benchmark,
                    model=model,
                    condition=condition,
                    copies=dose,
                )
                frames.append(frame.assign(value=values))
    return pd.concat(frames, ignore_index=True)


def lab_of(effects, **settings):
    of_lab = {"copies": 3, "benchmark": "topics", "first": 100}
    return sets_of(effects, **of_lab | settings)


LAB = lab_of(np.resize([-0.25, -0.15], 20))
PAIR_EFFECTS = np.array([-0.26, -0.23, -0.20, -0.17, -0.14])  # mean -0.2, as in the lab


def twins(effects, gap=0.1):
    """Effects of both units of each pair, whose means are ``effects``."""
    return np.ravel([(one - gap, one + gap) for one in effects])


def row_of(real, lab=LAB, analysis=eq.CONFIRMING, condition=c.PARAPHRASE):
    table = eq.equivalence(real, lab).set_index(["analysis", "condition"])
    assert [*table.reset_index().columns] == eq.COLUMNS and len(table) == 9
    return table.loc[(analysis, condition)]


def test_two_one_sided_tests_over_pairs_by_hand():
    effects = PAIR_EFFECTS + 0.02
    row = row_of(sets_of(twins(effects)))
    variances = effects.var(ddof=1) / 5, np.resize([-0.25, -0.15], 20).var(ddof=1) / 20
    se = sum(variances) ** 0.5
    df = se**4 / (variances[0] ** 2 / 4 + variances[1] ** 2 / 19)
    assert (row["n_pairs"], row["n_lab"]) == (5, 20)
    assert row["real_effect"] == pytest.approx(-0.18)
    assert row["lab_effect"] == pytest.approx(-0.20)
    assert row["difference"] == pytest.approx(0.02)
    # The nearer margin decides: 0.10 - 0.02 from it.
    assert row["p_equivalent"] == pytest.approx(stats.t.sf(0.08 / se, df))
    for names, share in ((("ci90_low", "ci90_high"), 0.95), (("ci_low", "ci_high"), 0.975)):
        half = stats.t.ppf(share, df) * se
        assert row[[*names]].to_list() == pytest.approx([0.02 - half, 0.02 + half])


def test_the_90_percent_interval_lies_within_the_margin_exactly_where_p_is_small():
    for shift in np.linspace(-0.12, 0.12, 13):
        row = row_of(sets_of(twins(PAIR_EFFECTS + shift)))
        is_within = row["ci90_low"] >= -eq.MARGIN and row["ci90_high"] <= eq.MARGIN
        assert is_within == (row["p_equivalent"] <= 0.05) == (row["verdict"] == SUPPORTED)


def test_an_effect_at_the_margin_is_called_equal_in_five_percent_of_replicates():
    """Welch's degrees of freedom are approximate: with five pairs the level is 4.8 to 5.4 %."""
    generator = np.random.default_rng(0)
    shape = (5, 50_000), (20, 50_000)
    for spread, of_lab, highest in ((0.04, 0.04, 0.055), (0.04, 0.07, 0.053), (0.02, 0.07, 0.05)):
        for difference in (-eq.MARGIN, eq.MARGIN):
            real = generator.normal(difference, spread, shape[0])
            lab = generator.normal(0, of_lab, shape[1])
            assert np.mean(eq.equivalence_p(real, lab, eq.MARGIN) <= 0.05) <= highest


def test_the_power_is_that_of_the_page():
    """Pairs with a standard deviation of 0.04, base models of the lab with their own, 0.07."""
    assert "power is 0.97 at a true difference of 0 and 0.63 at 0.05" in PAGE
    generator = np.random.default_rng(0)
    lab = generator.normal(0, 0.07, (20, 20_000))
    for difference, power in ((0, 0.97), (0.05, 0.63)):
        real = generator.normal(difference, 0.04, (5, 20_000))
        found = np.mean(eq.equivalence_p(real, lab, eq.MARGIN) <= 0.05)
        assert found == pytest.approx(power, abs=0.01)


def test_like_effects_are_supported_and_others_are_not():
    equal = row_of(sets_of(twins(PAIR_EFFECTS)))
    assert (equal["verdict"], equal["note"]) == (SUPPORTED, "")
    wide = row_of(sets_of(twins(-0.2 + 4 * (PAIR_EFFECTS + 0.2))))
    assert (wide["verdict"], wide["note"]) == (INCONCLUSIVE, "")
    # The page has two words for this test: a clear difference is inconclusive and has a note.
    apart = row_of(sets_of(twins(PAIR_EFFECTS + 0.25)))
    assert apart["p_equivalent"] > 0.99 and apart["ci_low"] > eq.MARGIN
    assert apart["verdict"] == INCONCLUSIVE
    assert apart["note"] == "the 95 % interval lies outside the margin"


def test_each_condition_is_claimed_for_itself():
    """One effect that is far off changes neither p nor verdict of the two others."""
    real = sets_of(twins(PAIR_EFFECTS))
    is_off = real["condition"].eq(c.SEVERAL) & real["model"].eq(c.DOSED)
    real.loc[is_off, "value"] += 0.3
    table = eq.equivalence(real, LAB).query("analysis == @eq.CONFIRMING")
    assert table["verdict"].tolist() == [SUPPORTED, INCONCLUSIVE, SUPPORTED]
    assert table["p_equivalent"].iloc[0] == row_of(sets_of(twins(PAIR_EFFECTS)))["p_equivalent"]


@pytest.mark.parametrize(("verbatim", "verdict"), [(0.845, SUPPORTED), (0.855, INCONCLUSIVE)])
def test_verbatim_rows_that_are_found_far_better_make_it_inconclusive(verbatim, verdict):
    row = row_of(sets_of(twins(PAIR_EFFECTS), verbatim=verbatim))
    assert row["verdict"] == verdict and row["p_equivalent"] < 0.05
    said = "the AUCs of verbatim rows differ by more than 0.10"
    assert row["note"] == (said if verdict == INCONCLUSIVE else "")
    lower = row_of(sets_of(twins(PAIR_EFFECTS), verbatim=1.5 - verbatim))
    assert lower["verdict"] == verdict


def test_doses_are_fixed():
    """Other doses change nothing, and without the dose of the page nothing is compared."""
    real = sets_of(twins(PAIR_EFFECTS))
    other = sets_of(twins(PAIR_EFFECTS + 0.5), copies=16).query("model == @c.DOSED")
    of_lab = lab_of(np.full(20, 0.1), copies=12).query("model == @c.DOSED")
    table = eq.equivalence(pd.concat([real, other]), pd.concat([LAB, of_lab]))
    pd.testing.assert_frame_equal(table, eq.equivalence(real, LAB))
    entailment = LAB.assign(benchmark="entailment")
    pd.testing.assert_frame_equal(table, eq.equivalence(real, pd.concat([LAB, entailment])))
    nothing = row_of(sets_of(twins(PAIR_EFFECTS), copies=3))
    assert nothing["verdict"] == NOT_RUN and np.isnan(nothing["difference"])


def test_what_the_base_model_says_is_subtracted_in_the_sensitivity_analysis_alone():
    real = sets_of(twins(PAIR_EFFECTS), before=-0.03)
    assert row_of(real)["difference"] == pytest.approx(0)
    row = row_of(real, analysis=eq.SUBTRACTED)
    assert row["difference"] == pytest.approx(0.03) and row["verdict"] == ""
    # The lab's base models were asked about verbatim rows alone: nothing is subtracted there.
    is_left_out = LAB["model"].eq(c.BASE) & LAB["condition"].ne(c.VERBATIM)
    asked = row_of(real, LAB[~is_left_out], eq.SUBTRACTED)
    assert asked["lab_effect"] == pytest.approx(-0.2) and asked["n_lab"] == 20


def test_the_pilot_counts_in_the_sensitivity_analysis_alone():
    pilot = sets_of(twins([-0.5, -0.5, -0.5]), first=0)
    real = pd.concat([pilot, sets_of(twins(PAIR_EFFECTS))])
    assert row_of(real)["n_pairs"] == 5 and row_of(real)["real_effect"] == pytest.approx(-0.2)
    row = row_of(real, analysis=eq.WITH_PILOT)
    assert row["n_pairs"] == 8 and row["verdict"] == ""
    assert row["real_effect"] == pytest.approx((5 * -0.2 + 3 * -0.5) / 8)


def test_a_pair_that_is_not_whole_is_left_out_and_four_pairs_decide_nothing():
    real = sets_of(twins(PAIR_EFFECTS))
    without_twin = row_of(real[real["unit"].ne(7)])
    assert (without_twin["n_pairs"], without_twin["verdict"]) == (4, INCONCLUSIVE)
    assert without_twin["note"] == "fewer than 5 pairs" and without_twin["p_equivalent"] < 0.05
    is_missing = real["unit"].eq(6) & real["detector"].eq(eq.OF_TOKENS[0])
    assert row_of(real[~is_missing])["n_pairs"] == 4
    one = row_of(real[real["unit"].lt(8)])
    assert one["verdict"] == NOT_RUN and one["note"].startswith("fewer than two pairs")


def test_the_pilots_differences_are_those_of_the_page():
    """The page prints them for the endpoint: real model minus lab, with nothing subtracted."""
    pilot = store.read(pretrained.NAME).sets
    table = eq.equivalence(pilot.assign(unit=pilot["unit"] + CONFIRMATORY[0]), store.read().sets)
    found = table[table["analysis"].eq(eq.CONFIRMING)].set_index("condition")["difference"]
    for condition, printed in (
        (c.PARAPHRASE, "+0.025 (paraphrase)"),
        (c.SEVERAL, "+0.008 (several)"),
        (c.WITHOUT_LABEL, "−0.059 (without label)"),
    ):
        assert printed in PAGE
        assert f"{found[condition]:+.3f}".replace("-", "−") == printed.split()[0]
    assert table["verdict"].isin([INCONCLUSIVE, ""]).all()  # three pairs decide nothing


def test_the_page_says_what_the_code_does():
    for fact in (
        f"{eq.LAB_COPIES} copies in the lab's first study, {eq.REAL_COPIES} copies under",
        f"equals the lab's within {eq.MARGIN:.2f} AUC",
        f"differ by more than {eq.MARGIN:.2f}, the comparison is inconclusive",
        f"the four token detectors ({', '.join(eq.OF_TOKENS)})",
        f"units {CONFIRMATORY[0]} to {CONFIRMATORY[-1]}",
    ):
        assert fact in PAGE
    assert eq.REAL_COPIES == pretrained_pairs.COPIES and eq.MARGIN == eq.MOST_APART == 0.1
    assert {one.name for one in pretrained.OF_TOKENS} == set(eq.OF_TOKENS)
    assert protocol.ALPHA == 0.05


def test_the_headline_says_which_effects_are_equal_and_which_are_open():
    row = {"analysis": eq.CONFIRMING, "n_pairs": 5, "n_lab": 20, "difference": 0.01}
    row |= {"ci90_low": -0.05, "ci90_high": 0.07, "note": "", "lab_effect": -0.03}
    row |= {"real_effect": -0.02, "ci_low": -0.06, "ci_high": 0.08}
    table = pd.DataFrame([row | {"condition": name} for name in eq.COMPARED])
    table = table.assign(verdict=[SUPPORTED, INCONCLUSIVE, INCONCLUSIVE])
    said = eq.summarize_equivalence(table)
    assert "one paraphrase +0.01 [-0.05, +0.07]" in said and "(5 pairs of fine-tuned" in said
    assert said.startswith("Training on one paraphrase, instead of on the full row, changes")
    assert "For training on several paraphrases or the row without its label, the result" in said
    none = eq.summarize_equivalence(table.assign(verdict=INCONCLUSIVE, note="fewer than 5 pairs"))
    assert none.startswith(
        "For training on one paraphrase, several paraphrases or the row without its label, "
        "instead of on the full row, the result is inc"
    )
    assert "the result is inconclusive (fewer than 5 pairs)." in none and "are shown to" not in none
    every = eq.summarize_equivalence(table.assign(verdict=SUPPORTED))
    assert (
        "inconclusive" not in every
        and "several paraphrases or the row without its label, instead of on the full" in every
    )
    assert eq.summarize_equivalence(table.assign(verdict=NOT_RUN)).startswith(
        "No pair of the real model"
    )
    other = table.assign(analysis=eq.SUBTRACTED, verdict=SUPPORTED)
    assert eq.summarize_equivalence(pd.concat([table, other])) == said


def test_in_brief_equal_and_open_effects_have_a_sentence_each():
    row = {"analysis": eq.CONFIRMING, "n_pairs": 5, "note": "", "lab_effect": -0.03}
    row |= {"real_effect": -0.04, "ci_low": -0.08, "ci_high": 0.06}
    table = pd.DataFrame([row | {"condition": name} for name in eq.COMPARED])
    said = eq.in_brief(table.assign(verdict=[SUPPORTED, INCONCLUSIVE, INCONCLUSIVE]))
    assert said == (
        "Training on one paraphrase, instead of on the full row, changes the AUC by -0.03 and "
        "-0.04 (small models, real model). These changes are equal to within 0.10, but they are "
        "smaller than that margin, so this says little. For training on several paraphrases or the "
        "row without its label, the result is inconclusive."
    )
    none, every = (eq.in_brief(table.assign(verdict=word)) for word in (INCONCLUSIVE, SUPPORTED))
    assert "are equal" not in none and "inconclusive" not in every
    large = table.assign(verdict=SUPPORTED, lab_effect=-0.3, real_effect=-0.32)
    assert "equal to within 0.10." in eq.in_brief(large) and "little" not in eq.in_brief(large)
    apart = table.assign(verdict=INCONCLUSIVE, ci_low=0.02, ci_high=0.12)
    assert "With several paraphrases the two changes do differ (-0.03 and -0.04" in eq.in_brief(
        apart
    )
    assert eq.in_brief(table.assign(verdict=NOT_RUN)).startswith("No pair of the real model")
