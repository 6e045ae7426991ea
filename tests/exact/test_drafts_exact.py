"""Every draft keeps the law of the target: all random choices of drafting and verification summed over."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import guided
from guided.draft import (
    Aggressive,
    Beam,
    BestFirst,
    Branching,
    Chain,
    Confidence,
    Datastore,
    Dynamic,
    Fixed,
    ForcedBytes,
    Model,
    NGrams,
    PromptLookup,
    Recycling,
    TriGrams,
    Union,
    speculate,
)
from guided.lm.table import TableModel
from guided.testing.enumeration import enumerate_choices

WIDTH, END = 4, 3
VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[END])
TARGET = TableModel.random(5, width=WIDTH, eos_ids=[END])
SMALL = TableModel.random(6, width=WIDTH, eos_ids=[END])
CONSTRAINT = guided.compile(guided.regex("(ab|ba|aa)?b*"), VOCABULARY)
PROMPT = [0, 1, 0, 2, 1, 0]

DRAFTS = {
    "lookup": PromptLookup,
    "aggressive": Aggressive,
    "recycling": Recycling,
    "tri-grams": lambda: TriGrams([PROMPT]),
    "n-grams": lambda: BestFirst(NGrams(), floor=0.0),
    "datastore": lambda: Datastore.of([PROMPT, [1, 1, 1, 3]]),
    "guessers": lambda: BestFirst(ForcedBytes(), PromptLookup(), NGrams(), Recycling(), floor=0.0),
    "chain": lambda: Model(SMALL, Chain(2)),
    "chain, confidence": lambda: Model(SMALL, Chain(2, Confidence(0.3))),
    "constant branching": lambda: Model(SMALL, Branching((2, 1))),
    "dynamic": lambda: Model(SMALL, Dynamic(0.3, depth=2)),
    "model by rule": lambda: Model(SMALL, Branching((2, 2)), by_rule=True),
    "the target itself": lambda: Model(TARGET, Branching((2, 1))),
    "union": lambda: Union(PromptLookup(1), Model(SMALL, Chain(1))),
    "union of two models": lambda: Union(Model(SMALL, Branching((2,))), Model(TARGET, Chain(1))),
}


def law(make, constraint, *, model=TARGET, max_tokens=3, budget=3):
    found = Counter()

    def run(chance):
        (text,), statistics = speculate(
            chance, model, [PROMPT], [constraint], make(), max_tokens=max_tokens, policy=Fixed(budget)
        )
        assert statistics.tokens == len(text.tokens)
        return text.tokens

    for probability, tokens in enumerate_choices(run):
        found[tokens] += probability
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-9)
    return found


def distance(left, right):
    return sum(abs(left[text] - right[text]) for text in {*left, *right}) / 2


@pytest.fixture(scope="module")
def plain():
    return {constraint: law(lambda: None, constraint) for constraint in (None, CONSTRAINT)}


@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("constraint", [None, CONSTRAINT], ids=["free", "constrained"])
def test_law_is_kept(name, constraint, plain):
    assert distance(plain[constraint], law(DRAFTS[name], constraint)) < 1e-9


@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("name", ["constant branching", "dynamic", "union"])
def test_law_is_kept_where_budgets_cut_trees(name, budget, plain):
    assert distance(plain[CONSTRAINT], law(DRAFTS[name], CONSTRAINT, budget=budget)) < 1e-9


def test_models_without_trees_take_chains(plain):
    model = TableModel(lambda tokens: TARGET.logprobs(tokens), width=WIDTH, eos_ids=[END])
    model.can = type(model.can)(crop=True, tree=False)
    for name in ("chain", "constant branching", "guessers"):
        assert distance(plain[CONSTRAINT], law(DRAFTS[name], CONSTRAINT, model=model)) < 1e-9


def test_stochastic_beams_keep_the_law(plain):
    """Their keys are continuous: a chi-square test of 20,000 texts, at one in a million."""
    drafter = Model(SMALL, Beam(3, 2))
    rng = np.random.default_rng(0)
    found = Counter()
    n = 20_000
    for _ in range(n // 500):
        texts, _ = speculate(rng, TARGET, [PROMPT] * 500, [CONSTRAINT] * 500, drafter, max_tokens=3, policy=Fixed(6))
        found.update(text.tokens for text in texts)
    expected = {text: n * p for text, p in plain[CONSTRAINT].items() if p > 0}
    assert set(found) <= set(expected)
    common = [text for text, count in expected.items() if count >= 5]
    square = sum((found[text] - expected[text]) ** 2 / expected[text] for text in common)
    # Wilson and Hilferty's approximation of the quantile at 1 - 1e-6 (4.753 standard deviations).
    k = len(common) - 1
    assert square < k * (1 - 2 / (9 * k) + 4.753 * (2 / (9 * k)) ** 0.5) ** 3
    assert len(common) > 4


def test_a_draft_that_lies_is_found_out(plain):
    """Drafts that claim another distribution than the one they come from are found out by the enumeration."""

    class Liar(Model):
        """Claims to draw evenly."""

        def draft(self, chance, contexts):
            proposals = super().draft(chance, contexts)
            for proposal in proposals:
                for groups in proposal.groups.values():
                    for group in groups:
                        object.__setattr__(group, "probabilities", np.full(WIDTH, 1 / WIDTH))
            return proposals

    assert distance(plain[None], law(lambda: Liar(SMALL, Chain(2)), None)) > 1e-3
