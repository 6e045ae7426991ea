"""The machine of a grammar in which some texts, spans, take a number of tokens at most.

A token counts for a span if its first byte lies in it.  A state is a pair of the inner machine's state, which has all
threads, and of the tokens left to those in spans (`Counted`); where none is in a span, it is the inner machine's own.
A token that begins in a span takes one of what is left; threads that have none left, and are in the span still when a
token ends, can go no further.  A token after which no thread could end its span in time is refused, so there are no
dead ends: threads outside of spans always have a way, since limits that no text keeps are refused at once.

Bytes that are not known to be tokens may be cut in any way.  Behind such, a state remembers the tokens that may have
begun (`Begun`), so that bytes one by one lead where all of them at once do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided.constraint.limited.completion import LimitedCompletions
from guided.constraint.limited.keeping import kept_limits
from guided.constraint.limited.reading import Counted, LimitedReading, Side
from guided.constraint.limited.rows import Rows
from guided.constraint.limited.spans import Machine
from guided.constraint.product import COUNT, ProductMachine
from guided.errors import VocabularyError
from guided.kernels.data.layout import DEAD, FAR

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

__all__ = ["LimitedMachine"]


class LimitedMachine(LimitedReading):
    """The append-only tables of a compiled constraint with limited texts; states are ints into them.

    Raises `VocabularyError` for a vocabulary that lacks single bytes, and where it has no tokens few enough for a text.
    """

    def __init__(self, inner: Machine, base: ConstraintMachine) -> None:
        if not inner.vocabulary.byte_complete:
            raise VocabularyError(
                "this vocabulary lacks single bytes, so it is not known in how many tokens it can spell limited texts",
                remedy="Use a tokenizer that knows every byte, or leave out max_tokens.",
            )
        super().__init__(inner, base)
        limits = kept_limits(inner.grammar, base)
        self.named = limits.names
        self.rows = Rows(self, limits.are_priced, all(most > wide for most, wide in limits.widest))
        self.completions = LimitedCompletions(self)

    def goes_on(self, state: int, side: Side | None) -> bool:
        """Can some thread end its span in time, or is in none?"""
        if not isinstance(side, Counted) or side.outside != DEAD:
            return True
        return any(self.rows.lives(group, left) for group, left in side.groups)

    def mask(self, state: int, limit: int = -1) -> NDArray[np.uint32]:
        """The row of tokens that keep ``state`` alive; with ``limit`` only those after which so many tokens suffice."""
        with self.lock:
            return self.rows.mask(self.place(state), limit)

    def alike(self, state: int) -> int:
        """A state that allows the same tokens and ends alike: one with fewer tokens left, where they are enough."""
        with self.lock:
            place = self.place(state)
            if place.whole == DEAD:
                return state
            if self.rows.is_far(place):
                found = self.inner.alike(place.whole)
                if state >= self._first_row:
                    self.far.alikes[state >> COUNT] = (found, self._beyond[state - self._first_row >> COUNT])
                return found
            groups = self.rows.capped(place.groups)
            return state if groups == place.groups else self.state_of(place._replace(groups=groups))

    def bare(self, state: int) -> int | None:
        """The automaton's state that has the same mask."""
        place = self.place(state)
        if place.whole == DEAD or not self.rows.is_far(place):
            return None
        return self.inner.bare(place.whole) if isinstance(self.inner, ProductMachine) else place.whole

    def visit(self, state: int) -> tuple[NDArray[np.uint32], bool, int]:
        """As `ConstraintMachine.visit`."""
        with self.lock:
            place = self.place(state)
            if place.whole != DEAD and self.rows.is_far(place):
                return self.inner.visit(place.whole)
            return self.mask(state).copy(), self.is_accepting(state), -1

    def need(self, state: int, limit: int = -1) -> int:
        """As `ConstraintMachine.need`."""
        with self.lock:
            place = self.place(state)
            return FAR if place.whole == DEAD else self.rows.need(place, limit)

    def near(self, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int, bool]:
        """As `ConstraintMachine.near`."""
        with self.lock:
            # To be priced, a state may need another mask.
            need = self.need(state, limit)
            row = self.mask(state, limit)
            return row if row.any() else None, need, self.is_accepting(state)

    def is_accepting(self, state: int) -> bool:
        """May the text end here?"""
        outside = self.place(state).outside
        return outside != DEAD and self.inner.is_accepting(outside)

    def cheapest_text(self, state: int) -> bytes | None:
        """The inner machine's for the threads that end their spans in time by bytes, which can keep the limits."""
        place = self.place(state)
        ready = self.rows.ready(place) if place.whole != DEAD else []
        return self.inner.cheapest_text(self.spans.within(place.whole, ready)) if ready else None

    def why_refused(self, state: int, byte: int) -> str | None:
        """Why a byte is refused that the automaton takes, after "it"."""
        own = self.split(state)[0]
        if self.inner.advance_text(own, bytes((byte,))) != DEAD:
            return f"is in no token that leaves enough for the rest of {self._names(own)}"
        return self.inner.why_refused(own, byte) if isinstance(self.inner, ProductMachine) else None

    def why_counted(self, state: int, token: int) -> str | None:
        """Why a token is refused whose bytes may come, after "it"; None where that is not so."""
        if self.advance_token(state, token) != DEAD or self.advance(state, self.spelled(token)) == DEAD:
            return None
        return "leaves too few tokens for the rest of " + self._names(self.place(state).whole)

    def _names(self, state: int) -> str:
        """The limited texts in which threads of a state are, else all."""
        limits = {self.spans.limit(thread[0]) for thread in self.spans.threads(state)} - {None}
        found = {name: most for name, most in self.named.items() if not limits or most in limits}
        return " or ".join(f"{name}, of {most} tokens at most" for name, most in found.items())
