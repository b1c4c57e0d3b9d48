"""Whatever comes in, a parser gives a value or one line, never a traceback.

``pytest tests/core/test_untrusted.py --hypothesis-profile=long`` looks further.
"""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from notebook_files import ROOT

from contamination.cases.unlearning_judge import with_judge
from contamination.core.keys import one_line, visible
from contamination.core.overlap import rouge_l
from contamination.core.parameters import (
    ParameterError,
    checked_parameters,
    declared_in,
    load_parameter_file,
)
from contamination.data import partitions
from contamination.dcq.quizzes import parse_options
from contamination.dcq.respondents import read_letter
from contamination.dice.answers import parse_answer, parse_released
from contamination.models import judging
from contamination.models.chat import STATUSES, Price, read_response
from contamination.models.exchange import REPLAYED, cost_of
from contamination.models.prompt_log_probs import FORMS, log_probs_in
from contamination.models.response_log import _json
from contamination.wikimia.pages import from_html, is_redirect
from contamination.wikimia.wiki import Wiki, WikiError

PRICE = Price(1.0, 1.0, "2024-01-31")
BODY = {"prompt": "who?", "max_tokens": 5}
# Texts near the form that a parser waits for find more than texts at random.
near = lambda *pieces: st.lists(  # noqa: E731
    st.one_of(st.sampled_from(pieces), st.text(max_size=4)), max_size=12
).map("".join)
with_halves = st.text(st.characters(exclude_categories=()), max_size=20)
numbers = st.one_of(st.integers(), st.floats(), st.just(10**400), st.booleans(), st.none())
values = st.recursive(
    st.one_of(numbers, with_halves),
    lambda inside: st.one_of(
        st.lists(inside, max_size=3), st.dictionaries(with_halves, inside, max_size=3)
    ),
    max_leaves=6,
)


def form(**fields):
    """An object with some of these fields, each as it should be or anything else."""
    return st.fixed_dictionaries({}, optional={k: st.one_of(v, values) for k, v in fields.items()})


messages = form(content=with_halves, refusal=with_halves)
entries = st.dictionaries(
    st.sampled_from(["1", "2"]), form(logprob=numbers, decoded_token=with_halves), max_size=2
)
scored = {
    "prompt_logprobs": st.lists(st.one_of(st.none(), entries), max_size=4),
    "prompt_token_ids": st.lists(st.sampled_from([1, 2]), max_size=4),
}
log_probs = form(
    token_logprobs=st.lists(st.one_of(numbers, st.just(-1.0)), max_size=4),
    tokens=st.lists(with_halves, max_size=4),
)
choices = form(
    message=messages, text=with_halves, logprobs=log_probs, finish_reason=with_halves, **scored
)
responses = form(
    choices=st.lists(choices, max_size=2),
    usage=form(prompt_tokens=st.integers(), completion_tokens=st.integers()),
    error=form(message=with_halves, code=st.just("content_filter")),
    model=with_halves,
    **scored,
)


def is_one_line(text):
    return "\n" not in text and visible(text) == text


@given(responses)
def test_a_response_is_an_answer_of_known_status(response):
    answer = read_response(response)
    assert answer.status in STATUSES
    assert is_one_line(answer.detail)
    assert is_one_line(answer.model)
    answer.text.encode()
    assert 0 <= cost_of(BODY, response, PRICE) <= 2e3
    # Compared as JSON: NaN equals nothing, and two halves of a letter come back as one letter.
    assert _json(json.loads(_json(response))) == _json(response)
    read_letter(answer)
    judged = with_judge(pd.DataFrame({"reference": ["a"]}), [answer])
    assert judged["judge"].isna().all() or judged["judge"].between(1, 5).all()


@given(responses)
def test_log_probabilities_are_finite_or_there_are_none(response):
    if read_response(response).status in REPLAYED:
        for one in FORMS:
            with contextlib.suppress(ValueError):
                assert np.isfinite(log_probs_in(response, form=one, text="a b")).all()


@given(near("A", "B)", "Answer: ", "the ", "Yes (near-exact match)", "No", ".", "\n", "SCORE: 5"))
def test_answers_of_judges_and_quizzes(text):
    assert judging.parse_label(text)[0] in (None, *judging.LABEL_OF_ANSWER.values())
    answer = read_response({"choices": [{"message": {"content": text}}]}, may_be_cut=True)
    letter, status = read_letter(answer)
    assert letter in ("", *"ABCDE")
    assert status in STATUSES
    assert 0 <= rouge_l("the cat sat on the mat", text) <= 1


@given(near("A)", "B)", "\n", "text:", "ſentence:", "sentence: ", "SENTİNCE:", "- - -", "label:"))
@example("A) ſentence: one\nB) sentence: two")
def test_options_of_a_quiz(text):
    for columns in (["text"], ["sentence", "text", "label"], ["Sentince", "text"]):
        options = parse_options(text, columns, ["label"])
        assert len(options) == 4
        assert all(one is None or all(one.values()) for one in options)


