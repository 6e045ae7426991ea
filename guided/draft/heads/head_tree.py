"""The static tree of draft heads: which ranks to draft, from how often each head's ranks came true."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

__all__ = ["best_nodes"]

LEAST = 1e-4
"""Nodes that come true less often than this are not worth a place in any pass."""


def best_nodes(accuracies: Sequence[Sequence[float]], most: int) -> list[tuple[int, ...]]:
    """The ``most`` nodes that are likeliest accepted, as ranks on the way to each; parents come before children.

    A node's value is the product of its ranks' accuracies, ``accuracies[depth][rank]``, as if heads erred independently
    (Medusa's search for its sparse tree).

    >>> best_nodes([[0.6, 0.2], [0.5, 0.1]], 4)
    [(0,), (0, 0), (1,), (1, 0)]
    """
    found: list[tuple[int, ...]] = []
    heap: list[tuple[float, tuple[int, ...]]] = []

    def offer(path: tuple[int, ...], value: float) -> None:
        depth = len(path)
        if depth < len(accuracies):
            for rank, share in enumerate(accuracies[depth]):
                if value * share >= LEAST:
                    heapq.heappush(heap, (-value * share, (*path, rank)))

    offer((), 1.0)
    while heap and len(found) < most:
        value, path = heapq.heappop(heap)
        found.append(path)
        offer(path, -value)
    return found
