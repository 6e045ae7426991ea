"""Obligations by what they forbid: those that forbid the same texts are one.

After each character of ``/[0-9]{1,300}/`` another obligation is owed, since other counts are left; all of them say that
no digit may come.  Told apart, they would multiply with each other and with all that is read meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from guided.automata.ordered import OrderedState, combine
from guided.errors import LimitError

Owed: TypeAlias = "OrderedState | None"
"""What must not come; None: nothing is owed."""


class Work:
    """Steps that deciding may still take; running out of them is a `LimitError`."""

    __slots__ = ("left", "most")

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def spend(self, steps: int) -> None:
        """Count some steps."""
        self.left -= steps
        if self.left < 0:
            raise LimitError(
                f"whether terminals can stand side by side was not decided in {self.most} steps",
                remedy="Terminals that may follow each other without a break overlap; separate them, as with %ignore, "
                "shorten counted repeats in them, or pass Limits(search_states=...).",
            )


class Obligations:
    """One obligation for each language; Moore's partition of all that were met, refined with each new one."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._one: dict[OrderedState, OrderedState] = {}
        """The one that stands for each."""
        self._kept: list[OrderedState] = []
        """Those that stand for others, no two of which are alike."""
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
        fresh = {owed: None}
        for state in (queue := [owed]):
            edges = state.edges()
            self._work.spend(1 + len(edges))
            for _, _, target in edges:
                if target not in fresh and target not in self._one and not target.violated:
                    fresh[target] = None
                    queue.append(target)
        states = [*self._kept, *fresh]
        block: dict[OrderedState, int] = {state: int(state.violated_at_end) for state in states}
        n_blocks = len(set(block.values()))
        while True:
            number: dict[tuple[object, ...], int] = {}
            divided: dict[OrderedState, int] = {}
            for state in states:
                signature = self._signature(state, block)
                divided[state] = number.setdefault((block[state], *signature), len(number))
            self._work.spend(len(states))
            block = divided
            if len(number) == n_blocks:
                break
            n_blocks = len(number)
        first = {block[state]: state for state in reversed(self._kept)}
        for state in fresh:
            if block[state] not in first:
                first[block[state]] = state
                self._kept.append(state)
            self._one[state] = first[block[state]]

    def _signature(self, state: OrderedState, block: dict[OrderedState, int]) -> list[tuple[int, int, int]]:
        """Where each range of bytes leads, by the blocks."""
        found: list[tuple[int, int, int]] = []
        for low, high, target in state.edges():
            kind = -1 if target.violated else block[self._one.get(target, target)]
            if found and found[-1][2] == kind and found[-1][1] + 1 == low:
                found[-1] = (found[-1][0], high, kind)
            else:
                found.append((low, high, kind))
        return found


__all__ = ["Obligations", "Owed", "Work"]
