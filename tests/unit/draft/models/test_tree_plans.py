"""Planned trees against all trees there are, and what they promise against what is accepted."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import guided
from guided.draft import (
    Context,
    Drawn,
    Fixed,
    Group,
    Model,
    OptTree,
    Planned,
    fastest_tree,
    measure_ranks,
    optimal_tree,
    speculate,
)
from guided.draft.acceptance.verify import Sampled
from guided.errors import GuidedError, UnsupportedError
from guided.infer.chance import chance_of
from guided.infer.distribution import TokenDistribution
from guided.lm.table import TableModel
from guided.testing.enumeration import enumerate_choices
from tests.amounts import some
from tests.tolerances import SUMS


@cache
def forests(nodes, depth, ranks):
    """All ways to lay out exactly so many nodes below one: a tuple of forests, one for each child."""
    if not nodes:
        return [()]
    if not depth or not ranks:
        return []
    return [
        (below, *others)
        for size in range(1, nodes + 1)
        for below in forests(size - 1, depth - 1, WIDEST)
        for others in forests(nodes - size, depth, ranks - 1)
    ]


WIDEST = 3


def worth(forest, p):
    return sum(p[rank] * (1 + worth(below, p)) for rank, below in enumerate(forest))


def laid_out(plan, ranks=()):
    return tuple(laid_out(plan, (*ranks, rank)) for rank in range(plan.shape.children.get(ranks, 0)))


def size(forest):
    return sum(1 + size(below) for below in forest)


def levels(forest):
    return max((1 + levels(below) for below in forest), default=0)


@pytest.mark.parametrize("seed", range(6))
def test_plans_are_the_best_of_all_trees(seed):
    """Also where later children are accepted more often than earlier ones, or some never."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(WIDEST + 1))[:WIDEST]
    p = [np.sort(p)[::-1], p, p * [0, 1, 1]][seed % 3]
    for nodes in range(1, 7):
        for depth in range(1, 5):
            plan = optimal_tree(p, nodes, depth)
            forest = laid_out(plan)
            best = max(worth(each, p) for n in range(nodes + 1) for each in forests(n, depth, WIDEST))
            assert plan.accepted == pytest.approx(best, abs=SUMS)
            assert worth(forest, p) == pytest.approx(best, abs=SUMS)
            assert size(forest) == plan.nodes <= nodes
            assert levels(forest) == plan.shape.depth <= depth


def test_the_fastest_tree_weighs_nodes_and_levels():
    p = (0.6, 0.2, 0.1)
    free = fastest_tree(p, lambda n: 1.0, 0.0, nodes=(1, 4, 6), depth=6)
    assert free.nodes == 6
    assert free.tokens_per_second == pytest.approx(1 + optimal_tree(p, 6, 6).accepted, abs=SUMS)
    for nodes_cost, level_cost in ((0.05, 0.02), (0.3, 0.0), (0.0, 0.5), (2.0, 2.0)):
        found = fastest_tree(p, lambda n, c=nodes_cost: 1.0 + c * n, level_cost, nodes=range(1, 7), depth=4)
        rates = [
            (1 + worth(each, p)) / (1 + nodes_cost * size(each) + level_cost * levels(each))
            for n in range(1, 7)
            for each in forests(n, 4, WIDEST)
        ]
        assert found.tokens_per_second == pytest.approx(max(rates), abs=SUMS)
    assert fastest_tree(p, lambda n: 1.0, 0.5).shape.depth < free.shape.depth


def test_what_are_no_probabilities_is_refused():
    for p in ((), (0.7, 0.4), (-0.1, 0.5)):
        with pytest.raises(GuidedError, match="no probabilities"):
            optimal_tree(p, 3, 2)
    with pytest.raises(GuidedError, match="0 levels"):
        optimal_tree((0.5,), 3, 0)


WIDTH = 4
P, Q = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.35, 0.15, 0.1])


def memoryless(law, eos_ids=()):
    return TableModel(lambda tokens: np.log(law), width=WIDTH, eos_ids=eos_ids)


def accepted_ranks(ranks):
    """By enumeration of drawing and verification: how often each child is the accepted one."""
    found = np.zeros(ranks)

    def run(chance):
        left, tokens = Q.copy(), []
        for _ in range(ranks):
            tokens.append(chance.index(left))
            left[tokens[-1]] = 0.0
        group = Group(tuple(tokens), Drawn.WITHOUT_REPLACEMENT, Q)
        token = Sampled(TokenDistribution(np.log(P))).take(chance, group)
        return None if token is None else tokens.index(token)

    for probability, rank in enumerate_choices(run):
        if rank is not None:
            found[rank] += probability
    return found


