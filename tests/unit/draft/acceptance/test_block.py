"""Block verification by itself: what it keeps, in closed form and against verification token by token."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from guided.draft import Chain, Drawn, Fixed, Group, Independent, Model, Typical, speculate
from guided.draft.acceptance.block import verify_block
from guided.draft.acceptance.verify import Sampled
from guided.errors import GuidedError, UnsupportedError
from guided.infer.distribution import TokenDistribution
from guided.lm.table import TableModel
from guided.testing.enumeration import enumerate_choices
from tests.tolerances import SUMS

WIDTH = 3


class Laws:
    """A target and a draft over sequences of a length."""

    def __init__(self, seed, length, *, width=WIDTH, memory=True):
        rng = np.random.default_rng(seed)
        self.length, self.width = length, width
        places = [text for n in range(length) for text in itertools.product(range(width), repeat=n)]
        one = rng.dirichlet(np.ones(width), 2)
        self.target = {text: rng.dirichlet(np.ones(width)) if memory else one[0] for text in places}
        self.draft = {text: rng.dirichlet(np.ones(width)) if memory else one[1] for text in places}

    def lines(self):
        """All drafts with their probabilities, as groups and target laws."""
        for text in itertools.product(range(self.width), repeat=self.length):
            places = [text[:n] for n in range(self.length)]
            probability = np.prod([self.draft[place][token] for place, token in zip(places, text, strict=True)])
            groups = [
                Group((token,), Drawn.WITHOUT_REPLACEMENT, self.draft[place])
                for place, token in zip(places, text, strict=True)
            ]
            yield probability, text, groups, [TokenDistribution(np.log(self.target[place])) for place in places]


def kept_by_block(laws):
    """The law of how much is kept, by place."""
    found = np.zeros(laws.length + 1)
    for probability, _, groups, targets in laws.lines():
        for chance, kept in enumerate_choices(lambda chance, g=groups, t=targets: verify_block(chance, g, t)):
            found[kept.n] += probability * chance
    return found


def kept_one_by_one(laws):
    found = np.zeros(laws.length + 1)

    def run(chance, groups, targets):
        for n, (group, target) in enumerate(zip(groups, targets, strict=True)):
            if Sampled(target).take(chance, group) is None:
                return n
        return laws.length

    for probability, _, groups, targets in laws.lines():
        for chance, n in enumerate_choices(lambda chance, g=groups, t=targets: run(chance, g, t)):
            found[n] += probability * chance
    return found


def expected(law):
    return float(law @ np.arange(law.size))


def test_the_papers_example():
    """The draft holds the first of two tokens twice as likely as the other, the target half: 11/9, and not 10/9."""
    laws = Laws(0, 2, width=2)
    laws.target = dict.fromkeys(laws.target, np.array([1, 2]) / 3)
    laws.draft = dict.fromkeys(laws.draft, np.array([2, 1]) / 3)
    assert expected(kept_one_by_one(laws)) == pytest.approx(10 / 9, abs=SUMS)
    assert expected(kept_by_block(laws)) == pytest.approx(11 / 9, abs=SUMS)


@pytest.mark.parametrize("seed", range(4))
def test_a_prefix_is_kept_with_the_reach_of_its_end(seed):
    """The paper's lemma, which says how much is kept: by enumeration of the draws, and never less than one by one."""
    laws = Laws(seed, 3)
    found = kept_by_block(laws)
    at_least = np.zeros(laws.length + 1)
    for n in range(1, laws.length + 1):
        for text in itertools.product(range(WIDTH), repeat=n):
            reach, drawn = 1.0, 1.0
            for i, token in enumerate(text):
                p, q = laws.target[text[:i]][token], laws.draft[text[:i]][token]
                reach, drawn = min(1.0, reach * p / q), drawn * q
            at_least[n] += drawn * reach
    assert [found[n:].sum() for n in range(1, laws.length + 1)] == pytest.approx(at_least[1:], abs=SUMS)
    assert expected(found) > expected(kept_one_by_one(laws))
    one = Laws(seed, 1)
    assert kept_by_block(one) == pytest.approx(kept_one_by_one(one), abs=SUMS)


