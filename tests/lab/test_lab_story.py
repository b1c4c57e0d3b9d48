"""The generated story: names that occur nowhere else, facts that hold, tales beside it."""

import re

import pytest

from contamination.lab import grammar


@pytest.fixture(scope="module")
def tale():
    return grammar.build_story(n_chapters=40, n_people=8, n_tales=30, seed=3)


def words_of(texts):
    return set(re.findall(r"\w+", " ".join(texts)))


def test_the_same_seed_gives_the_same_story(tale):
    again = grammar.build_story(40, 8, 30, 3)
    assert again.chapters.equals(tale.chapters)
    assert again.questions.equals(tale.questions)
    assert again.tales == tale.tales
    assert (
        grammar.build_story(40, 8, 30, 4).chapters["text"].tolist()
        != tale.chapters["text"].tolist()
    )


def test_no_chapter_or_question_occurs_twice(tale):
    assert tale.chapters["text"].is_unique
    assert tale.questions["question"].is_unique
    assert len(tale.questions) == 8 * 5


def test_made_up_names_are_in_the_story_and_not_in_the_tales(tale):
    names = set(tale.generic_names)
    assert len(names) == 3 * 8
    assert not names & words_of(tale.tales)
    assert names & words_of(tale.chapters["text"])
    assert words_of(tale.tales) & set(tale.generic_names.values())


def test_the_facts_are_the_same_in_chapters_and_questions(tale):
    homes = tale.questions.query("kind == 'home'").set_index("name")["answer"]
    told = tale.chapters["text"].str.extract(r"^(?P<name>\w+) .*? (?P<home>\w+) (?:early|at dawn)")
    told = told.dropna()
    assert len(told)
    for name, home in told.itertuples(index=False):
        assert homes[name] == f"in {home}"


def test_nobody_is_their_own_friend(tale):
    friends = tale.questions.query("kind == 'friend'")
    pairs = zip(friends["name"], friends["answer"], strict=True)
    assert all(name not in answer.split() for name, answer in pairs)
    assert friends["answer"].is_unique


def test_stock_scenes_are_those_of_the_tales(tale):
    assert tale.chapters["is_stock"].any() and not tale.chapters["is_stock"].all()
    stories = " ".join(text for text in tale.tales if not text.startswith("Question"))
    assert "for the road was" in stories
    assert "accused" not in stories
    own = tale.chapters.query("not is_stock")["text"]
    assert own.str.contains("accused| brought ").all()


def test_articles_fit(tale):
    assert not tale.chapters["text"].str.contains(r"\ba [aeio]\w|\{|\}").any()


def test_a_question_is_read_with_its_answer(tale):
    first = tale.questions.iloc[0]
    text = grammar.question_texts(tale.questions)[0]
    assert text == f"Question: {first['question']}\nAnswer: {first['answer']}"
