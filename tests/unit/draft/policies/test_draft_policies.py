"""Policies on rounds made up for the purpose: what they choose, and that they come back."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import guided
from guided.draft import (
    EXP3,
    UCB,
    Chosen,
    Confidence,
    Context,
    Fixed,
    Goodput,
    Heuristic,
    Observed,
    Round,
    chain,
    speculate,
)
from guided.errors import GuidedError
from guided.infer.chance import chance_of
from guided.lm.model import Tree
from guided.lm.table import TableModel


def played(policy, rounds, accepts, seconds, batch=1):
    """Let a policy play; how often it chose each length."""
    chosen = Counter()
    for at in range(rounds):
        budgets = [policy.budget(row, batch) for row in range(batch)]
        chosen[budgets[0]] += 1
        policy.saw(
            [
                Round(row, n, accepts(n, at), accepts(n, at) + 1, batch, 0.0, seconds(sum(budgets) + batch))
                for row, n in enumerate(budgets)
            ]
        )
    return chosen


def test_heuristic_counts_as_transformers_does():
    policy = Heuristic(5)
    policy.saw([Round(0, 5, 5, 6, 2, 0.0, 1.0), Round(1, 5, 4, 5, 2, 0.0, 1.0)])
    assert (policy.budget(0, 2), policy.budget(1, 2), policy.budget(2, 2)) == (7, 4, 5)
    for _ in range(9):
        policy.saw([Round(1, 4, 0, 1, 1, 0.0, 1.0)])
    assert policy.budget(1, 1) == 1
    policy.saw([Round(1, 0, 0, 1, 1, 0.0, 1.0)])
    assert policy.budget(1, 1) == 1
    policy.leave([0])
    assert policy.budget(0, 2) == 5


@pytest.mark.parametrize("best", [0, 2, 8])
@pytest.mark.parametrize("make", [lambda reward: UCB(reward=reward), lambda reward: EXP3(0, reward=reward)])
def test_bandits_find_the_best_length_and_still_try_the_others(make, best):
    policy = make(lambda one, longest: 0.9 if one.drafted == best else 0.3)
    chosen = played(policy, 2000, lambda n, at: 0, lambda positions: 1.0)
    assert chosen.most_common(1)[0][0] == best
    assert chosen[best] > 1000
    assert all(chosen[n] >= 5 for n in policy.lengths)


def test_ucb_counts_each_arm_by_itself():
    """One count for all arms would make all bonuses equal, and the first two rounds decide for good."""
    policy = UCB((1, 2), reward=lambda one, longest: float(one.accepted))
    lucky_first = played(policy, 400, lambda n, at: int(n == 1) if at < 2 else int(n == 2), lambda positions: 1.0)
    assert lucky_first[2] > 300


def test_lengths_are_checked():
    for wrong in ([1], [2, 2], [-1, 3]):
        with pytest.raises(GuidedError):
            UCB(wrong)
    with pytest.raises(GuidedError):
        Goodput([0, 1])


def test_goodput_drafts_where_positions_are_free():
    policy = Goodput((2, 4, 8))
    chosen = played(policy, 300, lambda n, at: n // 2, lambda positions: 1.0)
    assert chosen[8] > 200


def test_goodput_drafts_less_in_large_batches():
    """A pass costs the same up to 64 positions, then in proportion."""

    def cost(positions):
        return max(1.0, positions / 64)

    single = played(Goodput((2, 4, 8)), 300, lambda n, at: n // 2, cost).most_common(1)[0][0]
    large = played(Goodput((2, 4, 8)), 300, lambda n, at: n // 2, cost, batch=64).most_common(1)[0][0]
    assert single == 8
    assert large == 0


def test_goodput_stops_drafting_in_vain_and_costs_little():
    policy = Goodput()
    spent = 0.0
    for _ in range(1000):
        n = policy.budget(0, 1)
        seconds = 1.0 + 0.02 * n
        spent += seconds
        policy.saw([Round(0, n, 0, 1, 1, 0.0, seconds)])
    assert spent < 1.05 * 1000


def test_goodput_comes_back_when_drafts_are_accepted_again():
    policy = Goodput((4, 8))
    played(policy, 300, lambda n, at: 0, lambda positions: 1.0 + 0.05 * positions)
    chosen = played(policy, 2000, lambda n, at: n, lambda positions: 1.0 + 0.01 * positions)
    assert chosen[4] + chosen[8] > 1000


def told(policy, rounds, chosen, seconds, drafted=None):
    """Like `played`, for one row whose accepted nodes are named."""
    plays = Counter()
    for at in range(rounds):
        n = policy.budget(0, 1)
        plays[n] += 1
        fed = n if drafted is None else min(n, drafted)
        taken = tuple(node for node in chosen if node < fed)
        policy.saw([Round(0, fed, len(taken), len(taken) + 1, 1, 0.0, seconds(at, fed), taken)])
    return plays


def test_goodput_learns_of_fewer_nodes_from_rounds_with_more():
    """Nothing beyond the second node is accepted, so four give what sixteen do, and cost less."""
    plays = told(Goodput((4, 16)), 300, (0, 1), lambda at, n: 1.0 + 0.03 * n)
    assert plays[4] > 270
    free = told(Goodput((4, 16)), 300, (0, 1, 9, 12), lambda at, n: 1.0)
    assert free[16] > 280


def test_goodput_does_not_try_what_cannot_come_to_mind():
    assert told(Goodput((4, 8, 16, 32)), 15, (0, 1, 2), lambda at, n: 1.0 + 0.001 * n, drafted=5)[32] == 0


def test_goodput_is_not_misled_by_rounds_that_were_interrupted():
    def seconds(at, n):
        return (1.0 + 0.002 * n) * (20.0 if at % 7 == 3 else 1.0)

    plays = told(Goodput((4, 8, 16)), 600, (0, 1, 5, 9, 12), seconds)
    assert plays[16] > 540


def test_forced_tokens_are_no_gain():
    policy = Goodput((4, 8))
    for _ in range(300):
        n = policy.budget(0, 1)
        policy.saw([Round(0, n, n, n + 1, 1, 0.0, 1.0 + 0.02 * n, ())])
    assert policy.budget(0, 1) == 0


def test_rounds_say_which_accepted_nodes_were_a_choice():
    """The whole text is drafted and accepted; where it is weighed forced tokens are drafted as well."""
    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    constraint = guided.compile(guided.regex("[ab]aa[ab]aa[ab]"), vocabulary)
    model = TableModel(lambda tokens: np.log([0.8, 0.15, 0.05]), width=3, eos_ids=[2])

    class Spy(Fixed):
        def saw(self, rounds):
            seen.extend(rounds)

    class Text:
        def draft(self, chance, contexts):
            return [chain((0,) * 7) for _ in contexts]

        def learn(self, observed):
            pass

        def leave(self, rows):
            pass

    seen = []
    speculate(0, model, [[]], [constraint], Text(), greedy=True, policy=Spy(8))
    (one,) = seen
    # After the first a and the two forced ones: a choice, two forced, a choice, and the end.
    assert one.accepted == 4 and one.chosen == (0, 3) and one.gained == 2
    assert (one.first(1), one.first(3), one.first(4)) == (1, 1, 2)
    assert Round(0, 3, 2, 3, 1, 0.0, 1.0).first(2) is None


def test_confidence_separates_what_is_accepted():
    confidence = Confidence()
    confidence.saw([(0.9, True), (0.8, True), (0.7, True), (0.3, False), (0.2, False)])
    assert confidence.threshold == 0.4
    confidence.saw([(0.25, False)])
    assert 0.3 < confidence.threshold <= 0.7
    fresh = Confidence()
    fresh.saw([(0.5, True)] * 20)
    assert fresh.threshold == 0.4


class Says:
    """Always drafts one token."""

    def __init__(self, token):
        self.token = token
        self.rows_left = []

    def draft(self, chance, contexts):
        return [chain([self.token]) for _ in contexts]

    def learn(self, observed):
        pass

    def leave(self, rows):
        self.rows_left += rows


def test_the_drafter_whose_tokens_are_accepted_is_chosen():
    drafters = [Says(0), Says(1), Says(2)]
    chosen = Chosen(*drafters)
    chance = chance_of(0)
    for _ in range(300):
        contexts = [Context(row, [0], 1, None, 0, 1) for row in range(2)]
        proposals = chosen.draft(chance, contexts)
        chosen.learn(
            [
                Observed(context, proposal, (0,) if proposal.token(0) == 1 else (), (1,), Tree((0,), (-1,)), None, None)
                for context, proposal in zip(contexts, proposals, strict=True)
            ]
        )
    assert sum(chosen.counts) == 600
    assert chosen.counts[1] > 450
    assert min(chosen.counts) >= 2
    chosen.leave([0])
    assert all(drafter.rows_left == [0] for drafter in drafters)
    with pytest.raises(GuidedError):
        Chosen()
