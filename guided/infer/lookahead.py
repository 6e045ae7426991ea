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

QUESTIONS = 16
"""States asked for their next bytes; a level of the trie with more nodes is left as it is."""

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
        level, left = [(0, state)], QUESTIONS
        while level and len(level) <= left:
            left -= len(level)
            following: list[tuple[int, int, int]] = []
            for node, here in level:
                allowed = np.flatnonzero(ask(here)).tolist()
                children = self._of(node)
                following += [(children[byte], byte, here) for byte in allowed if byte in children]
            if len(following) > left:
                for child, _, _ in following:
                    possible[trie.token_ids[trie.token_offset[child] : trie.token_offset[trie.end[child]]]] = True
                break
            level = []
            for child, byte, here in following:
                special = byte == SENTINEL[0] and vocabulary.has_special
                last = trie.end[child] if special else child + 1
                possible[trie.token_ids[trie.token_offset[child] : trie.token_offset[last]]] = True
                after = 0 if special else self._constraint.advance_bytes(here, bytes([byte]))
                if after and trie.end[child] > child + 1:
                    level.append((child, after))
        else:
            for node, _ in level:
                possible[trie.token_ids[trie.token_offset[node] : trie.token_offset[trie.end[node]]]] = True
        return possible

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
