"""Local models, loaded as the block ``model`` of the settings says."""

from __future__ import annotations

from pathlib import Path

from contamination.audit.settings import NATIVE, Model
from contamination.lab.training import has_native_bfloat16
from contamination.models import local, source
from contamination.models.loading import device_named
from contamination.models.local import CausalLM


def load_model(settings: Model, name: str | Path = "") -> CausalLM:
    """The first model, or another one in the same way.

    Errors as ``models.local.load_causal_lm`` and ``models.loading.device_named``.
    """
    name = str(name) or settings.first
    # With a map it is the map that places it.
    device = None if settings.device_map and not settings.device else device_named(settings.device)
    return local.load_causal_lm(
        name,
        settings.revision_of(name),
        dtype=arithmetic(settings),
        device=device,
        device_map=settings.device_map or None,
        safetensors_only=settings.safetensors_only,
        bos=source.parse_bos(settings.bos),
    )


def arithmetic(settings: Model) -> str:
    """``dtype`` with "native" as it is on the device."""
    if settings.dtype != NATIVE:
        return settings.dtype
    return "bfloat16" if has_native_bfloat16(device_named(settings.device)) else "float32"
