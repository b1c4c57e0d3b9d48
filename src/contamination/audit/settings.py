"""What an audit is told, checked once: ``Settings`` of notebook 10 and ``contamination audit``.

The case studies (``cases.settings``) have the block ``model`` too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import eq
from pathlib import Path
from typing import Any

from contamination.core.parameters import OwnSettings, setting
from contamination.dcq.quizzes import PERTURBER_OPTIONS
from contamination.models import source
from contamination.models.exchange import Endpoint, Price
from contamination.replication.instructions import JUDGE_OPTIONS

# Rows and comparison rows that come with the package; lab:contaminated was trained on the first.
SAMPLE, UNSEEN = "params/audit/sample.jsonl", "params/audit/unseen.jsonl"
LAB = "lab:"
CONTAMINATED, CLEAN = "lab:contaminated", "lab:clean"
NATIVE = "native"
MODEL, PERTURBER, JUDGE = "model", "perturber", "judge"  # who is asked, each at its price
KEY = "OPENAI_API_KEY"
# What settings of several classes mean
KEY_NAME = "NAME of the variable with its key [variable]"
# Blocks that only these methods read, and fields of ``model`` for one kind of access.
USED_BY = {"dcq": ("dcq", "ranking"), "replication": ("replication",)}
USED_BY |= {"min_k": ("min_k",)}
OF_LOCAL = ("revision", "dtype", "device", "device_map", "safetensors_only", "bos")
OF_SERVED = ("key_variable", "limit_option", "has_temperature")
OF_PAID = ("prices", "price_date", "cost_cap")


def check_name(name: str) -> str:
    """As ``source.check_name``, of a model of the lab, too: "lab:clean:2" is one more clean one."""
    is_another = re.fullmatch(rf"{CLEAN}:\d+", name)
    return source.check_name(CLEAN if is_another else name, (CONTAMINATED, CLEAN))


class Model(OwnSettings):
    """Block ``model``: which models, how local ones are loaded, and what served ones may cost."""

    names: list[str] = setting(
        [], "at base_url, folders, hub ids, GGUF [0 to 100 values, distinct]"
    )
    revision: str = setting("", "commit of the first one on the hub")
    dtype: str = setting(
        "float32", "native: bfloat16 where possible [float32 or bfloat16 or float16 or native]"
    )
    device: str = setting("", "empty for the fastest available [empty or cuda or mps or cpu]")
    device_map: str = setting("", '"auto" spreads a large model over the GPUs')
    safetensors_only: bool = setting(True, "false also reads weights in the older PyTorch format")
    bos: str = setting("", "beginning of a text, empty: as declared [first or none or empty]")
    base_url: str = setting("", "OpenAI-compatible, up to /v1; empty for local models [address]")
    key_variable: str = setting(KEY, "NAME of the variable with its key, empty for none [variable]")
    limit_option: str = setting(
        "max_tokens", "name of the token limit [max_tokens or max_completion_tokens]"
    )
    has_temperature: bool = setting(True, "false for models that refuse a temperature")
    prices: list[float] = setting(
        [], "per million tokens: model, then perturber and judge [0 or more, 0 to 6 values]"
    )
    price_date: str = setting("", "day on which you read the prices, YYYY-MM-DD")
    cost_cap: float = setting(0.0, "with earlier runs at most; 0: no cap [0 or more]")
    log_probs: str = setting("", "in place of a model: JSONL of every row's log-probabilities")

    @property
    def first(self) -> str:
        """The first model, "" where none is named."""
        return next(iter(self.names), "")

    def name_of(self, name: str) -> str:
        """What tables call a model: its name, and no path of the machine."""
        is_path = not self.base_url and Path(name).is_absolute()
        return Path(name).name if is_path else name

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
        if self.base_url and any(name.startswith(LAB) for name in self.names):
            raise ValueError("models of the lab are local: leave base_url empty")
        if self.log_probs and (self.base_url or len(self.names) > 1):
            raise ValueError("log_probs are those of one model: name one, and no base_url")


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
        "decides the prompts "
        "[classification or NLI or summary or one-sentence summary or code or question]",
    )
    column_names: list[str] = setting([], "names of all columns of a CSV without a header")
    text_columns: list[str] = setting(
        ["text"], 'of the text, two for NLI; "a.b" is a field, "a,b" joins two'
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
            raise ValueError("task NLI needs 2 text_columns: one for premise, one for hypothesis")
        if self.label_names and not self.label_column:
            raise ValueError("label_names are those of a label column: fill in label_column")
        if {len(self.names), len(self.other_names)} - {0, 2}:
            raise ValueError("names and other_names must each list a dataset and a split")
        if any(map(eq, self.called, self.wrongly_called)):
            raise ValueError("other_names are wrong names: choose two that both differ from names")
        if self.split and self.splits:
            raise ValueError("split names one split and splits several: leave one empty")


class Dcq(OwnSettings):
    """Block ``dcq``: who writes the quizzes, how they are answered, and Appendix E's training."""

    perturber_model: str = setting("", "chat model that writes the options, empty for a rule")
    perturber_base_url: str = setting("", "its address [address]")
    perturber_key_variable: str = setting(KEY, KEY_NAME)
    second_perturbation: bool = setting(False, "also the quiz without any original, Figure 2")
    layout: str = setting("paper", "prompts as printed or in the authors' code [paper or released]")
    answer_tokens: int = setting(1, "longest answer, in tokens; 1 in the paper [1 to 100000]")
    trained_share_pct: float = setting(
        0.0, "share of quizzed rows, from the first, it was trained on; 0: not known [0 to 100]"
    )
    tuning_epochs: int = setting(0, "epochs that contaminate a first model, 0: none [0 to 100]")
    n_tuning_instances: int = setting(1000, "instances read, the quizzed ones first [1 or more]")
    tuning_price: float = setting(0.0, "per million training tokens, on price_date [0 or more]")


