"""Ending in time inside a pattern: the automaton's shortest text where it passes the checker, else a way there first.

Where it does not, something is begun whose value counts: digits that must not be too small, a name that must be new or
known.  A few bytes, tried greatest first, bring it to an end; behind them the automaton's text passes.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from guided.constraint.completion import Completions
from guided.constraint.pattern_text import PatternText
from guided.errors import LimitError
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.checked_patterns import PatternMachine

_PREFERRED = b'>}]f9d_Fzu\\{"'
"""Ends first, then what makes a number or name great or long."""
_ORDER = bytes((*_PREFERRED, *(byte for byte in range(0xFF, 0x1F, -1) if byte not in _PREFERRED)))
_DEEP = 64
"""Bytes of a way out beyond what names of groups take; a surrogate pair in escapes of JSON takes fewest of 40."""


class PatternCompletions(Completions):
    """Short completions of one machine's states."""

    def __init__(self, machine: PatternMachine) -> None:
        super().__init__(machine)  # type: ignore[arg-type]
        self._patterns: PatternMachine = weakref.proxy(machine)

    def text(self, state: int) -> bytes:
        """A short text after which ``state`` may end."""
        machine = self._patterns
        own, text = machine.split(state)
        if text is None:
            return machine.inner.completions.text(own)
        found = self._texts.get(state)
        if found is None:
            rest = self._direct(state)
            found = self._way_out(state, text) if rest is None else rest
            self._texts[state] = found
        return found

    def is_near(self, state: int, limit: int) -> bool:
        """Are so many tokens enough?"""
        return state != DEAD and len(self.tokens(state)) <= limit

    def _direct(self, state: int) -> bytes | None:
        """The automaton's own shortest text, where the checker lets it pass."""
        machine = self._patterns
        whole = machine.inner.completions.text(machine.split(state)[0])
        return whole if machine.is_accepting(machine.advance_text(state, whole)) else None

    def _way_out(self, state: int, text: PatternText) -> bytes:
        machine = self._patterns
        deep = _DEEP + 6 * max(map(len, text.reading.names), default=0)
        path: list[tuple[int, int]] = []
        seen = {state}
        branches = [iter(_ORDER)]
        at = state
        while branches:
            byte = next(branches[-1], None)
            if byte is None or len(path) > deep:
                branches.pop()
                if path:
                    at = path.pop()[0]
                continue
            after = machine.advance_text(at, bytes((byte,)))
            if after == DEAD or after in seen:
                continue
            seen.add(after)
            path.append((at, byte))
            at = after
            rest = self._texts.get(at)
            rest = self._direct(at) if rest is None else rest
            if rest is not None:
                return self._remember(path, rest, at)
            branches.append(iter(_ORDER))
        raise LimitError("no end of a pattern was found", remedy="Generate without a token budget.")
