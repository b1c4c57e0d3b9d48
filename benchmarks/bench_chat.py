"""Speed of the chat client beside a bare HTTP loop, and of look-ups in a long log.

Both clients make the same calls at the same concurrency to a scripted server in
another process, and take turns; the ratio is the median over rounds. The client
hashes, claims, retries, and commits every answer to the disk; the bare loop posts and
parses JSON.

    python benchmarks/bench_chat.py
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import httpx2

from contamination.models.chat import Endpoint, Request, answer_all
from contamination.models.log_layout import LogEntry
from contamination.models.response_log import ResponseLog

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from scripted_server import MODEL, ScriptedServer, good

N_CALLS, CONCURRENCY, DELAY, N_ROUNDS = 500, 50, 0.2, 3
N_ANSWERS, N_LOOKUPS, N_PER_COMMIT = 1_000_000, 50_000, 20_000


def serve(connection) -> None:
    with ScriptedServer(lambda body, n: replace(good("B"), delay=DELAY)) as server:
        connection.send(server.base_url)
        connection.recv()


def requests(n_round: int) -> list[Request]:
    texts = (f"round {n_round}, question {number}" for number in range(N_CALLS))
    return [Request(messages=[{"role": "user", "content": text}]) for text in texts]


async def bare_loop(base_url: str, requests: list[Request]) -> None:
    pending = deque(requests)

    async def work(client: httpx2.AsyncClient) -> None:
        while pending:
            body = {"model": MODEL, "messages": pending.popleft().messages}
            response = await client.post(f"{base_url}/chat/completions", json=body)
            assert response.json()["choices"][0]["message"]["content"] == "B"

    limits = httpx2.Limits(max_connections=CONCURRENCY)
    async with httpx2.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
        await asyncio.gather(*(work(client) for _ in range(CONCURRENCY)))


def time_calls(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,), daemon=True)
    process.start()
    endpoint = Endpoint(here.recv(), MODEL, key_variable=None)
    bare, client = [], []
    with ResponseLog(folder / "calls.sqlite") as log:
        for n_round in range(N_ROUNDS):
            started = time.perf_counter()
            asyncio.run(bare_loop(endpoint.base_url, requests(n_round)))
            bare.append(time.perf_counter() - started)
            started = time.perf_counter()
            answers = answer_all(
                endpoint, requests(n_round), log=log, concurrency=CONCURRENCY, progress=False
            )
            client.append(time.perf_counter() - started)
            assert all(answer.status == "ok" and not answer.from_log for answer in answers)
    here.send("end")
    process.join()
    ratio = median(ours / theirs for ours, theirs in zip(client, bare, strict=True))
    print(f"{N_CALLS} calls of {1000 * DELAY:.0f} ms, {CONCURRENCY} at a time")
    print(f"  bare HTTP loop       {median(bare):6.2f} s")
    print(f"  client and log       {median(client):6.2f} s")
    print(f"  ratio                {ratio:6.2f}   (limit 1.2)")


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def entries(numbers: range) -> Iterator[LogEntry]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "word " * 40}]}
    response = good("B").body
    for number in numbers:
        yield LogEntry(key(number), True, "bench", "endpoint", body, response, 0.2, 0.0)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def time_lookups(folder: Path) -> None:
    path = folder / "long.sqlite"
    with ResponseLog(path) as log:
        started = time.perf_counter()
        for first in range(0, N_ANSWERS, N_PER_COMMIT):
            log.put(list(entries(range(first, first + N_PER_COMMIT))))
        filled = time.perf_counter() - started
    generator = random.Random(0)
    known = [key(generator.randrange(N_ANSWERS)) for _ in range(N_LOOKUPS)]
    unknown = [key(N_ANSWERS + number) for number in range(N_LOOKUPS)]
    with ResponseLog(path) as log:
        before = peak_megabytes()
        started = time.perf_counter()
        assert all(log.get(k) is not None for k in known)
        hits = N_LOOKUPS / (time.perf_counter() - started)
        started = time.perf_counter()
        assert not any(k in log for k in unknown)
        misses = N_LOOKUPS / (time.perf_counter() - started)
        grown = peak_megabytes() - before
    size = path.stat().st_size / 2**20
    print(f"look-ups in a log of {N_ANSWERS:,} answers, {size:,.0f} MB, filled in {filled:.0f} s")
    print(f"  held                 {hits:8,.0f} keys/s   (limit 5,000)")
    print(f"  not held             {misses:8,.0f} keys/s   (limit 5,000)")
    print(f"  peak memory          {before:8,.0f} MB, and {grown:.0f} MB more for the look-ups")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        time_calls(Path(folder))
        time_lookups(Path(folder))


if __name__ == "__main__":
    main()
