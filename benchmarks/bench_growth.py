"""Cost per item and peak memory from 10^3 to 10^5 items: docs/growth.md and its figure.

Every size of every task runs in a process of its own, whose peak memory the
operating system reports. Cost is processor time, which other work on the
machine disturbs least; setting up (imports, the model, filling a log that is
then read) is not part of it, but it is part of the peak. Sizes take turns, so
that a slow minute of the machine meets more than one of them, and the least
time of a size counts. That is hard on the largest: a long run has fewer chances
of a quiet moment.

    python benchmarks/bench_growth.py
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

SIZES = (1_000, 10_000, 100_000)
IN_TURN = (1_000, 10_000, 100_000, 10_000, 1_000)  # sizes of one round
N_ROUNDS = 3
LIMIT = 1.1
DOCS = Path(__file__).resolve().parents[1] / "docs"
CHUNK = 1_000


@cache
def words() -> list[str]:
    from wordfreq import top_n_list

    return top_n_list("en", 5000)


def sentences(n: int, seed: int = 0) -> Iterator[str]:
    """Texts of 5 to 15 English words, made one at a time."""
    draw = random.Random(seed)
    for _ in range(n):
        yield " ".join(draw.choices(words(), k=draw.randint(5, 15)))


def begin() -> float:
    """Processor time now; what is there stays out of garbage collection, as in a notebook."""
    gc.freeze()
    return time.process_time()


def scoring(n: int) -> float:
    """Min-k% Prob of texts by a small model of the lab's shape, scores kept on disk."""
    import numpy as np

    from contamination.core.scores import min_k_score
    from contamination.lab.recipes import TrainingTexts, recipe_for
    from contamination.lab.tokenizer import train_tokenizer
    from contamination.lab.training import build_model
    from contamination.models.causal import CausalLM, stream_token_log_probs

    background = tuple(sentences(2_000, seed=1))
    texts = TrainingTexts(background, (), train_tokenizer(background, vocabulary=1024))
    recipe = recipe_for(texts, n_background_tokens=1, n_layers=2, width=32, n_heads=2)
    model = build_model(recipe, texts.tokenizer).eval()
    lm = CausalLM(model, texts.tokenizer, {"model": "random", "bos": "first"})
    list(stream_token_log_probs(lm, background[:10]))  # starts the kernels
    started = begin()
    scores = np.fromiter(
        (min_k_score(s.token_log_probs, 20) for s in stream_token_log_probs(lm, sentences(n))),
        float,
        count=n,
    )
    assert np.isfinite(scores).all()
    return time.process_time() - started


def dcq(n: int) -> float:
    """Questions of the Data Contamination Quiz, five for each instance, answered from the log."""
    from functools import partial

    import pandas as pd

    from contamination.dcq.assessment import POSITIONS, assessment_row
    from contamination.dcq.deployment import answer_quizzes, instances_of
    from contamination.dcq.quizzes import MODIFIED, STANDARD, quiz_options
    from contamination.dcq.respondents import ChatRespondent
    from contamination.models.chat import Endpoint, answer_all
    from contamination.models.response_log import ResponseLog

    n_instances = n // 5
    texts = [list(sentences(n_instances, seed)) for seed in range(5)]
    columns = ["instance", "option_a", "option_b", "option_c", "option_d"]
    quizzes = pd.DataFrame(dict(zip(columns, texts, strict=True))).assign(index=range(n_instances))
    endpoint = Endpoint("http://127.0.0.1:1/v1", "scripted-2024-01-01", key_variable=None)
    with ResponseLog() as log:
        ask = partial(answer_all, endpoint, log=log, offline=True, progress=False)
        respondent = ChatRespondent(ask, "dataset", "train")
        for position in ("", *POSITIONS):
            for start in range(0, n_instances, CHUNK):
                part = quizzes[start : start + CHUNK]
                quiz = STANDARD if position else MODIFIED
                requests = respondent.requests(quiz_options(part, quiz, position))
                log.put([entry(endpoint, request, position or "E") for request in requests])
        answer_quizzes(respondent, quizzes[:10])  # loads what it takes
        started = begin()
        answers = answer_quizzes(respondent, quizzes)
        row = assessment_row(instances_of(answers), n_resamples=100, seed=0)
        assert len(answers) == n
        assert row["max_pct"] == 100
        return time.process_time() - started


