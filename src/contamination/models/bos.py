"""Whether a text begins with the beginning-of-sequence token: what the checkpoint itself declares.

Libraries disagree: transformers 4.57 puts the token before the texts of a GGUF
file that says ``add_bos_token = False``, transformers 5 does not, and the loss of
the same model differs by half a nat and more. So the files are read here.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

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
