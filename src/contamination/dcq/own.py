"""The quizzes for a model and a dataset of one's own (part C of notebook 02)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd

from contamination import partitions
from contamination.dcq import contaminating, controls, perturbation
from contamination.dcq.assessment import POSITIONS
from contamination.dcq.deployment import Respondent, level_row, position_rows, take
from contamination.dcq.perturbation import FIFTH, Ask
from contamination.dcq.quizzes import OPTION_COLUMNS
from contamination.dcq.respondents import (
    PAPER_OPTIONS,
    BaseRespondent,
    ChatRespondent,
    InstructRespondent,
    Stated,
)
from contamination.models import paid
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
from contamination.models.paid import OPENAI_KEY, PaidSettings, name_of
from contamination.parameters import setting

CHAT, INSTRUCT, BASE = "chat", "instruct", "base"
# The modified quiz, four standard ones at most, and the second perturbation.
MOST_QUIZZES = 2 + len(POSITIONS)


@dataclass(frozen=True)
class Settings(PaidSettings):
    """Part C of notebook 02: one's own model and data."""

    second_model: str = setting("", "another snapshot at the same place, empty for none")
    respondent: str = setting(CHAT, "chat (endpoint), instruct or base (local models)")
    answer_tokens: int = setting(1, "most tokens of an answer, 1 in the paper")
    has_temperature: bool = setting(True, "false for models that refuse a temperature")
    perturber_model: str = setting("", "chat model that writes the options")
    perturber_base_url: str = setting("", "its address")
    perturber_key_variable: str = setting(OPENAI_KEY, "NAME of the variable with its key")
    options_file: str = setting("", "options written earlier, in place of dataset and perturber")
    columns: list[str] = setting(["text", "label"], "columns of an instance, in order")
    label_columns: list[str] = setting(["label"], "of these, never perturbed")
    n_instances: int = setting(100, "instances to draw, 100 in the paper")
    tuning_epochs: int = setting(0, "epochs of a job that contaminates target_model, 0 for none")
    n_tuning_instances: int = setting(1000, "instances it reads, the quizzed ones first")
    tuning_price: float = setting(0.0, "per million training tokens, read on price_date")


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
        options: sampling options of an answer.
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
    options: dict = field(default_factory=dict)
    run: str = "dcq"

    def ask(self, endpoint: Endpoint, price: Price | None) -> Ask:
        """Requests in, answers out, through the response log and under the cap."""
        return partial(answer_all, endpoint, run=self.run, price=price, cap=self.cap)


def asked_of(mine: Settings, stated: Stated) -> Asked | None:
    """Who is asked; None where no model is named.

    Args:
        mine: the settings.
        stated: of a base model's respondent.

    Raises:
        ValueError: if something does not fit, before anything is asked.
    """
    models = [name for name in (mine.target_model, mine.second_model) if name]
    if not models:
        return None
    if mine.respondent not in (CHAT, INSTRUCT, BASE):
        raise ValueError(
            f'respondent must be "chat", "instruct" or "base", got "{mine.respondent}"'
        )
    if (mine.respondent == CHAT) != bool(mine.base_url):
        raise ValueError(
            'respondent "chat" needs base_url, and a local model ("instruct", "base") has none'
        )
    if len(set(models)) < len(models):
        raise ValueError("second_model is target_model: name another one, or none")
    if mine.answer_tokens < 1:
        raise ValueError(f"answer_tokens must be at least 1, got {mine.answer_tokens}")
    price, perturber_price = mine.both_prices()
    perturber = mine.helper_of("perturber")
    if perturber:
        perturber = replace(perturber, options=_sent(perturbation.PAPER_OPTIONS, mine))
    return Asked(
        models=tuple(map(mine.model_of, models)),
        respondent=mine.respondent,
        stated=stated,
        perturber=perturber,
        price=price,
        # One model may do both.
        perturber_price=perturber_price or (price if mine.perturber_model in models else None),
        cap=mine.cost_cap or None,
        options=_sent({**PAPER_OPTIONS, "max_tokens": mine.answer_tokens}, mine),
        run=f"dcq {' '.join(mine.names)}",
    )


def _sent(options: dict, mine: Settings) -> dict:
    """Sampling options as the endpoint takes them."""
    options = dict(options)
    if not mine.has_temperature:
        options.pop("temperature")
    options[mine.limit_option] = options.pop("max_tokens")
    return options


