"""One's own partition: any model, any dataset, any judge (part C of notebook 03)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from contamination import partitions
from contamination.judging import ask_judge, judge_requests
from contamination.models import paid
from contamination.models.chat import ERROR, REFUSED, Endpoint, Price, estimate
from contamination.models.loading import load_causal_lm
from contamination.models.paid import OPENAI_KEY, PaidSettings, name_of
from contamination.overlap import words
from contamination.parameters import setting
from contamination.replication import did_chatgpt_cheat
from contamination.replication.completions import (
    MAX_TOKENS,
    by_chat,
    by_local_model,
    chat_requests,
    with_completions,
)
from contamination.replication.cutting import cut_rows
from contamination.replication.decisions import DID_CHATGPT_CHEAT, PARTITION, RULE_COLUMN
from contamination.replication.instructions import INSTRUCT, LABELLED_TASKS, prompts_of
from contamination.replication.prompts import FIRST_INSTANCES_PROMPT, JUDGE_PROMPT

N_FIRST = 10  # instances at the head of the split that Did-ChatGPT-Cheat? knows
CHEAT_FORMAT = "CSV"
_LETTERS_PER_TOKEN = 3  # as the estimate of an endpoint's input counts them


@dataclass(frozen=True)
class Settings(PaidSettings):
    """Part C of notebook 03: one's own model and data."""

    judge_model: str = setting("", "chat model that judges, empty for the rule judge alone")
    judge_base_url: str = setting("", "its address")
    judge_key_variable: str = setting(OPENAI_KEY, "NAME of the variable with its key")
    prompt_form: str = setting("instruct", "instruct (Table 3) or continue (base models)")
    other_names: list[str] = setting([], "dataset and split that the placebos name")
    task: str = setting("classification", "classification, NLI, summary, one-sentence summary")
    text_columns: list[str] = setting(["text"], "column of the text, two for sentence pairs")
    label_column: str = setting("label", "column of the label, empty for summaries")
    cut: str = setting("paper", "paper or share (40 to 70 percent of the words, as DCQ)")


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
        cap: most that this run may spend, on both together; None for no cap.
        limit_option: what the endpoints call their limit of output tokens.
        form: of the prompts.
        run: name under which spending is summed.
    """

    model: Endpoint | str
    judge: Endpoint | None = None
    price: Price | None = None
    judge_price: Price | None = None
    cap: float | None = None
    limit_option: str = "max_tokens"
    form: str = INSTRUCT
    run: str = "replication"

    def settings(self, price: Price | None) -> dict[str, Any]:
        """Keyword arguments of ``models.chat.answer_all``."""
        return {"run": self.run, "price": price, "cap": self.cap}


def asked_of(mine: Settings) -> Asked | None:
    """Who is asked; None where no model is named.

    Raises:
        ValueError: if something does not fit, before anything is asked.
    """
    if not mine.target_model:
        return None
    price, judge_price = mine.both_prices()
    return Asked(
        model=mine.model_of(mine.target_model),
        judge=mine.helper_of("judge"),
        price=price,
        judge_price=judge_price,
        cap=mine.cost_cap or None,
        limit_option=mine.limit_option,
        form=mine.prompt_form,
        run=f"replication {' '.join(mine.names)}",
    )


def own_partition(mine: Settings, n_instances: int, seed: int) -> OwnPartition:
    """Load, sample, cut and put into words; nothing is asked.

    Args:
        mine: the settings.
        n_instances: instances to draw, all where there are fewer.
        seed: of the sample and the cuts.

    Raises:
        FileNotFoundError, ValueError: in one line, before anything costs.
    """
    names, other_names = mine.names, mine.other_names
    task, text_columns, label_column = mine.task, mine.text_columns, mine.label_column
    if not mine.dataset or len(names) != 2 or len(other_names) != 2:
        raise ValueError(
            "part C needs dataset, and in names and other_names a dataset and a split each"
        )
    if task in LABELLED_TASKS and not label_column:
        raise ValueError(f"label_column is empty: the prompts of {task} show the label")
    if mine.label_names and not label_column:
        raise ValueError("label_names needs label_column: leave both empty for a summary")
    rows = partitions.load_rows(mine.dataset, mine.dataset_split, mine.dataset_revision)
    if mine.label_names:
        rows = partitions.with_label_names(rows, label_column, mine.label_names)
    columns = [*text_columns, *([label_column] if label_column else [])]
    sample = partitions.sample_unique(rows, columns, n_instances, seed)
    known = list(mine.label_names)
    if label_column and not known:
        known = sorted(rows[label_column].dropna().astype(str).unique())
    pieces = cut_rows(sample, task, text_columns, label_column, seed=seed, how=mine.cut)
    prompts = prompts_of(
        pieces,
        task,
        dataset=names[0],
        split=names[1],
        other_dataset=other_names[0],
        other_split=other_names[1],
        labels=known,
        form=mine.prompt_form,
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
    attributes = [*mine.label_names, *text_columns]
    return OwnPartition(prompts, tuple(first), tuple(attributes))


def estimates(own: OwnPartition, asked: Asked) -> list[str]:
    """What the run will ask of each model, one line each; no call is made."""
    lines = []
    if isinstance(asked.model, Endpoint):
        requests = chat_requests(
            [*own.prompts["prompt"], own.cheat_prompt], MAX_TOKENS, asked.limit_option
        )
        found = estimate(asked.model, requests, **asked.settings(asked.price))
        lines.append(f"{name_of(asked.model)}: {found}")
    else:
        n = len(own.prompts) + 1
        lines.append(f"{name_of(asked.model)}: {n:,} prompts here, no cost")
    if asked.judge:
        # The completions are not there yet: each is taken to be as long as it may be.
        references = own.prompts["second_piece"].tolist()
        longest = ["x" * _LETTERS_PER_TOKEN * MAX_TOKENS + str(n) for n in range(len(references))]
        requests = judge_requests(references, longest, JUDGE_PROMPT, asked.limit_option)
        found = estimate(asked.judge, requests, **asked.settings(asked.judge_price))
        lines.append(f"judge {asked.judge.model}: {found}")
    return lines


def announce(own: OwnPartition, asked: Asked, dry_run: bool) -> None:
    """Print the estimates and check what they need, as ``models.paid.announce``."""
    models = [(asked.model, asked.price), (asked.judge, asked.judge_price)]
    paid.announce(estimates(own, asked), models, dry_run)


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
    """Did-ChatGPT-Cheat?'s outcome for one's own partition, one row as in the lab.

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
