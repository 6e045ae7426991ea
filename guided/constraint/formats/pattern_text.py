"""Where a checker is in a JSON string whose text is a pattern of ECMA-262: in the pattern, and in an escape of JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from guided.constraint.distinct.json_text import BACKSLASH, escaped
from guided.grammar.formats.pattern_reading import START, Reading, row
from guided.grammar.regular.json_text import spelled_ranges

_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]?|u[0-9a-f]{0,4}|ud[89ab][0-9a-f]{2}\\(?:u[0-9a-f]{0,4})?)')
"""An escape of JSON, or the beginning of one, in lower case."""


class PatternText(NamedTuple):
    """Immutable; equal places go on equally."""

    reading: Reading
    pending: bytes
    """An escape that is not complete yet, in lower case."""

    def step(self, byte: int) -> PatternText | None:
        """The place after one more byte inside the string; None where it cannot become a pattern."""
        if not self.pending:
            if byte == BACKSLASH:
                ways = row(self.reading.state)
                inside_character = min(ways) >= 0x80 and max(ways) < 0xC0
                return None if inside_character else PatternText(self.reading, b"\\")
            then = self.reading.step(byte)
            return None if then is None else PatternText(then, b"")
        longer = (self.pending + bytes((byte,))).lower()
        if not _ESCAPE.fullmatch(longer):
            return None
        text, pending = escaped(longer)
        reading: Reading | None = self.reading
        for one in text:
            reading = None if reading is None else reading.step(one)
        if reading is None:
            return None
        after = PatternText(reading, pending)
        return after if len(pending) < 3 or after._can_end() else None

    def _can_end(self) -> bool:
        """Is there a character whose escape begins so?"""
        ranges = spelled_ranges(self.pending[1:].decode())
        known = self.reading.next_characters()
        if known is not None:
            return any(low <= code <= high for code in known for low, high in ranges)
        ways = row(self.reading.state)
        if not any(byte >= 0x80 for byte in ways):
            return any(low <= byte <= high for byte in ways for low, high in ranges)
        if self.reading.state[0] in _ANY_ABOVE and any(high >= 0x80 for _, high in ranges):
            return True
        return any(self._allows(code) for code in _likely_first(ranges))

    def _allows(self, code: int) -> bool:
        reading: Reading | None = self.reading
        for one in chr(code).encode():
            reading = None if reading is None else reading.step(one)
        return reading is not None

    @property
    def may_end(self) -> bool:
        """Whether the pattern may end here the automaton knows alone."""
        return True

    @property
    def is_free(self) -> bool:
        """May nearly anything come, so that only tokens that hold a whole range, quantifier or reference can fail?"""
        return not self.pending and self.reading.state[0] in FREE_OUTSIDE | FREE_IN_CLASS

    @property
    def is_doubtful(self) -> bool:
        """May the automaton's shortest way to the end of the pattern fail: has something begun whose value counts?"""
        kind, _, *rest = self.reading.state
        if self.pending or kind in _VALUED:
            return True
        if kind == "name":
            return rest[0][0] == "atom" or self.reading.begun in self.reading.names
        return kind in _IN_RANGE and rest[0] is not None


_VALUED = frozenset(("first", "equal", "unequal", "reference", "through", "half"))
_IN_RANGE = frozenset(("quoted", "escaped", "digits", "braced", "control"))
"""Kinds of states whose first value is the first end of a range, or None."""
_ANY_ABOVE = frozenset(("term", "atom", "lazy", "group", "zero", "number", "class", "items", "behind", "half"))
"""Kinds of states in which any character above ASCII may come, if one may."""
FREE_OUTSIDE = frozenset(("term", "atom", "lazy", "group"))
FREE_IN_CLASS = frozenset(("class", "items", "behind"))

BEGINNING = PatternText(START, b"")
"""Behind the opening quotation mark."""


def _likely_first(ranges: list[tuple[int, int]]) -> Iterator[int]:
    """All characters of some ranges: first the ends, since most sets of characters are unions of few long ranges."""
    for low, high in ranges:
        yield from (high, low)
    for low, high in ranges:
        yield from range(low + 1, high)
