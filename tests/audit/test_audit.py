"""An audit of one's own model and dataset: what is asked, what it costs, what may be concluded."""

import json
import re

import pandas as pd
import pytest
from notebook_files import ROOT
from scripted_server import MODEL, Reply, ScriptedServer, good, question
from tiny_models import tiny_llama
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from contamination.audit import auditing, internals, local_models, options, plan
from contamination.audit.finding import Target
from contamination.audit.instrument import TEXTS
from contamination.audit.settings import Settings
from contamination.core.parameters import ParameterError
from contamination.core.verdicts import NOT_RUN, OPEN, SHOWN
from contamination.dcq.quizzes import OPTION_COLUMNS, quizzes_of_groups
from contamination.lab.grammar import BENCHMARKS, draw_groups
from contamination.models import local
from contamination.models.chat import ChatError
from contamination.models.local import load_causal_lm
from contamination.replication import completions
from contamination.replication.instructions import INSTRUCT

SAMPLE, UNSEEN = "params/audit/sample.jsonl", "params/audit/unseen.jsonl"
LOCAL = {"names": ["lab:clean"]}
SERVED = {"names": ["a"], "base_url": "http://127.0.0.1:9/v1"}


def table_of(audit, found):
    """``audit.csv``, by method."""
    return auditing.tables_of(audit, found, {})["audit"].set_index("method")


def says(audit, found):
    (decided,) = auditing.decide_all(audit, found, {}).values()
    return decided.says


def written(path, records):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records))
    return str(path)


