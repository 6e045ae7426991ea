"""The longest match among all terminals of a grammar: what a state of such a lexer knows beside its ways to go on.

Where terminals are matched all at once (ANTLR), a match owes that nothing longer comes true, whichever terminal's it
is, and of equally long ones the first terminal's counts.  A state is of one terminal that a parser asks for: the others
are there as rivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from guided.grammar.lexing import Beside, LexerTerminal

__all__ = ["Longest", "longest"]


@dataclass(frozen=True, slots=True)
class Longest:
    """``wanted`` is the terminal asked for, ``beside`` tells of all; compared by value, since states are interned."""

    wanted: int
    beside: tuple[Beside, ...]

    def gives_up(self, terminal: int, matched: set[int]) -> bool:
        """Is a way of a terminal given up behind those that have matched, which are told by their rules?"""
        found = self.beside[terminal]
        return found.gives_up and found.rule in matched


def longest(terminals: Sequence[LexerTerminal], wanted: int) -> Longest | None:
    """What the states of a terminal know; None for terminals that are matched otherwise."""
    if terminals[wanted].beside is None:
        return None
    return Longest(wanted, tuple([terminal.beside for terminal in terminals if terminal.beside is not None]))
