"""The packaged model as a GGUF file, written with the ``gguf`` package: what llama.cpp runs.

Only what these tests need: a Llama with a SentencePiece-like vocabulary, and tokens with the bytes of GPT-2.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from guided.nano import MODEL_PATH

KINDS = {"normal": 1, "unknown": 2, "control": 3, "added": 4, "unused": 5, "byte": 6}
"""What a token may be, by ``gguf.TokenType``."""


def write_nano(path: Path) -> None:
    """guided-nano in float32: its weights, and its vocabulary as it is in tokenizer.json."""
    tokenizer = json.loads((MODEL_PATH / "tokenizer.json").read_text())
    words = {number: word for word, number in tokenizer["model"]["vocab"].items()}
    special = {entry["id"]: entry["content"] for entry in tokenizer["added_tokens"]}
    tokens = []
    for number in range(len(words)):
        word = words[number]
        kind = "control" if number in special else "byte" if _is_byte(word) else "normal"
        tokens.append((word, "unknown" if word == "<unk>" else kind))
    write(path, tokens, eos=1, weights=load_file(MODEL_PATH / "model.safetensors"))


def _is_byte(word: str) -> bool:
    return len(word) == 6 and word.startswith("<0x") and word.endswith(">")


def write(path, tokens, *, eos, weights, model="llama", pre="default", space_prefix=False) -> None:
    """A Llama of guided-nano's shape with these tokens, each a word and its kind."""
    import gguf

    config = json.loads((MODEL_PATH / "config.json").read_text())
    heads = config["num_attention_heads"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([word for word, _ in tokens])
    writer.add_token_scores([-float(number) for number in range(len(tokens))])
    writer.add_token_types([KINDS[kind] for _, kind in tokens])
    if model == "gpt2":
        writer.add_token_merges(["t h"])
    writer.add_eos_token_id(eos)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(space_prefix)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, weight in weights.items():
        weight = weight.astype(np.float32)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            # llama.cpp rotates neighbours, transformers halves.
            halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
            weight = halves.swapaxes(1, 2).reshape(weight.shape)
        if name == "model.embed_tokens.weight" and len(tokens) != len(weight):
            weight = weight[: len(tokens)]
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
