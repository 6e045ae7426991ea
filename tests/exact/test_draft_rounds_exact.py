"""One round of every draft, and of every two in a union, keeps the target's law and weights, whatever the budget.

All random choices of the real drafts and of the real verification are enumerated for one round.  What it leaves open is
the target's own, and is pushed on by its law in closed form, so that trees of several nodes can be summed over.  The
law of whole texts follows: each of their rounds begins at some text, and what is drafted there keeps the law.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from guided.draft import Beam, Chain, Dynamic, Fixed, Independent, Model, Union, speculate
from guided.draft.drafter import needs_of
from guided.draft.loop.rows import Row
from guided.draft.masks import RowMasks
from guided.errors import UnsupportedError
from guided.lm.table import TableModel
from guided.testing.enumeration import enumerate_choices
from tests.amounts import crossed, each
from tests.tolerances import SUMS
from tests.twin.tiny_drafts import CONSTRAINT, END, EXIT, PROMPT, SMALL, TARGET, WIDTH, drafts, with_states

FIRST = 0
"""What the target says after the prompt, for sure: the round that is looked at begins after it."""
MAX_TOKENS = 6
"""The first token, four drafted ones and the one drawn after them."""


def with_holes(model, seed):
    """The model without one token at each place, and sure of the first one."""

    def logprobs(tokens):
        row = np.array(model.logprobs(tokens))
        row[np.random.default_rng([seed, *tokens]).integers(WIDTH)] = -np.inf
        if list(tokens) == PROMPT:
            row = np.where(np.arange(WIDTH) == FIRST, 0.0, -np.inf)
        return row - np.logaddexp.reduce(row)

    return with_states(TableModel(logprobs, width=WIDTH, eos_ids=[END]), EXIT.logprobs, EXIT.logprobs)


LAST = with_holes(TARGET, 2)
"""The target of the rounds."""
SPARSE = with_holes(SMALL, 3)
"""A draft model for them."""

TREES = {
    "one": lambda: Model(SPARSE, Chain(1)),
    "chain of 4": lambda: Model(SPARSE, Chain(4)),
    "dynamic, of all tokens": lambda: Model(SMALL, Dynamic(0.25, depth=2)),
    "beam": lambda: Model(SPARSE, Beam(2, 2)),
}
EVERY = drafts(LAST, SPARSE) | TREES


class OneRound(Exception):
    """The round is over."""


class Once:
    """A drafter that has learned from some texts, and now drafts for one round only."""

    def __init__(self, drafter, constraint):
        self.drafter = drafter
        self.needs = needs_of(drafter)
        self.drafters = (drafter,)
        self.lines = getattr(drafter, "lines", False)
        self.nodes = 0
        speculate(0, LAST, [PROMPT] * 4, [constraint] * 4, drafter, max_tokens=6, policy=Fixed(4))

    def draft(self, chance, contexts):
        found = self.drafter.draft(chance, contexts)
        self.nodes = max(self.nodes, *map(len, found))
        return found

    def learn(self, observed):
        raise OneRound

    def leave(self, rows):
        self.drafter.leave(rows)


class Masked:
    """The target under a constraint in closed form."""

    def __init__(self, constraint):
        self.constraint = constraint
        self.masks = RowMasks(constraint, end_in_time=True)
        self._known = {}

    def after(self, text):
        """The law of the next token, and the mass that the constraint leaves of the model's."""
        if text not in self._known:
            state = self.masks.start
            for token in text:
                state = self.masks.advance(state, token)
            allowed = self.masks.allowed(state, MAX_TOKENS - len(text), WIDTH)
            p = np.exp(LAST.logprobs((*PROMPT, *text))) * (1.0 if allowed is None else allowed)
            self._known[text] = p / p.sum(), p.sum()
        return self._known[text]

    def pushed_on(self, found):
        """The law of whole texts that follows from a law of their beginnings."""
        whole, open_ = Counter(), Counter(found)
        for length in range(MAX_TOKENS + 1):
            for text in [text for text in open_ if len(text) == length]:
                mass = open_.pop(text)
                if length == MAX_TOKENS or text[-1:] == (END,):
                    whole[text] += mass
                else:
                    for token in np.flatnonzero(self.after(text)[0]):
                        open_[(*text, int(token))] += mass * self.after(text)[0][token]
        return whole

    def log_weight(self, text):
        return sum(math.log(self.after(text[:n])[1]) for n in range(len(text)))


