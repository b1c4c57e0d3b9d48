"""Forms of a row under a real model: the lots, the exact test, and a part with a tiny model."""

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from made_quizzes import WORDS, tiny_base
from notebook_files import ROOT

from contamination.core import storage
from contamination.core.statistics import auc
from contamination.dice import pool
from contamination.study import forms, pretrained, store


@pytest.fixture(scope="module")
def quizzes():
    """More rows of each dataset than are drawn, of nine lengths."""
    rows = [
        {"dataset": name}
        | {
            column: f"text: {name} {word} {'very ' * (n % 9)}{n}\nlabel: {n % 2}"
            for column, word in WORDS.items()
        }
        for name in forms.DATASETS
        for n in range(60)
    ]
    return pd.DataFrame(rows)


def test_every_row_is_in_each_form_once_a_round_and_orders_are_alike():
    rounds = forms.dealt().reshape(-1, 4, 48)
    assert len({of.tobytes() for of in rounds}) == 8  # lots of their own: four datasets, two rounds
    for of in rounds:
        assert (np.sort(of, axis=0) == np.arange(4)[:, None]).all()
        assert all((np.bincount(one) == 12).all() for one in of)
        assert set(Counter(map(tuple, of.T)).values()) == {2}


def test_what_a_model_sees_is_its_form_and_nothing_of_held_out_rows(quizzes):
    found = forms.pool_of(quizzes, "RTE")
    own, dealt = np.array(found.rows.texts), forms.dealt()[1, 5]
    assert len(own) == forms.N_ROWS and {*own} <= {*quizzes["instance"]}
    verbatim, paraphrase, without = (one.read[0] for one in forms.seen_by(found, 605))
    assert [*verbatim] == [*own[dealt == 1]]
    assert [text.replace("there", "here") for text in paraphrase] == [*own[dealt == 2]]
    assert [*without] == [text.rpartition("\nlabel")[0] for text in own[dealt == 3]]


def test_of_one_dataset_the_shortest_rows_are_taken(quizzes):
    lengths = quizzes.loc[quizzes["dataset"].eq(forms.SHORTEST_OF), "instance"].str.len()
    found = [len(text) for text in forms.pool_of(quizzes, forms.SHORTEST_OF).rows.texts]
    assert sorted(found) == sorted(lengths)[: forms.N_ROWS]


def made(n_models, gains):
    """Scores with ties."""
    generator, found = np.random.default_rng(0), []
    for dealt in forms.dealt()[:, :n_models]:
        before = np.tile(generator.normal(size=forms.N_ROWS), (n_models, 1))
        after = 0.7 * before + generator.normal(size=before.shape) + np.array([0, *gains])[dealt]
        found.append([before, after.round(1)])
    return np.swapaxes(found, 0, 1)


@pytest.mark.parametrize(("form", "other", "n_models"), [(1, 0, 5), (1, 2, 5), (1, 2, 8)])
def test_the_endpoint_and_its_exact_test_by_another_way(form, other, n_models):
    """Whole assignments dealt again, and the endpoint computed anew for each of them."""
    scores, generator = made(n_models, (0.25, 0.1, 0.2)), np.random.default_rng(1)

    def of_form(values, dealt, asked):
        kept = np.isin(dealt, (asked, 0))
        return auc(values[kept], dealt[kept] == asked) if asked else 0.5

    def endpoint(lots):
        found = []
        for dataset, model in product(range(4), range(n_models)):
            dealt = lots[dataset, model]
            before, after = (
                of_form(values, dealt, form) - of_form(values, dealt, other)
                for values in scores[:, dataset, model]
            )
            found.append(after - before)
        return np.mean(found)

    def swapped():
        lots = forms.dealt().copy()
        for dealt in lots.reshape(-1, 4, 48):  # views
            rest = [(dealt == k).argmax(0) for k in range(4) if k not in (form, other)]
            for cell in {*zip(*rest, strict=True)}:
                rows = np.flatnonzero((rest[0] == cell[0]) & (rest[1] == cell[1]))
                dealt[:, rows] = dealt[:, generator.permutation(rows)]
        return lots

    observed, found = endpoint(forms.dealt()), forms.result(scores, form, other)
    assert found["change"] == pytest.approx(observed)
    redealt = np.array([endpoint(swapped()) for _ in range(200)])
    assert found["p"] == pytest.approx(np.mean(redealt >= observed - 1e-9), abs=0.08)


