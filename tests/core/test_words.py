"""Words and sentences of several scripts, by hand."""

import pytest

from contamination.core import words
from contamination.core.overlap import ngrams, normalised, rouge_l_recall, word_overlap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don’t stop: 3.5!", ["don't", "stop", "3", "5"]),
        ("कल काल कुल", ["कल", "काल", "कुल"]),
        ("هل جاء؟ نعم", ["هل", "جاء", "نعم"]),
        ("می‌خواهم بروم", ["می‌خواهم", "بروم"]),  # a joiner that is not seen, no space
        ("猫坐在 CAT上", ["猫", "坐", "在", "cat", "上"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("nai\u0308ve ❤️", ["nai\u0308ve"]),
    ],
)
def test_words_of_any_script(text, expected):
    assert words.words(text) == expected


def test_unrelated_hindi_texts_have_no_word_in_common():
    assert word_overlap("कल काल", "कुल केला") == 0
    assert ngrams("कल काल कुल", 3) == {("कल", "काल", "कुल")}
    assert rouge_l_recall("कल काल", "काल") == 0.5


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "It rained. Was it 3.5 mm? “Yes.” So",
            ["It rained.", " Was it 3.5 mm?", " “Yes.”", " So"],
        ),
        ("Dr. No left.", ["Dr.", " No left."]),  # as before: abbreviations are not known
        ("下雨了。他走了！为什么？“好。”完", ["下雨了。", "他走了！", "为什么？", "“好。”", "完"]),
        ("वह गया। वह आया।", ["वह गया।", " वह आया।"]),
        ("هل جاء؟ نعم.", ["هل جاء؟", " نعم."]),
    ],
)
def test_sentences_end_where_unicode_says(text, sentences):
    starts = [0, *words.sentence_ends(text)]
    assert [text[a:b] for a, b in zip(starts, [*starts[1:], None], strict=True)] == sentences


def test_units_keep_marks_and_are_what_lies_between_spaces_in_latin_script():
    assert words.first_words("A b,  c (猫坐) d", 4) == "A b, c (猫坐)"
    assert words.first_words("猫坐。他说", 2) == "猫坐。"
    assert words.unit_ends("猫坐。他说") == [1, 3, 4, 5]


def test_a_classifier_of_words_reads_every_script():
    assert words.longer_words("A cat 猫") == ["cat"]  # as scikit-learn does
    assert words.longer_words("काल में") == ["काल", "में"]
    assert words.longer_words("猫坐 着") == ["猫", "坐", "着", "猫坐"]


def test_the_full_stop_of_any_script_is_typing():
    assert normalised("下雨了。") == normalised("下雨了") and normalised("वह गया।") == "वह गया"
