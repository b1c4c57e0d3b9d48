"""Load a Hugging Face model and say exactly which one it is.

``models.source`` finds it by its name. What can change a score (weights, precision,
tokenizer and its first token, attention implementation, device, library versions)
is collected in ``identity``, the part of every cache key that belongs to the
model. The number of threads is not part of it: it changes no bit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from contamination.core import storage
from contamination.models.source import (
    FIRST,
    bos_of,
    check_parts,
    is_local,
    load_tokenizer,
    place,
    resolve_commit,
    resolve_path,
)

# A bar over weights that load in a moment (transformers 5) is noise in a notebook.
transformers.utils.logging.disable_progress_bar()

Arrays = Mapping[str, np.ndarray]
DTYPES = ("float32", "bfloat16", "float16")
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
        """Where the model takes its input."""
        return self.model.get_input_embeddings().weight.device

    @property
    def n_parameters(self) -> int:
        """The number of weights."""
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
    def n_embedded(self) -> int:
        """How many token ids have an embedding; a tokenizer may know more tokens."""
        return self.model.get_input_embeddings().weight.shape[0]

    @property
    def padding_id(self) -> int:
        """Token that fills a batch up; no score depends on it."""
        known = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        return next((one for one in known if one is not None and one < self.n_embedded), 0)


class CausalLM(LanguageModel):
    """A model that predicts each token from those before it."""

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


def default_device() -> str:
    """Where models are trained and run unless told otherwise."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def device_named(name: str = "") -> str:
    """The device of that name; the fastest kind there is for "": cuda, else mps, else cpu.

    Audits alone are offered mps: their scores are compared with scores of the same run, not with
    stored tables. ValueError for a device that this machine or this build of torch lacks.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    found = [*(kind for kind, is_there in there.items() if is_there), "cpu"]
    if name and name not in found:
        raise ValueError(
            f'there is no device "{name}": this machine and its torch have {", ".join(found)}'
        )
    return name or found[0]


def load_causal_lm(
    name_or_path: str | Path,
    revision: str | None = None,
    dtype: str = "float32",
    device: str | None = None,
    device_map: str | None = None,
    safetensors_only: bool = True,
    bos: bool | None = None,
) -> CausalLM:
    """Load a causal language model, in evaluation mode, from a folder or the Hugging Face hub.

    Decoding defaults that its repository ships (temperature, repetition penalty) are dropped:
    they would change completions unseen.

    Args:
        name_or_path: folder with ``config.json``, GGUF file, hub id, or ``source.PACKAGED``.
        revision: of a hub model. Anything but a commit is resolved to one, and warned about.
        dtype: one of ``DTYPES``.
        device: by default CUDA where there is one.
        device_map: as in transformers, for a model that one device cannot hold.
        safetensors_only: refuse weights in the older format, which are read as tensors alone.
        bos: whether texts begin with the beginning-of-sequence token; None does as the
            checkpoint declares, see ``models.source``, whatever the library does.

    Raises:
        OSError, ValueError: if there is no such model, if it is none that can be scored, or an
            argument is out of range.
    """
    how = {"dtype": dtype, "device": device, "device_map": device_map, "bos": bos}
    how["safetensors_only"] = safetensors_only
    lm = CausalLM(*_load_whole(AutoModelForCausalLM, name_or_path, revision, **how))
    stop = lm.model.generation_config.eos_token_id
    lm.model.generation_config = GenerationConfig(
        eos_token_id=lm.tokenizer.eos_token_id if stop is None else stop,
        bos_token_id=lm.tokenizer.bos_token_id,
    )
    if any(token_id >= lm.n_embedded for token_id in lm.begin):
        raise ValueError(
            f'model "{name_or_path}" has no embedding of its beginning-of-sequence token '
            f"{lm.tokenizer.bos_token}: pass bos=False"
        )
    lm.check_logits()
    return lm


def load_masked_lm(name_or_path: str | Path, **settings: Any) -> LanguageModel:
    """Load a fill-mask model; settings and errors as in ``load_causal_lm``."""
    lm = LanguageModel(*_load_whole(AutoModelForMaskedLM, name_or_path, **settings))
    if lm.tokenizer.mask_token_id is None:
        raise ValueError(f'model "{name_or_path}" has no mask token: name a fill-mask checkpoint')
    return lm


def load_sentence_encoder(name_or_path: str | Path, **settings: Any) -> LanguageModel:
    """Load a sentence encoder such as SimCSE, whose trained pooler gives a text's vector."""
    lm = LanguageModel(*_load_whole(AutoModel, name_or_path, **settings))
    if getattr(lm.model, "pooler", None) is None:
        raise ValueError(f'model "{name_or_path}" has no pooler: name a supervised SimCSE model')
    return lm


