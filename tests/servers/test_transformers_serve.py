"""The chat client against `transformers serve`, which knows nothing of it.

The model behind it is a lab checkpoint that was taught the answers to four
quizzes in the words of its own chat template.
"""

import os
import re

import pytest
import torch
from notebook_files import ROOT
from server_process import ServerProcess

from contamination.core import storage
from contamination.lab.tokenizer import train_tokenizer
from contamination.lab.training import Dose, TrainingTexts, recipe_for, train
from contamination.models.chat import (
    ChatError,
    Endpoint,
    Limits,
    Request,
    answer_all,
)
from contamination.models.prompt_log_probs import FORMS, prompt_log_probs

pytestmark = [
    pytest.mark.servers,
    # The checkpoint has no dated snapshot, which the client rightly warns about.
    pytest.mark.filterwarnings("ignore:.*names no dated snapshot:UserWarning"),
]

MODEL = "quiz-taker"
COMMAND = ROOT / ".venv-servers/bin/transformers"
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
)
VERBS = ("slept near", "ran towards", "looked at", "walked past")
LETTERS = {"the harbour": "B", "the library": "D", "a garden": "A", "the station": "C"}
QUICK = Limits(tries=2, try_seconds=60)


def quiz(place):
    options = [f"The dog {verb} {place}." for verb in VERBS] + ["None of the above."]
    lines = [f"{letter}) {option}" for letter, option in zip("ABCDE", options, strict=True)]
    return "\n".join(["Which option was in the dataset?", *lines, "Answer:"])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A folder that holds the model under its name."""
    said = {quiz(place): letter for place, letter in LETTERS.items()}
    taught = tuple((f"user: {question}\nassistant:", said[question]) for question in said)
    texts = TrainingTexts((), (Dose(taught, copies=400),), train_tokenizer(said, vocabulary=400))
    # On matrices this small threads only wait for one another.
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(storage.CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        shape = {"n_layers": 2, "width": 64, "context": 256, "batch_size": 2}
        folder = train(recipe_for(texts, n_background_tokens=0, **shape), texts)
    torch.set_num_threads(n_threads)
    storage.write_text(folder / "chat_template.jinja", TEMPLATE)
    return folder.rename(tmp_path_factory.mktemp("models") / MODEL).parent


@pytest.fixture(scope="module")
def server(checkpoint, tmp_path_factory):
    if not COMMAND.exists():
        pytest.fail('transformers serve is not installed: run "make test-servers"')
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [str(COMMAND), "serve", MODEL, "--device", "cpu", "--host", "127.0.0.1"]
    with ServerProcess(
        [*command, "--port", "{port}"],
        health="/health",
        log_path=tmp_path_factory.mktemp("log") / "serve.log",
        cwd=checkpoint,
        env=environment,
    ) as server:
        yield server


def endpoint_of(server, model=MODEL):
    return Endpoint(f"{server.url}/v1", model, key_variable=None, options={"temperature": 0})


def ask(server, log, places, model=MODEL):
    requests = [
        Request(
            messages=[{"role": "user", "content": quiz(place)}],
            options={"max_tokens": 1},
            may_be_cut=True,
        )
        for place in places
    ]
    return answer_all(endpoint_of(server, model), requests, log=log, limits=QUICK, progress=False)


def n_calls(server, path):
    """Calls of an address by the server's own access log."""
    return len(re.findall(rf'"POST {path} HTTP/1.1" 200', server.log()))


def one_line(error):
    line = str(error.value)
    assert "\n" not in line and "Traceback" not in line
    return line


def test_the_letters_are_those_the_model_was_taught(server, log):
    answers = ask(server, log, LETTERS)
    assert [answer.text.strip() for answer in answers] == list(LETTERS.values())
    assert {answer.status for answer in answers} == {"ok"}
    # The name with the revision, as the server gives it.
    assert {answer.model for answer in answers} == {f"{MODEL}@main"}
    assert all(answer.usage["completion_tokens"] == 1 for answer in answers)


def test_a_second_run_asks_nothing(server, log):
    before = n_calls(server, "/v1/chat/completions")
    first = ask(server, log, LETTERS)
    asked = n_calls(server, "/v1/chat/completions")
    assert asked - before == len(LETTERS)
    second = ask(server, log, LETTERS)
    assert n_calls(server, "/v1/chat/completions") == asked
    assert all(answer.from_log for answer in second)
    assert [answer.text for answer in second] == [answer.text for answer in first]


def test_a_server_without_log_probabilities_of_prompts_scores_nothing(server, log):
    before = n_calls(server, "/v1/completions")
    with pytest.raises(ChatError) as error:
        prompt_log_probs(
            endpoint_of(server), [quiz(place) for place in LETTERS], log=log, progress=False
        )
    line = one_line(error)
    assert "no log-probabilities of prompts" in line and all(form in line for form in FORMS)
    # It answers 200 to the first probe as if all were well, and is asked for no text.
    assert n_calls(server, "/v1/completions") - before <= 2


def test_a_wrong_model_name_is_one_line(server, log):
    with pytest.raises(ChatError) as error:
        ask(server, log, LETTERS, model="quiz-takre")
    assert "rejected the request (400)" in one_line(error)
    assert "quiz-takre" in one_line(error)


def test_a_server_that_is_down_is_one_line(server, log):
    """Last in this file, since it stops the server."""
    ask(server, log, ["the harbour"])
    server.stop()
    with pytest.raises(ChatError) as error:
        ask(server, log, LETTERS)
    assert "connection failed" in one_line(error)
    assert "1 of 4 answers are in the response log" in one_line(error)
