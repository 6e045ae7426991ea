"""The automata that read runs of bytes of a lexeme: words, and what stands in quotes (`guided.kernels.tokens`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.grammar.attributed.lexis import next_utf8

__all__ = [
    "AFTER_BACKSLASH", "AFTER_QUOTE", "BEFORE_WORD", "IN_QUOTES", "IN_WORD", "KEPT", "MAY_END", "Run", "quoted_run",
    "word_run",
]  # fmt: skip

_FIRST = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
_MORE = _FIRST + b"0123456789"
KEPT, MAY_END = 1, 2
"""Flags: a token may end here; the run may end before another byte."""
BEFORE_WORD, IN_WORD = 0, 1
"""States of words."""
IN_QUOTES, AFTER_QUOTE, AFTER_BACKSLASH = 0, 1, 2
"""States of what stands in quotes: within it, behind a quote that ends it or is the first of two, within an escape."""
_BACKSLASH = ord("\\")


@dataclass(frozen=True, eq=False)
class Run:
    """An automaton over bytes: ``moves`` is ``int16[n, 256]``, -1 for none; ``kept`` is ``uint8[n]`` of two flags."""

    moves: NDArray[np.int16]
    kept: NDArray[np.uint8]


def word_run() -> Run:
    """Words of ASCII letters, digits and ``_`` that do not begin with a digit."""
    moves = np.full((2, 256), -1, np.int16)
    moves[BEFORE_WORD, list(_FIRST)] = IN_WORD
    moves[IN_WORD, list(_MORE)] = IN_WORD
    return Run(moves, np.array([0, KEPT | MAY_END], np.uint8))


def quoted_run(quote: int, excluded: Collection[int], *, escapes: bool) -> Run:
    """Whole characters of UTF-8, the quote doubled; a token may end within its last character.

    With ``escapes`` a backslash takes the character behind it along, whichever it is.  A quote that is excluded is no
    part of the run, which may be over before it.
    """
    whole, escaped = (0, 0, 0), (-1, 1, 0)
    states: dict[tuple[int, int, int], int] = {whole: IN_QUOTES, (-1, 0, 0): AFTER_QUOTE, escaped: AFTER_BACKSLASH}
    rows: list[NDArray[np.int16]] = []
    work = list(states)
    for utf8 in work:
        row = np.full(256, -1, np.int16)
        if utf8 == (-1, 0, 0):
            row[quote] = IN_QUOTES
            rows.append(row)
            continue
        for byte in range(256):
            after = next_utf8(whole if utf8 == escaped else utf8, byte)
            if after is None or byte in excluded:
                continue
            if utf8 == whole and byte == quote:
                row[byte] = AFTER_QUOTE
            elif utf8 == whole and escapes and byte == _BACKSLASH:
                row[byte] = AFTER_BACKSLASH
            else:
                if after not in states:
                    states[after] = len(states)
                    work.append(after)
                row[byte] = states[after]
        rows.append(row)
    kept = np.full(len(rows), KEPT, np.uint8)
    kept[IN_QUOTES if quote in excluded else AFTER_QUOTE] |= MAY_END
    return Run(np.stack(rows), kept)