MASKED = {False: Masked(None), True: Masked(CONSTRAINT)}
PLAIN = {kind: masked.pushed_on({(): 1.0}) for kind, masked in MASKED.items()}


def check_round(monkeypatch, make, constrained, budget, *, weigh=False, pieces=2, **settings):
    """The law after one round, and each outcome's weight; the most nodes of a tree that was verified."""
    rows = []

    class Kept(Row):
        """A row that is looked at when the round is over."""

        def __init__(self, *arguments):
            super().__init__(*arguments)
            rows[:] = [self]

    monkeypatch.setattr(importlib.import_module("guided.draft.loop.speculate"), "Row", Kept)
    masked = MASKED[constrained]
    drafter = Once(make(), masked.constraint)

    def run(chance):
        with suppress(OneRound):
            speculate(
                chance, LAST, [PROMPT], [masked.constraint], drafter, max_tokens=MAX_TOKENS, policy=Fixed(budget),
                weigh=weigh, **settings,
            )  # fmt: skip
        return tuple(rows[0].tokens[len(PROMPT) :]), rows[0].logw

    found = Counter()
    for probability, (text, logw) in enumerate_choices(run, pieces=pieces):
        found[text] += probability
        if weigh:
            assert logw == pytest.approx(masked.log_weight(text), abs=SUMS)
    assert sum(found.values()) == pytest.approx(1.0, abs=SUMS)
    whole, plain = masked.pushed_on(found), PLAIN[constrained]
    assert sum(abs(whole[text] - plain[text]) for text in {*whole, *plain}) / 2 < 1e-9
    return drafter.nodes


BUDGETS = (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("budgets", [(3,), pytest.param(BUDGETS, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", each(EVERY, 3))
def test_a_round_of_each_draft(monkeypatch, name, budgets):
    """Free, with forced tokens taken, and weighed."""
    for budget in budgets:
        drafted = [
            check_round(monkeypatch, EVERY[name], constrained, budget, weigh=weigh)
            for constrained, weigh in ((False, False), (True, False), (True, True))
        ]
        assert 0 < max(drafted) <= budget


@pytest.mark.parametrize("name", each(["chain of 4", "chain, confidence", "stopped by a head", "early exit"], 2))
def test_a_round_verified_by_block(monkeypatch, name):
    """Lines that end anywhere, beside forced tokens where texts are weighed."""
    for budget in (2, 4):
        for constrained, weigh in ((False, False), (True, False), (True, True)):
            check_round(monkeypatch, EVERY[name], constrained, budget, weigh=weigh, by_block=True)


def test_lines_by_chance_are_not_verified_by_block(monkeypatch):
    """Trees that are lines only for some outcomes are refused, and why: verified by block they lose the law."""
    with pytest.raises(UnsupportedError, match="drafts trees"):
        check_round(monkeypatch, EVERY["dynamic"], False, 4, by_block=True)
    monkeypatch.setattr(Model, "lines", True)
    with pytest.raises(AssertionError):
        check_round(monkeypatch, EVERY["dynamic"], False, 4, by_block=True)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_round_of_three_independent_sequences(monkeypatch, budget):
    for constrained in (False, True):
        check_round(monkeypatch, lambda: Model(SPARSE, Independent(3, 2)), constrained, budget, weigh=constrained)


def test_trees_of_several_nodes_are_verified(monkeypatch):
    """The rounds above are not those of single tokens."""
    for name in each(("chain of 4", "dynamic", "constant branching", "beam", "recycling", "medusa", "independent"), 3):
        assert check_round(monkeypatch, EVERY[name], False, 4) == 4


@pytest.mark.parametrize(
    ("first", "second"),
    crossed(
        ["one", "lookup", "dynamic"],
        ["dynamic", "dynamic, of all tokens", "beam", "chain, confidence", "hydra"],
        share=6,
    ),
)
def test_a_round_of_unions(monkeypatch, first, second):
    """What the first draft leaves of the budget must not choose among the second one's outcomes."""
    for budget in (3, 4):
        check_round(monkeypatch, lambda: Union(EVERY[first](), EVERY[second]()), False, budget)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", EVERY)
def test_a_round_of_every_union_of_two(monkeypatch, first):
    for second, budget in itertools.product(EVERY, BUDGETS):
        for constrained in (False, True):
            union = lambda second=second: Union(EVERY[first](), EVERY[second]())  # noqa: E731
            check_round(monkeypatch, union, constrained, budget, weigh=constrained)
