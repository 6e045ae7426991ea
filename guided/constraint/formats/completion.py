"""Ending in time inside a text that a checker reads: the automaton's shortest text where it passes, else another."""

from __future__ import annotations

import weakref
from abc import abstractmethod
from typing import Any

from guided.constraint.engine.completion import Completions
from guided.constraint.product import ProductMachine
from guided.kernels.data.layout import DEAD


class FormatCompletions(Completions):
    """Short completions of one machine's states."""

    def __init__(self, machine: ProductMachine[Any]) -> None:
        super().__init__(machine)  # type: ignore[arg-type]
        self._outer: ProductMachine[Any] = weakref.proxy(machine)

    @abstractmethod
    def way_out(self, state: int) -> bytes:
        """A short text after which ``state`` may end, where the automaton's own does not pass."""

    def text(self, state: int) -> bytes:
        """A short text after which ``state`` may end."""
        machine = self._outer
        own, text = machine.split(state)
        if text is None:
            return machine.inner.completions.text(own)
        found = self._texts.get(state)
        if found is None:
            rest = self.direct(state)
            found = self.way_out(state) if rest is None else rest
            self._texts[state] = found
        return found

    def is_near(self, state: int, limit: int) -> bool:
        """Are so many tokens enough?"""
        return state != DEAD and len(self.tokens(state)) <= limit

    def direct(self, state: int) -> bytes | None:
        """The automaton's own shortest text, where the checker lets it pass."""
        machine = self._outer
        whole = machine.inner.completions.text(machine.split(state)[0])
        return whole if machine.is_accepting(machine.advance_text(state, whole)) else None
