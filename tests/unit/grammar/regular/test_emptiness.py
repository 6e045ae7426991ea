"""Emptiness of boolean combinations, against a plain search over derivatives that remembers nothing."""

from __future__ import annotations

import random

import pytest

from guided.errors import LimitError
from guided.grammar.regular.decide import members
from guided.grammar.regular.derivative import derivative, inhabited, remainder
from guided.grammar.regular.expr import (
    ALL,
    EMPTY,
    Expr,
    alternation,
    byte_range,
    byte_set,
    complement,
    concat,
    intersection,
    json_string,
    literal,
    repeat,
    words,
)
from tests.amounts import some

LETTERS = b"abc"


def simple(rnd: random.Random, depth: int) -> Expr:
    kind = rnd.randrange(7 if depth else 3)
    if kind == 0:
        return literal(bytes(rnd.choice(LETTERS) for _ in range(rnd.randint(1, 3))))
    if kind == 1:
        return rnd.choice((byte_range(0x61, 0x62), byte_range(0x62, 0x63), byte_set(5 << 0x61), byte_range(0, 255)))
    if kind == 2:
        return words(bytes(rnd.choice(LETTERS) for _ in range(rnd.randint(0, 3))) for _ in range(rnd.randint(1, 4)))
    if kind == 3:
        low = rnd.randint(0, 4)
        return repeat(simple(rnd, depth - 1), low, rnd.choice((None, low, low + 2)))
    if kind == 4:
        return alternation(simple(rnd, depth - 1) for _ in range(2))
    return concat(*(simple(rnd, depth - 1) for _ in range(rnd.randint(2, 3))))


def combined(rnd: random.Random, depth: int) -> Expr:
    kind = rnd.randrange(6) if depth else 0
    if kind < 2:
        return simple(rnd, 2)
    if kind == 2:
        return complement(combined(rnd, depth - 1))
    parts = [combined(rnd, depth - 1) for _ in range(rnd.randint(2, 3))]
    if kind == 3:
        return alternation(parts)
    return intersection(parts) if kind == 4 else concat(*parts)


def reaches_end(start: Expr) -> bool:
    seen = {start}
    work = [start]
    while work:
        state = work.pop()
        if state.nullable:
            return True
        for byte in (*LETTERS, 0x7A):
            after = remainder(state, byte)
            if after is not None and after not in seen:
                seen.add(after)
                work.append(after)
    return False


def test_combinations_against_a_plain_search() -> None:
    rnd = random.Random(3)
    answers = {True: 0, False: 0}
    for _ in range(some(1500)):
        expr = intersection([combined(rnd, 2), combined(rnd, 2), complement(simple(rnd, 1))])
        expected = reaches_end(expr)
        assert inhabited(expr) is expected
        answers[expected] += 1
    assert min(answers.values()) > some(200)


def test_a_search_that_was_too_long_is_not_repeated_but_a_longer_one_is() -> None:
    near = repeat(concat(byte_range(0x61, 0x62), byte_range(0x61, 0x63)), 40)
    expr = intersection((near, concat(repeat(byte_range(0, 255), 60), literal(b"aca"), ALL)))
    with pytest.raises(LimitError):
        inhabited(expr, 5)
    with pytest.raises(LimitError):
        inhabited(expr, 4)
    assert inhabited(expr, 10_000)
    assert inhabited(expr, 1)


def test_many_cases_are_searched_together() -> None:
    letters = [bytes((byte,)) for byte in range(0x41, 0x5B)]
    one_of = [
        alternation(
            [intersection((concat(ALL, literal(letter), ALL), complement(literal(letter + b"!")))) for letter in part]
        )
        for part in (letters[:13], letters[13:], letters[5:20])
    ]
    short = repeat(byte_range(0, 255), 0, 2)
    assert inhabited(intersection((*one_of, short)))
    assert not inhabited(intersection((*one_of, repeat(byte_range(0, 255), 0, 1))))


def test_json_strings_are_decided_on_their_texts() -> None:
    a, b = (json_string(literal(text)) for text in (b"a", b"b"))
    assert not inhabited(concat(literal(b'"'), intersection((a, b))))
    assert inhabited(intersection((a, complement(b))))
    assert not inhabited(intersection((a, complement(alternation((a, b))))))


def test_a_trie_of_words_holds_just_them() -> None:
    rnd = random.Random(5)
    for _ in range(300):
        chosen = {bytes(rnd.choice(LETTERS) for _ in range(rnd.randint(0, 5))) for _ in range(rnd.randint(0, 8))}
        expr = words(chosen)
        assert set(members(expr, 100) or ()) == chosen
        assert words(sorted(chosen, reverse=True)) is expr
        for first in LETTERS:
            after = derivative(expr, first)
            assert (after or EMPTY) is words(word[1:] for word in chosen if word[:1] == bytes((first,)))
