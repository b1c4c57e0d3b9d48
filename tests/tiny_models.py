"""An untrained model of two blocks for a tokenizer, as several tests need one."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from contamination.lab.tokenizer import tokenizer_files
from contamination.storage import write_json


def tiny_llama(tokenizer, seed=0, context=256):
    """The model; its embeddings are shared, its weights drawn from the seed."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def saved(folder, model, tokenizer):
    """The folder, which holds the model and a tokenizer of the lab."""
    model.save_pretrained(folder)
    for name, value in tokenizer_files(tokenizer).items():
        write_json(folder / name, value)
    return folder