@given(near("####", "1", "-", ",", ".", "٣", "²", "$", "\n", "9" * 400))
def test_answers_to_word_problems(text):
    for parse in (parse_answer, parse_released):
        assert isinstance(parse(text), (float, type(None)))


# Files

JSONL = near('{"text": "a"}\n', '"a"', "{", "}", "[", "]", '"', "\\ud800", ":", ",", "1", "\n")
CSV = near("text,label\n", "a,1\n", '"', ",", "\n", "\r", "\0", "text", "\t")
YAML = near("a: 1\n", "b: [1, 2]\n", "a: ", "{", "}", "[", "]", "&x ", "*x", "- ", "? ", "!!int ")
YAML |= near("!!timestamp ", "2023-02-30", "<<: ", "!!python/name:os.system ", "0x", "9" * 5000)
YAML |= near("!!binary ", "!!set ", "!!omap ", "%TAG ! !", "\n---\n", "|", ">", "'", '"\\ud800"')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def read_file(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    try:
        rows = partitions.load_rows(str(path))
    except ValueError as error:
        assert is_one_line(str(error)), str(error)
        return
    assert isinstance(rows, pd.DataFrame)
    assert len(rows)
    rows.to_csv(encoding="utf-8").encode()


@given(JSONL | st.binary(max_size=40))
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example('{"text": "\\ud800"}')
@example('{"text": ' + "9" * 5000 + "}")
def test_jsonl_and_json(folder, content):
    read_file(folder, "rows.jsonl", content)
    read_file(folder, "rows.json", content)


@given(CSV | st.binary(max_size=40))
def test_csv_and_tsv(folder, content):
    read_file(folder, "rows.csv", content)
    read_file(folder, "rows.tsv", content)


@given(st.data())
def test_parquet_that_is_damaged(folder, data):
    whole = folder / "whole.parquet"
    if not whole.exists():
        pd.DataFrame({"text": ["a", "b"], "label": [0, 1]}).to_parquet(whole)
    content = bytearray(whole.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    read_file(folder, "rows.parquet", bytes(content[: data.draw(st.integers(0, len(content)))]))


@given(YAML | st.binary(max_size=40))
@example("[" * 50_000)
@example("a: &x [1]\nb: *x")
@example("a: 1\na: 2")
@example("a: 2023-02-30")
def test_yaml(folder, content):
    read_parameters(folder, "p.yaml", content)


def read_parameters(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    try:
        assert isinstance(load_parameter_file(path), dict)
    except ParameterError as error:
        assert is_one_line(str(error)), str(error)


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@given(data=st.data())
def test_parameters(data):
    declared = declared_in(data.draw(st.sampled_from(NOTEBOOKS)))
    fields = declared.model_fields
    name = data.draw(st.sampled_from(sorted(fields)))
    alike = {int: st.integers(), float: st.floats(), str: with_halves}
    alike |= {list[kind]: st.lists(one, max_size=5) for kind, one in alike.items()}
    kind = alike.get(fields[name].annotation, values)
    given_values = {name: data.draw(st.one_of(kind, values)), **data.draw(odd_names)}
    try:
        assert set(checked_parameters(given_values, declared, "p.yaml")) == set(fields)
    except ParameterError as error:
        assert is_one_line(str(error)), str(error)


odd_names = st.one_of(st.just({}), st.dictionaries(with_halves, values, max_size=1))

# Wikis


@given(near("<b>", "</b>", "<table>", "<div", ">", "<!--", "&#xD800;", "&", "<br>", "<![CDATA["))
@example("<div>" * 5_000)
@example("<b>" * 5_000 + "x")
def test_pages_of_a_wiki(html):
    text = from_html(html, ["gone"])
    assert "\n" not in text
    text.encode()
    assert is_redirect(html) in (True, False)


page = form(pageid=st.integers(), revisions=st.lists(form(timestamp=with_halves), max_size=1))
query = form(pages=st.lists(page, max_size=2), categorymembers=st.lists(page, max_size=2))
parse = form(text=with_halves, templates=st.lists(form(title=with_halves), max_size=2))


@given(st.one_of(values, form(query=query, parse=parse)))
def test_what_a_wiki_says(response):
    wiki = Wiki("https://wiki.test/w/", "test/1 (mail@wiki.test)", "1")
    wiki.ask = lambda *_, **__: response
    for question, *given_to in (
        (wiki.about,),
        (wiki.history, 1),
        (wiki.revision_before, 1, "2020-01-01"),
        (wiki.html_of, 1),
        (wiki.pages_in, ["events"], 0),
    ):
        with contextlib.suppress(WikiError):
            question(*given_to)


def test_one_line_is_one_line():
    assert is_one_line(one_line("a\r\n\x1b[31mb\u2028c"))
