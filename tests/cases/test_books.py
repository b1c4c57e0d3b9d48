"""Books: snippets, threshold, AUC over books, rates, served scores, own folders, headlines."""

import numpy as np
import pandas as pd
import pytest
from scripted_server import MODEL, Reply, ScriptedServer

from contamination.cases import books, books_own, library
from contamination.cases.books_own import OwnBooks
from contamination.core import blind, scores
from contamination.core.scores import LOWERCASE, MIN_K, NEIGHBOR, PPL, ZLIB
from contamination.core.statistics import auc
from contamination.min_k.detect import detect_served
from contamination.models.chat import ChatError, Endpoint

SIDES = ("validation", "validation", "test", "test")
READ = (True, False, True, False)


def shelf(n_words=40, sides=SIDES, read=READ):
    """Four books whose words are numbers; book i counts from 1000 i."""
    texts = [" ".join(f"w{1000 * i + j}" for j in range(n_words)) for i in range(len(sides))]
    columns = {"book": [f"b{i}" for i in range(len(sides))], "package": "p"}
    return pd.DataFrame(columns | {"part": sides, "in_training": read, "text": texts})


def detected(of_books, method=MIN_K, k_percent=20.0):
    """What ``detect`` returns for snippets with these scores, shape (n_books, n_snippets)."""
    flat = np.asarray(of_books, dtype=float).ravel()
    columns = {"passage": range(flat.size), "method": method, "k_percent": k_percent}
    return pd.DataFrame(columns | {"score": flat})


@pytest.fixture
def two_each():
    """Two snippets of each of eight books, four in each part."""
    return library.random_snippets(shelf(40, SIDES * 2, READ * 2), 2, 5, 0)


# A library of documentation


def passages(n_families, n_words=30):
    rows = [
        (
            "member" if page else "background",
            "numpy",
            f"f{family}",
            n_words,
            f"w{family} " * n_words,
        )
        for family in range(n_families)
        for page in (0, 1, 1)
    ]
    return pd.DataFrame(rows, columns=["role", "package", "family", "n_words", "text"])


def test_half_of_each_part_is_in_training_and_background_stays_out():
    found = library.documentation_books(passages(20), n_books=8, n_words=50, seed=0)
    assert found.groupby(["part", "in_training"]).size().tolist() == [2, 2, 2, 2]
    assert {len(text.split()) for text in found["text"]} == {50}
    assert found["book"].is_monotonic_increasing
    again = library.documentation_books(passages(20), n_books=8, n_words=50, seed=1)
    assert again["book"].tolist() != found["book"].tolist()


def test_a_short_module_is_no_book():
    with pytest.raises(ValueError, match="only 3 modules have 50 words, 4 books"):
        library.documentation_books(passages(3), n_books=4, n_words=50, seed=0)


def test_pages_hold_every_word_once():
    text = " ".join(map(str, range(7)))
    assert library.pages(text, 3) == ["0 1 2", "3 4 5", "6"]


# Snippets


def test_snippets_are_runs_of_the_book_and_do_not_depend_on_other_books():
    both = library.random_snippets(shelf(), 6, 5, seed=0)
    assert both.groupby("book", sort=False).size().tolist() == [6] * 4
    of_last = both[both["book"] == "b3"]
    for text in of_last["text"]:
        numbers = [int(word[1:]) for word in text.split()]
        assert numbers == list(range(numbers[0], numbers[0] + 5)) and 3000 <= numbers[0] <= 3035
    assert len(set(of_last["text"])) > 1
    alone = library.random_snippets(shelf().tail(1), 6, 5, seed=0)
    assert alone["text"].tolist() == of_last["text"].tolist()


def test_a_book_as_long_as_the_snippet_gives_itself():
    found = library.random_snippets(shelf(5), 2, 5, seed=0)
    assert found["text"].tolist() == [text for text in shelf(5)["text"] for _ in range(2)]


def test_too_short_books_and_equal_names_are_refused():
    with pytest.raises(ValueError, match='book "b0" has 4 words, a snippet 5'):
        library.random_snippets(shelf(4), 2, 5, seed=0)
    with pytest.raises(ValueError, match="same name"):
        library.random_snippets(shelf().assign(book="b"), 2, 5, seed=0)


# Threshold and AUC


