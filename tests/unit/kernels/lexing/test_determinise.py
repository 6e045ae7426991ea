"""Lexer states made of parts, against derivatives of the whole pattern."""

from __future__ import annotations

import random
import threading

import pytest

from guided.automata.lexer.spelling import move, place_of
from guided.automata.lexer.states import StateTable
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.derivative import edges, inhabited, matches
from guided.grammar.regular.expr import (
    ALL,
    EPSILON,
    Expr,
    Kind,
    alternation,
    byte_set,
    concat,
    intersection,
    json_string,
    literal,
    repeat,
    switch,
    words,
)
from guided.grammar.regular.partial import alternatives, begins_with, symbol_of
from guided.kernels.data.layout import MATCHED, STRING
from tests.amounts import mostly_slow
from tests.twin.expressions import expression

LETTERS = ["a", "b", "c", "é", "ഀ"]
ATOMS = [
    literal(b"a"), literal(b"b"), literal(b"ab"), literal(b"bca"), byte_set(0x7 << 97), literal("é".encode()),
    Utf8().characters(((0x61, 0x62), (0xE8, 0x3000))), EPSILON, words([b"ab", b"abc", b"ca"]), Utf8().text,
]  # fmt: skip


def pattern(seed: random.Random, depth: int) -> Expr:
    return expression(seed, depth, ATOMS, 9)


def read(table: StateTable, state: int, text: bytes) -> int:
    """The state after some bytes of a text, 0 when there is none."""
    for byte in text:
        state = next((target for low, high, target in table.edges(state) if low <= byte <= high), 0)
        state = table.whole(state)
    return state


def spelled(table: StateTable, state: int, text: bytes) -> int:
    """As `read`, for bytes that may spell a JSON string."""
    place = place_of(table, state)
    for byte in text:
        place = move(table, place, byte) if place else 0
    return place


@pytest.mark.parametrize("number", mostly_slow(range(20), 4))
def test_states_accept_what_derivatives_accept(number):
    seed, table = random.Random(number), StateTable()
    for _ in range(40):
        expr = pattern(seed, 4)
        if not inhabited(expr):
            continue
        plain, string = table.add(expr), table.add(json_string(expr))
        for _ in range(12):
            text = "".join(seed.choices(LETTERS, k=seed.randint(0, 7))).encode()
            expected = matches(expr, text)
            after = read(table, plain, text)
            assert (table.arrays.tag[after] >= 0) == expected, (expr, text)
            after = read(table, string, text)
            assert bool(table.arrays.mode[after] & 2) == expected, (expr, text)


@pytest.mark.parametrize("number", range(5))
def test_every_state_goes_on_to_an_end(number):
    seed, table = random.Random(100 + number), StateTable()
    for _ in range(30):
        expr = pattern(seed, 3)
        if not inhabited(expr):
            continue
        order = [table.add(expr)]
        leads: dict[int, list[int]] = {}
        for state in order:
            leads[state] = [target for _, _, target in table.edges(state)]
            order.extend(
                target for target in dict.fromkeys(leads[state]) if target not in leads and target not in order
            )
            if len(order) > 200:
                break
        else:
            alive = {state for state in order if table.arrays.tag[state] >= 0}
            while more := [s for s in order if s not in alive and alive.intersection(leads[s])]:
                alive.update(more)
            assert alive == set(order)


def test_equal_sets_of_parts_are_one_state():
    table = StateTable()
    # Two ways to the same rest: a run that the second pattern meets after its own prefix.
    rest = concat(repeat(byte_set(0x7 << 97)), literal(b"!"))
    first, second = table.add(rest), table.add(concat(literal(b"xy"), rest))
    assert read(table, second, b"xy") == first
    assert read(table, first, b"abcabc") == first
    assert table.add(rest) == first


def test_any_text_takes_in_what_else_may_come():
    table = StateTable()
    searched = json_string(concat(Utf8().text, literal(b"ab"), Utf8().text))
    state = read(table, table.add(searched), b"xxab")
    assert state == table.add(json_string(Utf8().text))
    assert read(table, table.add(alternation([ALL, literal(b"a")])), b"a") == table.add(ALL)


