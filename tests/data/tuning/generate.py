"""Writes `losses.txt`: the losses of SmolLM2 with an adapter that PyTorch and PEFT learn, on the dequantised weights.

`python generate.py smollm2-135m.gguf [STEPS] [THREADS]`, with torch, transformers 4.31, peft 0.4, numpy 1 and gguf. The test
`losses_are_those_of_peft` learns the same: four texts of 256 tokens of the Apache licence, as this library tokenizes them
(`tokens.txt`), and matrices A that a formula gives. The script prints the tokens per second on two threads.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

HERE = Path(__file__).parent
RANK, ALPHA, RATE = 8, 16, 1e-3


def unpermuted(weight, heads):
    """Puts the rows of a projection into Hugging Face's order."""
    rows, cols = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def numbers(seed, rows, cols):
    at = np.arange(rows * cols, dtype=np.int64)
    values = ((at * 7919 + seed * 104_729) % 1009) / 1009 - 0.5
    return torch.tensor((values * 0.08).astype(np.float32).reshape(rows, cols))


def model(path):
    file = GGUFReader(path)
    field = lambda key: file.fields[f"llama.{key}"].parts[-1][0]
    heads, kv_heads = int(field("attention.head_count")), int(field("attention.head_count_kv"))
    weights = {t.name: dequantize(t.data, t.tensor_type).astype(np.float32) for t in file.tensors}
    vocabulary, width = weights["token_embd.weight"].shape
    layers = int(field("block_count"))
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=int(field("feed_forward_length")),
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
        rms_norm_eps=float(field("attention.layer_norm_rms_epsilon")), tie_word_embeddings=True,
        max_position_embeddings=2048, use_cache=False, bos_token_id=1, eos_token_id=2, pad_token_id=None)
    net = LlamaForCausalLM(config)
    names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    state = {"model.embed_tokens.weight": weights["token_embd.weight"], "model.norm.weight": weights["output_norm.weight"],
             "lm_head.weight": weights.get("output.weight", weights["token_embd.weight"])}
    for layer in range(layers):
        for gguf, name in names.items():
            weight = weights[f"blk.{layer}.{gguf}.weight"]
            if gguf in ("attn_q", "attn_k"):
                weight = unpermuted(weight, heads if gguf == "attn_q" else kv_heads)
            state[f"model.layers.{layer}.{name}.weight"] = weight
    missing, unexpected = net.load_state_dict({k: torch.tensor(v) for k, v in state.items()}, strict=False)
    assert not unexpected and all("inv_freq" in name for name in missing), (missing, unexpected)
    for layer in net.model.layers:
        layer.self_attn.rotary_emb = LlamaRotaryEmbedding(width // heads, 2048, base=float(field("rope.freq_base")))
    return net


def main():
    path, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 14
    torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    net = get_peft_model(model(path), LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=["q_proj", "v_proj"],
                                                 lora_dropout=0.0, bias="none", task_type="CAUSAL_LM"))
    for layer, block in enumerate(net.base_model.model.model.layers):
        for at, part in enumerate([block.self_attn.q_proj, block.self_attn.v_proj]):
            a = part.lora_A["default"].weight
            a.data = numbers(2 * layer + at, *a.shape)
    tokens = [[int(id) for id in line.split()] for line in (HERE / "tokens.txt").read_text().splitlines()]
    tokens = torch.tensor(tokens)
    learned = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=RATE, weight_decay=0.0)
    losses, start = [], time.time()
    for step in range(steps):
        loss = net(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        losses.append(f"{loss.item():.6f}")
        print(step, losses[-1], f"{tokens.numel() * (step + 1) / (time.time() - start):.1f} tokens/s", flush=True)
    (HERE / "losses.txt").write_text("\n".join(losses) + "\n")


if __name__ == "__main__":
    main()
