"""Drafts for models that remember a text as a state: the same texts, one pass a draft, states that were kept."""

from __future__ import annotations

import copy

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM

import guided
from guided.draft import Fixed, PromptLookup, chain, speculate
from guided.hf import TransformersModel
from guided.hf.cache.sequences import LONGEST_WAY
from guided.hf.network import Caching
from tests.amounts import each
from tests.tolerances import PASSES
from tests.unit.hf.test_language_model import KEEPS_STATES, plain

pytestmark = pytest.mark.skipif(not KEEPS_STATES, reason="this release of transformers keeps states another way")

SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "eos_token_id": 2, "pad_token_id": 0}
ATTENTION = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
STATE = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 8}
MODELS = {
    "Mamba": {"state_size": 4},
    "Mamba2": {"state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 1, "chunk_size": 8},
    "Jamba": {
        **ATTENTION, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "mamba_d_state": 4,
        "mamba_dt_rank": 4,
    },
    "Bamba": {**ATTENTION, **STATE, "attn_layer_indices": [1]},
    "FalconH1": {**ATTENTION, **STATE, "mamba_d_ssm": 64},
    "Lfm2": {**ATTENTION, "layer_types": ["conv", "full_attention"]},
    "Rwkv": {"attention_hidden_size": 32, "context_length": 128},
}  # fmt: skip
"""Models of states alone, of states and attention in turn, and of both in each block; one without a usable cache."""


def made(name):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SMALL, **MODELS[name])
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return TransformersModel(model)


class Nearly:
    """Drafts the text that will come, with one token in so many wrong."""

    def __init__(self, texts, wrong):
        self.texts, self.wrong = texts, wrong

    def draft(self, chance, contexts):
        found = []
        for context in contexts:
            at = len(context.tokens) - context.n_prompt
            tokens = list(self.texts[context.row][at : at + context.longest])
            found.append(chain([63 - t if (at + i) % self.wrong == 3 else t for i, t in enumerate(tokens)]))
        return found

    def learn(self, observed):
        pass

    def leave(self, rows):
        pass


@pytest.mark.parametrize("name", each(MODELS, 2))
def test_drafts_change_nothing_and_save_passes(name):
    """Rows that accept different numbers of tokens, end at different times, and are refused again and again."""
    model = made(name)
    caching = model.caching
    expected = Caching.STATES if name in ("Mamba", "Jamba") else Caching.NONE if name == "Rwkv" else Caching.PIECES
    assert caching is expected
    prompts = [[5, 6, 7, 8, 9], [10, 11, 12]]
    found, counts = speculate(0, model, prompts, [None] * 2, max_tokens=36, greedy=True)
    texts = [text.tokens for text in found]
    for drafter in (Nearly(texts, 10**9), Nearly(texts, 7), PromptLookup()):
        before = copy.copy(model.calls)
        drafted, fewer = speculate(0, model, prompts, [None] * 2, drafter, max_tokens=36, greedy=True, policy=Fixed(6))
        assert drafted == found
        assert not fewer.trees
        if isinstance(drafter, Nearly):
            assert fewer.accepted > fewer.drafted / 3
            # Both rows share a pass where their lengths agree, and have one each where they do not.
            assert fewer.passes < counts.passes * (0.7 if drafter.wrong > 100 else 1.0)
            rounds = fewer.tokens - fewer.accepted
            assert model.calls.passes - before.passes <= 1.3 * rounds + 4
        if caching is Caching.PIECES:
            # Nothing is read from its beginning: a draft, and a way from the last state that is bounded.
            assert model.calls.positions - before.positions < 8 + fewer.row_passes * (7 + LONGEST_WAY)


@pytest.mark.parametrize("name", each(["Mamba2", "FalconH1", "Jamba"], 2))
def test_under_a_grammar(name):
    model = made(name)
    vocabulary = guided.Vocabulary.from_tokens(
        [None, None, None, *(bytes([97 + i % 26]) * (1 + i // 26) for i in range(61))], eos_ids=[2]
    )
    words = guided.compile(guided.regex("([a-f]{3}[x-z])*"), vocabulary)
    plainly, _ = speculate(0, model, [[5, 6, 7]] * 2, [words, None], max_tokens=20, greedy=True)
    for seed in range(2):
        drafted, _ = speculate(
            seed, model, [[5, 6, 7]] * 2, [words, None], PromptLookup(), max_tokens=20, greedy=True, policy=Fixed(5)
        )
        assert drafted == plainly


@pytest.mark.parametrize("name", each(["Mamba2", "Bamba", "FalconH1", "Lfm2", "Mamba", "Jamba"], 2))
def test_states_are_kept_while_rows_are_rolled_back(name):
    """Scores against passes over the whole text, after many pieces, refusals, forks and rows that come and go."""
    model = made(name)
    generator = torch.Generator().manual_seed(1)

    def some(n):
        return torch.randint(3, 64, (n,), generator=generator).tolist()

    rows = model.start([some(6), some(6), some(3)])
    for step in range(9):
        before = [len(rows.tokens(i)) for i in range(len(rows))]
        found = rows.extend([some(1 + (step + i) % 5) if (step + i) % 4 else [] for i in range(len(rows))])
        for i, scores in enumerate(found):
            for n in range(len(scores)):
                expected = plain(model.model, rows.tokens(i)[: before[i] + n + 1])
                assert torch.allclose(scores.logits[n], expected, atol=PASSES, rtol=PASSES)
        if step % 2 == 0:
            rows.crop([length + min(step % 3, len(scores)) for length, scores in zip(before, found, strict=True)])
        if step == 3:
            rows.select([1, 0, 1])
        if step == 5:
            rows.join([some(4)])
    expected = [plain(model.model, rows.tokens(i)) for i in range(len(rows))]
    assert torch.allclose(rows.last.logits, torch.stack(expected), atol=PASSES, rtol=PASSES)
