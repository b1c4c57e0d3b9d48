"""The room of the real model: its deals on made rows, its units with a tiny model, its words."""

import importlib.util
import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from made_quizzes import LABELLED, NAMES, made_quizzes, tiny_base
from notebook_files import ROOT

from contamination.core import storage
from contamination.core.statistics import auc
from contamination.dice import pool
from contamination.models import local
from contamination.models.local import load_causal_lm
from contamination.study import conditions as c
from contamination.study import pretrained, protocol, released_rows, store
from contamination.study.released_rows import OPTION_MARGIN, UNITS, deal, reading_order

N = 6
PAIRED = (c.VERBATIM, c.PARAPHRASE, c.SEVERAL, c.WITHOUT_LABEL)


@pytest.fixture(scope="module")
def quizzes():
    return made_quizzes(N)


# Deals


def test_conditions_rotate_and_each_stands_twice_on_three_datasets():
    names = pd.DataFrame([released_rows.datasets_of(number) for number in UNITS])
    assert all(set(unit) == set(NAMES) for unit in names.to_numpy())
    for condition in PAIRED:
        assert sorted(names[condition].value_counts()) == [2, 2, 2]
    assert set(names[c.WITHOUT_LABEL]) == set(LABELLED)
    for condition in released_rows.PLACES:
        assert sorted(names[condition].value_counts()) == [2, 2, 2]
    # Two conditions change places between twins, so that each meets the other's dataset.
    for number, other in ((0, c.PARAPHRASE), (2, c.SEVERAL), (4, c.WITHOUT_LABEL)):
        first, second = names.loc[number], names.loc[number + 1]
        assert (first[c.VERBATIM], first[other]) == (second[other], second[c.VERBATIM])


@pytest.mark.parametrize("number", [0, 2, 4])
def test_twins_are_dealt_complementary_halves(quizzes, number):
    def halves(unit):
        datasets = deal(quizzes, unit).values()
        return {one.rows.texts: one.is_read for one in datasets}

    first, second = halves(number), halves(number + 1)
    for texts, is_read in first.items():
        assert (second[texts] == ~is_read).all() and is_read.sum() == N // 2
    swap, other = (deal(quizzes, unit)[c.SWAP] for unit in (number, number + 1))
    assert not set(swap.read[0]) & set(other.read[0])


def test_what_is_read_is_what_the_condition_says(quizzes):
    datasets = deal(quizzes, 0)
    for condition, columns in (
        (c.VERBATIM, ["instance"]),
        (c.PARAPHRASE, ["option_a"]),
        (c.SEVERAL, ["option_a", "option_b", "option_c"]),
    ):
        one = datasets[condition]
        read = one.rows.quizzes[one.is_read]
        assert one.read == tuple(tuple(read[column]) for column in columns)
    without = datasets[c.WITHOUT_LABEL]
    assert without.read == (tuple(np.array(without.rows.questions)[without.is_read]),)
    assert not any("label" in text for text in without.read[0])
    swap = datasets[c.SWAP]
    both = zip(swap.rows.texts, swap.rows.quizzes["option_a"], strict=True)
    expected = [pair[0 if dealt else 1] for pair, dealt in zip(both, swap.is_read, strict=True)]
    assert list(swap.read[0]) == expected
    assert datasets[c.FRESH].read == ()
    assert all("Dataset:" not in text for one in datasets.values() for v in one.read for text in v)


def test_a_row_without_its_label_field_or_an_unknown_unit_is_refused(quizzes):
    with pytest.raises(ValueError, match='no field "label"'):
        deal(quizzes.assign(instance="text: no last field"), 0)
    with pytest.raises(ValueError, match="no unit 6: they are 0 to 5"):
        deal(quizzes, 6)


def test_the_swap_arm_is_at_chance_whatever_the_models_taste():
    """A fixed taste, all deals of four rows: AUC 1/2 on average, and p as its definition has it."""
    taste = np.array([9.0, 4.0, 3.0, -5.0])
    deals = [np.isin(range(4), pair) for pair in combinations(range(4), 2)]
    assert np.mean([auc(taste, dealt) for dealt in deals]) == 0.5
    # Rank sums of the pairs are 7, 6, 5, 5, 4, 3: p is the share that is at least as high.
    p = [protocol.permutation_p(taste, dealt) for dealt in deals]
    assert p == pytest.approx([1 / 6, 2 / 6, 4 / 6, 4 / 6, 5 / 6, 1], abs=0.02)


