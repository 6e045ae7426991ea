"""Characters that a pattern still needs, against all short texts."""

from __future__ import annotations

import itertools
import random
import re
from functools import cache

import numpy as np
import pytest

from guided.automata.lexer.spelling import move
from guided.automata.lexer.states import StateTable
from guided.constraint.effects import characters_left
from guided.constraint.effects.characters_left import CharactersLeft
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular.expr import json_string
from guided.kernels.data.layout import MATCHED
from tests.amounts import each

LETTERS = "aB-é\u2028😀"
PATTERNS = [
    r"^a*B$", r"é", r"^(a|aB-){2,3}$", r"[A-Z][^\u2028]*[a-z]", r"^\S+@?\S$", r"^(?:-[aB]{2}|é)+$", r"\u2028$", r"😀[^\u2028]-",
    r"^(?!a)[^B]*B", r"^(aB|-){0,2}(é|😀)?$", r"^a{3}$", r"^[^-]{2,}-[^-]{1,2}$", r"^[^-]$", r"",
]  # fmt: skip


def spelled_ways(letter: str) -> list[bytes]:
    units = letter.encode("utf-16-be")
    long = "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)).encode()
    return [letter.encode(), long]


@cache
def fewest(pattern: str, begun: str) -> int | None:
    """The least number of letters that make a match of what is begun."""
    for n in range(5):
        if any(re.fullmatch(pattern, begun + "".join(more)) for more in itertools.product(LETTERS, repeat=n)):
            return n
    return None


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
def test_the_characters_left_are_those_of_the_shortest_text(pattern):
    table = StateTable()
    start = table.add(json_string(pattern_language(pattern)))
    expected: dict[tuple[int, int], int] = {}
    for n in range(4):
        for begun in map("".join, itertools.product(LETTERS, repeat=n)):
            place = start
            for byte in begun.encode():
                place = place and move(table, place, byte)
            if not place:
                continue
            least = fewest(pattern, begun)
            assert least is not None
            expected[place, 0] = least
            for letter in LETTERS:
                for way in spelled_ways(letter):
                    at = place
                    for cut, byte in enumerate(way[:-1], 1):
                        at = at and move(table, at, byte)
                        if not at:
                            break
                        ways = [
                            fewest(pattern, begun + other)
                            for other in LETTERS
                            for spelled in spelled_ways(other)
                            if spelled.startswith(way[:cut])
                        ]
                        known = [left for left in ways if left is not None]
                        if known:
                            expected[at & 0xFFFFFFFF, at >> 32] = min(known)
    order = list(expected)
    random.Random(1).shuffle(order)
    left = CharactersLeft(table)
    for state, decode in order:
        # Letters of the text alone are fewer than there are, so none of theirs may be nearer.
        assert left.of_place(state, decode) <= expected[state, decode]
        if not decode:
            assert left.of_place(state) == expected[state, decode]
    assert left.of_place(MATCHED) == 0


@pytest.mark.parametrize("room", [1, 64])
def test_places_are_numbered_as_by_a_dictionary(room, monkeypatch):
    monkeypatch.setattr(characters_left, "PLACES", room)
    seed, table = random.Random(room), StateTable()
    start = table.add(json_string(pattern_language("^[ab]*c$")))
    states = [move(table, start, byte) for byte in b"abc"] + [MATCHED, start]
    places = [state for state in seed.choices(states, k=400) for _ in range(seed.randint(1, 3))]
    left = CharactersLeft(table)
    found = left.of_tokens(np.array(places, np.int64))
    assert found.tolist() == [left.of_place(state) for state in places]
