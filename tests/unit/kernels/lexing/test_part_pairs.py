"""Parts that are told by numbers, against expressions: what they accept, their traits, how long their texts are."""

from __future__ import annotations

import random

import pytest

from guided.automata.lexer import parts as parts_module
from guided.automata.lexer.spans import Span, span_of
from guided.automata.lexer.states import StateTable
from guided.automata.lexer.traits import traits_of
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular.derivative import inhabited, matches
from guided.grammar.regular.expr import EPSILON, Expr, alternation, concat, intersection, json_string, literal, repeat
from guided.grammar.regular.texts import CHARACTER
from guided.kernels.data.layout import CLOSES
from guided.kernels.lexing.part_pairs import BEGUN, COUNTED, DERIVED, NOTHING, WITHIN
from tests.amounts import each

LETTERS = ["a", "b", "c", "é", "ഀ", " "]
CLASS = pattern_language("[a-cé]")
ATOMS = [literal(b"a"), literal(b"bc"), literal("é".encode()), CLASS, CHARACTER, pattern_language("[^a]"), EPSILON,
         pattern_language("[ab]")]  # fmt: skip


def pattern(seed: random.Random, depth: int) -> Expr:
    if not depth:
        return seed.choice(ATOMS)
    match seed.randrange(4):
        case 0:
            return alternation([pattern(seed, depth - 1), pattern(seed, depth - 1)])
        case 1:
            low = seed.choice((0, 0, 1, 2, 5))
            return repeat(pattern(seed, depth - 1), low, seed.choice((None, low + 1, low + 3, low + 9)))
        case _:
            return concat(pattern(seed, depth - 1), pattern(seed, depth - 1))


def bounded(seed: random.Random) -> Expr:
    low = seed.choice((0, 0, 0, 1, 3, 5))
    run = repeat(CHARACTER, low, seed.choice((None, low, low + 2, low + 7, 45, 90)))
    return intersection((pattern(seed, 3), run))


def read(table: StateTable, state: int, text: bytes) -> int:
    for byte in text:
        state = next((target for low, high, target in table.edges(state) if low <= byte <= high), 0)
    return state


def agrees(seed: random.Random, table: StateTable, expr: Expr) -> None:
    inside, plain = table.add(json_string(expr)), table.add(expr)
    for _ in range(8):
        text = "".join(seed.choices(LETTERS, k=seed.choice((0, 1, 2, 3, 4, 6, 9)))).encode()
        if seed.random() < 0.3:
            text = text[:-1]
        state = read(table, inside, text)
        expected = matches(expr, text)
        assert bool(table.arrays.mode[state] & CLOSES) == expected, text
        assert (table.arrays.tag[read(table, plain, text)] == 0) == expected, text


@pytest.mark.parametrize("number", each(range(12), 3))
def test_what_is_bounded_accepts_what_derivatives_accept(number):
    seed, table = random.Random(number), StateTable()
    for _ in range(25):
        expr = bounded(seed)
        if inhabited(expr):
            agrees(seed, table, expr)


@pytest.mark.parametrize("number", each(range(6), 2))
def test_nothing_changes_where_there_is_next_to_no_room(number, monkeypatch):
    monkeypatch.setattr(parts_module, "MOST_PARTS", 32)
    seed, table = random.Random(100 + number), StateTable()
    for _ in range(12):
        expr = bounded(seed)
        if inhabited(expr):
            agrees(seed, table, expr)
    table.add(json_string(repeat(CLASS, 0, 300)))
    agrees(seed, table, repeat(CLASS, 0, 300))
    assert len(table.parts) > 32


