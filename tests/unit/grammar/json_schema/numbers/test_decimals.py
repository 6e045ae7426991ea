"""Decimals whose automaton is made state by state, against the same automaton made whole and trimmed."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from guided.grammar.json_schema.numbers.decimals import Decimals
from guided.grammar.json_schema.numbers.number_text import automaton, number_text
from guided.grammar.json_schema.numbers.ranges import Notation, NumberRange
from guided.grammar.regular.derivative import edges, matches
from guided.grammar.regular.expr import EMPTY, Expr, literal
from guided.grammar.regular.stepwise import stepwise
from tests.amounts import some

STEPS = [None, *map(Fraction, (1, 2, 3, 7, 30, 100)), Fraction(1, 2), Fraction(5, 2), Fraction(3, 20)]
AVOIDED = [*map(Fraction, (2, 3, 5, 20)), Fraction(3, 2), Fraction(5, 4)]


def same_language(left: Expr, right: Expr) -> bool:
    """Both have living edges only, so that equal languages have equal bytes everywhere."""
    if left is EMPTY or right is EMPTY:
        return left is right
    seen = {(left, right)}
    work = [(left, right)]
    while work:
        a, b = work.pop()
        if a.nullable != b.nullable:
            return False
        rows = [{byte: t for low, high, t in edges(item) for byte in range(low, high + 1)} for item in (a, b)]
        if rows[0].keys() != rows[1].keys():
            return False
        for byte, target in rows[0].items():
            pair = (target, rows[1][byte])
            if pair not in seen:
                seen.add(pair)
                work.append(pair)
    return True


def test_living_states_are_those_of_the_trimmed_automaton() -> None:
    rnd = random.Random(4)
    empty = 0
    for _ in range(some(150, 8)):
        low = rnd.choice([None, Fraction(rnd.randint(1, 300)), Fraction(rnd.randint(1, 400), 8)])
        near = (low or Fraction(0)) + rnd.choice([Fraction(rnd.randint(0, 40)), Fraction(rnd.randint(0, 9), 4)])
        high = rnd.choice([None, near, near, Fraction(rnd.randint(1, 2000))])
        numbers = NumberRange(
            low,
            low is not None and rnd.random() < 0.4,
            high,
            high is not None and rnd.random() < 0.4,
            rnd.choice(STEPS),
            frozenset(rnd.sample(AVOIDED, rnd.choice((0, 1, 1, 2)))),
            rnd.choice((Notation.ANY, Notation.ANY, Notation.PLAIN, Notation.FRACTIONAL)),
        )
        decimals = Decimals(numbers)
        whole = automaton(decimals.start, decimals.row, decimals.accepts)
        if high is None and numbers.is_empty():
            assert whole is EMPTY
            continue
        empty += whole is EMPTY
        assert same_language(stepwise(decimals, decimals.start), whole), numbers
    assert empty > some(40, 8) // 2


def test_ranges_with_few_numbers_of_a_large_step() -> None:
    steps = Fraction(9348, 8) * 17 * 27
    few = NumberRange(Fraction(-3 * 10**6), False, Fraction(3 * 10**6), False, steps, frozenset({Fraction(2)}))
    language = number_text(few)
    for n in range(-6, 7):
        value = steps * n
        text = str(value.numerator) if value.denominator == 1 else f"{float(value):f}"
        inside = abs(value) <= 3 * 10**6 and value % 2 != 0
        assert matches(language, text.encode()) is inside, text


def test_rows_are_those_of_the_single_steps() -> None:
    rnd = random.Random(9)

    def bound() -> Fraction | None:
        return rnd.choice(
            [None, Fraction(rnd.randrange(100_000)), Fraction(rnd.randrange(3000), rnd.choice([1, 4, 10]))]
        )

    for _ in range(some(150, 2)):
        low, high = bound(), bound()
        if low is not None and high is not None and high < low:
            continue
        step = rnd.choice([None, Fraction(1), Fraction(3), Fraction(1, 4)])
        avoid = rnd.choice([frozenset[Fraction](), frozenset((Fraction(5),))])
        decimals = Decimals(NumberRange(low, low is not None, high, False, step, avoid, rnd.choice(list(Notation))))
        seen = [decimals.start]
        for state in seen:
            row = decimals.row(state)
            targets = [(byte, decimals.step(state, byte)) for byte in decimals.alphabet]
            by_byte = [(byte, target) for low, high, target in row for byte in range(low, high + 1)]
            assert by_byte == [edge for edge in targets if edge[1] is not None], (decimals.numbers, state)
            seen += [target for _, _, target in row if target not in seen and len(seen) < 200]


@pytest.mark.parametrize("step", [None, Fraction(1), Fraction(2), Fraction(30), Fraction(1, 4), Fraction(2, 3)])
@pytest.mark.parametrize("value", [Fraction(v) for v in (1, 7, 30, 45, 408, -30, -408)] + [Fraction(1, 2)])
def test_a_single_number_without_fraction_is_its_digits(value: Fraction, step: Fraction | None) -> None:
    language = number_text(NumberRange(value, False, value, False, step, frozenset(), Notation.PLAIN))
    if value.denominator > 1 or (step is not None and (value / step).denominator > 1):
        assert language is EMPTY
    else:
        assert language is literal(str(value).encode())
        bounds = (value - 1, True, value, False) if value > 0 else (value, False, value + 1, True)
        written_out = number_text(NumberRange(*bounds, step, frozenset(), Notation.PLAIN))
        for text in (value - 1, value, value + 1, value * 10, value // 10):
            assert matches(written_out, str(text).encode()) is matches(language, str(text).encode())