def test_a_form_that_rises_is_shown_and_what_rises_no_more_is_not():
    """From a stored table; of its models the last one, after a gap, is left out."""
    columns, scores = ["model", "benchmark", "base_seed", "row"], made(8, (1.0, 0.0, 1.0))
    index = pd.MultiIndex.from_product(
        [("base", "dosed"), forms.DATASETS, forms.MODELS, range(48)], names=columns
    )
    table = pd.DataFrame({"score": scores.ravel()}, index).reset_index()
    known = [control.name for control in forms.CONTROLS]
    stored = pd.concat([table.assign(detector=name) for name in (*forms.DETECTORS, *known)])
    assert (forms.scored(stored, "PPL") == scores).all()
    stored = stored[stored["base_seed"].ne(606)].sample(frac=1, random_state=0)
    found = forms.registered(stored)
    assert found["verdict"].eq("shown").tolist() == 2 * [True, False, True, True, False]
    assert found["p_adjusted"].min() == pytest.approx(10 * 1e-4)
    assert set(found["n_models"]) == {6} and set(found["n_rows"]) == {48}
    of_lots = forms.controls(stored)
    assert len(of_lots) == 20 and of_lots["p_adjusted"].gt(0.05).all()


@pytest.fixture
def small(quizzes, tmp_path, tmp_path_factory, monkeypatch):
    base = tiny_base(tmp_path_factory.mktemp("models") / "tiny", quizzes)
    monkeypatch.setenv(storage.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(forms, "resolve_path", lambda name: base)
    monkeypatch.setattr(forms, "released_quizzes", lambda: quizzes)
    return tmp_path


def test_a_part_is_written_again_with_the_same_scores_and_without_its_model(small, monkeypatch):
    calls, fine_tune = [], pretrained.fine_tune

    def noted(base, rows, settings):
        calls.append((rows, settings))
        return fine_tune(base, rows, settings)

    monkeypatch.setattr(pretrained, "fine_tune", noted)
    forms.write_part(small, "forms_605", {"protocol_sha256": "of the page"}, 605)
    tables, about = store.read_tables("forms_605", small)
    first = tables["scores"]
    assert (first.groupby(["detector", "model", "benchmark"]).size() == forms.N_ROWS).all()
    assert first["detector"].nunique() == len(forms.ASKED) and about["base_seed"] == 605
    assert about["protocol_sha256"] == "of the page" and about["copies"] == 4
    assert not [*(small / "cache/dice/models").glob("[!.]*")]
    ((rows, settings),) = calls
    counts = Counter(text for _, text in rows)
    assert set(counts.values()) == {4} and len(counts) == 3 * 12 * len(forms.DATASETS)
    assert (settings.seed, settings.lora, settings.learning_rate) == (605, True, 2e-4)
    (small / "cache").rename(small / "before")
    forms.write_part(small, "forms_605", {}, 605)
    pd.testing.assert_frame_equal(store.read_tables("forms_605", small)[0]["scores"], first)


def test_the_page_says_what_the_code_does():
    page = (ROOT / "docs/protocol_forms.md").read_text()
    for fact in (
        f"{len(forms.MODELS)} models, numbers {forms.MODELS[0]} to {forms.MODELS[-1]}",
        f"{forms.N_ROWS} rows of each of {', '.join(forms.DATASETS[:-1])} and Yelp",
        f"{forms.COPIES} copies",
        f"rank {pool.LORA_RANK}, scale {pool.LORA_ALPHA}",
        f"peak rate {pretrained.READING.learning_rate:.4f}",
        f"**Size that matters**: {forms.MATTERS.smallest_effect}",
    ):
        assert fact in page


def test_stored_parts_are_of_this_page_and_complete():
    if not store.has(forms.NAME):
        pytest.skip("no part of the study of forms is stored")
    stored, about = store.read_all(forms.NAME, "scores")
    page = storage.sha256_of_file(ROOT / "docs/protocol_forms.md")
    assert {of["protocol_sha256"] for of in about} == {page}
    sizes = stored.groupby(["base_seed", "detector", "model", "benchmark"]).size()
    assert (sizes == forms.N_ROWS).all()
    assert len(sizes) == len(about) * len(forms.ASKED) * 2 * len(forms.DATASETS)
