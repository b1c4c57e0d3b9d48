"""One's own partition: any model, any dataset, any judge (part C of notebook 03)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from transformers import AutoConfig

from contamination import partitions
from contamination.judging import ask_judge, judge_requests
from contamination.models.chat import ERROR, REFUSED, Endpoint, Price, estimate
from contamination.models.loading import load_causal_lm
from contamination.models.retry import ChatError, Secret
from contamination.overlap import words
from contamination.parameters import OwnSettings, setting
from contamination.replication import did_chatgpt_cheat
from contamination.replication.completions import (
    MAX_TOKENS,
    by_chat,
    by_local_model,
    chat_requests,
    with_completions,
)
from contamination.replication.cutting import cut_rows
from contamination.replication.instructions import INSTRUCT, LABELLED_TASKS, prompts_of
from contamination.replication.prompts import FIRST_INSTANCES_PROMPT, JUDGE_PROMPT
from contamination.replication.study import DID_CHATGPT_CHEAT, PARTITION, RULE_COLUMN

N_FIRST = 10  # instances at the head of the split that Did-ChatGPT-Cheat? knows
CHEAT_FORMAT = "CSV"
_LETTERS_PER_TOKEN = 3  # as the estimate of an endpoint's input counts them


@dataclass(frozen=True)
class Settings(OwnSettings):
    """Part C of notebook 03: one's own model and data."""

    target_model: str = setting("", "model at base_url, or folder or hub id, empty to skip")
    base_url: str = setting("", "OpenAI-compatible address up to /v1, empty for a local model")
    key_variable: str = setting(
        "OPENAI_API_KEY", "NAME of the variable with the key, empty for none"
    )
    judge_model: str = setting("", "chat model that judges, empty for the rule judge alone")
    judge_base_url: str = setting("", "its address")
    judge_key_variable: str = setting("OPENAI_API_KEY", "NAME of the variable with its key")
    prices: list[float] = setting([], "per million input and output tokens, model then judge")
    price_date: str = setting("", "day on which you read the prices, YYYY-MM-DD")
    cost_cap: float = setting(0.0, "most that model and judge may each cost, 0 for no cap")
    limit_option: str = setting(
        "max_tokens", "or max_completion_tokens where the endpoints want it"
    )
    prompt_form: str = setting("instruct", "instruct (Table 3) or continue (base models)")
    dataset: str = setting("", "file (JSONL, CSV, Parquet) or hub id")
    dataset_split: str = setting("", "split of a hub dataset")
    dataset_revision: str = setting("", "its commit")
    names: list[str] = setting([], "dataset and split as the prompts call them")
    other_names: list[str] = setting([], "dataset and split that the placebos name")
    task: str = setting("classification", "classification, NLI, summary, one-sentence summary")
    text_columns: list[str] = setting(["text"], "column of the text, two for sentence pairs")
    label_column: str = setting("label", "column of the label, empty for summaries")
    label_names: list[str] = setting([], "how labels 0, 1 and so on read, empty to show as stored")
    cut: str = setting("paper", "paper or share (40 to 70 percent of the words, as DCQ)")
    dry_run: bool = setting(False, "only say what would be asked")


@dataclass(frozen=True)
class OwnPartition:
    """A partition ready to be asked.

    Attributes:
        prompts: ``instructions.prompts_of``, with the columns of a partition.
        first_instances: texts at the head of the split.
        attributes: labels and column names, which give the dataset away.
    """

    prompts: pd.DataFrame
    first_instances: tuple[str, ...]
    attributes: tuple[str, ...]

    @property
    def cheat_prompt(self) -> str:
        """The one prompt of Did-ChatGPT-Cheat?"""
        row = self.prompts.iloc[0]
        return FIRST_INSTANCES_PROMPT.format(
            dataset_name=row["dataset"], split_name=row["split"], format=CHEAT_FORMAT
        )


@dataclass(frozen=True)
class Asked:
    """Who is asked and what it may cost.

    Attributes:
        model: an endpoint, or the folder or hub id of a local model.
        judge: an endpoint, or None for the rule judge alone.
        price, judge_price: of their tokens, None where not given.
        cap: most that this run may spend on each of the two; None for no cap.
        limit_option: what the endpoints call their limit of output tokens.
        form: of the prompts.
    """

    model: Endpoint | str
    judge: Endpoint | None = None
    price: Price | None = None
    judge_price: Price | None = None
    cap: float | None = None
    limit_option: str = "max_tokens"
    form: str = INSTRUCT
    run: str = field(default="replication")

    def settings(self, price: Price | None) -> dict[str, Any]:
        """Keyword arguments of ``models.chat.answer_all``."""
        return {"run": self.run, "price": price, "cap": self.cap}


