"""Answers of models behind an OpenAI-compatible endpoint.

Every answer goes through the response log: what it holds is never asked, nor
paid for, again. Keys come from the environment, by the variable's name, and
appear in no file, message or repr. Tries, waits and ``Retry-After`` are the openai client's.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from contamination.core import keys, storage
from contamination.core.keys import one_line

# Callers find all that they need of an endpoint here.
from contamination.models.exchange import (  # noqa: F401
    ERROR,
    OK,
    REFUSED,
    REPLAYED,
    STATUSES,
    TRUNCATED,
    UNPARSABLE,
    Answer,
    Endpoint,
    Price,
    Request,
    body_of,
    cost_of,
    input_tokens,
    key_of,
    most_it_costs,
    output_limit,
    read_response,
)
from contamination.models.response_log import InUseError, ResponseLog

# So many failed calls in a row, or all there are where nothing answers, and the endpoint is down.
FAILURES_IN_A_ROW = 10
LARGEST_ANSWER = 32_000_000  # bytes; log-probabilities of a long prompt take a tenth of it
_WORTH_ANOTHER_TRY = (408, 409, 429)  # and 500 or above, as the client has it


class ChatError(RuntimeError):
    """A run that cannot start or go on; the message is one line.

    ``reason`` is the message without what is said about the rest of the run.
    """

    def __init__(self, reason: str, rest: str = "") -> None:
        super().__init__(reason + rest)
        self.reason = reason


class UnsupportedError(ChatError):
    """The server does not do what a request asks for; another form of it may work."""


class _FailedError(Exception):
    """A call that failed to the end, while others may succeed."""

    def __init__(self, detail: str, *, is_answered: bool = True, code: str = "") -> None:
        super().__init__(detail)
        self.is_answered, self.code = is_answered, code


@dataclass(frozen=True)
class Limits:
    """How long to insist on one call."""

    tries: int = 6  # the first included; the client waits longer after each, a minute at most
    try_seconds: float = 120.0  # without a byte


class Secret:
    """A key from the environment, which no message and no file may show."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str | None) -> None:
        self.name = name
        self._value = os.environ.get(name, "").strip() if name else "none"
        shown = name if keys.is_plain_name(name or "") else "the variable that key_variable names"
        if not self._value:
            raise ChatError(f"{shown} is not set: export the key and run again")
        if not (self._value.isascii() and self._value.isprintable()):
            raise ChatError(f"{shown} contains characters that no key has: export it again")

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    def reveal(self) -> str:
        """The key itself, for the header of a request alone."""
        return self._value

    def removed_from(self, text: str) -> str:
        """A server's text without the key, should the server repeat it."""
        if len(self._value) < keys.SHORTEST:
            return text
        return keys.remove_values(text, keys.forms_of(self._value))


