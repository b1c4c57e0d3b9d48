"""Supervised fine-tuning on a mixture: lab models in seconds, hub models in full or by LoRA.

Both follow Tu et al., arXiv:2406.04197: AdamW, linear decay, one epoch, loss on
the response alone. Checkpoints are cached under everything that decides them,
so that an interrupted sweep goes on with the models it has trained.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional

from contamination.core import caches, storage
from contamination.dice.mixtures import Mixture, Row, skill_texts
from contamination.lab.packing import IGNORED
from contamination.lab.recipes import Dose, TrainingTexts, recipe_for
from contamination.lab.training import describe, train
from contamination.lab.world import World
from contamination.models.causal import CausalLM, load_causal_lm
from contamination.models.loading import DTYPES, write_causal_lm

WARMUP_SHARE = 0.05
CODE_SCHEMA = 1  # raise it when the hub training below changes what it makes
SKILL_LEARNING_RATE = 2e-3
BLOCKS_PER_STEP = 2  # many small steps, as batches of one row are at the paper's scale
LORA_RANK, LORA_ALPHA = 16, 32
FP32_BYTES = 4
TRAINED_BYTES = 4 * FP32_BYTES  # of a trained weight: itself, its gradient, AdamW's two moments


def skilled_model(lab: World, base: Path, n_rows: int, fact_copies: int, seed: int) -> Path:
    """The base of all DICE lab models: it has learned problems with operands up to 9.

    It reads ``n_rows`` problems once and each sum of two digits ``fact_copies`` times.
    """
    problems, facts = skill_texts(n_rows, seed)
    doses = (Dose(tuple(problems)), Dose(tuple(facts), fact_copies))
    return _train_lab(lab, base, doses, seed, SKILL_LEARNING_RATE, "cosine")


def fine_tune_lab(
    lab: World, base: Path, mixture: Mixture, seed: int, learning_rate: float
) -> Path:
    """A lab model fine-tuned on a mixture, packed into blocks; ``seed`` is that of the order."""
    doses = [Dose(mixture.vanilla)]
    if mixture.contamination:
        doses.append(Dose(mixture.contamination, mixture.copies))
    return _train_lab(lab, base, tuple(doses), seed, learning_rate, "linear")


def _train_lab(
    lab: World, base: Path, doses: tuple[Dose, ...], seed: int, learning_rate: float, schedule: str
) -> Path:
    texts = TrainingTexts((), doses, lab.tokenizer)
    parent = describe(base)
    shape = {name: parent["recipe"][name] for name in ("n_layers", "width", "n_heads", "seed")}
    steps = {"learning_rate": learning_rate, "schedule": schedule, "warmup_share": WARMUP_SHARE}
    order = {"order_seed": seed, "batch_size": BLOCKS_PER_STEP, "n_background_tokens": 0}
    recipe = recipe_for(texts, **order, **steps, parent=parent["recipe_hash"], **shape)
    return train(recipe, texts, parent=base)


# Hub models


@dataclass(frozen=True)
class Settings:
    """How a hub model is fine-tuned (the paper's for LLaMA2-7B), by AdamW, linear decay to zero.

    Attributes:
        lora: train low-rank adapters (peft) on every linear layer of the blocks
            and merge them, instead of all weights: less memory, another training
            than the paper's.
        max_tokens: longer rows are cut at their end.
        dtype: of the arithmetic: "float32", "bfloat16" or "float16"; weights, gradients and
            AdamW's moments are fp32 whatever it is, see :func:`fine_tune`.
        revision: commit of the base model.
        seed: seed of the order (and of the adapters).
        weight_decay: AdamW's; 0.01 is PyTorch's default, the released code has 0.0.
        warmup_share: steps of linear rise; the released code has none for Phi-2.
        bos: whether rows begin with the beginning-of-sequence token, None as the base declares.
    """

    learning_rate: float = 1e-5
    batch_size: int = 1
    lora: bool = False
    max_tokens: int = 1024
    dtype: str = "bfloat16"
    revision: str = ""
    seed: int = 42
    bos: bool | None = None
    weight_decay: float = 0.01
    warmup_share: float = WARMUP_SHARE

    def identity(self) -> dict[str, Any]:
        """What names a checkpoint. The ledgers name some that are older than the last two."""
        later = {"weight_decay": 0.01, "warmup_share": WARMUP_SHARE}
        told = dataclasses.asdict(self)
        return {name: value for name, value in told.items() if later.get(name) != value}


def fine_tune(base: str | Path, rows: Sequence[Row], settings: Settings) -> Path:
    """Folder of a hub model (or folder) fine-tuned on rows of prompt and response, or of its cache.

    Rows are read once each, in this order; adapters are merged. The weights that AdamW steps on,
    and the checkpoint, are fp32; ``dtype`` is that of the matrix products alone (autocast). At a
    rate of 1e-5 it must be so: a bfloat16 weight of 0.02 has no neighbour nearer than 1.2e-4, so
    a step rounds back to it.

    Raises:
        ValueError: if there is no row, one is empty, or there is no such dtype.
    """
    if not rows:
        raise ValueError("a fine-tuning needs at least one row")
    if settings.dtype not in DTYPES:
        raise ValueError(f'dtype must be one of {", ".join(DTYPES)}, got "{settings.dtype}"')
    # The dtype named here is part of the identity, and so of the checkpoint's name.
    lm = load_causal_lm(base, settings.revision or None, "float32", bos=settings.bos)
    identity: dict[str, Any] = {"identity": lm.identity, "rows": [list(row) for row in rows]}
    identity |= {"settings": settings.identity(), "code_schema": CODE_SCHEMA}
    folder = storage.cache_folder("dice", "models") / storage.hash_of(identity)[:24]

    def make() -> None:
        torch.manual_seed(settings.seed)
        model = lm.model
        if settings.lora:
            # Only this needs peft, and importing it takes seconds.
            from peft import LoraConfig, get_peft_model

            config = LoraConfig(r=LORA_RANK, lora_alpha=LORA_ALPHA, target_modules="all-linear")
            model = get_peft_model(model, config)
        _fit(model, [_tokens(lm, row, settings.max_tokens) for row in rows], settings)
        if settings.lora:
            model = model.merge_and_unload()
        with caches.atomic_folder(folder) as staged:
            write_causal_lm(lm, staged, model)

    return caches.cached("fine-tuned models", folder, make)


def memory_gb(n_parameters: int, n_trained: int) -> float:
    """Memory of weights, gradients and AdamW's moments, 1e9 bytes, without activations.

    >>> memory_gb(7_000_000_000, 7_000_000_000), memory_gb(7_000_000_000, 0)
    (112.0, 28.0)
    """
    return (FP32_BYTES * n_parameters + (TRAINED_BYTES - FP32_BYTES) * n_trained) / 1e9


def _tokens(lm: CausalLM, row: Row, max_tokens: int) -> tuple[list[int], list[int]]:
    """Input ids and labels of a row; prompt and beginning-of-sequence token are not learned."""
    prompt, response = (lm.tokenizer(part, add_special_tokens=False).input_ids for part in row)
    prompt = [*lm.begin, *prompt]
    if not response:
        raise ValueError(f"a row has an empty response: {row[0][:60]!r}")
    ids = [*prompt, *response, lm.tokenizer.eos_token_id][:max_tokens]
    return ids, [*[IGNORED] * len(prompt), *ids[len(prompt) :]][:max_tokens]


def _fit(
    model: torch.nn.Module, encoded: list[tuple[list[int], list[int]]], settings: Settings
) -> None:
    """One epoch of AdamW: linear rise over the warm-up, then linear decay to zero.

    Weights are stepped on in the dtype that they have; only products are of ``settings.dtype``.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        weights, lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    starts = range(0, len(encoded), settings.batch_size)
    n_warmup = max(1, round(settings.warmup_share * len(starts))) if settings.warmup_share else 0
    n_decay = max(1, len(starts) - n_warmup)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / max(1, n_warmup), (len(starts) - step) / n_decay)
    )
    device = next(model.parameters()).device
    arithmetic = getattr(torch, settings.dtype)
    # Small gradients vanish in fp16; where it is not enabled the scaler passes everything on.
    scaler = torch.amp.GradScaler(device.type, enabled=arithmetic == torch.float16)
    model.train()
    for start in starts:
        batch = encoded[start : start + settings.batch_size]
        length = max(len(ids) for ids, _ in batch)
        # Padding at the end of a row changes nothing: it is neither learned nor attended to.
        inputs, labels = (
            np.stack([np.pad(row, (0, length - len(row)), constant_values=fill) for row in rows])
            for rows, fill in zip(zip(*batch, strict=True), (0, IGNORED), strict=True)
        )
        input_ids = torch.from_numpy(inputs).to(device)
        seen = torch.ones_like(input_ids)  # as in CausalLM.states
        with torch.autocast(device.type, arithmetic, enabled=arithmetic != torch.float32):
            logits = model(input_ids=input_ids, attention_mask=seen, use_cache=False).logits
        targets = torch.from_numpy(labels[:, 1:].copy()).to(device)
        loss = functional.cross_entropy(
            logits[:, :-1].flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED
        )
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        schedule.step()
    model.eval()
