"""Decimals between bounds are the language of the automaton that compares their digits, mostly the very expression."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from guided.grammar.json_schema.numbers.bounded import bounded_decimals
from guided.grammar.json_schema.numbers.decimals import Decimals
from guided.grammar.json_schema.numbers.number_text import automaton
from guided.grammar.json_schema.numbers.ranges import Notation, NumberRange
from guided.grammar.regular.derivative import inhabited
from guided.grammar.regular.expr import difference
from tests.amounts import mostly_slow


def some_number(rnd: random.Random) -> Fraction:
    kind = rnd.randrange(4)
    if kind == 0:
        return Fraction(rnd.randrange(12))
    if kind == 1:
        return Fraction(rnd.randrange(10 ** rnd.randrange(1, 8)))
    return Fraction(rnd.randrange(10 ** rnd.randrange(1, 6)), 10 ** rnd.randrange(5))


@pytest.mark.parametrize("seed", mostly_slow(range(6), 2))
def test_bounds_are_those_of_the_automaton(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(250):
        low = some_number(rnd) if rnd.random() < 0.7 else None
        high = some_number(rnd) if rnd.random() < 0.7 else None
        if low is not None and high is not None:
            if rnd.random() < 0.15:
                high = low
            if low > high and rnd.random() < 0.9:
                low, high = high, low
        low_open, high_open = rnd.random() < 0.3 and low is not None, rnd.random() < 0.3 and high is not None
        notation = rnd.choice(list(Notation))
        whole = notation is Notation.PLAIN or rnd.random() < 0.5
        step = Fraction(1) if whole else None
        decimals = Decimals(NumberRange(low, low_open, high, high_open, step, frozenset(), notation))
        expected = automaton(decimals.start, decimals.row, decimals.accepts)
        found = bounded_decimals(low, low_open, high, high_open, whole, notation)
        if whole and high is not None and high.denominator > 1:
            # The automaton tells apart how many zeros are behind the point, though no other digit may come.
            assert not inhabited(difference(found, expected))
            assert not inhabited(difference(expected, found))
        else:
            assert found is expected, (low, low_open, high, high_open, whole, notation)


def test_long_bounds() -> None:
    for digits in (20, 300):
        high = Fraction(10**digits - 7)
        decimals = Decimals(NumberRange(Fraction(3), False, high, False))
        expected = automaton(decimals.start, decimals.row, decimals.accepts)
        assert bounded_decimals(Fraction(3), False, high, False, False, Notation.ANY) is expected
