"""From an instance to a decision: cuts, prompts, completions, judges, outcomes."""

import re

import numpy as np
import pandas as pd
import pytest
from scripted_server import MODEL, ScriptedServer, failure, good, question

from contamination.core import overlap
from contamination.models.chat import Endpoint, Limits
from contamination.models.exchange import requests_of_prompts
from contamination.replication import algorithms, completions, decisions, instructions
from contamination.replication.algorithms import flag_probability
from contamination.replication.instructions import PAPER_OPTIONS

# Cuts

SENTENCES = 'It rained all day. "Stop it!" she said. Nobody heard her. The end came late.'
SENTENCE = "Kim is about to tell mom that Harry bought a new sofa for the house"


def test_several_sentences_are_cut_at_a_sentence_end():
    seen = set()
    for seed in range(20):
        first, second, is_mid_sentence = instructions.cut(SENTENCES, seed)
        assert f"{first} {second}" == SENTENCES
        assert first.endswith((".", '"')) and not is_mid_sentence
        seen.add(first)
    assert len(seen) == 4  # "she said" may begin a sentence: quotation marks end one


def test_a_single_sentence_is_cut_at_any_word():
    firsts = {instructions.cut(SENTENCE, seed)[0] for seed in range(200)}
    assert len(firsts) == len(SENTENCE.split()) - 1
    assert all(instructions.cut(SENTENCE, seed)[2] for seed in range(20))


def test_the_share_option_keeps_40_to_70_percent_of_the_words():
    lengths = {len(instructions.cut(SENTENCE, seed, "share")[0].split()) for seed in range(200)}
    n = len(SENTENCE.split())
    assert n == 15 and lengths == {6, 7, 8, 9, 10}
    # No whole number of words lies between 40 and 70 % of two: the nearest is taken.
    assert instructions.cut("two words", 0, "share")[:2] == ("two", "words")


def test_the_released_cut_is_that_of_the_released_code():
    """``random.seed(42)`` gives 0.639, so the share is 0.4 + 0.3 * 0.639 = 0.5918 of anything."""
    for n, kept in ((2, 1), (3, 2), (5, 3), (10, 6)):
        text = " ".join(f"Ship number {one} came." for one in range(n))
        first, second, is_mid_sentence = instructions.cut(text, 0, "released")
        assert first.count(".") == kept and second.count(".") == n - kept
        assert not is_mid_sentence and instructions.cut(text, 7, "released")[0] == first
    first, second, is_mid_sentence = instructions.cut(SENTENCE, 0, "released")
    assert (len(first.split()), len(second.split()), is_mid_sentence) == (9, 6, True)
    with pytest.raises(ValueError, match="the released cut leaves fewer than 6 words"):
        instructions.cut("A ship came. It left again in the night, and nobody saw it.", 0,
                         "released", min_words=6)  # fmt: skip


def test_a_cut_depends_on_seed_and_text_alone():
    rows = pd.DataFrame({"text": [SENTENCE, SENTENCES], "label": ["1 (a)", "0 (b)"]})
    how = {"task": instructions.CLASSIFICATION, "text_columns": ["text"], "label_column": "label"}
    both = instructions.cut_rows(rows, seed=3, **how)
    alone = instructions.cut_rows(rows.iloc[1:], seed=3, **how)
    assert alone.iloc[0].tolist() == both.iloc[1].tolist()
    assert instructions.cut(SENTENCE, 1) != instructions.cut(SENTENCE, 2)


def test_short_pieces_are_avoided_or_refused():
    for seed in range(50):
        first, second, _ = instructions.cut(SENTENCES, seed, min_words=4)
        assert min(len(first.split()), len(second.split())) >= 4
    with pytest.raises(ValueError, match="a text of 1 words cannot be cut"):
        instructions.cut("Word.", 0)


def test_a_sentence_pair_is_not_cut():
    rows = pd.DataFrame({"sentence1": ["A b. C d."], "sentence2": ["E f."], "label": [1]})
    pieces = instructions.cut_rows(
        rows, instructions.NLI, ["sentence1", "sentence2"], "label", seed=0
    )
    row = pieces.iloc[0]
    assert (row["first_piece"], row["second_piece"], row["label"]) == ("A b. C d.", "E f.", "1")
    assert not row["is_mid_sentence"]
    with pytest.raises(ValueError, match="NLI needs 2 text columns"):
        instructions.cut_rows(rows, instructions.NLI, ["sentence1"], "label", seed=0)


# Prompts

