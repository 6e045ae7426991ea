"""Speculation keeps the target's law: every random choice of drafts and verification summed over, on tiny models."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import guided
from guided.draft import Drawn, Fixed, Group, Proposal, speculate
from guided.draft.acceptance.verify import Sampled, independence_factor
from guided.infer.distribution import TokenDistribution
from guided.lm.table import TableModel
from guided.testing.enumeration import enumerate_choices
from tests.amounts import crossed, each
from tests.tolerances import DOUBLE, SUMS

WIDTH, END = 4, 3
VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[END])
MODEL = TableModel.random(5, width=WIDTH, eos_ids=[END])
CONSTRAINT = guided.compile(guided.regex("(ab|ba|aa)?b*"), VOCABULARY)


class Anything:
    """Drafts trees of every kind of group from a distribution that has nothing to do with the model."""

    def __init__(self, kinds, depth=1, proposal=(0.5, 0.2, 0.2, 0.1)):
        self.kinds = kinds
        self.depth = depth
        self.proposal = np.array(proposal)

    def draft(self, chance, contexts):
        return [self.tree(chance, context) for context in contexts]

    def tree(self, chance, context):
        found = Proposal()
        nodes = [-1]
        for _ in range(self.depth):
            following = []
            for node in nodes:
                for kind, n in self.kinds:
                    following += found.add(node, self.group(chance, kind, n))
            nodes = following[:1]
        return found

    def group(self, chance, kind, n):
        if kind is Drawn.BY_RULE:
            return Group(tuple(range(WIDTH))[-n:])
        left = self.proposal.copy()
        tokens = []
        for _ in range(n):
            tokens.append(chance.index(left))
            if kind is Drawn.WITHOUT_REPLACEMENT:
                left[tokens[-1]] = 0.0
        return Group(tuple(tokens), kind, self.proposal)

    def learn(self, observed):
        pass

    def leave(self, rows):
        pass


def law(drafter, constraint, max_tokens, model=MODEL, **settings):
    found = Counter()
    weights = Counter()

    def run(chance):
        (text,), statistics = speculate(
            chance, model, [[0]], [constraint], drafter, max_tokens=max_tokens, policy=Fixed(9), **settings
        )
        assert statistics.tokens == len(text.tokens)
        return text

    for probability, text in enumerate_choices(run):
        found[text.tokens] += probability
        weights[text.tokens] += probability * math.exp(text.logw or 0.0)
    assert sum(found.values()) == pytest.approx(1.0, abs=SUMS)
    return found, weights


def same(left, right):
    return max(abs(left[text] - right[text]) for text in {*left, *right})


ONE, TWO, ALL = 1, 2, 4
DRAFTS = {
    "rule": Anything([(Drawn.BY_RULE, TWO)]),
    "chain drawn": Anything([(Drawn.WITHOUT_REPLACEMENT, ONE)], depth=2),
    "without replacement": Anything([(Drawn.WITHOUT_REPLACEMENT, TWO)]),
    "independent": Anything([(Drawn.INDEPENDENTLY, TWO)]),
    "union": Anything([(Drawn.BY_RULE, ONE), (Drawn.WITHOUT_REPLACEMENT, ONE), (Drawn.INDEPENDENTLY, ONE)]),
    "rule, deep": Anything([(Drawn.BY_RULE, TWO)], depth=3),
}


@pytest.mark.parametrize(("draft", "constrained"), crossed(DRAFTS, [False, True], share=6))
def test_law_is_kept(draft, constrained):
    constraint = CONSTRAINT if constrained else None
    plain, plain_weights = law(None, constraint, 3, weigh=True)
    drafted, weights = law(DRAFTS[draft], constraint, 3, weigh=True)
    assert same(plain, drafted) < 1e-9
    assert same(plain_weights, weights) < 1e-9
    assert same(plain, law(DRAFTS[draft], constraint, 3)[0]) < 1e-9


def test_plain_law_is_masking_token_by_token():
    found, weights = law(None, CONSTRAINT, 3, weigh=True, end_in_time=False)
    for text, probability in found.items():
        expected, kept, state = 1.0, 1.0, CONSTRAINT.start
        for i, token in enumerate(text):
            p = np.exp(MODEL.logprobs((0, *text[:i])))
            allowed = [t for t in range(WIDTH) if CONSTRAINT.advance(state, t)]
            expected *= p[token] / p[allowed].sum()
            kept *= p[allowed].sum()
            state = CONSTRAINT.advance(state, token)
        assert probability == pytest.approx(expected, abs=DOUBLE)
        assert weights[text] == pytest.approx(expected * kept, abs=DOUBLE)


def test_weights_are_proper():
    """The weights of texts that end sum to the probability that the model meets the constraint in that length."""
    _, weights = law(DRAFTS["union"], CONSTRAINT, 3, weigh=True, end_in_time=False)
    for text, weight in weights.items():
        if text[-1] == END:
            logs = [MODEL.logprobs((0, *text[:i]))[token] for i, token in enumerate(text)]
            assert weight == pytest.approx(math.exp(sum(logs)), abs=DOUBLE)


@pytest.mark.parametrize("draft", each(DRAFTS, 2))
def test_greedy_is_the_same_tokens(draft):
    for seed in range(20):
        model = TableModel.random(seed, width=WIDTH, eos_ids=[END])
        for constraint in (None, CONSTRAINT):
            (plain,), _ = speculate(0, model, [[0]], [constraint], max_tokens=6, greedy=True)
            (drafted,), _ = speculate(seed, model, [[0]], [constraint], DRAFTS[draft], max_tokens=6, greedy=True)
            assert plain.tokens == drafted.tokens


def test_models_without_trees_take_lines():
    class Lines(TableModel):
        """No draft trees."""

    model = Lines(lambda tokens: MODEL.logprobs(tokens), width=WIDTH, eos_ids=[END])
    model.can = type(model.can)(crop=True, tree=False)
    for draft in ("union", "rule, deep", "chain drawn"):
        assert same(law(None, CONSTRAINT, 3)[0], law(DRAFTS[draft], CONSTRAINT, 3, model=model)[0]) < 1e-9


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_independence_factor(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        target, proposal = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        factor = independence_factor(target, proposal, n)
        share = np.minimum(proposal, target / factor).sum()
        assert 1 <= factor <= n
        assert 1 - (1 - share) ** n <= factor * share + 1e-12
        if n == 1:
            assert factor == 1


@pytest.mark.parametrize(("n", "drawn"), crossed([1, 2, 3], [Drawn.WITHOUT_REPLACEMENT, Drawn.INDEPENDENTLY]))
def test_one_node(drawn, n):
    """Also where proposal and target are equal, disjoint, or points."""
    rng = np.random.default_rng(7)
    laws = [rng.dirichlet(np.ones(4)) for _ in range(4)] + [np.array([1.0, 0, 0, 0]), np.array([0, 0.5, 0.5, 0])]
    for target in laws:
        for proposal in [*laws, target]:
            drafter = Anything([], proposal=proposal)

            def run(chance, target=target, proposal=proposal, drafter=drafter):
                group = drafter.group(chance, drawn, min(n, int((proposal > 0).sum())))
                with np.errstate(divide="ignore"):
                    left = Sampled(TokenDistribution(np.log(target)))
                token = left.take(chance, group)
                return left.draw(chance) if token is None else token

            found = np.zeros(4)
            for probability, token in enumerate_choices(run):
                found[token] += probability
            assert np.abs(found - target).max() < 1e-9


def test_batches_of_ragged_rows():
    """Rows in a batch are what they are alone: greedy, with drafts that fit some rows only."""
    model = TableModel.random(11, width=WIDTH, eos_ids=[END])
    prompts = [[0], [1, 2], [2], [0, 0, 1]]
    constraints = [CONSTRAINT, None, guided.compile(guided.regex("(a|b)*"), VOCABULARY), CONSTRAINT]
    drafter = DRAFTS["rule, deep"]
    together, statistics = speculate(0, model, prompts, constraints, drafter, max_tokens=9, greedy=True)
    for prompt, constraint, text in zip(prompts, constraints, together, strict=True):
        alone, _ = speculate(0, model, [prompt], [constraint], max_tokens=9, greedy=True)
        assert alone[0] == text
    assert statistics.row_passes <= statistics.tokens
