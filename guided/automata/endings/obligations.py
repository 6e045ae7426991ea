"""Obligations by the texts that they forbid: those that forbid the same texts are one.

Each character of ``/[0-9]{1,300}/`` leads to another obligation, since other counts are left; all of them say that no
digit may come.  Kept apart, they would multiply with each other and with all that is read meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

from guided.automata.lexer.ordered import OrderedState, combine
from guided.errors import LimitError
from guided.grammar.components import components

Owed: TypeAlias = "OrderedState | None"
"""What must not come; None: nothing is owed."""


class Work:
    """Steps that deciding may still take; running out of them is a `LimitError`."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def spend(self, steps: int) -> None:
        """Count some steps.  Raises `LimitError` where none are left."""
        self.left -= steps
        if self.left < 0:
            raise LimitError(
                f"whether terminals can stand side by side was not decided in {self.most} steps",
                remedy="Terminals that may follow each other without a break overlap; separate them, as with %ignore, "
                "shorten counted repeats in them, or pass Limits(search_states=...).",
            )

    def free(self) -> None:
        """From now on everything is decided, however many steps it takes: what compiled is refused no more."""
        self.left = sys.maxsize


class Obligations:
    """One obligation for many that forbid the same texts, found by what each leads to, from the ends on."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._one: dict[OrderedState, OrderedState] = {}
        """The one that stands for each."""
        self._alike: dict[tuple[object, ...], OrderedState] = {}
        """Those that stand for others, by what they say."""
        self._both: dict[tuple[OrderedState, OrderedState], Owed] = {}

    def one(self, owed: Owed) -> Owed:
        """The obligation that stands for all that forbid what this one does."""
        if owed is None:
            return None
        if owed not in self._one:
            self._divide(owed)
        return self._one[owed]

    def both(self, owed: Owed, more: Owed) -> Owed:
        """The one that holds when two of them do."""
        if owed is None or more is None or owed is more:
            return owed or more
        found = self._both.get((owed, more))
        if found is None:
            self._work.spend(10)
            found = self._both[owed, more] = self.one(combine((owed, more)))
        return found

    def after(self, owed: OrderedState) -> Iterator[tuple[int, int, OrderedState | None]]:
        """What of it is left behind each range of bytes: sorted, those left out settle it, None is a violation."""
        for low, high, target in owed.edges():
            if target.violated:
                yield low, high, None
            else:
                yield low, high, self.one(target)

    def _divide(self, owed: OrderedState) -> None:
        number = {owed: 0}
        graph: list[list[int]] = []
        for state in (queue := [owed]):
            self._work.spend(state.width)
            following: list[int] = []
            for _, _, target in state.edges():
                if target not in self._one and not target.violated:
                    if target not in number:
                        number[target] = len(queue)
                        queue.append(target)
                    following.append(number[target])
            graph.append(following)
        for members in components(graph):
            if len(members) == 1 and members[0] not in graph[members[0]]:
                state = queue[members[0]]
                self._one[state] = self._alike.setdefault(self._says(state, {}), state)
            else:
                self._divide_cycle([queue[member] for member in members])

    def _divide_cycle(self, states: list[OrderedState]) -> None:
        """Moore's partition of states that lead to each other; each block is known by all that it comes to."""
        block = dict.fromkeys(states, 0)
        n_blocks = 0
        while True:
            self._work.spend(len(states))
            known: dict[tuple[object, ...], int] = {}
            block = {state: known.setdefault((block[state], self._says(state, block)), len(known)) for state in states}
            if len(known) == n_blocks:
                break
            n_blocks = len(known)
        first = {block[state]: state for state in reversed(states)}
        for number, state in first.items():
            # By the order in which its own texts come to the others, whoever they are.
            order = {number: 0}
            told: list[object] = []
            for other in (queue := [number]):
                self._work.spend(1)
                ends, *edges = self._says(first[other], block)
                for _, _, kind in edges:
                    if isinstance(kind, int) and kind not in order:
                        order[kind] = len(queue)
                        queue.append(kind)
                told.append((ends, *((low, high, order.get(kind, kind)) for low, high, kind in edges)))
            first[number] = self._alike.setdefault(tuple(told), state)
        for state in states:
            self._one[state] = first[block[state]]

    def _says(self, state: OrderedState, block: dict[OrderedState, int]) -> tuple[Any, ...]:
        """May it not end here, and where does each range of bytes lead: to a block, another obligation, a violation?"""
        found: list[tuple[int, int, object]] = []
        for low, high, target in state.edges():
            kind = None if target.violated else block[target] if target in block else self._one[target]
            if found and found[-1][2] == kind and found[-1][1] + 1 == low:
                found[-1] = (found[-1][0], high, kind)
            else:
                found.append((low, high, kind))
        return (state.violated_at_end, *found)


__all__ = ["Obligations", "Owed", "Work"]