KAL_EL = (
    "Although they were born on different planets, Oscar-winning actor Nicolas Cage's new son and "
    "Superman have something in common - both were named Kal-el."
)
PIECE = {"first_piece": KAL_EL, "second_piece": "x", "label": "1 (entailment)"}
NAMES = {"dataset": "RTE", "split": "train", "other_dataset": "WNLI", "other_split": "validation"}


@pytest.mark.parametrize("word", ["code", "question"])
def test_the_quiz_paper_puts_another_word_in_place_of_summary(word):
    """As the released shell scripts say; HumanEval is code, DROP and GSM8k are questions."""
    piece = {"first_piece": "def half(n):", "label": ""}
    names = {"dataset": "HumanEval", "split": "test"}
    for instruction in ("guided", "general"):
        found, summary = (
            instructions.prompt_for(instruction, task, piece, **names) for task in (word, "summary")
        )
        assert found == summary.replace("summary", word)


@pytest.mark.parametrize("task", [*instructions.GUIDED_INSTRUCTION])
@pytest.mark.parametrize("instruction", ["guided", "general"])
def test_the_released_layout_has_the_paper_s_words(task, instruction):
    """In capitals for stress, fields on their own lines; sentence pairs show the label later."""
    piece = {"first_piece": "It rained.", "label": "1 (true)"}
    paper, released = (
        instructions.prompt_for(instruction, task, piece, dataset="D", split="test", layout=layout)
        for layout in ("paper", "released")
    )
    assert paper.lower().split() == released.lower().split()
    assert released.startswith("INSTRUCTION:\n") and released.endswith((" PIECE:\n", " 2:\n"))
    assert "\n\nFIRST PIECE:\nIt rained.\n\n" in released or task == instructions.NLI
    assert completions.without_repetition("It rained.", f"{released}It poured.")[0] == "It poured."


def test_the_released_judge_s_prompt_has_the_paper_s_words():
    paper, released = (
        re.sub(r"[-'\"]|candidates?", "", prompt).lower().split()
        for prompt in instructions.JUDGE_PROMPTS.values()
    )
    # The paper writes "the reference candidate", the code "the reference candidates".
    assert paper == released
    assert instructions.JUDGE_PROMPTS["released"].count("\n---\n") == 5


def test_the_paper_s_prompts_of_tables_4_and_5():
    guided = instructions.prompt_for("guided", instructions.NLI, PIECE, **NAMES)
    assert guided == (
        "Instruction: You are provided with Sentence 1 from the train split of the RTE dataset. "
        "Finish Sentence 2 as appeared in the dataset. Sentence 2 must exactly match the instance "
        f"in the dataset.\nSentence 1: {KAL_EL}\nLabel: 1 (entailment)\nSentence 2:"
    )
    general = instructions.prompt_for("general", instructions.NLI, PIECE, **NAMES)
    assert general == (
        "Instruction: Finish Sentence 2 based on Sentence 1, such that the following label shows "
        f"the logical relationship between Sentence 1 and Sentence 2.\nSentence 1: {KAL_EL}\n"
        "Label: 1 (entailment)\nSentence 2:"
    )


@pytest.mark.parametrize("task", [*instructions.GUIDED_INSTRUCTION])
@pytest.mark.parametrize("form", [instructions.INSTRUCT, instructions.CONTINUE])
def test_only_the_guided_kind_names_dataset_and_split(task, form):
    said = {
        name: instructions.prompt_for(name, task, PIECE, **NAMES, other_label="0 (no)", form=form)
        for name in instructions.instructions_for(task)
    }
    assert "RTE" in said["guided"] and "train" in said["guided"]
    assert not re.search("RTE|train|WNLI|validation", said["general"])
    assert said["wrong dataset"] == said["guided"].replace("RTE", "WNLI")
    assert said["wrong split"] == said["guided"].replace("train", "validation")
    if task in instructions.LABELLED_TASKS:
        assert said["wrong label"] == said["guided"].replace("1 (entailment)", "0 (no)")
    assert all(KAL_EL in text and "{" not in text for text in said.values())


def test_braces_in_a_text_are_left_alone():
    piece = PIECE | {"first_piece": "f{label} {0}"}
    assert "f{label} {0}" in instructions.prompt_for("guided", instructions.NLI, piece, **NAMES)


def test_a_placebo_needs_another_name():
    with pytest.raises(
        ValueError, match="placebo with a wrong dataset needs a name other than 'RTE'"
    ):
        instructions.prompt_for(
            "wrong dataset", instructions.NLI, PIECE, **(NAMES | {"other_dataset": "RTE"})
        )
    assert instructions.other_labels(["b", "a", "c", "a"]) == {"a": "b", "b": "c", "c": "a"}
    assert instructions.other_labels(["a"]) == {"a": ""}


