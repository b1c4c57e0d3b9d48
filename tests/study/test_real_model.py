"""Notebook 12: a tiny model is asked everything, stored tables are whole, and what they say."""

import numpy as np
import pandas as pd
import pytest
import yaml
from notebook_files import ROOT, run_here, script
from tiny_models import gguf_of, tiny_llama
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from contamination.core import claims, storage
from contamination.core.scores import LOWERCASE, MIN_K, MIN_K_PLUS_PLUS, PPL, ZLIB
from contamination.core.verdicts import (
    CONTROL_FAILS,
    INCONCLUSIVE,
    NOT_SUPPORTED,
    SUPPORTED,
    check_verdicts,
)
from contamination.data import published
from contamination.lab import world
from contamination.min_k.wikimia_tables import AGE
from contamination.models import loading
from contamination.replication import completions, decisions
from contamination.replication.instructions import GENERAL, GUIDED
from contamination.study import real_model
from contamination.study.conditions import (
    DOSED,
    FRESH,
    LATER,
    PARAPHRASE,
    VERBATIM,
)
from contamination.study.real_model import (
    answer_findings,
    findings,
    quiz_findings,
    tuned_findings,
)

NOTEBOOK = ROOT / f"notebooks/{real_model.NOTEBOOK}.ipynb"
STORED = [name for name, tables in real_model.PARTS.items() if tables[0] in real_model.stored()]


# A tiny model is asked everything


@pytest.fixture(scope="module")
def chat_path(tmp_path_factory):
    """A GGUF file that knows every byte, so that it reads any text and writes any letter."""
    rules = Tokenizer(models.BPE())
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet
    )
    rules.train_from_iterator(["the old river ran past", "a small  stone house."], trainer)
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=rules, **special)
    said = {"add_bos_token": False, "chat_template": "{{ messages[0]['content'] }}\n"}
    path = tmp_path_factory.mktemp("chat") / "tiny.gguf"
    return gguf_of(tiny_llama(tokenizer, context=4096), tokenizer, path, **said)


