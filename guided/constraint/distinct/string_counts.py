"""Can more strings still come of one that has begun than there are already?  Then one of them is a new one.

Counted are texts without escapes behind what is read, which differ if their bytes do; so what is found is a bound from
below.  No more are counted than asked for.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from guided.constraint.distinct.json_text import BACKSLASH, QUOTE, Mode
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine

MANY = 8
"""Strings that are worth a count before a way out is looked for, which takes longer."""
_STEPS = 64
"""States visited for each string that is asked for; names have some twelve characters."""
_FEWEST = 4
"""Strings that are counted at least; after that twice as many as are asked for, so that sets may grow by one."""
ANY_ASCII = frozenset((b"\\", b"\\u", b"\\u0", b"\\u00"))
"""Escapes that may still become any character of ASCII."""
_WHOLE = 6
"""Bytes of an escape by a character's number."""
_HEX = b"0123456789abcef"
"""Digits with which an escape may go on so that each spells another character, and no half of a pair."""


class StringCounts:
    """Answers for one machine; the machine's lock must be held."""

    def __init__(self, machine: DistinctMachine) -> None:
        self._machine: DistinctMachine = weakref.proxy(machine)
        self._infinite: dict[tuple[int, bytes], bool] = {}
        self._escaped: dict[tuple[int, bytes], tuple[int, int]] = {}
        self._counts: dict[tuple[int, bytes], tuple[int, int]] = {}
        """What was found, and how much was asked for; `sys.maxsize` for what is a whole count."""

    def is_infinite(self, state: int, pending: bytes) -> bool:
        """Is it plain to see that infinitely many may come?"""
        key = (state, pending)
        found = self._infinite.get(key)
        if found is None:
            found = self._infinite[key] = self._machine.look.is_open_string(state, Mode.STRING, pending)
        return found

    def more_than(self, state: int, pending: bytes, number: int) -> bool:
        """May more strings than this come of one that was read so far?  Wrong only where it says False."""
        key = (state, pending)
        count, asked = self._counts.get(key, (0, 0))
        if count <= number and asked <= number:
            if pending in ANY_ASCII:
                if self.more_behind_escape(state, pending, number):
                    return True
                if self._escaped[self._escape(state, pending)][1] == sys.maxsize:
                    return False
            count, asked = self._counts[key] = self._bound(state, pending, number)
        return count > number

    def more_behind_escape(self, state: int, pending: bytes, number: int) -> bool:
        """The same before or in an escape that may become any character of ASCII that is spelled so."""
        key = self._escape(state, pending)
        count, asked = self._escaped.get(key, (0, 0))
        if count <= number and asked <= number:
            asked = max(_FEWEST, 2 * number + 1)
            count, whole = self._machine.look.inside.n_behind_escape(state, pending, asked)
            self._escaped[key] = (count, sys.maxsize if whole else asked)
        return count > number

    def _escape(self, state: int, pending: bytes) -> tuple[int, bytes]:
        """A place in an escape: what was read of it matters only where not all characters are spelled so."""
        return state, pending if self._machine.look.inside.is_spelled_once(state) else b""

    def _bound(self, state: int, pending: bytes, number: int) -> tuple[int, int]:
        """For `_counts`: what is found, and how much was asked for."""
        look = self._machine.look
        asked = max(_FEWEST, 2 * number + 1)
        if not pending:
            # Some come of each byte, which costs less to see than whether they are infinitely many.
            count = look.inside.n_ways(state)
            if count > number:
                return count, number
            count, whole = look.inside.n_texts(state, asked)
            if whole or count > number:
                return count, sys.maxsize if whole else number
        if self.is_infinite(state, pending):
            return sys.maxsize, sys.maxsize
        rests = look.strings.known(state, pending)
        if rests is not None:
            return len(rests.texts), sys.maxsize
        count = self._counted(state, pending, asked)
        return count, max(asked, self._counts.get((state, pending), (0, 0))[1])

    def _counted(self, state: int, pending: bytes, wanted: int) -> int:
        """Depth first; of states behind which nothing is left to look at the number is remembered as it is."""
        step, counts = self._machine.byte_step, self._counts
        ends, ways = self._ways(state, pending)
        count = int(ends)
        stack = [(state, pending, ways, 0)]
        left = _STEPS * wanted
        while stack and left and count < wanted:
            left -= 1
            at, escape, ways, before = stack[-1]
            byte = next(ways, -1)
            if byte < 0:
                stack.pop()
                if not escape:
                    counts[at, b""] = (count - before, sys.maxsize)
                continue
            then = step(at, byte)
            if then != DEAD:
                longer = escape + b"x" if 0 < len(escape) < _WHOLE - 1 else b""
                known = None if longer else counts.get((then, b""))
                if known is not None and known[1] == sys.maxsize:
                    count += known[0]
                    continue
                before = count
                ends, ways = self._ways(then, longer)
                count += ends
                stack.append((then, longer, ways, before))
        return count

    def _ways(self, state: int, escape: bytes) -> tuple[bool, Iterator[int]]:
        """May the string end, and the bytes by which it may go on."""
        if escape:
            size = len(escape)
            return False, iter(b"u" if size == 1 else _HEX if size < _WHOLE else b"")
        look = self._machine.look
        ways = (byte for byte in look.next_bytes(state) if byte != QUOTE and byte != BACKSLASH)
        # It may be a name that must not come.
        return QUOTE in look.next_byte_set(state) and self._machine.byte_step(state, QUOTE) != DEAD, ways
