"""Sentences of the lab, each with a table that confirms and one that refutes; its model."""

import numpy as np
import pandas as pd
import pytest

from contamination import plots, storage
from contamination.lab.recipes import Dose, TrainingTexts, recipe_for
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import train
from contamination.models.causal import load_causal_lm
from contamination.replication import completions, findings, lab_findings, lab_partitions, study
from contamination.replication.operating_curves import operating_curves

DOSES = (0, 4, 64)


def doses_table(flags, n_clean=12, n=4):
    """``study.by_dose`` with the same flags at 0, 4 and 64 copies for each method."""
    return pd.DataFrame(
        {
            "method": method,
            "instruction": instruction,
            "copies": copies,
            "n_partitions": n_clean if copies == 0 else n,
            "n_flagged": flags.get(method, flags["other"])[place],
        }
        for method, instruction in lab_findings.LAB_METHODS
        for place, copies in enumerate(DOSES)
    )


def test_clean_sentence():
    text = lab_findings.clean_sentence(doses_table({"other": (1, 0, 0)}))
    assert text.startswith("Flagged of 12 clean partitions, with the exact 95 % interval")
    # Clopper and Pearson for 1 of 12: 0.2 to 38.5 %.
    assert "option ranking 1 (0 to 38 %)" in text
    assert text.endswith(
        "For no method is a rate above 5 % shown; so few partitions do not exclude rates of up to "
        "38 %."
    )
    text = lab_findings.clean_sentence(doses_table({"other": (1, 0, 0)}, n_clean=1000))
    assert text.endswith("For no method is a rate above 5 % shown.")
    text = lab_findings.clean_sentence(
        doses_table({"other": (1, 0, 0), "option ranking": (4, 0, 0)})
    )
    assert "Above a rate of 5 %: option ranking (p 0.002)." in text


def test_first_dose_sentence():
    flags = {"other": (0, 0, 0), "option ranking": (0, 4, 4), "Algorithm 2, rule judge": (0, 1, 2)}
    flags["Did-ChatGPT-Cheat?"] = (0, 3, 1)
    text = lab_findings.first_dose_sentence(doses_table(flags))
    assert "option ranking from 4 copies on (4 of 4 at 64)" in text
    assert "Algorithm 2, rule judge from 64 copies on (2 of 4 at 64)" in text
    assert "Did-ChatGPT-Cheat? at 4 copies but not above (1 of 4 at 64)" in text
    assert "sign flips at none (0 of 4 at 64)" in text
    assert text.endswith("the 95 % interval of 4 of 4 begins at 51 %.")


def lab_rows(instruction, contaminated, method="Algorithm 1", **more):
    """Four partitions, two clean and two contaminated."""
    row = {"metric": "ROUGE-L", "test": "paired bootstrap", "split": "test", "n_valid": 10} | more
    return pd.DataFrame(
        row
        | {"method": method, "instruction": instruction, "contaminated": flag}
        | {"dataset": f"D {place}", "copies": [0, 0, 8, 8][place], "truth": place > 1}
        for place, flag in enumerate(contaminated)
    )


def test_placebo_sentence():
    none, dosed = [False] * 4, [False, False, True, True]

    def table(flags, placebo):
        rows = [lab_rows("general", dosed, mean=0.5)]
        rows += [lab_rows("wrong dataset", flags, mean=placebo)]
        return pd.concat([*rows, lab_rows("wrong split", none, mean=placebo)]).assign(
            mean_guided=0.9
        )

    form_alone = table(none, 0.8)
    text = lab_findings.placebo_sentence(form_alone)
    assert text.startswith("Guided beats general in 2 of 4 partitions (by chance alone at most ab")
    assert "a wrong dataset or split in 0 of these. There the mean ROUGE-L is 0.90 guided" in text
    assert "0.80 with a wrong name and 0.50 general" in text
    assert text.endswith("comes with the form of the prompt, without the right names.")
    assert lab_findings.placebo_sentence(table(dosed, 0.6)).endswith("the right names matter.")
    # A placebo that keeps little of the gap, and yet no flag against it: nothing is shown.
    assert lab_findings.placebo_sentence(table(none, 0.6)).endswith("names matter cannot be told.")
    no_gap = form_alone.assign(contaminated=False)
    assert "no gap for a placebo to explain" in lab_findings.placebo_sentence(no_gap)
    label = lab_rows("wrong label", [True, False, True, True])
    text = lab_findings.placebo_sentence(pd.concat([form_alone, label]))
    assert "beats a wrong label in 1 of 2 clean partitions" in text and "no placebo" in text
    text = lab_findings.placebo_sentence(pd.concat([form_alone, lab_rows("wrong label", dosed)]))
    assert text.endswith("beats a wrong label in 0 of 2 clean partitions.")


