"""How tokens cross from one item to the next, and the kinds of such tokens."""

from __future__ import annotations

import numpy as np

from guided.constraint.distinct.crossings import Crossing, Crossings, crossing_of
from guided.constraint.distinct.token_texts import Place, Reach
from tests import vocabularies

INSIDE = Crossing(False)


def test_tokens_that_do_not_cross() -> None:
    for data in (b"a", b'a"', b'\\",', b'\\",\\"', b'"]}', b'": [', b'","'[:1], b"\\"):
        assert crossing_of(data, Place.STRING) == INSIDE, data
    for data in (b' "],', b' "a,b" ', b'"},{"', b" ]", b": {}", b"1"):
        assert crossing_of(data, Place.BETWEEN) == INSIDE, data


def test_the_beginning_of_an_item() -> None:
    assert crossing_of(b'",', Place.STRING) == Crossing(True, end=b"")
    assert crossing_of(b'a", "', Place.STRING) == Crossing(True, quoted=True, end=b"a")
    assert crossing_of(b'\\n","b\\', Place.STRING) == Crossing(True, quoted=True, pending=b"\\")
    assert crossing_of(b'"]} , {"x', Place.STRING) == Crossing(True, closed=2, opened=b"{", quoted=True, end=b"")
    assert crossing_of(b" {}, -1", Place.BETWEEN) == Crossing(True, number=True)
    assert crossing_of(b"],[", Place.BETWEEN) == Crossing(True, closed=1, opened=b"[")


def test_an_item_between_two_commas() -> None:
    assert crossing_of(b'","b","', Place.STRING) == Crossing(True, quoted=True, end=b"", held=b"b")


def test_what_is_not_told() -> None:
    for data in (b'","a"', b'",1,', b'","a\\"b",', b'",[1,', b'",null', b'","\\u00'):
        assert crossing_of(data, Place.STRING) is None, data
    for data in (b"[1,", b'{"a":1,'):
        assert crossing_of(data, Place.BETWEEN) is None, data


TOKENS = [
    b'"',
    b'",',
    b'a",',
    b'", "',
    b'b", "c',
    b'","b","',
    b'","c","',
    b'a","b","',
    b'\\n","',
    b'"},{"',
    b"x",
    b'",[1,',
]
ITEM = frozenset((Reach.ITEM,))


def kinds(place: Place, row: list[int]) -> list[list[bytes]]:
    """The tokens of a row that are asked about, those of one kind together."""
    found = Crossings(vocabularies.of_tokens(TOKENS))
    words = np.zeros(1, np.uint32)
    for token in row:
        words[0] |= np.uint32(1 << token)
    groups: dict[int, list[bytes]] = {}
    for token, kind in zip(*found.of_tokens(ITEM, place).within(words), strict=True):
        groups.setdefault(kind, []).append(TOKENS[token])
    return list(groups.values())


def test_tokens_are_of_one_kind_if_only_the_string_differs_that_they_end() -> None:
    assert kinds(Place.STRING, list(range(len(TOKENS)))) == [
        [b'",', b'a",'],
        [b'", "', b'b", "c'],
        [b'","b","', b'","c","', b'a","b","'],
        [b'\\n","'],
        [b'"},{"'],
        [b'",[1,'],
    ]


def test_a_row_without_any() -> None:
    assert kinds(Place.STRING, [0, 10]) == []
    assert kinds(Place.STRING, []) == []


def test_some_kinds_of_them() -> None:
    found = Crossings(vocabularies.of_tokens(TOKENS))
    all_of_them = found.of_tokens(ITEM, Place.STRING)
    quoted = np.array([crossing is not None and crossing.quoted for crossing in found.first])
    tokens, _ = all_of_them.of_kinds(quoted).within(np.full(1, 0xFFFFFFFF, np.uint32))
    assert [TOKENS[token] for token in tokens] == TOKENS[3:10]
