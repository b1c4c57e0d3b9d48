"""Training of the lab's models, and the cache of their checkpoints.

One function, :func:`train`: a recipe and its texts in, a folder out that
``AutoModelForCausalLM.from_pretrained`` (or ``AutoModelForMaskedLM`` for the
masked objective) and ``AutoTokenizer.from_pretrained`` read. The same recipe gives
the same bytes on processors of the same capability, at any number of threads, so
a cache may be shared: its folders are named by the recipe and by what stands
beside it (``lab.recipes.environment``), and what differs there is never mixed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from safetensors.numpy import load_file as load_arrays
from safetensors.torch import load_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from contamination.core import caches, storage
from contamination.lab.packing import IGNORED, Batch, training_stream
from contamination.lab.recipes import Recipe, TrainingTexts, environment, recipe_hash
from contamination.lab.tokenizer import tokenizer_files
from contamination.models.loading import default_device

BETAS = (0.9, 0.95)
CLIP_NORM = 1.0
FINAL_SHARE = 0.1
MASKED_SHARE = 0.15
RECIPE_FILE = "recipe.json"
LOSSES_FILE = "losses.safetensors"


def train(recipe: Recipe, texts: TrainingTexts, parent: Path | None = None) -> Path:
    """The folder of the recipe's checkpoint, trained now or taken from the cache.

    A folder appears under its final name only when it is complete. Of two processes that want
    the same model one trains it and the other waits.

    Args:
        texts: those that :func:`contamination.lab.recipes.recipe_for` made the recipe for.
        parent: folder of the checkpoint that ``recipe.parent`` names.

    Returns:
        A folder with ``model.safetensors``, ``config.json``, the tokenizer, ``recipe.json`` (read
        it with :func:`describe`) and the loss of every step (:func:`losses_of`).

    Raises:
        ValueError: if the texts or the parent are not those of the recipe, a dose text is
            longer than the context, or bfloat16 is not native here.
    """
    named = {name: getattr(recipe, name) for name in texts.hashes()}
    if named != texts.hashes():
        raise ValueError("these are not the recipe's texts: build it with recipe_for(texts, ...)")
    before = {} if parent is None else describe(parent)
    parent_hash = before.get("recipe_hash")
    if parent_hash != recipe.parent:
        raise ValueError(f"recipe continues {recipe.parent}, but the parent given is {parent_hash}")
    device = default_device()
    if recipe.dtype == "bfloat16" and not has_native_bfloat16(device):
        raise ValueError("bfloat16 is not native on this processor: use dtype float32")
    identity = recipe_hash(recipe)
    here = environment(device)
    # A parent may come from elsewhere.
    environments = [*(one for one in before.get("environments", []) if one != here), here]
    name = f"{identity[:24]}-{storage.hash_of(environments)[:8]}"
    folder = storage.cache_folder("lab", "models") / name

    def make() -> None:
        stream = training_stream(recipe, texts)
        with _reproducible(device):
            model = build_model(recipe, texts.tokenizer)
            if parent is not None:
                _load_parent(model, parent)
            losses = fit(model.to(device), stream.batches, recipe, texts.tokenizer.mask_token_id)
        summary = {
            "recipe_hash": identity,
            "recipe": recipe.as_values(),
            "environments": environments,
            "n_parameters": sum(weight.numel() for weight in model.parameters()),
            "n_steps": len(stream.batches),
            "n_tokens": stream.n_tokens,
            "n_dose_tokens": stream.n_dose_tokens,
        }
        _publish(folder, model, texts.tokenizer, summary, losses)

    return caches.cached("lab models", folder, make)


def losses_of(folder: Path) -> np.ndarray:
    """Mean loss of every step of a training, nats per learned token, shape (n_steps,)."""
    caches.refuse_damaged(Path(folder))
    return load_arrays(Path(folder) / LOSSES_FILE)["loss"].astype(float)


def first_losses(recipe: Recipe, texts: TrainingTexts, n_steps: int) -> np.ndarray:
    """Losses of the first steps of a training from scratch, as in :func:`losses_of`.

    Nothing is read from the cache or written to it.
    """
    device = default_device()
    batches = training_stream(recipe, texts).batches
    with _reproducible(device):
        model = build_model(recipe, texts.tokenizer).to(device)
        mask = texts.tokenizer.mask_token_id
        losses = fit(model, batches[:n_steps], recipe, mask, len(batches))
    return np.array(losses)


def describe(folder: Path) -> dict[str, Any]:
    """What a checkpoint is.

    Keys ``recipe_hash``, ``recipe``, ``environments`` (where it was trained, its parents'
    first where they differ), ``n_parameters``, ``n_steps``, ``n_tokens`` (read in this
    training, without its parent's), ``n_dose_tokens`` (of these, of doses), ``share_pct``
    (doses, in percent).

    Raises:
        FileNotFoundError: if the folder is not a checkpoint.
        ValueError: if it is damaged.
    """
    path = Path(folder) / RECIPE_FILE
    caches.refuse_damaged(path.parent)
    if not path.exists():
        raise FileNotFoundError(
            f"{Path(folder).name} is not a lab checkpoint: {RECIPE_FILE} is missing"
        )
    summary = json.loads(path.read_text())
    summary["share_pct"] = 100 * summary["n_dose_tokens"] / summary["n_tokens"]
    return summary


def build_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """The untrained model of a recipe, its weights drawn with the recipe's seed, on the CPU."""
    shape = {
        "vocab_size": recipe.vocabulary,
        "hidden_size": recipe.width,
        "intermediate_size": 3 * recipe.width,
        "num_hidden_layers": recipe.n_layers,
        "num_attention_heads": recipe.n_heads,
        "max_position_embeddings": recipe.context,
        "tie_word_embeddings": True,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        if recipe.objective == "causal":
            return LlamaForCausalLM(LlamaConfig(num_key_value_heads=recipe.n_heads, **shape))
        no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        return BertForMaskedLM(BertConfig(type_vocab_size=1, **no_dropout, **shape))


def fit(
    model: PreTrainedModel,
    batches: list[Batch],
    recipe: Recipe,
    mask_token_id: int | None = None,
    n_steps: int | None = None,
) -> list[float]:
    """Train a model in place, one AdamW step for each batch; mean losses, nats per learned token.

    The output head runs only where something is learned, which is what makes responses and
    masked tokens cheap. ``n_steps`` are those of the whole training, if the batches are only its
    first ones: the learning rate depends on it.
    """
    n_steps = n_steps or len(batches)
    device = model.device
    optimizer = torch.optim.AdamW(
        [
            {"params": [weight for weight in model.parameters() if weight.ndim > 1]},
            {
                "params": [weight for weight in model.parameters() if weight.ndim <= 1],
                "weight_decay": 0.0,
            },
        ],
        betas=BETAS,
        weight_decay=recipe.weight_decay,
        maximize=recipe.ascent,
        fused=True,
    )
    masker = torch.Generator().manual_seed(recipe.seed)
    precision = torch.autocast(
        device.type, dtype=torch.bfloat16, enabled=recipe.dtype == "bfloat16"
    )
    model.train()
    losses = []
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step, n_steps)
        inputs, labels = torch.from_numpy(batch.input_ids), torch.from_numpy(batch.labels)
        with precision:
            if recipe.objective == "causal":
                loss = _causal_loss(model, inputs.to(device), labels.to(device))
            else:
                assert mask_token_id is not None
                loss = _masked_loss(model, inputs, labels, mask_token_id, masker)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def learning_rate(recipe: Recipe, step: int, n_steps: int) -> float:
    """Learning rate of a step: a linear rise, then the recipe's schedule."""
    n_warmup = max(1, round(recipe.warmup_share * n_steps))
    if step < n_warmup:
        return recipe.learning_rate * (step + 1) / n_warmup
    progress = (step - n_warmup) / max(1, n_steps - n_warmup)
    if recipe.schedule == "linear":
        return recipe.learning_rate * (1 - progress)
    if recipe.schedule == "cosine":
        falling = (1 + math.cos(math.pi * progress)) / 2
        return recipe.learning_rate * (FINAL_SHARE + (1 - FINAL_SHARE) * falling)
    return recipe.learning_rate


def has_native_bfloat16(device: str) -> bool:
    """Whether the processor multiplies bfloat16 matrices itself; emulation is ten times slower."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, name)() for name in checks if hasattr(torch.cpu, name))


def _causal_loss(
    model: PreTrainedModel, inputs: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    # A mask of ones is recognised and dropped; without one the library builds its own.
    seen = torch.ones_like(inputs)
    output = model.base_model(input_ids=inputs, attention_mask=seen, use_cache=False)
    targets = labels[:, 1:].reshape(-1)
    learned = (targets != IGNORED).nonzero().squeeze(1)
    hidden = output.last_hidden_state[:, :-1]
    states = hidden.reshape(-1, hidden.shape[-1])[learned]
    logits = model.get_output_embeddings()(states)
    return functional.cross_entropy(logits.float(), targets[learned])


def _masked_loss(
    model: PreTrainedModel,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    mask_token_id: int,
    masker: torch.Generator,
) -> torch.Tensor:
    """BERT's objective: of the masked tokens 80 % are hidden, 10 % replaced, 10 % kept."""
    can_learn = labels != IGNORED
    chosen = can_learn & (torch.rand(inputs.shape, generator=masker) < MASKED_SHARE)
    # A step without any masked token has no loss.
    chosen.view(-1)[can_learn.view(-1).nonzero()[0]] = True
    kind = torch.rand(inputs.shape, generator=masker)
    random = torch.randint(model.config.vocab_size, inputs.shape, generator=masker)
    corrupted = torch.where(chosen & (kind < 0.9), random, inputs)
    corrupted = corrupted.masked_fill(chosen & (kind < 0.8), mask_token_id)
    attention = (inputs != model.config.pad_token_id).long()
    hidden = model.bert(
        input_ids=corrupted.to(model.device), attention_mask=attention.to(model.device)
    ).last_hidden_state
    logits = model.cls(hidden[chosen.to(model.device)])
    return functional.cross_entropy(logits.float(), labels[chosen].to(model.device))


@contextlib.contextmanager
def _reproducible(device: str) -> Iterator[None]:
    """On a GPU, deterministic kernels; the CPU's are so already."""
    if device == "cpu":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def _load_parent(model: PreTrainedModel, parent: Path) -> None:
    weights = load_file(parent / "model.safetensors")
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    if shapes != {name: tuple(weight.shape) for name, weight in model.named_parameters()}:
        raise ValueError("the parent has another architecture than the recipe")
    model.load_state_dict(weights, strict=False)


def _publish(
    folder: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    summary: dict[str, Any],
    losses: list[float],
) -> None:
    """Write a checkpoint, which appears whole or not at all."""
    weights = {name: weight.detach().cpu().numpy() for name, weight in model.named_parameters()}
    model.config.architectures = [type(model).__name__]
    with caches.atomic_folder(folder) as staged:
        storage.write_safetensors(staged / "model.safetensors", weights, {"format": "pt"})
        steps = np.array(losses, dtype=np.float32)
        storage.write_safetensors(staged / LOSSES_FILE, {"loss": steps})
        storage.write_text(staged / "config.json", model.config.to_json_string())
        for name, value in tokenizer_files(tokenizer).items():
            storage.write_json(staged / name, value)
        storage.write_json(staged / RECIPE_FILE, summary)