def test_instruction_sentence():
    def table(general):
        rows = [
            lab_rows(name, [False] * 4, "Algorithm 2", n_exact=n, n_near_exact=1)
            for name, n in (("guided", 9), ("general", general))
        ]
        return pd.concat(rows)

    text = lab_findings.instruction_sentence(table(8))
    assert text.startswith("Matches at 8 copies: general 18 of 20, guided 20 of 20.")
    assert "The general instruction replicates too" in text
    assert "Without the names the model replicates less" in lab_findings.instruction_sentence(
        table(0)
    )


def test_cheat_sentence():
    rows = lab_rows("first instances", [False, False, True, True], "Did-ChatGPT-Cheat?")
    suspicious = rows.assign(outcome=["suspicious"] * 3 + ["contaminated"])
    text = lab_findings.cheat_sentence(suspicious)
    assert "2 clean partitions: contaminated 0, suspicious 2, not contaminated 0" in text
    assert text.endswith("so this outcome tells nothing.")
    telling = rows.assign(outcome=["not contaminated"] * 2 + ["suspicious"] * 2)
    assert lab_findings.cheat_sentence(telling).endswith("this outcome carries information.")


def test_own_sentence():
    names = ("guided", "general", "wrong dataset", "wrong split")

    def table(flags, judge="ICL judge", n_valid=10):
        rows = [
            lab_rows(name, [flag], "Algorithm 2", n_exact=3, n_near_exact=1).assign(metric=judge)
            for name, flag in zip(names, flags, strict=True)
        ]
        return pd.concat(rows, ignore_index=True).assign(n_valid=n_valid)

    text = findings.own_sentence(table([True, False, False, False]))
    assert text.startswith("By the ICL judge 3 guided completions of 10 are exact and 1 near-exact")
    assert text.endswith("none without the right names, as contamination would have it.")
    also = findings.own_sentence(table([True, True, False, True], "rule judge"))
    assert "By the rule judge" in also and "these instructions: general, wrong split." in also
    assert "does not show that" in findings.own_sentence(table([False] * 4))
    assert "nothing can be said" in findings.own_sentence(table([None] * 4, n_valid=0))
    unheard = table([True, False, None, False], n_valid=[10, 10, 0, 10])
    assert "no verdict at all with these instructions: wrong dataset." in findings.own_sentence(
        unheard
    )


def test_operating_sentence():
    curves = operating_curves(0.35)
    text = findings.operating_sentence(curves)
    assert "So at this error the rule of one exact" in text
    assert "belongs to about 10 instances" in text
    # A judge with 5 % errors: 1 - 0.95^10 - 10 x 0.05 x 0.95^9 = 0.086.
    assert "a clean partition is flagged with 0.09 at k = 10 and 0.96 at k = 100" in text
    good_judge = curves[curves["judge_error_pct"] == 0]
    assert "stands more instances" in findings.operating_sentence(good_judge)


