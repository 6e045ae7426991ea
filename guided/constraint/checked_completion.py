"""Ending in time without repeating anything: completions and budgets of a checked machine.

The automaton's shortest text is taken where it repeats nothing.  Elsewhere the text leaves what is there already by a
short way (`guided.constraint.look_ahead`), goes on as the automaton's would, and so on to the end.  As in the base
class, what is found is remembered for every state on the way, so the distance is one that can always be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided.constraint.completion import Completions
from guided.constraint.demands import forces_several
from guided.constraint.machine import tokens_of
from guided.errors import LimitError
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.checked import CheckedMachine


class CheckedCompletions(Completions):
    """Short completions of one checked machine's states."""

    def __init__(self, machine: CheckedMachine) -> None:
        super().__init__(machine)  # type: ignore[arg-type]
        self._checked = machine
        self._forces = forces_several(machine.grammar)

    def text(self, state: int) -> bytes:
        """A short text after which ``state`` may end."""
        machine = self._checked
        own, text = machine.split(state)
        if text is None and not self._forces:
            return machine.inner.completions.text(own)
        found = self._texts.get(state)
        return self._find(state) if found is None else found

    def _find(self, state: int) -> bytes:
        machine = self._checked
        path: list[tuple[int, int]] = []
        at = state
        while at not in self._texts and not machine.is_accepting(at):
            for byte in self._ahead(at):
                if at in self._texts:
                    break
                path.append((at, byte))
                at = machine.advance_text(at, bytes((byte,)))
                if at == DEAD:
                    raise AssertionError("a completion leads into a dead end")
            if len(path) > machine.limits.search_states:
                raise LimitError(
                    f"no end of the text was found within {machine.limits.search_states} states of this one",
                    remedy="Generate without a token budget, or pass Limits(search_states=...).",
                )
        return self._remember(path, self._texts.get(at, b""), at)

    def _ahead(self, state: int) -> bytes:
        """Some next bytes of a short completion."""
        machine = self._checked
        own, text = machine.split(state)
        whole = machine.inner.completions.text(own)
        if machine.advance_text(state, whole) != DEAD:
            return whole
        if text is not None and machine.likeness.consistent(text):
            return machine.look.way_out(own, text)
        best: tuple[int, int] | None = None
        for byte in np.flatnonzero(machine.next_bytes(state)).tolist():
            after = machine.advance_text(state, bytes((byte,)))
            if after != DEAD:
                price = (machine.cost(after), byte)
                best = price if best is None else min(best, price)
        if best is None:
            raise AssertionError("a live state has a next byte")
        return bytes((best[1],))

    def drop_far(self, state: int, row: NDArray[np.uint32], limit: int) -> None:
        """Take out of a row, priced by the automaton, the tokens after which ``limit`` tokens are not enough."""
        if self._forces:
            tried = tokens_of(row)
        else:
            doubtful = self._checked.refusals.doubtful(state).tolist()
            tried = [token for token in doubtful if row[token >> 5] >> (token & 31) & 1]
        for token in tried:
            after = self._checked.advance_token(state, token)
            if after == DEAD or len(self.tokens(after)) > limit:
                row[token >> 5] &= ~np.uint32(1 << (token & 31))
