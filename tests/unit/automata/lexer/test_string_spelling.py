"""How compiled tables read JSON strings, against expressions, `json` and distances by search."""

from __future__ import annotations

import heapq
import json
import random

import pytest

from guided.automata.lexer.distances import minimum, shortest
from guided.automata.lexer.spelling import written_edges
from guided.automata.lexer.states import StateTable
from guided.grammar.regex import lower, parse
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.derivative import edges, matches
from guided.grammar.regular.expr import Expr, difference, intersection, json_string, words
from tests.amounts import crossed, each, some

PATTERNS = [
    r"a.*", r"[^a-z]{2,5}", r"(?!.*\\).+", r'.*".*', r"\s*", r"(?<=^a)b|.*\x00", r"[\U0001F600-\U0001F64F]+", r"/.*/",
    r"\t?\n?", r"[\u0800-\u0fff]x|[\ud7ff\ue000]", r"[\U00010000-\U0001ffff]|\U0010ffff.", r"\x07|\x0b\x1f|[ab]{3}",
    r"(?:\u20ac|é){2,9}",
]  # fmt: skip


def content(number: int) -> Expr:
    if number < len(PATTERNS):
        return lower(parse(PATTERNS[number]), Utf8())
    return difference(Utf8().text, words([b"a", b"ab", "é\n".encode(), "😀".encode()]))


@pytest.mark.parametrize(("canonical", "number"), crossed([False, True], range(len(PATTERNS) + 1), share=6))
def test_tables_read_what_expressions_read(number: int, canonical: bool) -> None:
    table, seed = StateTable(), random.Random(number)
    language = json_string(content(number), canonical=canonical)
    start = table.add(language)
    for _ in range(some(60, 8)):
        expr, state = language, start
        for _ in range(25):
            row, outgoing = written_edges(table, state), edges(expr)
            by_table = {byte: target for low, high, target in row for byte in range(low, high + 1)}
            by_expr = {byte: target for low, high, target in outgoing for byte in range(low, high + 1)}
            assert set(by_table) == set(by_expr)
            if not by_expr:
                assert expr.nullable and table.arrays.tag[state] == 0
                break
            favourites = [byte for byte in b'\\u"d8' if byte in by_expr]
            byte = seed.choice(favourites if favourites and seed.random() < 0.6 else sorted(by_expr))
            expr, state = by_expr[byte], by_table[byte]


@pytest.mark.parametrize("number", each(range(len(PATTERNS) + 1), 2))
def test_distances_are_those_of_a_search_over_bytes(number: int) -> None:
    table, seed = StateTable(), random.Random(number)
    state = table.add(json_string(content(number)))
    for _ in range(some(12, 8)):
        assert minimum(table, state) == by_search(table, state)
        text = shortest(table, state)
        assert len(text) == minimum(table, state)
        row = written_edges(table, state)
        if not row:
            break
        escapes = [edge for edge in row if edge[0] == 0x5C or table.arrays.decode[edge[2]]]
        state = seed.choice(escapes if escapes and seed.random() < 0.5 else row)[2]


def by_search(table: StateTable, state: int) -> int:
    """The distance of a state, by Dijkstra's algorithm alone."""
    done: set[int] = set()
    queue = [(0, state)]
    while queue:
        distance, at = heapq.heappop(queue)
        if table.arrays.tag[at] >= 0:
            return distance
        if at not in done:
            done.add(at)
            for target in {target for _, _, target in written_edges(table, at)}:
                heapq.heappush(queue, (distance + 1, target))
    raise AssertionError("no end")


def test_shortest_texts_are_json_strings_of_the_language() -> None:
    for number in range(len(PATTERNS) + 1):
        language = content(number)
        table = StateTable()
        text = shortest(table, table.add(json_string(language)))
        assert matches(language, json.loads(b'"' + text).encode())


def test_the_end_of_a_large_automaton_is_found_without_all_of_it() -> None:
    """Any of 2^13 memories of the last letters, and at least 20 letters: of the lengths the expression knows enough."""
    table = StateTable()
    wanted = [lower(parse(pattern), Utf8()) for pattern in (r"[ab]*a[ab]{12}", r".{20,}")]
    state = table.add(json_string(intersection(tuple(wanted))))
    for left in range(20, 13, -1):
        assert minimum(table, state) == left + 1
        state = next(target for low, high, target in written_edges(table, state) if low <= ord("b") <= high)
    assert len(table) < 1500


def test_the_closing_quote_is_counted_on_the_way() -> None:
    """2^42 memories of the last letters, all of them a byte too near if their strings closed for nothing."""
    table = StateTable()
    state = table.add(json_string(lower(parse("[ab]*a[ab]{42}"), Utf8())))
    assert minimum(table, state) == 44
    assert len(shortest(table, state)) == 44
    assert len(table) < 50_000