def prepared(
    dataset=SAMPLE, comparison=UNSEEN, model=LOCAL, n=8, n_passages=8, blocks=None, **data
):
    """An audit; ``blocks`` are further parameters of notebook 10, such as methods and dcq."""
    values = {"model": model, "data": {"dataset": dataset, **data}, "comparison": comparison}
    values |= {"n_instances": n, "n_passages": n_passages, "n_resamples": 50}
    return auditing.prepare(Settings.read(values | (blocks or {}), "parameters"))


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory):
    """An untrained model that reads any bytes."""
    folder = tmp_path_factory.mktemp("tiny") / "tiny-model"
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {letter: place for place, letter in enumerate(sorted(alphabet))}
    tokenizer = Tokenizer(models.BPE(vocabulary | {"<s>": 256, "</s>": 257}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    tiny_llama(fast, context=2048).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


# The rows


N_ROWS = 60


def sample_lines(name: str) -> str:
    """How ``params/audit/sample.jsonl`` and ``unseen.jsonl`` were made: text, label and options.

    One draw is dealt to both in turn within each pattern of the grammar, so that they
    differ in no topic. Options are interchangeable with their originals, so a model that
    has read none of the rows finds them by chance alone.
    """
    benchmark = BENCHMARKS[local_models.SAMPLE_BENCHMARK]
    groups = draw_groups(benchmark, 2 * N_ROWS, 10, "test")
    originals = groups[groups["option"] == 0].set_index("group")
    quizzes = quizzes_of_groups(groups, benchmark.columns).set_index("index")
    in_turn = originals.sort_values("template", kind="stable").index
    dealt = sorted(in_turn[::2] if name == "sample" else in_turn[1::2])
    rows = [
        {column: originals.loc[group, column] for column in benchmark.columns}
        | {column: quizzes.loc[group, column] for column in OPTION_COLUMNS}
        for group in dealt
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_the_sample_is_what_its_grammar_gives_and_its_halves_share_no_row():
    texts = {}
    for name in ("sample", "unseen"):
        lines = (ROOT / "params/audit" / f"{name}.jsonl").read_text()
        assert lines == sample_lines(name)
        texts[name] = {json.loads(line)["text"] for line in lines.splitlines()}
        assert len(texts[name]) == N_ROWS
    assert not texts["sample"] & texts["unseen"]


def test_rows_that_no_method_can_use_are_left_out_and_counted(tmp_path):
    text = "A harbour town opened its {}th bridge today."
    records = [{"text": text.format(n), "label": "a"} for n in range(6)]
    records += [records[0], records[1], {"text": "", "label": "a"}, {"text": None, "label": "b"}]
    records += [{"text": "too short", "label": "a"}, {"text": text.format(9), "label": None}]
    audit = prepared(written(tmp_path / "own.jsonl", records), "")
    left_out = {"n_empty": 2, "n_short": 1, "n_unlabelled": 1, "n_repeated": 2, "n_shared": 0}
    assert audit.rows.counts == {"n_rows": 12, **left_out, "n": 6}
    shown = auditing.rows_table(audit).to_dict("records")
    assert shown == [{"file": "dataset"} | audit.rows.counts]


def test_comparison_rows_that_the_dataset_holds_too_are_left_out(tmp_path):
    known = [json.loads(line) for line in (ROOT / SAMPLE).read_text().splitlines()]
    others = [json.loads(line) for line in (ROOT / UNSEEN).read_text().splitlines()]
    path = written(tmp_path / "mixed.jsonl", known[:3] + others[:5])
    audit = prepared(SAMPLE, path, n=60)
    assert audit.unseen.counts["n_shared"] == 3
    assert audit.unseen.counts["n"] == 5


def test_a_large_file_is_sampled(tmp_path):
    records = ({"text": f"Ship number {n} came in.", "label": n % 2} for n in range(20_000))
    audit = prepared(written(tmp_path / "large.jsonl", records), "", n=8, n_passages=40)
    assert audit.rows.counts["n_rows"] == 20_000
    assert len(audit.rows.rows) == 40
    assert len(audit.quizzed[0].rows) == 8
    # A random sample, also in its first rows.
    assert audit.rows.rows["index"].head(8).max() > 1_000
    again = prepared(str(tmp_path / "large.jsonl"), "", n=8, n_passages=40)
    pd.testing.assert_frame_equal(again.rows.rows, audit.rows.rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text_columns": ["txt"]}, 'no column "txt" (did you mean "text"?)'),
        ({"label_column": "lable"}, 'no column "lable" (did you mean "label"?)'),
        ({"dataset": "nowhere.jsonl"}, 'no file "nowhere.jsonl"'),
        ({"dataset": ""}, "data names no dataset"),
        ({"task": "parsing"}, "want classification or NLI"),
        ({"task": "NLI"}, "NLI needs 2 text_columns"),
        ({"names": ["Harbour Notes", "test"]}, "two that both differ from names"),
        ({"label_names": ["0 (a)"]}, "label_names has 1 names, for 0 to 0"),
        ({"label_names": ["a"], "label_column": ""}, "fill in label_column"),
        ({"colums": []}, 'data: unknown name "colums"'),
    ],
)
def test_data_that_does_not_fit_is_one_line(change, message):
    data = {"dataset": SAMPLE} | change
    with pytest.raises((ValueError, FileNotFoundError, ParameterError)) as caught:
        prepared(comparison="", **data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_few_usable_rows_and_labels_that_are_all_missing_are_said(tmp_path):
    few = [{"text": "A harbour town by the sea.", "label": "a"}] * 9
    with pytest.raises(ValueError, match=r"has 1 usable rows of 9 \(.*repeated 8"):
        prepared(written(tmp_path / "few.jsonl", few), "")
    bare = [
        {"text": f"The children tried to buy small car number {n}.", "label": ""} for n in range(9)
    ]
    path = written(tmp_path / "bare.jsonl", bare)
    with pytest.raises(ValueError, match='is empty in every row: set label_column to ""'):
        prepared(path, "")
    audit = prepared(path, "", label_column="")
    assert "label_column is empty" in audit.reasons[plan.REPLICATION]
    assert not audit.reasons[plan.DCQ]


# Options


def test_options_by_rule_are_distinct_and_keep_all_other_words():
    text = "The children tried to buy a small car."
    found = options.by_rule(text, 4, 0)
    assert found == options.by_rule(text, 4, 0)
    assert len({text, *found}) == 5
    assert all(re.fullmatch(r"The \w+ \w+ to \w+ a \w+ \w+\.", option) for option in found)
    assert options.by_rule("El niño compró una casa.", 4, 0) == []


def test_rows_without_options_are_left_out_and_too_few_are_an_error(tmp_path):
    texts = [f"The children tried to buy a small car on day {n}." for n in range(5)]
    texts += ["El niño compró una casa en la ciudad."]
    records = [{"text": text, "label": "a"} for text in texts]
    audit = prepared(written(tmp_path / "own.jsonl", records), "")
    quizzes = options.quizzes_of(audit.rows, audit.told)[0]
    assert len(quizzes) == 5
    assert quizzes[["instance", *OPTION_COLUMNS]].nunique(axis=1).eq(5).all()
    assert quizzes["option_a"].str.endswith("\nlabel: a").all()
    spanish = [{"text": f"El niño compró la casa número {n}.", "label": "a"} for n in range(6)]
    audit = prepared(written(tmp_path / "es.jsonl", spanish), "")
    with pytest.raises(ValueError, match="0 of 6 rows have four distinct options made by a rule"):
        options.quizzes_of(audit.rows, audit.told)


def test_the_plan_asks_quizzes_of_the_rows_that_have_options(tmp_path):
    known = [f"The children tried to buy a small car on day {n}." for n in range(5)]
    unknown = [f"El niño compró la casa número {n} de la calle." for n in range(55)]
    of_endpoint = endpoint("http://127.0.0.1:9/v1")
    for texts, n_quizzes in ((known + unknown, 5), (unknown, 0)):
        place = written(tmp_path / f"{n_quizzes}.jsonl", [{"text": t, "label": "a"} for t in texts])
        audit = prepared(place, "", model=of_endpoint, n=60)
        cost = plan.plan_table(audit).set_index("method")
        said, allow = plan.announce_audit(audit), f"which {n_quizzes} of {len(texts)} rows"
        n_calls = cost["n_calls"].fillna(0)
        assert n_calls[plan.DCQ] == plan.N_QUIZZES * n_quizzes
        assert (allow in said) == bool(n_quizzes)
        for method in (plan.DCQ, plan.RANKING):
            why = audit.reasons[method]
            assert ("0 of 55 rows have four distinct options" in why) == (not n_quizzes)
    assert not cost.loc[plan.DCQ, "is_run"]


def test_given_options_that_repeat_one_another_are_left_out(tmp_path):
    records = [json.loads(line) for line in (ROOT / SAMPLE).read_text().splitlines()[:6]]
    records[0]["option_b"] = records[0]["option_a"]
    audit = prepared(written(tmp_path / "own.jsonl", records), "")
    assert len(options.quizzes_of(audit.rows, audit.told)[0]) == 5


# Access, plan, cost


def endpoint(server_url, **changes):
    return {"names": [MODEL], "base_url": server_url, "key_variable": ""} | changes


def test_methods_follow_the_access():
    def run(audit):
        return [name for name, why in audit.reasons.items() if not why]

    black_box = prepared(model=endpoint("http://127.0.0.1:9/v1"))
    # Two of them if the probe finds log-probabilities, which only a run can say.
    assert run(black_box) == [
        plan.DCQ,
        plan.REPLICATION,
        plan.RANKING,
        plan.MIN_K,
    ]
    assert black_box.probed == [plan.RANKING, plan.MIN_K]
    weights = prepared()
    assert run(weights) == list(plan.METHODS)
    assert weights.probed == []
    alone = prepared(comparison="", model=endpoint("http://127.0.0.1:9/v1"))
    assert alone.reasons[plan.MIN_K] == plan.NO_COMPARISON
    assert alone.probed == [plan.RANKING]


def test_a_dry_run_says_calls_tokens_and_cost_and_asks_nothing():
    with ScriptedServer(lambda body, n: good("A")) as server:
        model = endpoint(server.base_url, prices=[2.0, 8.0], price_date="2025-01-31", cost_cap=1.0)
        audit = prepared(model=model, n=5, n_passages=5)
        said = plan.announce_audit(audit)
        found = auditing.findings_of(audit, Target(MODEL, None))
        table = table_of(audit, {MODEL: found})
        assert not server.bodies
    # Five rows of either: the quiz with the original nowhere and at four places, at most.
    cost = plan.plan_table(audit).set_index("method")
    assert cost.loc[plan.DCQ, "n_calls"] == 2 * 5 * 5
    # Five instructions on the dataset, one on unseen rows.
    assert cost.loc[plan.REPLICATION, "n_calls"] == 5 * 5 + 5
    n_in, n_out, price = cost.loc[plan.DCQ, ["input_tokens", "output_tokens", "cost"]]
    assert price == pytest.approx((2 * n_in + 8 * n_out) / 1e6)
    assert "50 requests: 0 in the log, 50 to ask" in said
    assert "cap 1.00" in said
    assert table["verdict"].eq(NOT_RUN).all()
    assert table["note"].str.contains("dry run").sum() == 4
    # What depends on the address is counted, and said to depend on it.
    assert cost.loc[plan.PROBE, "n_calls"] == 2 and cost.loc[plan.MIN_K, "n_calls"] == 10
    assert "Min-k% Prob: will be run if the address gives log-probabilities of prompts" in said


def test_what_is_missing_is_one_line_before_anything_is_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    for changes, message in [
        ({"key_variable": "NO_SUCH_KEY"}, "NO_SUCH_KEY is not set"),
        ({"cost_cap": 1.0}, "no price for"),
        ({}, "nothing answers at http://127.0.0.1:9/v1"),
    ]:
        audit = prepared(model=endpoint("http://127.0.0.1:9/v1", **changes))
        with pytest.raises((ChatError, ValueError), match=message) as caught:
            plan.check_ready(audit.told)
        assert "\n" not in str(caught.value)
    audit = prepared(model={"names": [str(tmp_path / "nowhere")]})
    with pytest.raises(FileNotFoundError, match="there is no folder or file"):
        plan.check_ready(audit.told)
    audit = prepared(model={"names": ["lab:dirty"]})
    with pytest.raises(ValueError, match='no model is called "lab:dirty"'):
        plan.check_ready(audit.told)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({}, "model names nothing to audit"),
        ({"names": ["a", "a"]}, "want distinct"),
        (SERVED | {"prices": [1.0]}, "prices must list an input and an output price"),
        (SERVED | {"prices": [1.0, 2.0]}, "with their price_date"),
        ({"names": ["a"], "prices": [1.0, 2.0]}, "model: prices would not be used"),
        ({"names": ["lab:clean"], "base_url": "http://127.0.0.1:9/v1"}, "leave base_url empty"),
        ({"names": ["a"], "nmes": []}, 'model: unknown name "nmes"'),
    ],
)
def test_a_model_that_does_not_fit_is_one_line(model, message):
    with pytest.raises((ValueError, ParameterError)) as caught:
        prepared(model=model)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# The methods, end to end


def knowing_script(known):
    """A model that knows these instances and picks E and writes stock words elsewhere."""

    def script(body, n):
        asked = question(body)
        if {"echo", "prompt_logprobs"} & set(body):  # it gives no log-probabilities
            return good("x")
        if "five-choice quiz" in asked:
            for letter, text in zip("ABCD", re.split(r"\n[A-E]\) ", asked)[1:5], strict=True):
                if text.strip() in known:
                    return good(letter)
            return good("E")
        first = re.search(r"First Piece: (.*)\n", asked)[1]
        texts = [instance.partition("text: ")[2].partition("\n")[0] for instance in known]
        return good(next((text for text in texts if text.startswith(first)), "and so it went on."))

    return script


def findings_of(audit, base_url):
    target = auditing.target_of(audit, MODEL)
    assert target.place.base_url == base_url
    return {MODEL: auditing.findings_of(audit, target)}


def test_a_model_that_knows_the_rows_is_recognised():
    with ScriptedServer(lambda body, n: script(body, n)) as server:
        audit = prepared(model=endpoint(server.base_url), n=24, n_passages=24)
        script = knowing_script(audit.rows.instances)
        found = findings_of(audit, server.base_url)
    table = table_of(audit, found)
    assert table.loc[[plan.DCQ, plan.REPLICATION], "verdict"].eq(SHOWN).all()
    assert table.loc[[plan.DCQ, plan.REPLICATION], "value"].eq(1).all()
    assert table.loc[plan.DCQ, "n_at_least"] >= 20
    assert "gives no log-probabilities" in table.loc[plan.MIN_K, "note"]
    said = says(audit, found)
    assert said.startswith(f"{MODEL}: shown. At least 2")
    assert "of 24 rows of sample.jsonl" in said


def test_exchanged_files_are_said_to_be():
    """The model knows the comparison rows, so the suspected ones score lower."""
    with ScriptedServer(lambda body, n: script(body, n)) as server:
        audit = prepared(model=endpoint(server.base_url), n=24, n_passages=24)
        script = knowing_script(audit.unseen.instances)
        found = findings_of(audit, server.base_url)
    assert table_of(audit, found).loc[plan.DCQ, "verdict"] == OPEN
    assert says(audit, found).endswith("are the two files exchanged?")


REFUSAL = "I cannot help with that."


@pytest.mark.parametrize("answer", ["", REFUSAL])
def test_no_answer_is_not_a_wrong_answer(answer):
    """A reasoning model whose content is empty, or the same refusal every time."""
    with ScriptedServer(lambda body, n: good(answer)) as server:
        audit = prepared(model=endpoint(server.base_url), n=24, n_passages=24)
        found = findings_of(audit, server.base_url)
    table = table_of(audit, found)
    assert table.loc[[plan.DCQ, plan.REPLICATION], "verdict"].eq(NOT_RUN).all()
    row = table.loc[plan.REPLICATION]
    n_guided, n_all = 24 * 2, 24 * 6  # both files; the dataset under five instructions
    assert row["n_unusable"] == (n_guided if answer else n_all)
    assert row["n_valid"] == n_all - row["n_unusable"]
    assert says(audit, found).startswith(f"{MODEL}: not run.")


def test_an_address_that_echoes_log_probabilities_gets_the_methods_that_need_them(capsys):
    def script(body, n):
        if "echo" not in body:
            return knowing_script(known)(body, n)
        tokens = body["prompt"].split()
        value = -0.5 if any(text in body["prompt"] for text in (*texts, *TEXTS)) else -4.0
        choice = {"text": " x", "finish_reason": "length"}
        logs = [None, *[value - 0.01 * place for place in range(len(tokens))]]
        choice["logprobs"] = {"tokens": [*tokens, " x"], "token_logprobs": logs}
        usage = {"prompt_tokens": len(tokens), "completion_tokens": 1}
        return Reply({"model": MODEL, "choices": [choice], "usage": usage})

    with ScriptedServer(script) as server:
        audit = prepared(model=endpoint(server.base_url), n=24, n_passages=24)
        known, texts = audit.rows.instances, audit.rows.passages
        cost = plan.plan_table(audit).set_index("method")
        found = findings_of(audit, server.base_url)
        # What was said to be asked is what was asked, at most.
        assert plan.announce_audit(audit).count(", 0 to ask") == 3
    assert capsys.readouterr().out == (
        f"{MODEL}: the address gives log-probabilities of prompts by echo\n"
    )
    assert cost.loc[plan.MIN_K, "n_calls"] == 48
    table = table_of(audit, found)
    assert table.loc[plan.MIN_K, ["verdict", "value"]].tolist() == [SHOWN, 1]
    assert table.loc[plan.RANKING, "verdict"] == SHOWN


def test_nothing_is_sent_where_the_cap_has_no_room_for_the_probe():
    with ScriptedServer(lambda body, n: good("A")) as server:
        priced = {"prices": [2.0, 8.0], "price_date": "2025-01-31", "cost_cap": 1e-9}
        audit = prepared(model=endpoint(server.base_url, **priced))
        with pytest.raises(ChatError, match="the cap of 1e-09 is reached"):
            findings_of(audit, server.base_url)
        assert not server.bodies


def test_a_perturber_writes_the_options_and_a_judge_reads_the_completions(tmp_path):
    words = ["ancient", "modern", "narrow", "wooden"]
    bridge = "The town of {} opened its bridge on a {} morning, and all of it came to look at it."

    def script(body, n):
        asked = question(body)
        if "four-choice quiz" in asked:
            town = re.search(r"text: The town of (\S+) opened", asked)[1]
            options_ = [bridge.format(town, word) for word in words]
            return good("\n".join(f"{a}) text: {b}" for a, b in zip("ABCD", options_, strict=True)))
        if "reference text" in asked:
            return good("Yes (exact match)")
        return knowing_script(known)(body, n)

    records = [{"text": bridge.format(f"Old-{n}", "sunny"), "label": "a"} for n in range(6)]
    path = written(tmp_path / "own.jsonl", records)
    with ScriptedServer(script) as server:
        perturber = {"model": MODEL, "base_url": server.base_url, "key_variable": ""}
        blocks = {"dcq": {f"perturber_{name}": value for name, value in perturber.items()}}
        blocks["replication"] = {f"judge_{name}": value for name, value in perturber.items()}
        audit = prepared(path, "", endpoint(server.base_url), 6, 6, blocks)
        known = audit.rows.instances
        assert set(plan.plan_table(audit)["method"]) >= {"options of the quizzes", "ICL judge"}
        found = findings_of(audit, server.base_url)
    assert found[MODEL][plan.DCQ].scores["score"].eq(1).all()
    assert table_of(audit, found)["verdict"].isin([OPEN, NOT_RUN]).all()


def test_a_model_that_refuses_a_temperature_is_sent_none():
    address = "http://127.0.0.1:9/v1"
    by = {"has_temperature": False, "limit_option": "max_completion_tokens"}
    judge = {"replication": {"judge_model": MODEL, "judge_base_url": address}}
    audit = prepared(model=endpoint(address, **by), blocks=judge)
    batches = plan.batches_of(audit, audit.told.endpoints[0])[:3]
    sent = [set(who.options | one.options) for _, who, requests, _ in batches for one in requests]
    assert [name for name, *_ in batches] == ["DCQ", "replication", "ICL judge"]
    assert all("temperature" not in names and "max_tokens" not in names for names in sent)
    assert all("max_completion_tokens" in names for names in sent)


def test_without_comparison_rows_no_verdict_is_above_open():
    """A model that knows the rows by heart is not told from one that guesses well."""
    with ScriptedServer(lambda body, n: script(body, n)) as server:
        audit = prepared(comparison="", model=endpoint(server.base_url), n=12, n_passages=12)
        script = knowing_script(audit.rows.instances)
        found = findings_of(audit, server.base_url)
    table = table_of(audit, found)
    assert table.loc[[plan.DCQ, plan.REPLICATION], "verdict"].eq(OPEN).all()
    assert table.loc[plan.MIN_K, "verdict"] == NOT_RUN
    assert table.loc[plan.MIN_K, "note"] == plan.NO_COMPARISON
    assert "Without comparison rows nothing can be shown: name rows" in says(audit, found)


def test_comparison_rows_of_the_sample_are_for_the_sample_alone(tmp_path):
    records = [{"text": f"My row number {n} of this file", "label": n} for n in range(9)]
    mine = written(tmp_path / "mine.jsonl", records)
    with pytest.raises(ValueError, match="belongs to our sample: name rows of your own"):
        prepared(mine)
    prepared(mine, "")


def test_two_models_of_one_name_are_refused_before_anything_is_asked(tmp_path):
    names = [str(tmp_path / folder / "final") for folder in ("run1", "run2")]
    with pytest.raises(ValueError, match='two models would both be called "final" in the tables'):
        prepared(model={"names": names})


def test_a_model_that_knows_nothing_is_open_and_not_called_clean():
    with ScriptedServer(lambda body, n: knowing_script([])(body, n)) as server:
        audit = prepared(model=endpoint(server.base_url), n=24, n_passages=24)
        found = findings_of(audit, server.base_url)
    assert set(table_of(audit, found)["verdict"]) <= {OPEN, NOT_RUN}
    assert "no sign that it is clean" in says(audit, found) or "not run" in says(audit, found)


def test_a_model_that_refuses_gives_no_verdict_and_is_counted():
    with ScriptedServer(lambda body, n: good("", refusal="no")) as server:
        audit = prepared(model=endpoint(server.base_url), n=6, n_passages=6)
        table = table_of(audit, findings_of(audit, server.base_url))
    assert table.loc[[plan.DCQ, plan.REPLICATION], "verdict"].eq(NOT_RUN).all()
    assert table.loc[plan.DCQ, "n_valid"] == 0
    assert table.loc[plan.REPLICATION, "n_refused"] == 36
    assert "answers unusable (refused" in table.loc[plan.DCQ, "note"]


@pytest.fixture
def unchecked(monkeypatch):
    """An untrained model prefers no text, so the instrument would be refused."""
    monkeypatch.setattr(internals.instrument, "why_unsound", lambda log_probs: "")


def test_an_untrained_model_is_refused_for_what_reads_log_probabilities(tiny_folder):
    audit = prepared(model={"names": [str(tiny_folder)]}, n=6, n_passages=6)
    target = auditing.target_of(audit, str(tiny_folder))
    found = auditing.findings_of(audit, target)
    for method in (plan.MIN_K, plan.RANKING):
        assert "do not prefer known texts" in found[method].why_not


@pytest.mark.usefixtures("unchecked")
def test_a_local_model_runs_every_method(tiny_folder):
    model = {"names": [str(tiny_folder)]}
    audit = prepared(model=model, n=6, n_passages=6)
    plan.check_ready(audit.told)
    target = auditing.target_of(audit, str(tiny_folder))
    assert target.name == "tiny-model"
    found = auditing.findings_of(audit, target)
    table = auditing.tables_of(audit, {target.name: found}, {target.name: target})["audit"]
    table = table.set_index("method")
    assert not table["verdict"].isin([SHOWN]).any()
    assert table.loc[[plan.MIN_K, plan.RANKING, plan.DCQ], "verdict"].eq(OPEN).all()
    assert table["bos"].eq("none").all()
    other = prepared(model=model | {"bos": "first"}, n=6, n_passages=6)
    assert auditing.target_of(other, str(tiny_folder)).place.begin == [256]


def test_a_template_that_begins_with_bos_gets_no_second_one(tiny_folder, monkeypatch):
    """Llama's and Mistral's templates print the token that their files also ask for."""
    lm = load_causal_lm(tiny_folder, bos=True)
    message = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    lengths = []
    monkeypatch.setattr(local, "refuse_longer", lambda lm, n, what: lengths.append(n))
    for template in (message, "{{ bos_token }}" + message):
        lm.tokenizer.chat_template = template
        completions.by_local_model(lm, ["abc"], 2, INSTRUCT)
    assert lengths == [1 + 3 + 2] * 2


CHINESE = "第{}艘船今天早上从港口出发,前往南方的一座大城市,船上有很多乘客。"
SPANISH = "El barco número {} salió del puerto por la mañana hacia una gran ciudad del sur."
MARKUP = "<script>alert({})</script> <b>The</b> children tried to buy a small car & left."


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("text", [CHINESE, SPANISH, MARKUP], ids=["Chinese", "Spanish", "markup"])
def test_twelve_rows_in_any_script_work_or_say_why_not(tiny_folder, tmp_path, text):
    both = []
    for name, start in (("own", 10), ("other", 50)):  # numbers of two digits: one length
        records = [{"text": text.format(start + n), "label": n % 2} for n in range(12)]
        both.append(written(tmp_path / f"{name}.jsonl", records))
    audit = prepared(*both, model={"names": [str(tiny_folder)]})
    target = auditing.target_of(audit, str(tiny_folder))
    found = auditing.findings_of(audit, target)
    table = table_of(audit, {target.name: found})
    assert table.loc[plan.MIN_K, "verdict"] != NOT_RUN
    assert not found[plan.REPLICATION].why_not
    is_english = text == MARKUP
    assert (table.loc[plan.DCQ, "verdict"] != NOT_RUN) == is_english
    if not is_english:
        assert "made by a rule, and at least 4 are needed" in table.loc[plan.DCQ, "note"]
    # Equal texts count as equal in any script.
    scored = found[plan.REPLICATION].details
    assert scored["second_piece"].str.len().gt(0).all()
