"""Datasets of the Hugging Face hub, each at a commit that is resolved and recorded."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contamination.core import storage
from contamination.core.keys import reason


def file(name: str, path: str, revision: str) -> Path:
    """Path of one file of a dataset; FileNotFoundError if there is none or the hub is away."""
    from huggingface_hub import hf_hub_download

    at = _resolved(name, revision)
    try:
        local = Path(hf_hub_download(name, path, repo_type="dataset", revision=at))
    except (OSError, ValueError) as error:  # huggingface_hub's errors derive from these two
        raise FileNotFoundError(
            f'file "{path}" of dataset "{name}": {reason(error)}: check the path and the '
            "connection (a gated dataset needs HF_TOKEN)"
        ) from error
    storage.record("input", name=f"hub:{name}/{path}", sha256=storage.sha256_of_file(local))
    return local


def columns(source: str, split: str, revision: str) -> dict[str, Sequence[Any]]:
    """Columns of a split of "owner/name" or "owner/name:configuration".

    FileNotFoundError if there is no such dataset or the hub is away, ValueError for what it holds.
    """
    import datasets

    if not split:
        raise ValueError(f'dataset "{source}": name a split, such as split="test"')
    name, _, configuration = source.partition(":")
    where = f'dataset "{source}", split "{split}"'
    at = _resolved(name, revision)
    # Its count of downloads tells a third host which dataset is loaded.
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    try:
        dataset = datasets.load_dataset(name, configuration or None, split=split, revision=at)
    except Exception as error:  # its own classes, pyarrow's and the hub's: no common base
        kind = FileNotFoundError if isinstance(error, OSError) else ValueError
        raise kind(
            f"{where}: {reason(error)}: check the connection (a gated dataset needs HF_TOKEN, a "
            'configuration is named as "owner/name:configuration")'
        ) from error
    # Without a connection the library falls back on whatever revision it loaded last.
    loaded = set(re.findall(r"@([0-9a-f]{40})/", " ".join(dataset.info.download_checksums or ())))
    if loaded and at not in loaded:
        raise ValueError(
            f"{where}: the local cache holds another commit than {at}: connect to load it"
        )
    storage.record("input", name=f"hub:{source}:{split}", sha256=f"commit:{at}")
    return dataset.to_dict()


def _resolved(name: str, revision: str) -> str:
    at = commit(name, revision)
    if at != revision:
        warnings.warn(
            f'dataset "{name}" floats: {revision or "its default branch"} is commit {at} '
            f'today; pass revision="{at}" to pin it',
            stacklevel=4,
        )
    return at


def commit(name: str, revision: str = "") -> str:
    """The commit of a dataset at a revision, by default its branch; FileNotFoundError without."""
    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        return HfApi().dataset_info(name, revision=revision or None).sha
    except Exception as error:  # requests' or httpx's classes, as huggingface_hub's version has it
        where = f" at {revision}" if revision else ""
        said = "cannot be reached: check the connection, or name a file"
        if isinstance(error, RepositoryNotFoundError | RevisionNotFoundError):
            said = "knows no such dataset: check the spelling (a private one needs HF_TOKEN)"
        message = f'"{name}"{where} is not a file here, and the Hugging Face hub {said}'
        raise FileNotFoundError(message) from error
