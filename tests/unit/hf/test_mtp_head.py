"""Modules for multi-token prediction: read from a checkpoint as it is published, and drafting what a reference says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3DecoderLayer
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from guided.draft import Fixed, speculate
from guided.errors import GuidedError
from guided.hf.language_model import TransformersModel
from guided.hf.mtp_head import load_mtp
from tests.tolerances import PASSES

WIDTH, D = 24, 16
SHARED = {
    "vocab_size": WIDTH, "hidden_size": D, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "eos_token_id": WIDTH - 1, "bos_token_id": None,
    "pad_token_id": None,
}  # fmt: skip
KINDS = {
    "deepseek": (
        DeepseekV3ForCausalLM, DeepseekV3DecoderLayer,
        DeepseekV3Config(**SHARED, moe_intermediate_size=8, n_routed_experts=4, n_shared_experts=1, n_group=1,
                         topk_group=1, num_experts_per_tok=2, first_k_dense_replace=1, kv_lora_rank=8, q_lora_rank=8,
                         qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=4),
    ),
    "mtp": (LlamaForCausalLM, LlamaDecoderLayer, LlamaConfig(**SHARED)),
}  # fmt: skip


def module(kind):
    """A model, a random module for it, and the module's tensors by the names they are published under."""
    network, layer, config = KINDS[kind]
    torch.manual_seed(3)
    model = network(config).eval()
    block = layer(config, 2).eval()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    own = {name: torch.randn(shape) * 0.5 for name, shape in (
        ("enorm", (D,)), ("hnorm", (D,)), ("fc", (D, 2 * D)), ("norm", (D,)), ("head", (WIDTH, D))
    )}  # fmt: skip
    if kind == "mtp":
        own["head"] = model.lm_head.weight.detach()
        names = {"enorm": "pre_fc_norm_embedding", "hnorm": "pre_fc_norm_hidden", "fc": "fc", "norm": "norm"}
        tensors = {f"mtp.{new}.weight": own[old] for old, new in names.items()}
        tensors |= {f"mtp.layers.0.{name}": value for name, value in block.state_dict().items()}
    else:
        names = {"enorm": "enorm", "hnorm": "hnorm", "fc": "eh_proj", "norm": "shared_head.norm",
                 "head": "shared_head.head"}  # fmt: skip
        tensors = {f"model.layers.2.{new}.weight": own[old] for old, new in names.items()}
        tensors["model.layers.2.embed_tokens.weight"] = model.model.embed_tokens.weight.detach().clone()
        for name, value in block.state_dict().items():
            if "experts." in name and value.dim() == 3:
                prefix, part = name.rsplit(".", 1)
                for expert, one in enumerate(value):
                    halves = {"gate_proj": one[:8], "up_proj": one[8:]} if part == "gate_up_proj" else {part: one}
                    for half, rows in halves.items():
                        tensors[f"model.layers.2.{prefix}.{expert}.{half}.weight"] = rows
            else:
                tensors[f"model.layers.2.{name}"] = value
    return model, block, own, {name: value.contiguous().clone() for name, value in tensors.items()}


def rms(states, weight):
    return weight * states / torch.sqrt((states**2).mean(-1, keepdim=True) + 1e-6)


def reference(model, block, own, tokens, n_seen):
    """What the module says after tokens, of which the model has seen the first ones: no cache, place after place."""
    with torch.no_grad():
        states = model.model(torch.tensor([tokens[:n_seen]])).last_hidden_state
        while True:
            n = states.shape[1]
            embedded = model.model.embed_tokens(torch.tensor([tokens[1 : n + 1]]))
            read = torch.cat([rms(embedded, own["enorm"]), rms(states, own["hnorm"])], -1) @ own["fc"].T
            mask = torch.full((n, n), torch.finfo(torch.float32).min).triu(1)[None, None]
            positions = model.model.rotary_emb(read, torch.arange(n)[None])
            out = block(read, attention_mask=mask, position_embeddings=positions)
            out = out[0] if isinstance(out, tuple) else out
            if n + 1 == len(tokens):
                return rms(out[0, -1], own["norm"]) @ own["head"].T
            states = torch.cat([states, out[:, -1:]], 1)


@pytest.mark.parametrize("kind", KINDS)
def test_modules_draft_what_their_reference_says(kind, tmp_path):
    network, block, own, tensors = module(kind)
    save_file({"model.embed_tokens.weight": torch.zeros(2), **tensors}, str(tmp_path / "model.safetensors"))
    model = TransformersModel(network)
    drafter = load_mtp(model, tmp_path, depth=3, top=2)
    checked = 0

    class Watched:
        drafters, needs = (drafter,), drafter.needs
        learn, leave = drafter.learn, drafter.leave

        def draft(self, chance, contexts):
            nonlocal checked
            found = drafter.draft(chance, contexts)
            for context, proposal in zip(contexts, found, strict=True):
                tree, tokens = proposal.tree, list(context.tokens)
                for node in (-1, *range(len(tree))):
                    children = [t for t, parent in zip(tree.tokens, tree.parents, strict=True) if parent == node]
                    if not children:
                        continue
                    path = [tree.tokens[one] for one in tree.path(node)]
                    logits = reference(network, block, own, [*tokens, *path], len(tokens) - context.n_unseen)
                    best = logits.topk(2).values
                    assert logits[children[0]] >= best[0] - PASSES
                    assert len(children) < 2 or logits[children].sum() >= best.sum() - 2 * PASSES
                    checked += 1
            return found

    prompts = [[1, 2, 3], [4]]
    plain, _ = speculate(0, model, prompts, [None] * 2, max_tokens=9, greedy=True)
    found, counts = speculate(0, model, prompts, [None] * 2, Watched(), max_tokens=9, greedy=True, policy=Fixed(5))
    assert found == plain and checked > 10 and counts.drafted > 20
    rng = np.random.default_rng(0)
    speculate(rng, model, prompts, [None] * 2, drafter, max_tokens=9, policy=Fixed(5))


def test_checkpoints_without_a_module_are_refused(tmp_path):
    network, _, _, tensors = module("mtp")
    model = TransformersModel(network)
    save_file({"model.norm.weight": torch.zeros(2)}, str(tmp_path / "model.safetensors"))
    with pytest.raises(GuidedError, match="no module"):
        load_mtp(model, tmp_path)
    tensors.pop("mtp.fc.weight")
    save_file(tensors, str(tmp_path / "model.safetensors"))
    with pytest.raises(GuidedError, match=r"eh_proj\.weight"):
        load_mtp(model, tmp_path)
