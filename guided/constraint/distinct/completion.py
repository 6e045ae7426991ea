"""Ending in time without repeating anything: completions and budgets of a checked machine.

The automaton's shortest text is taken where it repeats nothing.  Elsewhere the text leaves what is there already by a
short way (`guided.constraint.distinct.liveness`), goes on as the automaton's would, and so on to the end.  As in the
base class, what is found is remembered for every state on the way, so the distance is one that can always be kept.

Under a budget the automaton's prices hold for every token after which its own shortest text repeats nothing.  The
others are judged one by one.  Where the grammar itself asks for several distinct names or items, those are all tokens,
and beyond `JUDGED` of them only those that the nearest end needs are allowed: fewer than possible, never too many.
"""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided.constraint.completion import Completions
from guided.constraint.distinct.json_text import Expects, Level, Mode, Text
from guided.constraint.distinct.json_values import STRING_KEY, exact_number, number_key
from guided.constraint.distinct.marked_rules import forces_several
from guided.constraint.survival import tokens_of
from guided.errors import LimitError
from guided.kernels.layout import DEAD, FAR
from guided.kernels.walks import EVASION

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine

JUDGED = 24
"""Tokens whose completions are searched for one mask: about a millisecond each where arrays are long."""

FEW = 4
"""Names up to which one more character makes a name none of them: beside those that the automaton counts there are as
many characters (`guided.kernels.walks.CROWDED`)."""


class DistinctCompletions(Completions):
    """Short completions of one checked machine's states."""

    def __init__(self, machine: DistinctMachine) -> None:
        super().__init__(machine)  # type: ignore[arg-type]
        self._checked: DistinctMachine = weakref.proxy(machine)
        self.forces = forces_several(machine.grammar)
        """Does the grammar itself ask for several distinct names or items?"""
        self._enough: dict[int, int] = {}

    def text(self, state: int) -> bytes:
        """A short text after which ``state`` may end."""
        machine = self._checked
        own, text = machine.split(state)
        if text is None and not self.forces:
            return machine.inner.completions.text(own)
        found = self._texts.get(state)
        return self._find(state) if found is None else found

    def tokens(self, state: int) -> list[int]:
        """The fewest tokens that spell `text`; of a vocabulary that lacks single bytes, the fewest to any end."""
        if self._checked.vocabulary.byte_complete:
            return super().tokens(state)
        return self._search_tokens(state)

    def _find(self, state: int) -> bytes:
        machine = self._checked
        path: list[tuple[int, int]] = []
        at = state
        searches = 0
        while at not in self._texts and not machine.is_accepting(at):
            for byte in self._ahead(at):
                if at in self._texts:
                    break
                path.append((at, byte))
                at = machine.advance_text(at, bytes((byte,)))
                if at == DEAD:
                    raise AssertionError("a completion leads into a dead end")
            searches += 1
            if searches > machine.limits.search_states:
                raise LimitError(
                    f"no end of the text was found within {machine.limits.search_states} states of this one",
                    remedy="Generate without a token budget, or pass Limits(search_states=...).",
                )
        return self._remember(path, self._texts.get(at) or b"", at)

    def _ahead(self, state: int) -> bytes:
        """Some next bytes of a short completion."""
        machine = self._checked
        own, text = machine.split(state)
        whole = machine.inner.completions.text(own)
        if machine.reads(state, whole):
            return whole
        if text is not None and machine.likeness.consistent(text):
            level = text.level
            if text.mode is Mode.BETWEEN and level is not None and level.compares and level.expects is Expects.VALUE:
                for piece in _new_values(level):
                    if machine.advance_text(state, piece) != DEAD:
                        return piece
            return machine.look.way_out(own, text)
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

    def apart(self, text: Text | None) -> int:
        """Tokens beyond the automaton's with which no name repeats another, whichever token comes; `FAR` if not told.

        Where any names may come, a name that is there can be gone on with as `Liveness.bytes_to_new` says.
        """
        machine = self._checked
        if self.forces or not machine.vocabulary.byte_complete:
            return FAR
        if text is None and machine.refusals.never_idle:
            return 0
        if machine.compares or not self.any_names:
            return FAR
        most, level = self._spanned, None if text is None else text.level
        while level is not None:
            most = max(most, level.seen.size + self._spanned)
            level = level.parent
        return most + 2

    @cached_property
    def any_names(self) -> bool:
        """May all undeclared names be any text but some, and is none asked for?"""
        prepared = self._checked.grammar.prepared
        return prepared is not None and not prepared.names and not self.forces

    @cached_property
    def _spanned(self) -> int:
        """The most names that one token holds: each takes four bytes at least."""
        texts = self._checked.token_texts
        return max((len(texts.spelled(token)) // 4 + 1 for token in texts.spanning), default=0)

    def evasion(self, text: Text | None) -> int:
        """Tokens beyond the automaton's that are enough where a name that has begun is one that its object holds."""
        return 1 if text is None or text.level is None or text.level.seen.size <= FEW else EVASION

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

    def less_far(self, state: int, row: NDArray[np.uint32], limit: int) -> NDArray[np.uint32]:
        """A row, priced by the automaton, less the tokens after which ``limit`` tokens are not enough, judged each."""
        machine = self._checked
        if self.forces:
            tried = tokens_of(row)
            for token in tried[JUDGED:]:
                row[token >> 5] &= ~np.uint32(1 << (token & 31))
            tried = tried[:JUDGED]
        else:
            doubtful = machine.refusals.doubtful(state).tolist()
            tried = [token for token in doubtful if row[token >> 5] >> (token & 31) & 1]
        for token in tried:
            after = machine.advance_token(state, token)
            if after != DEAD and not self.forces:
                own, text = machine.split(after)
                enough = None if text is None else machine.look.bytes_to_new(own, text)
                if enough is not None and enough <= limit:
                    continue
            if after == DEAD or not self.is_near(after, limit):
                row[token >> 5] &= ~np.uint32(1 << (token & 31))
        return row


def _new_values(level: Level) -> tuple[bytes, bytes]:
    """The least whole number that an array does not hold yet, and the least of which it does not hold the string."""
    number = string = 0
    while number_key(exact_number(b"%d" % number)) in level.seen:
        number += 1
    while STRING_KEY + b"%d" % string in level.seen:
        string += 1
    return b"%d" % number, b'"%d"' % string
