"""How tokens cross from one item to the next."""

from __future__ import annotations

import guided
from guided.constraint.distinct.token_shapes import Crossing, Place, TokenShapes

INSIDE = Crossing(False)


def crossing(data: bytes, place: Place) -> Crossing | None:
    return TokenShapes(guided.Vocabulary.from_tokens([data, None], eos_ids=[1])).crossing(0, place)


def test_tokens_that_do_not_cross() -> None:
    for data in (b"a", b'a"', b'\\",', b'\\",\\"', b'"]}', b'": [', b'","'[:1], b"\\"):
        assert crossing(data, Place.STRING) == INSIDE, data
    for data in (b' "],', b' "a,b" ', b'"},{"', b" ]", b": {}", b"1"):
        assert crossing(data, Place.BETWEEN) == INSIDE, data


def test_the_beginning_of_an_item() -> None:
    assert crossing(b'",', Place.STRING) == Crossing(True, end=b"")
    assert crossing(b'a", "', Place.STRING) == Crossing(True, quoted=True, end=b"a")
    assert crossing(b'\\n","b\\', Place.STRING) == Crossing(True, quoted=True, pending=b"\\")
    assert crossing(b'"]} , {"x', Place.STRING) == Crossing(True, closed=2, opened=b"{", quoted=True, end=b"")
    assert crossing(b" {}, -1", Place.BETWEEN) == Crossing(True, number=True)
    assert crossing(b"],[", Place.BETWEEN) == Crossing(True, closed=1, opened=b"[")


def test_an_item_between_two_commas() -> None:
    assert crossing(b'","b","', Place.STRING) == Crossing(True, quoted=True, end=b"", held=b"b")


def test_what_is_not_told() -> None:
    for data in (b'","a"', b'",1,', b'","a\\"b",', b'",[1,', b'",null', b'","\\u00'):
        assert crossing(data, Place.STRING) is None, data
    for data in (b"[1,", b'{"a":1,'):
        assert crossing(data, Place.BETWEEN) is None, data
