"""Heads behind a block of their own: what they learn that heads on the last state cannot, files, and whole texts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from guided.draft import (
    Base,
    BlockSizes,
    Fixed,
    Heads,
    Prefixed,
    PrefixedHeads,
    calibrate_heads,
    feature_examples,
    fit_heads,
    fit_prefixed,
    head_examples,
    load_prefixed,
    new_heads,
    prefixed_examples,
    speculate,
)
from guided.errors import GuidedError, VocabularyError
from guided.lm.table import TableModel

WIDTH, HIDDEN, END, PERIOD = 10, 16, 9, 4
EMBEDDINGS = torch.from_numpy(np.random.default_rng(0).standard_normal((WIDTH, HIDDEN))).float()
BASE = Base(EMBEDDINGS, EMBEDDINGS)
SIZES = BlockSizes(HIDDEN, 24, 2, 2, 8)


def logprobs(tokens):
    """Texts repeat what came four tokens before: the last state alone does not say how they go on."""
    found = np.full(WIDTH, -9.0)
    found[tokens[-PERIOD] if len(tokens) >= PERIOD else 0] = 3.0
    return found - np.log(np.exp(found).sum())


MODEL = TableModel(logprobs, width=WIDTH, eos_ids=[END], hidden=lambda tokens: EMBEDDINGS[[0, *tokens][-1]].numpy())
PROMPTS = [np.random.default_rng(seed).permutation(WIDTH - 1)[:PERIOD].tolist() for seed in range(60)]
TEXTS = [(prompt * 4)[:12] for prompt in PROMPTS]


@pytest.fixture(scope="module")
def prefixed():
    torch.manual_seed(0)
    made = PrefixedHeads(new_heads("hydra", 2, BASE), SIZES)
    examples = feature_examples(MODEL, PROMPTS, TEXTS)
    fit_prefixed(made, examples, epochs=40, batch=10, rate=1e-2)
    calibrate_heads(made.heads, prefixed_examples(made, examples))
    return made


def test_the_block_sees_what_the_last_state_does_not_say(prefixed):
    torch.manual_seed(0)
    plain = new_heads("hydra", 2, BASE)
    examples = head_examples(MODEL, PROMPTS, TEXTS, 2)
    fit_heads(plain, examples, epochs=40, batch=100, rate=1e-2)
    calibrate_heads(plain, examples)
    with_block, without = (made.settings.accuracies[0][0] for made in (prefixed.heads, plain))
    assert with_block > 0.8 > 0.6 > without


def test_places_are_those_of_heads_without_a_block(prefixed):
    """The same tokens in the same order, and a block that adds nothing gives the model's states, normalised."""
    fresh = PrefixedHeads(new_heads("hydra", 2, BASE), SIZES)
    ours = prefixed_examples(fresh, feature_examples(MODEL, PROMPTS, TEXTS), batch=7)
    theirs = head_examples(MODEL, PROMPTS, TEXTS, 2)
    assert torch.equal(ours.tokens, theirs.tokens)
    scale = theirs.hidden.pow(2).mean(-1, keepdim=True).add(SIZES.rms_norm_eps).rsqrt()
    torch.testing.assert_close(ours.hidden, theirs.hidden * scale)


def test_they_save_passes_and_change_nothing(prefixed):
    prompts = [[1, 5, 2, 7], [8, 0, 3, 4], [6, 2, 0, 1]]
    plain, without = speculate(0, MODEL, prompts, [None] * 3, max_tokens=16, greedy=True)
    found, counts = speculate(
        0, MODEL, prompts, [None] * 3, Prefixed(prefixed), max_tokens=16, greedy=True, policy=Fixed(6)
    )
    assert found == plain
    assert counts.row_passes < 0.6 * without.row_passes


def test_files_are_read_again(prefixed, tmp_path):
    prefixed.save(tmp_path / "heads")
    again = load_prefixed(tmp_path / "heads", BASE)
    assert again.heads.settings == prefixed.heads.settings and again.sizes == SIZES
    examples = feature_examples(MODEL, PROMPTS[:3], TEXTS[:3])
    # Files hold float16.
    torch.testing.assert_close(
        prefixed_examples(again, examples).hidden, prefixed_examples(prefixed, examples).hidden, atol=0.05, rtol=0.05
    )
    with pytest.raises(VocabularyError, match="another model"):
        load_prefixed(tmp_path / "heads", Base(EMBEDDINGS, EMBEDDINGS.flip(0)))
    with pytest.raises(GuidedError, match="no prefixed heads"):
        load_prefixed(tmp_path, BASE)
    with pytest.raises(GuidedError, match="a block of 8 numbers"):
        PrefixedHeads(new_heads("hydra", 2, BASE), BlockSizes(8, 8, 1, 1, 8))


def test_without_states_of_the_prompt_nothing_is_drafted(prefixed):
    from guided.draft import Context

    context = Context(0, [1, 2, 3], 2, None, 1, 8, 1, EMBEDDINGS[2])
    assert len(Prefixed(prefixed).draft(None, [context])[0]) == 0
    assert len(Heads(prefixed.heads).draft(None, [context])[0]) > 0
