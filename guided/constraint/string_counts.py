"""Can more strings still come of one that has begun than there are already?  Then one of them is a new one.

Counted are texts without escapes behind what is read, which differ if their bytes do; so what is found is a bound from
below.  No more are counted than asked for.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING

from guided.constraint.json_text import BACKSLASH, QUOTE, Mode
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.checked import CheckedMachine

_STEPS = 64
"""States visited for each string that is asked for; names have some twelve characters."""
_FEWEST = 4
"""Strings that are counted at least; after that twice as many as are asked for, so that sets may grow by one."""
_HEX = b"0123456789abcef"
"""Digits with which an escape may go on so that each spells another character, and no half of a pair."""


class StringCounts:
    """Answers for one machine; the machine's lock must be held."""

    def __init__(self, machine: CheckedMachine) -> None:
        self._machine: CheckedMachine = weakref.proxy(machine)
        self._infinite: dict[tuple[int, bytes], bool] = {}
        self._counts: dict[tuple[int, bytes], tuple[int, int]] = {}
        """What was found, and how much was asked for."""

    def is_infinite(self, state: int, pending: bytes) -> bool:
        """Is it plain to see that infinitely many may come?"""
        key = (state, pending)
        found = self._infinite.get(key)
        if found is None:
            found = self._infinite[key] = self._machine.look.is_open_string(state, Mode.STRING, pending)
        return found

    def more_than(self, state: int, pending: bytes, number: int) -> bool:
        """May more strings than this come of one that was read so far?  Wrong only where it says False."""
        if self.is_infinite(state, pending):
            return True
        key = (state, pending)
        count, asked = self._counts.get(key, (0, 0))
        if count <= number and asked <= number:
            rests = self._machine.look.strings.known(state, pending)
            if rests is not None:
                count, asked = len(rests.texts), sys.maxsize
            else:
                asked = max(_FEWEST, 2 * number + 1)
                count = self._counted(state, pending, asked)
            self._counts[key] = (count, asked)
        return count > number

    def _counted(self, state: int, pending: bytes, wanted: int) -> int:
        machine = self._machine
        step, next_bytes = machine.byte_step, machine.look.next_bytes
        count = 0
        left = _STEPS * wanted
        stack = [(state, pending)]
        while stack and left:
            left -= 1
            at, escape = stack.pop()
            if escape:
                size = len(escape)
                for byte in b"u" if size == 1 else _HEX if size < 6 else b"":
                    then = step(at, byte)
                    if then != DEAD:
                        stack.append((then, escape + b"x" if size < 5 else b""))
                continue
            for byte in reversed(next_bytes(at)):
                if byte == QUOTE:
                    count += 1
                    if count == wanted:
                        return count
                elif byte != BACKSLASH:
                    then = step(at, byte)
                    if then != DEAD:
                        stack.append((then, b""))
        return count
