"""The kinds of tokens that go on to a next item or member."""

from __future__ import annotations

import numpy as np

from guided.constraint.distinct.token_kinds import TokenKinds
from guided.constraint.distinct.token_shapes import Place
from guided.constraint.distinct.token_texts import Reach
from tests import vocabularies

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
    found = TokenKinds(vocabularies.of_tokens(TOKENS))
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
    found = TokenKinds(vocabularies.of_tokens(TOKENS))
    all_of_them = found.of_tokens(ITEM, Place.STRING)
    quoted = np.array([crossing is not None and crossing.quoted for crossing in found.first])
    tokens, _ = all_of_them.of_kinds(quoted).within(np.full(1, 0xFFFFFFFF, np.uint32))
    assert [TOKENS[token] for token in tokens] == TOKENS[3:10]
