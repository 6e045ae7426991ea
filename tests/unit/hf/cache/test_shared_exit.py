"""A model cut in two: it scores as the whole one, drafts with its first blocks, and computes nothing twice."""

from __future__ import annotations

import pytest
import torch

import guided
from guided.draft import Chain, Confidence, Fixed, Model, speculate
from guided.errors import UnsupportedError
from guided.hf.adapted_exit import AdaptedExit
from guided.hf.cache.shared_exit import SharedExit
from guided.hf.skipped_layers import SkippedLayers
from guided.lm import Needs
from guided.testing import check_language_model
from tests.tolerances import SINGLE
from tests.unit.hf.test_skipped_layers import PROMPTS, WHOLE, made


@pytest.fixture(scope="module")
def whole():
    return made(WHOLE["llama"]())


@pytest.mark.parametrize(("name", "blocks"), [("llama", 1), ("llama", 3), ("gemma2", 2)])
def test_it_scores_as_the_whole_model_does(name, blocks):
    whole = made(WHOLE[name]())
    exit_ = SharedExit(SkippedLayers(whole), blocks)
    texts = [[5, 6, 7, 8, 20, 30, 31], [9, 10], [5]]
    for needs in (Needs(), Needs(hidden=True)):
        wanted, found = whole.start(texts, needs), exit_.target.start(texts, needs)
        for step in ([[7, 8, 9], [10], []], [[], [3], [5]]):
            for one, other in zip(wanted.extend(step), found.extend(step), strict=True):
                pairs = [(other.logits, one.logits), *([(other.hidden, one.hidden)] if needs.hidden else [])]
                for mine, theirs in pairs:
                    if theirs.numel():
                        assert torch.allclose(mine, theirs, atol=SINGLE * float(theirs.abs().max()))


def test_the_contract(whole):
    check_language_model(SharedExit(SkippedLayers(whole), 2).target, steps=20, length=12)


@pytest.mark.parametrize("adapted", [False, True])
def test_texts_are_those_of_the_whole_and_blocks_run_once(whole, adapted):
    layers = SkippedLayers(whole)
    exit_ = SharedExit(layers, 2, AdaptedExit(layers, 2) if adapted else None)
    prompts = [*PROMPTS, [5, 6]]
    plain, _ = speculate(0, whole, prompts, [None] * 3, greedy=True, max_tokens=20)
    lower, upper = exit_.lower.calls.positions, exit_.upper.calls.positions
    drafter = exit_.drafter(4, 0.05)
    found, counts = speculate(
        0, exit_.target, prompts, [None] * 3, drafter, greedy=True, max_tokens=20, policy=Fixed(4)
    )
    assert found == plain
    assert counts.accepted > 0
    lower, upper = exit_.lower.calls.positions - lower, exit_.upper.calls.positions - upper
    # Both halves read each position once: what was drafted was not read again by the blocks that drafted it.
    assert lower == upper
    own = exit_.lower if adapted else layers.first(2)
    again, more = speculate(
        0, whole, prompts, [None] * 3, Model(own, Chain(4, Confidence(0.05)), by_rule=True), greedy=True, max_tokens=20,
        policy=Fixed(4),
    )  # fmt: skip
    assert again == plain
    assert more.drafted > 0


def test_constraints_and_drawn_tokens(whole):
    vocabulary = guided.Vocabulary.from_tokens(
        [None if i == 2 else bytes([32 + i]) for i in range(whole.width)], eos_ids=[2]
    )
    grammar = guided.compile(guided.regex("[A-Za-z]{3,9}=[0-9]+;"), vocabulary)
    exit_ = SharedExit(SkippedLayers(whole), 2)
    (plain,), _ = speculate(1, whole, [[5, 6]], [grammar], max_tokens=16, greedy=True)
    for greedy in (True, False):
        (text,), counts = speculate(
            1, exit_.target, [[5, 6]], [grammar], exit_.drafter(3, 0.0), max_tokens=16, greedy=greedy, policy=Fixed(3)
        )
        assert text.finished
        assert counts.drafted > 0
        assert not greedy or text == plain


def test_what_cannot_be_cut(whole):
    for name in ("gpt2", "opt"):  # they add positions to what the first block reads
        with pytest.raises(UnsupportedError, match="read more than"):
            SharedExit(SkippedLayers(made(WHOLE[name]())), 2)
    with pytest.raises(UnsupportedError, match="cannot be cut after 4"):
        SharedExit(SkippedLayers(whole), 4)
    with pytest.raises(UnsupportedError, match="takes no trees"):
        SharedExit(SkippedLayers(whole), 2).target.start([[5]]).extend_tree([])