@pytest.fixture(scope="module")
def small_study(tmp_path_factory):
    """A tiny model of 2 partitions per benchmark, one read often, and its table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(storage.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        instances = lab_partitions.lab_instances(
            [0, 20], 2, seed=0, benchmarks=("topics", "entailment")
        )
        doses = lab_partitions.lab_doses(instances, seed=0)
        tokenizer = train_tokenizer([text for dose in doses for text in dose.texts], 400)
        texts = TrainingTexts((), (Dose(doses[1].texts, 60),), tokenizer)
        how = {"n_layers": 1, "width": 32, "n_heads": 2, "learning_rate": 1e-2}
        recipe = recipe_for(texts, n_background_tokens=0, **how)
        lm = load_causal_lm(train(recipe, texts))
        asked = lab_partitions.lab_prompts(instances)
        written = completions.by_local_model(lm, asked["prompt"], lab_partitions.LAB_MAX_TOKENS)
        scored = study.with_scores(completions.with_completions(asked, written), 0.82)
        parts = [study.partition_rows(scored, {study.RULE_JUDGE: study.RULE_COLUMN})]
        cheated, said = lab_partitions.cheat_rows(lm, instances, 0.82)
        parts += [lab_partitions.ranking_rows(lm, instances), cheated]
        return scored, study.lab_table(parts, "tiny", 0), said


def test_the_table_holds_the_columns_and_every_method(small_study):
    scored, table, texts = small_study
    assert list(table) == study.LAB_COLUMNS
    needed = "dataset model instruction copies seed n metric mean p_value n_exact n_near_exact"
    assert set(needed.split()) | {"contaminated", "truth"} <= set(table)
    # 4 partitions: 4 comparisons by 2 tests, 5 instructions judged, ranking, first instances.
    assert len(table) == 4 * (4 * 2 + 5 + 1 + 1)
    assert len(scored) == 4 * 2 * 5 and len(texts) == 4
    assert (table["truth"] == (table["copies"] > 0)).all()
    assert not table["contaminated"].isna().any()


def test_what_was_read_often_is_ranked_above_its_paraphrases(small_study):
    _, table, _ = small_study
    ranking = table[table["method"] == study.OPTION_RANKING].set_index("copies")["mean"]
    assert ranking.loc[20].mean() > ranking.loc[0].mean()
    p_values = table.loc[table["method"] == study.OPTION_RANKING, "p_value"]
    # Two of two at one in five: the smallest p there is.
    assert p_values.min() == pytest.approx(0.04)


def test_display_and_figures_hold_every_dose(small_study):
    _, table, _ = small_study
    doses = study.by_dose(table)
    assert doses.groupby(["method", "instruction"])["copies"].nunique().eq(2).all()
    wide = study.wide_by_dose(doses)
    assert list(wide)[2:] == ["0 copies", "20 copies"]
    assert wide["0 copies"].str.fullmatch(r"\d of 2").all()
    figure = plots.flags_by_dose(lab_findings.main_methods(doses), lab_findings.numbers_of(table))
    assert figure.axes[0].get_title(loc="left").startswith("2 clean partitions, 2 per dose")
    assert len(plots.operating_curves(operating_curves(0.3)).axes) == 3


def test_without_a_checkpoint_bleurt_is_empty_and_the_reason_a_sentence(tmp_path):
    scorer, why = study.bleurt_or_reason("")
    assert scorer is None and "no bleurt_checkpoint is set" in why
    scorer, why = study.bleurt_or_reason(str(tmp_path / "nowhere"))
    assert scorer is None and "nowhere" in why and "\n" not in why


def test_bleurt_reaches_the_table(monkeypatch):
    pieces = pd.DataFrame({"first_piece": ["a b"] * 2, "second_piece": ["c d e f"] * 2})
    pieces = pieces.assign(completion="c d", status=["ok", "refused"], is_repeated=False)
    pieces = pieces.assign(task="summary", is_mid_sentence=True)
    asked = []

    def scores(scorer, references, candidates):
        asked.append((references, candidates))
        return np.array([0.5])

    monkeypatch.setattr(study.overlap, "bleurt", scores)
    table = study.with_scores(pieces, 0.8, scorer=object())
    assert asked == [(["a b c d e f"], ["a b c d"])]
    assert table["bleurt"].tolist()[0] == 0.5 and np.isnan(table["bleurt"].tolist()[1])
