"""Least costs of what a pushdown system leaves behind: summaries of its calls, tabulated on demand.

A *place* is where such a system stands, apart from the stack below it; an *outcome* is what it leaves when it returns
from there.  A place leads to outcomes at once, to other places, or calls a place and goes on by the outcome.  There are
finitely many of both, however many texts there are.  The product of a grammar with a regular language is decided this
way (Bar-Hillel, Perles and Shamir, 1961), with least costs (Knuth, "A Generalization of Dijkstra's Algorithm", 1977).
Ambiguity costs nothing: a place is looked at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol, TypeAlias

from guided.automata.endings.obligations import Work

Place: TypeAlias = Hashable
Outcome: TypeAlias = Hashable


class Pushdown(Protocol):
    """A pushdown system, by its moves."""

    def leaves(self, place: Place) -> Iterable[tuple[int, Outcome]]:
        """The outcomes of a place at once, with their costs."""

    def leads(self, place: Place) -> Iterable[tuple[int, Place]]:
        """The places that it leads to, with the costs of going there."""

    def calls(self, place: Place) -> Iterable[tuple[Place, Hashable]]:
        """The places that it calls, each with the argument of `returned`."""

    def returned(self, call: Hashable, outcome: Outcome) -> tuple[Place | None, Outcome]:
        """Where the outcome of a call leads, or what it leaves itself (and None)."""


class Summaries:
    """The outcomes of places, each with its least cost."""

    def __init__(self, system: Pushdown, work: Work) -> None:
        self._system = system
        self._work = work
        self._found: dict[Place, dict[Outcome, int]] = {}
        self._users: dict[Place, list[tuple[int, Place]]] = {}
        """Which places lead to one."""
        self._callers: dict[Place, list[tuple[Place, Hashable]]] = {}
        self._queue: list[tuple[int, int, Place, Outcome]] = []
        self._asked: list[Place] = []
        self._count = 0

    def of(self, place: Place) -> Mapping[Outcome, int]:
        """The outcomes of one place."""
        found = self._found.get(place)
        if found is None:
            found = self._ask(place)
            self._solve()
        return found

    def __contains__(self, place: Place) -> bool:
        return place in self._found

    def _ask(self, place: Place) -> dict[Outcome, int]:
        found = self._found.get(place)
        if found is None:
            found = self._found[place] = {}
            self._users[place] = []
            self._callers[place] = []
            self._asked.append(place)
        return found

    def _solve(self) -> None:
        while True:
            while self._asked:
                place = self._asked.pop()
                self._work.spend(1)
                for cost, outcome in self._system.leaves(place):
                    self._push(cost, place, outcome)
                for cost, target in self._system.leads(place):
                    self._lead(place, cost, target)
                for target, call in self._system.calls(place):
                    known = self._ask(target)
                    self._callers[target].append((place, call))
                    for outcome, cost in list(known.items()):
                        self._return(place, call, cost, outcome)
            if not self._queue:
                return
            cost, _, place, outcome = heapq.heappop(self._queue)
            found = self._found[place]
            if outcome in found:
                continue
            found[outcome] = cost
            for more, user in list(self._users[place]):
                self._push(cost + more, user, outcome)
            for caller, call in list(self._callers[place]):
                self._return(caller, call, cost, outcome)

    def _lead(self, place: Place, cost: int, target: Place) -> None:
        known = self._ask(target)
        self._users[target].append((cost, place))
        for outcome, more in list(known.items()):
            self._push(cost + more, place, outcome)

    def _return(self, caller: Place, call: Hashable, cost: int, outcome: Outcome) -> None:
        target, left = self._system.returned(call, outcome)
        if target is None:
            self._push(cost, caller, left)
        else:
            self._lead(caller, cost, target)

    def _push(self, cost: int, place: Place, outcome: Outcome) -> None:
        if outcome not in self._found[place]:
            self._work.spend(1)
            self._count += 1
            heapq.heappush(self._queue, (cost, self._count, place, outcome))
