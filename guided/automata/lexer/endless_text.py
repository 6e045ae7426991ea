"""Lexer states of strings that may go on with any text, for ever, as most patterns may that are searched for."""

from __future__ import annotations

import numpy as np

from guided.automata.lexer.runs import comes_to_nothing, without_least
from guided.automata.lexer.states import StateTable
from guided.automata.lexer.traits import Reading, terminal
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.lengths import character_counts
from guided.kernels.data.layout import STRING, Automaton
from guided.kernels.jit import direct
from guided.kernels.lexing.byte_classes import UTF8_PHASES, flat_phases
from guided.kernels.lexing.determinise import goes_on
from guided.kernels.lexing.part_pairs import TOTAL

PAIRS = 400
"""Pairs of state and phase looked at to see that a string may go on with any text; most patterns have below 100."""

SOON = 100
"""Pairs after which a refusal is late: 5 ms of derivatives."""

LAST = 0xF4
"""The last byte that a character of UTF-8 begins with."""

_YES, _NO = 1, 2


class EndlessText:
    """Which states of one table go on with any text; remembered."""

    def __init__(self, states: StateTable) -> None:
        self.states = states
        self._known = np.zeros(1024, np.uint8)
        """By state: `_YES`, `_NO`, or 0 where that was not asked."""

    def goes_on(self, start: int, members: list[Reading] | None = None) -> bool:
        """Inside a string, may any text come, for ever?  Decided on all that may follow, by the phases of UTF-8.

        False also where that is not seen soon: then the effect is walked.  ``members``: of what the state is made, if
        that was asked for.
        """
        self._make_room()
        known = int(self._known[start])
        if known:
            return known == _YES
        states = self.states
        if not _reads_any_byte(states.arrays, start):
            return False
        if members is None:
            members = states.parts.members(start)
        if states.parts.has_trait(start, TOTAL) or self._but_for_length(members):
            self._known[start] = _YES
            return True
        mode = int(states.arrays.mode[start])
        found = mode & STRING != 0 and not states.arrays.decode[start]
        found = found and not (members and all(_has_an_end(content) for content, _ in members))
        self._known[start] = _YES if found and self._walk(start) else _NO
        return bool(self._known[start] == _YES)

    def _walk(self, start: int) -> bool:
        pairs, progress = np.empty(PAIRS, np.int64), np.array((1, 0), np.int64)
        slots = np.zeros(2 << PAIRS.bit_length(), np.int32)
        pairs[0] = start << 3
        states = self.states
        while True:
            code = int(direct(goes_on)(states.table_address(), *_PHASES, self._known, pairs, slots, progress))
            if code >= 0:
                break
            states.expand(-code)
            self._make_room()
        found = pairs[: int(progress[0])]
        if code or found.size > SOON:
            # Visited states are not tried again: each next word of a pattern that counts words would take as long.
            between = found[found & 7 == 0] >> 3
            self._known[between[self._known[between] == 0]] = _YES if code else _NO
        return code == 1

    def _but_for_length(self, members: list[Reading]) -> bool:
        """Has a state a part that may go on with any text but for what is met by that?  Then the part itself may."""
        for content, mode in members:
            any_length = without_least(content)
            if any_length is not content and self.goes_on(self.states.add(terminal(any_length, mode))):
                return True
        return False

    def _make_room(self) -> None:
        if len(self.states) > self._known.size:
            grown = np.zeros(2 * len(self.states), np.uint8)
            grown[: self._known.size] = self._known
            self._known = grown


_PHASES = flat_phases(UTF8_PHASES)


def _reads_any_byte(automaton: Automaton, state: int) -> bool:
    """Does a state whose edges are known lead on with the first and the last byte that a character may begin with?"""
    first = int(automaton.first[state])
    last = first + int(automaton.count[state]) - 1
    if first < 0 or automaton.decode[state]:
        return True
    return last >= first and automaton.low[first] == 0 and automaton.high[last] == LAST


def _has_an_end(content: Expr) -> bool:
    """Is it plain that some text cannot be gone on with?"""
    return comes_to_nothing(content) or character_counts(content)[1] is not None
