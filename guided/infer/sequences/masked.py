"""Sequences that go on from visited prefixes under the mask, side by side; masked samplers and chains share this."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from guided.infer.chance import Chance
from guided.infer.sequences.exploration import Exploration
from guided.infer.sequences.visited import Row

__all__ = ["continued", "plain"]

Weigh = Callable[[int, Row], NDArray[np.float64]]
"""The log weights by which the tokens of a node's row are drawn."""


def plain(node: int, row: Row) -> NDArray[np.float64]:
    """The row's own weights: masking token by token."""
    return row.log_weights.astype(np.float64)


def continued(exploration: Exploration, chance: Chance, nodes: Sequence[int], weigh: Weigh = plain) -> list[int]:
    """Draw token after token from each node until the end-of-text; the leaves that were reached.

    Where the limit of tokens or the weights leave no token to draw, the node that was reached is given instead: it is
    no end (`Exploration.is_end`).
    """
    at = list(nodes)
    alive = [i for i, node in enumerate(at) if not exploration.is_end(node)]
    while alive:
        rows = dict(zip((at[i] for i in alive), exploration.rows([at[i] for i in alive]), strict=True))
        shares: dict[int, NDArray[np.float64] | None] = {}
        for node, row in rows.items():
            weights = weigh(node, row)
            top = float(weights.max(initial=-math.inf))
            shares[node] = np.exp(weights - top) if top > -math.inf else None
        # All are drawn before any new node is made, so that one sequence's choice is nothing to the next.
        drawn: list[tuple[int, int]] = []
        for i in alive:
            share = shares[at[i]]
            if share is not None:
                drawn.append((i, int(rows[at[i]].ids[chance.index(share)])))
        for i, token in drawn:
            exploration.counts.tokens += 1
            at[i] = exploration.child(at[i], rows[at[i]], token)
        alive = [i for i, token in drawn if token not in exploration.eos_ids]
    return at