def test_a_document_begins_with_its_own_continue_prompt():
    piece = PIECE | {"second_piece": "Both are Kal-el."}
    text = instructions.document(instructions.NLI, piece, dataset="RTE", split="train")
    prompt = instructions.prompt_for("guided", instructions.NLI, piece, **NAMES, form="continue")
    assert text == prompt + " Both are Kal-el."


# Completions


def endpoint_of(server):
    return Endpoint(server.base_url, MODEL, None)


SETTINGS = {"progress": False, "limits": Limits(tries=1)}


def test_every_kind_of_completion_is_counted(log):
    def script(body, n):
        said = question(body)
        if "refuse" in said:
            return good("", refusal="I cannot share it.")
        if "empty" in said:
            return good("")
        if "broken" in said:
            return failure(500)
        if "long" in said:
            return good("word " * 5, finish_reason="length")
        return good("The cat sat on the mat.")

    with ScriptedServer(script) as server:
        requests = requests_of_prompts(["good", "refuse", "empty", "broken", "long"], PAPER_OPTIONS)
        written = completions.by_chat(endpoint_of(server), requests, log=log, **SETTINGS)
        body = server.bodies[0]
    assert (body["temperature"], body["max_tokens"]) == (0, 500)
    assert written["status"].tolist() == ["ok", "refused", "unparsable", "error", "ok"]
    pieces = pd.DataFrame({"first_piece": "x", "second_piece": "the cat sat on the mat"}, range(5))
    pieces = pieces.assign(task=instructions.SUMMARY, is_mid_sentence=True, group=range(5))
    pieces = pieces.assign(instruction="guided", benchmark="b", dataset="d", split="s", copies=None)
    scored = decisions.with_scores(completions.with_completions(pieces, written), 0.8)
    assert scored["rule"].fillna("").tolist() == ["exact", "", "inexact", "", "inexact"]
    assert scored["bleurt"].isna().all()
    (row,) = decisions.partition_rows(scored.assign(copies=0), {"rule judge": "rule"}).to_dict(
        "records"
    )
    assert (row["n"], row["n_valid"], row["n_refused"], row["n_error"]) == (5, 3, 1, 1)
    assert row["contaminated"] and row["mean"] == pytest.approx(1 / 3)


def test_a_completion_that_repeats_the_prompt_is_no_match():
    # Sentence 1 holds sentence 2 whole; only what follows the repetition counts.
    first, second = "The trophy did not fit because the trophy is too big", "the trophy is too big"
    text, is_repeated = completions.without_repetition(first, f"{first}.")
    assert (text, is_repeated) == ("", True)
    text, is_repeated = completions.without_repetition(first, f"{first}, the trophy is too big")
    assert (text, is_repeated) == ("the trophy is too big", True)
    assert completions.without_repetition(first, second) == (second, False)
    whole = f"Sentence 1: {first}\nLabel: 1\nSentence 2: {second}"
    assert completions.without_repetition(first, whole) == (second, True)
    pieces = pd.DataFrame({"first_piece": [first] * 2, "second_piece": [second] * 2})
    written = pd.DataFrame({"text": [first, second], "status": ["ok", "ok"]})
    done = completions.with_completions(pieces, written)
    scored = decisions.with_scores(done.assign(task=instructions.NLI, is_mid_sentence=False), 0.8)
    assert scored["rule"].tolist() == ["inexact", "exact"]
    assert scored["is_repeated"].tolist() == [True, False]


def test_a_reference_of_one_word_is_no_match_and_one_without_a_word_is_refused():
    pieces = pd.DataFrame({"first_piece": ["a b"], "second_piece": ["months."]})
    written = pd.DataFrame({"text": ["months."], "status": ["ok"]})
    done = completions.with_completions(pieces, written).assign(
        task=instructions.SUMMARY, is_mid_sentence=True
    )
    scored = decisions.with_scores(done, 0.8)
    assert scored["rouge"].tolist() == [1.0] and scored["rule"].tolist() == ["inexact"]
    with pytest.raises(ValueError, match="holds no word"):
        decisions.with_scores(done.assign(second_piece="..."), 0.8)


# The printed texts of Tables 4 and 5 with their printed ROUGE-L

