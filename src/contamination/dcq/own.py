"""The quizzes for a model and a dataset of one's own (part C of notebook 02)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pandas as pd

from contamination import partitions
from contamination.dcq import contaminating, controls, perturbation
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.deployment import Respondent, level_row, take
from contamination.dcq.perturbation import FIFTH, Ask
from contamination.dcq.released import OPTION_COLUMNS
from contamination.dcq.respondents import (
    PAPER_OPTIONS,
    BaseRespondent,
    ChatRespondent,
    InstructRespondent,
    Stated,
)
from contamination.models.chat import (
    ERROR,
    OK,
    REFUSED,
    Endpoint,
    Price,
    answer_all,
    estimate,
)
from contamination.models.loading import load_causal_lm
from contamination.models.retry import ChatError, Secret
from contamination.parameters import OwnSettings, setting

CHAT, INSTRUCT, BASE = "chat", "instruct", "base"
LIMIT_OPTIONS = ("max_tokens", "max_completion_tokens")
# The modified quiz, four standard ones at most, and the second perturbation.
MOST_QUIZZES = 2 + len(POSITIONS)


@dataclass(frozen=True)
class Settings(OwnSettings):
    """Part C of notebook 02: one's own model and data."""

    target_model: str = setting("", "model at base_url, or folder or hub id, empty to skip")
    second_model: str = setting("", "another snapshot at the same place, empty for none")
    base_url: str = setting("", "OpenAI-compatible address up to /v1, empty for a local model")
    key_variable: str = setting(
        "OPENAI_API_KEY", "NAME of the variable with the key, empty for none"
    )
    respondent: str = setting("chat", "chat (endpoint), instruct or base (local models)")
    perturber_model: str = setting("", "chat model that writes the options")
    perturber_base_url: str = setting("", "its address")
    perturber_key_variable: str = setting("OPENAI_API_KEY", "NAME of the variable with its key")
    options_file: str = setting("", "options written earlier, in place of dataset and perturber")
    prices: list[float] = setting([], "per million input and output tokens, model then perturber")
    price_date: str = setting("", "day on which you read the prices, YYYY-MM-DD")
    cost_cap: float = setting(
        0.0, "most that the run may cost, earlier runs of it included, 0 for none"
    )
    limit_option: str = setting(
        "max_tokens", "or max_completion_tokens where the endpoint wants it"
    )
    answer_tokens: int = setting(1, "most tokens of an answer, 1 in the paper")
    has_temperature: bool = setting(True, "false for models that refuse a temperature")
    dataset: str = setting("", "file (JSONL, CSV, Parquet) or hub id")
    dataset_split: str = setting("", "split of a hub dataset")
    dataset_revision: str = setting("", "its commit")
    names: list[str] = setting([], "dataset and split as the prompts call them")
    columns: list[str] = setting(["text", "label"], "columns of an instance, in order")
    label_columns: list[str] = setting(["label"], "of these, never perturbed")
    label_names: list[str] = setting([], "how stored labels 0, 1 and so on read in print")
    n_instances: int = setting(100, "instances to draw")
    tuning_epochs: int = setting(0, "epochs of a job that contaminates target_model, 0 for none")
    n_tuning_instances: int = setting(1000, "instances it reads, the quizzed ones first")
    tuning_price: float = setting(0.0, "per million training tokens, read on price_date")
    dry_run: bool = setting(False, "only say what would be asked")


@dataclass(frozen=True)
class OwnPartition:
    """A partition ready to be perturbed.

    Attributes:
        rows: the sample, with a column ``index``.
        all_rows: the whole partition in the same form, for a fine-tuning file.
        columns, label_columns: what makes up an instance, and what of it stays.
        names: dataset and split as the prompts call them.
        quizzes: those of a file of earlier options, or None.
    """

    rows: pd.DataFrame
    all_rows: pd.DataFrame
    columns: tuple[str, ...]
    label_columns: tuple[str, ...]
    names: tuple[str, str]
    quizzes: pd.DataFrame | None = None

    @property
    def instances(self) -> list[str]:
        """The sample as the paper prints it."""
        return partitions.format_instances(self.rows, self.columns)


