"""Models without some of their layers: on the same weights, with caches of their own, and nothing of the whole changes."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    MambaConfig,
    OPTConfig,
    Qwen2Config,
    T5Config,
    T5ForConditionalGeneration,
)

from guided.draft import Branching, Fixed, Model, Part, Sublayer, search_skips, speculate
from guided.errors import UnsupportedError
from guided.hf.language_model import TransformersModel
from guided.hf.skipped_layers import SkippedLayers
from guided.lm import Needs
from guided.testing import check_language_model
from tests.amounts import ALL, each
from tests.tolerances import SINGLE

SMALL = {
    "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
    "eos_token_id": 2, "pad_token_id": 3, "bos_token_id": 1, "max_position_embeddings": 128,
}  # fmt: skip
HALVES = {
    "llama": lambda: LlamaConfig(**SMALL, num_key_value_heads=2),
    "qwen2": lambda: Qwen2Config(**SMALL, num_key_value_heads=2),
    "gemma2": lambda: Gemma2Config(**SMALL, num_key_value_heads=2, head_dim=8, sliding_window=5),
    "gpt2": lambda: GPT2Config(vocab_size=96, n_embd=32, n_layer=4, n_head=4, n_positions=128, eos_token_id=2),
    "neox": lambda: GPTNeoXConfig(**SMALL),
}
WHOLE = HALVES | {"opt": lambda: OPTConfig(**{**SMALL, "ffn_dim": 48}, word_embed_proj_dim=32)}


def made(config):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.25)
    return TransformersModel(model)


PROMPTS = [[5, 6, 7, 8], [9, 10, 11]]


def greedy(model, drafter=None):
    return speculate(0, model, PROMPTS, [None] * 2, drafter, max_tokens=8, greedy=True, policy=Fixed(6))[0]


@pytest.mark.parametrize("name", each(WHOLE, 2))
def test_first_blocks_say_what_early_layers_say(name):
    model = made(WHOLE[name]())
    skipping = SkippedLayers(model)
    expected = model.start(PROMPTS, Needs(layers=(1, 2, 3))).last
    for n in (1, 2, 3):
        assert torch.allclose(skipping.first(n).start(PROMPTS).last.logits, expected.layers[n], atol=SINGLE)
    assert torch.allclose(skipping.first(4).start(PROMPTS).last.logits, expected.logits, atol=SINGLE)
    for n in (0, 5):
        with pytest.raises(UnsupportedError, match="no first"):
            skipping.first(n)


@pytest.mark.parametrize("name", HALVES)
def test_models_without_halves_are_language_models_on_the_same_weights(name):
    model = made(HALVES[name]())
    skipping = SkippedLayers(model)
    assert len(skipping.sublayers) == 4
    plain, before = greedy(model), [p.clone() for p in model.model.parameters()]
    names = set(dir(model.model.config))
    for skipped in ({Sublayer(1, Part.ATTENTION)}, {Sublayer(2, Part.MLP)}, set(skipping.sublayers[:3])):
        less = skipping.without(frozenset(skipped))
        check_language_model(less, steps=15) if name == "llama" and (ALL or len(skipped) == 3) else None
        known = {id(p) for p in model.model.parameters()}
        assert {id(p) for p in less.model.parameters()} < known
        assert not torch.allclose(less.start(PROMPTS).last.logits, model.start(PROMPTS).last.logits)
        # As a draft it leaves the whole model's text, cache and configuration alone.
        chain, tree = Model(less, by_rule=True), Model(less, Branching((2, 1)), by_rule=True)
        for drafter in (chain, tree) if ALL or name == "llama" else (tree,):
            assert greedy(model, drafter) == plain
    assert all(torch.equal(one, other) for one, other in zip(before, model.model.parameters(), strict=True))
    assert model.model.config.num_hidden_layers == 4 and set(dir(model.model.config)) == names


def test_halves_are_what_they_are_called():
    """A block without attention maps each token by itself, so that the tokens before do not matter."""
    model = made(LlamaConfig(**{**SMALL, "num_hidden_layers": 3}))
    skipping = SkippedLayers(model)
    with torch.no_grad():
        for block in (model.model.model.layers[0], model.model.model.layers[2]):
            block.self_attn.o_proj.weight.zero_()
    alone, after = model.start([[9]]).last.logits, model.start([[5, 6, 9]]).last.logits
    assert not torch.allclose(alone, after)
    less = skipping.without(frozenset({Sublayer(1, Part.ATTENTION)}))
    assert torch.allclose(less.start([[9]]).last.logits, less.start([[5, 6, 9]]).last.logits, atol=SINGLE)
    still = skipping.without(frozenset({Sublayer(1, Part.MLP)}))
    assert not torch.allclose(still.start([[9]]).last.logits, still.start([[5, 6, 9]]).last.logits)


def test_hooks_stay_where_they_are():
    model = made(HALVES["llama"]())
    calls = []
    hook = model.model.register_forward_pre_hook(lambda *_: calls.append(1))
    less = SkippedLayers(model).first(2)
    calls.clear()
    less.start(PROMPTS)
    assert not calls
    model.start(PROMPTS)
    assert calls
    hook.remove()


def test_searching_layers_of_a_model():
    model = made(HALVES["llama"]())
    texts = [text.tokens for text in greedy(model)]
    found = search_skips(0, SkippedLayers(model), PROMPTS, texts, share=0.5, rounds=8, good=1.1)
    assert len(found.skipped) == 2 and found.tried <= 6
    assert 0 <= found.score <= 1


def test_models_whose_layers_are_not_found_are_refused():
    encoder = T5Config(vocab_size=96, d_model=32, d_ff=48, num_layers=2, num_heads=4, d_kv=8, decoder_start_token_id=0)
    with pytest.raises(UnsupportedError, match="cannot be skipped"):
        SkippedLayers(TransformersModel(T5ForConditionalGeneration(encoder).eval()))
    skipping = SkippedLayers(made(WHOLE["opt"]()))
    assert skipping.sublayers == ()
    with pytest.raises(UnsupportedError, match="the mlp of block 1"):
        skipping.without(frozenset({Sublayer(1, Part.MLP)}))
    mamba = MambaConfig(vocab_size=96, hidden_size=32, num_hidden_layers=4, state_size=4, eos_token_id=2)
    assert SkippedLayers(made(mamba)).sublayers == ()
    llama = SkippedLayers(made(HALVES["llama"]()))
    with pytest.raises(UnsupportedError, match="block 0"):
        llama.without(frozenset({Sublayer(0, Part.ATTENTION)}))
