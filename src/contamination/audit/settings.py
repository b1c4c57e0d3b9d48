"""What one's own run is told: the model, the data, and what an answer may cost.

Every class is read as strictly as a notebook's parameters (``parameters.OwnSettings``).
``Model`` and ``Data`` are those of notebook 10; ``Quiz``, ``Replication``, ``OwnPassages`` and
``Dice`` are ``own_settings`` of notebooks 02 to 05, and 06 and 07 build on ``OwnTarget``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.core.parameters import OwnSettings, setting
from contamination.models import bos, source

if TYPE_CHECKING:  # what loads models is slow to import, and settings are read before a kernel
    from contamination.models.causal import CausalLM

LAB = "lab:"
CONTAMINATED, CLEAN = "lab:contaminated", "lab:clean"
NATIVE = "native"
CHAT, INSTRUCT, BASE = "chat", "instruct", "base"
KEY = "OPENAI_API_KEY"
# What settings of several classes mean
KEY_NAME = "NAME of the variable with its key [variable]"
_DATASET = "file (JSONL, CSV, TXT, Parquet, Arrow) or hub id owner/name"
_LABEL_NAMES = "how labels 0, 1 and so on read, empty to show as stored"
_TASK = "what the prompts speak of [classification or NLI or summary or one-sentence summary]"
_TEXT_COLUMNS = "column of the text, two for sentence pairs"
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
class OwnTarget(OwnSettings):
    """A local model to test."""

    target_model: str = setting("", "model to test: folder, hub id, GGUF file, empty to skip")
    target_revision: str = setting("", "its commit")
    target_dtype: str = setting(
        "float32",
        "of its arithmetic; native: bfloat16 where the processor has it, else float32 "
        "[float32 or bfloat16 or float16 or native]",
    )
    bos: str = setting("", bos.MEANING)
    device_map: str = setting("", '"auto" spreads a large model over the GPUs')
    safetensors_only: bool = setting(True, "false also reads weights in the older PyTorch format")
    engine: str = setting("local", "ray: on a cluster, see docs/cluster.md [local or ray]")
    ray_address: str = setting("", 'its address, "auto" for the one of this machine')

    @property
    def arithmetic(self) -> str:
        """``target_dtype`` with "native" as it is on this machine."""
        if self.target_dtype != NATIVE:
            return self.target_dtype
        import torch

        from contamination.lab.training import has_native_bfloat16

        device = "cuda" if torch.cuda.is_available() else "cpu"
        return "bfloat16" if has_native_bfloat16(device) else "float32"

    def load(self, name: str = "", device: str | None = None) -> CausalLM:
        """The model to test, or another one in the same way; errors as ``load_causal_lm``."""
        from contamination.models import engine

        name = name or self.target_model
        return engine.load(
            name,
            (self.target_revision or None) if name == self.target_model else None,
            dtype=self.arithmetic,
            device=device,
            device_map=self.device_map or None,
            safetensors_only=self.safetensors_only,
            bos=bos.wanted(self.bos),
            engine=self.engine,
            ray_address=self.ray_address,
        )


@dataclass(frozen=True)
class Paid(OwnSettings):
    """A model behind an address, and what it may cost."""

    base_url: str = setting(
        "", "OpenAI-compatible address up to /v1, empty for local models [address]"
    )
    key_variable: str = setting(KEY, "NAME of the variable with its key, empty for none [variable]")
    prices: list[float] = setting(
        [], "per million tokens: model, perturber, judge [0 or more, 0 to 6 values]"
    )
    price_date: str = setting("", "day on which you read the prices, YYYY-MM-DD")
    cost_cap: float = setting(0.0, "most it may cost, earlier runs too, 0 for none [0 or more]")
    limit_option: str = setting(
        "max_tokens", "as the endpoint calls it [max_tokens or max_completion_tokens]"
    )
    has_temperature: bool = setting(True, "false for models that refuse a temperature")

    def sent(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a paper (temperature, max_tokens) as the endpoint takes them."""
        options = {self.limit_option if k == "max_tokens" else k: v for k, v in options.items()}
        if not self.has_temperature:
            del options["temperature"]
        return options


@dataclass(frozen=True)
class Perturber(OwnSettings):
    """Who writes the options of a quiz, and how long its answer may be."""

    perturber_model: str = setting("", "chat model that writes the quiz's options, empty for none")
    perturber_base_url: str = setting("", "its address [address]")
    perturber_key_variable: str = setting(KEY, KEY_NAME)
    answer_tokens: int = setting(1, "most tokens of a quiz's answer, 1 in the paper [1 to 100000]")


