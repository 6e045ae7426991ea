"""What stands before and after the mask keeps its place with drafts: the law of drawing token by token, enumerated."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

import guided
from guided.draft import (
    BestFirst,
    Branching,
    Chain,
    Fixed,
    ForcedBytes,
    MaskCounts,
    Model,
    NGrams,
    PromptLookup,
    Recycling,
    Union,
    speculate,
)
from guided.errors import GuidedError
from guided.lm.table import TableModel
from guided.steer import Contrastive, Masked, Stack
from guided.testing.enumeration import enumerate_choices
from tests.amounts import each

WIDTH, END = 4, 3
VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[END])
TARGET = TableModel.random(5, width=WIDTH, eos_ids=[END])
SMALL = TableModel.random(6, width=WIDTH, eos_ids=[END])
CONSTRAINT = guided.compile(guided.regex("(ab|ba|aa)?b*"), VOCABULARY)
PROMPT = [0, 1, 0, 2, 1, 0]


class TwoLikeliest:
    """Repeated tokens lose before the mask; after it the two likeliest are left, at another temperature."""

    changes_all = True

    def before(self, row, emitted, logits):
        changed = logits.clone()
        changed[sorted(set(emitted))] -= 0.7
        return changed

    def after(self, row, emitted, logits):
        assert row == 0
        scores = logits / 0.6
        return scores.masked_fill(scores < scores.topk(2).values[-1], -torch.inf)


def expected(constraint, max_tokens):
    """By hand, from the scores."""
    found, open_texts = {}, {(): 1.0}
    while open_texts:
        text, probability = open_texts.popitem()
        state = constraint.start
        for token in text:
            state = constraint.advance(state, token)
        row = np.zeros(1, np.uint32)
        constraint.fill_budget_mask(state, row, max_tokens - len(text))
        scores = TARGET.logprobs((*PROMPT, *text)) - 0.7 * np.isin(np.arange(WIDTH), text)
        scores = np.where([row[0] >> token & 1 for token in range(WIDTH)], scores, -np.inf) / 0.6
        weights = np.exp(np.where(scores < np.sort(scores)[-2], -np.inf, scores))
        for token, share in enumerate(weights / weights.sum()):
            if share:
                place = found if token == END else open_texts
                place[(*text, token)] = probability * share
    return found


DRAFTS = {
    "none": lambda: None,
    "lookup": PromptLookup,
    "guessers": lambda: BestFirst(ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), Recycling(), floor=0.0),
    "chain": lambda: Model(SMALL, Chain(2)),
    "tree": lambda: Model(SMALL, Branching((2, 1))),
    "union": lambda: Union(PromptLookup(1), Model(SMALL, Chain(1))),
}


@pytest.mark.parametrize("name", each(DRAFTS, 2))
def test_the_law_is_that_of_its_place(name):
    found = Counter()

    def run(chance):
        (text,), _ = speculate(
            chance, TARGET, [PROMPT], [CONSTRAINT], DRAFTS[name](), max_tokens=4, policy=Fixed(3),
            reshaping=TwoLikeliest(),
        )  # fmt: skip
        return text.tokens

    for probability, tokens in enumerate_choices(run):
        found[tokens] += probability
    law = expected(CONSTRAINT, 4)
    assert math.fsum(law.values()) == pytest.approx(1)
    assert sum(abs(found[text] - law.get(text, 0.0)) for text in {*found, *law}) / 2 < 1e-9
    masked_later = sum(1 for text in law if len(text) > 2)
    assert masked_later > 2


def test_greedy_text_is_chosen_after_what_is_before():
    for seed in range(10):
        model = TableModel.random(seed, width=WIDTH, eos_ids=[END])
        (plain,), _ = speculate(0, model, [PROMPT], [CONSTRAINT], greedy=True, max_tokens=8, reshaping=TwoLikeliest())
        (drafted,), _ = speculate(
            0, model, [PROMPT], [CONSTRAINT], DRAFTS["guessers"](), greedy=True, max_tokens=8, reshaping=TwoLikeliest()
        )
        assert plain == drafted


def test_reshaped_texts_have_no_weights():
    with pytest.raises(GuidedError, match="reshaped"):
        speculate(0, TARGET, [PROMPT], [CONSTRAINT], weigh=True, reshaping=TwoLikeliest())


def test_steering_of_allowed_tokens_keeps_its_law_with_the_amateur_as_draft():
    """Speculative contrastive decoding as `guided.generate` does it: plausible tokens are chosen among allowed ones."""

    steered = Stack([Masked(CONSTRAINT, 3), Contrastive(SMALL, alpha=0.5)]).over(TARGET)

    def law(drafter):
        found = Counter()

        def run(chance):
            (text,), _ = speculate(chance, steered, [PROMPT], [CONSTRAINT], drafter, max_tokens=3, policy=Fixed(3))
            return text.tokens

        for probability, tokens in enumerate_choices(run):
            found[tokens] += probability
        return found

    plain = law(None)
    for shape in (Chain(2), Branching((2, 1))):
        drafted = law(Model(SMALL, shape))
        assert sum(abs(plain[text] - drafted[text]) for text in {*plain, *drafted}) / 2 < 1e-9
    assert len(plain) > 2
