"""What lies in a run of characters, and combinations without the runs that add nothing."""

from __future__ import annotations

import random
from itertools import product

import pytest

from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular import condensed as module
from guided.grammar.regular.any_text import is_run, is_within
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.condensed import without_runs
from guided.grammar.regular.derivative import edges, matches, possible_edges
from guided.grammar.regular.expr import (
    EPSILON,
    Kind,
    alternation,
    byte_range,
    byte_set,
    concat,
    intersection,
    literal,
    repeat,
    words,
)
from guided.grammar.regular.texts import CHARACTER, CONTENT
from tests.amounts import each
from tests.twin.expressions import expression

TEXTS = ["".join(letters).encode() for n in range(5) for letters in product("ab\né", repeat=n)]
DOT = Utf8().characters(((0x20, 0x10FFFF),))
ATOMS = [
    literal(b"a"), literal(b"ab"), byte_set(0x3 << 97), literal("é".encode()), EPSILON, literal(b"\n"), DOT,
    CHARACTER, words([b"ab", "é".encode(), "baé".encode()]),
]  # fmt: skip
RUNS = [CONTENT, repeat(DOT), repeat(byte_set(0x3 << 97)), repeat(byte_range(0x61, 0x61))]
BEGUN = concat(byte_range(0xA9, 0xA9), repeat(DOT))


@pytest.mark.parametrize("number", range(8))
def test_what_is_said_to_lie_in_a_run_does(number):
    seed = random.Random(number)
    within = 0
    for _ in range(25):
        expr = expression(seed, 3, ATOMS, 3)
        for run in RUNS:
            if is_within(expr, run, possible_edges):
                within += 1
                assert all(matches(run, text) for text in TEXTS if matches(expr, text)), (expr, run)
    assert within > 10


@pytest.mark.parametrize("number", each(range(8), 2))
def test_leaving_runs_out_changes_no_text(number):
    seed = random.Random(number)
    less = 0
    for _ in range(40):
        parts = [expression(seed, 2, ATOMS, 3), seed.choice(RUNS)]
        if seed.random() < 0.5:
            parts[1] = alternation([parts[1], expression(seed, 2, ATOMS, 3)])
        expr = intersection(parts)
        found = without_runs(expr, possible_edges)
        less += found is not expr
        for text in TEXTS:
            assert matches(found, text) == all(matches(part, text) for part in parts), (parts, text)
    assert less > 3


def test_runs_may_have_begun_a_character():
    assert is_run(BEGUN)
    assert is_within(concat(literal("é".encode()[1:]), repeat(byte_set(0x3 << 97))), BEGUN, possible_edges)
    assert not is_within(concat(literal("é".encode()), repeat(byte_set(0x3 << 97))), BEGUN, possible_edges)
    assert not is_within(EPSILON, BEGUN, possible_edges)
    assert not is_run(concat(repeat(DOT), repeat(CHARACTER)))


def test_what_is_left_of_large_combinations_is_the_pattern_once_the_rest_says_nothing():
    long = pattern_language("(?:[a-y]{1,200}x){1,5}")
    combined = intersection((long, pattern_language("^[^@]a.*$")))
    assert combined.kind is Kind.INTERSECTION
    (after,) = {target for low, _, target in edges(combined) if low <= ord("b") <= 0xFF and low == ord("a")}
    assert module.is_large(combined)
    (then,) = {target for low, high, target in edges(after) if low <= ord("a") <= high}
    assert then.kind is not Kind.INTERSECTION
    assert all(matches(then, text) == matches(long, b"ba" + text) for text in [b"x", b"bx", b"", b"axax", b"@x"])