@dataclass(frozen=True)
class Judge(OwnSettings):
    """How long completions may be, and who judges them."""

    completion_tokens: int = setting(
        500, "most tokens of a completion, 500 in the paper [1 to 100000]"
    )
    judge_model: str = setting("", "chat model that judges completions, empty for the rule judge")
    judge_base_url: str = setting("", "its address [address]")
    judge_key_variable: str = setting(KEY, KEY_NAME)


@dataclass(frozen=True)
class Partition(OwnSettings):
    """A partition that prompts name."""

    dataset: str = setting("", _DATASET)
    dataset_split: str = setting("", "split of a hub dataset")
    dataset_revision: str = setting("", "its commit")
    names: list[str] = setting([], "dataset and split as the prompts call them")
    label_names: list[str] = setting([], _LABEL_NAMES)
    dry_run: bool = setting(False, "only say what would be asked")


# Notebook 10


@dataclass(frozen=True)
class Audited(OwnSettings):
    """Who is audited, before its address."""

    names: list[str] = setting(
        [], "models at base_url, folders, hub ids, GGUF files [0 to 100 values, distinct]"
    )
    dtype: str = setting("float32", "of local models [float32 or bfloat16 or float16]")
    device: str = setting(
        "", "of local models, empty for the fastest there is [empty or cuda or mps or cpu]"
    )
    bos: str = setting("", bos.MEANING)
    reference_models: list[str] = setting([], "two or more clean models of the same base, for DICE")


@dataclass(frozen=True)
class Model(Judge, Perturber, Paid, Audited):
    """Parameter ``model`` of notebook 10: who is audited."""

    def load(self, name: str) -> CausalLM:
        """A local model of this audit; errors as ``load_causal_lm`` and ``device_named``."""
        from contamination.models.loading import device_named

        settings = OwnTarget(target_model=name, target_dtype=self.dtype, bos=self.bos)
        return settings.load(name, device_named(self.device))

    def check(self) -> None:
        """ValueError, in one line, if something does not fit."""
        if not self.names:
            raise ValueError("model names nothing to audit: fill in model, names")
        if self.base_url and any(name.startswith(LAB) for name in self.names):
            raise ValueError("models of the lab are local: leave base_url empty")
        if self.base_url and self.reference_models:
            raise ValueError("reference_models need a local model: DICE reads hidden states")
        if self.base_url and self.device:
            raise ValueError("device is where a local model runs: leave it or base_url empty")


@dataclass(frozen=True)
class Data(OwnSettings):
    """Parameter ``data`` of notebook 10: what the model may have read."""

    dataset: str = setting("", _DATASET)
    split: str = setting("", "split of a hub dataset")
    revision: str = setting("", "its commit")
    comparison_split: str = setting("", "split of the comparison, where that is a hub dataset")
    names: list[str] = setting([], "dataset and split for prompts, by default file name and test")
    other_names: list[str] = setting(["Harbour Notes", "train"], "wrong ones, for the placebos")
    task: str = setting("classification", _TASK)
    column_names: list[str] = setting([], "names of all columns of a CSV without a header")
    text_columns: list[str] = setting(
        ["text"], f'{_TEXT_COLUMNS}; "a.b" is a field, "a,b" joins two'
    )
    label_column: str = setting("label", "column of the label, empty for none")
    label_names: list[str] = setting([], _LABEL_NAMES)

    @property
    def called(self) -> tuple[str, str]:
        """Dataset and split as prompts say them."""
        stem = Path(self.dataset.removesuffix(".gz")).stem
        return tuple(self.names) or (stem, self.split or "test")

    def check(self) -> None:
        """ValueError, in one line, if something does not fit."""
        if not self.dataset:
            raise ValueError("data names no dataset: fill in data, dataset")
        if len(self.text_columns) != 1 + (self.task == "NLI"):
            raise ValueError(f"{self.task} needs {1 + (self.task == 'NLI')} text_columns")
        if self.label_names and not self.label_column:
            raise ValueError("label_names needs label_column")
        if (self.names and len(self.names) != 2) or len(self.other_names) != 2:
            raise ValueError("names and other_names hold a dataset and a split each")
        if any(a == b for a, b in zip(self.called, self.other_names, strict=True)):
            raise ValueError("other_names must both differ from names: they are the wrong ones")


# Notebooks 02 to 05


