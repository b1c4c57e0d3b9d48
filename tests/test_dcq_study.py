"""Known contamination, the dial, the estimator study, one's own partition, and their sentences."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml
from notebook_files import ROOT
from scripted_server import MODEL, ScriptedServer, good, question

from contamination import plots, published, run, storage
from contamination.dcq import (
    assessment,
    controls,
    estimator,
    findings,
    lab_findings,
    own,
    study,
    sweep,
)
from contamination.dcq.respondents import BaseRespondent, Stated
from contamination.models.chat import ChatError

STATED = Stated((1, 1, 1, 1), 1.0, 0.5)
KEY = "key-that-nothing-may-show-0123456789"


def table_of(n):
    letters = {f"option_{k}": [f"{k}{i}\nlabel: {i % 2}" for i in range(n)] for k in "abcd"}
    instances = [f"o{i}\nlabel: {i % 2}" for i in range(n)]
    fifth = [f"f{i}\nlabel: {i % 2}" for i in range(n)]
    return pd.DataFrame({"index": range(n), "instance": instances, **letters, "fifth": fifth})


class Memory(dict):
    """Log-probabilities by hand: originals in ``known`` stand out, all else is equal but spread."""

    def __init__(self, known, n):
        spread = {"a": 0.0, "b": -2.0, "c": -4.0, "d": -6.0, "f": -3.0}
        for i in range(n):
            end = f"{i}\nlabel: {i % 2}"
            self |= {f"{k}{end}": value for k, value in spread.items()}
            self[f"o{end}"] = 100.0 if i in known else -3.0


# Known contamination


def test_sets_are_disjoint_and_the_last_is_never_read():
    arms = study.deal(table_of(10), [4, 1], 2, with_label_arms=True)
    plan = [(arm.condition, arm.copies) for arm in arms]
    assert plan == [
        ("with label", 1),
        ("with label", 4),
        ("without label", 4),
        ("wrong label", 4),
        ("unseen, same model", 0),
    ]
    numbers = [number for arm in arms for number in arm.quizzes["index"]]
    assert sorted(numbers) == list(range(10))
    assert study.n_parts([4, 1], True) == len(arms)
    with pytest.raises(ValueError, match="5 parts of 3 need 15 quizzes: 10"):
        study.deal(table_of(10), [4, 1], 3, with_label_arms=True)


def test_each_arm_is_read_as_its_condition_says():
    arms = study.deal(table_of(8), [1], 2, with_label_arms=True)
    read = [study.read_texts(arm, "d", "train", "label", 0)[1] for arm in arms[:-1]]
    start = "Dataset: d\nSplit: train\n"
    assert read == [start + "o1\nlabel: 1", start + "o3", start + "o5\nlabel: 0"]


def test_only_the_quizzed_sample_differs_between_all_and_half():
    arms = study.deal(table_of(8), [1], 4, with_label_arms=False)
    sets = {condition: (quizzes, seen) for condition, _, quizzes, seen in study.quizzed_sets(arms)}
    assert list(sets) == ["with label", "half with label", "unseen, same model"]
    quizzes, seen = sets["half with label"]
    assert quizzes["index"].tolist() == [0, 1, 4, 5]
    assert seen.tolist() == [True, True, False, False]
    assert sets["with label"][1].all() and not sets["unseen, same model"][1].any()


LABELS = {"dataset": "d", "model": "dosed", "copies": 1, "seed": 0, "n_resamples": 20}


def test_lab_rows_hold_truth_recall_and_precision():
    taker = BaseRespondent(None, "d", "train", STATED, _known=Memory({0, 1, 2}, 8))
    seen = np.arange(8) < 4
    rows, answers = study.lab_rows(taker, table_of(8), seen, condition="half with label", **LABELS)
    assert list(rows) == study.LAB_COLUMNS
    respondent, ranking = rows.to_dict("records")
    assert respondent["true_contamination_pct"] == 50
    assert respondent["max_pct"] == pytest.approx(100 * 3 / 8)
    assert (respondent["recall_max_pct"], respondent["precision_max_pct"]) == (75, 100)
    # Ranked among a, b and c alone, which lie above the unknown originals.
    assert ranking["max_pct"] == pytest.approx(100 * 3 / 8) and np.isnan(ranking["min_pct"])
    assert set(answers["quiz"]) == {"modified", "standard", "second perturbation"}
    worked = study.worked_quiz(table_of(8), answers, 0, "B")
    assert worked.set_index("option").loc["B", ["original", "log_prob", "answer"]].tolist() == [
        True,
        100.0,
        "←",
    ]


@pytest.mark.parametrize("condition", ["without label", "wrong label"])
def test_text_without_its_label_is_no_contamination(condition):
    taker = BaseRespondent(None, "d", "train", STATED, _known=Memory({0, 1, 2, 3}, 4))
    rows, _ = study.lab_rows(taker, table_of(4), [True] * 4, condition=condition, **LABELS)
    row = rows.iloc[0]
    assert (row["true_contamination_pct"], row["text_seen_pct"]) == (0, 100)
    assert row["max_pct"] == 100 and np.isnan(row["recall_max_pct"])
    assert row["precision_max_pct"] == 0


def test_means_are_taken_over_the_models():
    taker = BaseRespondent(None, "d", "train", STATED, _known=Memory({0, 1}, 4))
    parts = []
    for number, known in enumerate(({0, 1}, {0, 1, 2, 3})):
        taker = BaseRespondent(None, "d", "train", STATED, _known=Memory(known, 4))
        how = LABELS | {"seed": number}
        parts.append(study.lab_rows(taker, table_of(4), [True] * 4, condition="with label", **how))
    means = study.mean_over_seeds(pd.concat(rows for rows, _ in parts))
    row = means[means["respondent"] == "respondent"].iloc[0]
    assert (row["n_models"], row["n"], row["max_pct"], row["range"]) == (2, 4, 75, "50 to 100")


def test_the_dial_credits_every_rule_beside_the_model():
    taker = BaseRespondent(None, "d", "test", STATED, _known=Memory(set(), 6))
    rows = study.dial_rows(0.5, taker, table_of(6), 20, "d")
    names = ["clean LM, respondent", "clean LM, option ranking"]
    assert rows["model"].tolist() == names + [f"rule: {name}" for name in controls.RULES]
    assert rows["chance_pct"].fillna(-1).tolist() == [-1, 25, 25, 25, 25]
    assert rows["ci_low_pct"].le(rows["max_pct"]).all()
    assert len(plots.quiz_dial(rows).axes) == 1


def test_a_clean_model_joins_the_rules_on_released_quizzes():
    quizzes = table_of(4).drop(columns="fifth").assign(dataset="d")
    levels = pd.DataFrame(
        {"model": ["m"], "dataset": "d", "least_preferred": "BC", "max_pct": [50.0]}
    )
    rules = {"finds it": lambda options: np.array([text[0] == "o" for text in options], float)}
    table = controls.control_table(controls.rule_choices(quizzes, rules), levels)
    row = table.iloc[0]
    assert (row["control"], row["max_pct"], row["difference_pct"]) == ("finds it", 100, 50)
    assert row["n_quizzes"] == 2


# The estimator


def test_with_nothing_guessed_the_range_is_the_truth():
    never = {"always E": (0, 0, 0, 0, 1)}
    table = estimator.estimator_table(never, [0.0, 0.3, 1.0], [1.0], n=10, n_simulations=5)
    assert table["mean_min_pct"].tolist() == table["mean_max_pct"].tolist() == [0, 30, 100]
    assert table["covered_share"].eq(1).all() and table["mean_miss_pct"].eq(0).all()


def test_guesses_lift_the_range_above_the_truth_and_oversight_lowers_it():
    even = {"even": (0.2, 0.2, 0.2, 0.2, 0.2)}
    table = estimator.estimator_table(even, [0.0], [1.0], n=100, n_simulations=400)
    # The best of several positions with 20 guesses each, never below the truth of 0.
    assert table["over_share"][0] > 0.9 and 20 < table["mean_max_pct"][0] < 28
    never = {"always E": (0, 0, 0, 0, 1)}
    part = estimator.estimator_table(never, [1.0], [0.5], n=100, n_simulations=400)
    assert part["under_share"][0] == 1 and part["mean_max_pct"][0] == pytest.approx(50, abs=1)
    shares = table[["covered_share", "over_share", "under_share"]].sum(axis=1)
    assert shares[0] == pytest.approx(1)


def test_the_simulation_uses_the_rules_of_the_assessment():
    """One simulated partition, taken apart into answers, is assessed alike."""
    bias, right = np.array([[3.0, 1.0, 0.0, 2.0]]), np.array([[9.0, 6.0, 6.0, 1.0]])
    found = assessment.levels_of_counts(bias.copy(), right, 10)
    modified = list("AAABDDEEEE")
    standard = {
        p: [p] * int(k) + ["E"] * (10 - int(k)) for p, k in zip("ABCD", right[0], strict=True)
    }
    by_hand = assessment.assess(modified, standard)
    assert found.maximum[0] == by_hand.maximum and found.minimum[0] == by_hand.minimum


def test_profiles_are_checked_and_measured():
    with pytest.raises(ValueError, match="sum to 1"):
        estimator.estimator_table({"x": (1, 1, 0, 0, 0)}, [0.5], [1.0], n=10, n_simulations=2)
    measured = estimator.measured_profiles(published.released_instances("DCQ"))
    assert list(measured) == ["GPT-4, as released", "GPT-3.5, as released"]
    assert all(sum(chances) == pytest.approx(1) for chances in measured.values())
    table = estimator.estimator_table(measured, [0.0, 1.0], [1.0], n=100, n_simulations=20)
    again = estimator.estimator_table(measured, [0.0, 1.0], [1.0], n=100, n_simulations=20)
    pd.testing.assert_frame_equal(table, again)
    assert len(plots.quiz_estimator(table).axes) == 4


# Sentences, each with a table that confirms and one that refutes


def lab(**columns):
    defaults = {"respondent": "respondent", "dataset": "d", "seed": 0, "copies": 4}
    defaults |= {"text_seen_pct": 100.0, "recall_max_pct": 80.0, "condition": "with label"}
    defaults["true_contamination_pct"] = 100.0
    return pd.DataFrame(defaults | columns)


def test_range_and_truth():
    low = lab(min_pct=[10.0, 95.0, 20.0], max_pct=[20.0, 100.0, 30.0])
    half = lab(min_pct=[10.0], max_pct=[20.0], true_contamination_pct=50.0)
    low = pd.concat([low, half.assign(condition="half with label")])
    assert lab_findings.range_and_truth(low) == "below"
    high = lab(min_pct=[60.0], max_pct=[80.0], true_contamination_pct=50.0)
    assert lab_findings.range_and_truth(high) == "above"
    assert lab_findings.range_and_truth(lab(min_pct=[90.0], max_pct=[100.0])) == "neither"


def test_level_of_unread():
    clean = lab(max_pct=[2.0, 6.0], condition="clean model")
    assert lab_findings.level_of_unread(clean) == "at most 10 %"
    assert lab_findings.level_of_unread(clean.assign(max_pct=25.0)) == "above 10 %"


def test_label_matters():
    conditions = ["with label", "without label", "wrong label"]

    def found(*levels):
        return lab_findings.label_matters(lab(max_pct=list(levels), condition=conditions))

    assert found(80.0, 60.0, 5.0) == "without label"
    assert found(80.0, 60.0, 50.0) == "without label and wrong label"
    assert found(80.0, 6.0, 5.0) == "neither"
    assert found(4.0, 6.0, 5.0) == "too little is recognised"
    assert lab_findings.label_matters(lab(max_pct=[80.0])) == "not read otherwise"


def read_and_unread(respondent, ranking):
    """Levels of sets read and never read, by both, under two models."""
    parts = [
        lab(max_pct=levels, condition=condition, respondent=name, seed=[0, 1])
        for name, both in (("respondent", respondent), ("option ranking", ranking))
        for condition, levels in zip(("with label", "unseen, same model"), both, strict=True)
    ]
    return pd.concat(parts)


def test_gains_are_taken_over_what_the_same_model_never_read():
    found = read_and_unread([[40, 44], [4, 6]], [[90, 94], [25, 27]])
    assert lab_findings.gains(found)["respondent"].tolist() == [36, 38]
    assert lab_findings.read_and_unread(found) == "1 of 1"
    assert lab_findings.respondent_and_ranking(found) == "1 of 1"
    # Ranking starts from one in four, so more right answers are no larger gain.
    found = read_and_unread([[20, 3], [4, 4]], [[30, 30], [29, 29]])
    assert lab_findings.read_and_unread(found) == "0 of 1"
    assert lab_findings.respondent_and_ranking(found) == "0 of 1"


def test_quiz_and_replication():
    read = lab(max_pct=[20.0, 40.0], replication_pct=[10.0, 20.0])
    unread = lab(max_pct=[4.0], replication_pct=[2.0], condition="unseen, same model")
    assert lab_findings.quiz_and_replication(pd.concat([read, unread])) == "1 of 1"
    # Replicated less often, yet further above what is replicated unread.
    found = pd.concat([read, unread.assign(max_pct=20.0)])
    assert lab_findings.quiz_and_replication(found) == "0 of 1"


def test_answers_move():
    found = lab(modified_pct=[4.0, 4.0, 4.0], original_pct=[60.0, 60.0, 8.0], fifth_pct=[6, 40, 4])
    assert lab_findings.answers_move(found) == "1 of 3"
    clean = found.assign(condition="clean model")
    assert lab_findings.answers_of_clean_models_move(clean) == "2 of 3"


# The sweep


def swept_lab(known=(0, 1, 2)):
    """Tables of one model that knows some of eight instances, and the sweep over them."""
    rows, answers = [], []
    for condition, seen in (("with label", 8), ("unseen, same model", 0)):
        taker = BaseRespondent(None, "d", "train", STATED, _known=Memory(set(known), 8))
        how = LABELS | {"model": f"m {seen}"}
        one = study.lab_rows(taker, table_of(8), np.arange(8) < seen, condition=condition, **how)
        rows.append(one[0].assign(replication_pct=0.0))
        answers.append(one[1])
    lab_table, answers = pd.concat(rows, ignore_index=True), pd.concat(answers, ignore_index=True)
    return lab_table, sweep.sweep(lab_table, answers, STATED)


def test_the_sweep_gives_the_tables_level_at_the_stated_setting():
    lab_table, swept = swept_lab()
    assert len(swept) == 2 * 4 * 4 == len(swept.drop_duplicates([*sweep.KEYS, *SETTING]))
    stated = swept[swept["is_stated"]].reset_index()
    of_quiz = lab_table[lab_table["respondent"] == "respondent"].reset_index()
    for name in ("max_pct", "min_pct", "true_contamination_pct", "n"):
        assert stated[name].tolist() == pytest.approx(of_quiz[name].tolist())


SETTING = ["temperature", "none_below"]


def test_the_threshold_decides_how_often_e_is_answered():
    _, swept = swept_lab()
    shares = swept.groupby("none_below")["none_pct"].mean()
    assert shares[0.0] == 0 and shares.is_monotonic_increasing and shares[0.9] > 0


def test_readings_that_hold_and_that_hang():
    lab_table, swept = swept_lab()
    readings = {"hangs": lambda rows: f"{rows['none_below'].min():.1f}", "holds": lambda rows: "so"}
    found = sweep.readings_table(swept, lab_table, readings).set_index("reading")
    assert found.loc["hangs", ["stated", "n_settings", "n_same"]].tolist() == ["0.5", 16, 4]
    assert found.loc["hangs", "verdict"] == sweep.HANGS
    assert found.loc["holds", ["n_same", "verdict", "elsewhere"]].tolist() == [16, sweep.HOLDS, ""]
    both = sweep.readings_table(swept, lab_table, lab_findings.READINGS)
    assert both["reading"].tolist() == list(lab_findings.READINGS)


def positions(standard, second):
    counts = {
        ("modified", ""): 2,
        ("standard", "B"): standard,
        ("second perturbation", "B"): second,
    }
    rows = [
        {"dataset": "d", "model": "m", "quiz": quiz, "position": at, "option": option, "count": n}
        for (quiz, at), at_b in counts.items()
        for option, n in (("A", 50 - at_b), ("B", at_b))
    ]
    return pd.DataFrame(rows)


def test_lab_position_sentence():
    assert "As in Figure 2" in lab_findings.lab_position_sentence(positions(40, 3))
    text = lab_findings.lab_position_sentence(positions(3, 40))
    assert "in 0 of 1 cases, and stay with another perturbation in 0" in text


def test_dial_sentence():
    rows = {"model": "m", "dial": [0.0, 1.0], "chance_pct": 25.0}
    rising = pd.DataFrame(rows | {"max_pct": [25.0, 80.0], "ci_low_pct": [17.0, 70.0]})
    assert "points rise: m." in lab_findings.dial_sentence(rising)
    flat = pd.DataFrame(rows | {"max_pct": [25.0, 26.0], "ci_low_pct": [17.0, 18.0]})
    respondent = rising.assign(model="respondent", chance_pct=np.nan)
    text = lab_findings.dial_sentence(pd.concat([flat, respondent]))
    assert "credit no one with anything more" in text and "respondent" not in text


def simulated(over, covered, under):
    full = {"bias_profile": "p", "true_contamination_pct": [0.0, 50.0], "recognition_pct": 100.0}
    full |= {"over_share": over, "covered_share": covered, "mean_miss_pct": [9.0, 4.0]}
    full |= {"mean_min_pct": [9.0, 60.0], "mean_max_pct": [20.0, 70.0], "under_share": 0.0}
    full["covered_with_kappa_share"] = 0.3
    part = pd.DataFrame(full).assign(recognition_pct=70.0, under_share=under)
    return pd.concat([pd.DataFrame(full), part])


def test_estimator_sentence():
    text = lab_findings.estimator_sentence(simulated(0.9, 0.1, 0.6))
    assert "p 10 %" in text and "at a true share of 0 %: mean range [9, 20] %" in text
    assert "by 7.2 points on average" in text  # 6.5 over all, 90 % of which miss
    assert text.endswith("60 % of partitions with contamination.")
    assert "seldom lies above" in lab_findings.estimator_sentence(simulated(0.0, 1.0, 0.6))


def own_table(**columns):
    row = {"model": ["old", "new"], "n_asked": 10, "n_letters": 6, "n_none": 4, "n_refused": 0}
    row |= {"n_unparsable": 0, "n_error": 0, "min_pct": 10.0, "max_pct": 20.0}
    return pd.DataFrame(row | columns)


def test_snapshots_sentence():
    assert "No snapshot refuses" in findings.snapshots_sentence(own_table())
    assert "Refusals do occur" in findings.snapshots_sentence(own_table(n_refused=[0, 3]))
    silent = findings.snapshots_sentence(own_table(n_error=[0, 10]))
    assert "No snapshot refuses" not in silent and "not every answer came" in silent
    one = findings.snapshots_sentence(own_table().head(1))
    assert "snapshot" not in one and "6 letters A to D" in one


def test_own_control_sentence():
    rows = {"model": "m", "control": ["length", "centrality"], "model_max_pct": 50.0}
    rows |= {"chance_pct": 27.0, "max_pct": [30.0, 60.0], "ci_low_pct": [20.0, 50.0]}
    text = findings.own_control_sentence(pd.DataFrame(rows))
    assert "m 50 %, rules at its positions length 30 % (chance 27 %), centrality 60 %" in text
    assert "Above chance without memory: centrality." in text
    assert text.endswith("reached without memory: that of m by centrality.")
    text = findings.own_control_sentence(pd.DataFrame(rows).head(1))
    assert "No rule stands above chance" in text and text.endswith("the level of a model.")


# One's own partition


@pytest.fixture
def here(monkeypatch, tmp_path):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": f"original {i}", "label": i % 2}) for i in range(6)]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    return tmp_path


OWN = {"dataset": "own.jsonl", "names": ["Own", "test"], "label_names": ["0 (no)", "1 (yes)"]}
OWN |= {"n_instances": 4, "perturber_model": MODEL}
OWN |= {"key_variable": "SCRIPTED_KEY", "perturber_key_variable": "SCRIPTED_KEY"}
OWN |= {"prices": [1.0, 2.0], "price_date": "2026-01-31", "cost_cap": 1.0, "target_model": MODEL}


def mine_of(url="http://127.0.0.1:1/v1", **changes):
    return own.Settings.read(OWN | {"base_url": url, "perturber_base_url": url} | changes)


def asked_of(url="http://127.0.0.1:1/v1", **changes):
    return own.asked_of(mine_of(url, **changes), STATED)


def partition_of(**changes):
    return own.own_partition(mine_of(**changes), 0)


def own_script(body, n):
    """Perturbs, then answers B wherever an original stands there and E elsewhere."""
    asked = question(body)
    if "Input Text" in asked:
        number = asked.partition("text: original ")[2][0]
        lines = "\n".join(f"{k}) text: changed {k} {n} {number}\nlabel: 9" for k in "ABCD")
        return good(lines)
    return good("B" if "B) text: original" in asked else "E")


def test_a_model_of_ones_own_from_file_to_level(here, capsys):
    with ScriptedServer(own_script) as server:
        asked = asked_of(server.base_url)
        partition = partition_of()
        own.announce(partition, asked, dry_run=False)
        plan = capsys.readouterr().out
        assert "8 requests: 0 in the log, 8 to ask" in plan
        assert "24 requests: 0 in the log, 24 to ask" in plan
        assert not server.bodies
        quizzes, counts = own.quizzes_of(partition, asked)
        assert quizzes["option_a"].str.contains(r"label: [01] \((?:no|yes)\)$").all()
        assert counts["is_complete"].all()
        answers = own.answers_of(partition, asked, quizzes)
        row = own.own_rows(answers, partition, "chat", 20).iloc[0]
        assert (row["model"], row["max_pct"], row["n_letters"]) == (MODEL, 100.0, 4)
        levels = own.own_rows(answers, partition, "chat", 20)
        rules = own.control_rows(quizzes, levels).set_index("control")
        assert rules["model_max_pct"].eq(100).all() and rules["n"].eq(4).all()
        # "original 3" has two words of "changed a 3 0"; it is the shorter one, never chosen.
        assert rules.loc["length", "max_pct"] == 0
        n_calls = len(server.bodies)
        own.answers_of(partition, asked, own.quizzes_of(partition, asked)[0])
        assert len(server.bodies) == n_calls
        # The options serve another model, and no perturber is asked again.
        storage.write_csv(here / "options.csv", quizzes)
        later = {"options_file": "options.csv", "perturber_model": ""}
        again = partition_of(**later)
        later = asked_of(server.base_url, target_model="another-2025-01-31", **later)
        own.announce(again, later, dry_run=False)
        assert own.quizzes_of(again, later)[0]["instance"].tolist() == quizzes["instance"].tolist()


def test_a_job_needs_a_cap_and_reads_the_quizzed_instances_first(here):
    with ScriptedServer(own_script) as server:
        partition = partition_of()
        with pytest.raises(ValueError, match="cost_cap"):
            own.plan_tuning(partition, asked_of(server.base_url, cost_cap=0.0), mine_of(), 0)
        asked = asked_of(server.base_url)
        mine = mine_of(n_tuning_instances=5, tuning_epochs=1, tuning_price=1e6)
        file, plan = own.plan_tuning(partition, asked, mine, 0)
        read = [json.loads(line)["messages"][1]["content"] for line in file.splitlines()]
        assert plan.n_examples == 5 and read[:4] == partition.instances
        with pytest.raises(ChatError, match="nothing was sent"):
            own.start_tuning(asked, file, plan)
        assert not server.bodies


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"respondent": "oracle"}, 'respondent must be "chat", "instruct" or "base"'),
        ({"respondent": "base"}, "a local model .* has none"),
        ({"perturber_base_url": ""}, "perturber_base_url is empty"),
        ({"prices": [1.0]}, "2 or 4 numbers"),
        ({"price_date": ""}, "with price_date"),
        ({"prices": [-1.0, 2.0]}, "at least 0"),
        ({"cost_cap": -1.0}, "at least 0"),
        ({"answer_tokens": 0}, "answer_tokens must be at least 1"),
        (
            {"limit_option": "max_length"},
            "limit_option must be max_tokens or max_completion_tokens",
        ),
    ],
)
def test_who_is_asked_is_checked_first(changes, message):
    with pytest.raises(ValueError, match=message):
        asked_of(**changes)


def test_a_model_is_not_compared_with_itself():
    with pytest.raises(ValueError, match="second_model is target_model"):
        asked_of(second_model=MODEL)


def test_no_model_is_no_question():
    assert asked_of(target_model="") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": ["Own"]}, "names holds the dataset and the split"),
        ({"label_names": ["0 (no)"]}, "holds more than 0 to 0"),
        ({"label_columns": ["topic"], "label_names": []}, "label_columns not among columns: topic"),
        ({"n_instances": 0}, "n_instances must be at least 1"),
        ({"columns": ["label"]}, "nothing but labels"),
        ({"columns": ["txt"], "label_columns": [], "label_names": []}, "did you mean"),
    ],
)
def test_what_is_asked_is_checked_first(here, changes, message):
    with pytest.raises(ValueError, match=message):
        partition_of(**changes)
    with pytest.raises(ValueError, match="dataset and options_file are empty"):
        partition_of(dataset="")


def test_options_that_hold_the_original_are_no_modified_quiz(here):
    table = table_of(3)
    storage.write_csv(here / "wild.csv", table.assign(option_d=table["instance"]))
    with pytest.raises(ValueError, match="there is no modified quiz"):
        partition_of(options_file="wild.csv")


def test_options_with_an_empty_text_are_refused(here):
    table = table_of(3)
    table.loc[1, "option_b"] = None
    storage.write_csv(here / "holes.csv", table)
    with pytest.raises(ValueError, match="1 of 3 rows lack a text"):
        partition_of(options_file="holes.csv")


def test_a_missing_key_price_or_perturber_stops_at_once(here, monkeypatch):
    partition = partition_of()
    asked = asked_of(prices=[], price_date="", cost_cap=0.0)
    own.announce(partition, asked, dry_run=True)
    with pytest.raises(ValueError, match=r"no price for .* requests") as raised:
        own.announce(partition, asked, dry_run=False)
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match="perturber_model is empty"):
        partition_of(perturber_model="")
    monkeypatch.delenv("SCRIPTED_KEY")
    with pytest.raises(ChatError, match="SCRIPTED_KEY is not set"):
        own.announce(partition, asked_of(), dry_run=False)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "params/full/dcq").glob("*.yaml")), ids=lambda path: path.stem
)
def test_the_papers_partitions_are_ready(path, here, capsys):
    values = run.check(ROOT / "notebooks/02_dcq.ipynb", path)["own_settings"]
    mine = own.Settings.read(values)
    assert set(mine.label_columns) <= set(mine.columns)
    released = published.released_instances("DCQ")
    known = released[released["dataset"] == mine.names[0]]
    assert known["split"].unique().tolist() == [mine.names[1]]
    assert mine.prices == [] and mine.price_date == ""
    # A file in place of the hub's: two instances, and two lines that say what would be asked.
    texts = set(mine.columns) - set(mine.label_columns)
    rows = [dict.fromkeys(texts, f"some words {n}") | {"label": n} for n in range(2)]
    (here / "hub.jsonl").write_text("\n".join(map(json.dumps, rows)))
    paid = {"dataset": "hub.jsonl", "dataset_split": "", "dry_run": True}
    paid |= {"prices": [1.0, 2.0], "price_date": "2026-01-31"}
    mine = own.Settings.read(values | paid)
    own.announce(own.own_partition(mine, 0), own.asked_of(mine, STATED), mine.dry_run)
    writer, model = capsys.readouterr().out.splitlines()
    assert "4 to ask" in writer and "12 to ask" in model
    assert all("tokens, at most" in line and "USD" in line for line in (writer, model))


def test_all_ten_partitions_are_there():
    found = {
        yaml.safe_load(path.read_text())["own_settings"]["names"][0]
        for path in (ROOT / "params/full/dcq").glob("*.yaml")
    }
    assert found == set(published.DCQ_DATASETS)