@pytest.fixture(scope="module")
def answered(chat_path, tmp_path_factory):
    """The tables of a run that asks the tiny model, which is its own clean model as well.

    And how long each dataset's completions may be.
    """
    given = {"pretrained_model": str(chat_path), "lab_datasets": ["topics"], "n_lab_instances": 4}
    given |= {"ranked_rows": 1, "letter_rows": 1, "completed_rows": 2, "judged_rows": 2}
    given |= {"capsule_lengths": [32], "capsule_rows": 4, "control_rows": 4}
    given |= {"control_copies": 8, "control_rate": 0.5, "n_resamples": 50, "n_auc_resamples": 50}
    limits, by_local_model = [], completions.by_local_model

    def short(lm, prompts, n_tokens, form):  # random weights never stop by themselves
        limits.append(n_tokens)
        return by_local_model(lm, prompts, 4, form)

    folder = tmp_path_factory.mktemp("asked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(storage.CACHE_VARIABLE, str(folder / "cache"))
        patch.setenv(storage.OUTPUTS_VARIABLE, str(folder / "outputs"))
        patch.delenv(storage.STAGING_VARIABLE, raising=False)
        patch.setattr(completions, "by_local_model", short)
        patch.setattr(world, "build_world", lambda seed: None)
        patch.setattr(world, "base_model", lambda *settings: chat_path)
        run_here(NOTEBOOK, given)
    tables = {p.stem: pd.read_csv(p) for p in (folder / "outputs/tables").glob("*.csv")}
    return tables, limits


@pytest.mark.mirror
def test_every_part_of_the_notebook_writes_its_tables(answered):
    assert set(answered[0]) == {name for tables in real_model.PARTS.values() for name in tables}


@pytest.mark.mirror
def test_stored_tables_have_the_columns_that_a_run_writes(answered):
    for name, table in real_model.stored().items():
        assert list(table) == list(answered[0][name]), name


@pytest.mark.mirror
def test_a_time_capsule_has_its_control(answered):
    capsule, control = (answered[0][f"pretrained_{name}"] for name in ("min_k", "control"))
    assert capsule["method"].tolist() == [PPL, ZLIB, LOWERCASE, MIN_K, MIN_K_PLUS_PLUS]
    assert (capsule[["n_members", "n_non_members"]] == 4).all(axis=None)
    assert capsule["paper_auc"].notna().sum() == 4 and set(capsule["dtype"]) <= set(loading.DTYPES)
    assert control["setting"].nunique() == 4 and (control["n_members"] == 2).all()
    # Copies were added: the model that is compared is another one.
    assert (control["auc"] != control["before_auc"]).any()


@pytest.mark.mirror
def test_a_real_model_takes_the_released_quizzes(answered):
    tables, _ = answered
    beside = tables["pretrained_beside"]
    whole = beside[beside["control"].str.endswith("whole text") & beside["model"].eq("GPT-4")]
    # Both rankings are of the same weights here.
    by_name = whole.pivot(index="dataset", columns="control", values="control_pct")
    assert len(by_name) == 10 and by_name.nunique(axis=1).eq(1).all()
    readings = tables["pretrained_readings"]
    assert readings["is_unread"].tolist() == [False] * 10 + [True] * 2
    assert (readings["difference_pct"] == 0).all()
    letters = tables["pretrained_dcq"].query("respondent == @real_model.BY_LETTER")
    assert letters["dataset"].tolist() == list(published.DCQ_DATASETS[:3])
    assert letters["letter_share"].between(0, 1).all()
    assert tables["pretrained_positions"].groupby("dataset")["count"].sum().ge(2).all()


@pytest.mark.mirror
def test_a_real_model_completes_the_released_instances(answered):
    tables, limits = answered
    judged, decided = tables["pretrained_judge"], tables["pretrained_replication"]
    of_2 = decided[decided["method"] == decisions.ALGORITHM_2]
    assert (of_2["instruction"] == GUIDED).sum() == 14
    assert (of_2["n"] == 2).all()
    assert len(limits) == 7 and min(limits) < 50 < 100 < max(limits)  # each dataset has its own
    # A summary has no label that could be wrong.
    assert of_2.groupby("benchmark")["instruction"].nunique().value_counts().to_dict() == {
        5: 5,
        4: 2,
    }
    said = of_2.loc[of_2["instruction"] == GUIDED, "verdict"]
    assert not said.eq(SUPPORTED).any()  # a model that has seen nothing
    check_verdicts(said)
    assert judged["n"].eq(6).all() and judged["judge"].nunique() == 3
    assert judged["agreement"].iloc[2] == pytest.approx(1 / 3)  # one kind of three is no match


# The store


def test_stored_tables_were_made_with_the_profile_that_is_here():
    """A parameter that changes asks for new tables."""
    record = real_model.read_record()
    now = yaml.safe_load((ROOT / f"params/pretrained/{real_model.NOTEBOOK}.yaml").read_text())
    now.pop("only")
    assert all(part["parameters"] == now for part in record.values())
    files = {path.stem for path in real_model.FOLDER.glob("*.csv")}
    assert files == {name for part in record.values() for name in part["tables"]}
    assert all(path.stat().st_size < 100_000 for path in real_model.FOLDER.glob("*.csv"))


def test_stored_tables_have_known_verdicts():
    for name, table in real_model.stored().items():
        claims.check_table(table, name)


def test_what_is_not_stored_is_named():
    assert STORED == [*real_model.PARTS] == [*real_model.IN_WORDS]
    for part in real_model.PARTS:
        assert real_model.IN_WORDS[part] in real_model.why_missing(part, is_asked=False)
        assert "the parameter only" in real_model.why_missing(part, is_asked=True)


@pytest.fixture
def run_folder(tmp_path):
    """What a run that asked for one part leaves, and the parameters it was given."""
    given = {"seed": 0, "only": ["judge"]}
    outputs = tmp_path / "outputs"
    path = storage.write_csv(
        outputs / "tables/pretrained_judge.csv", pd.DataFrame({"judge": ["a"]})
    )
    manifest = {"parameters": given, "models": [{"model": "tiny", "dtype": "float32"}]}
    manifest["outputs"] = {"tables/pretrained_judge.csv": storage.sha256_of_file(path)}
    storage.write_json(outputs / f"manifests/{real_model.NOTEBOOK}.json", manifest)
    return outputs


def test_one_part_after_another_is_stored_with_its_checksums(run_folder, tmp_path):
    folder = tmp_path / "stored"
    assert real_model.store(run_folder, {"seed": 0, "only": []}, folder) == ["judge"]
    assert real_model.stored(folder)["pretrained_judge"]["judge"].tolist() == ["a"]
    assert real_model.model_name(folder) == "tiny"
    (folder / "pretrained_judge.csv").write_text("judge\nb\n")
    with pytest.raises(ValueError, match=r"pretrained_judge\.csv is not the file that was stored"):
        real_model.stored(folder)


def test_a_smaller_run_or_a_changed_table_is_not_stored(run_folder, tmp_path):
    with pytest.raises(ValueError, match="another seed: 0"):
        real_model.store(run_folder, {"seed": 1}, tmp_path / "stored")
    (run_folder / "tables/pretrained_judge.csv").write_text("judge\nb\n")
    with pytest.raises(ValueError, match="was changed after the run"):
        real_model.store(run_folder, {"seed": 0}, tmp_path / "stored")
    assert real_model.stored(tmp_path / "stored") == {}


def test_tables_of_two_models_are_not_mixed(run_folder, tmp_path):
    folder = tmp_path / "stored"
    real_model.store(run_folder, {"seed": 0}, folder)
    record = real_model.read_record(folder)
    record["copies"] = {"tables": {}, "model": {"model": "another"}}
    storage.write_json(folder / real_model.RECORD, record)
    with pytest.raises(ValueError, match="several models: another, tiny"):
        real_model.model_name(folder)


def test_the_script_refuses_what_is_no_run_of_the_profile(
    run_folder, tmp_path, monkeypatch, capsys
):
    store = script("store_real_model")
    monkeypatch.setattr("sys.argv", ["", str(run_folder), str(tmp_path / "nowhere")])
    (tmp_path / "p.yaml").write_text("seed: 0\n")
    monkeypatch.setattr(store, "PARAMETERS", tmp_path / "p.yaml")
    copy, stored = tmp_path / "stored", real_model.store
    monkeypatch.setattr(real_model, "store", lambda *given: stored(*given, folder=copy))
    assert store.main() == 1
    said = capsys.readouterr()
    assert "stored judge" in said.out and said.err.startswith("error: ")
    assert (copy / "pretrained_judge.csv").exists()


# What the tables say


def results(
    quiz=NOT_SUPPORTED, is_ahead=True, is_taste=True, guided=INCONCLUSIVE, dates=CONTROL_FAILS,
    judge_low=0.3, is_seen=True,
):  # fmt: skip
    readings = pd.DataFrame({"dataset": ["RTE", "XSum", "ours"], "is_unread": [False, False, True]})
    readings["ci_low_pct"] = [5.0 if is_ahead else -5.0, -3.0, 2.0 if is_taste else -2.0]
    readings["verdict"] = [quiz, NOT_SUPPORTED, ""]
    readings = readings.assign(ci_high_pct=24.0, clean_high_pct=[50.0, 80.0, 30.0])
    readings = readings.assign(difference_pct=[6.0, 9.0, 1.0], clean_low_pct=[40.0, 60.0, 20.0])
    replication = {"method": decisions.ALGORITHM_2, "instruction": [GUIDED, GUIDED, GENERAL]}
    replication = pd.DataFrame(replication).assign(verdict=[guided, INCONCLUSIVE, ""])
    replication = replication.assign(n_valid=10, n_exact=[0, 0, 3], n_near_exact=[1, 0, 0])
    replication["contaminated"] = [False, False, True]
    judge = {"judge": ["tiny", real_model.ALWAYS_NO], "agreement": [0.4, 0.35]}
    judge = pd.DataFrame(judge).assign(ci_low=[judge_low, 0.2], verdict=INCONCLUSIVE)
    judge = judge.assign(n_near=13, n_near_found=[2, 0], n_near_flagged=[15, 0])
    capsule = pd.DataFrame({"method": [MIN_K, PPL], "verdict": [dates, INCONCLUSIVE]})
    capsule = capsule.assign(blind_auc=[0.99, 0.98], auc=[0.61, 0.48])
    within = [f"copies of {age}, none of {age}" for age in AGE.values()]
    control = pd.DataFrame({"setting": within, "method": MIN_K, "copies": 8})
    control = control.assign(before_auc=0.5, auc=0.9, holds=[True, is_seen])
    control = control.assign(n_members=25, n_non_members=25, ci_low=0.8, ci_high=1.0)
    found = {"readings": readings, "replication": replication, "judge": judge}
    found |= {"min_k": capsule, "control": control}
    found |= dict.fromkeys(("beside", "dcq", "positions"), pd.DataFrame())
    return {f"pretrained_{name}": table for name, table in found.items()}


DOSES = pd.DataFrame(
    [(VERBATIM, 16, 0.98), (VERBATIM, 1, 0.6), (PARAPHRASE, 4, 0.56), (FRESH, 4, 0.5)],
    columns=["condition", "copies", "auc"],
).assign(model=DOSED)


def test_the_conclusion_says_what_the_tables_carry():
    said = findings.conclusion(results(), "tiny", DOSES)
    assert said.startswith("Nothing here shows that tiny was trained on")
    assert "tiny is shown to lead the clean model on 1 of 2 benchmarks. It also leads on 1" in said
    assert "Min-k% Prob is not blind: it notices the 8 copies that we add to pages." in said
    assert "the AUC of Min-k% Prob is 0.60 after 1 copy and 0.98 after 16 copies, so a t" in said
    assert "leaves out" not in said and said.count("\n\n") == 1


@pytest.mark.parametrize(
    ("changed", "absent", "present"),
    [
        ({"quiz": SUPPORTED}, "taste explains such a lead", "on 1 of them by more than on any"),
        ({"quiz": SUPPORTED}, "Nothing here shows", "Some results point to training"),
        ({"is_taste": False}, "taste explains such a lead", "the quiz would look like memory: tin"),
        ({"is_taste": False}, "taste explains such a lead", "But on none of them is the lead show"),
        ({"is_ahead": False}, "on 1 of 2 benchmarks", "not shown to lead the clean model on any"),
        ({"guided": SUPPORTED}, "Nothing here shows", "Some results point to training"),
        ({"dates": SUPPORTED}, "Nothing here shows", "Some results point to training"),
        ({"is_seen": False}, "Min-k% Prob is not blind", "The positive control fails"),
    ],
)
def test_a_table_that_says_the_opposite_takes_the_sentence_away(changed, absent, present):
    before, said = (findings.conclusion(results(**given), "tiny") for given in ({}, changed))
    assert absent in before and present not in before
    assert absent not in said and present in said


def test_rare_texts_are_easy_to_miss_only_where_one_copy_shows_little():
    assert "seen only rarely would be easy to miss." in tuned_findings.of_fewest(DOSES)
    clear = DOSES.assign(auc=[0.98, 0.9, 0.56, 0.5])
    assert "0.90 after 1 copy and 0.98" in tuned_findings.of_fewest(clear)
    assert tuned_findings.of_fewest(clear).endswith(
        "so a text that was seen only rarely shows as well."
    )
    assert tuned_findings.of_fewest(DOSES.iloc[1:]) == ""


@pytest.mark.parametrize(
    ("changed", "absent", "present"),
    [
        ({"dates": SUPPORTED}, "No score is shown", "1 of 2 scores tell the older pages"),
        ({"dates": NOT_SUPPORTED}, "tell them apart", "1 stay close to chance and 1 are incon"),
    ],
)
def test_scores_are_said_to_beat_the_words_where_they_do(changed, absent, present):
    before, said = (
        answer_findings.of_dates(results(**given)["pretrained_min_k"]) for given in ({}, changed)
    )
    assert "whose AUC is at least 0.98. Of the 2 tests" in before
    assert "1 tell them apart and no better than the words and 1 are inconclusive." in before
    assert absent in before and present not in before
    assert absent not in said and present in said


def test_a_judge_is_better_where_its_interval_is_above_a_constant_answer():
    said = answer_findings.of_judge(results()["pretrained_judge"], "tiny")
    assert (
        "tiny is not shown to be better than a constant answer: it agrees with a person on 40"
        in said
    )
    said = answer_findings.of_judge(results(judge_low=0.36)["pretrained_judge"], "tiny")
    assert "tiny is better than a constant answer" in said


# The tables of all questions


def test_every_question_has_a_row_with_its_result_and_its_verdicts():
    rows = findings.summary(results(), "tiny", DOSES).set_index("question")
    said = (rows["result"] + " | " + rows["verdicts"]).tolist()
    assert said == [
        "ahead of the clean model on 1 of 2 benchmarks, and on 1 of 1 sets of our own quizzes "
        "| 2 not supported",
        "0 of 2; under other instructions 1 of 1 | 2 inconclusive",
        "2 of 15; the controls 0 of 13 | 1 inconclusive",
        "0.48 to 0.61; the words alone 0.98 or more | 1 control fails, 1 inconclusive",
        "0.90 and 0.90 after 8 copies, 0.50 and 0.50 before | –",
        "0.60 after 1 copy, 0.98 after 16 copies, 0.56 after 4 copies as a paraphrase, 0.50 for "
        "fresh rows | –",
    ]
    changed = results(quiz=SUPPORTED, is_taste=False, guided=SUPPORTED)
    rows = findings.summary(changed, "tiny")
    said = (rows["result"] + " | " + rows["verdicts"]).tolist()
    assert said[0].endswith("and on 0 of 1 sets of our own quizzes | 1 supported, 1 not supported")
    assert said[1].endswith("| 1 supported, 1 inconclusive")
    assert len(rows) == 5 and len(findings.summary({}, "tiny")) == 0


def test_a_claim_that_no_answer_could_support_is_said_to_be_out_of_reach():
    own = lead(30.0, own=True, difference=14.0)
    readings = pd.DataFrame([own, lead(52.0, name="A"), lead(70.0, name="B")])
    capsule = results()["pretrained_min_k"]
    given = {"pretrained_readings": readings, "pretrained_min_k": capsule}
    rows = findings.overview(given)
    assert rows["question"].tolist() == [row[0] for row in findings.QUESTIONS.values()]
    assert rows["reachable"].iloc[0] == "on 1 of 2 benchmarks"
    assert rows["reachable"].iloc[3] == "only with an AUC above 0.98"
    given["pretrained_readings"] = readings.iloc[:2]
    assert findings.overview(given)["reachable"].iloc[0] == "on 1 of 1 benchmarks"
    assert "of" not in findings.overview({})["reachable"].iloc[0].split()


def lead(clean, *, own=False, width=8.0, difference=5.0, name="RTE"):
    """A row of ``pretrained_readings``: a clean model's share, and an interval about it."""
    row = {"dataset": name, "is_unread": own, "clean_pct": clean, "difference_pct": difference}
    row |= {"clean_low_pct": clean - width, "clean_high_pct": clean + width}
    return row | {"ci_low_pct": difference - 10, "ci_high_pct": difference + 10}


def test_a_lead_that_no_model_could_have_is_not_held_against_it():
    own = lead(30.0, own=True, difference=14.0)
    claims = [lead(52.0, name="A"), lead(70.0, name="B"), lead(85.0, name="C")]
    said = quiz_findings.room_for_leads(pd.DataFrame([own, *claims]))
    # 100 - 70 is above 24, and the interval of that lead begins at 22.
    assert "reach up to 24.0 points" in said and "On 2 of 3 benchmarks, even the interval" in said
    assert said.endswith("Only A had room.")
    said = quiz_findings.room_for_leads(pd.DataFrame([own, claims[0]]))
    assert said.endswith("A perfect model could lead by more than that on every benchmark.")
    said = quiz_findings.room_for_leads(pd.DataFrame([own, claims[2]]))
    assert said.endswith("No benchmark had room.")


def test_the_figure_draws_what_the_sentence_counts():
    """Bars of a perfect model that begin at or below the line are benchmarks without room."""
    readings = real_model.stored()["pretrained_readings"]
    rows = quiz_findings.quiz_rows(readings)
    needed = rows.loc[rows["is_unread"], "ci_high_pct"].max()
    n_without = int(rows["perfect_low"].le(needed).sum())
    assert f"On {n_without} of 10 benchmarks, even" in quiz_findings.room_for_leads(readings)
    claims = rows[~rows["is_unread"]]
    assert claims["difference_pct"].is_monotonic_decreasing and len(claims) == 10
    assert rows["is_unread"].is_monotonic_increasing
    assert rows.loc[rows["is_unread"], ["perfect_low", "perfect_high"]].isna().all(axis=None)
    assert rows["has_room"].sum() == 10 - n_without
    assert claims["lead"].iloc[0] == "25.0 [15.0, 35.0]" and claims["dataset"].iloc[0] == "RTE"


def test_the_clean_models_share_is_set_against_chance():
    own = lead(20.0, own=True)
    said = quiz_findings.clean_shares(pd.DataFrame([own, lead(60.0), lead(90.0)]))
    assert "finds 60 to 90 % of the originals. By chance it would find 25 %. So a share" in said
    said = quiz_findings.clean_shares(pd.DataFrame([own, lead(30.0), lead(90.0)]))
    assert "sign of memory" not in said and said.endswith("above chance on 1 of 2 benchmarks.")


@pytest.mark.parametrize(("clean_low", "is_said"), [(3.0, True), (-3.0, False)])
def test_more_originals_than_gpt4_need_no_memory_where_a_clean_model_finds_more(clean_low, is_said):
    takers = ["tiny, whole text", "clean LM, whole text", "tiny, per token"]
    rows = pd.DataFrame({"control": takers, "ci_low_pct": [5.0, clean_low, 5.0]})
    said = quiz_findings.of_gpt4(rows.assign(model="GPT-4", dataset="RTE"), "tiny")
    assert said.startswith("tiny's ranking is shown to find more originals than GPT-4's lett")
    assert "letters on 1 of 1 datasets." in said
    assert ("But the clean model's ranking is shown to do so too, on 1 of 1. So" in said) == is_said
    assert ("is shown to do so on none of 1." in said) != is_said


def test_matches_are_counted_under_each_instruction():
    decided = results(guided=CONTROL_FAILS)["pretrained_replication"]
    rows = answer_findings.matches(decided).set_index("instruction")
    assert rows["called"].to_dict() == {GUIDED: "0 of 2", GENERAL: "1 of 1"}
    assert rows["n_valid"].tolist() == [20, 10]
    said = answer_findings.of_completions(decided, "tiny")
    assert "tiny completes none of 20 instances exactly and 1 nearly exactly, and none of" in said
    assert (
        "Under the other instructions, it completes 3 of 10 instances exactly or almost exactly."
        in said
    )
    assert said.endswith(
        "none of the 2 partitions, and for 1 the control fails, and the verdict is inconclusive "
        "for 1."
    )
    said = answer_findings.of_completions(
        results(guided=SUPPORTED)["pretrained_replication"], "tiny"
    )
    assert "supported for 1 of the 2 partitions" in said and "control fails" not in said
    nothing = answer_findings.of_completions(decided.assign(n_near_exact=0), "tiny")
    assert nothing.startswith("tiny completes nothing under the right names, so none of the 2 par")


def test_near_exact_matches_are_counts_of_the_larger_side():
    judges = pd.DataFrame({"judge": ["SmolLM2-x", "rule"], "n_near": 13, "n_near_found": [0, 5]})
    rows = answer_findings.judge_rows(judges.assign(n_near_flagged=[0, 17]), "SmolLM2-x")
    assert rows["near"].tolist() == ["0 of 13", "5 of 17"]
    assert rows["judge"].tolist() == ["SmolLM2", "rule"]


@pytest.mark.parametrize(
    ("before", "after_low", "said"),
    [
        (
            0.36,
            0.8,
            "an unusual draw: in 1.5 % of random draws, the mean AUC lies at least this far",
        ),
        (
            0.36,
            0.8,
            "look at the AUC after the copies as well: its intervals lie above one half, too.",
        ),
        (0.36, 0.4, "as well: its intervals do not both lie above one half."),
        (0.47, 0.8, "so they differ from one half only by the luck of the draw."),
    ],
)
def test_a_draw_far_from_one_half_is_called_unusual(before, after_low, said):
    control = results()["pretrained_control"].assign(before_auc=before, ci_low=after_low)
    assert said in answer_findings.of_draw(control)
    assert answer_findings.rows_within(control)["after"].iloc[0] == f"0.90 [{after_low:.2f}, 1.00]"


def test_random_halves_have_the_aucs_of_mann_and_whitney():
    aucs = answer_findings._random_aucs(25, 20, np.random.default_rng(1))
    assert aucs.mean() == pytest.approx(0.5, abs=0.003)
    assert aucs.var() == pytest.approx(46 / (12 * 25 * 20), rel=0.03)


def test_what_later_training_leaves_is_a_share_of_what_copies_added():
    rows = [(DOSED, 1, 0.6), (DOSED, 4, 0.8), (LATER, 4, 0.65)]
    table = pd.DataFrame(rows, columns=["model", "copies", "auc"])
    table = table.assign(condition=VERBATIM, auc_before=0.5)
    said = tuned_findings.of_later(table)
    assert "is 0.65 instead of 0.80. So about 50 % of the rise from 0.50 is left." in said
    assert tuned_findings.of_later(table.iloc[:2]) == ""


@pytest.mark.parametrize(
    ("pct", "said"),
    [
        (
            (98.0, 100.0),
            "98 to 100 % of its answers are one and the same letter. So its letters hardly",
        ),
        (
            (40.0, 100.0),
            "40 to 100 % of its answers are one and the same letter. So its letters depend",
        ),
        (
            (30.0, 30.2),
            "On each of them, 30 % of its answers are one and the same letter. So its let",
        ),
    ],
)
def test_letters_are_read_only_where_they_depend_on_the_texts(pct, said):
    assert said in quiz_findings.of_letters(pd.DataFrame({"same_letter_pct": pct}), "tiny")


def test_the_doses_are_told_in_their_order_and_fresh_rows_beside_them():
    said = tuned_findings.of_doses(DOSES)
    assert said.startswith("If a model saw a row verbatim, the AUC of Min-k% Prob is 0.60 with 1 c")
    assert "0.98 with 16 copies. If it saw a paraphrase instead, 4 times, the AUC is 0.56." in said
    assert said.endswith("For fresh rows, the control, it is 0.50.")
    assert "after 1 copy" not in findings.conclusion({}, "tiny")


def test_parts_that_were_not_asked_are_named_and_nothing_is_said_of_them():
    found = {name: results()[name] for name in real_model.PARTS["copies"]}
    said = findings.conclusion(found, "tiny")
    assert "leaves out what was not asked: the released quizzes, completions of" in said
    assert "Nothing here shows" not in said and "taste" not in said


def test_titles_of_figures_say_what_is_drawn():
    found = results()
    said = quiz_findings.quiz_title(found["pretrained_readings"])
    assert said.startswith(
        "Shown to be ahead of the clean model on 1 of 2 benchmarks,\nbut on none"
    )
    better = results(quiz=SUPPORTED)["pretrained_readings"]
    assert quiz_findings.quiz_title(better).endswith(
        "on 1 of 2 benchmarks,\nand on 1 clearly above the control"
    )
    behind = results(is_ahead=False)["pretrained_readings"]
    assert (
        quiz_findings.quiz_title(behind)
        == "Not shown to be ahead of the clean model on any benchmark"
    )
    assert "No score is shown" in answer_findings.dates_title(found["pretrained_min_k"])
    better = results(dates=SUPPORTED)["pretrained_min_k"]
    assert answer_findings.dates_title(better).startswith("1 of 2 scores tell older from newer")


def test_the_stored_tables_are_in_the_conclusion():
    """It is rendered from what is stored, and no number in it is undefined."""
    stored = real_model.stored()
    said = findings.conclusion(stored, real_model.model_name())
    assert "nan" not in said
    _, _, missing = said.partition("leaves out what was not asked: ")
    for part, tables in real_model.PARTS.items():
        assert (real_model.IN_WORDS[part] in missing) == (tables[0] not in stored)
