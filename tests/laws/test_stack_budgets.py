"""Masks under a token budget of LALR grammars: all that they allow ends in time, in any order of asking."""

from __future__ import annotations

import random

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.constraint import Constraint
from guided.constraint.engine import stack_budgets
from guided.constraint.engine.completion import Completions
from guided.grammar import library
from guided.grammar.ir import Lexing
from guided.kernels.data.layout import FAR
from guided.testing import brute_force_mask
from tests import vocabularies
from tests.amounts import Refusals, each, some
from tests.twin.random_sources import random_lark
from tests.unit.kernels.masking.test_lexed_masks import VOCABULARY as LARGE

BYTES = vocabularies.of_bytes()
READY = ["c_program", "sqlite_select", "python_expression", "arithmetic", "pddl_plan"]
WITHOUT_IGNORED = {
    "sums": 'start: term ("+" term)*\nterm: NUM | "(" start ")"\nNUM: /[0-9]+/',
    "records": 'start: (NAME "=" value ";")+\nvalue: NUM | NAME | "[" value ("," value)* "]"\nNAME: /[a-z]+/\nNUM: /[0-9]+/',
    "greedy": 'start: A B\nA: /a+/\nB: /b|ab/',
    "nullable": 'start: x y "."\nx: "x"*\ny: "y"?',
}  # fmt: skip


def unpriced(*_: object) -> None:
    raise AssertionError("the shortest text was looked for")


def follow(constraint: Constraint, rnd: random.Random, budget: int) -> bytes:
    """A random text under a budget, of which every mask is not empty; what it says."""
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    state, text = constraint.start, b""
    for left in range(budget, 0, -1):
        constraint.fill_budget_mask(state, row, left)
        choices = tokenset.ids(row).tolist()
        token = rnd.choice(choices)
        if token in constraint.vocabulary.eos_ids:
            return text
        text += constraint.vocabulary.tokens[token] or b""
        state = constraint.advance(state, token)
        assert state, text
    raise AssertionError(f"{text!r} did not end in time")


def check(constraint: Constraint, texts: list[bytes], rnd: random.Random) -> int:
    """Along some texts, masks under budgets that bind and that do not; how many forbade something."""
    machine = constraint._machine
    row, plain, before = (np.zeros(constraint.vocabulary.n_words, np.uint32) for _ in range(3))
    bound = 0
    for text in texts:
        for place in sorted(rnd.sample(range(len(text) + 1), min(len(text) + 1, 6))):
            state = machine.advance_text(constraint.start, text[:place])
            constraint.fill_mask(state, plain)
            machine.begin_prices()
            price = stack_budgets.price(machine, state)
            assert price < FAR, text[:place]
            closing = stack_budgets.closing_text(machine, state)
            assert closing is not None and len(closing) <= price
            assert machine.is_accepting(machine.advance_text(state, closing))
            need = constraint._need(state)
            before[:] = 0
            for budget in sorted({price + 1, price + 2, price + 4, need - 1, need}):
                if budget <= price:
                    continue
                constraint.fill_budget_mask(state, row, budget)
                assert row.any() and not (row & ~plain).any()
                assert not (before & ~row).any(), "a larger budget forbids more"
                before[:] = row if len(tokenset.ids(row).tolist()) > 1 else 0
                bound += not (row == plain).all()
                assert budget < need or (row == plain).all()
                allowed = [token for token in tokenset.ids(row).tolist() if token not in constraint.vocabulary.eos_ids]
                for token in rnd.sample(allowed, min(len(allowed), 12)):
                    after = constraint.advance(state, token)
                    assert after
                    constraint.fill_budget_mask(after, np.zeros_like(row), budget - 1)
    return bound


@pytest.mark.parametrize("name", each(READY, 2))
def test_ready_grammars_end_in_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rnd = random.Random(3)
    constraint = Constraint(guided.grammar(name), LARGE)
    texts = [text.encode() for text in library.examples(name)[0] if len(text) < 120][: some(6, 6)]
    # No text is looked for: whole languages have too many.
    monkeypatch.setattr(Completions, "tokens", unpriced)
    assert check(constraint, texts, rnd)
    shortest = stack_budgets.price(constraint._machine, constraint.start)
    for budget in (shortest + 1, shortest + 3, shortest + 20, 60):
        follow(constraint, rnd, budget)


@pytest.mark.parametrize("name", WITHOUT_IGNORED)
def test_grammars_that_ignore_nothing_end_in_time(name: str) -> None:
    rnd = random.Random(4)
    constraint = Constraint(guided.lark(WITHOUT_IGNORED[name], lexing=Lexing.CONTEXTUAL), BYTES)
    constraint._machine.begin_prices()
    shortest = constraint.shortest_completion(constraint.start)
    texts = {follow(constraint, rnd, shortest + more) for more in (1, 2, 5, 30) for _ in range(5)}
    if name != "greedy":
        assert check(constraint, sorted(texts), rnd)


def random_constraint(seed: int, refusals: Refusals) -> Constraint | None:
    """A constraint of a random grammar with LALR tables whose start has a price."""
    text = random_lark(random.Random(seed))[0]
    if seed % 2 and "%ignore" not in text:
        text += '\n%ignore " "'
    with refusals.trial(guided.GuidedError):
        constraint = Constraint(guided.lark(text, lexing=Lexing.CONTEXTUAL), BYTES)
        constraint._machine.begin_prices()
        if stack_budgets.price(constraint._machine, constraint.start) < FAR:
            return constraint
    return None


def test_random_grammars_end_in_time() -> None:
    """Every token that is allowed can be gone on with, whatever terminals overlap."""
    n = some(2000, 100)
    priced = 0
    # Most random grammars are ambiguous or have conflicts.
    with Refusals(most=0.75) as refusals:
        for seed in range(n):
            constraint = random_constraint(seed, refusals)
            if constraint is None:
                continue
            priced += 1
            price = stack_budgets.price(constraint._machine, constraint.start)
            for budget in (price + 1, price + 2, price + 8, 40):
                if budget > price:
                    text = follow(constraint, random.Random(seed), budget)
                    assert constraint.is_accepting(constraint._machine.advance_text(constraint.start, text))
    assert priced > n // 8


@pytest.mark.parametrize("name", each(READY, 2))
def test_masks_do_not_depend_on_what_was_asked_before(name: str) -> None:
    grammar, rnd = guided.grammar(name), random.Random(6)
    text = min((text.encode() for text in library.examples(name)[0] if len(text) > 10), key=len)

    def mask(constraint: Constraint, place: int, budget: int) -> bytes:
        row = np.zeros(LARGE.n_words, np.uint32)
        with refusals.trial(guided.LimitError):
            constraint.fill_budget_mask(constraint._machine.advance_text(constraint.start, text[:place]), row, budget)
        return row.tobytes()

    asked = [(place, budget) for place in rnd.sample(range(len(text)), some(4, 6)) for budget in (2, 5, 9, 14, 30)]
    with Refusals(most=0.25) as refusals:
        alone = {each: mask(Constraint(grammar, LARGE), *each) for each in asked}
    for _ in range(some(2, 6)):
        rnd.shuffle(asked)
        constraint = Constraint(grammar, LARGE)
        for question in asked:
            assert mask(constraint, *question) == alone[question], question


def test_the_mask_without_a_budget_is_the_same_once_tokens_are_priced() -> None:
    constraint = Constraint(guided.grammar("arithmetic"), LARGE)
    constraint._machine.begin_prices()
    row = np.zeros(LARGE.n_words, np.uint32)
    constraint.fill_mask(constraint.start, row)
    assert (row == brute_force_mask(constraint, constraint.start)).all()
