"""What is sent to an endpoint, and what its responses mean."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contamination.core import keys, storage
from contamination.core.keys import one_line

SCHEMA = 1  # raise it when a change of code changes what is asked
OK, REFUSED, TRUNCATED = "ok", "refused", "truncated"
UNPARSABLE, ERROR = "unparsable", "error"
# What the model said and was paid for; the same request gets it back.
REPLAYED = (OK, TRUNCATED, UNPARSABLE)
STATUSES = (OK, REFUSED, TRUNCATED, UNPARSABLE, ERROR)

_MOST_TOKENS = 10**9  # of one answer; a larger count, or a negative one, is no count
_SET_ELSEWHERE = {"model", "messages", "prompt", "n", "stream", "best_of"}
_DATED = re.compile(r"(19|20)\d\d-?[01]\d-?[0-3]\d|[-@]\d{4}(?!\d)|@[0-9a-f]{7,}$")


@dataclass(frozen=True)
class Endpoint:
    """A model behind an OpenAI-compatible address."""

    base_url: str  # up to and with ``/v1``, without a password or a query
    model: str
    key_variable: str | None = "OPENAI_API_KEY"  # *name* of the variable; None: no key is asked for
    options: Mapping[str, Any] = field(default_factory=dict)  # sampling options of every request

    def __post_init__(self) -> None:
        if self.key_variable and (why := keys.why_no_variable(self.key_variable)):
            raise ValueError(f"key_variable {why}")
        if why := keys.why_no_address(self.base_url):
            raise ValueError(f"base_url {why}")
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))
        _refuse_options(self.options)

    @property
    def is_dated(self) -> bool:
        """Whether the name tells one snapshot or revision from the next.

        >>> Endpoint("https://host/v1", "gpt-4-0613").is_dated
        True
        >>> Endpoint("https://host/v1", "gpt-4").is_dated
        False
        """
        return bool(_DATED.search(self.model))


@dataclass(frozen=True)
class Request:
    """One question: either ``messages`` for a chat, or ``prompt`` for a text completion.

    ``may_be_cut``: an answer that reaches its token limit is complete, as the one letter of a
    quiz is. It does not change what is sent.
    """

    messages: Sequence[Mapping[str, Any]] | None = None  # ``{"role": ..., "content": ...}``
    prompt: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # over the endpoint's own
    replicate: int = 0  # another number asks again
    may_be_cut: bool = False

    def __post_init__(self) -> None:
        if bool(self.messages) == bool(self.prompt):
            raise ValueError(
                "a request needs either messages or a prompt, and it must not be empty"
            )
        _refuse_options(self.options)


def requests_of_prompts(prompts: Sequence[str], options: Mapping[str, Any]) -> list[Request]:
    """One request for each prompt, as a chat of one message; a cut answer counts."""
    return [
        Request(messages=[{"role": "user", "content": text}], options=options, may_be_cut=True)
        for text in prompts
    ]


@dataclass(frozen=True)
class Answer:
    """What an endpoint said to one request.

    ``status`` is "ok"; "refused" (the server's filter or its refusal field; a refusal in prose
    is the caller's to see); "truncated" (cut at the token limit); "unparsable" (no text);
    "error" (no usable response). ``model`` and ``usage`` are as the server returned them.
    """

    text: str  # the words of the model, "" where there are none
    status: str
    model: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    from_log: bool = False  # whether the log served it
    detail: str = ""  # why the status is not "ok"
    response: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Price:
    """What 10^6 tokens cost; ``date`` is the day on which the list was read, YYYY-MM-DD."""

    input_per_million: float
    output_per_million: float
    date: str
    currency: str = "USD"

    def __post_init__(self) -> None:
        try:
            datetime.date.fromisoformat(self.date)
        except ValueError as error:
            said = f'"{self.date}" is no day: write the day of the price list as YYYY-MM-DD'
            raise ValueError(f"{said} ({error})") from error

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """The price of so many tokens, in ``currency``."""
        per_million = input_tokens * self.input_per_million
        return (per_million + output_tokens * self.output_per_million) / 1e6


def body_of(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    """What is sent, as JSON values."""
    content: dict[str, Any] = {"prompt": request.prompt}
    if request.messages:
        content = {"messages": [dict(message) for message in request.messages]}
    return {**endpoint.options, **request.options, **content, "model": endpoint.model}


def key_of(endpoint: Endpoint, request: Request) -> str:
    """The key of an answer in the log: a hash of everything that can change it."""
    asked = {"base_url": endpoint.base_url, "body": body_of(endpoint, request)}
    return storage.hash_of({"schema": SCHEMA, **asked, "replicate": request.replicate})


def output_limit(body: Mapping[str, Any]) -> int | None:
    """Most tokens an answer may have, None where the request sets no limit."""
    return body.get("max_completion_tokens") or body.get("max_tokens")


def input_tokens(body: Mapping[str, Any]) -> int:
    """Cautious estimate of a request's tokens, one for three bytes of text.

    Byte-pair vocabularies make one token of about four bytes of English.
    """
    if "prompt" in body:
        return math.ceil(len(body["prompt"].encode()) / 3)
    contents = [message.get("content") for message in body["messages"]]
    texts = [text if isinstance(text, str) else str(text) for text in contents]
    return sum(math.ceil(len(text.encode()) / 3) + 8 for text in texts)


def most_it_costs(body: Mapping[str, Any], price: Price | None) -> float:
    """Price of a request whose answer reaches its limit; 0 without a price."""
    return price.of(input_tokens(body), output_limit(body) or 0) if price else 0.0


def cost_of(body: Mapping[str, Any], response: Mapping[str, Any], price: Price | None) -> float:
    """Price of a response that came; at its most where the server counted no tokens."""
    usage = response.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    counts: list[Any] = [usage.get("prompt_tokens"), usage.get("completion_tokens", 0)]
    if not price or not all(isinstance(n, int) and 0 <= n <= _MOST_TOKENS for n in counts):
        return most_it_costs(body, price)
    return price.of(*counts)


def read_response(
    response: Mapping[str, Any], may_be_cut: bool = False, from_log: bool = False
) -> Answer:
    """The answer in an endpoint's JSON response; damage and errors are told by its status.

    Args:
        may_be_cut: an answer that reached its token limit is complete.
        from_log: whether the response log served it.
    """
    text, status, detail = _read(response, may_be_cut)
    usage = response.get("usage")
    return Answer(
        text=text,
        status=status,
        model=one_line(str(response.get("model") or "")),
        usage=usage if isinstance(usage, Mapping) else {},
        from_log=from_log,
        detail=detail,
        response=response,
    )


def _read(response: Mapping[str, Any], may_be_cut: bool) -> tuple[str, str, str]:
    problem = response.get("error")
    if problem:
        said = problem if isinstance(problem, Mapping) else {"message": problem}
        status = REFUSED if said.get("code") == "content_filter" else ERROR
        return "", status, one_line(str(said.get("message") or said))
    choices = response.get("choices")
    if not isinstance(choices, Sequence) or not choices or not isinstance(choices[0], Mapping):
        return "", ERROR, "the response holds no choices"
    choice = choices[0]
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    content = message.get("content", choice.get("text"))
    text = content if isinstance(content, str) else ""
    # JSON may hold half a surrogate pair, which no file and no tokenizer takes.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if message.get("refusal"):
        return text, REFUSED, one_line(str(message["refusal"]))
    if choice.get("finish_reason") == "content_filter":
        return text, REFUSED, "content filter"
    if choice.get("finish_reason") == "length" and not may_be_cut:
        return text, TRUNCATED, "cut at the token limit"
    if not text.strip():
        return text, UNPARSABLE, "the answer holds no text"
    return text, OK, ""


def _refuse_options(options: Mapping[str, Any]) -> None:
    wrong = sorted(_SET_ELSEWHERE & set(options))
    if wrong:
        raise ValueError(
            f"options must not set {', '.join(wrong)}: use the fields of Endpoint and Request, "
            "and replicate to ask more than once"
        )
    try:
        storage.hash_of(dict(options))
    except (TypeError, ValueError) as error:
        raise ValueError(f"options must be JSON values: {error}") from error
