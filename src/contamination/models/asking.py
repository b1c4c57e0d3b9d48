"""The calls of one batch: bounded concurrency, claims, retries, commits, the cap."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tqdm import tqdm

from contamination.core.storage import DiskFullError
from contamination.core.visible import one_line
from contamination.models.exchange import (
    ERROR,
    REPLAYED,
    Endpoint,
    Price,
    cost_of,
    most_it_costs,
    read_response,
)
from contamination.models.log_layout import LogEntry
from contamination.models.response_log import ResponseLog
from contamination.models.retry import (
    ChatError,
    ContentFilterError,
    Limits,
    Secret,
    TransientError,
    UnsupportedError,
    problem_of,
    retrying,
)
from contamination.models.size import TooLargeError, is_deeper, limited_client

# So many failed calls in a row, or all there are where nothing answers, and the
# endpoint counts as down.
FAILURES_IN_A_ROW = 10
DEEPEST = 100  # levels of JSON in a response; an answer has fewer than ten
NOTHING_ANSWERED = "nothing_answered"
POLL_SECONDS = 0.2  # between looks at what other processes have claimed


class _Stopped(Exception):
    """Something else stopped the run: no further try."""


@dataclass
class Batch:
    """Calls (``pending``: key and body) that the log cannot answer, and what became of them.

    ``check`` raises ValueError for a response that must stop the run. ``responses``: key to
    response and whether another process had asked meanwhile. ``reason``: why the run
    stopped, "" while it goes on; ``is_unsupported``: whether the server cannot do what was asked.
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
    n_cached: int
    check: Callable[[Mapping[str, Any]], object] | None = None
    responses: dict[str, tuple[dict[str, Any], bool]] = field(default_factory=dict)
    reason: str = ""
    is_unsupported: bool = False

    def ask(self) -> None:
        """Make the calls; ``reason`` says afterwards whether something stopped them.

        The event loop has a thread of its own, since a notebook's thread runs one already.
        """
        self._secret = Secret(self.endpoint.key_variable)
        self._n_calls = len(self.pending)
        self._n_in_flight = self._n_failed = self._n_failed_in_a_row = 0
        self._owner = uuid.uuid4().hex  # of this batch's claims, and of no other's
        self._claimed: dict[str, float] = {}  # and the most that each of the calls may cost
        self._ready: deque[tuple[str, dict[str, Any]]] = deque()  # claimed, to be asked next
        self._claimed_elsewhere: deque[tuple[str, dict[str, Any]]] = deque()
        self._has_room = True  # under the cap, for the first of the pending calls
        self._idle: list[tuple[None, asyncio.Future]] = []  # workers that wait for a claim
        self._uncommitted: list[tuple[LogEntry, asyncio.Future]] = []
        self._writing: asyncio.Task | None = None
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
        import openai  # importing it takes a second, and most notebooks call no API

        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        self._stopped = asyncio.Event()
        async with openai.AsyncOpenAI(
            api_key=self._secret.reveal(),
            base_url=self.endpoint.base_url,
            max_retries=0,
            timeout=self.limits.try_seconds,
            http_client=limited_client(),
        ) as self._client:
            n_workers = min(self.concurrency, self._n_calls)
            workers = [asyncio.create_task(self._work()) for _ in range(n_workers)]
            renewal = asyncio.create_task(self._renew())
            try:
                await asyncio.gather(*workers)
            finally:
                for task in (*workers, renewal):
                    task.cancel()
                if self._writing:
                    await asyncio.wait([self._writing])
                self.log.release(self._owner)

    async def _work(self) -> None:
        while not self.reason:
            if self._ready:
                key, body = self._ready.popleft()
                if key in self._claimed:
                    await self._ask_claimed(key, body)
                else:  # the claim lapsed before it could be renewed
                    self.pending.append((key, body))
            elif self.pending:
                await self._written(self._idle, None)
                if not self._ready and not self._has_room:
                    await self._wait_for_room()
            elif self._claimed_elsewhere:
                self._show(0)
                await self._pause(POLL_SECONDS)
                self.pending.extend(self._claimed_elsewhere)
                self._claimed_elsewhere.clear()
            else:
                return

    async def _ask_claimed(self, key: str, body: dict[str, Any]) -> None:
        self._n_in_flight += 1
        try:
            await self._answer(key, body)
        finally:
            self._n_in_flight -= 1
            self._claimed.pop(key, None)

    async def _wait_for_room(self) -> None:
        """Wait for room under the cap, or stop where there will be none.

        Calls in flight, here and in other processes, may leave enough of what they reserved to
        pay for the next call. What the run has spent stays spent.
        """
        if self.pending and not self._n_in_flight:
            cost = most_it_costs(self.pending[0][1], self.price)
            spent = self.log.spent(self.run)
            if spent + cost > self.cap:
                self._stop(
                    f"the cap of {self.cap:g} is reached: run {self.run!r} has spent "
                    f"{spent:.4g}, the next call may cost {cost:.4g}"
                )
                return
        self._show(0)
        await self._pause(POLL_SECONDS)

    async def _answer(self, key: str, body: dict[str, Any]) -> None:
        started = time.monotonic()
        response, cost = await self._call(body)
        if response is None:
            return
        is_replayed = read_response(response).status in REPLAYED
        if is_replayed and self.check:
            try:
                self.check(response)
            except ValueError as error:
                is_replayed = False
                self._stop(f"{self.endpoint.base_url} {error}", is_unsupported=True)
        seconds = time.monotonic() - started
        name = f"{self.endpoint.base_url} {self.endpoint.model}"
        entry = LogEntry(key, is_replayed, self.run, name, body, response, seconds, cost)
        await self._written(self._uncommitted, entry)
        # Where another process came first, its answer is everybody's.
        stored = self.log.get(key) if is_replayed else None
        self.responses[key] = stored or response, False
        self._count_failure(response)
        self._show()

    async def _call(self, body: dict[str, Any]) -> tuple[dict[str, Any] | None, float]:
        """The response, or what went wrong, and the price; None where the run stopped."""
        try:
            response = await retrying(self.limits, self._pause)(self._try, body)
            return response, cost_of(body, response, self.price)
        except _Stopped:
            return None, 0.0
        except TransientError as error:
            if self.reason:
                return None, 0.0
            detail = (
                f"{error}, given up (at most {self.limits.tries} tries in "
                f"{self.limits.total_seconds:g} s)"
            )
            code = None if error.is_answered else NOTHING_ANSWERED
            return {"error": {"message": detail, "code": code}}, 0.0
        except ContentFilterError as error:
            return {"error": {"message": str(error), "code": "content_filter"}}, 0.0
        except ChatError as error:
            self._stop(str(error), isinstance(error, UnsupportedError))
            return {"error": {"message": str(error)}}, 0.0

    async def _try(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.reason:
            raise _Stopped
        import openai

        path = "/chat/completions" if "messages" in body else "/completions"
        problem = None
        try:
            # The body goes as it stands in the log and the text comes as it is: the SDK's
            # own types would rebuild each message and wrap anything into an answer.
            async with asyncio.timeout(self.limits.try_seconds):
                raw = await self._client.post(path, cast_to=str, body=body)
        except TooLargeError as error:
            return {"error": {"message": str(error)}}
        except (openai.APIError, TimeoutError) as error:
            problem = problem_of(error, self.endpoint.base_url, self._secret)
        if problem:
            raise problem
        text = self._secret.removed_from(raw)
        if text.lstrip().startswith(("data:", "event:")):
            return {"error": {"message": "a stream came where none was asked for"}}
        try:
            response = json.loads(text)
        except RecursionError:
            return {"error": {"message": "the response is nested too deep"}}
        except ValueError:
            return {"error": {"message": f"the response is not JSON: {one_line(text, 80)}"}}
        if not isinstance(response, dict):
            return {"error": {"message": "the response is not a JSON object"}}
        if is_deeper(response, DEEPEST):
            return {"error": {"message": "the response is nested too deep"}}
        return response

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    def _stop(self, reason: str, is_unsupported: bool = False) -> None:
        if not self.reason:
            self.reason, self.is_unsupported = reason, is_unsupported
        self._stopped.set()

    def _count_failure(self, response: Mapping[str, Any]) -> None:
        answer = read_response(response)
        if answer.status != ERROR:
            self._n_failed_in_a_row = 0
            return
        self._n_failed += 1
        self._n_failed_in_a_row += 1
        problem = response.get("error")
        code = problem.get("code") if isinstance(problem, Mapping) else None
        # One request that a server cannot answer must not stop the others.
        enough = self._n_calls if code == NOTHING_ANSWERED else FAILURES_IN_A_ROW
        if self._n_failed_in_a_row >= min(FAILURES_IN_A_ROW, enough):
            self._stop(f"{self.endpoint.base_url} does not answer: {answer.detail}")

    def _show(self, n_done: int = 1) -> None:
        text = f"{self.n_cached} cached, {self._n_failed} failed"
        if self._claimed_elsewhere:
            text += f", {len(self._claimed_elsewhere)} asked by another run"
        if not self._has_room:
            text += ", waiting for room under the cap"
        self.bar.set_postfix_str(text, False)
        self.bar.update(n_done)

    async def _written(self, waiting: list[tuple[Any, asyncio.Future]], item: Any) -> None:
        """Wait until the item is on the disk; items that meet go there together."""
        done = asyncio.get_running_loop().create_future()
        waiting.append((item, done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        await done

    async def _write(self) -> None:
        """Commit what was answered and, where workers are idle, claim what comes next."""
        while self._uncommitted or self._idle:
            entries, self._uncommitted = self._uncommitted, []
            idle, self._idle = self._idle, []
            n_wanted = len(idle) + self.concurrency - len(self._ready) if idle else 0
            wanted = dict(islice(self.pending, max(n_wanted, 0)))
            most = {key: most_it_costs(body, self.price) for key, body in wanted.items()}
            problem = None
            try:
                claimed = await asyncio.to_thread(
                    self._put_and_claim, [entry for entry, _ in entries], most
                )
                self._claimed |= {key: most[key] for key in claimed}
                self._sort(wanted)
            except Exception as error:
                problem = error
            for _, done in (*entries, *idle):
                if done.done():
                    continue
                if problem:
                    done.set_exception(problem)
                else:
                    done.set_result(None)

    def _put_and_claim(self, entries: list[LogEntry], most: Mapping[str, float]) -> set[str]:
        if entries:
            self.log.put(entries)
        return self._claim(most)

    def _claim(self, most: Mapping[str, float]) -> set[str]:
        return self.log.claim(most, self._owner, run=self.run, most=most, cap=self.cap)

    def _sort(self, wanted: Mapping[str, dict[str, Any]]) -> None:
        """Take the calls that were to be claimed from the pending ones, by what came of it."""
        without_room = []
        for key, body in wanted.items():
            self.pending.popleft()
            if key in self._claimed:
                self._ready.append((key, body))
            elif self.log.is_claimed(key, self._owner):
                # Another process asks this: its answer will serve both.
                self._claimed_elsewhere.append((key, body))
            elif (logged := self.log.get(key)) is not None:
                self.responses[key] = logged, True
                self._show()
            else:
                without_room.append((key, body))
        self.pending.extendleft(reversed(without_room))
        self._has_room = self.cap is None or not without_room

    async def _renew(self) -> None:
        """Hold the claims of calls in flight, however long these take."""
        while True:
            await asyncio.sleep(self.log.lease_seconds / 4)
            # Busy, or a full disk: there are more turns.
            with contextlib.suppress(sqlite3.OperationalError, DiskFullError):
                claimed = dict(self._claimed)
                held = await asyncio.to_thread(self._claim, claimed)
                for key in claimed.keys() - held:
                    self._claimed.pop(key, None)
