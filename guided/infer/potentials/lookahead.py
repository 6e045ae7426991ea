"""Which tokens a constraint can rule out by a few questions about bytes: less than a mask, and far cheaper.

Where a grammar leaves little choice, one of a few names, a literal, a digit, most of what a model proposes is ruled out
by its first bytes.  Where it leaves much, inside of strings, little is ruled out, and little is proposed that must be.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.special_bytes import SENTINEL

__all__ = ["Lookahead"]

QUESTIONS = 4
"""States asked for their next bytes; a level of the trie with more nodes is left as it is.  Of 1, 4, 8 and 16, four
cost least time in all on MaskBench schemas with the embedded model, though 16 leave fewer tokens to test."""

REMEMBERED = 32
"""States whose answer is kept: particles that come through the same state do so in the same steps."""


class Lookahead:
    """The possible first bytes after states of one constraint, as sets of tokens."""

    def __init__(self, constraint: Constrains) -> None:
        self._constraint = constraint
        # Not part of the protocol: a constraint that cannot tell rules nothing out.
        self._next_bytes: Callable[[int], NDArray[np.uint8]] | None = getattr(constraint, "possible_bytes", None)
        self._trie = constraint.vocabulary.trie
        self._children: dict[int, dict[int, int]] = {}
        self._known: dict[int, NDArray[np.bool_]] = {}

    def tokens(self, state: int) -> NDArray[np.bool_] | None:
        """``bool[vocabulary.size]``: False for tokens that cannot come; None where nothing is known."""
        if self._next_bytes is None:
            return None
        found = self._known.get(state)
        if found is None:
            found = self._tokens(state, self._next_bytes)
            found.flags.writeable = False
            while len(self._known) >= REMEMBERED:
                self._known.pop(next(iter(self._known)), None)
            self._known[state] = found
        return found

    def _tokens(self, state: int, ask: Callable[[int], NDArray[np.uint8]]) -> NDArray[np.bool_]:
        """Level by level of the trie, as long as a level has few nodes and there are questions left."""
        vocabulary, trie = self._constraint.vocabulary, self._trie
        possible = np.zeros(vocabulary.size, np.bool_)
        possible[list(vocabulary.eos_ids)] = self._constraint.is_accepting(state)
        # A node with the state before it and the byte between them: the state at it is asked for when it must be.
        level: list[tuple[int, int, bytes]] = [(0, state, b"")]
        left = QUESTIONS
        while level and len(level) <= left:
            left -= len(level)
            following: list[tuple[int, int, bytes]] = []
            for node, before, data in level:
                here = self._constraint.advance_bytes(before, data) if data else before
                if not here:
                    continue
                possible[self._ids(node, node + 1)] = True
                children = self._of(node)
                for byte in np.flatnonzero(ask(here)).tolist() if children else []:
                    child = children.get(byte)
                    if child is None:
                        continue
                    # A special token's name is not text, and comes whole: it is not looked into.
                    if byte == SENTINEL[0] and vocabulary.has_special:
                        possible[self._ids(child, int(trie.end[child]))] = True
                    else:
                        following.append((child, here, bytes((byte,))))
            level = following
        for node, _, _ in level:
            possible[self._ids(node, int(trie.end[node]))] = True
        return possible

    def _ids(self, node: int, end: int) -> NDArray[np.int32]:
        """The ids that spell the nodes from one to another."""
        return self._trie.token_ids[self._trie.token_offset[node] : self._trie.token_offset[end]]

    def _of(self, node: int) -> dict[int, int]:
        """The children of a node by their bytes."""
        found = self._children.get(node)
        if found is None:
            found = {}
            child, end = node + 1, int(self._trie.end[node])
            while child < end:
                found[int(self._trie.byte[child])] = child
                child = int(self._trie.end[child])
            self._children[node] = found
        return found
