"""`ByState`: what was found out once about each state of the constraints that were used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from guided.constraint.protocol import Constrains

__all__ = ["ByState"]

V = TypeVar("V")

GRAMMARS = 64
"""Constraints that are kept alive: a batch has few, and where every text has its own an old one does not come back."""
STATES = 1 << 14
"""States of one constraint that are remembered."""


class ByState(Generic[V]):
    """One dictionary by state for each constraint; those of constraints used longest ago go first."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[Constrains, dict[int, V]]] = OrderedDict()
        """By identity; the constraint is kept, so that its identity is not given away."""

    def of(self, constraint: Constrains) -> dict[int, V]:
        """What is known of a constraint's states: to be read, and to be added to."""
        found = self._known.get(id(constraint))
        if found is None:
            found = self._known[id(constraint)] = (constraint, {})
            if len(self._known) > GRAMMARS:
                self._known.popitem(last=False)
        self._known.move_to_end(id(constraint))
        if len(found[1]) >= STATES:
            found[1].clear()
        return found[1]
