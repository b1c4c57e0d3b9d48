"""Speed of the chat client beside a bare HTTP loop.

Both clients make the same calls at the same concurrency to a scripted server in
another process, and take turns; the ratio is the median over rounds. The client
hashes, retries, and writes to the disk before and after each call; the bare loop posts and
parses JSON.

    python benchmarks/bench_chat.py
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from statistics import median

import httpx2

from contamination.models.chat import Endpoint, Request, answer_all
from contamination.models.response_log import ResponseLog

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from scripted_server import MODEL, ScriptedServer, good

N_CALLS, CONCURRENCY, DELAY, N_ROUNDS = 500, 50, 0.2, 3


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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        time_calls(Path(folder))


if __name__ == "__main__":
    main()