def test_plans_promise_what_is_accepted():
    """Where children of a rank are accepted equally often everywhere, exactly: a round of a real draft, enumerated."""
    p = accepted_ranks(2)
    plan = optimal_tree(p, 3, 2)
    assert plan.shape.children == {(): 2, (0,): 1}
    mean = 0.0

    def run(chance):
        _, counts = speculate(
            chance, memoryless(P), [[0]], [None], Model(memoryless(Q), plan.shape), max_tokens=4, policy=Fixed(3),
            progress=stop,
        )  # fmt: skip
        return counts.accepted

    def stop(counts):
        raise _Stopped(counts.accepted)

    def first_round(chance):
        try:
            return run(chance)
        except _Stopped as stopped:
            return stopped.accepted

    for probability, accepted in enumerate_choices(first_round):
        mean += probability * accepted
    assert mean == pytest.approx(plan.accepted, abs=SUMS)


class _Stopped(Exception):
    def __init__(self, accepted):
        self.accepted = accepted


def test_ranks_are_measured():
    """Within five standard errors of what enumeration gives; by rule only the target's best token counts."""
    exact, n = accepted_ranks(3), some(3000, 3)
    found = measure_ranks(0, memoryless(P), memoryless(Q), [[0]] * 30, [None] * 30, ranks=3, max_tokens=n // 20)
    assert np.abs(np.array(found) - exact).max() < 5 * (0.25 / (n / 2)) ** 0.5
    assert measure_ranks(0, memoryless(P), memoryless(Q), [[0]], [None], ranks=4, max_tokens=9, greedy=True)[3] == 1.0
    with pytest.raises(GuidedError, match="nothing was drafted"):
        measure_ranks(0, memoryless(P), memoryless(Q), [[0]], [None], max_tokens=1)


def value(model, prompt, tokens, constraint):
    """The draft's probability of tokens after a prompt, under a constraint."""
    state, found = None if constraint is None else constraint.start, 1.0
    for n, token in enumerate(tokens):
        p = np.exp(model.logprobs((*prompt, *tokens[:n])))
        if constraint is not None:
            p = np.where([constraint.advance(state, t) != 0 for t in range(WIDTH)], p, 0.0)
            state = constraint.advance(state, token)
        found *= p[token] / p.sum() if p[token] else 0.0
    return found


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_optimal_trees_of_a_draft_are_the_best_of_all(seed, constrained):
    """Against all sets of nodes that hold their parents, and in the order that says how likely nodes are."""
    vocabulary = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
    constraint = guided.compile(guided.regex("(ab|ba|aa)?b*"), vocabulary) if constrained else None
    small = TableModel.random(seed, width=WIDTH, eos_ids=[3])
    depth, nodes = 3, 4
    drafter = Model(small, OptTree(depth), by_rule=True)
    start = 0 if constraint is None else constraint.start
    tree = drafter.draft(None, [Context(0, [1, 0], 2, constraint, start, nodes)])[0].tree
    paths = {tuple(tree.tokens[i] for i in tree.path(node)) for node in range(len(tree))}
    assert len(paths) == len(tree) <= nodes

    @cache
    def known(path):
        return value(small, [1, 0], path, constraint)

    grown = {frozenset()}
    for _ in range(nodes):
        grown = {
            chosen | {(*path, token)}
            for chosen in grown
            for path in ((), *chosen)
            if len(path) < depth and path[-1:] != (3,)
            for token in range(WIDTH)
        }  # smaller sets are those that add a node twice
    best = max(sum(map(known, chosen)) for chosen in grown)
    assert sum(map(known, paths)) == pytest.approx(best, abs=SUMS)


def test_optimal_trees_are_not_drawn():
    with pytest.raises(UnsupportedError, match="drops nodes"):
        Model(memoryless(Q), OptTree())


def test_plans_of_models_without_that_many_tokens():
    """A node with fewer possible children than planned has those there are."""
    narrow = TableModel(lambda tokens: np.array([-np.inf, -0.5, -0.5, -np.inf]), width=WIDTH, eos_ids=[])
    drafter = Model(narrow, Planned({(): 4, (1,): 1}))
    tree = drafter.draft(chance_of(0), [Context(0, [1, 0], 2, None, 0, 9)])[0].tree
    assert len(tree) == 3
    assert sorted(tree.parents) == [-1, -1, 1]
