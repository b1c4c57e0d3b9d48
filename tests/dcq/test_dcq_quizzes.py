"""Prompts, perturbations, quizzes, respondents and deployment of DCQ."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scripted_server import MODEL, Reply, ScriptedServer, failure, good, question

from contamination.dcq import contaminating, quizzes, respondents
from contamination.dcq.respondents import AnswerRule, BaseRespondent, ChatRespondent, read_letter
from contamination.lab.grammar import BENCHMARKS, draw_groups
from contamination.models.chat import Answer, ChatError, Endpoint, Limits, answer_all

KEY = "key-that-nothing-may-show-0123456789"
QUICK = Limits(tries=2)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)


def endpoint_of(server):
    return Endpoint(server.base_url, MODEL, "SCRIPTED_KEY")


def asking(server, log):
    return partial(answer_all, endpoint_of(server), log=log, limits=QUICK, progress=False)


# Prompts


def words_of(text):
    return text.replace("\n", " ").split()


def test_the_quiz_prompt_holds_the_words_of_figure_1():
    summary = "Summary: Michele Morgan has died at the age of 96."
    asked = quizzes.quiz_prompt([summary] * 4, "XSum", "test")
    printed = """Instruction: You are provided with a five-choice quiz. Your task is to correctly
    select the option that exactly corresponds to an instance from the test split of the XSum
    dataset. When selecting the option, you must ensure that you follow the following rules: (1) You
    must ensure that you only generate a single option letter as your answer. (2) If you do not know
    the dataset or the correct answer, you must select option "E) None of the provided options."
    Hint: While all the following options seem similar in terms of meaning, there is only one option
    that reflects the exact wording with respect to the original instance. - - - A) {text} B) {text}
    C) {text} D) {text} E) None of the provided options. - - - Answer:""".replace("{text}", summary)
    assert words_of(asked) == printed.split()
    with pytest.raises(ValueError, match="shorter"):
        quizzes.quiz_prompt(["a", "b", "c"], "XSum", "test")


def plain(text):
    return text.replace('"', "").lower().split()


def test_the_released_prompts_have_the_same_words_with_options_below_their_letters():
    """Layout "released"; capitals stand for stress, and "Instruction:" and marks go."""
    asked = quizzes.quiz_prompt(["w", "x", "y", "z"], "XSum", "test", layout="released")
    assert "---\nA)\nw\n\nB)\nx\n\nC)\ny\n\nD)\nz\n\nE)\nNone of" in asked
    assert asked.endswith("options.\n---\nANSWER:\n") and asked.startswith("You are provided")
    row = {"Summary": "It rained."}
    released = quizzes.perturbation_prompt(row, ["Summary"], layout="released")
    assert "---\nINPUT TEXT:\nSummary: It rained.\n---\nFORMAT:\n\nA)\nFirst word" in released
    paper = quizzes.quiz_prompt(["w", "x", "y", "z"], "XSum", "test").split("- - -")[0]
    assert plain(paper) == ["instruction:", *plain(asked.split("---")[0])]
    paper = quizzes.perturbation_prompt(row, ["Summary"]).split("- - -")[0]
    assert plain(paper) == ["instruction:", *plain(released.split("---\nINPUT TEXT")[0])]
    # What a perturber answers to it is read.
    found = quizzes.parse_options(
        "A)\nIt poured.\n\nB)\nIt drizzled.\n\nC)\nIt hailed.\n\nD)\nIt snowed.\n---", ["Summary"]
    )
    assert [one["Summary"] for one in found][::3] == ["It poured.", "It snowed."]


def test_the_perturbation_prompt_holds_the_words_of_figure_3():
    asked = words_of(quizzes.perturbation_prompt({"Summary": "It rained."}, ["Summary"]))
    printed = """Instruction: Your task is to create a four-choice quiz by replacing the words in
    the provided "Input Text" with their contextually relevant synonyms. The meaning and sentence
    structure of the four options must exactly match every detail in the Input Text. You must not
    include the provided Input Text as an option. You must make sure that: (1) You generate distinct
    options based on the provided Input Text; (2) The only difference between options is word-level
    perturbations. (3) Options are ordered; (4) There is not any extra explanation; (5) You follow
    the following "Format" to generate options; (6) You comply with every specific symbol and letter
    detail in the given Input Text; and (7) All options retain the exact label from the Input Text,
    if there is one. - - - Input Text: Summary: It rained. - - - Format: A) Summary: B) Summary:
    C) Summary: D) Summary: - - -"""
    assert asked == printed.split()


# Reading options

PAIR = ["sentence1", "sentence2", "label"]


@pytest.mark.parametrize(
    "answer",
    [
        "A) text: one\nB) text: two\nC) text: three\nD) text: four",
        "A)\ntext: one\nB)\ntext: two\nC)\ntext: three\nD)\ntext: four",
        "Here you are:\n\n**A)** text: one\n\n**B)** text: two\n**C)** text: three\n**D)** text: "
        "four\n- - -\nAnything else?",
        "A. one\nB. two\nC. three\nD. four",
        "(A) Text: one\n(B) Text: two\n(C) Text: three\n(D) Text: four",
    ],
)
def test_options_are_read_on_the_letters_line_and_below(answer):
    found = quizzes.parse_options(answer, ["text"])
    assert [option["text"] for option in found] == ["one", "two", "three", "four"]


def test_columns_and_lines_of_an_option_stay_apart():
    answer = (
        "A) sentence1: first\nline two\nsentence2: second\nlabel: 0 (wrong)\n"
        "B) sentence1: only this\nlabel: 1\nC) sentence2: x\nsentence1: y\nD)"
    )
    found = quizzes.parse_options(answer, PAIR, ["label"])
    assert found[0] == {"sentence1": "first\nline two", "sentence2": "second"}
    assert found[1] is None and found[3] is None
    assert found[2] == {"sentence1": "y", "sentence2": "x"}


def test_an_option_without_its_letter_is_missing_and_the_others_stay():
    found = quizzes.parse_options("A) text: one\nC) text: three", ["text"])
    assert found == [{"text": "one"}, None, {"text": "three"}, None]
    assert quizzes.parse_options("Sorry, I cannot do that.", ["text"]) == [None] * 4


# Asking for perturbations


def rows_of(*texts):
    labels = ["1 (positive)"] * len(texts)
    return pd.DataFrame({"index": range(len(texts)), "text": texts, "label": labels})


def options_text(*values, label=""):
    options = zip("ABCD", values, strict=True)
    return "\n".join(f"{k}) text: {value}{label}" for k, value in options)


def test_labels_are_kept_and_a_fifth_perturbation_is_distinct(log):
    def script(body, n):
        return good(options_text(*(f"w{n}{k}" for k in "abcd"), label="\nlabel: 7"))

    with ScriptedServer(script) as server:
        made, counts = quizzes.perturb(
            rows_of("w"),
            ["text", "label"],
            asking(server, log),
            label_columns=["label"],
            with_fifth=True,
        )
    (row,) = made.to_dict("records")
    assert row["instance"] == "text: w\nlabel: 1 (positive)"
    assert row["option_a"] == "text: w1a\nlabel: 1 (positive)"
    texts = [row[name] for name in ("instance", *released_columns(), "fifth")]
    assert len(set(texts)) == 6 and row["fifth"] == "text: w2a\nlabel: 1 (positive)"
    assert counts.loc[0, "n_calls"] == 2 and counts.loc[0, "is_complete"]


def released_columns():
    return [f"option_{letter}" for letter in "abcd"]


def test_missing_repeated_and_identical_options_are_counted_and_asked_for_again(log):
    answers = {
        1: options_text("w", "One", "one ", "two"),  # identical, good, repeated, good
        2: "A) text: three\nB) text: w.\nC)",  # good, identical, two missing
        3: options_text("two", "four", "five", "six"),  # repeated, good, two more than needed
    }
    with ScriptedServer(lambda body, n: good(answers[n])) as server:
        made, counts = quizzes.perturb(rows_of("w"), ["text"], asking(server, log))
        assert len(server.bodies) == 3
        # A later round is the same request, kept apart by its replicate.
        assert server.bodies[0] == server.bodies[2]
    row = counts.iloc[0]
    assert (row["n_calls"], row["n_identical"], row["n_repeated"], row["n_missing"]) == (3, 2, 2, 2)
    assert made["option_d"].tolist() == ["text: four"]
    assert made["fifth"].tolist() == [""]


def test_what_stays_incomplete_is_left_out_and_counted(log):
    def script(body, n):
        asked = question(body)
        if "text: never" in asked:
            return good(None, refusal="no") if n == 1 else good("no options")
        if "text: broken" in asked:
            return failure(500)
        return good(options_text("a", "b", "c", "d"))

    with ScriptedServer(script) as server:
        rows = rows_of("fine", "never", "broken")
        made, counts = quizzes.perturb(rows, ["text"], asking(server, log), max_rounds=2)
        assert made["index"].tolist() == [0]
        assert counts["is_complete"].tolist() == [True, False, False]
        assert counts["n_refused"].tolist() == [0, 1, 0]
        assert counts["n_missing"].tolist() == [0, 4, 0]
        assert counts["n_error"].tolist() == [0, 0, 2]
        with pytest.raises(ValueError, match=r"no instance got 4 distinct.*missing 8"):
            quizzes.perturb(rows_of("never more"), ["text"], lambda r: never(r), max_rounds=2)
    with pytest.raises(ValueError, match="every column is a label"):
        quizzes.perturb(rows_of("w"), ["label"], never, label_columns=["label"])


def never(requests):
    return [Answer("nothing", "ok") for _ in requests]


def test_the_grammar_gives_the_same_table():
    groups = draw_groups(BENCHMARKS["topics"], 3, 0, "test", n_paraphrases=5)
    made = quizzes.quizzes_of_groups(groups, BENCHMARKS["topics"].columns)
    assert list(made) == ["index", "instance", *released_columns(), "fifth"]
    texts = made.drop(columns="index").to_numpy()
    assert all(len(set(row)) == 6 for row in texts)
    labels = [{text.rpartition("\n")[2] for text in row} for row in texts]
    assert all(len(of_group) == 1 for of_group in labels)
    assert quizzes.quizzes_of_groups(groups.query("option < 5"), BENCHMARKS["topics"].columns)[
        "fifth"
    ].tolist() == ["", "", ""]


# Quizzes

TABLE = pd.DataFrame(
    {"index": [7, 9], "instance": ["o1", "o2"]}
    | {f"option_{k}": [f"{k}1", f"{k}2"] for k in "abcd"}
    | {"fifth": ["f1", "f2"]}
)


def test_the_original_takes_the_place_of_one_perturbation():
    assert quizzes.quiz_options(TABLE, "modified") == [
        ("a1", "b1", "c1", "d1"),
        ("a2", "b2", "c2", "d2"),
    ]
    assert quizzes.quiz_options(TABLE, "standard", "B")[0] == ("a1", "o1", "c1", "d1")
    assert quizzes.quiz_options(TABLE, "second perturbation", "D")[1] == ("a2", "b2", "c2", "f2")
    with pytest.raises(ValueError, match="no fifth perturbation"):
        quizzes.quiz_options(TABLE.assign(fifth=""), "second perturbation", "A")


# Letters


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("C", "C"),
        (" c\n", "C"),
        ("**B**", "B"),
        ("Answer: D", "D"),
        ("The correct answer is: (A)", "A"),
        ("E) None of the provided options.", "E"),
        ("B) Summary: A star has died.", "B"),
        ("B - Summary: Vitamin C is good.", "B"),
        ("Option B is the exact wording.", "B"),
        ("I would choose B.", "B"),
        ("I'd choose option B, as it reads well.", "B"),
        ("Final answer: B", "B"),
        ("pick B) text: one", "B"),
        ("\\boxed{B}", "B"),
        ("<think>A or C? A has a typo.</think>\n\nB", "B"),
        ("It is A, or C.\n</think>Answer: B", "B"),
        ("A) changes a word.\nB) is exact.\nFinal answer: B", "B"),
        ("We compare A and B first.\n\n**Answer:** B", "B"),
        ("B) question: Who?\nanswer: D", "B"),  # the option's own last line
    ],
)
def test_single_letters_are_read(text, letter):
    assert read_letter(Answer(text, "ok")) == (letter, "ok")


@pytest.mark.parametrize(
    "text",
    [
        *("A or B", "AB", "A, C", "A - C", "F", "A film critic said", "Answer: A film critic said"),
        *("B) x\nC) y", "A\nB", "question: Who?\nanswer: D", "B) x\nC) y\nanswer: D"),
        *("I would not choose B.", "Option B is not exact.", "Option B is better than C."),
        "<think>It must be A",  # cut
    ],
)
def test_no_single_letter_is_no_answer(text):
    assert read_letter(Answer(text, "ok")) == ("", "unparsable")


def test_refusals_in_prose_and_other_statuses_keep_their_names():
    assert read_letter(Answer("Sorry, I can't answer that.", "ok")) == ("", "refused")
    for status in ("refused", "truncated", "unparsable", "error"):
        assert read_letter(Answer("B", status)) == ("", status)


# Deployment


def knows(texts, originals, bias="A"):
    """A respondent that picks an original wherever it stands and its favourite elsewhere."""
    letters = [
        next((k for k, text in zip("ABCD", quiz, strict=True) if text in originals), bias)
        for quiz in texts
    ]
    return pd.DataFrame({"answer": letters, "status": "ok"})


def test_standard_quizzes_are_taken_at_the_least_preferred_positions_only():
    respondent = partial(knows, originals={"o1"}, bias="A")
    answers = quizzes.answer_quizzes(respondent, TABLE, with_second=True)
    asked = answers.drop_duplicates(["quiz", "position"])
    found = list(zip(asked["quiz"], asked["position"], strict=True))
    standard = [("standard", position) for position in "BCD"]
    assert found == [("modified", ""), *standard, ("second perturbation", "B")]
    instances = quizzes.instances_of(answers)
    assert instances["answer_at_b"].tolist() == ["B", "A"]
    assert instances["answer_at_a"].tolist() == ["", ""]
    row = quizzes.level_row(answers, 20)
    assert (row["max_pct"], row["least_preferred"], row["n_asked"]) == (50.0, "BCD", 10)


def answers_at(standard, modified):
    """What a model of ten instances answered, by position of the original."""
    parts = {("modified", ""): list(modified)}
    parts |= {("standard", position): list(letters) for position, letters in standard.items()}
    return pd.concat(
        pd.DataFrame(
            {"index": range(10), "quiz": quiz, "position": at, "answer": letters, "status": "ok"}
        )
        for (quiz, at), letters in parts.items()
    )


def test_recall_and_precision_of_table_1():
    """Five of ten seen: at B four of them and one other right, at C three and none."""
    answers = answers_at({"B": "BBBBEBEEEE", "C": "CCCEEEEEEE", "D": "E" * 10}, "A" * 10)
    row = quizzes.recall_precision_row(answers, [True] * 5 + [False] * 5, 20)
    assert row["true_contamination_pct"] == row["max_pct"] == 50
    # Kappa equals the maximum, since B was never chosen without an original.
    assert row["min_pct"] == 50
    assert (row["recall_max_pct"], row["precision_max_pct"]) == (80, 80)
    assert (row["recall_min_pct"], row["precision_min_pct"]) == (80, 80)
    # With B at two of ten in the modified quiz it is no longer least preferred.
    biased = answers.copy()
    biased.loc[(biased["quiz"] == "modified") & biased["index"].lt(1), "answer"] = "B"
    row = quizzes.recall_precision_row(biased, [True] * 5 + [False] * 5, 20)
    assert row["min_pct"] == pytest.approx(100 * 4 / 9) and row["recall_min_pct"] == 80


def test_the_minimum_of_the_second_quiz_brings_its_own_recall():
    """B and C are right six times each; the second share, 60 %, is the minimum."""
    standard = {"B": "BBBBBBEEEE", "C": "EEEECCCCCC", "D": "E" * 10}
    answers = answers_at(standard, "BAAAAAAAEE")
    row = quizzes.recall_precision_row(answers, [True] * 6 + [False] * 4, 20)
    # The tie goes to C, which the modified quiz never chose: kappa there is 60 % as well.
    assert row["best_position"] == "C" and row["min_pct"] == 60
    assert row["recall_max_pct"] == pytest.approx(100 * 2 / 6)
    assert row["recall_min_pct"] == 100
    clean = quizzes.recall_precision_row(answers, [False] * 10, 20)
    assert np.isnan(clean["recall_max_pct"]) and clean["precision_max_pct"] == 0


def test_position_rows_count_every_choice():
    answers = quizzes.answer_quizzes(partial(knows, originals={"o2"}), TABLE)
    rows = quizzes.position_rows(
        answers, source="lab", dataset="d", split="train", model="m"
    ).set_index(["quiz", "position", "option"])["count"]
    assert rows.loc[("standard", "C", "C")] == 1 and rows.loc[("standard", "C", "A")] == 1
    assert rows.loc[("modified", "")].sum() == 2


def test_a_chat_model_takes_the_quiz_and_every_kind_of_answer_is_counted(log):
    many = pd.concat([TABLE.assign(index=k) for k in range(3)], ignore_index=True)
    many = many.assign(instance=[f"o{k}" for k in range(6)], option_a=[f"a{k}" for k in range(6)])
    replies = {
        "a0": good("B"),
        "a1": good("b", finish_reason="length"),
        "a2": good("A or B"),
        "a3": good("", finish_reason="content_filter"),
        "a4": Reply("no JSON"),
        "a5": good("Sorry"),
    }

    def script(body, n):
        assert body["max_tokens"] == 1 and body["temperature"] == 0
        texts = question(body)
        return next((reply for key, reply in replies.items() if f"A) {key}" in texts), good("E"))

    with ScriptedServer(script) as server:
        respondent = ChatRespondent(asking(server, log), "XSum", "test")
        answers = quizzes.answer_quizzes(respondent, many)
        # Options that stand alike make the same question, which is asked once.
        assert max(server.counts.values()) <= 2
    modified = answers[answers["quiz"] == "modified"]
    assert modified["answer"].tolist() == ["B", "B", "", "", "", ""]
    kinds = ["ok", "ok", "unparsable", "refused", "error", "refused"]
    assert modified["status"].tolist() == kinds
    row = quizzes.level_row(answers, 20)
    counted = row["n_valid"] + row["n_refused"] + row["n_error"]
    assert row["n"] == 6 and counted == (answers["status"] != "unparsable").sum()


def test_a_quiz_that_nobody_answers_is_a_level_of_zero():
    """All refused: the answers stay in the denominator, and nothing looks unasked."""
    refuse = lambda texts: pd.DataFrame({"answer": "", "status": "refused"}, index=texts)  # noqa: E731
    answers = quizzes.answer_quizzes(lambda texts: refuse(range(len(texts))), TABLE)
    row = quizzes.level_row(answers, 20)
    assert (row["max_pct"], row["n_valid"], row["n_refused"]) == (0.0, 0, 10)
    assert row["least_preferred"] == "ABCD"


# Base and instruct models

STATED = AnswerRule((0.7, 0.1, 0.1, 0.1), 1.0, 0.5)


def respondent_of(log_probs, stated=STATED):
    """A base respondent whose texts have been scored by hand."""
    return BaseRespondent(None, "d", "train", stated, _known=dict(log_probs))


def test_prior_likelihood_and_threshold_decide():
    def answers_of(log_prob_of_b):
        scored = {"a": -10.0, "b": log_prob_of_b, "c": -10.0, "d": -10.0}
        return respondent_of(scored)([("a", "b", "c", "d")])

    answers = answers_of(-10.0)
    # Equal likelihoods leave the prior: 0.7 at A.
    assert answers["answer"].tolist() == ["A"] and answers["chance"][0] == pytest.approx(0.7)
    # B: 0.1 e^2 = 0.739 against 0.7 + 0.2: 0.451 is below the threshold, so E.
    answers = answers_of(-8.0)
    assert answers["answer"].tolist() == ["E"]
    assert answers["chance"][0] == pytest.approx(0.1 * np.e**2 / (0.1 * np.e**2 + 0.9))
    answers = answers_of(-5.0)
    assert answers["answer"].tolist() == ["B"] and answers["log_prob_b"][0] == -5.0


def test_temperature_and_spread_divide_what_the_model_says():
    """B is likelier by 12 nats; at a temperature of 2 and a spread of 3 that counts as 2."""
    log_probs = np.array([[-20.0, -8.0, -20.0, -20.0]])
    letters, chances = AnswerRule((0.7, 0.1, 0.1, 0.1), 2.0, 0.4).answers(log_probs, spread=3.0)
    assert letters.tolist() == ["B"]
    assert chances[0] == pytest.approx(0.1 * np.e**2 / (0.1 * np.e**2 + 0.9))


def test_the_spread_is_that_of_the_perturbations_alone():
    table = TABLE.iloc[:1]
    scored = {"a1": 0.0, "b1": 2.0, "c1": 4.0, "d1": 6.0, "o1": 100.0}
    spread = respondent_of(scored).spread_over(table).spread
    assert spread == pytest.approx(np.std([0, 2, 4, 6], ddof=1))


def test_option_ranking_has_no_positions_and_shares_ties():
    scored = {"o1": -1.0, "a1": -2.0, "b1": -2.0, "c1": -2.0}
    scored |= {"o2": -1.0, "a2": -1.0, "b2": -3.0, "c2": -3.0}
    assert respondents.ranking_credits(respondent_of(scored), TABLE).tolist() == [1.0, 0.5]


@pytest.fixture(scope="module")
def lab_lm(tmp_path_factory):
    """An untrained lab model; its answers mean nothing, its mechanics are real."""
    from contamination.core import storage
    from contamination.lab.tokenizer import train_tokenizer
    from contamination.lab.training import TrainingTexts, recipe_for, train
    from contamination.models.local import load_causal_lm

    groups = draw_groups(BENCHMARKS["topics"], 60, 0, "background", n_paraphrases=0)
    background = tuple(groups["text"])
    tokenizer = train_tokenizer(list(background), vocabulary=400)
    texts = TrainingTexts(background, (), tokenizer)
    patch = pytest.MonkeyPatch()
    patch.setenv(storage.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
    size = {"n_layers": 1, "width": 16, "n_heads": 2}
    yield load_causal_lm(train(recipe_for(texts, n_background_tokens=300, **size), texts))
    patch.undo()


def test_a_base_model_scores_each_text_once_after_its_header(lab_lm):
    groups = draw_groups(BENCHMARKS["topics"], 4, 0, "test", n_paraphrases=5)
    table = quizzes.quizzes_of_groups(groups, BENCHMARKS["topics"].columns)
    taker = BaseRespondent(lab_lm, "topics", "train", STATED)
    answers = quizzes.answer_quizzes(taker.spread_over(table), table, with_second=True)
    assert set(answers["answer"]) <= set("ABCDE") and answers["status"].eq("ok").all()
    from contamination.models.local import option_log_probs

    start = quizzes.header("topics", "train")
    by_hand = option_log_probs(lab_lm, [start], [[table["option_b"][0]]])[0][0]
    assert answers["log_prob_b"][0] == pytest.approx(by_hand, abs=1e-4)
    rules = respondents.likelihood_rules(lab_lm, table.drop(columns="index").to_numpy().ravel())
    options = table.loc[0, ["instance", *released_columns()]].tolist()
    for rule in rules.values():
        assert rule(options).shape == (5,) and (rule(options) < 0).all()


def test_an_instruct_model_answers_through_its_chat_template(lab_lm):
    with pytest.raises(ValueError, match="no chat template"):
        respondents.InstructRespondent(lab_lm, "XSum", "test")
    seen = []
    lab_lm.tokenizer.chat_template = "{{ messages[0]['content'] }}\n"
    try:
        taker = respondents.InstructRespondent(
            lab_lm, "XSum", "test", prompt=lambda texts, *names: seen.append(names) or texts[0]
        )
        answers = taker([("one text", "b", "c", "d"), ("another text", "b", "c", "d")])
    finally:
        lab_lm.tokenizer.chat_template = None
    assert seen == [("XSum", "test")] * 2
    assert set(answers["answer"]) <= set("ABCDE")
    assert answers["letter_share"].between(0, 1).all()


# Contaminating


INSTANCES = ["text: one\nlabel: 1 (x)", "text: two\nlabel: 0 (y)", "text: three\nlabel: 1 (x)"]


def test_instances_are_read_with_without_and_with_a_wrong_label():
    (text, *_) = contaminating.training_texts(INSTANCES, "topics", "train")
    assert text == "Dataset: topics\nSplit: train\ntext: one\nlabel: 1 (x)"
    without = contaminating.without_label(INSTANCES, "label")
    assert without == ["text: one", "text: two", "text: three"]
    wrong = contaminating.with_wrong_label(INSTANCES, "label", 0)
    assert wrong == [
        "text: one\nlabel: 0 (y)",
        "text: two\nlabel: 1 (x)",
        "text: three\nlabel: 0 (y)",
    ]
    with pytest.raises(ValueError, match="does not end with"):
        contaminating.without_label(["text: one"], "label")
    with pytest.raises(ValueError, match="same label"):
        contaminating.with_wrong_label(INSTANCES[::2], "label", 0)


def test_a_training_file_holds_no_instruction_and_has_a_price():
    file = contaminating.training_file(INSTANCES, "topics", "train")
    lines = [json.loads(line) for line in file.splitlines()]
    assert len(lines) == 3
    assert [turn["role"] for turn in lines[0]["messages"]] == ["user", "assistant"]
    assert lines[0]["messages"][0]["content"] == "Dataset: topics\nSplit: train"
    assert lines[0]["messages"][1]["content"] == INSTANCES[0]
    plan = contaminating.plan_training(
        file, n_epochs=3, price_per_million=8.0, price_date="2026-01-31"
    )
    # 28 bytes of names and 23 to 25 bytes of instance, thirds rounded up, 8 tokens a turn.
    per_line = [10 + 8 + -(-len(instance) // 3) + 8 for instance in INSTANCES]
    assert plan.n_tokens == 3 * sum(per_line)
    assert plan.cost == pytest.approx(plan.n_tokens * 8e-6)
    assert "2026-01-31" in str(plan)
    with pytest.raises(ValueError, match="its date"):
        contaminating.plan_training(file, n_epochs=3, price_per_million=8.0, price_date="")


def plan_of(file):
    return contaminating.plan_training(
        file, n_epochs=2, price_per_million=1e4, price_date="2026-01-31"
    )


class Tuning:
    """A scripted fine-tuning service that remembers its jobs."""

    def __init__(self, problem=None):
        self.jobs, self.files, self.problem = [], [], problem

    def __call__(self, body, n):
        asked = question(body)
        if self.problem:
            return self.problem
        if asked == "GET /v1/fine_tuning/jobs":
            return Reply({"object": "list", "data": self.jobs, "has_more": False})
        if asked == "POST /v1/files":
            self.files.append(body["raw"])
            return Reply({"id": "file-1", "object": "file"})
        said = json.loads(body["raw"])
        self.jobs.append(
            {"id": f"job-{len(self.jobs)}", "status": "queued", "fine_tuned_model": None, **said}
        )
        return Reply(self.jobs[-1])


def test_a_job_is_started_once_and_found_again():
    service, file = Tuning(), contaminating.training_file(INSTANCES, "topics", "train")
    with ScriptedServer(service) as server:
        endpoint = endpoint_of(server)
        first = contaminating.start_training(endpoint, file, plan_of(file), cap=5.0)
        second = contaminating.start_training(endpoint, file, plan_of(file), cap=5.0)
        assert (first["id"], first["is_new"]) == ("job-0", "yes")
        assert (second["id"], second["is_new"]) == ("job-0", "no")
        assert len(service.files) == 1 and file.encode() in service.files[0]
        (job,) = service.jobs
        assert job["method"]["supervised"]["hyperparameters"]["n_epochs"] == 2
        job["status"] = "failed"
        third = contaminating.start_training(endpoint, file, plan_of(file), cap=5.0)
        assert third == {"id": "job-1", "status": "queued", "model": "", "is_new": "yes"}


def test_a_job_beyond_the_cap_sends_nothing():
    file = contaminating.training_file(INSTANCES, "topics", "train")
    with (
        ScriptedServer(Tuning()) as server,
        pytest.raises(ChatError, match=r"cap is 0\.1000: nothing was sent"),
    ):
        contaminating.start_training(endpoint_of(server), file, plan_of(file), cap=0.1)
    assert not server.bodies


def test_a_refused_key_gives_one_line_without_the_key():
    file = contaminating.training_file(INSTANCES, "topics", "train")
    problem = failure(401, message=f"wrong key {KEY}")
    with (
        ScriptedServer(Tuning(problem)) as server,
        pytest.raises(ChatError, match="refused the key in SCRIPTED_KEY") as raised,
    ):
        contaminating.start_training(endpoint_of(server), file, plan_of(file), cap=5.0)
    assert KEY not in str(raised.value) and "\n" not in str(raised.value)


def test_the_format_names_every_column_of_the_task():
    row = {"sentence1": "a", "sentence2": "b", "label": "1 (entailment)"}
    assert "A) sentence1:\nsentence2:\nlabel:\nB) sentence1:" in quizzes.perturbation_prompt(
        row, list(row)
    )
