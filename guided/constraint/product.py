"""What a machine with a checker beside it answers as the machine within does, asked about that machine's own state."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guided.kernels.layout import DEAD, FAR, FINISHED

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine
    from guided.constraint.formats.machine import FormatMachine
    from guided.constraint.machine import ConstraintMachine

__all__ = ["ProductMachine"]


class ProductMachine(ABC):
    """States are pairs of the state of a machine within and of what a checker holds; see `ConstraintMachine`."""

    inner: ConstraintMachine | DistinctMachine | FormatMachine[Any]
    lock: threading.RLock

    @abstractmethod
    def split(self, state: int) -> tuple[int, Any]:
        """The state of the machine within, and what the checker holds."""

    @abstractmethod
    def join(self, state: int, text: Any) -> int:
        """The one state of a pair."""

    @abstractmethod
    def mask(self, state: int, limit: int = -1) -> NDArray[np.uint32]:
        """The row of tokens that keep ``state`` alive; with ``limit`` only those after which so many tokens suffice."""

    @abstractmethod
    def read(self, state: int, text: Any, data: bytes) -> tuple[int, Any]:
        """The pair after some bytes."""

    def advance(self, state: int, data: bytes) -> int:
        """The state after the bytes ``data``."""
        if state <= FINISHED:
            return DEAD if data else state
        with self.lock:
            return self.join(*self.read(*self.split(state), data))

    advance_text = advance

    def is_accepting(self, state: int) -> bool:
        """May the text end here?  What is open or being read holds up only the threads that are in it."""
        return self.inner.is_accepting(self.split(state)[0])

    def next_bytes(self, state: int) -> NDArray[np.uint8]:
        """``uint8[256]``: 1 for every byte that may come next; some of them may yet be refused."""
        return self.inner.next_bytes(self.split(state)[0])

    @property
    def plain(self) -> bool:
        """As `ConstraintMachine.plain`."""
        return self.inner.plain

    @property
    def prices(self) -> bool:
        """As `ConstraintMachine.prices`; stacks have none here."""
        return self.inner.plain

    def begin_prices(self) -> None:
        """See `ConstraintMachine.begin_prices`."""
        self.inner.begin_prices()

    def need(self, state: int) -> int:
        """As `ConstraintMachine.need`; not known unless a checker tells."""
        return FAR

    def near(self, state: int, limit: int) -> tuple[NDArray[np.uint32] | None, int]:
        """As `ConstraintMachine.near`."""
        row = self.mask(state, limit)
        return row if row.max() else None, FAR

    def cheapest_text(self, state: int) -> bytes | None:
        """As the machine's within, where the checker lets it pass; None elsewhere."""
        text = self.inner.cheapest_text(self.split(state)[0])
        return text if text is not None and self.is_accepting(self.advance_text(state, text)) else None

    def cost(self, state: int) -> int:
        """Fewest bytes after which the text may end, what the checker refuses aside."""
        return self.inner.cost(self.split(state)[0])

    def spell(self, text: bytes) -> list[int]:
        """The fewest tokens that join to ``text``; empty when none do."""
        return self.inner.spell(text)

    def threads(self, state: int) -> list[tuple[int, int, int]]:
        """The threads of a state: (lexer state or 0, continuation, obligation)."""
        return self.inner.threads(self.split(state)[0])

    def closure(self, continuation: int) -> list[tuple[int, int, int]]:
        """What may come at a boundary: (lexer start state, continuation after, label)."""
        return self.inner.closure(continuation)

    def label(self, start: int, label: int) -> str:
        """The name of a terminal that may come."""
        return self.inner.label(start, label)

    @property
    def n_bytes(self) -> int:
        """Memory of the automaton's tables; what texts hold is not counted."""
        return self.inner.n_bytes