def entry(endpoint, request, letter: str):
    """An answer as it stands in the log."""
    from contamination.models.exchange import body_of, key_of
    from contamination.models.log_layout import LogEntry

    response = {
        "model": endpoint.model,
        "choices": [{"message": {"content": letter}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 1},
    }
    body = body_of(endpoint, request)
    return LogEntry(key_of(endpoint, request), True, "bench", "scripted", body, response, 0.0, 0.0)


def replication(n: int) -> float:
    """Completions scored by ROUGE-L and judged by the rule, half of them near the original."""
    import pandas as pd

    from contamination.replication.decisions import with_scores

    pairs = zip(sentences(n), sentences(n, seed=1), strict=True)
    completed = pd.DataFrame(
        (
            (original, other if number % 2 else f"{original} {other.split()[0]}", "ok")
            for number, (original, other) in enumerate(pairs)
        ),
        columns=["second_piece", "completion", "status"],
    )
    with_scores(completed[:10], near_exact_threshold=0.9)  # loads what it scores with
    started = begin()
    scored = with_scores(completed, near_exact_threshold=0.9)
    assert scored["rouge"].notna().all()
    return time.process_time() - started


def response_log(n: int) -> float:
    """Answers committed to the log, and each looked up again."""
    from contamination.models.chat import Endpoint, Request
    from contamination.models.exchange import key_of
    from contamination.models.response_log import ResponseLog

    endpoint = Endpoint("http://127.0.0.1:1/v1", "scripted-2024-01-01", key_variable=None)
    words()
    started = begin()
    with ResponseLog() as log:
        for start in range(0, n, CHUNK):
            requests = [Request(prompt=text) for text in sentences(CHUNK, seed=start)]
            log.put([entry(endpoint, request, "A") for request in requests])
            assert all(log.get(key_of(endpoint, request)) for request in requests)
    return time.process_time() - started


TASKS: dict[str, Callable[[int], float]] = {
    "texts scored": scoring,
    "quiz questions administered": dcq,
    "completions scored": replication,
    "answers logged and read": response_log,
}


def measure(task: str, n: int) -> dict:
    """One size of one task in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            [sys.executable, __file__, task, str(n)],
            env=os.environ | {"CONTAMINATION_CACHE": folder, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    return {"task": task, "items": n} | json.loads(found.stdout)


def least(runs: list[dict]) -> list[dict]:
    """Of the runs of a size the least time, which other work disturbed least, and the highest
    peak."""
    rows = []
    for task in TASKS:
        for n in SIZES:
            same = [run for run in runs if run["task"] == task and run["items"] == n]
            seconds, peaks = ([run[name] for run in same] for name in ("seconds", "peak_mb"))
            rows.append({"task": task, "items": n, "seconds": min(seconds), "peak_mb": max(peaks)})
    return rows


def page(rows: list[dict]) -> str:
    """docs/growth.md."""
    lines = [
        "# Growth: cost and memory from 10³ to 10⁵ items",
        "",
        "Written by `make bench` (`benchmarks/bench_growth.py`), which runs every size of every "
        "task in a process of its own, several times in turn. Cost is processor time of one core "
        "for one item, the lowest of all runs; peak is the most memory the process held, Python "
        "and its libraries included. Models are small here, so that any growth is visible; a "
        "larger model adds its weights once and its forward passes to each item.",
        "",
        "![Cost per item and peak memory](growth.png)",
        "",
        "| Task | items | cost per item, ms | peak, MB |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {row['task']} | {row['items']:,} | {1000 * row['seconds'] / row['items']:.3f} "
            f"| {row['peak_mb']:.0f} |"
            for row in rows
        ),
        "",
        "From 10⁴ to 10⁵ items:",
        "",
        "| Task | cost per item | peak memory | memory of one more item, kB |",
        "| --- | ---: | ---: | ---: |",
        *(growth_row(task, rows) for task in TASKS),
        "",
        f"Flat means at most {LIMIT:g} times as much. " + flat_sentence(rows),
        "",
        "Texts are scored in a stream (`stream_token_log_probs`): the token log-probabilities of "
        "4,096 texts are held at a time, and only what is computed from them is kept. Where a "
        "task returns a row for each item, as a quiz and a scored completion do, its table and its "
        "texts grow with the number of items.",
    ]
    return "\n".join(lines) + "\n"


def change(task: str, rows: list[dict]) -> tuple[float, float, float]:
    """From the middle size to the largest: ratios of cost and of peak, kB of one more item."""
    middle, largest = (r for r in rows if r["task"] == task and r["items"] in SIZES[1:])
    cost = (largest["seconds"] / largest["items"]) / (middle["seconds"] / middle["items"])
    more = largest["peak_mb"] - middle["peak_mb"]
    each = 1024 * more / (largest["items"] - middle["items"])
    return cost, largest["peak_mb"] / middle["peak_mb"], each


def growth_row(task: str, rows: list[dict]) -> str:
    cost, peak, each = change(task, rows)
    return f"| {task} | × {cost:.2f} | × {peak:.2f} | {each:.2f} |"


def flat_sentence(rows: list[dict]) -> str:
    """Which tasks are flat in cost, and which in memory."""
    parts = []
    for place, what in enumerate(("The cost of one item", "Peak memory")):
        flat = [task for task in TASKS if change(task, rows)[place] <= LIMIT]
        grows = [task for task in TASKS if task not in flat]
        said = f"{what} is flat for {', '.join(flat) or 'none'}"
        parts.append(said + (f", and grows for {', '.join(grows)}." if grows else "."))
    return " ".join(parts)


def figure(rows: list[dict]):
    """Cost of one item and peak memory against the number of items."""
    import matplotlib.pyplot as plt

    drawn, (cost, peak) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for task, marker in zip(TASKS, "os^D", strict=True):
        chosen = [row for row in rows if row["task"] == task]
        items = [row["items"] for row in chosen]
        each = [1000 * row["seconds"] / row["items"] for row in chosen]
        cost.plot(items, each, marker=marker, label=task)
        peak.plot(items, [row["peak_mb"] for row in chosen], marker=marker, label=task)
    for axes, label in ((cost, "processor time of one item, ms"), (peak, "peak memory, MB")):
        axes.set(xscale="log", xlabel="items", ylabel=label)
    cost.set_yscale("log")
    peak.set_ylim(bottom=0)
    peak.legend(frameon=False)
    return drawn


def main() -> None:
    # Nothing heavy is imported before: a child's peak is at least its parent's memory.
    runs = []
    for _ in range(N_ROUNDS):
        for task in TASKS:
            for n in IN_TURN:
                runs.append(measure(task, n))
                print(f"{task}, {n:,}: {runs[-1]}", flush=True)
    rows = least(runs)
    from contamination.core import storage

    storage.write_text(DOCS / "growth.md", page(rows))
    storage.write_figure(DOCS / "growth.png", figure(rows))
    print(flat_sentence(rows))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        taken = TASKS[sys.argv[1]](int(sys.argv[2]))
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": taken, "peak_mb": peak_mb}))
    else:
        main()