def test_equal_laws_are_kept_whole_and_disjoint_ones_refused():
    same = np.array([0.2, 0.5, 0.3])
    line = [Group((token,), Drawn.WITHOUT_REPLACEMENT, same) for token in (1, 0, 2)]
    found = enumerate_choices(lambda chance: verify_block(chance, line, [TokenDistribution(np.log(same))] * 3))
    assert sum(probability for probability, kept in found if kept.n == 3) == pytest.approx(1.0, abs=SUMS)
    with np.errstate(divide="ignore"):
        other = TokenDistribution(np.log([0.0, 0.0, 1.0]))
    for _, kept in enumerate_choices(lambda chance: verify_block(chance, line[:2], [other, other])):
        assert kept.n == 0
        assert kept.rest.weights.tolist() == [0, 0, 1]


def test_by_rule_a_point_is_what_was_drawn():
    """Tokens by rule are drafts from a law of one token: each is kept by the target's product up to it."""
    target = TokenDistribution(np.log([0.5, 0.3, 0.2]))
    law = np.zeros(3)
    line = [Group((0,)), Group((0,))]
    for probability, kept in enumerate_choices(lambda chance: verify_block(chance, line, [target, target])):
        law[kept.n] += probability
        if kept.rest is not None:
            assert kept.rest.weights[0] == 0
    assert law == pytest.approx([0.5, 0.25, 0.25], abs=SUMS)


def test_whole_runs_keep_more():
    """Expected accepted tokens of a run, over all draws of draft and verification."""
    target, small = (TableModel.random(seed, width=WIDTH, eos_ids=[]) for seed in (5, 6))
    means = []
    for by_block in (False, True):
        mean = 0.0

        def run(chance, by_block=by_block):
            _, statistics = speculate(
                chance, target, [[0]], [None], Model(small, Chain(2)), max_tokens=4, policy=Fixed(2), by_block=by_block
            )
            return statistics.accepted

        for probability, accepted in enumerate_choices(run):
            mean += probability * accepted
        means.append(mean)
    assert means[1] > means[0] + 0.01


def test_what_does_not_go_with_it_is_refused():
    model = TableModel.random(5, width=WIDTH, eos_ids=[])
    with pytest.raises(GuidedError, match="one by one"):
        speculate(0, model, [[0]], [None], lossy=Typical(), by_block=True)
    with pytest.raises(UnsupportedError, match="likeliest"):
        Model(model, Independent(2, 2), by_rule=True)


def test_independent_sequences_share_their_beginnings():
    """As many draws at a node as sequences came there; equal tokens are one node."""
    model = TableModel(lambda tokens: np.log([0.5, 0.3, 0.2]), width=WIDTH, eos_ids=[])
    seen = []

    class Looking(Model):
        def draft(self, chance, contexts):
            seen.extend(super().draft(chance, contexts))
            return seen[-len(contexts) :]

    drafter = Looking(model, Independent(4, 3))
    speculate(0, model, [[0]] * 8, [None] * 8, drafter, max_tokens=9, policy=Fixed(12))
    fewer = 0
    for proposal in seen:
        groups = [group for parent in proposal.groups.values() for group in parent]
        assert all(group.drawn is Drawn.INDEPENDENTLY for group in groups)
        if not groups:
            continue
        assert len(proposal.groups[-1][0].tokens) == 4
        for parent, (group,) in proposal.groups.items():
            for token in set(group.tokens):
                child = proposal.child(parent, token)
                if child in proposal.groups:
                    assert len(proposal.groups[child][0].tokens) == group.tokens.count(token)
        fewer += len(proposal) < 12
    assert fewer > 2