BROMWELL = (
    "The scramble to survive financially, the insightful students who can see right through their "
    "pathetic teachers' pomp, the pettiness of the whole situation, all remind me of the schools I "
    "knew and their students. When I saw the episode in which a student repeatedly tried to burn "
    "down the school, I immediately recalled ..... at ..... High. A classic line: INSPECTOR: I'm "
    "here to sack one of your teachers. STUDENT: Welcome to Bromwell High. I expect that many "
    "adults of my age think that Bromwell High is far fetched. What a pity that it isn't!"
)
BROMWELL_GENERAL = (
    "The show is incredibly insightful, with characters that are truly believable and situations "
    "that mirror the real-life experiences in a typical high school. The humor is sharp and "
    "intelligent, making it a refreshing change from the usual sitcoms. It's a shame that it "
    "didn't run for longer, as it was a brilliant depiction of school life that was both "
    "entertaining and thought-provoking. Bromwell High is definitely a show that deserves more "
    "recognition for its realistic portrayal of the education system."
)
SOFA = "a new sofa, and he needs grey pillows."
CAGE = "Nicolas Cage's son is called Kal-el."
# Table 5 prints 0.41 for the first pair as ROUGE-L and 0.18 as BLEURT: swapped.
PRINTED = {
    "table 4, exact": (BROMWELL, BROMWELL, "1.00", "exact"),
    "table 4, near-exact": (CAGE, "Nicolas Cage's new son is named Kal-el.", "0.82", "near-exact"),
    "table 4, inexact": (
        SOFA,
        "a new car but is worried mom will be upset. Kim is advised to tell mom in a positive way, "
        "focusing on Harry's happiness.",
        "0.12",
        "inexact",
    ),
    "table 5, swapped": (BROMWELL, BROMWELL_GENERAL, "0.18", "inexact"),
    "table 5, pair": (
        CAGE,
        "Nicolas Cage's new son and Superman share the same name, Kal-el.",
        "0.57",
        "inexact",
    ),
    "table 5, summary": (SOFA, "a new car without consulting her first.", "0.27", "inexact"),
}


@pytest.mark.parametrize(
    ("reference", "candidate", "printed", "kind"), PRINTED.values(), ids=PRINTED
)
def test_printed_texts_give_their_printed_rouge(reference, candidate, printed, kind):
    found = overlap.rouge_l(reference, candidate)
    assert f"{found:.2f}" == printed
    row = {"first_piece": "x", "second_piece": reference, "completion": candidate, "status": "ok"}
    pieces = pd.DataFrame([row]).assign(task=instructions.SUMMARY, is_mid_sentence=True)
    assert decisions.with_scores(pieces, 0.8)["rule"].tolist() == [kind]


# Partitions


def scored_partition(**columns):
    guided = [0.9, 0.8, 0.7, 0.9]
    n = len(guided)
    one = pd.DataFrame({"group": range(n), "status": "ok", "is_repeated": False})
    one = one.assign(benchmark="b", task="NLI", dataset="d", split="s", copies=4, bleurt=np.nan)
    parts = [
        one.assign(instruction=name, rouge=rouge, rule=rule)
        for name, rouge, rule in (
            ("guided", guided, ["near-exact", "near-exact", "inexact", "inexact"]),
            ("general", [0.1, 0.2, 0.1, 0.2], ["near-exact", "inexact", "inexact", "inexact"]),
        )
    ]
    return pd.concat(parts, ignore_index=True).assign(**columns)


def test_both_algorithms_decide_on_a_partition_of_fewer_than_k_instances():
    table = decisions.partition_rows(scored_partition(), {"rule judge": "rule"})
    of_2 = table[table["method"] == "Algorithm 2"].set_index("instruction")
    assert of_2["contaminated"].to_dict() == {"guided": True, "general": False}
    assert of_2["n"].tolist() == [4, 4] and of_2["mean"].tolist() == [0.5, 0.25]
    of_1 = table[table["method"] == "Algorithm 1"].set_index("test")
    assert of_1.loc["paired bootstrap", "p_value"] == 0.0
    assert of_1.loc["sign flips", "p_value"] == 1 / 16  # the smallest four differences can give
    assert of_1["contaminated"].to_dict() == {"paired bootstrap": True, "sign flips": False}
    assert of_1["mean_guided"].tolist() == pytest.approx([0.825, 0.825])


def test_algorithm_1_compares_the_instances_answered_under_both_instructions():
    scored = scored_partition()
    is_gone = scored["instruction"].eq("general") & scored["group"].eq(0)
    scored.loc[is_gone, ["status", "rouge", "rule"]] = ["refused", np.nan, None]
    table = decisions.partition_rows(scored, {"rule judge": "rule"})
    row = table[table["test"] == "sign flips"].iloc[0]
    assert (row["n_valid"], row["n_refused"], row["p_value"]) == (3, 1, 1 / 8)
    assert [row["mean_guided"], row["mean"]] == pytest.approx([0.8, 0.5 / 3])