@pytest.mark.parametrize("number", each(range(8), 2))
def test_traits_and_lengths_are_those_of_the_expressions(number):
    seed, table = random.Random(200 + number), StateTable()
    for _ in range(25):
        expr = bounded(seed) if seed.random() < 0.6 else pattern(seed, 3)
        if inhabited(expr):
            agrees(seed, table, expr)
    parts = table.parts
    counted = begun = 0
    for part, traits in enumerate(parts.arrays.traits[: len(parts)].tolist()):
        content, mode = parts._reading(part)
        if traits & COUNTED:
            counted += 1
            assert traits & ~COUNTED == traits_of(content, mode)
        if traits & (COUNTED | BEGUN):
            begun += 1
            told, known = parts._span(part), span_of(content)
            # The structure may tell more than the numbers, and less where letters were joined to words.
            assert told.least == known.least
            assert told.most == known.most
            assert (told.soon, told.ever) == (known.soon, known.ever) or traits & BEGUN
        if traits & NOTHING:
            assert not inhabited(intersection([parts._reading(int(at[part]))[0] for at in (parts._one, parts._other)]))
        elif traits & WITHIN:
            assert inhabited(content)
    assert counted
    assert begun > counted


def test_a_part_has_one_number_however_it_is_come_by():
    table = StateTable()
    whole = repeat(CLASS, 0, 60)
    table.expand(table.add(json_string(whole)))
    after = read(table, table.add(json_string(whole)), "é".encode() * 3)
    assert after == table.add(json_string(repeat(CLASS, 0, 57)))
    least = table.add(json_string(repeat(CLASS, 4)))
    assert read(table, least, b"abca") == table.add(json_string(repeat(CLASS)))


def test_pairs_that_numbers_do_not_decide():
    table = StateTable()
    some = alternation([literal(b"abc"), literal(b"abcdefgh"), concat(literal(b"b"), repeat(literal(b"xyz"), 1, 2))])
    start = table.add(json_string(intersection((concat(repeat(CLASS), some), repeat(CHARACTER, 4, 6)))))
    assert table.arrays.mode[read(table, start, b"aabc")] & CLOSES
    assert not read(table, start, b"abcdefgh")
    assert table.arrays.mode[read(table, start, b"cbxyz")] & CLOSES
    assert not read(table, start, b"cbxyzx")
    pairs = table.add(json_string(intersection((repeat(concat(CLASS, CLASS)), repeat(CHARACTER, 3, 3)))))
    assert not inhabited(intersection((repeat(concat(CLASS, CLASS)), repeat(CHARACTER, 3, 3))))
    assert not table.edges(pairs)


def test_what_leads_back_to_itself_is_looked_at_no_further_than_it_must_be():
    table = StateTable()
    words = pattern_language(r"\S+(\s+\S+){0,90}")
    start = table.add(json_string(intersection((words, repeat(CHARACTER, 0, 300)))))
    table.expand(start)
    assert sum(not traits & DERIVED for traits in table.parts.arrays.traits[: len(table.parts)].tolist()) < 40


def test_how_far_a_bound_beside_a_pattern_is():
    words, rest = pattern_language("([a-c]+-)*xyz"), pattern_language("[a-c]*-([a-c]+-)*xyz")
    ever = span_of(rest).ever
    assert ever is not None
    for low, high, far in ((0, 90, 89 - ever), (1, 90, 89 - ever), (3, 90, 0), (0, 30, 0)):
        table = StateTable()
        start = table.add(json_string(intersection((words, repeat(CHARACTER, low, high)))))
        state = read(table, start, b"a")
        part = int(table.parts.arrays.pool[table.parts.arrays.set_first[state]])
        assert table.parts.arrays.traits[part] & WITHIN
        assert table.parts.arrays.bound[part] == far
        if far:
            assert table.parts._reading(int(table.parts.arrays.boundless[part]))[0] == rest


def test_more_than_numbers_hold_is_counted_too():
    table = StateTable()
    state = read(table, table.add(repeat(CLASS, 3, 1 << 40)), b"abc")
    assert table.arrays.tag[state] == 0
    assert not read(table, state, b"x")


def test_spans_of_counted_texts():
    assert Span(1, 1, 1, 1).times(2, 5) == Span(2, 5, 2, 2)
    assert Span(1, None, None, None).times(0, None) == Span(0, None, None, None)
    for span in (Span(0, None, 0, 3), Span(2, 7, 2, 2), Span(1, 4, None, None)):
        assert Span.unpacked(span.packed()) == span
