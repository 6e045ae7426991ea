"""First sets of expensive patterns: found when the grammar is compiled, so that no text waits for them.

Without it masks take 13 % longer at p99 (measured 2026-11).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from guided.automata.lexer.states import StateTable
from guided.automata.lexer.traits import begins
from guided.errors import LimitError
from guided.grammar.regular.expensive import holds_met_whole
from guided.grammar.regular.expr import Expr, Kind

__all__ = ["explore_first_sets"]

MOST_PATTERNS = 4
"""Patterns of one grammar, 0.2 ms each: of ten schemas that have some that are expensive eight have no more."""

ALL = 4000
"""States of a pattern that is met whole, and parts of them.

Of names that are not 1 to 255 letters they take 6 ms, and the first mask there 1 to 2 ms, not 8 to 40.  Of mail
addresses in any script they take 90 ms, once a process, where masks of the first took 3, 4 and 7 ms.
"""

EXPENSIVE_PARTS = 64
"""Of names those that are read by derivatives, 0.1 ms each: of what was too large to be made an automaton of."""


def explore_first_sets(states: StateTable, patterns: Iterable[Expr], met_whole: Iterable[Expr] = ()) -> None:
    """Find the edges of the states in which patterns begin, behind the quote of strings, and of those around.

    Of patterns that are ``met_whole``, and those that hold such an automaton, all states are found.  What was found
    before costs a microsecond.  A pattern that cannot be read within the limits is left to those who come to it.
    """
    for pattern in islice(met_whole, MOST_PATTERNS):
        _explore(states, pattern, True)
    for pattern in islice(patterns, MOST_PATTERNS):
        _explore(states, pattern, False)


def _explore(states: StateTable, pattern: Expr, met_whole: bool) -> None:
    head, tail = begins(pattern)
    opening = states.target(tail) if head.kind is Kind.LITERAL else states.add(pattern)
    state = int(states.arrays.base[opening])
    if states.arrays.first[state] >= 0:
        return
    try:
        if met_whole:
            states.explore([state], ALL, ALL, EXPENSIVE_PARTS)
        elif holds_met_whole(pattern):
            states.explore([state], ALL, ALL, ALL)
        else:
            states.expand(state)
    except LimitError:
        return
