"""The five new pairs of the real model."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from made_quizzes import NAMES, made_quizzes, tiny_base
from notebook_files import ROOT, script

from contamination.core import storage
from contamination.study import conditions as c
from contamination.study import pretrained, pretrained_pairs, released_rows, store
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
    assert asked == {(d.name, one) for d in pretrained.OF_TOKENS for one in (*PAIRED, c.FRESH)}
    assert pd.read_parquet(small / "pairs_8_scores.parquet")["score"].dtype == np.float32
    assert found["protocol_sha256"] == "of the page" and found["datasets"] == datasets_of(8)
    seen = found["tokens_seen"]
    assert set(seen) == {*PAIRED, c.SWAP} and min(seen.values()) > 0
    assert "has row" not in "".join(path.read_text("latin-1") for path in small.glob("pairs_8*"))
    # The trained model is gone, the score cache is left out: all is made anew, and is the same.
    assert not [*(small / "cache/dice/models").glob("[!.]*")]  # but for its lock
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


def test_a_part_that_the_study_does_not_have_is_refused_before_anything_is_trained(
    tmp_path, monkeypatch, capsys
):
    command = ["ledger.py", "--study", "pairs", "--folder", str(tmp_path), "--units", "6", "99"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match="2"):
        script("ledger").main()
    assert "pairs has no part 99: its parts are 6, 7" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
