"""One's own model, and one that perturbs or judges, before the first paid call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contamination.models.exchange import Endpoint, Price
from contamination.models.loading import check_model
from contamination.models.retry import ChatError, Secret
from contamination.parameters import OwnSettings, setting

LIMIT_OPTIONS = ("max_tokens", "max_completion_tokens")
OPENAI_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True)
class PaidSettings(OwnSettings):
    """What every part C needs that asks a model about a partition of one's own."""

    target_model: str = setting("", "model at base_url, or folder or hub id, empty to skip")
    base_url: str = setting("", "OpenAI-compatible address up to /v1, empty for a local model")
    key_variable: str = setting(OPENAI_KEY, "NAME of the variable with the key, empty for none")
    prices: list[float] = setting(
        [], "per million input and output tokens, target_model, then perturber or judge"
    )
    price_date: str = setting("", "day on which you read the prices, YYYY-MM-DD")
    cost_cap: float = setting(0.0, "most that may be spent, earlier runs included, 0 for no cap")
    limit_option: str = setting(
        "max_tokens", "or max_completion_tokens where the endpoint wants it"
    )
    dataset: str = setting("", "file (JSONL, CSV, Parquet) or hub id")
    dataset_split: str = setting("", "split of a hub dataset")
    dataset_revision: str = setting("", "its commit")
    names: list[str] = setting([], "dataset and split as the prompts call them")
    label_names: list[str] = setting([], "how labels 0, 1 and so on read, empty to show as stored")
    dry_run: bool = setting(False, "only say what would be asked")

    def model_of(self, name: str) -> Endpoint | str:
        """The endpoint of a model at ``base_url``; without that address its folder or hub id."""
        return Endpoint(self.base_url, name, self.key_variable or None) if self.base_url else name

    def helper_of(self, role: str) -> Endpoint | None:
        """The endpoint of the judge or the perturber, or None where it has no name.

        Args:
            role: "judge" or "perturber".

        Raises:
            ValueError: if it has no address.
        """
        name, base_url, key = (
            getattr(self, f"{role}_{part}") for part in ("model", "base_url", "key_variable")
        )
        if name and not base_url:
            raise ValueError(
                f"{role}_base_url is empty: {role}_model is a chat model at an address"
            )
        return Endpoint(base_url, name, key or None) if name else None

    def both_prices(self) -> tuple[Price | None, Price | None]:
        """Prices of both models, None where not given.

        Raises:
            ValueError: for another number of prices, prices without a date, or
                anything else about the payment that does not fit.
        """
        if len(self.prices) not in (0, 2, 4) or (self.prices and not self.price_date):
            raise ValueError(
                "prices holds input and output price of target_model, then of perturber or judge "
                f"(2 or 4 numbers), with price_date; got {len(self.prices)} and "
                f"{self.price_date!r}"
            )
        if self.cost_cap < 0 or any(price < 0 for price in self.prices):
            raise ValueError("prices and cost_cap must be at least 0")
        if self.limit_option not in LIMIT_OPTIONS:
            raise ValueError(
                f'limit_option must be {" or ".join(LIMIT_OPTIONS)}, got "{self.limit_option}"'
            )
        pairs = [self.prices[start : start + 2] for start in range(0, len(self.prices), 2)]
        found = [Price(*pair, date=self.price_date) for pair in pairs]
        return tuple([*found, None, None][:2])


def name_of(model: Endpoint | str) -> str:
    """What tables call a model: its name, and no path of the machine."""
    if isinstance(model, Endpoint):
        return model.model
    return Path(model).name if Path(model).is_absolute() else model


def announce(
    lines: Sequence[str],
    models: Sequence[tuple[Endpoint | str | None, Price | None]],
    dry_run: bool,
) -> None:
    """Print the plan; then, unless it is a dry run, stop if a model, a key or a price is missing.

    Args:
        lines: what the run will ask at most, one line for each model.
        models: with their prices; a local model has none, None is passed over.
        dry_run: only print.

    Raises:
        ChatError: if a key's variable is not set.
        FileNotFoundError: if a local model is neither a folder nor on the hub.
        ValueError: if an endpoint that asks for a key has no price.
    """
    print("\n".join(lines))
    if dry_run:
        return
    try:
        for model, price in models:
            _check_ready(model, price)
    except (ChatError, FileNotFoundError, ValueError) as error:
        # A stopped run shows one line, so that line carries the plan.
        raise type(error)(f"{error} ({'; '.join(lines)})") from None


def _check_ready(model: Endpoint | str | None, price: Price | None) -> None:
    if isinstance(model, str):
        check_model(model)
    elif model is not None and model.key_variable:
        Secret(model.key_variable)
        if price is None:
            raise ValueError(
                f"no price for {model.model}: fill in prices and price_date, the day you read the "
                "price list"
            )