@pytest.mark.parametrize(
    ("values", "is_member", "expected"),
    [
        ([1, 2, 3, 4], [0, 1, 0, 1], 1.5),  # three of four right at 1.5 and at 3.5: the lower
        ([1, 1, 1], [1, 1, 0], 1.0),  # all members
        ([1, 2], [1, 0], 1.0),  # the wrong way round: as many right at either end
        ([2, 2, 2], [0, 0, 1], np.inf),  # nobody
    ],
)
def test_threshold_tells_most_right(values, is_member, expected):
    found = books.best_threshold(np.array(values, float), np.array(is_member, bool))
    assert found == expected


def test_wins_of_pairs_of_books_average_to_the_auc():
    values = np.array([[3.0, 1.0], [2.0, 2.0], [0.0, 1.0]])
    in_training = np.array([True, False, False])
    wins = books.book_wins(values, in_training)
    # 3 beats both 2s, 1 none; 3 beats 0 and 1, 1 beats 0 and ties with 1.
    assert wins.tolist() == [[0.5, 0.875]]

    assert wins.mean() == auc(values.ravel(), np.repeat(in_training, 2))


def test_whole_books_are_resampled():
    """With one book of each kind there is nothing to resample, however many snippets."""
    assert set(books.resampled_books(np.array([[0.7]]), 50, 0)) == {0.7}
    drawn = books.resampled_books(np.array([[1.0, 0.0]]), 400, 0)
    assert set(drawn) == {0.0, 0.5, 1.0} and abs(drawn.mean() - 0.5) < 0.05


def test_rows_of_a_perfect_and_of_a_useless_score(two_each):
    is_read = two_each["in_training"].to_numpy()
    words = books.blind_rows(two_each, n_resamples=20)
    perfect = detected(is_read).assign(score=is_read.astype(float))
    rows = books.auc_rows(perfect, two_each, words, model="m", n_resamples=20)
    assert list(rows.columns) == books.AUC_COLUMNS
    assert rows["part"].tolist() == ["validation", "test"]
    assert (
        rows[["auc", "accuracy", "threshold", "ci_low"]].to_numpy().tolist() == [[1, 1, 0.5, 1]] * 2
    )
    assert rows[["n_members", "n_non_members", "n_snippets"]].to_numpy().tolist() == [[2, 2, 2]] * 2
    assert rows["paper_auc"].fillna("").tolist() == ["0.88", ""]
    useless = books.auc_rows(perfect.assign(score=0.0), two_each, words, model="m", n_resamples=20)
    assert useless["auc"].tolist() == [0.5, 0.5] and useless["accuracy"].tolist() == [0.5, 0.5]


def test_a_model_that_read_none_is_a_control_and_has_no_p(two_each):
    is_read = two_each["in_training"].to_numpy(float)
    words = books.blind_rows(two_each, n_resamples=20)
    how = {"model": "m", "n_resamples": 20, "is_control": True}
    holds = [
        books.auc_rows(detected(scores), two_each, words, **how)
        for scores in (0 * is_read, is_read)
    ]
    assert [rows["holds"].tolist() for rows in holds] == [[True] * 2, [False] * 2]
    assert pd.concat([*holds, words])["p"].isna().all()


def test_the_threshold_of_the_validation_books_judges_the_test_books():
    snippets = library.random_snippets(shelf(), 2, 5, 0)
    of_books = [[5, 5], [1, 1], [2, 2], [6, 2]]
    words = pd.DataFrame(
        {"method": [blind.BAG_OF_WORDS] * 2, "part": ["validation", "test"], "auc": 0.5}
    )
    rows = books.auc_rows(detected(of_books), snippets, words, model="m", n_resamples=20)
    assert rows["threshold"].tolist() == [3.0, 3.0]
    assert rows["accuracy"].tolist() == [1.0, 0.25]
    rates = books.rate_rows(detected(of_books), snippets, rows, model="m")
    assert rates["book"].tolist() == ["b3", "b2"]
    assert rates["contamination_rate_pct"].tolist() == [50.0, 0.0]
    assert rates["n_snippets"].tolist() == [2, 2]
    # Wilson for 1 of 2 and 0 of 2: z^2 / (n + z^2) = 0.6576 is where the second ends.
    assert rates["ci_low_pct"].tolist() == pytest.approx([9.45, 0], abs=0.01)
    assert rates["ci_high_pct"].tolist() == pytest.approx([90.55, 65.76], abs=0.01)
    known = books.rate_rows(detected(of_books), snippets, rows, model="m", part="validation")
    assert known["contamination_rate_pct"].tolist() == [100.0, 0.0]


