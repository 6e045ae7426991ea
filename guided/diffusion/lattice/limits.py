"""How much of a lattice is kept: states of a layer, and tokens where a constraint reads them one by one."""

from __future__ import annotations

from dataclasses import dataclass

from guided.errors import GuidedError

__all__ = ["LatticeLimits"]


@dataclass(frozen=True)
class LatticeLimits:
    """Up to these bounds a lattice is exact; beyond, it keeps the likeliest and says what it may have lost.

    Raises `GuidedError` for bounds below 1, and where ``most_states`` is below ``states``.

    >>> LatticeLimits(states=64).most_states
    65536
    """

    states: int = 4096
    """States of a layer that are kept: the likeliest of those from which the text surely fits, then of the others."""
    searched_states: int = 32
    """The same of constraints that search for their shortest ends (`guided.sql`): each state kept may cost a search."""
    most_states: int = 65_536
    """Where no text was found among those, four times as many are kept, again and again, up to this number."""
    tokens: int = 64
    """Tokens followed from one state at one position where the constraint reads them one by one and allows more: the
    likeliest, and some that lead to an end.  Constraints with `Constraint.advance_all` follow all."""

    def __post_init__(self) -> None:
        if min(self.states, self.searched_states, self.tokens) < 1 or self.most_states < self.states:
            raise GuidedError(
                f"a lattice of {self.states} to {self.most_states} states and {self.tokens} tokens",
                remedy="Pass bounds of 1 and more, most_states not below states.",
            )
