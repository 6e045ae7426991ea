"""The trie of token prefixes that a sampler has visited: what the model said there, and how much of it can still end.

Knows no model and no potential.  A node is an int, 0 the root (the prompt), and never changes meaning.  All that is
kept for good is a few numbers a node; the weights of a node's next tokens (`Row`) are remembered within a budget
of bytes and may be gone, so that whoever draws from a node must be ready to ask the model again.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.infer.weights import log_sum_exp

__all__ = ["ROOT", "UNKNOWN", "Row", "Visited"]

ROOT = 0

UNKNOWN = object()
"""The potential's state at a node that was loaded and not visited since."""

_NODE_BYTES = 400
"""Estimate of a node's size: 48 bytes in arrays, and an entry in a dict of children that holds one on average
(measured: 232 bytes for the dict, 64 for two ints, the list entries)."""


class Row:
    """The next tokens that have a weight at a node, in ascending order, and the logarithms of the weights: the model's
    probability, times what the potential adds where it is not a constraint.

    The ids are kept as bits where that is shorter: 16 kB instead of 492 for the inside of a string in a vocabulary of
    128,000.
    """

    __slots__ = ("_bits", "_ids", "log_weights", "nbytes")

    def __init__(self, ids: NDArray[np.int32], log_weights: NDArray[Any], width: int) -> None:
        self._ids: NDArray[np.int32] | None = ids
        self._bits: tokenset.Row | None = None
        self.log_weights = log_weights
        """``float32[n]`` or ``float64[n]``, as exact as the model's own; not normalised over the row."""
        words = tokenset.n_words(width)
        if ids.size > words:
            self._ids, self._bits = None, tokenset.of_ids(ids, words)
        self.nbytes = int(log_weights.nbytes + (ids if self._bits is None else self._bits).nbytes)
        """Bytes held."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """``int32[n]``, ascending."""
        if self._ids is not None:
            return self._ids
        assert self._bits is not None
        return tokenset.ids(self._bits).astype(np.int32)


class Visited:
    """A trie over token prefixes with a value for each node: an upper bound on the probability of ending well.

    The value of a node is 1 until it is settled (`settle`), then the sum over its row of a token's weight times the
    value of what it leads to, 1 where that was never visited.  As no weight exceeds the model's probability, values
    fall and never rise.
    """

    def __init__(self, row_bytes: int) -> None:
        self.row_bytes = row_bytes
        self._rows: OrderedDict[int, Row] = OrderedDict()
        self._held = 0
        self._n = 0
        self.parent = np.zeros(256, np.int32)
        """``int32[>= n]``: each node's parent, -1 for the root."""
        self.token = np.zeros(256, np.int32)
        """``int32[>= n]``: the token that leads to each node."""
        self.depth = np.zeros(256, np.int32)
        """``int32[>= n]``: tokens from the root."""
        self.log_weight = np.zeros(256)
        """``float64[>= n]``: the log weight of each node's token in its parent's row."""
        self.log_value = np.zeros(256)
        """``float64[>= n]``: logarithm of the value, minus infinity for what can never end well."""
        self.log_rest = np.zeros(256)
        """``float64[>= n]``: log weight of the row's tokens that lead to no node yet; NaN before there is a row."""
        self.log_kept = np.zeros(256)
        """``float64[>= n]``: log weight of the whole row; NaN before there is one."""
        self.entropy = np.zeros(256)
        """``float64[>= n]``: entropy of the normalised row, nats; NaN before there is one."""
        self.states: list[Any] = []
        """The potential's state at each node, `UNKNOWN` where it is not at hand."""
        self._children: list[dict[int, int] | None] = []
        self._new(-1, -1, UNKNOWN, 0.0, 0.0)

    def __len__(self) -> int:
        """Number of nodes."""
        return self._n

    @property
    def nbytes(self) -> int:
        """Bytes held, estimated for the nodes and counted for the rows."""
        return self._n * _NODE_BYTES + self._held

    @property
    def n_rows(self) -> int:
        """How many rows are remembered."""
        return len(self._rows)

    def child(self, node: int, token: int) -> int:
        """The node after a token, -1 if it was never visited."""
        children = self._children[node]
        return -1 if children is None else children.get(token, -1)

    def children(self, node: int) -> dict[int, int]:
        """The visited children of a node by token; not to be changed."""
        return self._children[node] or {}

    def tokens(self, node: int) -> tuple[int, ...]:
        """The tokens that lead to a node."""
        return tuple(int(self.token[at]) for at in self.path(node)[1:])

    def path(self, node: int) -> list[int]:
        """The nodes from the root to this one."""
        found = [node]
        while (node := int(self.parent[node])) >= 0:
            found.append(node)
        return found[::-1]

    def is_expanded(self, node: int) -> bool:
        """Has the node had a row, be it remembered or not?"""
        return not math.isnan(self.log_kept[node])

    def expand(self, node: int, row: Row) -> None:
        """Remember a node's row, for the first time or again; the oldest rows go when there are too many bytes."""
        if not self.is_expanded(node):
            kept = log_sum_exp(row.log_weights.astype(np.float64))
            self.log_kept[node] = self.log_rest[node] = kept
            self.entropy[node] = _entropy(row.log_weights, kept)
        if row.nbytes > self.row_bytes or node in self._rows:
            return
        self._rows[node] = row
        self._held += row.nbytes
        while self._held > self.row_bytes:
            _, oldest = self._rows.popitem(last=False)
            self._held -= oldest.nbytes

    def forget_rows(self) -> None:
        """Forget what the model said, which it can say again; all that is known of nodes stays."""
        self._rows, self._held = OrderedDict(), 0

    def row(self, node: int) -> Row | None:
        """The row of a node if it is remembered."""
        found = self._rows.get(node)
        if found is not None:
            self._rows.move_to_end(node)
        return found

    def add(self, node: int, row: Row, token: int, state: Any, log_value: float = 0.0) -> int:
        """The child of an expanded node after a token of its row, made if need be; the value is that of a new one."""
        found = self.child(node, token)
        if found >= 0:
            return found
        ids = row.ids
        log_weight = float(row.log_weights[int(np.searchsorted(ids, token))])
        new = self.attach(node, token, state, log_weight, log_value)
        children = self.children(node)
        # Summed anew and not subtracted from: where nearly all the mass has been visited, a difference has no digits.
        others = row.log_weights.astype(np.float64)
        others[np.searchsorted(ids, np.fromiter(children, np.int32, len(children)))] = -math.inf
        self.log_rest[node] = log_sum_exp(others)
        return new

    def attach(self, node: int, token: int, state: Any, log_weight: float, log_value: float = 0.0) -> int:
        """A new child of a node, for those who never ask for values: `log_rest` of the node stays as it is."""
        new = self._new(node, token, state, log_weight, log_value)
        children = self._children[node]
        if children is None:
            children = self._children[node] = {}
        children[token] = new
        return new

    def weights(self, node: int, row: Row) -> NDArray[np.float64]:
        """``float64[len(row)]``: the log of each token's weight times the value of what it leads to."""
        values = row.log_weights.astype(np.float64)
        children = self._children[node]
        if children:
            tokens = np.fromiter(children, np.int32, len(children))
            nodes = np.fromiter(children.values(), np.int64, len(children))
            values[np.searchsorted(row.ids, tokens)] += self.log_value[nodes]
        return values

    def settle(self, nodes: Iterable[int]) -> None:
        """Compute the values of the expanded nodes on the paths from the root to these, deepest first."""
        pending: set[int] = set()
        for node in nodes:
            while node >= 0 and node not in pending:
                pending.add(node)
                node = int(self.parent[node])
        for node in sorted(pending, key=lambda node: -int(self.depth[node])):
            if self.is_expanded(node):
                value = self._value(node)
                # The same sum in another order may come out larger in its last digit.
                self.log_value[node] = min(float(self.log_value[node]), value)

    def _value(self, node: int) -> float:
        rest = float(self.log_rest[node])
        children = self._children[node]
        if not children:
            return rest
        nodes = np.fromiter(children.values(), np.int64, len(children))
        return log_sum_exp([rest, log_sum_exp(self.log_weight[nodes] + self.log_value[nodes])])

    def _new(self, parent: int, token: int, state: Any, log_weight: float, log_value: float) -> int:
        node = self._n
        if node == self.parent.size:
            for name in ("parent", "token", "depth", "log_weight", "log_value", "log_rest", "log_kept", "entropy"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        self.parent[node], self.token[node] = parent, token
        self.depth[node] = self.depth[parent] + 1 if parent >= 0 else 0
        self.log_weight[node], self.log_value[node] = log_weight, log_value
        self.log_rest[node] = self.log_kept[node] = self.entropy[node] = math.nan
        self.states.append(state)
        self._children.append(None)
        self._n = node + 1
        return node

    def __getstate__(self) -> dict[str, Any]:
        """Without rows, which the model can say again, and without states, which mean nothing in another process."""
        arrays = ("parent", "token", "depth", "log_weight", "log_value", "log_rest", "log_kept", "entropy")
        return {"row_bytes": self.row_bytes} | {name: getattr(self, name)[: self._n].copy() for name in arrays}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved)
        self._rows, self._held = OrderedDict(), 0
        self._n = int(self.parent.size)
        self.states = [UNKNOWN] * self._n
        self._children = [None] * self._n
        for node, (parent, token) in enumerate(zip(self.parent.tolist(), self.token.tolist(), strict=True)):
            if parent >= 0:
                children = self._children[parent]
                if children is None:
                    children = self._children[parent] = {}
                children[token] = node


def _entropy(log_weights: Sequence[float] | NDArray[Any], log_kept: float) -> float:
    """Entropy in nats of a row of total ``exp(log_kept)``; 0 for an empty one, exactly 0 for a single token."""
    if log_kept == -math.inf or len(log_weights) == 1:
        return 0.0
    q = np.asarray(log_weights, np.float64) - log_kept
    return max(0.0, -float((np.exp(q) * q).sum()))
