"""The automata that read literals held to a regular expression; their states are made as walks come to them.

Most have some tens of states, and that of JSON 764; one that counts has more than there is room for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from guided.constraint.attributed.tables import KEPT, MAY_END, Run
from guided.errors import LimitError
from guided.grammar.attributed.lexis import POINT
from guided.grammar.attributed.spellings import NUMBERS, Spellings
from guided.grammar.regular.derivative import derivative, edges
from guided.grammar.regular.expr import Expr

__all__ = ["Spelled", "SpelledRun"]

_MOST_STATES = 1 << 14
"""States that are kept: 8 MB."""
_MOST_IN_A_WALK = 1 << 15
"""States that an automaton can have."""
_AT_ONCE = 64
"""States that are made when some are wanted, besides these."""


class Spelled(NamedTuple):
    """A state of such an automaton."""

    literal: Expr
    """What may follow of the literal."""
    number: Expr | None
    """What may follow of any number, if it is one."""
    is_special: bool
    """Does a number begin here that has a digit before its point?  Or is it behind a quote?"""


class SpelledRun:
    """What stands in a ``quote``, or a number (None), that is held to a spelling; for numbers also to none."""

    def __init__(self, spellings: Spellings | None, quote: int | None, excluded: bytes) -> None:
        self._spellings = NUMBERS if spellings is None else spellings
        self.quote = quote
        self._excluded = [*excluded, *(() if quote is None else (quote,))]
        self._forget()

    def _forget(self) -> None:
        self._numbers: dict[Spelled, int] = {}
        self._states: list[Spelled] = []
        self._made: set[int] = set()
        self._moves = np.full((2 * _AT_ONCE, 256), -1, np.int16)
        self._kept = np.zeros(2 * _AT_ONCE, np.uint8)

    def state(self, text: bytes) -> Spelled | None:
        """The state behind a text, None where no literal begins so."""
        literal = self._spellings.behind(text)
        number = NUMBERS.behind(text) if self.quote is None else None
        if literal is None or (self.quote is None and number is None):
            return None
        return Spelled(literal, number, self.quote is None and not text)

    def begin(self, state: Spelled) -> int:
        """The number of the state at which a walk begins."""
        if len(self._states) > _MOST_STATES:
            self._forget()
        begun = self._number(state)
        self._make([begun])
        return begun

    @property
    def run(self) -> Run:
        """The automaton as far as it is made: a walk ends where no move is known yet."""
        size = len(self._states)
        return Run(self._moves[:size], self._kept[:size])

    def make(self, begun: int, texts: Iterable[bytes]) -> bool:
        """Make the states to which some texts lead; were any not made?"""
        wanted = {self._after(begun, text) for text in texts} - self._made
        self._make(sorted(wanted))
        return bool(wanted)

    def _after(self, state: int, text: bytes) -> int:
        for byte in text:
            state = int(self._moves[state, byte])
        return state

    def _number(self, state: Spelled) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._states)
            if found >= _MOST_IN_A_WALK:
                raise LimitError("a literal's spelling has too many states", remedy="Report the grammar.")
            if found == len(self._kept):
                self._moves = np.concatenate([self._moves, np.full_like(self._moves, -1)])
                self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)])
            self._states.append(state)
            # Until it is made, a walk ends there: so it is found.
            self._kept[found] = KEPT | MAY_END
        return found

    def _make(self, wanted: list[int]) -> None:
        """Make some states, and more of those behind them."""
        most = len(wanted) + _AT_ONCE
        work = list(wanted)
        for place, number in enumerate(work):
            if place >= most:
                break
            if number in self._made:
                continue
            self._made.add(number)
            state = self._states[number]
            for low, high, after in self._behind(state):
                to = self._number(after)
                self._moves[number, low : high + 1] = to
                work.append(to)
            if self.quote is not None and not state.is_special:
                self._moves[number, self._excluded] = -1
                if state.literal.nullable or derivative(state.literal, self.quote) is not None:
                    self._moves[number, self.quote] = to = self._number(state._replace(is_special=True))
                    work.append(to)
            may_end = state.literal.nullable and (self.quote is None or state.is_special)
            self._kept[number] = KEPT | MAY_END if may_end else KEPT

    def _behind(self, state: Spelled) -> Iterator[tuple[int, int, Spelled]]:
        """The moves from a state, by ranges of bytes."""
        literal, number, is_special = state
        if number is None:
            for low, high, target in edges(literal):
                if not is_special:
                    yield low, high, Spelled(target, None, False)
                elif self.quote is not None and low <= self.quote <= high:
                    yield self.quote, self.quote, Spelled(target, None, False)
            return
        for low, high, _ in edges(number):
            for byte in range(low, high + 1):
                then, rest = derivative(literal, byte), derivative(number, byte)
                if then is not None and rest is not None and not (is_special and byte == POINT):
                    yield byte, byte, Spelled(then, rest, False)
