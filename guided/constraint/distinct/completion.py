"""Ending in time without repeating anything: short completions.

The automaton's shortest text is taken if it repeats nothing.  Otherwise the text first avoids the used values by a
short way (`guided.constraint.distinct.liveness`), then goes on as the automaton's would, and so on to the end.  Behind
the first token it is found anew, so the distance is one that can always be kept, and depends on nothing but the state.
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
        self._ways: dict[int, list[int]] = {}

    def text(self, state: int) -> bytes:
        """A short text after which ``state`` may end."""
        machine = self._outer
        own, text = machine.split(state)
        if text is None and not self.forces:
            return self._steps.automaton.completions.text(own)
        found = self._texts.get(state)
        return self._find(state) if found is None else found

    def tokens(self, state: int) -> list[int]:
        """Tokens to an end, of which each is the next of `text` where it comes, so that these can always be kept.

        What is taken from a state depends on the state alone.  Of a vocabulary that lacks single bytes, the fewest.
        """
        if not self._outer.vocabulary.byte_complete:
            return self._search_tokens(state)
        way: list[tuple[int, int]] = []
        at = state
        while at not in self._ways:
            spelled = self._outer.spell(self.text(at))
            if not spelled or self._goes_on(at):
                self._ways[at] = spelled
                break
            way.append((at, spelled[0]))
            at = self._outer.advance_token(at, spelled[0])
            if len(way) > self._outer.limits.search_states:
                raise _no_end(self._outer.limits.search_states)
        found = self._ways[at]
        for at, token in reversed(way):
            found = self._ways[at] = [token, *found]
        return found

    def is_near(self, state: int, limit: int) -> bool:
        """Are so many tokens enough?  A text of so many bytes is not, since behind its first token another may come."""
        return self.enough(state) <= limit

    def _goes_on(self, state: int) -> bool:
        """Is the text the automaton's own?  Then what is left of it behind each of its bytes is that again."""
        own, text = self._outer.split(state)
        return self._liveness.lives(own, text, self._steps.automaton.completions.text(own))

    def _find(self, state: int) -> bytes:
        machine = self._outer
        pieces: list[tuple[int, bytes]] = []
        at = state
        while at not in self._texts and not machine.is_accepting(at):
            piece = self._ahead(at)
            pieces.append((at, piece))
            at = machine.advance_text(at, piece)
            if at == DEAD:
                raise AssertionError("a completion leads into a dead end")
            if len(pieces) > machine.limits.search_states:
                raise _no_end(machine.limits.search_states)
        found = self._texts.get(at) or b""
        # Not inside the pieces: what is found from there may be another.
        for at, piece in reversed(pieces):
            found = piece + found
            self._texts[at] = found
        return found

    def _ahead(self, state: int) -> bytes:
        """Some next bytes of a short completion."""
        machine = self._outer
        own, text = machine.split(state)
        whole = self._steps.automaton.completions.text(own)
        if self._liveness.lives(own, text, whole):
            return whole
        if text is not None and self._steps.collisions.may_collide(text):
            level = text.level
            if text.mode is Mode.BETWEEN and level is not None and level.compares and level.expects is Expects.VALUE:
                for piece in _new_values(level):
                    if machine.advance_text(state, piece) != DEAD:
                        return piece
            return self._liveness.way_out(own, text)
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


def _no_end(n_states: int) -> LimitError:
    return LimitError(
        f"no end of the text was found within {n_states} states of this one",
        remedy="Generate without a token budget, or pass Limits(search_states=...).",
    )


def _new_values(level: Level) -> tuple[bytes, bytes]:
    """The least whole number that an array does not hold yet, and the least of which it does not hold the string."""
    number = string = 0
    while number_key(exact_number(b"%d" % number)) in level.used:
        number += 1
    while STRING_KEY + b"%d" % string in level.used:
        string += 1
    return b"%d" % number, b'"%d"' % string
