"""What an audit is told: one tree of settings, and the same words wherever else a model is named.

``Settings`` is what notebook 10 and ``contamination audit`` read: the blocks ``model``, ``data``
and one for each method. The case studies (``cases.settings``) have the block ``model`` too. Every
class is read as strictly as a notebook's parameters (``core.parameters.OwnSettings``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from contamination.core.parameters import OwnSettings, setting
from contamination.models import source

# Rows and comparison rows that come with the package; lab:contaminated was trained on the first.
SAMPLE, UNSEEN = "params/audit/sample.jsonl", "params/audit/unseen.jsonl"
LAB = "lab:"
CONTAMINATED, CLEAN = "lab:contaminated", "lab:clean"
NATIVE = "native"
INSTRUCT = "instruct"
KEY = "OPENAI_API_KEY"
# What settings of several classes mean
KEY_NAME = "NAME of the variable with its key [variable]"
# Blocks that only these methods read, and fields of ``model`` for one kind of access.
USED_BY = {"dcq": ("dcq", "ranking"), "replication": ("replication",)}
USED_BY |= {"min_k": ("min_k",), "dice": ("dice",)}
OF_LOCAL = ("revision", "dtype", "device", "device_map", "safetensors_only", "bos")
OF_SERVED = ("key_variable", "limit_option", "has_temperature")
OF_PAID = ("prices", "price_date", "cost_cap")
_ANOTHER_CLEAN = re.compile(rf"{CLEAN}:\d+")  # "lab:clean:2" is one more clean model


def check_name(name: str) -> str:
    """What could not be checked about a model's name, in one line; "" if there is such a model.

    Args:
        name: "lab:contaminated", "lab:clean", "lab:clean:1" and so on, or as for
            :func:`source.check_name`, whose errors it has.
    """
    is_another = _ANOTHER_CLEAN.fullmatch(name)
    return source.check_name(CLEAN if is_another else name, (CONTAMINATED, CLEAN))


@dataclass(frozen=True)
class Model(OwnSettings):
    """Block ``model``: which models, how local ones are loaded, and what served ones may cost."""

    names: list[str] = setting(
        [], "models at base_url, folders, hub ids, GGUF files [0 to 100 values, distinct]"
    )
    revision: str = setting("", "commit of the first one on the hub")
    dtype: str = setting(
        "float32",
        "number format of the arithmetic; native: bfloat16 where the processor has it, "
        "else float32 [float32 or bfloat16 or float16 or native]",
    )
    device: str = setting(
        "", "for local models, empty for the fastest available [empty or cuda or mps or cpu]"
    )
    device_map: str = setting("", '"auto" spreads a large model over the GPUs')
    safetensors_only: bool = setting(True, "false also reads weights in the older PyTorch format")
    bos: str = setting(
        "", "beginning-of-sequence token, empty: as declared [first or none or empty]"
    )
    base_url: str = setting(
        "", "OpenAI-compatible address up to /v1, empty for local models [address]"
    )
    key_variable: str = setting(KEY, "NAME of the variable with its key, empty for none [variable]")
    limit_option: str = setting(
        "max_tokens",
        "the endpoint's name for the token limit [max_tokens or max_completion_tokens]",
    )
    has_temperature: bool = setting(True, "false for models that refuse a temperature")
    prices: list[float] = setting(
        [],
        "per million tokens: model, then perturber and judge if named [0 or more, 0 to 6 values]",
    )
    price_date: str = setting("", "day on which you read the prices, YYYY-MM-DD")
    cost_cap: float = setting(
        0.0, "most it may cost, including earlier runs; 0: no cap [0 or more]"
    )
    log_probs: str = setting(
        "", "in place of a model: JSONL of log-probabilities of the tokens of every row"
    )

    @property
    def first(self) -> str:
        """The first model, "" where none is named."""
        return next(iter(self.names), "")

    @property
    def called(self) -> str:
        """What tables call the first model, without the folder it lies in."""
        return self.first if self.base_url else Path(self.first).name

    def revision_of(self, name: str) -> str | None:
        """The commit of a model on the hub, None where none is told."""
        return (self.revision or None) if name == self.first else None

    def sent(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a paper (temperature, max_tokens) as the endpoint takes them."""
        options = {self.limit_option if k == "max_tokens" else k: v for k, v in options.items()}
        if not self.has_temperature:
            del options["temperature"]
        return options

    def check(self) -> None:
        """ValueError, in one line, if something does not fit."""
        if not self.names:
            raise ValueError("model names nothing to audit: fill in model, names")
        if self.log_probs and len(self.names) > 1:
            raise ValueError("log_probs are those of one model: name one")
        if self.base_url and any(name.startswith(LAB) for name in self.names):
            raise ValueError("models of the lab are local: leave base_url empty")
        if self.base_url and self.log_probs:
            raise ValueError("log_probs takes the place of a model: leave it or base_url empty")