def asked_of(
    model: Sequence[str],
    judge: Sequence[str],
    prices: Sequence[Price | None],
    cap: float,
    limit_option: str,
    form: str,
) -> Asked | None:
    """Who is asked, from the notebook's parameters; None where no model is named.

    Args:
        model, judge: name, address and name of the key's variable; a model
            without an address is a local one.
        prices: :func:`prices_of`.
        cap: 0 for none.
        limit_option, form: of :class:`Asked`.

    Raises:
        ValueError: if something does not fit, before anything is asked.
    """
    if not model[0]:
        return None
    if judge[0] and not judge[1]:
        raise ValueError("judge_base_url is empty: the ICL judge is a chat model at an address")
    return Asked(
        model=Endpoint(model[1], model[0], model[2] or None) if model[1] else model[0],
        judge=Endpoint(judge[1], judge[0], judge[2] or None) if judge[0] else None,
        price=prices[0],
        judge_price=prices[1],
        cap=cap or None,
        limit_option=limit_option,
        form=form,
    )


def own_partition(
    dataset: str,
    dataset_split: str,
    revision: str,
    *,
    names: Sequence[str],
    other_names: Sequence[str],
    task: str,
    text_columns: Sequence[str],
    label_column: str,
    label_names: Sequence[str],
    n_instances: int,
    cut: str,
    form: str,
    seed: int,
) -> OwnPartition:
    """Load, sample, cut and put into words; nothing is asked.

    Args:
        dataset, dataset_split, revision: of ``partitions.load_rows``.
        names: dataset and split as the prompts call them.
        other_names: dataset and split that the placebos name instead.
        task, text_columns, label_column, cut: of ``cutting.cut_rows``.
        label_names: how the labels 0, 1, ... read in the prompts, such as
            "1 (positive)" in the paper; none to show them as stored.
        n_instances: instances to draw, all where there are fewer.
        form: of the prompts.
        seed: of the sample and the cuts.

    Raises:
        FileNotFoundError, ValueError: in one line, before anything costs.
    """
    if not dataset or len(names) != 2 or len(other_names) != 2:
        raise ValueError(
            "part C needs dataset, and in names and other_names a dataset and a split each"
        )
    if task in LABELLED_TASKS and not label_column:
        raise ValueError(f"label_column is empty: the prompts of {task} show the label")
    if label_names and not label_column:
        raise ValueError("label_names needs label_column: leave both empty for a summary")
    rows = partitions.load_rows(dataset, dataset_split, revision)
    columns = [*text_columns, *([label_column] if label_column else [])]
    sample = partitions.sample_unique(rows, columns, n_instances, seed)
    if label_names:
        known = list(label_names)
        try:
            numbers = sample[label_column].astype(int)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f'column "{label_column}" holds no whole numbers: leave label_names empty to show '
                "the labels as stored"
            ) from error
        if not numbers.between(0, len(known) - 1).all():
            raise ValueError(
                f'column "{label_column}" holds {numbers.min()} to {numbers.max()}, but '
                f"label_names has {len(known)} names: name every label"
            )
        sample[label_column] = [known[number] for number in numbers]
    else:
        known = sorted(rows[label_column].dropna().astype(str).unique()) if label_column else []
    pieces = cut_rows(sample, task, text_columns, label_column, seed=seed, how=cut)
    prompts = prompts_of(
        pieces,
        task,
        dataset=names[0],
        split=names[1],
        other_dataset=other_names[0],
        other_split=other_names[1],
        labels=known,
        form=form,
    )
    about = {"benchmark": names[0], "task": task, "dataset": names[0], "split": names[1]}
    prompts = prompts.assign(**about, copies=None, group=prompts["index"])
    wordless = pieces.loc[~pieces["second_piece"].map(lambda text: bool(words(text))), "index"]
    if len(wordless):
        raise ValueError(
            f"row {wordless.iloc[0]} has no word in its second piece: drop the row or change seed"
        )
    first = rows[text_columns[0]].astype(str).head(N_FIRST)
    did_chatgpt_cheat.known_instances(first)  # raises before anything is asked
    attributes = [*(known if label_names else []), *text_columns]
    return OwnPartition(prompts, tuple(first), tuple(attributes))


def estimates(own: OwnPartition, asked: Asked) -> list[str]:
    """What the run will ask of each endpoint, one line each; no call is made."""
    lines = []
    if isinstance(asked.model, Endpoint):
        requests = chat_requests(
            [*own.prompts["prompt"], own.cheat_prompt], MAX_TOKENS, asked.limit_option
        )
        found = estimate(asked.model, requests, **asked.settings(asked.price))
        lines.append(f"{asked.model.model}: {found}")
    if asked.judge:
        # The completions are not there yet: each is taken to be as long as it may be.
        references = own.prompts["second_piece"].tolist()
        longest = ["x" * _LETTERS_PER_TOKEN * MAX_TOKENS + str(n) for n in range(len(references))]
        requests = judge_requests(references, longest, JUDGE_PROMPT, asked.limit_option)
        found = estimate(asked.judge, requests, **asked.settings(asked.judge_price))
        lines.append(f"judge {asked.judge.model}: {found}")
    return lines