def test_rates_without_known_truth_and_no_auc_of_them(two_each):
    unknown = two_each.assign(
        in_training=two_each["in_training"]
        .astype(object)
        .where(two_each["part"] == "validation", None)
    )
    words = books.blind_rows(unknown, n_resamples=5)
    assert set(words["part"]) == {"validation"}
    values = detected(np.arange(16.0))
    rows = books.auc_rows(values, unknown, words, model="m", n_resamples=5)
    assert rows["part"].tolist() == ["validation"]
    rates = books.rate_rows(values, unknown, rows, model="m")
    assert len(rates) == 4 and rates["in_training"].isna().all()


def test_blind_baseline_leaves_out_whole_books():
    """Every book has words of its own and nothing else: across books there is nothing to learn."""
    snippets = library.random_snippets(
        shelf(30, ("validation",) * 16, (True, False) * 8), 10, 20, 0
    )
    rows = books.blind_rows(snippets, n_resamples=50).set_index("method")
    assert rows.loc[blind.BAG_OF_WORDS, "auc"] == 0.5
    # The classifier that may see snippets of the same book recognises it.
    folds = blind.cross_validated_scores(
        snippets["text"], snippets["in_training"].to_numpy(bool), blind.BAG_OF_WORDS, 8
    )

    known = snippets["in_training"].to_numpy(bool)
    assert np.mean([auc(values, known[items]) for items, values in folds]) > 0.9


def test_comparisons_are_paired_and_have_the_sign_of_min_k(two_each):
    is_read = two_each["in_training"].to_numpy(float)
    both = pd.concat([detected(is_read), detected(-is_read, PPL, None)])
    table = books.comparisons(both, two_each, clean=detected(is_read), n_resamples=20)
    values = table[["difference", "ci_low", "ci_high"]].to_numpy().tolist()
    assert values == [[1, 1, 1]] * 2 + [[0, 0, 0]] * 2
    # Two books of a kind can be dealt in six ways: p is at least 1/3, whatever the difference.
    assert table["p"].ge(1 / 3).all()
    assert table["part"].tolist() == ["validation", "test"] * 2


# One's own books


FOLDERS = ("validation_members_folder", "validation_non_members_folder", "test_folder")


def own_books(*folders):
    who = {"names": ["m"], "base_url": "http://127.0.0.1/v1"} if any(folders) else {}
    return books_own.own_books(told(who, *folders))


def folders(tmp_path, **texts):
    for name, found in texts.items():
        (tmp_path / name).mkdir()
        for number, text in enumerate(found):
            (tmp_path / name / f"book {number}.txt").write_bytes(text)
    return [str(tmp_path / name) for name in texts]


def test_three_folders_of_books(tmp_path):
    read, unread = ([f"{kind} {n}".encode() for n in range(4)] for kind in ("yes", "no"))
    names = folders(tmp_path, read=[b"\xef\xbb\xbfone two", *read[1:]], unread=unread, asked=[b"?"])
    found = own_books(*names)
    assert found["text"].tolist() == [
        *("one two", "yes 1", "yes 2", "yes 3"),
        *("no 0", "no 1", "no 2", "no 3"),
        "?",
    ]
    assert found["part"].tolist() == ["validation"] * 8 + ["test"]
    assert found["in_training"].tolist() == [True] * 4 + [False] * 4 + [None]
    assert own_books("", "", "") is None


def test_bad_folders_are_named(tmp_path):
    read, unread, asked = folders(tmp_path, read=[b"one"], unread=[], asked=[b"\xff\xfe"])
    with pytest.raises(ValueError, match="name one model and three folders"):
        own_books(read, "", asked)
    with pytest.raises(FileNotFoundError, match=r"has no \.txt file"):
        own_books(read, unread, asked)
    with pytest.raises(ValueError, match=r"book 0\.txt: not UTF-8"):
        own_books(read, read, asked)


def test_few_and_repeated_books_are_refused(tmp_path):
    few, four, again = folders(
        tmp_path, few=[b"a"], four=[b"b", b"c", b"d", b"e"], again=[b"f", b"c", b"g", b"h"]
    )
    with pytest.raises(
        ValueError, match='few" has 1 books: add some, because validation needs four'
    ):
        own_books(four, few, again)
    with pytest.raises(ValueError, match='"book 1" and "book 1" have the same text'):
        own_books(four, again, few)


