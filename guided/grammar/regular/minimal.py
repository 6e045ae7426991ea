"""Deterministic automata as tables of numbers: which states lead to an end, which are equal, which lead to each other.

This file knows states by number only; `guided.grammar.regular.condensed` makes expressions of them.

Source: Moore, "Gedanken-experiments on Sequential Machines", 1956 (merging states); Tarjan, "Depth-First Search and
Linear Graph Algorithms", 1972 (components); Dijkstra, 1959 (distances).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeAlias

Row: TypeAlias = "list[tuple[int, int, int]]"
"""The edges of a state, by the numbers of their targets."""


def distances(table: list[list[int]], accepting: list[bool]) -> dict[int, int]:
    """Bytes from each state to the nearest end; of states that lead to one."""
    before: list[set[int]] = [set() for _ in table]
    for state, row in enumerate(table):
        for target in row:
            if target >= 0:
                before[target].add(state)
    order = [state for state, ends in enumerate(accepting) if ends]
    found = dict.fromkeys(order, 0)
    for state in order:
        for source in before[state]:
            if source not in found:
                found[source] = found[state] + 1
                order.append(source)
    return found


def merged(table: list[list[int]], far: dict[int, int], live: list[int]) -> list[int]:
    """A label for every state, the same for equal languages; 0 for those that lead nowhere."""
    labels = [0] * (len(table) + 1)  # the last is that of -1
    for state, distance in far.items():
        labels[state] = distance + 1
    # Bytes that lead all states to the same need be looked at once.
    columns = list(dict.fromkeys(zip(*[table[state] for state in live], strict=True)))
    rows = list(zip(*columns, strict=True))
    count = len(set(far.values()))
    while True:
        known: dict[tuple[int, ...], int] = {}
        after = [0] * len(labels)
        for state, row in zip(live, rows, strict=True):
            key = (labels[state], *[labels[target] for target in row])
            after[state] = known.setdefault(key, len(known) + 1)
        labels = after
        if len(known) == count:
            return labels
        count = len(known)


def components(rows: Sequence[Row], start: int) -> list[list[int]]:
    """States that lead to each other, together; those that others lead to before them."""
    index: dict[int, int] = {start: 0}
    lowest = {start: 0}
    stack = [start]
    placed: set[int] = set()
    found: list[list[int]] = []
    calls = [(start, iter({target for _, _, target in rows[start]}))]
    while calls:
        state, targets = calls[-1]
        for target in targets:
            if target not in index:
                index[target] = lowest[target] = len(index)
                stack.append(target)
                calls.append((target, iter({after for _, _, after in rows[target]})))
                break
            if target not in placed:
                lowest[state] = min(lowest[state], index[target])
        else:
            calls.pop()
            if calls:
                lowest[calls[-1][0]] = min(lowest[calls[-1][0]], lowest[state])
            if lowest[state] == index[state]:
                at = stack.index(state)
                found.append(stack[at:])
                del stack[at:]
                placed.update(found[-1])
    return found


def nearest(before: list[list[tuple[int, int]]], start: dict[int, int]) -> dict[int, int]:
    """The least of what stands at a state that can be reached, and of the characters until there."""
    found = dict(start)
    queue = [(distance, state) for state, distance in start.items()]
    heapq.heapify(queue)
    while queue:
        distance, state = heapq.heappop(queue)
        if distance > found[state]:
            continue
        for source, weight in before[state]:
            if distance + weight < found.get(source, distance + weight + 1):
                found[source] = distance + weight
                heapq.heappush(queue, (distance + weight, source))
    return found