def own_partition(mine: Settings, seed: int) -> OwnPartition:
    """Load and sample, ``n_instances`` or all where there are fewer; nothing is asked.

    An ``options_file`` holds instance, option_a to option_d and perhaps fifth, and takes the
    place of dataset and perturber.

    Args:
        mine: the settings.
        seed: of the sample.

    Raises:
        FileNotFoundError, ValueError: in one line, before anything costs.
    """
    columns, labels = mine.columns, mine.label_columns
    if len(mine.names) != 2 or not all(mine.names):
        raise ValueError("names holds the dataset and the split as the prompts call them")
    if mine.options_file:
        quizzes = _read_options(mine.options_file)
        rows = quizzes[["index", "instance"]]
        return OwnPartition(rows, rows, ("instance",), (), tuple(mine.names), quizzes)
    if not mine.dataset:
        raise ValueError("dataset and options_file are empty: part C needs one of them")
    if not (mine.perturber_model or mine.dry_run):
        raise ValueError("perturber_model is empty: name one, or an options_file")
    if mine.n_instances < 1:
        raise ValueError(f"n_instances must be at least 1, got {mine.n_instances}")
    if set(columns) <= set(labels):
        raise ValueError("columns holds nothing but labels: name at least one column to perturb")
    if unknown := set(labels) - set(columns):
        raise ValueError(f"label_columns not among columns: {', '.join(sorted(unknown))}")
    if mine.label_names and not labels:
        raise ValueError("label_names needs label_columns")
    rows = partitions.load_rows(mine.dataset, mine.dataset_split, mine.dataset_revision)
    if mine.label_names:
        rows = partitions.with_label_names(rows, labels[0], mine.label_names)
    sample = partitions.sample_unique(rows, columns, mine.n_instances, seed)
    return OwnPartition(sample, rows, tuple(columns), tuple(labels), tuple(mine.names))


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
            lines.append(f"{name_of(model)}: {found}")
        else:
            n_tokens = sum(len(text.encode()) // 3 for texts_ in texts for text in texts_)
            lines.append(
                f"{name_of(model)}: at most {MOST_QUIZZES * n:,} quizzes, about {n_tokens:,} "
                "tokens here, no cost"
            )
    return lines


def announce(own: OwnPartition, asked: Asked, dry_run: bool) -> None:
    """Print the plan and check what it needs, as ``models.paid.announce``."""
    perturber = None if own.quizzes is not None else asked.perturber
    models = [*((model, asked.price) for model in asked.models), (perturber, asked.perturber_price)]
    paid.announce(plan_lines(own, asked), models, dry_run)


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
        answers[name_of(model)] = take(respondent, quizzes, with_second)
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


def answered_positions(answers: dict[str, pd.DataFrame], own: OwnPartition) -> pd.DataFrame:
    """How often each choice was taken in each quiz, for Figure 2; one model after another."""
    about = {"source": "own", "dataset": own.names[0], "split": own.names[1]}
    return pd.concat(position_rows(rows, model=model, **about) for model, rows in answers.items())


def control_rows(quizzes: pd.DataFrame, levels: pd.DataFrame) -> pd.DataFrame:
    """The rules without memory on these quizzes, at the positions that each model was quizzed at.

    Args:
        quizzes: as asked.
        levels: of ``own_rows``.

    Returns:
        Columns of ``controls.control_table``, with paper_max_pct as model_max_pct.
    """
    choices = controls.rule_choices(quizzes.assign(dataset=levels["dataset"].iloc[0]))
    parts = [controls.control_table(choices, levels.iloc[[place]]) for place in range(len(levels))]
    return pd.concat(parts, ignore_index=True).rename(columns={"paper_max_pct": "model_max_pct"})


def plan_tuning(
    own: OwnPartition, asked: Asked, mine: Settings, seed: int
) -> tuple[str, contaminating.TrainingPlan]:
    """File and plan of a job that contaminates the first model (appendix E); nothing is sent.

    Args:
        own: the partition; other instances are drawn from it to stand beside the
            sample (the paper trains on 1,000 in all).
        asked: with an endpoint and a cap.
        mine: the settings.
        seed: of the draw of the others.

    Raises:
        ValueError: without an endpoint or a cap, or as in ``contaminating.plan_training``.
    """
    if not isinstance(asked.models[0], Endpoint) or asked.cap is None:
        raise ValueError("a fine-tuning job needs a model at base_url and a cost_cap")
    others = partitions.sample_unique(own.all_rows, own.columns, len(own.all_rows), seed)
    texts = partitions.format_instances(others.sample(frac=1, random_state=seed), own.columns)
    chosen = list(dict.fromkeys([*own.instances, *texts]))[: mine.n_tuning_instances]
    file = contaminating.training_file(chosen, *own.names)
    return file, contaminating.plan_training(
        file,
        n_epochs=mine.tuning_epochs,
        price_per_million=mine.tuning_price,
        price_date=mine.price_date,
    )


def start_tuning(asked: Asked, file: str, plan: contaminating.TrainingPlan) -> dict[str, str]:
    """Start the job of ``plan_tuning`` under the cap, as ``contaminating.start_training`` does."""
    return contaminating.start_training(asked.models[0], file, plan, asked.cap)