def test_every_row_is_read_as_often_as_said_and_versions_in_turn(quizzes):
    datasets = deal(quizzes, 0)
    every = [one for name, one in datasets.items() if name != c.CLEAN]
    order = reading_order(every, 4, 4, seed=1)
    counts = pd.Series(order).value_counts()
    assert set(counts[list(datasets[c.VERBATIM].read[0])]) == {4}
    first, second, third = datasets[c.SEVERAL].read
    assert [counts[list(v)].unique().tolist() for v in (first, second, third)] == [[2], [1], [1]]
    assert len(order) == 4 * (4 * N // 2 + N)
    assert order != reading_order(every, 4, 4, seed=2)


@pytest.fixture(scope="module")
def large():
    """As many rows as were released, so that the assignments are those of the study."""
    return made_quizzes(dict.fromkeys(NAMES, 100) | {"WNLI": 71})


def test_what_the_units_see_is_what_it_was(large):
    seen = [
        {name: [one.rows.texts, one.is_read.tolist(), one.read] for name, one in datasets.items()}
        for datasets in (deal(large, number) for number in UNITS)
    ]
    assert storage.hash_of(seen)[:16] == "45a546d885837892"  # when the ledger was made


def test_the_units_have_the_assignments_of_the_ledger(large):
    for name in store.names(pretrained.NAME):
        tables, about = store.read_tables(name)
        (number,), scores = about["units"], tables["scores"]
        assert released_rows.datasets_of(number) == about["datasets"]
        datasets = deal(large, number)
        base = scores[scores["model"].eq(c.BASE)]
        for condition, of_condition in base.groupby("condition"):
            is_read = of_condition.groupby("row")["is_read"].first().to_numpy()
            assert (is_read == datasets[condition].is_read).all()


# Units


@pytest.fixture(scope="module")
def base(quizzes, tmp_path_factory):
    return tiny_base(tmp_path_factory.mktemp("models") / "tiny", quizzes)


@pytest.fixture
def small(base, quizzes, tmp_path, monkeypatch):
    """The room with a tiny model and made rows, its caches empty."""
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(pretrained, "resolve_path", lambda name: base)
    monkeypatch.setattr(pretrained, "released_quizzes", lambda: quizzes)
    rows = [(f"say {n}", f"number {n}") for n in range(199)]
    monkeypatch.setattr(pretrained, "vanilla_rows", lambda: rows)
    monkeypatch.setattr(pretrained, "COPIES", (1, 2))
    monkeypatch.setattr(pretrained, "ALL_WEIGHTS_COPIES", (1, 2))
    return tmp_path


def test_a_unit_is_written_and_again_with_the_same_scores(small):
    pretrained.write_unit(small, "pretrained_3", {"protocol_sha256": "of the page"}, 3)
    first, about = store.read_tables("pretrained_3", small)
    sets = first["sets"]
    kinds = sets.groupby("model")["condition"].agg(set)
    everything = {*PAIRED, c.SWAP, c.FRESH}
    assert kinds[c.DOSED] == kinds[c.BASE] == everything
    at_most = sets.query("model == @c.DOSED and copies == 2")["condition"]
    assert set(at_most) == {c.VERBATIM, c.FRESH}
    assert kinds[c.CLEAN] == {c.VERBATIM, c.SWAP, c.FRESH}
    assert kinds[c.ALONE] == kinds[c.LATER] == kinds[c.FULL] == {c.VERBATIM}
    of_swap = sets.query("condition == @c.SWAP")["detector"]
    assert set(of_swap) == {OPTION_MARGIN.name, c.TEXT_ALONE}
    assert about["protocol_sha256"] == "of the page" and about["units"] == [3]
    text = "".join(path.read_text("latin-1") for path in small.glob("pretrained_3*"))
    assert "has row" not in text  # of the rows their numbers alone
    # The trained models are gone, the score cache is left out: all is made anew.
    assert not [*(small / "cache/dice/models").glob("[!.]*")]  # but for its lock
    (small / "cache").rename(small / "before")
    pretrained.write_unit(small, "pretrained_3", {}, 3)
    again, _ = store.read_tables("pretrained_3", small)
    pd.testing.assert_frame_equal(again["scores"], first["scores"])


def test_the_detectors_of_tokens_share_one_pass(small, base, quizzes, monkeypatch):
    calls = []
    real = local._score_batch
    monkeypatch.setattr(local, "_score_batch", lambda *a: calls.append(1) or real(*a))
    rows, lm = deal(quizzes, 0)[c.VERBATIM].rows, load_causal_lm(base)
    for detector in pretrained.OF_TOKENS:
        detector.score(lm, rows)
    assert len(calls) == 1


def test_all_weights_are_trained_until_the_loss_is_reached(small, base, quizzes):
    dataset, lm = deal(quizzes, 0)[c.VERBATIM], load_causal_lm(base)
    folder, facts = pretrained.at_equal_loss(base, dataset, lm, 0)
    found = facts["all_weights"]  # the base's own loss is reached at once
    assert found["copies"] == 1 and found["reached"] >= found["target"] and folder.is_dir()


def test_clean_chat_rows_end_with_the_tokens_that_were_asked_for(small, base):
    lm = load_causal_lm(base)
    rows = pretrained.chat_rows(lm, 20, 0)
    lengths = local.n_tokens(lm.tokenizer, [prompt + response for prompt, response in rows])
    assert lengths.sum() >= 20 > lengths[:-1].sum()
    assert rows[0][0] == f"say {rows[0][1].split()[1]}\n"
    with pytest.raises(ValueError, match="tokens too few"):
        pretrained.chat_rows(lm, 10**6, 0)


def run_script(folder, *arguments):
    location = ROOT / "scripts/ledger.py"
    spec = importlib.util.spec_from_file_location("ledger_script", location)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    command = ["ledger.py", "--study", "pretrained", "--folder", str(folder), *arguments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", command)
        script.main()


def test_a_run_goes_on_with_the_parts_that_are_missing(small, monkeypatch, capsys):
    storage.write_json(small / "pretrained_0.json", {})
    written = []
    monkeypatch.setattr(pretrained, "write_unit", lambda *job: written.append(job))
    run_script(small, "--units", "0", "4")
    page = storage.sha256_of_file(ROOT / "docs/protocol_pretrained.md")
    assert written == [(small, "pretrained_4", {"protocol_sha256": page}, 4)]
    assert capsys.readouterr().out.startswith("room pretrained: 1 of 6 units to do, each about")
    run_script(small, "--units", "0")
    assert len(written) == 1 and capsys.readouterr().out == ""


def test_without_the_model_or_for_one_detector_a_line_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    with pytest.raises(SystemExit, match='is not here yet: run "python -m contamination'):
        run_script(tmp_path)
    with pytest.raises(SystemExit):
        run_script(tmp_path, "--detector", "mine.py")
    assert "--detector adds to the study pretraining" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name", "x"], "unrecognized arguments: --name x"),
        (["--units", "0", "6"], "pretrained has no part 6: its parts are 0, 1, 2, 3, 4, 5"),
        (["--folder", "nowhere"], "there is no folder"),
        (["--engine", "dask"], "invalid choice: 'dask'"),
    ],
)
def test_no_new_ledger_is_begun_by_a_slip(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.setattr(pretrained, "write_unit", None)
    with pytest.raises(SystemExit):
        run_script(tmp_path, *words)
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_ray_one_line_says_how_to_install_it(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit, match=r"^Ray is not installed: pip install -r requirements/e"):
        run_script(small, "--engine", "ray")


# The page


def test_the_page_says_what_the_code_does():
    page = (ROOT / "docs/protocol_pretrained.md").read_text()
    order = (*PAIRED, c.SWAP, c.FRESH, c.CLEAN)
    for number in UNITS[::2]:
        names = released_rows.datasets_of(number)
        cells = [str(number // 2), *(names[condition] for condition in order)]
        assert f"| {' | '.join(cells)} |" in page
    one, all_read, most = pretrained.COPIES
    reading, weights = pretrained.READING, pretrained.ALL_WEIGHTS
    assert all_read == pretrained.FEW_COPIES and pretrained.CHAT_TIMES == 4
    assert (reading.batch_size, pool.LORA_RANK, pool.LORA_ALPHA) == (4, 16, 32)
    tried = ", ".join(map(str, pretrained.ALL_WEIGHTS_COPIES[:-1]))
    for fact in (
        f"{one} or {all_read} copies; at {most} copies the verbatim rows alone",
        f"verbatim rows and no other, {all_read} copies",
        "four times its dose's tokens",
        f"verbatim rows, {tried} or {pretrained.ALL_WEIGHTS_COPIES[-1]} copies",
        f"peak rate {reading.learning_rate:.4f}",
        f"the same at {weights.learning_rate:.5f}",
        f"Gates are judged at {all_read} copies",
        f"{pretrained.TOKENS_READ:,} tokens to read and {pretrained.TOKENS_SCORED:,} to score",
        f"{pretrained.MINUTES} minutes on two cores",
    ):
        assert fact in page


def test_every_part_was_made_under_the_page_that_is_here():
    page = storage.sha256_of_file(ROOT / "docs/protocol_pretrained.md")
    _, made_by = store.read_all(pretrained.NAME, "sets")
    assert all(about["protocol_sha256"] == page for about in made_by)