def _load_whole(
    auto_class: Any, name_or_path: str | Path, revision: str | None = None, **settings: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, dict[str, str]]:
    """A model that can be used here, with all of its weights."""
    name = resolve_path(name_or_path)
    if not Path(name).is_file():
        check_parts(name, revision, is_causal=auto_class is AutoModelForCausalLM)
    return load_pretrained(WholeModel(auto_class), name, revision, **settings)


class WholeModel(NamedTuple):
    """A class of transformers, whose models lack no weight: the library makes random ones."""

    auto_class: Any

    def from_pretrained(self, name: str, **settings: Any) -> PreTrainedModel:
        """The model; ValueError if a weight is missing."""
        model, report = self.auto_class.from_pretrained(name, output_loading_info=True, **settings)
        if lacking := sorted(report["missing_keys"]):
            raise ValueError(
                f'model "{name}" lacks {len(lacking)} of its weights, such as {lacking[0]}, which '
                "would be random: name a complete checkpoint"
            )
        return model


def load_pretrained(
    auto_class: Any,
    name_or_path: str | Path,
    revision: str | None = None,
    dtype: str = "float32",
    device: str | None = None,
    safetensors_only: bool = True,
    device_map: str | None = None,
    tokenizer_class: Any = None,
    bos: bool | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, dict[str, str]]:
    """A model of one of transformers' classes, its tokenizer, and what identifies both.

    As :func:`load_causal_lm`; ``tokenizer_class`` is of a tokenizer that transformers lacks.
    """
    if dtype not in DTYPES:
        raise ValueError(f'dtype must be one of {", ".join(DTYPES)}, got "{dtype}"')
    name = resolve_path(name_or_path)
    folder = Path(name)
    is_here = is_local(folder)
    commit = None if is_here else resolve_commit(name, revision)
    where, at = place(name, commit)
    model = auto_class.from_pretrained(
        where,
        **at,
        dtype=getattr(torch, dtype),
        device_map=device_map,
        use_safetensors=True if safetensors_only else None,
        trust_remote_code=False,
    ).eval()
    read = tokenizer_class.from_pretrained if tokenizer_class else load_tokenizer
    tokenizer = read(name, revision=commit)
    if device_map is None:
        model = model.to(device or default_device())
    lies_on = model.get_input_embeddings().weight.device
    identity = {
        "model": folder.name if is_here else name,
        "revision": commit or f"sha256:{_hash_of_folder(folder)}",
        "dtype": dtype,
        "tokenizer": _hash_of_tokenizer(tokenizer),
        "bos": bos_of(tokenizer, name, commit, bos),
        "attention": str(model.config._attn_implementation),
        "device": _device_name(lies_on),
        "torch": torch_version(lies_on.type),
        "transformers": transformers.__version__,
    }
    storage.record("model", **identity)
    return model, tokenizer, identity


def write_causal_lm(lm: CausalLM, folder: Path, model: PreTrainedModel | None = None) -> None:
    """Write a model (or another one with its tokenizer) into a folder, for ``load_causal_lm``."""
    (model or lm.model).save_pretrained(folder, safe_serialization=True)
    lm.tokenizer.save_pretrained(folder)
    # What texts of this model begin with, whatever the library has written.
    config = folder / "tokenizer_config.json"
    said = json.loads(config.read_text()) | {"add_bos_token": bool(lm.begin)}
    storage.write_json(config, said)


def torch_version(device: str) -> str:
    """Torch's version for the name of a cache; on a CPU all its builds compute the same."""
    version = torch.__version__
    return f"{version.partition('+')[0]}+cpu" if device == "cpu" else version


def _hash_of_folder(folder: Path) -> str:
    """Hash of what a local folder says about its model; where it lies does not matter."""
    if folder.is_file():
        return storage.sha256_once(folder)
    names = {"config.json", "generation_config.json"}
    files = sorted(
        path
        for path in folder.iterdir()
        if path.name in names or path.suffix in (".safetensors", ".bin", ".py")
    )
    return storage.hash_of({path.name: storage.sha256_once(path) for path in files})


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
