"""The table of lexer states as those see it whom it asks how strings are spelled and states joined."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from guided.kernels.data.layout import Automaton

__all__ = ["Table"]


class Table(Protocol):
    """`guided.automata.lexer.states.StateTable`, while a state of it is written."""

    arrays: Automaton
    keys: list[object]
    """What each state stands for; None inside chains and escapes, and where only the parts are known."""
    compared: dict[tuple[int, int], bool]
    """Of two obligations, does the first forbid whatever the second does?"""
    n_partials: int
    """States inside escapes."""

    @property
    def lock(self) -> AbstractContextManager[bool]:
        """Held while the table is written to."""

    def table_address(self) -> int:
        """Where the table of addresses is that kernels get."""

    def allocate(self, key: object) -> int:
        """A new state, which stands for ``key``."""

    def expand(self, state: int) -> None:
        """Find the edges of a state, and of some that it leads to."""

    def edges(self, state: int) -> list[tuple[int, int, int]]:
        """The edges of a state, found if need be; none for state 0.  Inside a JSON string they read its text."""

    def whole(self, state: int) -> int:
        """The state that stands for a state with what it owes."""

    def joined(self, *states: int) -> int:
        """The state that matches when any of some does (0: none can any more)."""

    def under(self, state: int, obligation: int) -> int:
        """The lexer state that goes on from ``state``, and none of whose matches or texts violate an obligation."""

    def forbids_end(self, obligation: int) -> bool:
        """Would the text break this obligation by ending here?"""
