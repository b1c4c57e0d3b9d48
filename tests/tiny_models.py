"""An untrained model of two blocks for a tokenizer, as several tests need one."""

import json

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from contamination.core.storage import write_json
from contamination.lab.tokenizer import tokenizer_files

GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
    "model.norm": "output_norm",
    "lm_head": "output",
}


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


def gguf_of(model, tokenizer, path, **said):
    """A GGUF file of a Llama model and a byte-level tokenizer, in float32.

    ``said`` are further fields of the tokenizer, such as ``add_bos_token``.
    """
    from gguf import GGUFWriter

    config, writer = model.config, GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_vocab_size(config.vocab_size)
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    special = {token["id"] for token in rules["added_tokens"]}
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if number in special else 1 for number in range(len(tokens))])
    writer.add_token_merges([" ".join(pair) for pair in rules["model"]["merges"]])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    for name, value in said.items():
        getattr(writer, f"add_{name}")(value)
    for name, weight in model.named_parameters():
        writer.add_tensor(_gguf_name(name), _as_in_gguf(name, weight.detach().numpy(), config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gguf_name(name):
    for ours, theirs in GGUF_NAMES.items():
        name = name.replace(ours, theirs)
    return name


def _as_in_gguf(name, weight, config):
    """Rows of queries and keys stand in another order there, for another way to rotate them."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for part, n in heads.items():
        if part in name:
            halves = weight.reshape(n, 2, -1, weight.shape[1])
            return halves.swapaxes(1, 2).reshape(weight.shape).copy()
    return weight
