"""What a large study costs: docs/planning.md, computed from measured units and stated assumptions.

    python benchmarks/plan.py --write          # docs/planning.md
    python benchmarks/plan.py mine.yaml        # the same page for your own assumptions, printed

The YAML holds the assumptions that differ, one `name: value` a line. Units are
measured anew on every run: requests are composed and stored by the functions of
the study itself, operations are counted on a model of shapes without weights.
"""

from __future__ import annotations

import math
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM

from contamination.core import caches, storage
from contamination.core.parameters import OwnSettings, load_parameter_file, setting
from contamination.dcq.perturbation import Ask
from contamination.dcq.prompts import perturbation_request
from contamination.dcq.respondents import ChatRespondent
from contamination.dice.fine_tuning import FP32_BYTES
from contamination.models.chat import Endpoint, Request
from contamination.models.exchange import body_of, input_tokens, key_of, requests_of_prompts
from contamination.models.log_layout import LogEntry
from contamination.models.response_log import ResponseLog
from contamination.replication.instructions import (
    CLASSIFICATION,
    INSTRUCT,
    INSTRUCTIONS,
    JUDGE_OPTIONS,
    JUDGE_PROMPT,
    PAPER_OPTIONS,
    prompt_for,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "planning.md"
ENDPOINT = Endpoint("http://127.0.0.1:1/v1", "model-2024-01-01", key_variable=None)
LETTER_TOKENS, VERDICT_TOKENS = 1, 10
N_STORED = 500  # requests and batches whose bytes on the disk are measured
HEADINGS = {"gpu_hours": "GPU hours", "storage_gb": "storage, GB"}
SCORED = ("token_log_probs", "vocabulary_mean", "vocabulary_std")


@dataclass(frozen=True)
class Assumptions(OwnSettings):
    """What a plan takes for granted; none of it is measured here."""

    n_hosted_models: int = setting(20, "models behind other people's APIs: two black-box methods")
    open_model_sizes: list[float] = setting(
        [1.4, 7.0, 13.0, 34.0, 70.0], "sizes of open models, 10⁹ parameters: all four methods"
    )
    open_model_counts: list[int] = setting([6, 12, 6, 3, 3], "open models of each size")
    open_model_widths: list[int] = setting(
        [2048, 4096, 5120, 7168, 8192], "width of the hidden state of each size"
    )
    n_benchmarks: int = setting(30, "benchmarks, one partition of each")
    instance_tokens: int = setting(100, "tokens of an instance")
    n_quiz_instances: int = setting(100, "DCQ: instances of a partition, as in the paper")
    n_positions: int = setting(4, "DCQ: standard quizzes of an instance, at most 4")
    n_replicated_instances: int = setting(10, "replication: instances, as in the paper")
    n_instructions: int = setting(3, "replication: guided, general and one placebo")
    n_passages: int = setting(1000, "Min-k%: passages of a benchmark")
    passage_tokens: int = setting(200, "Min-k%: tokens of a passage")
    n_neighbors: int = setting(10, "Min-k%: neighbours of a passage, for the Neighbor baseline")
    reference_share: float = setting(
        0.1, "Min-k%: size of the reference model, as a share of the target's"
    )
    n_clean_models: int = setting(2, "DICE: clean fine-tunings of each model, two for the control")
    n_fine_tuning_rows: int = setting(25_000, "DICE: rows in a fine-tuning, as in the paper")
    row_tokens: int = setting(250, "DICE: tokens of a row")
    n_questions: int = setting(1000, "DICE: questions of a benchmark whose states are read")
    n_states: int = setting(3, "DICE: layers whose states are kept")
    scoring_tflops: float = setting(200.0, "TFLOP/s that one GPU sustains in a forward pass")
    training_tflops: float = setting(150.0, "TFLOP/s that one GPU sustains in training")
    generation_tflops: float = setting(20.0, "TFLOP/s that one GPU sustains while it generates")
    n_gpus: int = setting(8, "GPUs that work at the same time")
    n_concurrent_calls: int = setting(16, "calls in flight at an API")
    call_seconds: float = setting(2.0, "seconds for a call to an API")

    @property
    def n_open_models(self) -> int:
        return sum(self.open_model_counts)

    @property
    def parameters(self) -> float:
        """Parameters of all open models together."""
        pairs = zip(self.open_model_sizes, self.open_model_counts, strict=True)
        return 1e9 * sum(size * count for size, count in pairs)

    @property
    def widths(self) -> int:
        """Widths of all open models together."""
        return sum(np.multiply(self.open_model_widths, self.open_model_counts).tolist())


# Measured units


def text_of(n_tokens: int) -> str:
    """A text that the package counts as so many tokens: three bytes each."""
    return ("ab " * n_tokens)[: 3 * n_tokens]


def requests_of(plan: Assumptions) -> dict[str, tuple[Request, int]]:
    """One request of every kind and the tokens of its answer."""
    whole, half = text_of(plan.instance_tokens), text_of(plan.instance_tokens // 2)
    ask: Ask = partial(list)  # nothing is asked
    quiz = ChatRespondent(ask, "dataset", "train").requests([(whole,) * 4])[0]
    names = {"dataset": "dataset", "split": "train", "form": INSTRUCT}
    piece = {"first_piece": half, "label": "1 (positive)"}
    judgement = JUDGE_PROMPT.format(reference=half, candidate=half)
    guided = prompt_for(INSTRUCTIONS[0], CLASSIFICATION, piece, **names)
    return {
        "perturbation": (perturbation_request({"text": whole}, ["text"]), 4 * plan.instance_tokens),
        "quiz": (quiz, LETTER_TOKENS),
        "completion": (requests_of_prompts([guided], PAPER_OPTIONS)[0], plan.instance_tokens // 2),
        "verdict": (requests_of_prompts([judgement], JUDGE_OPTIONS)[0], VERDICT_TOKENS),
    }


def measured_requests(plan: Assumptions, folder: Path) -> pd.DataFrame:
    """Tokens in and out of one request of every kind, and its bytes in the response log."""
    rows = {}
    for kind, (request, n_out) in requests_of(plan).items():
        body, path = body_of(ENDPOINT, request), folder / f"{kind}.sqlite"
        n_in = input_tokens(body)
        response = {
            "model": ENDPOINT.model,
            "choices": [{"message": {"content": text_of(n_out)}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": n_in, "completion_tokens": n_out},
        }
        entry = LogEntry(key_of(ENDPOINT, request), True, "plan", "plan", body, response, 0.0, 0.0)
        with ResponseLog(path) as log:
            log.put([entry] * N_STORED)
        rows[kind] = n_in, n_out, path.stat().st_size / N_STORED
    return pd.DataFrame.from_dict(rows, "index", columns=["input", "output", "bytes"])


def bytes_per_scored_token(plan: Assumptions, folder: Path) -> float:
    """Bytes that the score cache keeps of one token: three fp32 numbers and its share of a file."""
    n = 4096 // plan.passage_tokens * plan.passage_tokens
    arrays = {name: np.zeros(n, dtype=np.float32) for name in SCORED}
    caches.seal(storage.write_safetensors(folder / "batch.safetensors", arrays, durable=False))
    return sum(path.stat().st_size for path in folder.glob("batch.*")) / n


def flop_per_parameter(is_training: bool, n_tokens: int) -> float:
    """Operations for one token and parameter, counted on a Llama of 1.3 * 10⁹ parameters."""
    config = LlamaConfig(
        num_hidden_layers=24,
        hidden_size=2048,
        num_attention_heads=16,
        intermediate_size=5504,
        vocab_size=32_000,
    )
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:  # shapes, no numbers
        model = LlamaForCausalLM(config)
        input_ids = torch.zeros((1, n_tokens), dtype=torch.long)
        logits = model(input_ids=input_ids, use_cache=False).logits
        if is_training:
            logits.sum().backward()
    return counter.get_total_flops() / n_tokens / model.num_parameters()


# The plan


def costs(plan: Assumptions, units: pd.DataFrame, forward: float, training: float, scored: float):
    """Calls, tokens, GPU hours and bytes of every step of every method.

    Args:
        plan: the assumptions.
        units: ``measured_requests``.
        forward, training: operations for one token and parameter.
        scored: bytes kept of one scored token.
    """
    n_models, n_benchmarks = plan.n_hosted_models + plan.n_open_models, plan.n_benchmarks
    rows = []

    def asked(method: str, step: str, kind: str, n_calls: int, is_asked_of_model: bool) -> None:
        unit = units.loc[kind]
        row = {"method": method, "step": step, "calls": n_calls}
        row |= {"input_tokens": n_calls * unit["input"], "output_tokens": n_calls * unit["output"]}
        row["storage_gb"] = n_calls * unit["bytes"] / 1e9
        if is_asked_of_model:  # open models are served by one's own GPUs
            each = n_calls / n_models * plan.parameters * forward
            seconds = each * unit["input"] / (1e12 * plan.scoring_tflops)
            seconds += each * unit["output"] / (1e12 * plan.generation_tflops)
            row["gpu_hours"] = seconds / 3600
        rows.append(row)

    def computed(method: str, step: str, flop: float, tflops: float, n_bytes: float) -> None:
        hours = flop / (1e12 * tflops) / 3600
        rows.append(
            {"method": method, "step": step, "gpu_hours": hours, "storage_gb": n_bytes / 1e9}
        )

    n_instances = n_benchmarks * plan.n_quiz_instances
    asked("DCQ", "perturbations, once for all models", "perturbation", n_instances, False)
    n_quizzes = n_models * n_instances * (1 + plan.n_positions)
    asked("DCQ", "modified and standard quizzes", "quiz", n_quizzes, True)
    n_written = n_models * n_benchmarks * plan.n_replicated_instances * plan.n_instructions
    asked("replication", "completions", "completion", n_written, True)
    asked("replication", "verdicts of the ICL judge", "verdict", n_written, False)

    n_tokens = n_benchmarks * plan.n_passages * plan.passage_tokens
    for step, n_passes in (
        ("passages, also lowercased", 2),
        ("passages by the reference model", plan.reference_share),
        ("neighbours", plan.n_neighbors),
    ):
        n_texts = 1 if step.endswith("model") else n_passes
        kept = plan.n_open_models * n_texts * n_tokens * scored
        flop = n_passes * n_tokens * plan.parameters * forward
        computed("Min-k%", step, flop, plan.scoring_tflops, kept)

    n_tuned = plan.n_clean_models + n_benchmarks  # of each model
    read = plan.n_fine_tuning_rows * plan.row_tokens
    weights = FP32_BYTES * plan.parameters * n_tuned
    flop = n_tuned * read * plan.parameters * training
    computed("DICE", "fine-tunings, checkpoints kept", flop, plan.training_tflops, weights)
    # Each contaminated model reads its benchmark, each clean one reads all of them.
    n_read = n_benchmarks * (1 + plan.n_clean_models) * plan.n_questions
    flop = n_read * plan.instance_tokens * plan.parameters * forward
    kept = n_read * plan.n_states * 4 * plan.widths
    computed("DICE", "hidden states", flop, plan.scoring_tflops, kept)
    columns = ["calls", "input_tokens", "output_tokens", "gpu_hours", "storage_gb"]
    return pd.DataFrame(rows).reindex(columns=["method", "step", *columns])


def number(value: float) -> str:
    """Two significant digits, as a plan deserves; an empty cell where there is none.

    >>> number(1234567), number(0.0456), number(math.nan)
    ('1,200,000', '0.046', '')
    """
    if math.isnan(value):
        return ""
    return f"{float(f'{value:.2g}'):,.10g}"


def table(frame: pd.DataFrame) -> str:
    """A Markdown table; numbers stand on the right."""
    is_number = [kind.kind in "if" for kind in frame.dtypes]
    rule = ["---:" if right else "---" for right in is_number]
    cells = [
        [number(cell) if right else str(cell) for cell, right in zip(row, is_number, strict=True)]
        for row in frame.itertuples(index=False)
    ]
    lines = [[HEADINGS.get(name, name.replace("_", " ")) for name in frame], rule, *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def sentences(plan: Assumptions, steps: pd.DataFrame) -> str:
    """What the table says: the largest posts, and the time they take."""
    named = steps.assign(name=steps["method"] + " (" + steps["step"] + ")")
    parts = []
    for column, what in (
        ("calls", "calls, {} % go"),
        ("gpu_hours", "GPU hours, {} % go"),
        ("storage_gb", "storage, {} % goes"),
    ):
        largest = named.loc[named[column].idxmax()]
        share = 100 * largest[column] / named[column].sum()
        parts.append(f"Of the {what.format(f'{share:.0f}')} to {largest['name']}.")
    days = steps["calls"].sum() * plan.call_seconds / plan.n_concurrent_calls / 86_400
    gpu_days = steps["gpu_hours"].sum() / plan.n_gpus / 24
    parts.append(
        f"All calls take {number(days)} days at {plan.n_concurrent_calls} at a time, all forward "
        f"passes and training runs {number(gpu_days)} days on {plan.n_gpus} GPUs."
    )
    return " ".join(parts)


def page(plan: Assumptions) -> str:
    """docs/planning.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        units = measured_requests(plan, folder)
        scored = bytes_per_scored_token(plan, folder)
    forward = flop_per_parameter(False, plan.passage_tokens)
    training = flop_per_parameter(True, plan.row_tokens)
    steps = costs(plan, units, forward, training, scored)
    totals = steps.drop(columns="step").groupby("method", sort=False).sum(min_count=1)
    totals.loc["all"] = totals.sum(min_count=1)
    assumed = plan.described().assign(value=[repr(v) for v in vars(plan).values()])
    n_models = plan.n_hosted_models + plan.n_open_models
    shown = units.rename_axis("request").reset_index()
    shown = shown.set_axis(
        ["request", "input tokens", "output tokens", "bytes in the response log"], axis=1
    )
    return "\n".join(
        [
            f"# Planning: {n_models} models, {plan.n_benchmarks} benchmarks, four methods",
            "",
            "Written by `python benchmarks/plan.py --write` from the units and assumptions below; "
            "`python benchmarks/plan.py mine.yaml` prints the page for your own. Two significant "
            "digits are shown. The page gives no prices: multiply the tokens by the prices of the "
            "day, which the notebooks ask for as well.",
            "",
            "## What it costs",
            "",
            table(totals.reset_index()),
            "",
            sentences(plan, steps),
            "",
            "Step by step:",
            "",
            table(steps),
            "",
            "Models behind other people's APIs give no token log-probabilities and no hidden "
            "states, so Min-k% and DICE run on the open models alone. GPU hours of DCQ and "
            "replication are those of serving the open models. Checkpoints of DICE need no room "
            "once their states are read: how much they take depends on how many you keep. "
            "Left out: the fill-mask model that writes neighbours, the classifiers that see no "
            "model, and the answers by which DICE measures accuracy.",
            "",
            "## Measured units",
            "",
            table(shown),
            "",
            f"One token costs {forward:.2f} operations for each parameter in a forward pass and "
            f"{training:.2f} in training (counted on a Llama of 1.3 · 10⁹ parameters), and "
            f"{scored:.1f} bytes in the score cache. Input tokens are the cautious estimate of "
            "`models.chat.estimate`, one for every three bytes.",
            "",
            "## Assumptions",
            "",
            table(assumed[["setting", "value", "meaning"]]),
            "",
            "What a GPU sustains depends on the model and the GPU: measure yours with "
            "`python benchmarks/bench_scoring.py` and enter 2 · parameters · tokens/s.",
            "",
        ]
    )


def main(arguments: list[str]) -> None:
    given = [name for name in arguments if name != "--write"]
    plan = Assumptions.read(load_parameter_file(Path(given[0])) if given else {})
    if "--write" in arguments:
        storage.write_text(PAGE, page(plan))
    else:
        print(page(plan), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
