"""How tokens, as pieces of JSON text, cross from one item or member to the next, and which kinds of crossing there are.

With the automaton's state behind a token its kind is all that a verdict on it rests on, and few tokens differ in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import COMMA, QUOTE
from guided.constraint.distinct.token_texts import Place, Reach, TokenTexts
from guided.constraint.per_vocabulary import PerVocabulary
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Crossing", "Crossings", "KindsOfTokens", "crossing_of"]


class Crossing(NamedTuple):
    """What a token does that ends one item or member at most, and then goes on just to the beginning of another."""

    crosses: bool
    """Is there a comma outside of strings?  If not, nothing else is said."""
    closed: int = 0
    """Containers that it closes before the comma."""
    opened: bytes = b""
    """The bracket that it opens behind the comma, if any."""
    quoted: bool = False
    """Does it end in a string or name?"""
    pending: bytes = b""
    """The escape in which it ends."""
    number: bool = False
    """Does it end in a number?"""
    end: bytes | None = None
    """Begun in a string, its end without the quotation mark; None for what has escapes."""
    held: bytes | None = None
    """The string that it holds as a whole item, between two commas."""


_INSIDE = Crossing(False)

_QUOTED = re.compile(rb'(?:[^"\\]|\\[\s\S])*"')
_BEHIND = re.compile(rb'\s*(?:([\[{])\s*)?(?:("(?:[^"\\]|\\["\\/bfnrt])*)(\\?)|(-?[0-9]*))\Z')
_HELD = re.compile(rb'\s*"([^"\\]*)"\s*,')


class KindsOfTokens(NamedTuple):
    """Some tokens, each with its word and bit in a row and the number of its kind."""

    token: NDArray[np.int64]
    word: NDArray[np.int64]
    bit: NDArray[np.uint32]
    kind: NDArray[np.int64]

    def within(self, row: NDArray[np.uint32]) -> tuple[list[int], list[int]]:
        """Those of the tokens that are in a row, and the kind of each."""
        hits = np.flatnonzero(row[self.word] & self.bit)
        return (self.token[hits].tolist(), self.kind[hits].tolist()) if hits.size else ([], [])

    def of_kinds(self, wanted: NDArray[np.bool_]) -> KindsOfTokens:
        """Those of some kinds."""
        some = wanted[self.kind]
        return KindsOfTokens(self.token[some], self.word[some], self.bit[some], self.kind[some])


class Crossings(PerVocabulary):
    """How the tokens of one vocabulary cross; those are of one kind that differ only in the string that they end."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._texts = TokenTexts.of(vocabulary)
        self._crossings: dict[tuple[int, Place], Crossing | None] = {}
        self._numbers: dict[object, int] = {}
        self.first: list[Crossing | None] = []
        """By kind the crossing of one of its tokens; None for those that do something else."""
        self._kinds: dict[tuple[frozenset[Reach], Place], KindsOfTokens] = {}
        # Reading the tokens takes milliseconds, which would be in the middle of a text.
        for place in (Place.BETWEEN, Place.STRING):
            for reach in Reach:
                self.of_tokens(frozenset((reach,)), place)

    def crossing(self, token: int, place: Place) -> Crossing | None:
        """What a token does that begins in a place other than `Place.IDLE`; None where it does something else."""
        key = (token, place)
        if key not in self._crossings:
            self._crossings[key] = crossing_of(self._texts.spelled(token), place)
        return self._crossings[key]

    def of_tokens(self, reaches: frozenset[Reach], place: Place) -> KindsOfTokens:
        """The tokens that, beginning in a place, reach so far, less those that surely go no further than a comma."""
        found = self._kinds.get((reaches, place))
        if found is None:
            found = self._kinds[reaches, place] = self._read(reaches, place)
        return found

    def _read(self, reaches: frozenset[Reach], place: Place) -> KindsOfTokens:
        tokens: list[int] = []
        kinds: list[int] = []
        for token in self._texts.that_reach(reaches, place).tolist():
            crossing = self.crossing(token, place)
            if crossing is None or crossing.crosses:
                tokens.append(token)
                kinds.append(self._kind(crossing))
        token, kind = np.array(tokens, np.int64), np.array(kinds, np.int64)
        return KindsOfTokens(token, *tokenset.places(token), kind)

    def _kind(self, crossing: Crossing | None) -> int:
        """The number of a kind: all of a crossing but what the string is whose end a token begins with."""
        key = crossing and (*crossing[: Crossing._fields.index("end")], crossing.end is None, crossing.held is None)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.first)
            self.first.append(crossing)
        return found


def _outside(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """The bytes from a place outside of strings on that are in none, each with the place behind it.

    A quotation mark comes only last: that of a string that is not ended.
    """
    while at < len(data):
        byte = data[at]
        at += 1
        if byte == QUOTE:
            quoted = _QUOTED.match(data, at)
            if quoted is None:
                yield QUOTE, at
                return
            at = quoted.end()
        else:
            yield byte, at


def crossing_of(data: bytes, place: Place) -> Crossing | None:
    """What a token of these bytes does that begins in a place; None where it does something else."""
    start = 0
    end: bytes | None = None
    if place is Place.STRING:
        quoted = _QUOTED.match(data)
        if quoted is None:
            return _INSIDE
        start = quoted.end()
        end = None if b"\\" in quoted[0] else quoted[0][:-1]
    depth = closed = 0
    for byte, at in _outside(data, start):
        if byte in b"[{":
            depth += 1
        elif byte in b"]}":
            if depth:
                depth -= 1
            else:
                closed += 1
        elif byte == COMMA:
            return None if depth else _behind(data, at, closed, end)
    return _INSIDE


def _behind(data: bytes, at: int, closed: int, end: bytes | None) -> Crossing | None:
    held = None
    found = _BEHIND.match(data, at)
    if found is None:
        whole = _HELD.match(data, at)
        if whole is None:
            return None
        held = whole[1]
        found = _BEHIND.match(data, whole.end())
        if found is None:
            return None
    quoted, pending, number = found[2] is not None, found[3] or b"", bool(found[4])
    return Crossing(True, closed, found[1] or b"", quoted, pending, number, end, held)
