"""Ending in time inside a pattern: the automaton's shortest text where it passes the checker, else a way there first.

Where it does not, something is begun whose value counts: digits that must not be too small, a name that must be new or
known.  A few bytes, tried greatest first, bring it to an end; behind them the automaton's text passes.
"""

from __future__ import annotations

import weakref

from guided.constraint.formats.completion import FormatCompletions
from guided.constraint.formats.pattern_text import PatternText
from guided.constraint.product import ProductMachine
from guided.errors import LimitError
from guided.kernels.data.layout import DEAD

_PREFERRED = b'>}]f9d_Fzu\\{"'
"""Ends first, then what makes a number or name great or long."""
_ORDER = bytes((*_PREFERRED, *(byte for byte in range(0xFF, 0x1F, -1) if byte not in _PREFERRED)))
_DEEP = 64
"""Bytes of a way out beyond what names of groups take; a surrogate pair in escapes of JSON takes fewest of 40."""


class PatternCompletions(FormatCompletions):
    """Short completions of one machine's states."""

    def __init__(self, machine: ProductMachine[PatternText]) -> None:
        super().__init__(machine)
        self._patterns: ProductMachine[PatternText] = weakref.proxy(machine)

    def way_out(self, state: int) -> bytes:
        """A short text after which ``state`` may end, where the automaton's own does not pass.

        Raises `LimitError` where none is found.
        """
        machine = self._patterns
        text = machine.split(state)[1]
        assert text is not None
        deep = _DEEP + 6 * max(map(len, text.reading.names), default=0)
        path: list[tuple[int, bytes]] = []
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
            path.append((at, bytes((byte,))))
            at = after
            rest = self._texts.get(at)
            rest = self.direct(at) if rest is None else rest
            if rest is not None:
                return self._remember(path, rest, at)
            branches.append(iter(_ORDER))
        raise LimitError("no end of a pattern was found", remedy="Generate without a token budget.")
