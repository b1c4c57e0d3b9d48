"""Whether keys, prices, addresses and models are there before anything costs."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from urllib.parse import urlsplit
from urllib.request import getproxies

from contamination.audit.prepared import MODEL, RunEndpoints
from contamination.audit.settings import check_name
from contamination.models.chat import ChatError, Secret
from contamination.models.exchange import Endpoint
from contamination.models.source import check_model


def check_ready(asked: RunEndpoints, references: Sequence[str] = ()) -> None:
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
