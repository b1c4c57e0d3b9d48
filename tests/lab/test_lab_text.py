"""The lab's real text: what a docstring becomes, and what a split promises."""

import ast
import inspect

import pandas as pd
import pytest
from notebook_files import locked_versions

from contamination.core import storage
from contamination.core.overlap import ngram_overlap_share, ngrams
from contamination.lab import passages

MODULE = '''
"""A module whose docstring holds more than eight words in all."""

class Mean:
    """Average of many numbers, computed in one pass over them.

    Parameters
    ----------
    values : sequence

        .. versionadded:: 1.10
           As a generator.

    .. versionchanged:: 1.9.2

    >>> mean([1, 2])
    1.5
    """

    def fit(self):
        "Too short."

add_newdoc("pkg", "Mean", ("merge", """Merge two averages into the average of all their values."""))
'''


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(storage.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        first = passages.collect_docstrings()
        # The second call reads the cached table, and must read the same.
        pd.testing.assert_frame_equal(passages.collect_docstrings(), first)
        return first


@pytest.fixture(scope="module")
def splits(collected):
    return {
        split.__name__: split(collected, seed=0)
        for split in (passages.split_by_family, passages.split_by_version, passages.split_raw)
    }


def test_a_docstring_becomes_prose_without_examples_underlines_and_dates(tmp_path):
    (tmp_path / "stats.py").write_text(MODULE)
    for left_out in ("tests", "distutils"):
        (tmp_path / left_out).mkdir()
        (tmp_path / left_out / "stats.py").write_text(MODULE)
    table = passages.read_docstrings(tmp_path, "pkg")
    assert table["page"].tolist() == ["pkg.stats", "pkg.stats.Mean", "pkg.stats.merge"]
    assert set(table["family"]) == {"pkg.stats"}
    mean = table.set_index("page").loc["pkg.stats.Mean"]
    assert mean["text"] == (
        "Average of many numbers, computed in one pass over them. Parameters values : sequence"
    )
    assert mean["version"] == "1.10"
    assert mean["n_words"] == 14
    assert pd.isna(table.set_index("page").loc["pkg.stats", "version"])


def test_how_python_indents_a_docstring_does_not_matter():
    # Since 3.13 the interpreter strips the indentation itself.
    raw = ast.get_docstring(ast.parse(MODULE).body[1], clean=False)
    assert inspect.cleandoc(raw) != raw
    assert passages.clean_docstring(raw) == passages.clean_docstring(inspect.cleandoc(raw))
    # The first line stands without the indentation of the others.
    first = ".. versionadded:: 1.2\n            Gone.\n\n        Kept."
    assert passages.clean_docstring(first) == ("Kept.", "1.2")


def test_the_corpus_is_the_same_everywhere_and_another_one_is_named(collected, monkeypatch):
    assert passages.hash_of_table(collected) == passages.DOCSTRINGS
    assert passages.hash_of_table(passages.collect_signatures()) == passages.SIGNATURES
    changed = collected.assign(text=["Another text.", *collected["text"][1:]])
    assert passages.hash_of_table(changed) != passages.DOCSTRINGS
    monkeypatch.setattr(passages, "SIGNATURES", passages.DOCSTRINGS)
    with pytest.warns(UserWarning, match=r"signatures of numpy .* are not those of the lock"):
        passages.collect_signatures()


def test_the_corpus_is_that_of_the_versions_in_the_lock(collected):
    """Another version of one of the four in the lock would move every number of the lab."""
    versions = collected.groupby("package")["package_version"].first()
    locked = locked_versions()
    for package, name in passages.PACKAGES.items():
        assert versions[package] == locked[name]


def test_a_split_says_where_every_text_belongs_and_repeats(collected, splits):
    again = passages.split_by_family(collected, seed=0)
    pd.testing.assert_frame_equal(again, splits["split_by_family"])
    other = passages.split_by_family(collected, seed=1)
    assert not other["text"].equals(again["text"])
    for name, split in splits.items():
        assert list(split.columns) == passages.COLUMNS, name
        background = split[split["role"] == "background"]
        # One background for all splits: one base model serves them.
        assert background["text"].tolist() == again[again["role"] == "background"]["text"].tolist()


@pytest.mark.parametrize("name", ["split_by_family", "split_by_version"])
def test_no_passage_of_a_clean_split_shares_thirteen_words_with_another_text(splits, name):
    split = splits[name]
    texts = {role: group["text"].tolist() for role, group in split.groupby("role")}
    for role in set(texts) - {"background"}:
        others = [text for other in set(texts) - {role} for text in texts[other]]
        assert ngram_overlap_share(texts[role], others) == 0
        # Nor with another passage of its own role: that would be a second copy.
        seen = set()
        for text in texts[role]:
            grams = ngrams(text)
            assert seen.isdisjoint(grams)
            seen |= grams


def test_families_are_whole_in_the_clean_split_and_torn_in_the_raw_one(splits):
    def families(split, role):
        return set(split[split["role"] == role]["family"])

    clean, raw = splits["split_by_family"], splits["split_raw"]
    assert families(clean, "member").isdisjoint(families(clean, "non-member"))
    assert families(raw, "member") & families(raw, "non-member")


def test_the_raw_split_leaks_members_into_non_members(splits):
    chosen = passages.passages_of_length(splits["split_raw"], 128)
    texts = {role: group["text"].tolist() for role, group in chosen.groupby("role")}
    assert ngram_overlap_share(texts["non-member"], texts["member"]) > 0.2


def test_members_of_the_date_split_are_the_older_half_of_each_package(splits):
    split = splits["split_by_version"]
    for _, group in split[split["role"] != "background"].groupby("package"):
        order = group["version"].map(passages.version_order)
        assert max(order[group["role"] == "member"]) < min(order[group["role"] == "non-member"])
        assert 0.3 < (group["role"] == "member").mean() < 0.7


def test_a_length_takes_the_first_words_of_passages_that_hold_as_many(splits):
    split = splits["split_by_family"]
    n_by_length = []
    for length in passages.LENGTHS:
        chosen = passages.passages_of_length(split, length)
        assert (chosen["text"].str.split().str.len() == length).all()
        assert "background" not in set(chosen["role"])
        n_by_length.append(len(chosen))
    assert n_by_length == sorted(n_by_length, reverse=True)
    with pytest.raises(ValueError, match="no passage has 5000 words"):
        passages.passages_of_length(split, 5000)


def test_a_window_is_moved_past_words_that_are_taken():
    words = [f"w{number}" for number in range(60)]
    taken = ngrams(" ".join(words[:13]))
    table = pd.DataFrame({"text": [" ".join(words)], "n_words": [60]})
    passage = passages.clean_passages(table, [" ".join(words[:13])], seed=0).iloc[0]
    # The window that begins at the second word holds twelve of the thirteen: allowed.
    assert passage["text"] == " ".join(words[1:33])
    assert ngrams(passage["text"]).isdisjoint(taken)
