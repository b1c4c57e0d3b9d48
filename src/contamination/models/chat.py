"""Answers of models behind an OpenAI-compatible endpoint.

Every answer goes through the response log: what it holds is never asked, nor
paid for, again. Keys come from the environment, by the variable's name, and
appear in no file, message or repr.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from contamination.core import storage
from contamination.models.asking import Batch

# Callers find all that they need of an endpoint here.
from contamination.models.exchange import (  # noqa: F401
    ERROR,
    OK,
    REFUSED,
    STATUSES,
    TRUNCATED,
    UNPARSABLE,
    Answer,
    Endpoint,
    Price,
    Request,
    body_of,
    input_tokens,
    key_of,
    most_it_costs,
    output_limit,
    read_response,
)
from contamination.models.response_log import ResponseLog
from contamination.models.retry import ChatError, Limits, UnsupportedError


@dataclass(frozen=True)
class Estimate:
    """What a batch will take; ``str()`` gives it as one line.

    Repeated requests count once. Of tokens and cost it is the most; None where a request sets
    no limit, or without a price. ``spent`` is what the run has cost before; ``seconds`` come
    from the log's mean duration of a call, None before the first.
    """

    n_requests: int
    n_in_log: int
    input_tokens: int
    output_tokens: int | None
    cost: float | None
    spent: float
    seconds: float | None
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
        parts.append("time unknown" if self.seconds is None else f"about {self.seconds:.0f} s")
        return ", ".join(parts)


def estimate(
    endpoint: Endpoint,
    requests: Sequence[Request],
    *,
    log: ResponseLog | None = None,
    run: str = "default",
    concurrency: int = 16,
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
        pace = log.seconds_per_call(f"{endpoint.base_url} {endpoint.model}")
        return Estimate(
            n_requests=len(bodies),
            n_in_log=len(bodies) - len(calls),
            input_tokens=sum(map(input_tokens, calls)),
            output_tokens=sum(n_most) if is_limited else None,
            cost=sum(most_it_costs(b, price) for b in calls) if price and is_limited else None,
            spent=log.spent(run),
            seconds=None if pace is None else pace * math.ceil(len(calls) / concurrency),
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
    offline: bool = False,
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
        cap: most that this run may spend in all its processes on this log, in the price's
            currency; what it spent before counts, and so do calls in flight. A call begins only
            if its limit of output tokens fits under the cap. Tries that failed are counted as
            free.
        offline: read the log only.
        progress: print the estimate and show a progress bar.
        check: raises ValueError for a response that shows that the server cannot do what is
            asked; that stops the run.

    Raises:
        ValueError: if a cap is given without a price or without a limit of output tokens in
            every request.
        ChatError: if the key is missing or refused, the server is down, the cap is reached,
            or, offline, an answer is missing.
        UnsupportedError: a ChatError, if the server rejects a request or ``check`` a response.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1, got {concurrency}")
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
        responses = {
            key: (response, True) for key in bodies if (response := log.get(key)) is not None
        }
        missing = {key: body for key, body in bodies.items() if key not in responses}
        n_found = len(responses)
        storage.record("cache", name="responses", hits=n_found, misses=len(missing))
        if missing and offline:
            raise ChatError(
                f"{len(missing)} of {len(bodies)} answers of {endpoint.model} are not in the "
                "response log, and this run is offline: run once with offline set to false"
            )
        if missing:
            if progress:
                costs: dict[str, Any] = {"concurrency": concurrency, "price": price, "cap": cap}
                print(estimate(endpoint, requests, log=log, run=run, **costs), file=sys.stderr)
            shown = {"initial": n_found, "disable": not progress, "unit": " answers"}
            with tqdm(total=len(bodies), **shown) as bar:
                batch = Batch(
                    endpoint=endpoint,
                    pending=deque(missing.items()),
                    log=log,
                    run=run,
                    concurrency=concurrency,
                    price=price,
                    cap=cap,
                    limits=limits or Limits(),
                    bar=bar,
                    n_cached=n_found,
                    check=check,
                )
                batch.ask()
            responses |= batch.responses
            if batch.reason:
                n_kept = sum(key in log for key in bodies)
                rest = (
                    f"; {n_kept} of {len(bodies)} answers are in the response log, and a new "
                    "run goes on from there"
                )
                if batch.is_unsupported:
                    raise UnsupportedError(batch.reason, rest)
                raise ChatError(batch.reason + rest)
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