@dataclass(frozen=True)
class Asked:
    """Who is asked, and what it may cost.

    Attributes:
        models: endpoints, or folders or hub ids; two for two snapshots.
        respondent: "chat", "instruct" or "base".
        perturber: an endpoint, or None where the options come from a file.
        price, perturber_price: of their tokens, None where not given.
        cap: most that this run may spend, on all of them together; None for no cap.
        limit_option: what the endpoints call their limit of output tokens.
        options: sampling options of an answer, without that limit.
        stated: of a base model's respondent.
        run: name under which spending is summed.
    """

    models: tuple[Endpoint | str, ...]
    respondent: str
    stated: Stated
    perturber: Endpoint | None = None
    price: Price | None = None
    perturber_price: Price | None = None
    cap: float | None = None
    limit_option: str = "max_tokens"
    options: dict = field(default_factory=dict)
    run: str = "dcq"

    def ask(self, endpoint: Endpoint, price: Price | None) -> Ask:
        """Requests in, answers out, through the response log and under the cap."""
        return partial(answer_all, endpoint, run=self.run, price=price, cap=self.cap)

    def with_limit(self, options: dict) -> dict:
        """Sampling options with the limit under the endpoint's own name."""
        options = dict(options)
        options[self.limit_option] = options.pop("max_tokens")
        return options


def asked_of(
    models: Sequence[str],
    base_url: str,
    key_variable: str,
    respondent: str,
    perturber: Sequence[str],
    *,
    stated: Stated,
    prices: Sequence[float],
    price_date: str,
    cap: float,
    limit_option: str,
    has_temperature: bool,
    answer_tokens: int,
    run: str,
) -> Asked | None:
    """Who is asked, from the notebook's parameters; None where no model is named.

    Args:
        models: names; empty ones are not used.
        base_url, key_variable: of the models; no address means local ones.
        respondent: "chat", "instruct" or "base".
        perturber: name, address and name of the key's variable.
        stated: of a base model's respondent.
        prices: of 10^6 input and output tokens of the model, then of the
            perturber; empty where none are known.
        price_date: day on which they were read.
        cap: 0 for none.
        limit_option: see :class:`Asked`.
        has_temperature: whether temperatures are sent, which some models refuse.
        answer_tokens: most tokens of an answer; 1 in the paper.
        run: name of the run.

    Raises:
        ValueError: if something does not fit, before anything is asked.
    """
    models = [name for name in models if name]
    if not models:
        return None
    if respondent not in (CHAT, INSTRUCT, BASE):
        raise ValueError(f'respondent must be "chat", "instruct" or "base", got "{respondent}"')
    if (respondent == CHAT) != bool(base_url):
        raise ValueError(
            'respondent "chat" needs base_url, and a local model ("instruct", "base") has none'
        )
    if len(set(models)) < len(models):
        raise ValueError("second_model is target_model: name another one, or none")
    if limit_option not in LIMIT_OPTIONS:
        raise ValueError(f'limit_option must be {" or ".join(LIMIT_OPTIONS)}, got "{limit_option}"')
    if answer_tokens < 1 or cap < 0 or any(price < 0 for price in prices):
        raise ValueError("answer_tokens must be at least 1, prices and cost_cap at least 0")
    if perturber[0] and not perturber[1]:
        raise ValueError("perturber_base_url is empty: the perturber is a chat model at an address")
    if len(prices) not in (0, 2, 4) or (prices and not price_date):
        raise ValueError(
            "prices holds input and output price of the model, then of the perturber (2 or 4 "
            f"numbers), with price_date; got {len(prices)} and {price_date!r}"
        )
    found = [Price(*prices[n : n + 2], date=price_date) for n in range(0, len(prices), 2)]
    price, perturber_price = [*found, None, None][:2]
    options = {**PAPER_OPTIONS, "max_tokens": answer_tokens}
    writing = dict(perturbation.PAPER_OPTIONS)
    if not has_temperature:
        options.pop("temperature")
        writing.pop("temperature")
    asked = Asked(
        models=tuple(
            Endpoint(base_url, name, key_variable or None) if base_url else name for name in models
        ),
        respondent=respondent,
        stated=stated,
        price=price,
        # One model may do both.
        perturber_price=perturber_price or (price if perturber[0] in models else None),
        cap=cap or None,
        limit_option=limit_option,
        run=run,
    )
    writer = None
    if perturber[0]:
        writer = Endpoint(
            perturber[1], perturber[0], perturber[2] or None, asked.with_limit(writing)
        )
    changes = {"perturber": writer, "options": asked.with_limit(options)}
    return Asked(**{**vars(asked), **changes})


