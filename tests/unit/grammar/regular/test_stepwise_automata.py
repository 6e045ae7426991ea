"""Automata that are made state by state: their ranges of bytes against characters, and bytes, taken one by one."""

import random
from collections.abc import Hashable
from fractions import Fraction
from typing import cast

import pytest

from guided.grammar.formats.idna_characters import characters
from guided.grammar.formats.idna_labels import DEAD, Kind, labels
from guided.grammar.formats.idna_languages import Names
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.formats.regex_automata import EXACT, PLAIN, SKELETONS, Patterns, State
from guided.grammar.formats.regex_languages import Both, skeletons
from guided.grammar.json_schema.numbers.decimals import Decimals
from guided.grammar.json_schema.numbers.ranges import Notation, NumberRange
from guided.grammar.regular.derivative import derivative, edges
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.stepwise import Automaton, by_byte, stepwise
from tests.amounts import ALL


def is_in_order(automaton: Automaton, state: Hashable) -> bool:
    """Are the ranges of a state ascending, none of them empty or overlapping?"""
    ends = -1
    for low, high, _ in automaton.steps(state):
        if not ends < low <= high <= 255:
            return False
        ends = high
    return True


def wander(automaton: Automaton, start: Hashable, rnd: random.Random, n_steps: int) -> list[Hashable]:
    """States that random bytes come by."""
    found = [start]
    state = start
    for _ in range(n_steps):
        ways = list(by_byte(automaton.steps(state)).values())
        state = rnd.choice(ways) if ways else start
        found.append(state)
    return found


@pytest.mark.parametrize("kind", [Kind.HOST, Kind.MAIL])
def test_bytes_of_names_lead_where_their_characters_do(kind: Kind) -> None:
    automaton, of = labels(kind), characters().of
    names = Names(automaton, of)
    rnd = random.Random(3)
    some = [*range(0x20, 0x500, 7), 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF, 0x200D, 0x30FB]
    for state in rnd.sample(range(len(automaton.rows)), 40 if ALL else 4):
        assert is_in_order(names, state)
        for code in [*some, *(rnd.randrange(0x110000) for _ in range(300))]:
            if 0xD800 <= code < 0xE000:
                continue
            at: Hashable = state
            for byte in chr(code).encode():
                assert is_in_order(names, at)
                at = by_byte(names.steps(at)).get(byte, DEAD)
                if at == DEAD:
                    break
            assert at == automaton.rows[state][of[code]], (state, hex(code))


def test_no_state_within_a_character_of_a_name_is_a_dead_end() -> None:
    names = Names(labels(Kind.MAIL), characters().of)
    for state in wander(names, names.start, random.Random(5), 2000):
        if isinstance(state, int) and state < 0:
            assert list(names.steps(state))
            assert all(isinstance(target, int) and target != DEAD for _, _, target in names.steps(state))


@pytest.mark.parametrize("patterns", [EXACT, PLAIN, SKELETONS])
def test_ranges_of_patterns_are_their_symbols(patterns: Patterns) -> None:
    for state in wander(patterns, patterns.start, random.Random(7), 1500):
        kind, *rest = cast(State, state)
        expected: dict[int, Hashable] = {}
        for symbols, target in getattr(patterns, f"_{kind}")(*rest):
            for symbol in symbols.encode() if isinstance(symbols, str) else symbols:
                expected[symbol] = target
        assert is_in_order(patterns, state)
        assert by_byte(patterns.steps(state)) == expected


@pytest.mark.parametrize("pattern", ["[a-z]+", "a{2,4}[(]?.*", "é+[^\\x00]{3}", "x|[y-z]{0,3}"])
def test_texts_of_both_are_those_of_each(pattern: str) -> None:
    language = pattern_language(pattern)
    both = Both(SKELETONS, lambda state: 0)
    start = (language, SKELETONS.start)
    for state in wander(both, start, random.Random(11), 300):
        expr, now = cast("tuple[Expr, Hashable]", state)
        assert is_in_order(both, state)
        own = {byte: target for low, high, target in edges(expr) for byte in range(low, high + 1)}
        other = by_byte(SKELETONS.steps(now))
        shared = {byte: (own[byte], other[byte]) for byte in own.keys() & other.keys()}
        assert by_byte(both.steps(state)) == {byte: pair for byte, pair in shared.items() if both.ends(pair)}


def test_multiples_go_on_as_arithmetic_says() -> None:
    numbers = NumberRange(None, False, Fraction(4064), False, Fraction(16), frozenset(), Notation.PLAIN)
    decimals = Decimals(numbers)
    language = stepwise(decimals, decimals.start)
    texts = {str(number).encode() for number in range(0, 4065, 16)}
    begun = {text[:i] for text in texts for i in range(len(text) + 1)}
    for text in begun:
        at: Expr | None = language
        for byte in text:
            assert at is not None
            at = derivative(at, byte)
        assert at is not None
        assert at.nullable == (text in texts)
        assert {byte for low, high, _ in edges(at) for byte in range(low, high + 1)} == {
            longer[len(text)] for longer in begun if longer[: len(text)] == text and len(longer) > len(text)
        }


def test_edges_are_made_once_and_shared_with_the_body() -> None:
    language = skeletons(2)
    row = edges(language)
    assert edges(language) is row
    body = language.parts[0]
    assert isinstance(body, Expr)
    assert edges(body) == row