class Replication(OwnSettings):
    """Block ``replication``: how texts are cut and completed, and who judges completions."""

    cut: str = setting(
        "paper", "40 to 70 % of the words (share) or of the sentences [paper or share or released]"
    )
    layout: str = setting("paper", "as in dcq, also of the judge's prompt [paper or released]")
    guided_only: bool = setting(False, "ask the guided instruction alone, as the quiz paper does")
    completion_tokens: int = setting(500, "longest completion; 500 in the paper [1 to 100000]")
    judge_model: str = setting("", "chat model that judges completions, empty for the rule judge")
    judge_base_url: str = setting("", "its address [address]")
    judge_key_variable: str = setting(KEY, KEY_NAME)
    human_labels: str = setting("", "CSV of a person's labels of completions: index, label")
    text_rule_threshold: float = setting(0.82, "ROUGE-L of a near-exact match [0 to 1]")
    bleurt_checkpoint: str = setting("", "folder or hub id of a BLEURT scorer, empty for none")
    bleurt_joining: str = setting("paper", "code: joins more pieces [paper or code]")
    first_instances: bool = setting(False, "also ask for the first instances: Did-ChatGPT-Cheat?")


class MinK(OwnSettings):
    """Block ``min_k``: the paper's other scores next to Min-k% Prob."""

    k_percent: float = setting(20.0, "share of least likely tokens averaged [above 0 to 100]")
    form: str = setting("text", "instance: with column names and label [text or instance]")
    all_methods: bool = setting(False, "also the paper's other scores, in audit_min_k.csv")
    reference_model: str = setting("", "smaller model with the same training data, empty for none")
    neighbor_model: str = setting("", "fill-mask model that writes neighbours, empty for none")
    n_neighbors: int = setting(25, "neighbours of a passage [1 to 100]")