def own_partition(
    dataset: str,
    dataset_split: str,
    revision: str,
    *,
    names: Sequence[str],
    columns: Sequence[str],
    label_columns: Sequence[str],
    label_names: Sequence[str],
    n_instances: int,
    options_file: str,
    seed: int,
) -> OwnPartition:
    """Load and sample; nothing is asked.

    Args:
        dataset, dataset_split, revision: of ``partitions.load_rows``.
        names: dataset and split as the prompts call them.
        columns: of an instance, in order.
        label_columns: of these, never perturbed.
        label_names: what the stored labels 0, 1, ... of the first label column
            read in print, such as "1 (positive)"; empty to show them as stored.
        n_instances: instances to draw, all where there are fewer (100 in the paper).
        options_file: file with instance, option_a to option_d and perhaps fifth,
            which takes the place of dataset and perturber; empty for none.
        seed: of the sample.

    Raises:
        FileNotFoundError, ValueError: in one line, before anything costs.
    """
    if len(names) != 2 or not all(names):
        raise ValueError("names holds the dataset and the split as the prompts call them")
    if options_file:
        quizzes = _read_options(options_file)
        rows = quizzes[["index", "instance"]]
        return OwnPartition(rows, rows, ("instance",), (), tuple(names), quizzes)
    if not dataset:
        raise ValueError("dataset and options_file are empty: part C needs one of them")
    if n_instances < 1:
        raise ValueError(f"n_instances must be at least 1, got {n_instances}")
    if set(columns) <= set(label_columns):
        raise ValueError("columns holds nothing but labels: name at least one column to perturb")
    rows = partitions.load_rows(dataset, dataset_split, revision)
    unknown = set(label_columns) - set(columns)
    if unknown:
        raise ValueError(f"label_columns not among columns: {', '.join(sorted(unknown))}")
    partitions.format_instances(rows.head(1), columns)  # names a column that is not there
    if label_names:
        if not label_columns:
            raise ValueError("label_names needs label_columns")
        stored = pd.to_numeric(rows[label_columns[0]], errors="coerce")
        if not stored.isin(range(len(label_names))).all():
            raise ValueError(
                f'column "{label_columns[0]}" holds more than 0 to {len(label_names) - 1}: '
                "label_names needs one for every stored label"
            )
        rows = rows.assign(**{label_columns[0]: [label_names[int(n)] for n in stored]})
    sample = partitions.sample_unique(rows, columns, n_instances, seed)
    return OwnPartition(sample, rows, tuple(columns), tuple(label_columns), tuple(names))


