"""Notebook 12: a tiny model is asked everything, stored tables are whole, and rows to show."""

import pandas as pd
import pytest
import yaml
from notebook_files import ROOT, run_here, script
from tiny_models import gguf_of, tiny_llama
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
from verdict_words import check_table

from contamination.core import storage
from contamination.core.scores import LOWERCASE, MIN_K, MIN_K_PLUS_PLUS, PPL, ZLIB
from contamination.data import published
from contamination.lab import world
from contamination.models import loading
from contamination.replication import completions, decisions
from contamination.replication.instructions import GENERAL, GUIDED
from contamination.study import real_model
from contamination.study.real_model import shown_rows

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
    of_ledger = {"pretrained_forms", "pretrained_forms_controls"}  # of stored scores, in any run
    asked = {name for tables in real_model.PARTS.values() for name in tables}
    assert set(answered[0]) == asked | of_ledger


@pytest.mark.mirror
def test_stored_tables_have_the_columns_that_a_run_writes(answered):
    for name, table in real_model.stored().items():  # which may have some that nobody writes now
        written = list(answered[0][name])
        assert [column for column in table if column in written] == written, name


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
    assert "verdict" not in of_2
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
        check_table(table, name)


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


# Rows to show


def test_bars_of_a_perfect_model_that_begin_above_the_line_are_benchmarks_with_room():
    readings = real_model.stored()["pretrained_readings"]
    rows = shown_rows.quiz_rows(readings)
    needed = rows.loc[rows["is_unread"], "ci_high_pct"].max()
    n_without = int(rows["perfect_low"].le(needed).sum())
    claims = rows[~rows["is_unread"]]
    assert claims["difference_pct"].is_monotonic_decreasing and len(claims) == 10
    assert rows["is_unread"].is_monotonic_increasing
    assert rows.loc[rows["is_unread"], ["perfect_low", "perfect_high"]].isna().all(axis=None)
    assert rows["has_room"].sum() == 10 - n_without
    assert claims["lead"].iloc[0] == "25.0 [15.0, 35.0]" and claims["dataset"].iloc[0] == "RTE"


def test_matches_are_counted_under_each_instruction():
    decided = {"method": decisions.ALGORITHM_2, "instruction": [GUIDED, GUIDED, GENERAL]}
    decided = pd.DataFrame(decided).assign(contaminated=[False, False, True])
    decided = decided.assign(n_valid=10, n_exact=[0, 0, 3], n_near_exact=[1, 0, 0])
    rows = shown_rows.matches(decided).set_index("instruction")
    assert rows["called"].to_dict() == {GUIDED: "0 of 2", GENERAL: "1 of 1"}
    assert rows["n_valid"].tolist() == [20, 10]
