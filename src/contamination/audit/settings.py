"""What an audit is told: the model, the dataset, and what an answer may cost."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from contamination.models import bos
from contamination.models.chat import Endpoint, Price
from contamination.models.loading import check_model
from contamination.models.retry import ChatError, Secret
from contamination.parameters import OwnSettings, setting
from contamination.replication.prompts import TASKS

LAB = "lab:"
CONTAMINATED, CLEAN = "lab:contaminated", "lab:clean"
_SECONDS_TO_CONNECT = 5


@dataclass(frozen=True)
class Model(OwnSettings):
    """Parameter ``model``: who is audited."""

    names: list[str] = setting(
        [], "models at base_url, or folders or hub ids; lab:contaminated, lab:clean are trained"
    )
    base_url: str = setting("", "OpenAI-compatible address up to /v1, empty for local models")
    key_variable: str = setting(
        "OPENAI_API_KEY", "NAME of the variable with the key, empty for none"
    )
    gives_log_probs: bool = setting(
        False, "the address echoes its prompt with log-probabilities, as vLLM does"
    )
    dtype: str = setting("float32", "of local models: float32, bfloat16 or float16")
    bos: str = setting("", bos.MEANING)
    reference_models: list[str] = setting(
        [], "local models of the same base that are known to be clean, at least two, for DICE"
    )
    perturber_model: str = setting("", "chat model that writes the quiz's options, empty for none")
    perturber_base_url: str = setting("", "its address")
    perturber_key_variable: str = setting("OPENAI_API_KEY", "NAME of the variable with its key")
    judge_model: str = setting("", "chat model that judges completions, empty for the rule judge")
    judge_base_url: str = setting("", "its address")
    judge_key_variable: str = setting("OPENAI_API_KEY", "NAME of the variable with its key")
    prices: list[float] = setting(
        [], "per million input and output tokens: model, then perturber, then judge"
    )
    price_date: str = setting("", "day on which you read the prices, YYYY-MM-DD")
    cost_cap: float = setting(
        0.0, "most that all of it may cost, earlier runs included, 0 for none"
    )
    limit_option: str = setting(
        "max_tokens", "or max_completion_tokens where the endpoint wants it"
    )
    has_temperature: bool = setting(True, "false for models that refuse a temperature")
    answer_tokens: int = setting(1, "most tokens of a quiz's answer, 1 in the paper")


@dataclass(frozen=True)
class Data(OwnSettings):
    """Parameter ``data``: what the model may have read."""

    dataset: str = setting("", "file (JSONL, CSV, TSV, Parquet) or hub id owner/name")
    split: str = setting("", "split of a hub dataset")
    revision: str = setting("", "its commit")
    comparison_split: str = setting("", "split of the comparison, where that is a hub dataset")
    names: list[str] = setting(
        [], "dataset and split as the prompts call them; the file's name and test by default"
    )
    other_names: list[str] = setting(
        ["Harbour Notes", "train"], "a wrong dataset and a wrong split, for the placebos"
    )
    task: str = setting("classification", "classification, NLI, summary, one-sentence summary")
    text_columns: list[str] = setting(["text"], "column of the text, two for sentence pairs")
    label_column: str = setting("label", "column of the label, empty for none")
    label_names: list[str] = setting([], "how labels 0, 1 and so on read, empty to show as stored")


@dataclass(frozen=True)
class Asked:
    """Who is asked through an address, and what it may cost.

    Attributes:
        perturber, judge: endpoints, or None.
        prices: of model, perturber and judge; None where not given.
        cap: most that model, perturber and judge may cost together; None for no cap.
        limit_option: what the endpoints call their limit of output tokens.
        quiz_options: sampling options of a quiz's answer.
        run: name under which spending is summed.
    """

    perturber: Endpoint | None
    judge: Endpoint | None
    prices: tuple[Price | None, Price | None, Price | None]
    cap: float | None
    limit_option: str
    quiz_options: dict[str, Any]
    run: str

    def settings(self, price: Price | None) -> dict[str, Any]:
        """Keyword arguments of ``models.chat.answer_all``."""
        return {"run": self.run, "price": price, "cap": self.cap}


def endpoints_of(model: Model) -> list[Endpoint]:
    """The audited models behind an address; none for local ones."""
    if not model.base_url:
        return []
    return [Endpoint(model.base_url, name, model.key_variable or None) for name in model.names]


def asked_of(model: Model, run: str) -> Asked:
    """Endpoints beside the audited one, prices and cap, checked; nothing is asked.

    Raises:
        ValueError: in one line, if something does not fit.
    """
    if not model.names:
        raise ValueError("model names nothing to audit: fill in model, names")
    if len(set(model.names)) < len(model.names):
        raise ValueError("model names the same model twice: name each once")
    for role in ("perturber", "judge"):
        if getattr(model, f"{role}_model") and not getattr(model, f"{role}_base_url"):
            raise ValueError(f"{role}_base_url is empty: the {role} is a chat model at an address")
    if model.base_url and any(name.startswith(LAB) for name in model.names):
        raise ValueError("models of the lab are local: leave base_url empty")
    if model.base_url and model.reference_models:
        raise ValueError("reference_models need a local model: DICE reads hidden states")
    prices = prices_of(model.prices, model.price_date)
    if model.cost_cap < 0 or model.answer_tokens < 1:
        raise ValueError("cost_cap must be at least 0 and answer_tokens at least 1")
    temperature = {"temperature": 0.0} if model.has_temperature else {}
    writing = {"temperature": 1.0} if model.has_temperature else {}
    perturber = None
    if model.perturber_model:
        perturber = Endpoint(
            model.perturber_base_url,
            model.perturber_model,
            model.perturber_key_variable or None,
            {**writing, model.limit_option: 4000},
        )
    judge = None
    if model.judge_model:
        judge = Endpoint(model.judge_base_url, model.judge_model, model.judge_key_variable or None)
    return Asked(
        perturber=perturber,
        judge=judge,
        prices=prices,
        cap=model.cost_cap or None,
        limit_option=model.limit_option,
        quiz_options={**temperature, model.limit_option: model.answer_tokens},
        run=run,
    )


def prices_of(prices: Sequence[float], date: str) -> tuple[Price | None, ...]:
    """Prices of model, perturber and judge; None where not given.

    Raises:
        ValueError: for another number of prices, one below 0, or prices without a date.
    """
    if len(prices) not in (0, 2, 4, 6) or (prices and not date) or any(p < 0 for p in prices):
        raise ValueError(
            "prices holds an input and an output price, 0 or more, of the model, then of perturber "
            f"and judge (2, 4 or 6 numbers), with price_date; got {len(prices)} and {date!r}"
        )
    found = [Price(*prices[n : n + 2], date=date) for n in range(0, len(prices), 2)]
    return tuple([*found, None, None, None][:3])


def check_data(data: Data) -> tuple[str, str]:
    """Names of dataset and split as prompts say them; ValueError if a setting does not fit."""
    if not data.dataset:
        raise ValueError("data names no dataset: fill in data, dataset")
    if data.task not in TASKS:
        raise ValueError(f'task must be one of {", ".join(TASKS)}, got "{data.task}"')
    if len(data.text_columns) != 1 + (data.task == "NLI"):
        raise ValueError(f"{data.task} needs {1 + (data.task == 'NLI')} text_columns")
    if data.label_names and not data.label_column:
        raise ValueError("label_names needs label_column")
    if (data.names and len(data.names) != 2) or len(data.other_names) != 2:
        raise ValueError("names and other_names hold a dataset and a split each")
    dataset, split = data.names or (Path(data.dataset).stem, data.split or "test")
    if dataset == data.other_names[0] or split == data.other_names[1]:
        raise ValueError("other_names must both differ from names: they are the wrong ones")
    return dataset, split


def check_ready(model: Model, asked: Asked) -> None:
    """Raise, in one line, if a key, a price, an address or a local model is missing.

    Raises:
        ChatError: if a key's variable is not set, or nothing listens at an address.
        FileNotFoundError: if a local model is neither a folder nor on the hub.
        ValueError: if an endpoint that asks for a key has no price.
    """
    roles = [(who, asked.prices[0]) for who in endpoints_of(model)]
    roles += [(asked.perturber, asked.prices[1]), (asked.judge, asked.prices[2])]
    for who, price in roles:
        if who is None:
            continue
        if who.key_variable:
            Secret(who.key_variable)
        if price is None and (who.key_variable or asked.cap):
            raise ValueError(
                f"no price for {who.model}: fill in prices and price_date, the day you read the "
                "price list"
            )
        _check_listens(who)
    for name in [*model.names * (not model.base_url), *model.reference_models]:
        if not name.startswith(LAB):
            check_model(name)
        elif name != CONTAMINATED and name.rstrip("0123456789").rstrip(":") != CLEAN:
            raise ValueError(f'the lab has "{CONTAMINATED}" and "{CLEAN}", not "{name}"')


def _check_listens(who: Endpoint) -> None:
    address = urlsplit(who.base_url)
    port = address.port or {"https": 443}.get(address.scheme, 80)
    try:
        socket.create_connection((address.hostname, port), _SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise ChatError(
            f"nothing answers at {who.base_url} ({error.strerror or error}): start the server, or "
            "check base_url and the connection"
        ) from error