def announce(own: OwnPartition, asked: Asked, dry_run: bool) -> None:
    """Print the estimates; then, unless it is a dry run, stop if a key or price is missing.

    Raises:
        ChatError, FileNotFoundError, ValueError: as :func:`check_ready`, with the estimates.
    """
    lines = estimates(own, asked)
    if lines:
        print("\n".join(lines))
    if dry_run:
        return
    try:
        check_ready(asked)
    except (ChatError, FileNotFoundError, ValueError) as error:
        # A stopped run shows one line, so that line carries the estimates.
        raise type(error)(f"{error} ({'; '.join(lines)})" if lines else str(error)) from None


def check_ready(asked: Asked) -> None:
    """Raise, in one line, if a local model, a key or a price is missing.

    Raises:
        ChatError: if a key's variable is not set.
        FileNotFoundError: if a local model is neither a folder nor on the hub.
        ValueError: if an endpoint that asks for a key has no price.
    """
    if isinstance(asked.model, str):
        try:
            AutoConfig.from_pretrained(asked.model)
        except (OSError, ValueError) as error:  # also what the hub and its client raise
            raise FileNotFoundError(
                f'target_model "{asked.model}" is neither a folder with config.json nor found on '
                "the Hugging Face hub: check the spelling, or set base_url for a served model"
            ) from error
    for who, price in ((asked.model, asked.price), (asked.judge, asked.judge_price)):
        if isinstance(who, Endpoint) and who.key_variable:
            Secret(who.key_variable)
            if price is None:
                raise ValueError(
                    f"no price for {who.model}: fill in prices and price_date, the day you read "
                    "the price list"
                )


def prices_of(prices: Sequence[float], date: str) -> tuple[Price | None, Price | None]:
    """Prices of model and judge.

    Args:
        prices: of 10^6 input and output tokens of the model, then of the judge;
            empty where none are known.
        date: day on which they were read.

    Raises:
        ValueError: for another number of prices, or prices without a date.
    """
    if len(prices) not in (0, 2, 4) or (prices and not date):
        raise ValueError(
            "prices holds input and output price of the model, then of the judge (2 or 4 "
            f"numbers), with price_date; got {len(prices)} and {date!r}"
        )
    pairs = [Price(*prices[start : start + 2], date=date) for start in range(0, len(prices), 2)]
    return tuple([*pairs, None, None][:2])


def completed(own: OwnPartition, asked: Asked) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Completions of all prompts, and the row of Did-ChatGPT-Cheat?'s one answer.

    Returns:
        ``completions.with_completions``; and text and status of the answer.
    """
    prompts = [*own.prompts["prompt"], own.cheat_prompt]
    if isinstance(asked.model, Endpoint):
        requests = chat_requests(prompts, MAX_TOKENS, asked.limit_option)
        written = by_chat(asked.model, requests, **asked.settings(asked.price))
    else:
        written = by_local_model(load_causal_lm(asked.model), prompts, MAX_TOKENS, asked.form)
    return with_completions(own.prompts, written.iloc[:-1]), written.iloc[-1:]


def cheat_rows(
    own: OwnPartition, written: pd.DataFrame, near_exact_threshold: float
) -> pd.DataFrame:
    """Did-ChatGPT-Cheat?'s outcome for one's own partition, one row as in ``study.cheat_rows``.

    Without an answer there is no outcome.
    """
    row, answer = own.prompts.iloc[0], written.iloc[0]
    found = {name: row[name] for name in PARTITION}
    found |= {"method": DID_CHATGPT_CHEAT, "instruction": "first instances", "n": 1}
    found |= {"n_valid": 0, "n_refused": int(answer["status"] == REFUSED)}
    found["n_error"] = int(answer["status"] == ERROR)
    if answer["text"].strip():
        outcome = did_chatgpt_cheat.outcome(
            answer["text"], own.first_instances, own.attributes, near_exact_threshold
        )
        found |= {"n_valid": 1, "outcome": outcome}
        found["contaminated"] = outcome == did_chatgpt_cheat.CONTAMINATED
    return pd.DataFrame([found])


def with_judge(scored: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """The scored completions with the ICL judge's verdict, status and bare "Yes".

    A completion that did not come has no verdict; an empty one is inexact.
    """
    judgements = ask_judge(
        asked.judge,
        scored["second_piece"].tolist(),
        scored["completion"].tolist(),
        JUDGE_PROMPT,
        asked.limit_option,
        **asked.settings(asked.judge_price),
    )
    return scored.assign(
        icl=pd.Series([judgement.verdict for judgement in judgements], scored.index).where(
            scored[RULE_COLUMN].notna(), None
        ),
        judge_status=[judgement.status for judgement in judgements],
        is_bare_yes=[judgement.is_bare_yes for judgement in judgements],
    )
