"""A vocabulary's trie of tokens, step by step, for texts of which it is not known how they are cut into tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.constraint.per_vocabulary import PerVocabulary
from guided.vocab.vocabulary import Vocabulary

__all__ = ["ROOT", "TokenTree"]

ROOT = 0
"""The node of no bytes."""


class TokenTree(PerVocabulary):
    """Nodes are those of `Vocabulary.trie`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._trie = vocabulary.trie
        self._children: dict[int, dict[int, int]] = {}

    def child(self, node: int, byte: int) -> int:
        """The node behind one more byte; `ROOT` for none."""
        found = self._children.get(node)
        if found is None:
            found = self._children[node] = {}
            end, bytes_ = self._trie.end, self._trie.byte
            at, stop = node + 1, int(end[node])
            while at < stop:
                found[int(bytes_[at])] = at
                at = int(end[at])
        return found.get(byte, ROOT)

    def depth(self, node: int) -> int:
        """The bytes that lead to a node."""
        found = 0
        at = ROOT
        while at != node:
            at += 1
            while self._trie.end[at] <= node:
                at = int(self._trie.end[at])
            found += 1
        return found

    def is_leaf(self, node: int) -> bool:
        """Does no token go on from here?"""
        return int(self._trie.end[node]) == node + 1

    def token(self, node: int) -> int | None:
        """A token that ends here: all of them do the same."""
        first, stop = int(self._trie.token_offset[node]), int(self._trie.token_offset[node + 1])
        return int(self._trie.token_ids[first]) if first < stop else None

    def longer(self, node: int) -> NDArray[np.int64]:
        """The tokens that go on from here."""
        first, stop = self._trie.token_offset[node + 1], self._trie.token_offset[self._trie.end[node]]
        return self._trie.token_ids[first:stop].astype(np.int64)
