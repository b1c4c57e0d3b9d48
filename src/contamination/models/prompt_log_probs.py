"""Log-probabilities of the tokens of a text, from an address that gives those of its prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from contamination.core.keys import one_line
from contamination.models.chat import ChatError, Limits, UnsupportedError, answer_all
from contamination.models.exchange import REPLAYED, Answer, Endpoint, Request, key_of
from contamination.models.response_log import ResponseLog

Token = tuple[str, Any]  # of the prompt: its decoded text, and its log-probability

_BLANKS = re.compile(r"[\sĠĊĉ▁]+")  # with those of byte-level and SentencePiece vocabularies
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_LOST = "\ufffd"


def check_spelling(tokens: Sequence[str], text: str, n_before: int = 0) -> None:
    """ValueError unless the tokens of a completion's prompt spell the text to its end.

    Blanks are left out and lost characters masked. What stands before the text, such as a
    beginning-of-sequence token, does not matter; of the text itself ``n_before`` letters at most
    may be missing, which belong to a token that is not among these. Tokens of which a server gives
    no text (all are empty) cannot be compared.
    """
    wanted, spelt = _squeezed(text, True), _squeezed("".join(tokens), True)
    spelt = re.sub(f"{_LOST}+", _LOST, spelt)
    if not spelt:
        return
    is_whole = spelt.endswith(wanted)
    if not (is_whole or (wanted.endswith(spelt) and len(wanted) - len(spelt) <= n_before)):
        raise ValueError(
            f'scored other tokens than those of the text that begins "{one_line(text, 40)}": they '
            f'end in "{one_line("".join(tokens)[-40:], 40)}"'
        )


def _squeezed(text: str, is_masked: bool = False) -> str:
    """Without blanks, and masked with one replacement character for each run beyond ASCII."""
    letters = _BLANKS.sub("", text)
    return _BEYOND_ASCII.sub(_LOST, letters) if is_masked else letters


ECHO = "echo"
COMPLETIONS = "prompt_logprobs on /completions"
FORMS = (ECHO, COMPLETIONS)  # in the order in which they are tried
PROBE = "Twelve grey herons waited by the slow river."
_CURE = "log-probabilities of prompts need a server that honours echo or prompt_logprobs, like vLLM"
LONGEST_TOKEN = 32  # letters of the first token, which a server does not score
# A server that fails on an option it does not know is not asked for minutes.
_PROBE_LIMITS = Limits(tries=2)


def score_requests(texts: Sequence[str], form: str) -> list[Request]:
    """What :func:`prompt_log_probs` asks in one of ``FORMS``: one token of answer for each text."""
    # With 0 the answer holds the prompt's own tokens alone, and no likelier ones.
    options = {"prompt_logprobs": 0, "return_token_ids": True, "max_tokens": 1}
    if form == ECHO:
        options = {"echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
    return [Request(prompt=text, options=options, may_be_cut=True) for text in texts]


def probe_requests() -> list[Request]:
    """What :func:`probe` asks at most: a short text in each of ``FORMS``."""
    return [request for form in FORMS for request in score_requests([PROBE], form)]


def known_form(endpoint: Endpoint, log: ResponseLog | None = None) -> str:
    """The form that an earlier probe of this model found, "" if none is in the response log."""
    with nullcontext(log) if log else ResponseLog() as log:
        for form, request in zip(FORMS, probe_requests(), strict=True):
            if key_of(endpoint, request) in log:
                return form
    return ""


def probe(
    endpoint: Endpoint, *, log: ResponseLog | None = None, **settings: Any
) -> tuple[str, str]:
    """Which of ``FORMS`` an address has for this model, and one line that says so.

    The forms are tried one after the other until one works. That answer is in the response log
    then and is not paid for again; a server that had no form is asked again by the next run, since
    it may have been mended. ``settings`` are those of ``answer_all``.

    Returns:
        The form, "" if there is none, and the line, which says for each form why it does not work.

    Raises:
        ChatError: as ``answer_all``, but for requests that the server rejects.
    """
    yes = f"{endpoint.model}: the address gives log-probabilities of prompts by"
    settings = {"limits": _PROBE_LIMITS} | settings | {"progress": False}
    with nullcontext(log) if log else ResponseLog() as log:
        if form := known_form(endpoint, log):
            return form, f"{yes} {form}"
        reasons = []
        for form in FORMS:
            check = partial(log_probs_in, form=form, text=PROBE)
            asked = score_requests([PROBE], form)
            try:
                (answer,) = answer_all(endpoint, asked, log=log, check=check, **settings)
            except UnsupportedError as error:
                why = error.reason.removeprefix(endpoint.base_url).strip(" :")
            else:
                if answer.status in REPLAYED:
                    return form, f"{yes} {form}"
                why = answer.detail
            reasons.append(f"{form}: {why}")
    none = "the address gives no log-probabilities of prompts"
    return "", f"{endpoint.model}: {none} ({'; '.join(reasons)})"


def prompt_log_probs(
    endpoint: Endpoint,
    texts: Sequence[str],
    form: str = "",
    *,
    log: ResponseLog | None = None,
    **settings: Any,
) -> list[np.ndarray]:
    """Log-probabilities of the tokens of texts, in whichever form the address gives them.

    Args:
        texts: of two tokens or more each.
        form: one of ``FORMS``, as :func:`probe` found it; "" probes first.
        settings: keyword arguments of ``answer_all``.

    Returns:
        Nats, one array for each text. A completion's first token, which has no context, is left
        out: shape (n_tokens - 1,).

    Raises:
        UnsupportedError: if the address has no form, or an answer is not what the form says: no
            log-probabilities, or another number of them than the prompt has tokens.
        ChatError: as ``answer_all``, or if a text got no answer.
        ValueError: if the tokens of an answer are not those of its text.
    """
    with nullcontext(log) if log else ResponseLog() as log:
        if not form:
            form, said = probe(endpoint, log=log, **settings)
            if not form:
                raise UnsupportedError(f"{endpoint.base_url}, {said}")
        # Whether the tokens are the text's is seen below: the check is not told which text it gets.
        check, asked = partial(log_probs_in, form=form), score_requests(texts, form)
        answers: list[Answer] = answer_all(endpoint, asked, log=log, check=check, **settings)
    for answer in answers:
        if answer.status not in REPLAYED:
            raise ChatError(f"{endpoint.base_url} scored no text: {answer.detail}")
    try:
        return [
            log_probs_in(answer.response, form=form, text=text)
            for answer, text in zip(answers, texts, strict=True)
        ]
    except ValueError as error:
        raise ValueError(f"{endpoint.base_url} {error}") from error


def log_probs_in(response: Mapping[str, Any], *, form: str, text: str | None = None) -> np.ndarray:
    """Log-probabilities of a text's tokens in one response, as :func:`prompt_log_probs` gives them.

    Without ``text`` those of all tokens of the prompt but the first, whatever they belong to.
    ValueError says what the server did instead.
    """
    if form == ECHO:
        return _echoed(response, text)
    entries, token_ids = _entries(response)
    given = [
        _token(entry, token_id) for entry, token_id in zip(entries[1:], token_ids[1:], strict=True)
    ]
    if text is not None:
        check_spelling([token for token, _ in given], text, LONGEST_TOKEN)
    return _checked([value for _, value in given])


def _entries(response: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """``prompt_logprobs`` of a response, and the ids of the prompt's tokens or Nones."""
    choice = response["choices"][0]
    entries, token_ids = choice.get("prompt_logprobs"), choice.get("prompt_token_ids")
    if not isinstance(entries, list):
        raise ValueError(f"gave no log-probabilities: {_CURE}")
    n_prompt = _counted(response, "prompt_tokens")
    if not isinstance(token_ids, list):
        token_ids = [None] * len(entries)
    if not len(entries) == len(token_ids) == n_prompt:
        raise ValueError(
            f"gave {len(entries)} log-probabilities and {len(token_ids)} ids for {n_prompt} tokens "
            f"of prompt: {_CURE}"
        )
    if n_prompt < 2:
        raise ValueError("was asked for a text of one token: nothing in it has a context")
    if entries[0] is not None:
        raise ValueError(
            "gave a log-probability of the first token, which has no context: those of the other "
            "tokens may be one place off"
        )
    return entries, token_ids


