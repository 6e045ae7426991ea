"""Questions about whole regular languages: emptiness, inclusion, shortest members, finiteness.

Each is a breadth-first search over derivatives, bounded in counted steps (`LimitError`), never in seconds.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

from guided.errors import LimitError
from guided.grammar.regular.derivative import EMPTINESS_STEPS, edges, inhabited, least_length
from guided.grammar.regular.expr import Expr, Kind, difference, intersection


def is_empty(expr: Expr, limit: int = EMPTINESS_STEPS) -> bool:
    """Does the language hold no string at all?"""
    return not inhabited(expr, limit)


def are_disjoint(left: Expr, right: Expr, limit: int = EMPTINESS_STEPS) -> bool:
    """Do the languages share no string?"""
    return not inhabited(intersection((left, right)), limit)


def is_subset(left: Expr, right: Expr, limit: int = EMPTINESS_STEPS) -> bool:
    """Is every string of ``left`` in ``right``?"""
    return not inhabited(difference(left, right), limit)


def shortest(expr: Expr, limit: int = EMPTINESS_STEPS) -> bytes | None:
    """A shortest string of the language, low bytes preferred, or None if it is empty.

    Raises `LimitError` beyond ``limit``.

    >>> from guided.grammar.regular.expr import literal, repeat
    >>> shortest(repeat(literal(b"ab"), 2))
    b'abab'
    """
    if not inhabited(expr, limit):
        return None
    if least_length(expr) > limit:
        raise LimitError(f"the shortest match is longer than {limit} bytes")
    parents: dict[Expr, tuple[Expr | None, int]] = {expr: (None, 0)}
    # A*: a string through `item` has at least the bytes read so far and those that the structure demands.
    # The bounds of neighbours need not fit together, so an expression is taken up again when a shorter way is found.
    distances = {expr: 0}
    queue = [(least_length(expr), 0, 0, expr)]
    entries = itertools.count(1)
    while queue:
        _, negative_distance, _, item = heapq.heappop(queue)
        if -negative_distance > distances[item]:
            continue
        if item.nullable or item.kind is Kind.LITERAL:
            path = bytearray()
            walk: Expr | None = item
            while walk is not None:
                parent, byte = parents[walk]
                if parent is not None:
                    path.append(byte)
                walk = parent
            path.reverse()
            return bytes(path) + (item.parts[0] if item.kind is Kind.LITERAL else b"")  # type: ignore[operator]
        if len(parents) > limit:
            raise LimitError(f"the search for a shortest match took more than {limit} steps")
        for low, _, target in edges(item):
            distance = distances[item] + 1
            if distance < distances.get(target, distance + 1):
                distances[target] = distance
                parents[target] = (item, low)
                heapq.heappush(queue, (distance + least_length(target), -distance, next(entries), target))
    raise AssertionError("an inhabited language has a shortest member")


def members(expr: Expr, limit: int) -> list[bytes] | None:
    """All strings of a finite language, or None when there are more than ``limit`` (or infinitely many)."""
    found: list[bytes] = []
    for item in _walk(expr, limit):
        found.append(item)
        if len(found) > limit:
            return None
    return found


def _walk(expr: Expr, limit: int) -> Iterator[bytes]:
    stack: list[tuple[Expr, bytes]] = [(expr, b"")] if inhabited(expr) else []
    while stack:
        item, prefix = stack.pop()
        if item.nullable:
            yield prefix
        branches = [(target, prefix + bytes([b])) for low, high, target in edges(item) for b in range(low, high + 1)]
        stack.extend(reversed(branches))
        # Every live state leads to a member of its own, so a stack this large proves that there are too many; and
        # each turn of a cycle leaves a branch on the stack or yields, so an infinite language gets there.
        if len(stack) > limit + 1:
            yield from [b""] * (limit + 1)
            return
