"""Forms of a row under a real model: the lots, the exact test, and a part with a tiny model."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from made_quizzes import tiny_base
from notebook_files import ROOT

from contamination.core import storage
from contamination.core.statistics import auc
from contamination.dice import pool
from contamination.study import forms, pretrained, store

N_MADE = 60


@pytest.fixture(scope="module")
def quizzes():
    """More rows of each dataset than are drawn, each longer than the one before."""
    rows = [
        {"dataset": name}
        | {
            column: f"text: {name} {word} {'very ' * (n % 9)}{n}\nlabel: {n % 2}"
            for column, word in zip(
                ("instance", "option_a", "option_b", "option_c"),
                ("here", "there", "near", "far"),
                strict=True,
            )
        }
        for name in forms.DATASETS
        for n in range(N_MADE)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("first", forms.MODELS[:: forms.N_IN_ROUND])
@pytest.mark.parametrize("dataset", forms.DATASETS)
def test_every_row_is_in_each_form_once_a_round_and_orders_are_alike(first, dataset):
    dealt = np.array([forms.forms_of(first + n, dataset) for n in range(4)])
    assert dealt.shape == (4, 48) and (np.sort(dealt, axis=0) == np.arange(4)[:, None]).all()
    assert all((np.bincount(one) == 12).all() for one in dealt)
    assert set(Counter(map(tuple, dealt.T)).values()) == {2}


def test_rounds_and_datasets_have_lots_of_their_own():
    lots = {forms.dealt(first, name).tobytes() for first in (600, 604) for name in forms.DATASETS}
    assert len(lots) == 8


def test_what_a_model_sees_is_its_form_and_nothing_of_held_out_rows(quizzes):
    found = forms.pool_of(quizzes, "RTE")
    assert len(found.rows) == forms.N_ROWS and found.rows.texts == tuple(
        text for text in quizzes["instance"] if text in found.rows.texts
    )
    dealt = forms.forms_of(605, "RTE")
    verbatim, paraphrase, without = forms.seen_by(found, 605)
    for one, number in ((verbatim, 1), (paraphrase, 2), (without, 3)):
        assert (one.is_read == (dealt == number)).all() and len(one.read[0]) == 12
    own = np.array(found.rows.texts)
    assert verbatim.read[0] == tuple(own[dealt == 1])
    assert [text.replace("there", "here") for text in paraphrase.read[0]] == [*own[dealt == 2]]
    assert [*without.read[0]] == [text.rpartition("\nlabel")[0] for text in own[dealt == 3]]
    assert not {*own[dealt == 0]} & {*verbatim.read[0], *paraphrase.read[0], *without.read[0]}


def test_of_one_dataset_the_shortest_rows_are_taken(quizzes):
    lengths = quizzes.loc[quizzes["dataset"].eq(forms.SHORTEST_OF), "instance"].str.len()
    found = [len(text) for text in forms.pool_of(quizzes, forms.SHORTEST_OF).rows.texts]
    assert sorted(found) == sorted(lengths)[: forms.N_ROWS]


def made(numbers, gains, seed=0):
    generator, found = np.random.default_rng(seed), []
    for name in forms.DATASETS:
        before = np.tile(generator.normal(size=forms.N_ROWS), (len(numbers), 1))
        after = 0.7 * before + generator.normal(size=before.shape)
        dealt = np.array([forms.forms_of(number, name) for number in numbers])
        after += np.array([0, *gains])[dealt]
        found.append(forms.Scored(name, tuple(numbers), dealt, before, after.round(1)))  # with ties
    return found


@pytest.mark.parametrize(("form", "other"), [(1, 0), (1, 2)])
@pytest.mark.parametrize("numbers", [range(600, 608), range(600, 605)])
def test_the_endpoint_and_its_exact_test_by_another_way(form, other, numbers):
    """Whole assignments dealt again, and the endpoint computed anew for each of them."""
    datasets = made(numbers, (0.25, 0.1, 0.2))
    p, real = forms.swap_p(datasets, form, other), forms.dealt
    generator, n = np.random.default_rng(1), 400

    def of_form(scores, dealt, asked):
        kept = np.isin(dealt, (asked, 0))
        return auc(scores[kept], dealt[kept] == asked) if asked else 0.5

    def endpoint(lots):
        found = 0.0
        for one in datasets:
            for number, *scores in zip(numbers, one.before, one.after, strict=True):
                place = (number - 600) % 4
                dealt = lots[number - place, one.dataset][place]
                before, after = (of_form(v, dealt, form) - of_form(v, dealt, other) for v in scores)
                found += after - before
        return found

    def swapped(first, name):
        dealt = real(first, name).copy()
        rest = [(dealt == k).argmax(0) for k in range(4) if k not in (form, other)]
        for cell in {*zip(*rest, strict=True)}:
            rows = np.flatnonzero((rest[0] == cell[0]) & (rest[1] == cell[1]))
            dealt[:, rows] = dealt[:, generator.permutation(rows)]
        return dealt

    keys = [(first, name) for first in (600, 604) for name in forms.DATASETS]
    observed = endpoint({key: real(*key) for key in keys})
    found = forms.result(datasets, form, other)["change"] * 4 * len(numbers)
    assert found == pytest.approx(observed)
    redealt = [endpoint({key: swapped(*key) for key in keys}) for _ in range(n)]
    assert p == pytest.approx(np.mean(np.array(redealt) >= observed - 1e-9), abs=0.06)


def test_a_form_that_rises_is_shown_and_what_rises_no_more_is_not():
    datasets = made(range(600, 608), (1.0, 0.0, 1.0))
    found = {test: forms.result(datasets, *test) for test in forms.TESTS}
    assert all(found[test]["p"] == 1e-4 for test in ((1, 0), (3, 0), (1, 2)))
    assert all(found[test]["p"] > 0.05 for test in ((2, 0), (1, 3)))
    assert found[1, 0]["n_models"] == 8 and found[1, 0]["n_rows"] == 48


@pytest.fixture
def small(quizzes, tmp_path, tmp_path_factory, monkeypatch):
    base = tiny_base(tmp_path_factory.mktemp("models") / "tiny", quizzes)
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(forms, "resolve_path", lambda name: base)
    monkeypatch.setattr(forms, "released_quizzes", lambda: quizzes)
    return tmp_path


def test_a_part_is_written_again_with_the_same_scores_and_without_its_model(small):
    forms.write_part(small, "forms_605", {"protocol_sha256": "of the page"}, 605)
    tables, about = store.read_tables("forms_605", small)
    first = tables["scores"]
    assert (first.groupby(["detector", "model", "benchmark"]).size() == forms.N_ROWS).all()
    assert first["detector"].nunique() == len(forms.ASKED) and about["base_seed"] == 605
    assert about["protocol_sha256"] == "of the page" and about["copies"] == 4
    assert "here" not in "".join(path.read_text("latin-1") for path in small.glob("forms_605*"))
    (small / "cache").rename(small / "before")
    assert not [*(small / "before/dice/models").glob("[!.]*")]
    forms.write_part(small, "forms_605", {}, 605)
    pd.testing.assert_frame_equal(store.read_tables("forms_605", small)[0]["scores"], first)
    with pytest.raises(ValueError, match="no unit 608: they are 600 to 607"):
        forms.write_part(small, "forms_608", {}, 608)


def test_every_text_is_seen_four_times(small, monkeypatch):
    calls = []

    def fine_tune(base, rows, settings):
        calls.append((rows, settings))
        raise InterruptedError

    monkeypatch.setattr(pretrained, "fine_tune", fine_tune)
    with pytest.raises(InterruptedError):
        forms.write_part(small, "forms_600", {}, 600)
    ((rows, settings),) = calls
    counts = Counter(text for _, text in rows)
    assert set(counts.values()) == {4} and len(counts) == 3 * 12 * len(forms.DATASETS)
    assert (settings.seed, settings.lora, settings.learning_rate) == (600, True, 2e-4)


def test_the_page_says_what_the_code_does():
    page = (ROOT / "docs/protocol_forms.md").read_text()
    reading = pretrained.READING
    for fact in (
        f"{len(forms.MODELS)} models, numbers {forms.MODELS[0]} to {forms.MODELS[-1]}",
        f"{forms.N_ROWS} rows of each of {', '.join(forms.DATASETS[:-1])} and Yelp",
        f"{forms.COPIES} copies",
        f"rank {pool.LORA_RANK}, scale {pool.LORA_ALPHA}",
        f"peak rate {reading.learning_rate:.4f}",
        f"**Size that matters**: {forms.MATTERS.smallest_effect}",
    ):
        assert fact in page


def test_stored_parts_are_complete_and_their_endpoint_follows_from_them():
    if not store.has(forms.NAME):
        pytest.skip("no part of the study of forms is stored")
    stored, about = store.read_all(forms.NAME, "scores")
    page = storage.sha256_of_file(ROOT / "docs/protocol_forms.md")
    assert {of["protocol_sha256"] for of in about} == {page}
    n_models = len(about)
    sizes = stored.groupby(["detector", "model", "benchmark"]).size()
    assert (sizes == n_models * forms.N_ROWS).all()
    own = stored[stored["detector"].eq("Min-k% Prob")]
    found = []
    for (number, name, _), part in own.groupby(["base_seed", "benchmark", "model"]):
        dealt = forms.forms_of(number, name)[part["row"]]
        asked = np.isin(dealt, (0, 1))
        found.append(auc(part["score"].to_numpy()[asked], dealt[asked] == 1))
    before, after = np.reshape(found, (-1, 2)).mean(axis=0)
    row = forms.registered(stored).iloc[0]
    assert (row["before"], row["after"]) == pytest.approx((before, after))
