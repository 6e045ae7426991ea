"""Kangaroo's adapter: its forward pass against a model cut by hand, its training, its file, and texts unchanged."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, OPTConfig

from guided.draft import Branching, Chain, Confidence, DraftLoss, Fixed, Model, distil, speculate
from guided.errors import GuidedError, UnsupportedError
from guided.hf.adapted_exit import AdaptedExit
from guided.hf.language_model import TransformersModel
from guided.hf.skipped_layers import SkippedLayers
from guided.lm import next_logits
from guided.testing import check_language_model
from tests.tolerances import SINGLE
from tests.unit.hf.test_skipped_layers import PROMPTS, SMALL, WHOLE, made


@pytest.fixture(scope="module")
def target():
    return made(WHOLE["llama"]())


@pytest.fixture
def exit_(target):
    return AdaptedExit(SkippedLayers(target), 2)


def test_it_is_the_first_blocks_an_attention_and_the_head(target, exit_):
    """Two blocks and the last one without its feed-forward half, as a model of three blocks of its own."""
    whole = target.model
    cut = copy.deepcopy(whole)
    cut.model.layers = torch.nn.ModuleList([copy.deepcopy(whole.model.layers[number]) for number in (0, 1, 3)])
    cut.model.layers[2].self_attn.layer_idx = 2
    cut.config.num_hidden_layers = 3
    torch.nn.init.zeros_(cut.model.layers[2].mlp.down_proj.weight)
    with torch.no_grad():
        for parameter in (*exit_.adapter.parameters(),):
            parameter += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            getattr(cut.model.layers[2].self_attn, name).weight.copy_(
                getattr(exit_.adapter["layers"][0].self_attn, name).weight
            )
        cut.model.layers[2].input_layernorm.weight.copy_(exit_.adapter["layers"][0].input_layernorm.weight)
        cut.model.norm.weight.copy_(exit_.adapter["norm"].weight)
        ids = torch.tensor([[5, 6, 7, 8, 20, 30]])
        wanted = cut(input_ids=ids, use_cache=False).logits
    assert torch.allclose(exit_.scoring(ids), wanted, atol=SINGLE * float(wanted.abs().max()))
    assert torch.allclose(
        next_logits(exit_.model, ids.tolist())[0], wanted[0, -1], atol=SINGLE * float(wanted.abs().max())
    )
    # Other blocks, so other logits: far beyond rounding.
    assert not torch.allclose(wanted, whole(input_ids=ids).logits, atol=1000 * SINGLE)


def test_the_contract(exit_):
    check_language_model(exit_.model, steps=10, length=12)


def test_training_brings_it_nearer_and_leaves_the_target_alone(target, exit_, tmp_path):
    before = {name: value.clone() for name, value in target.model.state_dict().items()}
    prompts = [[5 + n, 6, 7] for n in range(24)]
    texts = [list(text.tokens) for text in speculate(0, target, prompts, [None] * 24, max_tokens=8)[0]]

    def agreement():
        rows = [(*p, *t) for p, t in zip(prompts, texts)]
        same = [next_logits(m, [row]).argmax() for m in (exit_.model, target) for row in rows]
        return sum(bool(a == b) for a, b in zip(same[: len(rows)], same[len(rows) :])) / len(rows)

    first = agreement()
    how = {"loss": DraftLoss.FORWARD_KL, "rate": 1e-2, "batch": 24}
    least = distil(exit_.adapter, exit_.scoring, target, prompts, texts, epochs=1, **how)
    assert distil(exit_.adapter, exit_.scoring, target, prompts, texts, epochs=60, **how) < 0.7 * least
    assert agreement() > first
    after = target.model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in target.model.parameters())

    exit_.save(tmp_path / "adapter.safetensors")
    again = AdaptedExit(SkippedLayers(target), 2)
    again.load(tmp_path / "adapter.safetensors")
    ids = torch.tensor([[5, 6, 7, 8]])
    # Files hold float16.
    assert torch.allclose(again.scoring(ids), exit_.scoring(ids), atol=0.1)
    assert sorted(again._trained()) == [
        "layers.0.input_layernorm.weight",
        *(f"layers.0.self_attn.{part}_proj.weight" for part in "koqv"), "norm.weight",
    ]  # fmt: skip
    other = AdaptedExit(SkippedLayers(made(LlamaConfig(**{**SMALL, "hidden_size": 16}))), 2)
    with pytest.raises(GuidedError, match="no adapter of this model"):
        other.load(tmp_path / "adapter.safetensors")


@pytest.mark.parametrize(
    "shape", [Chain(4), Chain(6, Confidence(0.3)), Branching((2, 2))], ids=["chain", "unsure", "tree"]
)
def test_texts_are_the_targets(target, exit_, shape):
    plain = speculate(0, target, PROMPTS, [None] * 2, max_tokens=10, greedy=True)[0]
    found = speculate(
        0, target, PROMPTS, [None] * 2, Model(exit_.model, shape, by_rule=True), max_tokens=10, greedy=True,
        policy=Fixed(6),
    )[0]  # fmt: skip
    assert found == plain


def test_what_has_no_such_exit():
    model = TransformersModel(
        AutoModelForCausalLM.from_config(OPTConfig(**{**SMALL, "ffn_dim": 48}, word_embed_proj_dim=32)).eval()
    )
    with pytest.raises(UnsupportedError, match="no exit after 2 of its 4 blocks"):
        AdaptedExit(SkippedLayers(model), 2)
    with pytest.raises(UnsupportedError, match="no exit after 4"):
        AdaptedExit(SkippedLayers(made(WHOLE["llama"]())), 4)
