"""Of the strings that may come in one place those that are not there yet, and which beginnings none of them has.

Where all that may come are listed, a token leads nowhere as soon as the last of them that begins so is there.  So it
begins as that one does, and goes further with it than with any that is left: of those, in order, its neighbours agree
with it the longest.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.token_texts import TokenTexts

_ANY = (b"\\", b"\\u")
"""Escapes that may still become any character."""


class UnusedStrings:
    """The strings, as what is left of them behind what is read; ``told``: all that may come, in order."""

    def __init__(self, told: tuple[bytes, ...]) -> None:
        self._left = list(told)

    def ended(self, texts: TokenTexts, row: NDArray[np.uint32], rests: list[bytes], *, inside: bool) -> list[int]:
        """With some more that are there: tokens that lead on only in such as these, and not to their end.

        All of a row's tokens that do, and a few that are not in it.  ``inside``: do the tokens begin in the string, or
        do they begin it?
        """
        left = self._left
        for rest in rests:
            at = bisect_left(left, rest)
            if at < len(left) and left[at] == rest:
                del left[at]
        begun, longest = (texts.escaping, texts.longest_escaping) if inside else (texts.opening, texts.longest_opening)
        found: list[int] = []
        judged: set[int] = set()
        for rest in rests:
            shared, longer = self._shared(rest)
            if inside:
                found += texts.beginning(rest, shared)
            for size in range(min(len(rest), longest) + 1):
                for token, pending in begun.get(rest[:size], ()):
                    if token not in judged:
                        judged.add(token)
                        allowed = tokenset.contains(row, token)
                        if allowed and self._is_ended(rest[:size], pending, shared, longer):
                            found.append(token)
        return found

    def _shared(self, rest: bytes) -> tuple[int, bool]:
        """How many bytes it shares with one that is left, -1 without any; is there one with these and others?"""
        at = bisect_left(self._left, rest)
        shared, longer = -1, False
        for other in self._left[max(at - 1, 0) : at + 1]:
            size = 0
            for one, another in zip(rest, other, strict=False):
                if one != another:
                    break
                size += 1
            if size >= shared:
                longer = len(other) > size or (longer and size == shared)
                shared = size
        return shared, longer

    def _is_ended(self, begun: bytes, pending: bytes, shared: int, longer: bool) -> bool:
        """Does none that is left begin so, and go on as an escape does that is not complete?"""
        if len(begun) > shared or not pending:
            return len(begun) > shared
        if pending in _ANY:
            return len(begun) == shared and not longer
        left = self._left
        for at in range(bisect_left(left, begun), len(left)):
            if not left[at].startswith(begun):
                break
            if _may_be(left[at][len(begun) :], pending):
                return False
        return True


def _may_be(text: bytes, pending: bytes) -> bool:
    """May an escape that is being read become the first character of a text?"""
    if b"\x80" <= text[:1] < b"\xc0":
        # No escape may come within a character.
        return False
    units = text.decode("utf-8", "surrogatepass")[:1].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)).encode().startswith(pending)