def _token(entry: Any, token_id: Any) -> Token:
    """The prompt's own token at one place, by its id where a server adds likelier ones."""
    tokens = entry if isinstance(entry, Mapping) else {}
    if token_id is not None:
        tokens = {key: one for key, one in tokens.items() if key == str(token_id)}
    found = [one for one in tokens.values() if isinstance(one, Mapping)]
    if not found:
        raise ValueError(f"left tokens of the prompt without a log-probability: {_CURE}")
    if len(found) > 1:
        raise ValueError(
            "gave several tokens for a place of the prompt and no ids that tell which is its own"
        )
    text = found[0].get("decoded_token")
    return text if isinstance(text, str) else "", found[0].get("logprob")


def _echoed(response: Mapping[str, Any], text: str | None) -> np.ndarray:
    given = response["choices"][0].get("logprobs")
    logprobs = given if isinstance(given, Mapping) else {}
    values, tokens = logprobs.get("token_logprobs"), logprobs.get("tokens")
    if not isinstance(values, list) or not isinstance(tokens, list):
        raise ValueError(f"gave no log-probabilities: {_CURE}")
    n_prompt = _counted(response, "prompt_tokens")
    n_generated = _counted(response, "completion_tokens")
    if not len(values) == len(tokens) == n_prompt + n_generated:
        raise ValueError(
            f"gave {len(values)} log-probabilities for {n_prompt} tokens of prompt "
            f"and {n_generated} of answer: {_CURE}"
        )
    if n_prompt < 2:
        raise ValueError("was asked for a text of one token: nothing in it has a context")
    found = _checked(values[1:n_prompt])
    if text is not None and all(isinstance(token, str) for token in tokens):
        check_spelling(tokens[:n_prompt], text)
    return found


def _checked(values: Sequence[Any]) -> np.ndarray:
    # Comparisons, since an integer may be too large to be a float.
    if not all(isinstance(value, (int, float)) and -1e30 < value <= 0 for value in values):
        raise ValueError(f"left tokens of the prompt without a log-probability: {_CURE}")
    return np.array(values, dtype=float)


def _counted(response: Mapping[str, Any], name: str) -> int:
    usage = response.get("usage")
    count = usage.get(name) if isinstance(usage, Mapping) else None
    if not isinstance(count, int):
        raise ValueError(f"counted no tokens: {_CURE}")
    return count
