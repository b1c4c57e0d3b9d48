"""What an audit asks about, before the first question: settings, rows, and who is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from contamination.audit.rows import Rows
from contamination.audit.settings import Data, Dcq, Model, Replication, Settings
from contamination.dcq.quizzes import PERTURBER_OPTIONS, QUIZ_OPTIONS
from contamination.models.chat import answer_all
from contamination.models.exchange import Answer, Endpoint, Price, Request
from contamination.replication.instructions import JUDGE_OPTIONS

DCQ, REPLICATION, RANKING = "DCQ", "replication", "option ranking"
MIN_K, DICE = "Min-k% Prob", "DICE"
# What parameter ``methods`` calls them, and what tables do.
NAMED = {"dcq": DCQ, "replication": REPLICATION, "ranking": RANKING, "min_k": MIN_K, "dice": DICE}
METHODS = tuple(NAMED.values())
COMPARING = METHODS[:4]  # hold the dataset against comparison rows where there are some
UNSEEN = "unseen rows"
TEXT, INSTANCE = "text", "instance"  # forms of a scored row
NO_COMPARISON = "no comparison rows: name a file of rows that the model cannot have seen"
MODEL, PERTURBER, JUDGE = "model", "perturber", "judge"


Ask = Callable[[list[Request]], list[Answer]]


@dataclass(frozen=True)
class RunEndpoints:
    """Who is asked, and what it may cost.

    Attributes:
        models: endpoints, or folders or hub ids of local models.
        helpers: endpoints of perturber and judge, as far as they are named.
        prices: of the tokens of model, perturber and judge; None where not given.
        cap: most that all of them may cost together under the name ``run``; None for no cap.
        sent: options of a paper as the endpoints take them, ``settings.Model.sent``.
        quiz_options: sampling options of a quiz's answer.
        completion_tokens: most tokens of a completion.
        quiz_layout, completion_layout: of the prompts, "paper" or "released".
    """

    models: tuple[Endpoint | str, ...]
    helpers: dict[str, Endpoint]
    prices: dict[str, Price | None]
    cap: float | None
    sent: Callable[[Mapping[str, Any]], dict[str, Any]]
    quiz_options: dict[str, Any]
    completion_tokens: int
    quiz_layout: str
    completion_layout: str
    run: str

    @property
    def endpoints(self) -> list[Endpoint]:
        """The models behind an address; none for local ones."""
        return [model for model in self.models if isinstance(model, Endpoint)]

    def paying(self, role: str) -> dict[str, Any]:
        """Keyword arguments of ``models.chat.answer_all``."""
        return {"run": self.run, "price": self.prices[role], "cap": self.cap}


def ask(asked: RunEndpoints, role: str, model: Endpoint | None = None) -> Ask:
    """Requests in, answers out, through the response log and under the cap."""
    return partial(answer_all, model or asked.helpers[role], **asked.paying(role))


def collect_endpoints(told: Settings) -> RunEndpoints:
    """Who is asked; ValueError if something does not fit.

    The cap belongs to these models at their address, whatever dataset they are asked about.
    """
    model = told.model
    run = " ".join(["audit", model.base_url, *model.names])
    options = {PERTURBER: model.sent(PERTURBER_OPTIONS), JUDGE: model.sent(JUDGE_OPTIONS)}
    helpers = {}
    for role, block in ((PERTURBER, told.dcq), (JUDGE, told.replication)):
        if helper := _helper(block, role, options[role]):
            helpers[role] = helper
    url, key = model.base_url, model.key_variable or None
    models = tuple(Endpoint(url, name, key) if url else name for name in model.names)
    called = [name_of(model) for model in models]
    if twice := sorted({name for name in called if called.count(name) > 1}):
        raise ValueError(
            f'two models would both be called "{twice[0]}" in the tables: give their folders '
            "different last names, or audit them one at a time"
        )
    return RunEndpoints(
        models=models,
        helpers=helpers,
        prices=_prices(told, helpers),
        cap=model.cost_cap or None,
        sent=model.sent,
        quiz_options=model.sent(QUIZ_OPTIONS | {"max_tokens": told.dcq.answer_tokens}),
        completion_tokens=told.replication.completion_tokens,
        quiz_layout=told.dcq.layout,
        completion_layout=told.replication.layout,
        run=run,
    )


def _helper(block: Dcq | Replication, role: str, options: dict[str, Any]) -> Endpoint | None:
    name, base_url, key = (
        getattr(block, f"{role}_{part}") for part in ("model", "base_url", "key_variable")
    )
    if not name and base_url:  # else a rule would take its place without a word
        raise ValueError(
            f"{role}_base_url is given and {role}_model is empty: fill in the model, or empty both"
        )
    if not name:
        return None
    if not base_url:
        raise ValueError(f"{role}_base_url is empty: fill in the address of {role}_model")
    return Endpoint(base_url, name, key or None, options)


def _prices(told: Settings, helpers: dict[str, Endpoint]) -> dict[str, Price | None]:
    prices, date = told.model.prices, told.model.price_date
    if len(prices) not in (0, 2, 4, 6) or (prices and not date):
        raise ValueError(
            "prices must list an input and an output price (0 or more) of the model, then of "
            "perturber and judge (2, 4 or 6 numbers), with their price_date; got "
            f"{len(prices)} and {date!r}"
        )
    pairs = [Price(*prices[n : n + 2], date=date) for n in range(0, len(prices), 2)]
    # Two prices more are the judge's where only a judge is named.
    roles = [MODEL, *(role for role in (PERTURBER, JUDGE) if role in helpers or len(pairs) == 3)]
    found = dict.fromkeys((MODEL, PERTURBER, JUDGE)) | dict(zip(roles, pairs, strict=False))
    for role, helper in helpers.items():  # one model may do both
        is_same = helper.model in told.model.names and helper.base_url == told.model.base_url
        if found[role] is None and is_same:
            found[role] = found[MODEL]
    return found


def name_of(model: Endpoint | str) -> str:
    """What tables call a model: its name, and no path of the machine."""
    if isinstance(model, Endpoint):
        return model.model
    return Path(model).name if Path(model).is_absolute() else model


@dataclass(frozen=True)
class Audit:
    """Everything that is asked about, before the first question.

    Attributes:
        told, asked: settings, and who is asked.
        rows: the dataset: as many rows as Min-k% Prob scores, the first of them quizzed.
        unseen: rows that the model cannot have seen, or None.
        text_alone: dataset against unseen rows, ``comparison.by_text_alone``.
        near_copies: rows that the two have nearly in common, ``comparison.near_copies``.
        refusal: why no method may hold the dataset against the unseen rows; "" if each may.
    """

    told: Settings
    asked: RunEndpoints
    rows: Rows
    unseen: Rows | None
    text_alone: tuple[dict, ...] = ()
    near_copies: tuple[dict, ...] = ()
    refusal: str = ""

    @property
    def model(self) -> Model:
        """Settings of the audited model."""
        return self.told.model

    @property
    def data(self) -> Data:
        """Settings of the dataset."""
        return self.told.data

    @property
    def names(self) -> tuple[str, str]:
        """Dataset and split as the prompts say them."""
        return self.data.called

    @property
    def methods(self) -> list[str]:
        """The methods that are asked for, as tables call them."""
        return [NAMED[name] for name in self.told.methods] or list(METHODS)

    def scored_texts(self, rows: Rows) -> list[str]:
        """Rows as Min-k% Prob scores them, and as the checks of the text alone see them."""
        return rows.passages if self.told.min_k.form == TEXT else rows.instances

    @property
    def sets(self) -> list[Rows]:
        """The dataset, and unseen rows where there are some."""
        return [rows for rows in (self.rows, self.unseen) if rows is not None]

    @property
    def quizzed(self) -> list[Rows]:
        """Of each set the rows that all methods but Min-k% Prob take."""
        return [rows.head(self.told.n_instances) for rows in self.sets]
