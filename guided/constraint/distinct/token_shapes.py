"""How tokens, as pieces of JSON text, cross from one item or member to the next; found once per vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from guided.constraint.distinct.json_text import COMMA, QUOTE
from guided.constraint.per_vocabulary import PerVocabulary
from guided.vocab.vocabulary import Vocabulary


class Place(IntEnum):
    """Where in a JSON text a token begins, as far as the checker knows."""

    IDLE = 0
    """Anywhere; nothing is remembered of the text before."""
    BETWEEN = 1
    """Between names and strings, or in a number."""
    STRING = 2
    """In a name or string, and not in an escape."""


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


_QUOTED = re.compile(rb'(?:[^"\\]|\\[\s\S])*"')
_BEHIND = re.compile(rb'\s*(?:([\[{])\s*)?(?:("(?:[^"\\]|\\["\\/bfnrt])*)(\\?)|(-?[0-9]*))\Z')
_HELD = re.compile(rb'\s*"([^"\\]*)"\s*,')


class TokenShapes(PerVocabulary):
    """Answers for the tokens of one vocabulary, remembered."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._spelling = vocabulary.spelling
        self._found: dict[tuple[int, Place], Crossing | None] = {}

    def _bytes(self, token: int) -> bytes:
        start, stop = self._spelling.offsets[token : token + 2].tolist()
        return self._spelling.data[start:stop].tobytes()

    def crossing(self, token: int, place: Place) -> Crossing | None:
        """What a token does that begins in a place other than `Place.IDLE`; None where it does something else."""
        key = (token, place)
        if key not in self._found:
            self._found[key] = _crossing(self._bytes(token), place)
        return self._found[key]


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


def _crossing(data: bytes, place: Place) -> Crossing | None:
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


_INSIDE = Crossing(False)
