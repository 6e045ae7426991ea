"""Knowledge infused decoding: the objective that the formula maximises, and demanded phrases by a plain twin."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from hypothesis import strategies as st

from guided.errors import GuidedError, VocabularyError
from guided.lm import TableModel, next_logits
from guided.steer import KnowledgeInfused, KnowledgeTrie, Stack
from guided.steer.formulas.grounding import knowledge_infused
from tests.tolerances import SUMS
from tests.unit.steer.formulas.formula_twin import INF, close, given, rows, same, softmax
from tests.unit.steer.steering_twin import BASE

FACTS = [[(1,), (2, 3)], [(1,), (2, 0), (4,)], [(2, 3), (0, 0)], [(3, 1), (4, 4)]]


@given(rows(2), st.sampled_from([-2.0, 0.5, 3.0]))
def test_the_formula_is_a_tilt(pair, strength):
    logits, values = pair
    rewards = torch.where(values.isneginf(), 0.0, values)
    wanted = [
        softmax([z + strength * r if z > -INF else -INF for z, r in zip(row, worth)])
        for row, worth in zip(logits.tolist(), rewards.tolist())
    ]
    close(knowledge_infused(logits, rewards, strength=strength), wanted)
    same(knowledge_infused(logits, rewards, strength=0.0), logits)


def test_nothing_else_is_worth_more():
    """``E r - KL(q || p) / strength`` is greatest at the formula's distribution."""
    generator = torch.Generator().manual_seed(0)
    p = torch.softmax(torch.randn(6, generator=generator, dtype=torch.float64), -1)
    rewards = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 0.0], dtype=torch.float64)

    def worth(q):
        return float((q * rewards).sum() - (q * (q / p).log()).sum() / 1.7)

    best = torch.softmax(knowledge_infused(p.log()[None], rewards[None], strength=1.7)[0], -1)
    for _ in range(200):
        other = torch.softmax(best.log() + 0.3 * torch.randn(6, generator=generator, dtype=torch.float64), -1)
        assert worth(other) <= worth(best) + SUMS


def slow(text, facts, memory, hops):
    """The rewarded tokens by trying everything."""
    phrases = {phrase for fact in facts for phrase in fact}
    named, end = [], len(text)
    while end > 0 and len(named) < memory:
        here = [each for each in phrases if tuple(text[max(0, end - len(each)) : end]) == each]
        if here:
            longest = max(here, key=len)
            if longest not in named:
                named.append(longest)
            end -= len(longest)
        else:
            end -= 1
    reached, level = set(), set(named)
    for _ in range(hops):
        level = {b for fact in facts for a, b in itertools.pairwise(fact) if a in level}
        reached |= level
    found = set()
    for phrase in reached - set(named):
        for size in range(len(phrase)):
            if size == 0 or (tuple(text[len(text) - size :]) == phrase[:size] and size <= len(text)):
                found.add(phrase[size])
    return found


@pytest.mark.parametrize(("memory", "hops"), itertools.product((1, 2, 5), (1, 2, 3)))
def test_what_is_demanded(memory, hops):
    trie = KnowledgeTrie(FACTS)
    steerer = KnowledgeInfused(trie, memory=memory, hops=hops)
    rnd = random.Random(memory)
    texts = [tuple(rnd.randrange(5) for _ in range(rnd.randint(0, 8))) for _ in range(150)]
    wanted = [slow(text, FACTS, memory, hops) for text in texts]
    assert [steerer.wanted(text) for text in texts] == wanted
    assert sum(map(bool, wanted)) > 50 and not all(wanted)


def test_a_steered_model_says_what_is_known():
    model = Stack([KnowledgeInfused(KnowledgeTrie(FACTS), 3.0)]).over(BASE)
    for prompt in [(1,), (1, 2), (0, 5), (3, 1)]:
        plain = next_logits(BASE, [prompt])[0].tolist()
        raised = slow(prompt, FACTS, 4, 1)
        wanted = softmax([z + 3.0 * (token in raised) for token, z in enumerate(plain)])
        assert softmax(next_logits(model, [prompt])[0].tolist()) == pytest.approx(wanted, abs=SUMS)


def test_what_is_wrong_is_said():
    for facts in ([[(1,)]], [[(1,), ()]]):
        with pytest.raises(GuidedError, match="no path of phrases"):
            KnowledgeTrie(facts)
    assert len(KnowledgeTrie(FACTS)) == 7 and len(KnowledgeTrie([])) == 0
    with pytest.raises(VocabularyError, match="the token 4, and the model scores 4 ids"):
        Stack([KnowledgeInfused(KnowledgeTrie(FACTS))]).over(TableModel.random(0, width=4))