def _read_options(source: str) -> pd.DataFrame:
    quizzes = partitions.load_rows(source)
    needed = ["instance", *OPTION_COLUMNS]
    missing = [name for name in needed if name not in quizzes]
    if missing:
        raise ValueError(f'options_file "{source}" lacks the columns {", ".join(missing)}')
    texts = quizzes[needed].fillna("").astype(str)
    is_empty = texts.apply(lambda column: column.str.strip().eq("")).any(axis=1)
    if texts.empty or is_empty.any():
        raise ValueError(
            f'options_file "{source}": {int(is_empty.sum())} of {len(texts)} rows lack a text; '
            "every quiz needs an instance and four options"
        )
    if (texts[OPTION_COLUMNS[-1]] == texts["instance"]).all():
        raise ValueError(
            f'in "{source}" option_d is the original everywhere, so there is no modified quiz: '
            "options need four perturbations"
        )
    texts[FIFTH] = quizzes[FIFTH].fillna("").astype(str) if FIFTH in quizzes else ""
    return texts.assign(index=range(len(texts)))


def plan_lines(own: OwnPartition, asked: Asked) -> list[str]:
    """Calls, tokens, cost and time of the run at most, one line each; no call is made.

    Perturbations that have to be asked for again come on top.
    """
    lines, n = [], len(own.rows)
    settings = {"run": asked.run, "cap": asked.cap}
    if asked.perturber and own.quizzes is None:
        requests = [
            perturbation.perturbation_request(row, own.columns, replicate)
            for replicate in (0, 1)
            for row in own.rows[list(own.columns)].astype(str).to_dict("records")
        ]
        found = estimate(asked.perturber, requests, price=asked.perturber_price, **settings)
        lines.append(f"perturber {asked.perturber.model}: {found}")
    # Options are not there yet: the originals stand for them, told apart by a number.
    texts = [
        (text, text, text, f"{text} {k}") for k in range(MOST_QUIZZES) for text in own.instances
    ]
    for model in asked.models:
        if isinstance(model, Endpoint):
            respondent = _respondent(model, asked, own)
            found = estimate(model, respondent.requests(texts), price=asked.price, **settings)
            lines.append(f"{model.model}: {found}")
        else:
            n_tokens = sum(len(text.encode()) // 3 for texts_ in texts for text in texts_)
            lines.append(
                f"{_name(model)}: at most {MOST_QUIZZES * n:,} quizzes, about {n_tokens:,} tokens "
                "here, no cost"
            )
    return lines


def announce(own: OwnPartition, asked: Asked, dry_run: bool) -> None:
    """Print the plan; then, unless it is a dry run, stop if a key, price or perturber is missing.

    Raises:
        ChatError: if a key's variable is not set.
        ValueError: if an endpoint that asks for a key has no price, or nobody
            writes the options.
    """
    lines = plan_lines(own, asked)
    print("\n".join(lines))
    if dry_run:
        return
    try:
        if own.quizzes is None and not asked.perturber:
            raise ValueError("perturber_model is empty: name one, or an options_file")
        for who, price in (
            *((model, asked.price) for model in asked.models),
            (None if own.quizzes is not None else asked.perturber, asked.perturber_price),
        ):
            if isinstance(who, Endpoint) and who.key_variable:
                Secret(who.key_variable)
                if price is None:
                    raise ValueError(
                        f"no price for {who.model}: fill in prices and price_date, the day you "
                        "read the price list"
                    )
    except (ChatError, ValueError) as error:
        # A stopped run shows one line, so that line carries the plan.
        raise type(error)(f"{error} ({'; '.join(lines)})") from None


def quizzes_of(own: OwnPartition, asked: Asked) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The quizzes and the counts of ``perturbation.perturb``; no counts for a file."""
    if own.quizzes is not None:
        return own.quizzes, pd.DataFrame()
    return perturbation.perturb(
        own.rows,
        own.columns,
        asked.ask(asked.perturber, asked.perturber_price),
        label_columns=own.label_columns,
        with_fifth=True,
    )


def _name(model: Endpoint | str) -> str:
    if isinstance(model, Endpoint):
        return model.model
    # Tables hold no path of the machine.
    return Path(model).name if Path(model).is_absolute() else model


def _respondent(model: Endpoint | str, asked: Asked, own: OwnPartition) -> Respondent:
    if isinstance(model, Endpoint):
        ask = asked.ask(model, asked.price)
        return ChatRespondent(ask, *own.names, options=asked.options)
    lm = load_causal_lm(model)
    if asked.respondent == INSTRUCT:
        return InstructRespondent(lm, *own.names)
    return BaseRespondent(lm, *own.names, stated=asked.stated)


def answers_of(own: OwnPartition, asked: Asked, quizzes: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What every model answered, by its name."""
    with_second = bool(quizzes[FIFTH].ne("").all())
    answers = {}
    for model in asked.models:
        respondent = _respondent(model, asked, own)
        if isinstance(respondent, BaseRespondent):
            respondent = respondent.spread_over(quizzes)
        answers[_name(model)] = take(respondent, quizzes, with_second)
    return answers


def own_rows(
    answers: dict[str, pd.DataFrame], own: OwnPartition, respondent: str, n_resamples: int
) -> pd.DataFrame:
    """Levels and kinds of answers, one row per model; two of them are Appendix A's comparison.

    Returns:
        model, dataset, split, respondent, keys of ``level_row``, n_unparsable, n_letters
        (answers A to D), n_none (E).
    """
    rows = []
    for model, of_model in answers.items():
        is_ok = of_model["status"].eq(OK)
        row = {"model": model, "dataset": own.names[0], "split": own.names[1]}
        row |= {"respondent": respondent} | level_row(of_model, n_resamples)
        row |= {
            "n_unparsable": int((~is_ok & ~of_model["status"].isin([REFUSED, ERROR])).sum()),
            "n_letters": int(of_model["answer"].isin(POSITIONS).sum()),
            "n_none": int(of_model["answer"].eq("E").sum()),
        }
        rows.append(row)
    return pd.DataFrame(rows).drop(columns="replication_pct")


def control_rows(quizzes: pd.DataFrame, levels: pd.DataFrame) -> pd.DataFrame:
    """The rules without memory on these quizzes, at the positions that each model was quizzed at.

    Args:
        quizzes: as asked.
        levels: of ``own_rows``.

    Returns:
        Columns of ``controls.control_table``, with paper_max_pct as model_max_pct.
    """
    named = quizzes.assign(dataset=levels["dataset"].iloc[0])
    # Models may have been quizzed at different positions.
    parts = [controls.control_table(named, levels.iloc[[place]]) for place in range(len(levels))]
    return pd.concat(parts, ignore_index=True).rename(columns={"paper_max_pct": "model_max_pct"})


def plan_tuning(
    own: OwnPartition, asked: Asked, n: int, n_epochs: int, price: float, price_date: str, seed: int
) -> tuple[str, contaminating.TrainingPlan]:
    """File and plan of a job that contaminates the first model (appendix E); nothing is sent.

    Args:
        own: the partition; other instances are drawn from it to stand beside the sample.
        asked: with an endpoint and a cap.
        n: instances to train on (1,000 in the paper), the quizzed ones first.
        n_epochs, price, price_date: of ``contaminating.plan_training``.
        seed: of the draw of the others.

    Raises:
        ValueError: without an endpoint or a cap, or as in ``contaminating.plan_training``.
    """
    if not isinstance(asked.models[0], Endpoint) or asked.cap is None:
        raise ValueError("a fine-tuning job needs a model at base_url and a cost_cap")
    others = partitions.sample_unique(own.all_rows, own.columns, len(own.all_rows), seed)
    texts = partitions.format_instances(others.sample(frac=1, random_state=seed), own.columns)
    chosen = list(dict.fromkeys([*own.instances, *texts]))[:n]
    file = contaminating.training_file(chosen, *own.names)
    return file, contaminating.plan_training(
        file, n_epochs=n_epochs, price_per_million=price, price_date=price_date
    )


def start_tuning(asked: Asked, file: str, plan: contaminating.TrainingPlan) -> dict[str, str]:
    """Start the job of ``plan_tuning`` under the cap, as ``contaminating.start_training`` does."""
    return contaminating.start_training(asked.models[0], file, plan, asked.cap)
