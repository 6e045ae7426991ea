"""Kernels of `mcmc` as whole transition matrices, every random choice of the production code enumerated."""

from __future__ import annotations

import numpy as np
import pytest

from guided.infer.potentials.anything import Anything
from guided.infer.sequences.exploration import Exploration
from guided.infer.sequences.mcmc import Cut, mcmc, moved, visited
from tests.amounts import crossed, some
from tests.tolerances import DOUBLE, SUMS
from tests.twin.enumeration import enumerate_choices
from tests.twin.tiny_problems import PATTERNS, VOCABULARY, Problem, problem, soft_problem


def kernel(tiny, cut):
    """``P[x, y]``: the probability to be at y after one move from x; and the target."""
    target = tiny.target()
    number = {tokens: i for i, tokens in enumerate(target)}
    matrix = np.zeros((len(target), len(target)))
    exploration = Exploration(*tiny.arguments, max_tokens=tiny.max_tokens)
    for tokens, i in number.items():
        at = visited(exploration, tokens)
        for probability, after in enumerate_choices(lambda chance, at=at: moved(exploration, chance, [at], cut)[0]):
            matrix[i, number[exploration.trie.tokens(after[0])]] += probability
    return matrix, np.array(list(target.values()))


@pytest.mark.parametrize(("cut", "make", "pattern"), crossed(Cut, [problem, soft_problem], PATTERNS, share=6))
def test_the_target_is_invariant_and_moves_are_reversible(cut, make, pattern):
    for seed in range(some(2, 4)):
        matrix, target = kernel(make(pattern, seed=seed), cut)
        assert len(target) >= 2
        np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=DOUBLE)
        np.testing.assert_allclose(target @ matrix, target, atol=SUMS)
        flow = target[:, None] * matrix
        np.testing.assert_allclose(flow, flow.T, atol=SUMS)


@pytest.mark.parametrize("cut", Cut)
def test_every_sequence_can_be_reached(cut):
    matrix, target = kernel(problem("a*b", seed=1), cut)
    far = np.linalg.matrix_power(matrix, 4000)
    # What 4000 moves leave of the start; they round by 1e-12 together.
    np.testing.assert_allclose(far, np.repeat(target[None], len(target), 0), atol=1e-6)


def test_no_steps_are_masked_sampling():
    tiny = problem("[ab]*", seed=4, max_tokens=3)
    found = {}
    for probability, samples in enumerate_choices(
        lambda chance: mcmc(chance, *tiny.arguments, n=1, max_tokens=3, steps=0)
    ):
        tokens = samples.particles[0].tokens
        found[tokens] = found.get(tokens, 0) + probability
    assert found == pytest.approx(tiny.masked(), abs=DOUBLE)


def test_restarts_without_a_constraint_are_always_accepted():
    tiny = Problem(problem("a").model, Anything(VOCABULARY), 50)
    samples = mcmc(0, *tiny.arguments, n=50, max_tokens=50, steps=4, cut=Cut.RESTART)
    assert samples.acceptance == 1.0
