"""Fine-tuning by low-rank adapters: seconds, memory, and whether the rows can be found afterwards.

A model with random weights is trained on 100 of 200 rows, eight times each, by
``dice.pool.fine_tune``, as an audit's pairs are. Afterwards PPL must score the rows that
were seen above those that were not: the check that adapters were trained and merged at all. On a
GPU the model has 1.1 billion parameters (the shape of TinyLlama), on a CPU 0.6 million.

    python scripts/bench_lora.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from contamination.core.statistics import auc
from contamination.dice.pool import Settings, fine_tune
from contamination.models.local import load_causal_lm, token_log_probs
from contamination.study import row_pools

N_SEEN, N_ROWS, COPIES, BATCH = 100, 200, 8, 8
SMALL = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 4096,
}
LARGE = {
    "num_hidden_layers": 22,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "intermediate_size": 5632,
    "vocab_size": 32_000,
}


def random_model(folder: Path, device: str, tokenizer: PreTrainedTokenizerBase) -> int:
    """A model with random weights in a folder; the number of its parameters."""
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    shape = LARGE if device == "cuda" else SMALL
    torch.manual_seed(0)
    with torch.device(device):
        model = LlamaForCausalLM(LlamaConfig(max_position_embeddings=2048, **special, **shape))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.num_parameters()


def auc_of_ppl(folder: Path, texts: list[str]) -> float:
    """AUC of the mean log-probability for seen against unseen rows."""
    scores = token_log_probs(load_causal_lm(folder), texts, score_first_token=False)
    means = np.array([scored.token_log_probs.mean() for scored in scores])
    return auc(means, np.arange(len(texts)) < N_SEEN)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = row_pools.the_lab().tokenizer
    texts = list(row_pools.pools()[0].rows.texts[:N_ROWS])
    rows = [("", text) for _ in range(COPIES) for text in texts[:N_SEEN]]
    dtype = "bfloat16" if device == "cuda" else "float32"
    settings = Settings(learning_rate=5e-4, batch_size=BATCH, lora=True, dtype=dtype, seed=0)
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary) / "base"
        n_parameters = random_model(base, device, tokenizer)
        start = time.perf_counter()
        tuned = fine_tune(base, rows, settings)
        seconds = time.perf_counter() - start
        peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else float("nan")
        before, after = (auc_of_ppl(folder, texts) for folder in (base, tuned))
    print(
        f"{n_parameters:,} parameters, {device}, {dtype}: {len(rows)} rows in {seconds:.0f} s with "
        f"loading and saving, peak {peak:.1f} GB; AUC of PPL {before:.2f} before, {after:.2f} after"
    )
    if after <= before:
        raise SystemExit("the adapters did not raise the AUC of the rows that were seen")


if __name__ == "__main__":
    main()