@dataclass(frozen=True)
class Data(OwnSettings):
    """Block ``data``: what the models may have been trained on."""

    dataset: str = setting("", "file (JSONL, CSV, TXT, Parquet, Arrow) or hub id owner/name")
    split: str = setting("", "split of a hub dataset")
    splits: list[str] = setting([], "several in place of split, each scored by Min-k% Prob")
    revision: str = setting("", "its commit")
    comparison_split: str = setting("", "split of the comparison, where that is a hub dataset")
    member_column: str = setting("", "column with 1 for rows that were seen, 0 for comparison rows")
    names: list[str] = setting([], "dataset and split for prompts, by default file name and test")
    other_names: list[str] = setting([], "wrong ones, by default Harbour Notes and another split")
    task: str = setting(
        "classification",
        "kind of rows, which decides the prompts "
        "[classification or NLI or summary or one-sentence summary or code or question]",
    )
    column_names: list[str] = setting([], "names of all columns of a CSV without a header")
    text_columns: list[str] = setting(
        ["text"], 'columns of the text, two for NLI; "a.b" is a field, "a,b" joins two'
    )
    label_column: str = setting("label", "column of the label, empty for none")
    label_names: list[str] = setting([], "how labels 0, 1 and so on read, empty to show as stored")

    @property
    def called(self) -> tuple[str, str]:
        """Dataset and split as prompts say them."""
        stem = Path(self.dataset.removesuffix(".gz")).stem
        name, split = self.names or (stem, self.first_split or "test")
        return name, split

    @property
    def wrongly_called(self) -> tuple[str, str]:
        """Dataset and split as the placebos say them."""
        other = "test" if self.called[1] == "train" else "train"
        name, split = self.other_names or ("Harbour Notes", other)
        return name, split

    @property
    def first_split(self) -> str:
        """The split that is audited first: the first of ``splits``, else ``split``."""
        return next(iter(self.splits), self.split)

    def check(self) -> None:
        """ValueError, in one line, if something does not fit."""
        if not self.dataset:
            raise ValueError("data names no dataset: fill in data, dataset")
        if self.task == "NLI" and len(self.text_columns) != 2:
            raise ValueError(
                "task NLI needs 2 text_columns: one for the premise, one for the hypothesis"
            )
        if self.label_names and not self.label_column:
            raise ValueError("label_names are those of a label column: fill in label_column")
        if len(self.names) not in (0, 2) or len(self.other_names) not in (0, 2):
            raise ValueError("names and other_names must each list a dataset and a split")
        if any(a == b for a, b in zip(self.called, self.wrongly_called, strict=True)):
            raise ValueError(
                "other_names are the wrong names: choose two that both differ from names"
            )
        if self.split and self.splits:
            raise ValueError("split names one split and splits several: leave one of them empty")


