"""Whether a set of numbers holds any number, against trying many."""

from __future__ import annotations

import random
from fractions import Fraction

from guided.grammar.json_schema.numbers.ranges import Notation, NumberRange
from tests.amounts import some

STEPS = [None, *map(Fraction, (1, 2, 3, 5, 6, 10)), Fraction(1, 2), Fraction(5, 2), Fraction(3, 4)]
AVOIDED = [*map(Fraction, (1, 2, 3, 5, 7)), Fraction(1, 2), Fraction(3, 2), Fraction(5, 4)]
VALUES = [Fraction(n, 40) for n in range(-40 * 80, 40 * 80 + 1)]


def holds(numbers: NumberRange, value: Fraction) -> bool:
    low, high = numbers.low, numbers.high
    return not (
        (low is not None and (value < low or (numbers.low_open and value == low)))
        or (high is not None and (value > high or (numbers.high_open and value == high)))
        or (numbers.step is not None and value % numbers.step)
        or (numbers.notation is Notation.PLAIN and value.denominator != 1)
        or any(value % avoided == 0 for avoided in numbers.avoid)
    )


def test_emptiness_is_exact() -> None:
    rnd = random.Random(2)
    answers = {True: 0, False: 0}
    for _ in range(some(1500, 16)):
        low = rnd.choice([None, Fraction(rnd.randint(-30, 30)), Fraction(rnd.randint(-60, 60), 4)])
        near = None if low is None else low + Fraction(rnd.randint(0, 8), 2)
        high = rnd.choice([None, Fraction(rnd.randint(-30, 30)), near, near])
        numbers = NumberRange(
            low,
            low is not None and rnd.random() < 0.4,
            high,
            high is not None and rnd.random() < 0.4,
            rnd.choice(STEPS),
            frozenset(rnd.sample(AVOIDED, rnd.choice((0, 0, 1, 1, 2, 3)))),
            rnd.choice((Notation.ANY, Notation.ANY, Notation.PLAIN, Notation.FRACTIONAL)),
        )
        expected = not any(holds(numbers, value) for value in VALUES)
        assert numbers.is_empty() is expected, numbers
        answers[expected] += 1
    assert min(answers.values()) > some(200, 16)


def test_many_numbers_to_avoid_in_a_long_range() -> None:
    primes = frozenset(map(Fraction, (2, 3, 5, 7, 11, 13, 17, 19)))
    # Jacobsthal's function: the longest run of numbers with a factor among the first 8 primes has 39 members.
    assert not NumberRange(Fraction(2), False, Fraction(10**9), False, Fraction(1), primes).is_empty()
    assert NumberRange(Fraction(2), False, Fraction(22), False, Fraction(1), primes).is_empty()
    assert not NumberRange(Fraction(2), False, Fraction(23), False, Fraction(1), primes).is_empty()
