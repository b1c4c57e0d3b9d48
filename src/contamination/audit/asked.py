"""Who is asked, and whether keys, prices, addresses and models are there before anything costs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from contamination.audit.settings import (
    LAB,
    Model,
    Paid,
    Quiz,
    Replication,
    check_name,
)
from contamination.dcq import perturbation
from contamination.dcq.perturbation import Ask
from contamination.dcq.respondents import PAPER_OPTIONS
from contamination.models.causal import CausalLM
from contamination.models.chat import Endpoint, Price, answer_all
from contamination.models.retry import ChatError, Secret
from contamination.models.source import check_model

MODEL, PERTURBER, JUDGE = "model", "perturber", "judge"


@dataclass(frozen=True)
class Asked:
    """Who is asked, and what it may cost.

    Attributes:
        models: endpoints, or folders or hub ids of local models, which ``load`` loads.
        helpers: endpoints of perturber and judge, as far as they are named.
        prices: of the tokens of model, perturber and judge; None where not given.
        cap: most that all of them may cost together under the name ``run``; None for no cap.
        sent: options of a paper as the endpoints take them, ``settings.Paid.sent``.
        quiz_options: sampling options of a quiz's answer.
        completion_tokens: most tokens of a completion; 0 where none is asked for.
    """

    models: tuple[Endpoint | str, ...]
    helpers: dict[str, Endpoint]
    prices: dict[str, Price | None]
    cap: float | None
    sent: Callable[[Mapping[str, Any]], dict[str, Any]]
    quiz_options: dict[str, Any]
    completion_tokens: int
    run: str
    load: Callable[[str], CausalLM]

    @property
    def endpoints(self) -> list[Endpoint]:
        """The models behind an address; none for local ones."""
        return [model for model in self.models if isinstance(model, Endpoint)]

    def paying(self, role: str) -> dict[str, Any]:
        """Keyword arguments of ``models.chat.answer_all``."""
        return {"run": self.run, "price": self.prices[role], "cap": self.cap}

    def ask(self, role: str, model: Endpoint | None = None) -> Ask:
        """Requests in, answers out, through the response log and under the cap."""
        return partial(answer_all, model or self.helpers[role], **self.paying(role))


def asked_of(settings: Model | Quiz | Replication, run: str) -> Asked | None:
    """Who is asked; None where no model is named, ValueError if something does not fit."""
    if isinstance(settings, Model):
        names, load = settings.names, settings.load
    else:
        names, load = getattr(settings, "models", [settings.target_model]), settings.load
        if not any(names):
            return None
    if check := getattr(settings, "check", None):
        check()
    url, key, options = settings.base_url, settings.key_variable or None, {}
    if isinstance(settings, Model | Quiz):
        options = settings.sent(PAPER_OPTIONS | {"max_tokens": settings.answer_tokens})
    helpers = {role: helper for role in (PERTURBER, JUDGE) if (helper := _helper(settings, role))}
    return Asked(
        models=tuple(Endpoint(url, name, key) if url else name for name in names),
        helpers=helpers,
        prices=_prices(settings, helpers, names),
        cap=settings.cost_cap or None,
        sent=settings.sent,
        quiz_options=options,
        completion_tokens=getattr(settings, "completion_tokens", 0),
        run=run,
        load=load,
    )


def _helper(settings: Paid, role: str) -> Endpoint | None:
    name = getattr(settings, f"{role}_model", "")
    if not name:
        return None
    base_url, key = (getattr(settings, f"{role}_{part}") for part in ("base_url", "key_variable"))
    if not base_url:
        raise ValueError(f"{role}_base_url is empty: {role}_model is a chat model at an address")
    options = settings.sent(perturbation.PAPER_OPTIONS) if role == PERTURBER else {}
    return Endpoint(base_url, name, key or None, options)


def _prices(
    settings: Paid, helpers: dict[str, Endpoint], names: Sequence[str]
) -> dict[str, Price | None]:
    roles = [MODEL, *(r for r in (PERTURBER, JUDGE) if hasattr(settings, f"{r}_model"))]
    prices, date = settings.prices, settings.price_date
    numbers = list(range(2, 2 * len(roles) + 1, 2))
    if len(prices) not in (0, *numbers) or (prices and not date):
        raise ValueError(
            "prices holds an input and an output price, 0 or more, of the model, then of "
            f"{' and '.join(roles[1:])} ({', '.join(map(str, numbers[:-1]))} or {numbers[-1]} "
            f"numbers), with price_date; got {len(prices)} and {date!r}"
        )
    pairs = [Price(*prices[n : n + 2], date=date) for n in range(0, len(prices), 2)]
    found = dict(zip(roles, [*pairs, None, None, None], strict=False))
    for role, helper in helpers.items():  # one model may do both
        if found[role] is None and helper.model in names and helper.base_url == settings.base_url:
            found[role] = found[MODEL]
    return found


def name_of(model: Endpoint | str) -> str:
    """What tables call a model: its name, and no path of the machine."""
    if isinstance(model, Endpoint):
        return model.model
    return Path(model).name if Path(model).is_absolute() else model


# Before the first cost


def announce(lines: Sequence[str], asked: Asked, dry_run: bool) -> None:
    """Print the plan; unless it is a dry run, :func:`check_ready`, whose line then carries it."""
    print("\n".join(lines))
    if dry_run:
        return
    try:
        check_ready(asked)
    except (ChatError, FileNotFoundError, ValueError) as error:
        raise type(error)(f"{error} ({'; '.join(lines)})") from None


def check_ready(asked: Asked, references: Sequence[str] = ()) -> None:
    """Raise, in one line, if a key, a price, an address or a local model is missing.

    Raises:
        ChatError: if a key's variable is not set, or nothing listens at an address.
        FileNotFoundError: if a local model (or reference) is not there, or if nobody can say.
        ValueError: if an endpoint that asks for a key has no price.
    """
    roles = [(model, MODEL) for model in asked.endpoints]
    roles += [(helper, role) for role, helper in asked.helpers.items()]
    for who, role in roles:
        if who.key_variable:
            Secret(who.key_variable)
        if asked.prices[role] is None and (who.key_variable or asked.cap):
            raise ValueError(
                f"no price for {who.model}: fill in prices and price_date, the day you read the "
                "price list"
            )
        _check_listens(who)
    for name in [*(one for one in asked.models if isinstance(one, str)), *references]:
        if unchecked := check_name(name):  # without a connection it cannot be loaded either
            raise FileNotFoundError(unchecked)
        if not name.startswith(LAB):
            check_model(name)  # its configuration: gated, or with code of its own


def _check_listens(who: Endpoint) -> None:
    address = urlsplit(who.base_url)
    if address.scheme in getproxies():  # what stands behind a proxy cannot be seen from here
        return
    port = address.port or {"https": 443}.get(address.scheme, 80)
    try:
        socket.create_connection((address.hostname, port), timeout=5).close()
    except OSError as error:
        raise ChatError(
            f"nothing answers at {who.base_url} ({error.strerror or error}): start the server, or "
            "check base_url and the connection"
        ) from error


def check_models(models: Sequence[str], revision: str = "") -> None:
    """FileNotFoundError if a named local model is not there; ``revision`` is the first model's."""
    for model in filter(None, models):
        check_model(model, revision if model == models[0] else "")
