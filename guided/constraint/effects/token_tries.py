"""The pool of tries over tokens of one vocabulary: its own, and those of what is left of tokens behind a match."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from guided.constraint.engine.requests import RequestBuffer
from guided.constraint.engine.scratch import grown
from guided.kernels.data.addresses import REPLACED, SharedAddresses, address, address_rows
from guided.kernels.data.layout import Tokens
from guided.kernels.data.records import grown_records, records
from guided.kernels.data.requests import GROW_FANS, GROW_NODES, GROW_TRIES
from guided.kernels.data.views import N_ROWS, REQUESTS, TOKENS
from guided.kernels.jit import direct
from guided.kernels.lexing.byte_classes import class_of_byte, phase_after
from guided.kernels.tokens.token_tries import index_trie, merge
from guided.vocab.vocabulary import Vocabulary

__all__ = ["TokenTries"]

MANY_CHILDREN = 16
"""Children from which a node gets a table of them (1 KB), rather than their being looked through one by one: a miss of
the cache each.  Llama-3's trie has 623 such nodes, and 12,000 with three children or more."""

FEW_EXITS = 8
"""Exits that are looked at one by one: a microsecond each, where a call of NumPy takes two to five."""


class TokenTries:
    """Tries that only grow; arrays are replaced when they are full, so that old views stay right."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        trie = vocabulary.trie
        n_nodes, n_ids = trie.n_nodes, trie.token_ids.size
        room = 2 * n_nodes + 1024
        self.longest = max(vocabulary.spelling.longest, 1)
        self.root = n_nodes
        """The end of the range of all tokens, which begins at 1."""
        self.addresses = SharedAddresses()
        self.arrays = Tokens(
            **records(Tokens, "byte", n_nodes + room + 1),
            token_ids=grown(trie.token_ids, n_ids + room),
            children=np.zeros((1024, 256), np.int32),
            classes=np.zeros(n_nodes + room, np.int64),
        )
        for name in ("byte", "end", "token_offset"):
            array = getattr(trie, name)
            getattr(self.arrays, name)[: array.size] = array
        self._n_nodes = n_nodes
        self._n_tokens = n_ids
        self._n_fans = 0
        self._requests = RequestBuffer(2)
        self._table = np.zeros((N_ROWS, 3), np.int64)
        self._table[REQUESTS:] = address_rows(self._requests.arrays)
        self._held: Tokens | None = None
        self._nodes = np.zeros((2, 1 << 14), np.int32)
        self._stamp = np.full(vocabulary.size, -1, np.int32)
        self._frames = np.zeros((self.longest + 2, 3), np.int32)
        self._merged: dict[bytes, tuple[int, int]] = {}
        self._index(1, n_nodes)

    def weights(self) -> NDArray[np.int32]:
        """``int32[256]``: the nodes at and below each byte that a token may begin with."""
        found = np.zeros(256, np.int32)
        node = 1
        while node < self.root:
            end = int(self.arrays.end[node])
            found[self.arrays.byte[node]] = end - node
            node = end
        return found

    @cached_property
    def pair_weights(self) -> NDArray[np.int32]:
        """``int32[256, 256]``: the nodes at and below each pair of bytes that a token may begin with."""
        found = np.zeros((256, 256), np.int32)
        end, byte = self.arrays.end, self.arrays.byte
        first = 1
        while first < self.root:
            stop = int(end[first])
            node = first + 1
            while node < stop:
                found[byte[first], byte[node]] = end[node] - node
                node = int(end[node])
            first = stop
        return found

    def tokens_at(self, nodes: NDArray[np.int32]) -> NDArray[np.int32]:
        """The tokens that end in some nodes."""
        offset = self.arrays.token_offset
        return np.concatenate([_NONE, *(self.arrays.token_ids[offset[n] : offset[n + 1]] for n in nodes.tolist())])

    def exit_ranges(
        self, exits: NDArray[np.int32], bytes_under: Callable[[int], NDArray[np.uint8]] | None = None
    ) -> list[tuple[int, int, int, int]]:
        """One trie range per terminal and obligation, merged where matches end at several nodes.

        ``exits`` has rows ``(node, tag, pending, ...)``; gives ``(low, high, tag, pending)``.  ``bytes_under`` says
        which bytes (``uint8[256]``) may come under an obligation: what begins with others is left out.
        """
        ranges: list[tuple[int, int, int, int]] = []
        if len(exits) <= FEW_EXITS:
            nodes: dict[tuple[int, int], list[int]] = {}
            for node, ends_as, pending, *_ in exits.tolist():
                if self.arrays.end[node] > node + 1:
                    nodes.setdefault((ends_as, pending), []).append(node)
            for (ends_as, pending), below in nodes.items():
                ranges.append((*self.merge(np.array(below, np.int32)), ends_as, pending))
            return ranges
        # Where a text may end anywhere there are as many exits as nodes, so none is looked at by itself.
        exits = exits[self.arrays.end[exits[:, 0]] > exits[:, 0] + 1]
        ends = exits[:, 1].astype(np.int64) << 32 | exits[:, 2]
        # Stable, so that the nodes of each ascend.
        order = np.argsort(ends, kind="stable")
        ends, below = ends[order], exits[order, 0]
        firsts = np.flatnonzero(np.diff(ends, prepend=-1)).tolist() if ends.size else []
        for first, stop in pairwise([*firsts, ends.size]):
            ends_as, pending = divmod(int(ends[first]), 1 << 32)
            allowed = None if bytes_under is None or not pending else bytes_under(pending)
            low, high = self.merge(below[first:stop], allowed)
            if low < high:
                ranges.append((low, high, ends_as, pending))
        return ranges

    def merge(self, starts: NDArray[np.int32], allowed: NDArray[np.uint8] | None = None) -> tuple[int, int]:
        """The trie of all that is below some nodes; where there are several, only behind the ``allowed`` bytes."""
        if starts.size == 1:
            return int(starts[0]) + 1, int(self.arrays.end[starts[0]])
        key = starts.tobytes() + (b"" if allowed is None else allowed.tobytes())
        found = self._merged.get(key)
        if found is not None:
            return found
        while True:
            stop = direct(merge)(
                self._addresses(), starts, starts.size, self._n_nodes, self._n_tokens,
                self._nodes[0], self._nodes[1], self._stamp, self._frames,
                _ALL_BYTES if allowed is None else np.concatenate([allowed, _ALL_BYTES[256:]]),
            )  # fmt: skip
            if stop >= 0:
                break
            self._stamp.fill(-1)
            self._requests.serve(self, _ANSWERS)
        found = self._merged[key] = (self._n_nodes, int(stop))
        self._index(self._n_nodes, int(stop))
        self._n_nodes = int(stop)
        self._n_tokens = int(self.arrays.token_offset[stop])
        return found

    def _grow_nodes(self, _: list[list[int]]) -> None:
        self._nodes = np.zeros((2, 4 * self._nodes.shape[1]), np.int32)

    def _grow_tries(self, _: list[list[int]]) -> None:
        tokens = self.arrays
        self.arrays = tokens._replace(
            **grown_records(tokens, "byte", 2 * tokens.byte.size),
            token_ids=grown(tokens.token_ids, 2 * tokens.token_ids.size),
            classes=grown(tokens.classes, 2 * tokens.classes.size),
        )
        REPLACED.note()

    def _index(self, low: int, high: int) -> None:
        """Note what bytes are below the nodes of a new trie, and give those with many children tables of them."""
        readable = np.zeros(high - low, np.uint8)
        kernel = direct(index_trie)
        while True:
            used = int(
                kernel(
                    self._addresses(), low, high, self._n_fans, MANY_CHILDREN, _CLASS_OF_BYTE, _PHASE_AFTER, readable,
                )
            )  # fmt: skip
            if used >= 0:
                break
            self._requests.serve(self, _ANSWERS)
        self._n_fans = used

    def _grow_fans(self, _: list[list[int]]) -> None:
        children = self.arrays.children
        self.arrays = self.arrays._replace(children=np.concatenate([children, np.zeros_like(children)]))
        REPLACED.note()

    def _addresses(self) -> int:
        """What kernels get: where the table of addresses is."""
        if self._held is not self.arrays:
            self._held = self.arrays
            self._table[TOKENS : TOKENS + len(self.arrays)] = self.addresses.of(self.arrays)
        return address(self._table)


_ANSWERS = {
    GROW_NODES: TokenTries._grow_nodes,
    GROW_TRIES: TokenTries._grow_tries,
    GROW_FANS: TokenTries._grow_fans,
}
_NONE = np.zeros(0, np.int32)
_ALL_BYTES = np.ones(512, np.uint8)
_CLASS_OF_BYTE = class_of_byte()
_PHASE_AFTER = phase_after()
