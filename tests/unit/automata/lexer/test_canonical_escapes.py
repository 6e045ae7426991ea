"""Escapes where a character has one spelling: how far from the end of a match, and by which way."""

from __future__ import annotations

import pytest

from guided.automata.lexer.distances import minimum, shortest
from guided.automata.lexer.spelling import move, place_of, state_inside
from guided.automata.lexer.states import StateTable
from guided.constraint.effects.characters_left import CharactersLeft
from guided.grammar.json_schema.keywords.patterns import pattern_language
from guided.grammar.regular.derivative import matches
from guided.grammar.regular.expr import json_string
from tests.amounts import crossed

PATTERNS = ["^[0-9]b$", "b", "^\\n*b{3}$", "^[\\x00-\\x1f]{2}bb$", '^("|\\\\)+/b$', "^\\u000bb$", "^[^a]b$"]


@pytest.mark.parametrize(("canonical", "pattern"), crossed([False, True], PATTERNS))
def test_the_way_on_is_as_long_as_said(pattern: str, canonical: bool) -> None:
    table = StateTable()
    content = pattern_language(pattern, "#")
    language = json_string(content, canonical=canonical)
    start = table.add(language)
    left = CharactersLeft(table)
    met = 0
    for text in (b"\\", b"\\u", b"\\u0", b"\\u00", b"\\u000", b"\\u001"):
        place = place_of(table, start)
        for byte in text:
            place = place and move(table, place, byte)
        if not place:
            continue
        met += 1
        state = state_inside(table, place)
        way = shortest(table, state)
        assert len(way) == minimum(table, state)
        assert matches(language, text + way)
        if not canonical:
            continue
        # By the characters that an escape can still become, each as `json.dumps` writes it.
        escapable = [chr(code) for code in (*range(0x20), 0x22, 0x5C)]
        wanted = [c for c in escapable if _escape(c).startswith(text)]
        found = left.of_place(int(table.arrays.base[state]), int(table.arrays.decode[state]))
        assert found == min(_fewest(content, c) for c in wanted)
    assert met or not any(matches(content, (c + rest).encode()) for c in '\n"\\' for rest in ("b", "/b", "bbb"))


def _escape(character: str) -> bytes:
    import json

    return json.dumps(character)[1:-1].encode()


def _fewest(content: object, first: str) -> int:
    import itertools

    letters = '0a"\\\n\x0bb/'
    for size in range(5):
        if any(matches(content, (first + "".join(rest)).encode()) for rest in itertools.product(letters, repeat=size)):
            return size
    return 99
