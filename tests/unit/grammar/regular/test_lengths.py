"""Lengths of texts in characters, against texts themselves."""

from __future__ import annotations

import random
from itertools import product

import pytest

from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.derivative import derivative, inhabited, matches
from guided.grammar.regular.expr import (
    EMPTY,
    EPSILON,
    Expr,
    Kind,
    alternation,
    byte_set,
    concat,
    intersection,
    literal,
    repeat,
    words,
)
from guided.grammar.regular.lengths import character_counts, farthest_end, n_symbols, with_length
from guided.grammar.regular.texts import CHARACTER, CONTENT
from tests.amounts import each
from tests.twin.expressions import expression

LETTERS = ("a", "b", "é", "ഀ")
TEXTS = ["".join(letters) for n in range(6) for letters in product(LETTERS, repeat=n)]
ATOMS = [
    literal(b"a"), literal(b"ab"), byte_set(0x3 << 97), literal("é".encode()), EPSILON, CONTENT,
    Utf8().characters(((0x61, 0x62), (0xE8, 0x3000))), words([b"ab", "é".encode(), "baé".encode()]),
]  # fmt: skip


def pattern(seed: random.Random, depth: int) -> Expr:
    return expression(seed, depth, ATOMS, 3)


@pytest.mark.parametrize("number", each(range(12), 2))
def test_bounds_keep_the_texts_within_them(number):
    seed = random.Random(number)
    for _ in range(12):
        expr = pattern(seed, 3)
        low = seed.randint(0, 3)
        high = seed.choice([None, low, low + seed.randint(0, 3)])
        found = with_length(expr, CHARACTER, low, high)
        least, most = character_counts(expr)
        for text in seed.sample(TEXTS, 150):
            inside = matches(expr, text.encode())
            assert not inside or (least <= len(text) and (most is None or len(text) <= most)), (expr, text)
            fits = low <= len(text) and (high is None or len(text) <= high)
            assert matches(found, text.encode()) == (inside and fits), (expr, low, high, text)


def test_two_bounds_are_one():
    expr = concat(run(), literal(b"c"))
    once = with_length(expr, CHARACTER, 3, 40)
    assert with_length(once, CHARACTER, 0, 25) is intersection([expr, repeat(CHARACTER, 3, 25)])
    assert with_length(once, CHARACTER, 5, None) is intersection([expr, repeat(CHARACTER, 5, 40)])
    assert with_length(once, CHARACTER, 50, None) is EMPTY


def run(low: int = 0, high: int | None = None) -> Expr:
    return repeat(byte_set(0x3 << 97), low, high)


@pytest.mark.parametrize(
    ("expr", "low", "high", "expected"),
    [
        (run(1), 0, 255, run(1, 255)),
        (run(2, 9), 4, None, run(4, 9)),
        (concat(literal("é:".encode()), run()), 3, 10, concat(literal("é:".encode()), run(1, 8))),
        (alternation([literal(b"q"), concat(literal(b"c"), run(1))]), 0, 5,
         alternation([literal(b"q"), concat(literal(b"c"), run(1, 4))])),
        (repeat(literal(b"abc"), 2, 4), 6, 12, repeat(literal(b"abc"), 2, 4)),
        (repeat(literal(b"abc"), 2, 4), 13, None, EMPTY),
        (run(3), 0, 2, EMPTY),
        (concat(run(1), literal(b"c")), 1, 9, intersection([concat(run(1), literal(b"c")), repeat(CHARACTER, 0, 9)])),
        (concat(run(), literal(b"c")), 4, 4, intersection([concat(run(), literal(b"c")), repeat(CHARACTER, 4, 4)])),
        (concat(CONTENT, run(4, 4), CONTENT), 4, 4, run(4, 4)),
        (concat(run(), alternation([literal(b"c"), literal(b"dd")]), run(2)), 0, 3, concat(literal(b"c"), run(2, 2))),
    ],
)  # fmt: skip
def test_bounds_that_a_language_can_say_are_its_own(expr, low, high, expected):
    assert with_length(expr, CHARACTER, low, high) is expected


@pytest.mark.parametrize("number", range(8))
def test_ends_are_no_farther_than_said(number):
    seed = random.Random(number)
    for _ in range(12):
        expr = pattern(seed, 3)
        found = farthest_end(expr)
        if found is None:
            continue
        texts = [text for text in TEXTS if matches(expr, text.encode())]
        at_first, anywhere = found
        assert at_first <= anywhere
        if at_first <= 5 and inhabited(expr):
            assert any(len(text) <= at_first for text in texts), (expr, found)
        for text in seed.sample(TEXTS, 60):
            left = expr
            for byte in text.encode():
                left = derivative(left, byte)
                if left is None:
                    break
            else:
                short = 5 - len(text)
                if anywhere <= short:
                    assert any(more.startswith(text) and len(more) <= len(text) + anywhere for more in texts), text


def test_letters_are_counted_with_repetitions():
    assert n_symbols(concat(literal(b"ab"), run(2, 9), repeat(literal("é".encode()), 3))) == 2 + 9 + 6
    assert n_symbols(alternation([run(), intersection([run(1), run(2)])])) == 1 + 1 + 2


def test_letters_of_several_bytes_are_one_character():
    assert character_counts(CHARACTER) == (1, 1)
    assert character_counts(repeat(CHARACTER, 2, 5)) == (2, 5)
    assert character_counts(literal("aéഀ😀".encode())) == (4, 4)
    assert character_counts(literal("é".encode()[1:])) == (0, 0)
    assert character_counts(byte_set((1 << 256) - 1)) == (0, 1)


def test_deep_languages_are_left_alone():
    expr = EPSILON
    for _ in range(3000):
        expr = alternation([concat(byte_set(6), expr), literal(b"x")])
    assert character_counts(expr)[1] is None
    assert farthest_end(expr) is None
    assert n_symbols(expr) < 3000
    with_length(expr, CHARACTER, 1, 1)
    assert expr.kind is Kind.ALTERNATION
    assert inhabited(expr)
