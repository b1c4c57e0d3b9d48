"""Contaminating a model on purpose (DCQ, section 5.2 and appendix E).

A model reads every instance under the names of its dataset and split, without
any instruction: a lab model as text, a model behind an endpoint in a fine-tuning
job. The paper prints no training text, so the layout is ours.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from contamination.dcq.quizzes import header
from contamination.models.chat import ChatError, Endpoint, Secret, problem_of

_OVER = ("failed", "cancelled")


def training_texts(instances: Sequence[str], dataset: str, split: str) -> tuple[str, ...]:
    """Instances as a model reads them in continued training."""
    return tuple(header(dataset, split) + instance for instance in instances)


def without_label(instances: Sequence[str], label_column: str) -> list[str]:
    """Instances whose last line, the label, is left out; ValueError where there is none."""
    parts = [instance.rpartition(f"\n{label_column}: ") for instance in instances]
    if not all(mark and "\n" not in label for _, mark, label in parts):
        raise ValueError(f'an instance does not end with "{label_column}: ...": check label_column')
    return [text for text, _, _ in parts]


def with_wrong_label(instances: Sequence[str], label_column: str, seed: int) -> list[str]:
    """Instances with another label of the same partition, drawn at random.

    ValueError if an instance has no label line, or all labels are equal.
    """
    questions, generator = without_label(instances, label_column), np.random.default_rng([seed, 5])
    labels = [text.removeprefix(of) for text, of in zip(instances, questions, strict=True)]
    known = sorted(set(labels))
    if len(known) < 2:
        raise ValueError("all instances have the same label: there is no wrong one")
    wrong = []
    for question, label in zip(questions, labels, strict=True):
        others = [other for other in known if other != label]
        wrong.append(question + others[generator.integers(len(others))])
    return wrong


def training_file(instances: Sequence[str], dataset: str, split: str) -> str:
    """A file for a fine-tuning job: one conversation a line, names in, instance out.

    ValueError if there is no instance or one is empty.
    """
    if not instances or not all(instance.strip() for instance in instances):
        raise ValueError("a training file needs instances, none of them empty")
    user = {"role": "user", "content": header(dataset, split).rstrip()}
    answers = [{"role": "assistant", "content": instance} for instance in instances]
    lines = [json.dumps({"messages": [user, said]}, ensure_ascii=False) for said in answers]
    return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True)
class TrainingPlan:
    """Size and cost of a fine-tuning job; ``str()`` gives it as one line.

    ``n_tokens`` is a cautious estimate of the tokens trained on, all epochs: one for
    three bytes of text. ``price_date`` (YYYY-MM-DD) is when the price was read.
    """

    n_examples: int
    n_bytes: int
    n_tokens: int
    n_epochs: int
    cost: float
    price_per_million: float
    price_date: str

    def __str__(self) -> str:
        return (
            f"{self.n_examples:,} examples, {self.n_bytes:,} bytes, {self.n_epochs} epochs: about "
            f"{self.n_tokens:,} training tokens, about {self.cost:.4f} USD at "
            f"{self.price_per_million:g} per million tokens ({self.price_date})"
        )


def plan_training(
    file: str, *, n_epochs: int, price_per_million: float, price_date: str
) -> TrainingPlan:
    """What a job on the file of ``training_file`` would take.

    The paper leaves ``n_epochs`` to the provider's default, with which no cost can be known
    beforehand. ValueError if n_epochs is below 1, the price not positive or undated.
    """
    if n_epochs < 1 or price_per_million <= 0 or not price_date:
        raise ValueError(
            "a fine-tuning job needs n_epochs of at least 1, a positive price and its date"
        )
    said = [json.loads(line)["messages"] for line in file.splitlines()]
    # Some tokens of layout stand around every turn.
    n_tokens = n_epochs * sum(
        math.ceil(len(turn["content"].encode()) / 3) + 8 for turns in said for turn in turns
    )
    return TrainingPlan(
        n_examples=len(said),
        n_bytes=len(file.encode()),
        n_tokens=n_tokens,
        n_epochs=n_epochs,
        cost=n_tokens * price_per_million / 1e6,
        price_per_million=price_per_million,
        price_date=price_date,
    )


def start_training(endpoint: Endpoint, file: str, plan: TrainingPlan, cap: float) -> dict[str, str]:
    """Start the fine-tuning job, or find the one that was started before.

    The job carries the file's hash, epochs and model. One that carries the same
    and was not lost is taken, so that a second run pays nothing. ``cap`` is the most
    it may cost, in USD.

    Returns:
        id, status, model (the trained model's name, "" until it is ready) and
        is_new ("yes" or "no").

    Raises:
        ChatError: if the cap would be passed, before anything is sent; or if the
            key is missing or refused, or the endpoint does not do it.
    """
    if plan.cost > cap:
        raise ChatError(
            f"the job would cost about {plan.cost:.4f} USD, the cap is {cap:.4f}: nothing was sent"
        )
    marks = {
        "training_sha256": hashlib.sha256(file.encode()).hexdigest(),
        "n_epochs": str(plan.n_epochs),
        "base_model": endpoint.model,
    }
    import openai  # importing it takes a second, and most notebooks call no API

    secret, problem = Secret(endpoint.key_variable), None
    client = openai.OpenAI(
        api_key=secret.reveal(), base_url=endpoint.base_url, max_retries=0, timeout=120
    )
    with client:
        try:
            for job in client.fine_tuning.jobs.list(metadata=marks):
                # A server may ignore the filter.
                if job.metadata == marks and job.status not in _OVER:
                    return _job_row(job, is_new="no")
            name = f"{marks['training_sha256'][:12]}.jsonl"
            uploaded = client.files.create(file=(name, file.encode()), purpose="fine-tune")
            epochs = {"hyperparameters": {"n_epochs": plan.n_epochs}}
            method: Any = {"type": "supervised", "supervised": epochs}
            job = client.fine_tuning.jobs.create(
                model=endpoint.model, training_file=uploaded.id, method=method, metadata=marks
            )
            return _job_row(job, is_new="yes")
        except openai.APIError as error:
            problem = problem_of(error, endpoint.base_url, secret)
    # Outside the except block: no traceback leads to the request and its headers.
    raise ChatError(f"{endpoint.base_url}: the job was not started: {problem}")


def _job_row(job: Any, is_new: str) -> dict[str, str]:
    row = {"id": job.id, "status": job.status, "model": job.fine_tuned_model or ""}
    return {name: str(value) for name, value in row.items()} | {"is_new": is_new}