def test_strings_behind_one_quote_are_one_string():
    table, quote = StateTable(), literal(b'"')
    texts = [concat(Utf8().text, literal(ending)) for ending in (b".yml", b".json")]
    pieces = [concat(quote, json_string(text)) for text in texts]
    number = concat(literal(b"-"), json_string(texts[0]))
    assert alternation(pieces) is concat(quote, json_string(alternation(texts)))
    both = alternation([*pieces, number, concat(quote, json_string(texts[0], canonical=True))])
    assert both is alternation([number, alternation(pieces), concat(quote, json_string(texts[0], canonical=True))])
    inside = spelled(table, table.add(alternation(pieces)), b'"a.y')
    assert table.arrays.mode[inside] & STRING and table.arrays.loops[inside]
    for text in (b"a.yml", b"a.json", b".json.yml", "é.yml".encode(), b"a.yam", b"a.xml"):
        ends = not text.endswith((b"m", b"xml"))
        assert (spelled(table, table.add(both), b'"' + text + b'"') == MATCHED) == ends
    assert spelled(table, table.add(number), b'-.yml"') == MATCHED


def test_parts_are_about_as_many_as_letters():
    # Derivatives of this pattern are 2^12 languages, its parts a few dozen.
    table = StateTable()
    letters = byte_set(0x3 << 97)
    expr = concat(repeat(letters), literal(b"a"), *[letters] * 12)
    state = table.add(expr)
    seed = random.Random(3)
    for _ in range(300):
        text = bytes(seed.choices(b"ab", k=40))
        after = read(table, state, text)
        assert (table.arrays.tag[after] >= 0) == (text[-13] == ord("a"))
    assert len(table.parts) < 40


def test_alternatives_leave_out_what_is_empty():
    never = intersection([literal(b"a"), literal(b"b")])
    assert alternatives(alternation([never, literal(b"c"), concat(literal(b"d"), never)])) == [literal(b"c")]


@pytest.mark.parametrize("number", range(5))
def test_what_a_language_begins_with_is_all_of_it(number):
    seed = random.Random(200 + number)
    for _ in range(60):
        expr = pattern(seed, 4)
        ways = begins_with(expr)
        assert all(first.kind not in (Kind.CONCAT, Kind.ALTERNATION, Kind.REPEAT) for first, _ in ways)
        for _ in range(12):
            text = "".join(seed.choices(LETTERS, k=seed.randint(1, 7))).encode()
            assert any(matches(concat(*way), text) for way in ways) == matches(expr, text), (expr, text)


def test_letters_have_the_edges_of_their_rests():
    character = Utf8().characters(((0x61, 0x62), (0xE8, 0x2FFF)))
    letter = symbol_of(character)
    assert letter is not None
    for rest, row in zip((character, *letter.rests), (letter.first, *letter.rows), strict=True):
        whole = (*letter.rests, EPSILON)
        assert [(low, high, whole[to]) for low, high, to in row] == list(edges(rest))
    assert symbol_of(byte_set(6)) == ((), ((1, 2, -1),), ())


def test_words_and_what_leads_to_more_than_a_character_are_no_letters():
    for expr in (words([b"ab", b"ca"]), literal(b"a" * 33), EPSILON, switch([(97, 98, literal(b"ab"))], False)):
        assert symbol_of(expr) is None


def test_letters_that_end_alike_share_their_rests():
    table = StateTable()
    one, other = (repeat(Utf8().characters(((low, 0x7FF),))) for low in (0x80, 0x100))
    table.expand(table.add(concat(one, literal(b"x"))))
    before = len(table.parts)
    table.expand(table.add(alternation([concat(one, literal(b"x")), concat(other, literal(b"x"))])))
    # The second run, and the rest of its letter before it; that of the first is known.
    assert len(table.parts) == before + 2


def test_threads_find_the_same_states():
    table = StateTable()
    seed = random.Random(7)
    patterns = [expr for expr in (pattern(seed, 4) for _ in range(60)) if inhabited(expr)]
    texts = ["".join(seed.choices(LETTERS, k=6)).encode() for _ in range(30)]
    found: list[list[bool]] = [[] for _ in range(4)]

    def work(number: int) -> None:
        for expr in patterns:
            for text in texts:
                after = read(table, table.add(expr), text)
                found[number].append(bool(table.arrays.tag[after] >= 0))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found[0] == found[1] == found[2] == found[3]
    assert found[0] == [matches(expr, text) for expr in patterns for text in texts]