class Settings(OwnSettings):
    """Everything that notebook 10 and the command line are told of a model and its data."""

    model: Model = setting(Model(), "who")
    data: Data = setting(Data(), "what")
    comparison: str = setting("", "rows that the models cannot have seen, empty for none")
    methods: list[str] = setting(
        [], "empty: all [dcq or replication or ranking or min_k, 0 to 4 values, distinct]"
    )
    dcq: Dcq = setting(Dcq(), "options of the quiz")
    replication: Replication = setting(Replication(), "options of the completions")
    min_k: MinK = setting(MinK(), "options of the scores")
    n_instances: int = setting(60, "rows quizzed and completed [4 to 10000, times copies to 1e6]")
    n_passages: int = setting(400, "rows of each kind that Min-k% Prob scores [4 to 1e6]")
    power: bool = setting(False, "also train copies of a local model on comparison rows")
    false_discovery_rate: float = setting(0.1, "false share of a list, on average [0.01 to 0.5]")
    n_resamples: int = setting(2000, "bootstrap resamples of the papers' intervals [10 to 1e5]")
    dry_run: bool = setting(False, "only say what would be asked and what it may cost")
    world_seed: int = setting(0, "seed of the lab's texts, as in notebook 01 [0 to 1e9]")
    n_background_tokens: int = setting(1_000_000, "of the lab's base model [1000 to 2e7]")
    copies: int = setting(16, "how often lab:contaminated reads each of two forms [1 to 1000]")
    seed: int = setting(0, "seed of samples, cuts and options [0 to 1e9]")

    # Who is asked, and what it may cost

    @property
    def endpoints(self) -> list[Endpoint]:
        """The audited models behind an address."""
        url, key = self.model.base_url, self.model.key_variable or None
        return [Endpoint(url, name, key) for name in self.model.names] if url else []

    @property
    def local(self) -> list[str]:
        """Folders or hub ids of the audited models that are loaded here."""
        return [] if self.model.base_url or self.model.log_probs else self.model.names

    @property
    def helpers(self) -> dict[str, Endpoint]:
        """Endpoints of perturber and judge, as far as they are named."""
        roles = ((PERTURBER, self.dcq, PERTURBER_OPTIONS), (JUDGE, self.replication, JUDGE_OPTIONS))
        found = {}
        for role, block, options in roles:
            parts = ("base_url", "model", "key_variable")
            url, name, key = (getattr(block, f"{role}_{part}") for part in parts)
            if url and not name:  # else a rule would take its place without a word
                raise ValueError(f"{role}_model is empty: fill in the model at {role}_base_url")
            if name and not url:
                raise ValueError(f"{role}_base_url is empty: fill in the address of {role}_model")
            if name:
                found[role] = Endpoint(url, name, key or None, self.model.sent(options))
        return found

    @property
    def prices(self) -> dict[str, Price | None]:
        """Of the tokens of model, perturber and judge; None where not given."""
        prices, date = self.model.prices, self.model.price_date
        if len(prices) not in (0, 2, 4, 6) or (prices and not date):
            raise ValueError(
                "prices must list an input and an output price of the model, then of perturber and "
                f"judge, with their price_date; got {len(prices)} and {date!r}"
            )
        pairs = [Price(*prices[n : n + 2], date=date) for n in range(0, len(prices), 2)]
        # Two prices more are the judge's where only a judge is named.
        helpers = self.helpers
        roles = [MODEL, *(one for one in (PERTURBER, JUDGE) if one in helpers or len(pairs) == 3)]
        found = dict.fromkeys((MODEL, PERTURBER, JUDGE)) | dict(zip(roles, pairs, strict=False))
        for role, helper in helpers.items():  # one model may do both
            is_same = helper.model in self.model.names and helper.base_url == self.model.base_url
            if found[role] is None and is_same:
                found[role] = found[MODEL]
        return found

    def paying(self, role: str) -> dict[str, Any]:
        """Keyword arguments of ``models.chat.answer_all``.

        The cap belongs to these models at their address, and all datasets share it.
        """
        run = " ".join(["audit", self.model.base_url, *self.model.names])
        return {"run": run, "price": self.prices[role], "cap": self.model.cost_cap or None}

    # What does not fit

    @property
    def unused(self) -> dict[str, str]:
        """Fields that were given and would change nothing, each with the reason."""
        model, found = self.model, {}
        for block, methods in USED_BY.items():
            if self.methods and not {*methods} & {*self.methods}:
                why = f"methods leaves out {' and '.join(methods)}"
                found |= {f"{block}: {name}": why for name in _given(getattr(self, block))}
        is_paid = model.base_url or self.dcq.perturber_model or self.replication.judge_model
        nobody = "nobody is paid: base_url, perturber_model and judge_model are empty"
        of_rows = [name for name in _given(self.min_k) if name != "k_percent"]
        for is_unused, block, names, why in (
            (model.base_url or model.log_probs, "model", OF_LOCAL, "it is for a local model"),
            (not model.base_url, "model", OF_SERVED, "it is for a model at base_url"),
            (model.log_probs, "min_k", of_rows, "log_probs are of the texts alone"),
            (not is_paid, "model", OF_PAID, nobody),
        ):
            if is_unused:
                given = _given(getattr(self, block))
                found |= {f"{block}: {name}": why for name in names if name in given}
        return found

    def check(self) -> None:
        """ValueError, in one line, if something does not fit."""
        self.model.check()
        self.data.check()
        model, data = self.model, self.data
        for name, why in self.unused.items():
            raise ValueError(f"{name} would not be used, since {why}: leave it out")
        if self.power and not self.local:
            raise ValueError("power trains copies of a local model: leave it or base_url empty")
        if data.member_column and self.comparison:
            raise ValueError("member_column marks the comparison rows: leave comparison empty")
        if self.comparison == UNSEEN and data.dataset != SAMPLE:
            raise ValueError(
                f'comparison is "{UNSEEN}", which belongs to our sample: name rows of your own '
                'that the models cannot have seen, or set comparison to ""'
            )
        if data.splits and not (data.member_column or self.comparison):
            raise ValueError("splits need comparison rows: fill in member_column")
        called = [model.name_of(name) for name in model.names]
        if twice := sorted({name for name in called if called.count(name) > 1}):
            raise ValueError(
                f'two models would both be called "{twice[0]}" in the tables: give their folders '
                "different last names, or audit them one at a time"
            )
        _ = self.prices  # raises, too, where a helper is incomplete


def _given(block: OwnSettings) -> list[str]:
    """Names of a block's fields that are not at their defaults."""
    return list(block.model_dump(exclude_defaults=True))