def _limited_client() -> Any:
    """The SDK's own client, which reads no body beyond the limit, an error's body included.

    It asks for no compression and refuses it: a few bytes of it can stand for gigabytes.
    """
    import httpx2
    import openai

    class Counted(httpx2.AsyncByteStream):
        def __init__(self, body: Any) -> None:
            self.body, self.aclose = body, body.aclose

        async def __aiter__(self) -> AsyncIterator[bytes]:
            n_read = 0
            async for part in self.body:
                n_read += len(part)
                if n_read > LARGEST_ANSWER:
                    raise _FailedError(f"the answer is larger than {LARGEST_ANSWER:,} bytes")
                yield part

    async def limit(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise _FailedError("the answer came compressed, which was not asked for")
        response.stream = Counted(response.stream)

    return openai.DefaultAsyncHttpxClient(
        headers={"Accept-Encoding": "identity"}, event_hooks={"response": [limit]}
    )


def problem_of(error: Exception, base_url: str, secret: Secret) -> Exception:
    """What a failed call means: a ChatError stops the run, and any other only this call.

    The caller raises it outside its ``except`` block, so that no traceback
    leads back to the request and its headers.
    """
    import openai  # importing it takes a second, and most notebooks call no API

    if not isinstance(error, openai.APIStatusError):
        said = f"connection failed ({type(error.__cause__ or error).__name__})"
        said = "no answer in time" if isinstance(error, openai.APITimeoutError) else said
        return _FailedError(said, is_answered=False)
    status, said_codes = error.status_code, {error.code, error.type}
    if status == 429 and "insufficient_quota" in said_codes:
        return ChatError(f"{base_url}: the quota of {secret.name} is exhausted (429)")
    # FastAPI servers, transformers serve among them, write "detail" where OpenAI's has "error".
    detail = error.body.get("detail") if isinstance(error.body, Mapping) else None
    said = one_line(secret.removed_from(str(detail or error.message)))
    if status in _WORTH_ANOTHER_TRY or status >= 500:
        return _FailedError(f"HTTP {status}: {said}")
    if status in (401, 403):
        if not secret.name:
            return ChatError(f"{base_url} asks for a key ({status}): name the variable that has it")
        # Servers quote parts of a key here.
        return ChatError(f"{base_url} refused the key in {secret.name} ({status}): check it")
    if "content_filter" in said_codes:
        return _FailedError(said, code="content_filter")
    if status == 404:
        return UnsupportedError(f"{base_url} knows no such model or address (404): {said}")
    return UnsupportedError(f"{base_url} rejected the request ({status}): {said}")


@dataclass(frozen=True)
class Estimate:
    """What a batch will take; ``str()`` gives it as one line.

    Repeated requests count once. Of tokens and cost it is the most; None where a request sets
    no limit, or without a price. ``spent`` is what the run has cost before.
    """

    n_requests: int
    n_in_log: int
    input_tokens: int
    output_tokens: int | None
    cost: float | None
    spent: float
    price: Price | None
    cap: float | None

    @property
    def n_calls(self) -> int:
        """Requests that would be sent, since the log does not answer them."""
        return self.n_requests - self.n_in_log

    def __str__(self) -> str:
        answers = "no limit of" if self.output_tokens is None else f"at most {self.output_tokens:,}"
        parts = [
            f"{self.n_requests:,} requests: {self.n_in_log:,} in the log",
            f"{self.n_calls:,} to ask",
            f"about {self.input_tokens:,} input and {answers} output tokens",
        ]
        if self.price is None:
            parts.append("cost unknown without a price")
        else:
            currency, date = self.price.currency, self.price.date
            most = "without limit" if self.cost is None else f"at most {self.cost:.4f} {currency}"
            parts.append(f"{most} at prices of {date}, {self.spent:.4f} spent before")
        if self.cap is not None:
            parts.append(f"cap {self.cap:.4f}")
        return ", ".join(parts)


def estimate(
    endpoint: Endpoint,
    requests: Sequence[Request],
    *,
    log: ResponseLog | None = None,
    run: str = "default",
    price: Price | None = None,
    cap: float | None = None,
) -> Estimate:
    """What a batch will take, without making a call; arguments of ``answer_all``."""
    with nullcontext(log) if log else ResponseLog() as log:
        bodies = {key_of(endpoint, request): body_of(endpoint, request) for request in requests}
        calls = [body for key, body in bodies.items() if key not in log]
        limits = [output_limit(body) for body in calls]
        n_most = [limit for limit in limits if limit is not None]
        is_limited = len(n_most) == len(limits)
        return Estimate(
            n_requests=len(bodies),
            n_in_log=len(bodies) - len(calls),
            input_tokens=sum(map(input_tokens, calls)),
            output_tokens=sum(n_most) if is_limited else None,
            cost=sum(most_it_costs(b, price) for b in calls) if price and is_limited else None,
            spent=log.spent(run),
            price=price,
            cap=cap,
        )


def answer_all(
    endpoint: Endpoint,
    requests: Sequence[Request],
    *,
    log: ResponseLog | None = None,
    run: str = "default",
    concurrency: int = 16,
    price: Price | None = None,
    cap: float | None = None,
    limits: Limits | None = None,
    progress: bool = True,
    check: Callable[[Mapping[str, Any]], object] | None = None,
) -> list[Answer]:
    """Answers in the order of the requests, from the log where it holds them.

    Works in a script and inside a notebook's running event loop alike. Equal requests are
    asked once. A request that fails to the end gives an answer with status "error"; what
    would fail again stops the run, after the calls in flight, and so do ten failed requests
    in a row, or all of them where nothing answers.

    Args:
        log: the one among the caches by default.
        run: name under which spending is summed for the cap.
        concurrency: calls in flight at a time.
        cap: most that this run may spend, in the price's currency; what it spent before counts,
            and so do calls in flight, those of a killed run included. A call begins only if its
            limit of output tokens fits under the cap.
        progress: print the estimate and show a progress bar.
        check: raises ValueError for a response that shows that the server cannot do what is
            asked; that stops the run.

    Raises:
        ValueError: if a cap is given without a price or without a limit of output tokens in
            every request.
        ChatError: if the key is missing or refused, the server is down, the cap is reached,
            or another run asks on this log.
        UnsupportedError: a ChatError, if the server rejects a request or ``check`` a response.
    """
    bodies = {key_of(endpoint, request): body_of(endpoint, request) for request in requests}
    if cap is not None and price is None:
        raise ValueError("a cap needs a price: give the price of tokens with its date")
    if cap is not None and any(output_limit(body) is None for body in bodies.values()):
        raise ValueError("a cap needs max_tokens in every request, which limits what a call costs")
    if not endpoint.is_dated:
        warnings.warn(
            f"{endpoint.model!r} names no dated snapshot: its answers may change without notice",
            stacklevel=2,
        )
    with nullcontext(log) if log else ResponseLog() as log:
        responses = {key: (found, True) for key in bodies if (found := log.get(key)) is not None}
        missing = {key: body for key, body in bodies.items() if key not in responses}
        storage.record("cache", name="responses", hits=len(responses), misses=len(missing))
        if missing:
            if progress:
                plan = estimate(endpoint, requests, log=log, run=run, price=price, cap=cap)
                print(plan, file=sys.stderr)
            shown = {"initial": len(responses), "disable": not progress, "unit": " answers"}
            with tqdm(total=len(bodies), **shown) as bar:
                batch = _Batch(
                    endpoint, deque(missing.items()), log, run, concurrency, price, cap,
                    limits or Limits(), bar, check,
                )  # fmt: skip
                try:
                    with log.in_use():
                        batch.ask()
                except InUseError as error:
                    raise ChatError(str(error)) from None
            responses |= {key: (response, False) for key, response in batch.responses.items()}
            if batch.problem:
                n_kept = sum(key in log for key in bodies)
                raise type(batch.problem)(
                    batch.problem.reason,
                    f"; {n_kept} of {len(bodies)} answers are in the response log, and a new "
                    "run goes on from there",
                )
    answers = []
    for request in requests:
        response, from_log = responses[key_of(endpoint, request)]
        answers.append(read_response(response, request.may_be_cut, from_log))
    names = sorted({answer.model for answer in answers if answer.model})
    if others := [name for name in names if not name.startswith(endpoint.model)]:
        warnings.warn(
            f"asked for {endpoint.model!r}, answered by {', '.join(map(repr, others))}",
            stacklevel=2,
        )
    return answers


@dataclass
class _Batch:
    """Calls (``pending``: key and body) that the log cannot answer, and what became of them.

    ``responses``: key to response. ``problem``: why the run stopped, None while it goes on.
    """

    endpoint: Endpoint
    pending: deque[tuple[str, dict[str, Any]]]
    log: ResponseLog
    run: str
    concurrency: int
    price: Price | None
    cap: float | None
    limits: Limits
    bar: tqdm
    check: Callable[[Mapping[str, Any]], object] | None = None
    responses: dict[str, dict[str, Any]] = field(default_factory=dict)
    problem: ChatError | None = None

    def ask(self) -> None:
        """Make the calls; ``problem`` says afterwards whether something stopped them.

        The event loop has a thread of its own, since a notebook's thread runs one already.
        """
        self._secret = Secret(self.endpoint.key_variable)
        self._n_calls, self._n_in_flight = len(self.pending), 0
        self._n_failed_in_a_row = 0
        self._spent = self.log.spent(self.run)  # and what calls in flight may cost
        self._loop: asyncio.AbstractEventLoop | None = None
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(asyncio.run, self._all())
            try:
                done.result()
            except BaseException:
                if self._loop and not done.done():
                    self._loop.call_soon_threadsafe(self._main.cancel)
                raise

    async def _all(self) -> None:
        import openai

        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        self._has_ended = asyncio.Event()  # a call, so that there may be room under the cap
        async with openai.AsyncOpenAI(
            api_key=self._secret.reveal(),
            base_url=self.endpoint.base_url,
            max_retries=self.limits.tries - 1,
            timeout=self.limits.try_seconds,
            http_client=_limited_client(),
        ) as self._client:
            n_workers = min(self.concurrency, self._n_calls)
            workers = [asyncio.create_task(self._work()) for _ in range(n_workers)]
            try:
                await asyncio.gather(*workers)
            finally:
                for task in workers:
                    task.cancel()

    async def _work(self) -> None:
        while self.pending and not self.problem:
            most = most_it_costs(self.pending[0][1], self.price)
            if self.cap is not None and self._spent + most > self.cap:
                if not self._n_in_flight:
                    return self._stop(
                        f"the cap of {self.cap:g} is reached: run {self.run!r} has spent "
                        f"{self._spent:.4g}, the next call may cost {most:.4g}"
                    )
                self._has_ended.clear()
                await self._has_ended.wait()
                continue
            key, body = self.pending.popleft()
            self._n_in_flight += 1
            self._spent += most
            try:
                cost = await self._answer(key, body, most)
                self._spent += cost - most  # not before: other calls change it meanwhile
            finally:
                self._n_in_flight -= 1
                self._has_ended.set()

    async def _answer(self, key: str, body: dict[str, Any], most: float) -> float:
        """Make a call and write down what came of it; what it cost."""
        name = f"{self.endpoint.base_url} {self.endpoint.model}"
        number, started = self.log.begin(key, self.run, name, body, most), time.monotonic()
        is_answered = True
        try:
            response = await self._call(body)
            cost = cost_of(body, response, self.price)
        except _FailedError as error:
            is_answered, failure = error.is_answered, {"message": str(error), "code": error.code}
            # Of a call without an answer nobody knows what the server did.
            response, cost = {"error": failure}, 0.0 if is_answered else most
        except ChatError as error:
            self._stop(error.reason, type(error))
            response, cost = {"error": {"message": str(error)}}, 0.0
        answer = read_response(response)
        is_replayed = answer.status in REPLAYED
        if is_replayed and self.check:
            try:
                self.check(response)
            except ValueError as error:
                is_replayed = False
                self._stop(f"{self.endpoint.base_url} {error}", UnsupportedError)
        seconds = time.monotonic() - started
        self.log.end(number, response, is_replayed=is_replayed, cost=cost, seconds=seconds)
        self.responses[key] = response
        self._count(answer, is_answered)
        return cost

    async def _call(self, body: dict[str, Any]) -> dict[str, Any]:
        import openai

        path, problem = "/chat/completions" if "messages" in body else "/completions", None
        try:
            # The body goes as it stands in the log and the text comes as it is: the SDK's
            # own types would rebuild each message and wrap anything into an answer.
            raw = await self._client.post(path, cast_to=str, body=body)
        except openai.APIError as error:
            problem = problem_of(error, self.endpoint.base_url, self._secret)
        if problem:
            raise problem
        try:
            # A server may write the letters of a key as escapes: it is looked for in our own form.
            response = json.loads(self._secret.removed_from(json.dumps(json.loads(raw))))
        except RecursionError:
            return {"error": {"message": "the response is nested too deep"}}
        except ValueError:
            is_stream = raw.lstrip().startswith(("data:", "event:"))
            said = one_line(self._secret.removed_from(raw), 80)
            said = "a stream came" if is_stream else f"the response is not JSON: {said}"
            return {"error": {"message": said}}
        if not isinstance(response, dict):
            return {"error": {"message": "the response is not a JSON object"}}
        return response

    def _stop(self, reason: str, kind: type[ChatError] = ChatError) -> None:
        self.problem = self.problem or kind(reason)

    def _count(self, answer: Answer, is_answered: bool) -> None:
        self._n_failed_in_a_row += 1
        if answer.status != ERROR:
            self._n_failed_in_a_row = 0
        # A server that crashes over one request may still answer the other requests.
        elif self._n_failed_in_a_row >= (
            FAILURES_IN_A_ROW if is_answered else min(FAILURES_IN_A_ROW, self._n_calls)
        ):
            self._stop(f"{self.endpoint.base_url} does not answer: {answer.detail}")
        self.bar.update()
