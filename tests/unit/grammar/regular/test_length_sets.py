"""Lengths that texts surely have, against all texts of small languages; and what a bound leaves of a pattern."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guided.grammar.json_schema.keywords.patterns import pattern_language
from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.condensed import condensed, lengths_of, place_of
from guided.grammar.regular.derivative import edges, inhabited, possible_edges
from guided.grammar.regular.expr import (
    EPSILON,
    Expr,
    alternation,
    byte_range,
    complement,
    concat,
    intersection,
    literal,
    repeat,
    words,
)
from guided.grammar.regular.length_sets import certain_lengths, has_length_between, lengths_between
from tests.amounts import some

MOST = 14

_LEAVES = st.sampled_from(
    [
        literal(b"a"),
        literal(b"bcd"),
        literal("é€".encode()),
        EPSILON,
        byte_range(0x30, 0x39),
        words([b"x", b"yzz", b"yy"]),
    ]
)
_LANGUAGES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: concat(*pair)),
        st.lists(inner, min_size=1, max_size=3).map(alternation),
        st.tuples(inner, st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3))).map(
            lambda found: repeat(found[0], found[1], None if found[2] is None else found[1] + found[2])
        ),
    ),
    max_leaves=7,
)


def _lengths(expr: Expr, most: int) -> set[int]:
    """The lengths up to ``most`` of all texts, by walking them all; of each length one state suffices."""
    found: set[int] = set()
    layer = {(expr, 0)}
    seen = set(layer)
    while layer:
        found |= {n for item, n in layer if item.nullable}
        after = {
            (target, n + (low & 0xC0 != 0x80))
            for item, n in layer
            for low, _, target in edges(item)
            if n + (low & 0xC0 != 0x80) <= most
        }
        layer = after - seen
        seen |= layer
    return found


@given(_LANGUAGES)
@settings(max_examples=300, deadline=None)
def test_every_length_said_to_be_attained_is(expr):
    span = certain_lengths(expr, lengths_of)
    if span is None:
        return
    low, high = span
    stop = MOST if high is None else min(high, MOST)
    assert set(range(low, stop + 1)) <= _lengths(expr, MOST)


@given(_LANGUAGES, st.integers(0, 8), st.integers(0, 8))
@settings(max_examples=200, deadline=None)
def test_bounds_are_decided_as_by_a_search(expr, low, more):
    if has_length_between(expr, low, low + more, lengths_of):
        assert _lengths(expr, low + more) & set(range(low, low + more + 1))
    both = intersection((expr, repeat(any_text()[0], low, low + more)))
    assert inhabited(both) == bool(_lengths(expr, low + more) & set(range(low, low + more + 1)))


@given(_LANGUAGES, st.integers(0, 8), st.one_of(st.none(), st.integers(0, 8)), st.booleans())
@settings(max_examples=some(300), deadline=None)
def test_all_lengths_are_those_of_texts(expr, low, more, condense):
    """Of patterns, and of the automata that they are beside another."""
    if condense:
        expr = condensed(intersection((expr, complement(literal(b"bcd")))), possible_edges)
    high = None if more is None else low + more
    found = lengths_between(expr, low, high, place_of)
    # Endless languages have some text that is longer, but not much, than eight letters.
    expected = bool(_lengths(expr, 40 if high is None else high) & set(range(low, 41 if high is None else high + 1)))
    assert found is expected or (found is None and (high is None or condense))


@pytest.mark.parametrize(
    ("pattern", "span"),
    [("^(a|bc|def)*$", (0, None)), ("^[a-z]{3,9}$", (3, 9)), ("^(abc|de){2,5}$", (4, 15)), ("a.*b", (2, None))],
)
def test_patterns_tell_their_lengths(pattern, span):
    assert certain_lengths(pattern_language(pattern, "#"), lengths_of) == span


def test_long_bounds_on_a_pattern_need_no_search():
    language = pattern_language("^(a|bc|def)*$", "#")
    bounded = intersection((language, repeat(any_text()[0], 50_000, 100_000)))
    begun = time.process_time()
    assert inhabited(bounded)
    assert len(edges(bounded)) == 3
    assert time.process_time() - begun < 1
