"""Ending in time without repeating anything: short completions.

The automaton's shortest text is taken if it repeats nothing.  Otherwise the text first avoids the used values by a
short way (`guided.constraint.distinct.liveness`), then goes on as the automaton's would, and so on to the end.  As in
the base class, the result is remembered for every state on the way, so the distance is one that can always be kept.
"""

from __future__ import annotations

import weakref

import numpy as np

from guided.constraint.distinct.json_text import Expects, Level, Mode, Text
from guided.constraint.distinct.json_values import STRING_KEY, exact_number, number_key
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.marked_rules import forces_several
from guided.constraint.distinct.steps import Steps
from guided.constraint.engine.completion import Completions
from guided.constraint.product import ProductMachine
from guided.errors import LimitError
from guided.kernels.data.layout import DEAD, FAR

__all__ = ["DistinctCompletions"]


class DistinctCompletions(Completions):
    """Short completions of one machine's states."""

    def __init__(self, machine: ProductMachine[Text], steps: Steps, liveness: Liveness) -> None:
        super().__init__(machine)  # type: ignore[arg-type]
        self._outer: ProductMachine[Text] = weakref.proxy(machine)
        self._steps = steps
        self._liveness = liveness
        self.forces = forces_several(machine.grammar)
        """Does the grammar itself ask for several distinct names or items?"""
        self._enough: dict[int, int] = {}

    def text(self, state: int) -> bytes:
        """A short text after which ``state`` may end."""
        machine = self._outer
        own, text = machine.split(state)
        if text is None and not self.forces:
            return self._steps.automaton.completions.text(own)
        found = self._texts.get(state)
        return self._find(state) if found is None else found

    def tokens(self, state: int) -> list[int]:
        """The fewest tokens that spell `text`; of a vocabulary that lacks single bytes, the fewest to any end."""
        if self._outer.vocabulary.byte_complete:
            return super().tokens(state)
        return self._search_tokens(state)

    def _find(self, state: int) -> bytes:
        """Byte by byte, so that what follows a state is what is found from there: `text` is a function of the state."""
        machine = self._outer
        path: list[tuple[int, bytes]] = []
        at, out, searches = state, b"", 0
        while at not in self._texts and not machine.is_accepting(at):
            own, text = machine.split(at)
            ahead = self._steps.automaton.completions.text(own)
            if self._liveness.lives(own, text, ahead):
                # What is left of it lives as well: it would be found again from each state on the way.
                return self._remember(path, ahead, at)
            # Behind the first byte of a way out comes the rest of it: it is the best, and the first of the best.
            searches += not out
            out = self._avoiding(at, out)
            path.append((at, out[:1]))
            at = machine.advance_text(at, out[:1])
            if at == DEAD:
                raise AssertionError("a completion leads into a dead end")
            out = out[1:]
            if searches > machine.limits.search_states:
                raise LimitError(
                    f"no end of the text was found within {machine.limits.search_states} states of this one",
                    remedy="Generate without a token budget, or pass Limits(search_states=...).",
                )
        return self._remember(path, self._texts.get(at) or b"", at)

    def _avoiding(self, state: int, out: bytes) -> bytes:
        """Some next bytes where the automaton's own text would repeat something; ``out`` is left of a way out."""
        machine = self._outer
        own, text = machine.split(state)
        if text is not None and self._steps.collisions.may_collide(text):
            level = text.level
            if text.mode is Mode.BETWEEN and level is not None and level.compares and level.expects is Expects.VALUE:
                for piece in _new_values(level):
                    if machine.advance_text(state, piece) != DEAD:
                        return piece[:1]
            return out or self._liveness.way_out(own, text)
        best: tuple[int, int] | None = None
        for byte in np.flatnonzero(machine.next_bytes(state)).tolist():
            after = machine.advance_text(state, bytes((byte,)))
            if after != DEAD:
                price = (machine.cost(after), byte)
                best = price if best is None else min(best, price)
                if best[0] == machine.cost(state) - 1:
                    break
        if best is None:
            raise AssertionError("a live state has a next byte")
        return bytes((best[1],))

    def enough(self, state: int) -> int:
        """Tokens that are enough to end the text; `FAR` where no end is found."""
        known = self._enough.get(state)
        if known is None:
            try:
                known = FAR if state == DEAD else len(self.tokens(state))
            except LimitError:
                known = FAR
            self._enough[state] = known
        return known


def _new_values(level: Level) -> tuple[bytes, bytes]:
    """The least whole number that an array does not hold yet, and the least of which it does not hold the string."""
    number = string = 0
    while number_key(exact_number(b"%d" % number)) in level.used:
        number += 1
    while STRING_KEY + b"%d" % string in level.used:
        string += 1
    return b"%d" % number, b'"%d"' % string