@dataclass(frozen=True)
class Dcq(OwnSettings):
    """Block ``dcq``: who writes the quizzes, how they are answered, and Appendix E's training."""

    perturber_model: str = setting("", "chat model that writes the options, empty for a rule")
    perturber_base_url: str = setting("", "its address [address]")
    perturber_key_variable: str = setting(KEY, KEY_NAME)
    second_perturbation: bool = setting(False, "also the quiz without any original, Figure 2")
    respondent: str = setting("", "of a local model [empty or instruct or base]")
    layout: str = setting(
        "paper",
        "prompts as printed, or as the authors' code sends them [paper or released]",
    )
    answer_tokens: int = setting(1, "longest answer, in tokens; 1 in the paper [1 to 100000]")
    trained_share_pct: float = setting(
        0.0,
        "share of the quizzed rows, from the first, that it was trained on; 0: not known "
        "[0 to 100]",
    )
    tuning_epochs: int = setting(0, "epochs that contaminate a first model, 0: none [0 to 100]")
    n_tuning_instances: int = setting(1000, "instances read, the quizzed ones first [1 or more]")
    tuning_price: float = setting(0.0, "per million training tokens, on price_date [0 or more]")


@dataclass(frozen=True)
class Replication(OwnSettings):
    """Block ``replication``: how texts are cut and completed, and who judges completions."""

    cut: str = setting(
        "paper",
        "share: 40 to 70 percent of the words, as in DCQ; released: of the sentences, as in "
        "Time Travel's code [paper or share or released]",
    )
    prompt_form: str = setting(
        "",
        "as in Table 3, or for base models; empty: whichever suits the model "
        "[empty or instruct or continue]",
    )
    layout: str = setting("paper", "as in dcq, also of the judge's prompt [paper or released]")
    guided_only: bool = setting(False, "ask the guided instruction alone, as the quiz paper does")
    completion_tokens: int = setting(
        500, "longest completion, in tokens; 500 in the paper [1 to 100000]"
    )
    judge_model: str = setting("", "chat model that judges completions, empty for the rule judge")
    judge_base_url: str = setting("", "its address [address]")
    judge_key_variable: str = setting(KEY, KEY_NAME)
    human_labels: str = setting(
        "", "CSV of a person's labels for the guided completions: index, label; empty for none"
    )
    text_rule_threshold: float = setting(
        0.82, "ROUGE-L of a near-exact match for the rule judge [0 to 1]"
    )
    bleurt_checkpoint: str = setting("", "folder or hub id of a BLEURT scorer, empty for none")
    bleurt_joining: str = setting(
        "paper", "paper: joins pieces cut in mid-sentence; code: joins more [paper or code]"
    )
    first_instances: bool = setting(False, "also ask for the first instances: Did-ChatGPT-Cheat?")


@dataclass(frozen=True)
class MinK(OwnSettings):
    """Block ``min_k``: the paper's other scores next to Min-k% Prob."""

    k_percent: float = setting(20.0, "share of least likely tokens averaged [above 0 to 100]")
    form: str = setting(
        "text",
        "form of a scored row; an instance has column names and a label too [text or instance]",
    )
    all_methods: bool = setting(False, "also the paper's other scores, in audit_min_k.csv")
    reference_model: str = setting("", "smaller model with the same training data, empty for none")
    neighbor_model: str = setting("", "fill-mask model that writes neighbours, empty for none")
    n_neighbors: int = setting(25, "neighbours of a passage [1 to 100]")


@dataclass(frozen=True)
class Dice(OwnSettings):
    """Block ``dice``: what a model is compared with."""

    reference_models: list[str] = setting([], "two or more clean models of the same base")


