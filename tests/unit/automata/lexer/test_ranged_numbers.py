"""Numbers between bounds: the states that are written read the very texts of the expression."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from guided.automata.lexer.numbers import state_of_numbers
from guided.automata.lexer.states import StateTable
from guided.grammar.json_schema.layout import Spelling
from guided.grammar.json_schema.numbers.number_text import number_text
from guided.grammar.json_schema.numbers.ranged_numbers import MOST_PLACES, MOST_WHOLE, ranges_of
from guided.grammar.json_schema.numbers.ranges import Notation, NumberRange
from guided.kernels.data.layout import FAR
from tests.amounts import each, mostly_slow, some


def assert_same_language(states: StateTable, one: int, other: int) -> None:
    """Both have an edge for the same bytes everywhere, and end in the same places; dead ends are in neither."""
    work, seen = [(one, other, b"")], {(one, other)}
    while work:
        left, right, text = work.pop()
        assert (states.arrays.tag[left] >= 0) == (states.arrays.tag[right] >= 0), text
        rows = [
            {byte: to for low, high, to in states.edges(state) for byte in range(low, high + 1)}
            for state in (left, right)
        ]
        assert rows[0].keys() == rows[1].keys(), text
        for byte, to in rows[0].items():
            pair = to, rows[1][byte]
            if pair not in seen:
                seen.add(pair)
                work.append((*pair, text + bytes((byte,))))


def check(numbers: NumberRange) -> bool:
    if numbers.is_empty():
        return False
    states = StateTable.shared()
    found = False
    for spelling in Spelling:
        ranges = ranges_of(numbers, spelling)
        if ranges is not None:
            found = True
            assert_same_language(states, state_of_numbers(states, ranges), states.add(number_text(numbers, spelling)))
    return found


def assert_distances(states: StateTable, start: int) -> None:
    """How far states are from ends is written as their edges say it."""
    edges: dict[int, set[int]] = {}
    work = [start]
    while work:
        state = work.pop()
        if state not in edges:
            edges[state] = {to for _, _, to in states.edges(state)}
            work += edges[state]
    nearest = {state: 0 if states.arrays.tag[state] >= 0 else FAR for state in edges}
    for _ in edges:
        nearest = {state: min([nearest[state], *(1 + nearest[to] for to in edges[state])]) for state in edges}
    widest = nearest
    for _ in edges:
        widest = {state: max([widest[state], *(widest[to] for to in edges[state])]) for state in edges}
    # The states of any digits are no number's own, and measured when they are asked for.
    own = [state for state in edges if states.key(state) is None]
    assert start in own
    for state in own:
        assert (states.arrays.minimum[state], states.arrays.widest[state]) == (nearest[state], widest[state])


def some_bound(rnd: random.Random) -> Fraction:
    kind = rnd.randrange(6)
    if kind == 0:
        found = Fraction(rnd.randrange(13))
    elif kind == 1:
        found = Fraction(rnd.randrange(10 ** rnd.randrange(1, 8)))
    elif kind == 2:
        found = Fraction(rnd.choice((0, 1, 9, 10, 11, 99, 100, 1000, 65535, 2**31, 2**63 - 1)))
    elif kind == 3:
        found = Fraction(rnd.choice((1, 3, 10, 99)), 10 ** rnd.randrange(1, 8))
    else:
        found = Fraction(rnd.randrange(10 ** rnd.randrange(1, 6)), 10 ** rnd.randrange(5))
    return -found if rnd.random() < 0.3 else found


@pytest.mark.parametrize("seed", mostly_slow(range(8), 1))
def test_the_texts_are_those_of_the_expression(seed: int) -> None:
    rnd = random.Random(seed)
    n = 0
    while n < 120:
        low: Fraction | None
        high: Fraction | None
        low, high = sorted((some_bound(rnd), some_bound(rnd)))
        if rnd.random() < 0.2:
            low, high = (low, None) if rnd.random() < 0.6 else (None, high)
        step = rnd.choice((None, Fraction(1)))
        notation = rnd.choice((Notation.ANY, Notation.ANY, Notation.PLAIN))
        low_open, high_open = low is not None and rnd.random() < 0.3, high is not None and rnd.random() < 0.3
        n += check(NumberRange(low, low_open, high, high_open, step, frozenset(), notation))


@pytest.mark.parametrize("step", [None, Fraction(1)])
def test_small_bounds_and_all_that_is_beside_them(step: Fraction | None) -> None:
    bounds = [Fraction(n, 10) for n in (-110, -100, -99, -10, -9, -1, 0, 1, 5, 9, 10, 11, 90, 99, 100, 101, 1000)]
    bounds = each(bounds, 2)
    for i, low in enumerate(bounds):
        for high in bounds[i:]:
            for opened in range(4):
                for notation in (Notation.ANY, Notation.PLAIN):
                    check(NumberRange(low, bool(opened & 1), high, bool(opened & 2), step, frozenset(), notation))


def test_how_far_states_are_from_ends() -> None:
    rnd = random.Random(3)
    states = StateTable()
    bounds = [
        (Fraction(7), Fraction(1234)),
        (Fraction(-120), Fraction(5)),
        (Fraction(1, 8), None),
        (None, Fraction(-3)),
    ]
    for low, high in bounds + [tuple(sorted((some_bound(rnd), some_bound(rnd)))) for _ in range(some(40, 4))]:
        for step in (None, Fraction(1)):
            numbers = NumberRange(low, False, high, False, step)
            ranges = None if numbers.is_empty() else ranges_of(numbers)
            if ranges is not None:
                assert_distances(states, state_of_numbers(states, ranges))


def test_the_longest_bounds_there_is_room_for() -> None:
    tiny, most = Fraction(1, 10**MOST_PLACES), Fraction(MOST_WHOLE)
    for low in (-most + tiny, tiny, Fraction(10**18) + tiny, Fraction(int("1234567890" * 2) // 10) + 7 * tiny):
        for high in (most - tiny, Fraction(9 * 10**18) + tiny, most - 1):
            for step in (None, Fraction(1)):
                assert check(NumberRange(low, True, high, True, step))
    assert ranges_of(NumberRange(Fraction(0), False, most)) is None
    assert ranges_of(NumberRange(Fraction(0), False, tiny / 10)) is None


@pytest.mark.parametrize("notation", [Notation.ANY, Notation.PLAIN])
def test_one_bound_on_the_far_side_of_zero(notation: Notation) -> None:
    for n in (1, 2, 5, 9, 10, 11, 15, 99, 100, 101, 1234, 10**18):
        for places in (0, 1, 3):
            bound = Fraction(n, 10**places)
            for is_open in (False, True):
                for step in (None, Fraction(1)) if notation is Notation.PLAIN else (None,):
                    assert check(NumberRange(bound, is_open, None, False, step, frozenset(), notation))
                    assert check(NumberRange(None, False, -bound, is_open, step, frozenset(), notation))


def test_what_has_no_two_bounds_is_left() -> None:
    one, two = Fraction(1), Fraction(2)
    for numbers in (
        NumberRange(), NumberRange(-one), NumberRange(None, False, one), NumberRange(Fraction(0), True),
        NumberRange(one, False, None, False, one), NumberRange(Fraction(0), False, None, False, one), NumberRange(one, False, one), NumberRange(one, False, two, False, two),
        NumberRange(one, False, two, False, None, frozenset((two,))),
        NumberRange(one, False, two, False, None, frozenset(), Notation.FRACTIONAL),
        NumberRange(Fraction(1, 3), False, two),
    ):  # fmt: skip
        assert ranges_of(numbers) is None