def test_four_books_of_each_kind_give_a_blind_interval_of_some_width():
    sides, read = ("validation",) * 8, (True, False) * 4
    table = shelf(30, sides, read)
    # Three of the four read books share a word, the fourth does not.
    marked = table["text"].where(~(table["in_training"] & (table.index < 6)), "read " * 30)
    snippets = library.random_snippets(table.assign(text=marked), 2, 20, 0)
    rows = books.blind_rows(snippets, n_resamples=200)
    assert (rows["ci_low"] < rows["ci_high"]).all()


def told(model, *folders, **more):
    names = dict(zip(FOLDERS, folders, strict=False)) | more
    return OwnBooks.read(names | {"model": {"key_variable": "", **model} if model else {}})


def test_books_need_one_model_that_is_there(tmp_path):
    read, unread, asked = folders(
        tmp_path, read=[b"a", b"b", b"c", b"d"], unread=[b"e", b"f", b"g", b"h"], asked=[b"i"]
    )
    served = {"base_url": "http://127.0.0.1/v1"}
    for wrong in (told({"names": ["m"]}), told({"names": ["m", "n"]}, read, unread, asked)):
        with pytest.raises(ValueError, match="name one model and three folders"):
            books_own.own_books(wrong)
    with pytest.raises(FileNotFoundError, match='no such folder"'):
        books_own.own_books(told({"names": ["./no such folder"]}, read, unread, asked))
    masked = {"neighbor_model": "./no such masked model"}
    with pytest.raises(FileNotFoundError, match='no such masked model"'):
        books_own.own_books(told({"names": ["m"]} | served, read, unread, asked, **masked))
    with pytest.raises(ValueError, match="prices must be two"):
        books_own.own_scorer(told({"names": ["m"], "prices": [1.0]} | served))
    assert len(books_own.own_books(told({"names": ["m"]} | served, read, unread, asked))) == 9


# A served model


def echo(body, n):
    """Words as tokens, each with minus its number of letters; one token more as the answer."""
    tokens = body["prompt"].split()
    values = [None, *(-float(len(token)) for token in tokens[1:]), -1.0]
    logprobs = {"tokens": [*tokens, "."], "token_logprobs": values}
    usage = {"prompt_tokens": len(tokens), "completion_tokens": 1}
    choice = {
        "index": 0,
        "text": body["prompt"] + ".",
        "finish_reason": "length",
        "logprobs": logprobs,
    }
    return Reply({"object": "text_completion", "model": MODEL, "choices": [choice], "usage": usage})


def test_served_scores_are_those_of_the_log_probabilities():
    texts = ["The one and many words", "Two" + " more" * 2]
    around = [["The one and more words"], ["Two more moreover"]]
    with ScriptedServer(echo) as server:
        served = told({"base_url": server.base_url, "names": [MODEL]})
        found = books_own.own_scorer(served)(
            texts, neighbors=around, k_percents=[50.0], progress=False
        )
    assert (
        found.groupby("passage")["method"].apply(list).tolist()
        == [[PPL, ZLIB, LOWERCASE, NEIGHBOR, MIN_K]] * 2
    )
    first = found[found["passage"] == 0].set_index("method")["score"]
    values = np.array([-3.0, -3.0, -4.0, -5.0])
    assert first[MIN_K] == scores.min_k_score(values, 50) == -4.5
    assert first[PPL] == scores.perplexity_score(values)
    assert first[ZLIB] == scores.zlib_score(values, texts[0])
    assert first[LOWERCASE] == 1.0 and first[NEIGHBOR] == 0.0
    second = found[found["passage"] == 1].set_index("method")
    assert second.loc[NEIGHBOR, "score"] == pytest.approx(2.0)
    assert len(second) == 5 and not second["first_token_scored"].any()


def test_a_server_without_log_probabilities_costs_one_call_in_each_form():
    def plain(body, n):
        choice = {"index": 0, "text": "x", "finish_reason": "length"}
        usage = {"prompt_tokens": 5, "completion_tokens": 1}
        return Reply({"model": MODEL, "choices": [choice], "usage": usage})

    with ScriptedServer(plain) as server:
        endpoint = Endpoint(server.base_url, MODEL, None)
        with pytest.raises(ChatError, match="log-probabilities"):
            detect_served(["one two", "three four"], endpoint, progress=False)
        assert len(server.bodies) == 2