@dataclass(frozen=True)
class Settings(OwnSettings):
    """Everything that notebook 10 and the command line are told of a model and its data."""

    model: Model = setting(Model(), "who")
    data: Data = setting(Data(), "what")
    comparison: str = setting("", "rows that the models cannot have seen, empty for none")
    methods: list[str] = setting(
        [],
        "empty: all [dcq or replication or ranking or min_k or dice, 0 to 5 values, distinct]",
    )
    dcq: Dcq = setting(Dcq(), "options of the quiz")
    replication: Replication = setting(Replication(), "options of the completions")
    min_k: MinK = setting(MinK(), "options of the scores")
    dice: Dice = setting(Dice(), "options of the comparison of hidden states")
    n_instances: int = setting(60, "rows quizzed and completed [4 to 10000, times copies to 1e6]")
    n_passages: int = setting(400, "rows of each kind that Min-k% Prob scores [4 to 1e6]")
    power: bool = setting(
        False, "also train copies of a local model on comparison rows: what would be noticed?"
    )
    false_discovery_rate: float = setting(
        0.1, "share of listed rows named wrongly, on average [0.01 to 0.5]"
    )
    n_resamples: int = setting(2000, "bootstrap resamples of the papers' intervals [10 to 1e5]")
    dry_run: bool = setting(False, "only say what would be asked and what it may cost")
    world_seed: int = setting(0, "seed of the lab's texts, as in notebook 01 [0 to 1e9]")
    n_background_tokens: int = setting(
        1_000_000, "tokens of the lab's base model, as in notebook 01 [1000 to 2e7]"
    )
    copies: int = setting(
        16, "how often lab:contaminated reads the rows, in each of two forms [1 to 1000]"
    )
    seed: int = setting(0, "seed of samples, cuts and options [0 to 1e9]")

    @property
    def unused(self) -> dict[str, str]:
        """Fields that were given and would change nothing, each with the reason."""
        found: dict[str, str] = {}
        for block, methods in USED_BY.items():
            if self.methods and not {*methods} & {*self.methods}:
                why = f"methods leaves out {' and '.join(methods)}"
                found |= {f"{block}: {name}": why for name in _given(getattr(self, block))}
        given = _given(self.model)
        if self.model.base_url or self.model.log_probs:
            why = "it is for a local model"
            found |= {f"model: {name}": why for name in OF_LOCAL if name in given}
        if not self.model.base_url:
            why = "it is for a model at base_url"
            found |= {f"model: {name}": why for name in OF_SERVED if name in given}
        if self.model.log_probs:
            names = [name for name in _given(self.min_k) if name != "k_percent"]
            found |= {f"min_k: {name}": "log_probs are of the texts alone" for name in names}
        if not (self.model.base_url or self.dcq.perturber_model or self.replication.judge_model):
            why = "nobody is paid: base_url, perturber_model and judge_model are empty"
            found |= {f"model: {name}": why for name in OF_PAID if name in given}
        return found

    def check(self) -> None:
        """ValueError, in one line, if something does not fit."""
        self.model.check()
        self.data.check()
        for name, why in self.unused.items():
            raise ValueError(f"{name} would not be used, since {why}: leave it out")
        if self.model.base_url and self.dice.reference_models:
            raise ValueError(
                "DICE needs states of a local model: leave reference_models or base_url empty"
            )
        if self.model.base_url and self.dcq.respondent:
            raise ValueError("respondent is for local models: leave it or base_url empty")
        if self.power and (self.model.base_url or self.model.log_probs):
            raise ValueError("power trains copies of a local model: leave it or base_url empty")
        if self.data.member_column and self.comparison:
            raise ValueError(
                "member_column already marks the comparison rows: leave comparison empty"
            )
        if self.comparison == UNSEEN and self.data.dataset != SAMPLE:
            raise ValueError(
                f'comparison is "{UNSEEN}", which belongs to our sample: name rows of your own '
                'that the models cannot have seen, or set comparison to ""'
            )
        if self.data.splits and not (self.data.member_column or self.comparison):
            raise ValueError(
                "splits are for Min-k% Prob, which needs comparison rows: fill in member_column"
            )


def _given(block: OwnSettings) -> list[str]:
    """Names of a block's fields that are not at their defaults."""
    plain = type(block)()
    return [
        one.name for one in fields(block) if getattr(block, one.name) != getattr(plain, one.name)
    ]