def test_a_partition_without_any_answer_has_empty_cells():
    gone = scored_partition(status="refused", rouge=np.nan, rule=None)
    table = decisions.lab_table([decisions.partition_rows(gone, {"rule judge": "rule"})], "m", 0)
    assert table["n_valid"].eq(0).all() and table["n_refused"].eq(4).all()
    assert table["mean"].isna().all() and table["contaminated"].isna().all()


def test_bleurt_rows_appear_where_it_was_computed():
    with_bleurt = scored_partition(bleurt_by="a package").assign(bleurt=lambda t: t["rouge"])
    table = decisions.partition_rows(with_bleurt, {"rule judge": "rule"})
    named = table[table["method"] == "Algorithm 1"].set_index("metric")["bleurt_by"]
    assert named.to_dict() == {"ROUGE-L": "", "BLEURT": "a package"}


def test_lab_partitions_are_disjoint_and_their_names_dealt():
    table = decisions.lab_instances([0, 2, 4], 4, seed=1)
    originals = table[table["option"] == 0]
    assert len(originals) == 3 * 3 * 4 and originals["document"].is_unique
    for _, part in originals.groupby("benchmark"):
        assert part.groupby("dataset")["copies"].nunique().eq(1).all()
        assert part["dataset"].nunique() == 3
    assert (
        originals["second_piece"].map(lambda text: len(overlap.words(text))) >= decisions.MIN_WORDS
    ).all()
    doses = decisions.lab_doses(table, seed=1)
    assert [(len(dose.texts), dose.copies) for dose in doses] == [(240, 1), (12, 2), (12, 4)]
    dosed = {text for dose in doses for text in dose.texts}
    clean = originals.loc[originals["copies"] == 0, "document"]
    assert dosed.isdisjoint(clean)
    asked = decisions.lab_prompts(table)
    assert len(asked) == 36 * 5
    guided = asked[asked["instruction"] == "guided"]
    assert all(row.document.startswith(row.prompt) for row in guided.itertuples())


@pytest.mark.parametrize("copies", [[1, 2], [0, 0], [0] * 25 + [1], [-1, 0, 2]])
def test_a_lab_without_clean_or_without_contaminated_partitions_is_refused(copies):
    with pytest.raises(ValueError, match="copies must hold 0 and a positive number"):
        decisions.lab_instances(copies, 2, seed=0)


# Did-ChatGPT-Cheat?

FIRST = ["Two dogs were saved from a fire in York.", "A park has opened in Bath after 9 months."]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("1. two dogs were saved from a  fire in York\n2. ...", "contaminated"),
        ("A park has opened in Bath after 8 months.", "contaminated"),  # 8 of 9 words
        ("Here you are:\n0 (World), some text", "suspicious"),
        ("I cannot share the dataset.", "not contaminated"),
        ("", "not contaminated"),
    ],
)
def test_the_three_outcomes_by_rule(text, outcome):
    assert algorithms.outcome(text, FIRST, ["0 (World)"], 0.8) == outcome


def test_an_outcome_needs_an_instance_to_compare_with():
    with pytest.raises(ValueError, match="no first instance of at least 4 words"):
        algorithms.outcome("x", ["Too short."], [], 0.8)


# Operating curves


def test_flag_probability_by_hand_and_by_simulation():
    assert flag_probability(10, 0.0, 0.0, 0.5) == 0.0
    assert flag_probability(2, 1.0, 0.0, 0.0) == 1.0  # two near-exact replicas
    assert flag_probability(3, 0.5, 0.0, 1.0) == pytest.approx(1 - 0.5**3)
    # Two errors of a judge on clean completions: 1 - 0.9^3 - 3 x 0.1 x 0.9^2.
    assert flag_probability(3, 0.0, 0.1, 0.5) == pytest.approx(0.028)
    rng = np.random.default_rng(0)
    share, error, exact = 0.1, 0.05, 0.4
    replica = rng.random((40_000, 10)) < share
    is_wrong = rng.random(replica.shape) < error
    is_exact = replica & ~is_wrong & (rng.random(replica.shape) < exact)
    is_near = (replica ^ is_wrong) & ~is_exact
    flagged = is_exact.any(axis=1) | (is_near.sum(axis=1) >= 2)
    assert flagged.mean() == pytest.approx(flag_probability(10, share, error, exact), abs=0.01)
