"""Arrays whose items are counted: an automaton over items, made from an `ArrayShape` with ``counts``.

A state is the number of items read and, for each condition, how many of them met it, each capped where it makes no
further difference.  An item is of one of several kinds: which conditions it is counted for.  A condition with only a
lower bound is never *harmed* by an item that meets it, so such an item may go uncounted and nothing has to be negated;
under an upper bound the others must fail the condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.sets.shape import ArrayShape, Count, Need, negate

MAX_CONDITIONS = 5
"""Conditions that are counted side by side in one array; n of them split the items into 2**n kinds."""
MAX_STEPS = 20_000
"""Steps between the states of one array, which are the product of the counts it keeps; a few microseconds each."""

State = tuple[int, ...]
"""How many items were read, and how many of them each condition counted; all capped."""


@dataclass(frozen=True, slots=True)
class Step:
    """One more item: what it must be, and the state after it."""

    need: Need
    state: State


class ItemCounter:
    """The automaton of one array, asked state by state.  Raises a refusal for too many conditions."""

    def __init__(self, array: ArrayShape) -> None:
        if len(array.counts) > MAX_CONDITIONS:
            raise refusals.COUNTED_CONDITIONS.at(limit=MAX_CONDITIONS)
        self.array = array
        self.start: State = (0,) * (1 + len(array.counts))
        beyond = max([len(array.prefix), array.low, 1, *(count.start for count in array.counts)])
        self._cap = beyond if array.high is None else array.high
        self._kinds: dict[tuple[Need, tuple[int, ...]], list[tuple[Need, tuple[int, ...]]]] = {}

    def accepts(self, state: State) -> bool:
        """May the array end here?"""
        return state[0] >= self.array.low and all(
            seen >= count.low for seen, count in zip(state[1:], self.array.counts, strict=True)
        )

    def steps(self, state: State) -> list[Step]:
        """Every next item; none when the array is full."""
        array = self.array
        index = state[0]
        if array.high is not None and index >= array.high:
            return []
        after = min(index + 1, self._cap)
        active = []
        for number, count in enumerate(array.counts):
            if index >= count.start and (count.high is not None or state[1 + number] < count.low):
                active.append(number)
        found: dict[Step, None] = {}
        for need, counted in self._split(array.item(index), tuple(active)):
            seen = list(state)
            seen[0] = after
            for number in counted:
                seen[1 + number] += 1
            if all(array.counts[n].high is None or seen[1 + n] <= array.counts[n].high for n in counted):  # type: ignore[operator]
                found[Step(need, tuple(seen))] = None
        return list(found)

    def _split(self, need: Need, active: tuple[int, ...]) -> list[tuple[Need, tuple[int, ...]]]:
        key = (need, active)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = kinds(need, [(number, self.array.counts[number]) for number in active])
        return found

    def needs(self) -> set[Need]:
        """Every need that an item can have."""
        array = self.array
        most = array.high if array.high is not None else self._cap + 1
        found: set[Need] = set()
        reach = max([len(array.prefix), *(count.start for count in array.counts)])
        for index in range(min(reach + 1, most)):
            conditions = [(n, count) for n, count in enumerate(array.counts) if index >= count.start]
            found.update(need for need, _ in kinds(array.item(index), conditions))
        return found

    def living(self, alive: Callable[[Need], bool]) -> dict[State, list[Step]]:
        """The states from which the array can end, each with its steps; empty when it cannot end at all.

        Raises a refusal for too many steps.
        """
        table: dict[State, list[Step]] = {}
        sources: dict[State, list[State]] = {self.start: []}
        order = [self.start]
        taken = 0
        for state in order:
            row = table[state] = [step for step in self.steps(state) if alive(step.need)]
            for step in row:
                if step.state not in sources:
                    sources[step.state] = []
                    order.append(step.state)
                sources[step.state].append(state)
            taken += len(row) + 1
            if taken > MAX_STEPS:
                raise refusals.COUNTED_STEPS.at(limit=MAX_STEPS)
        live = {state for state in order if self.accepts(state)}
        work = list(live)
        while work:
            for source in sources[work.pop()]:
                if source not in live:
                    live.add(source)
                    work.append(source)
        if self.start not in live:
            return {}
        return {state: [step for step in table[state] if step.state in live] for state in order if state in live}


def kinds(need: Need, conditions: list[tuple[int, Count]]) -> list[tuple[Need, tuple[int, ...]]]:
    """What an item can be: its need, and the conditions that count it."""
    result: list[tuple[Need, tuple[int, ...]]] = [(need, ())]
    for number, count in conditions:
        more = []
        for own, counted in result:
            if count.need <= own:
                more.append((own, (*counted, number)))
                continue
            outside = negate(count.need, _pointer(count.need)) if count.high is not None else frozenset()
            more.append((own | outside, counted))
            more.append((own | count.need, (*counted, number)))
        result = more
    return result


def _pointer(need: Need) -> str:
    return min(atom.pointer for atom in need)