@dataclass(frozen=True)
class Quiz(Perturber, Partition, Paid, OwnTarget):
    """One's own model and data in notebook 02."""

    second_model: str = setting("", "another snapshot at the same place, empty for none")
    respondent: str = setting(CHAT, "chat at an address, others local [chat or instruct or base]")
    options_file: str = setting("", "options written earlier, in place of dataset and perturber")
    columns: list[str] = setting(["text", "label"], "columns of an instance, in order")
    label_columns: list[str] = setting(["label"], "of these, never perturbed")
    n_instances: int = setting(100, "instances to draw, 100 in the paper [1 to 100000]")
    tuning_epochs: int = setting(0, "epochs that contaminate target_model, 0 for none [0 to 100]")
    n_tuning_instances: int = setting(1000, "instances read, the quizzed ones first [1 or more]")
    tuning_price: float = setting(0.0, "per million training tokens, on price_date [0 or more]")

    @property
    def models(self) -> list[str]:
        """Who takes the quizzes."""
        return [name for name in (self.target_model, self.second_model) if name]

    def check(self) -> None:
        """ValueError, in one line, if something about the models does not fit."""
        if not self.models:
            return
        if (self.respondent == CHAT) != bool(self.base_url):
            raise ValueError(
                'respondent "chat" needs base_url, and a local model ("instruct", "base") has none'
            )
        if self.second_model == self.target_model:
            raise ValueError("second_model is target_model: name another one, or none")


@dataclass(frozen=True)
class Replication(Judge, Partition, Paid, OwnTarget):
    """One's own model and data in notebook 03."""

    prompt_form: str = setting("instruct", "of Table 3, or for base models [instruct or continue]")
    other_names: list[str] = setting([], "dataset and split that the placebos name")
    task: str = setting("classification", _TASK)
    text_columns: list[str] = setting(["text"], _TEXT_COLUMNS)
    label_column: str = setting("label", "column of the label, empty for summaries")
    cut: str = setting("paper", "share: 40 to 70 percent of the words, as DCQ [paper or share]")


@dataclass(frozen=True)
class OwnPassages(OwnTarget):
    """One's own model and data in notebook 04."""

    reference_model: str = setting("", "smaller model of the same training data, empty for none")
    neighbor_model: str = setting("", "fill-mask model that writes neighbours, empty for none")
    dataset: str = setting("", "labelled file (JSONL, CSV, Parquet) or hub id")
    dataset_splits: list[str] = setting([], "splits of a hub dataset, none for a file")
    text_column: str = setting("input", "column with the passages")
    label_column: str = setting("label", "column with 1 for members, 0 for non-members")
    non_member_dataset: str = setting("", "non-members, where dataset holds members alone")
    dataset_revision: str = setting("", "commit of a hub dataset")
    max_samples: int = setting(0, "passages to score of each split, 0 means all [0 or more]")


@dataclass(frozen=True)
class Dice(OwnTarget):
    """One's own models and data in notebook 05."""

    reference_models: list[str] = setting([], "clean models of the same base, two or more")
    dataset: str = setting("", "questions to ask target_model, a file or hub id")
    question_column: str = setting("question", "column of the questions")
    answer_column: str = setting("answer", "column of the answers")
    own_base: str = setting("", "base of pairs of clean and contaminated models, the paper's study")
    checkpoints: dict = setting({}, "the pairs where they are trained: condition to folders or ids")
    own_vanilla: str = setting(
        "", "to train them: instruction data, a file or hub id; docstrings: the lab's"
    )
    vanilla_columns: list[str] = setting(["question", "response"], "its columns")
    own_conditions: list[str] = setting(["GSM-i x5"], "to train: set of problems and its copies")
    n_contaminated: int = setting(2, "models of each of these; a verdict wants 5 [1 to 100]")
    n_references: int = setting(3, "clean models that are trained; likewise [1 to 100]")
    own_rows: int = setting(25000, "rows of a mixture [1 or more]")
    own_learning_rate: float = setting(1.0e-5, "of its fine-tuning [above 0 to 1]")
    own_batch_size: int = setting(1, "rows per step of its fine-tuning [1 to 1000]")
    lora: bool = setting(False, "adapters (peft) instead of all weights")
    problem_sets: dict = setting({}, "set to its file or hub id, question and answer column, split")
    n_questions: int = setting(0, "problems of each set, 0 for all [0 or more]")
    answer_tokens: int = setting(256, "longest completion, in tokens [1 to 100000]")
    paper_model: str = setting("", "column of Table 1 beside [empty or LLaMA2-7B or Phi2-2.7B]")
