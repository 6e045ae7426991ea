"""Byte-level byte-pair encoding: read from ``tokenizer.json``, encodes chunks, says which tokens may be neighbours.

How a text is cut into chunks before is in `guided.vocab.splitting`; this file knows nothing of it.

A sequence of tokens is what encoding their joined bytes gives exactly when that is so for each token and each two
neighbours: a merge across a boundary that happens first would happen first in the two tokens alone as well (Vieira et
al., *Language Models over Canonical Byte-Pair Encodings*, 2025).  It holds for any list of merges.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.errors import UnsupportedError
from guided.vocab.families.byte_level import byte_of_character
from guided.vocab.vocabulary import Vocabulary

__all__ = ["BytePairs"]

ROW_BYTES = 64 << 20
"""Memory for rows of successors; the older half is dropped when it is full."""


class BytePairs:
    """The merges of one tokenizer over one vocabulary.  Safe for several threads."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        made: NDArray[np.int32],
        byte_ids: NDArray[np.int32],
        chunks: NDArray[np.int64],
    ) -> None:
        from guided.kernels.tokens import canonical

        self.vocabulary = vocabulary
        self._arguments = (vocabulary, left, right, made, byte_ids, chunks)
        self._byte_ids = byte_ids
        slots = np.full(2 * left.size + 1, -1, np.int32)
        canonical.fill_merges(left, right, slots)
        self._merges = (left, right, made, slots)
        size = vocabulary.size
        self._children = np.full((size, 2), -1, np.int32)
        self._late = np.full(size, -2, np.int32)
        room = 2 * max(vocabulary.longest, 1) + 2
        self._symbols, self._ranks = np.zeros(room, np.int32), np.zeros(room, np.int32)
        self._bytes = (vocabulary.data, vocabulary.offsets, self._byte_ids)
        canonical.derive(self._merges, *self._bytes, self._symbols, self._ranks, self._children, self._late)
        self.reachable: NDArray[np.bool_] = self._late > -2
        """``bool[size]``: the tokens that merging their own bytes gives."""
        self.whole: NDArray[np.int64] = chunks[~self.reachable[chunks]]
        """Tokens that merging does not give, but that stand for a chunk of exactly their bytes (``ignore_merges``)."""
        self._tree = self._left_tree()
        self._rows: dict[int, NDArray[np.uint32]] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, model: Mapping[str, Any], vocabulary: Vocabulary) -> BytePairs:
        """Read the ``model`` of a ``tokenizer.json``; `UnsupportedError` for one that is no byte-level BPE."""
        _check(model)
        ids: dict[str, int] = model["vocab"]
        alphabet = byte_of_character()
        missing = [character for character in alphabet if character not in ids]
        if missing:
            raise UnsupportedError(
                f"the tokenizer has no token for the byte {alphabet[missing[0]]:#04x}",
                remedy="Canonical tokenisation needs byte-level BPE that knows all 256 bytes.",
            )
        byte_ids = np.zeros(256, np.int32)
        for character, byte in alphabet.items():
            byte_ids[byte] = ids[character]
        pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
        left = np.fromiter((ids[a] for a, _ in pairs), np.int32, len(pairs))
        right = np.fromiter((ids[b] for _, b in pairs), np.int32, len(pairs))
        made = np.fromiter((ids[a + b] for a, b in pairs), np.int32, len(pairs))
        chunks: list[int] = []
        if model.get("ignore_merges"):
            has_text = np.diff(vocabulary.offsets) > 0
            letters = frozenset(alphabet)
            chunks = [
                token
                for piece, token in ids.items()
                if token < vocabulary.size and has_text[token] and letters.issuperset(piece)
            ]
        return cls(vocabulary, left, right, made, byte_ids, np.asarray(sorted(chunks), np.int64))

    def __reduce__(self) -> tuple[Any, ...]:
        return (BytePairs, self._arguments)

    def _left_tree(self) -> tuple[NDArray[Any], ...]:
        """Tokens below their left parts in preorder, children by ``late`` descending; merges by their left part."""
        late, size = self._late, self.vocabulary.size
        tokens = np.flatnonzero(self.reachable)
        parents = self._children[tokens, 0]
        by_parent = np.lexsort((-late[tokens], parents))
        tokens, parents = tokens[by_parent], parents[by_parent]
        child_first = np.searchsorted(parents, np.arange(size + 1)).astype(np.int32)
        roots = tokens[: child_first[0]].tolist()
        children, bounds = tokens.tolist(), child_first.tolist()
        order: list[int] = []
        place = np.zeros(size, np.int32)
        stop = np.zeros(size, np.int32)
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            token, leaving = stack.pop()
            if leaving:
                stop[token] = len(order)
                continue
            place[token] = len(order)
            order.append(token)
            stack.append((token, True))
            stack.extend((child, False) for child in reversed(children[bounds[token] : bounds[token + 1]]))
        left, right, _, _ = self._merges
        useful = np.flatnonzero(self.reachable[left] & self.reachable[right])
        useful = useful[np.argsort(left[useful], kind="stable")]
        partner_first = np.searchsorted(left[useful], np.arange(size + 1)).astype(np.int32)
        partners = np.stack([right[useful], useful], axis=1).astype(np.int32)
        return (
            partner_first, partners, np.asarray(order, np.int32), place, stop, child_first,
            late[tokens].astype(np.int32), stop[tokens].astype(np.int32),
        )  # fmt: skip

    def successors(self, token: int) -> NDArray[np.uint32]:
        """The row (``uint32[n_words]``, not to be written to) of tokens that stay apart from ``token`` in one chunk.

        About 0.3 ms for 128,000 tokens; remembered.
        """
        with self._lock:
            row = self._rows.get(token)
            if row is None:
                row = np.zeros(self.vocabulary.n_words, np.uint32)
                if self.reachable[token]:
                    self._fill(token, row)
                if (len(self._rows) + 1) * row.nbytes > ROW_BYTES:
                    for old in list(self._rows)[: len(self._rows) // 2]:
                        del self._rows[old]
                self._rows[token] = row
            return row

    def _fill(self, token: int, row: NDArray[np.uint32]) -> None:
        from guided.kernels.tokens.canonical import successors

        covered = np.zeros(self._tree[2].size + 1, np.int32)
        successors(
            self._merges, *self._bytes, self._symbols, self._ranks, self._children, self._late, *self._tree, token,
            covered, row,
        )  # fmt: skip

    def stay_apart(self, first: int, second: int) -> bool:
        """Does encoding the two tokens' bytes as one chunk give just them?"""
        from guided.kernels.tokens.canonical import stays

        with self._lock:
            return bool(stays(self._merges, *self._bytes, self._symbols, self._ranks, first, second))

    def first_apart(self, first: int, seconds: NDArray[np.int64]) -> int:
        """The first of ``seconds`` that stays apart from ``first``, -1 when none does; about 1 us for each tried."""
        from guided.kernels.tokens.canonical import first_apart

        with self._lock:
            return int(first_apart(self._merges, *self._bytes, self._symbols, self._ranks, first, seconds))

    def any_apart(self, firsts: NDArray[np.int64], seconds: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each of ``firsts``: does some token of ``seconds`` stay apart from it?"""
        from guided.kernels.tokens.canonical import any_stays

        found = np.zeros(firsts.size, np.bool_)
        with self._lock:
            any_stays(self._merges, *self._bytes, self._symbols, self._ranks, firsts, seconds, found)
        return found

    def byte_token(self, byte: int) -> int:
        """The token of a single byte."""
        return int(self._byte_ids[byte])

    def encode_chunk(self, chunk: bytes) -> list[int]:
        """The tokens of one chunk by merging alone (``ignore_merges`` is the caller's)."""
        from guided.kernels.tokens.canonical import merge_all

        symbols = self._byte_ids[np.frombuffer(chunk, np.uint8)]
        n, _, _ = merge_all(self._merges, symbols, np.zeros(max(symbols.size, 1), np.int32), symbols.size)
        found: list[int] = symbols[:n].tolist()
        return found


def _check(model: Mapping[str, Any]) -> None:
    kind = model.get("type")
    if kind != "BPE":
        raise UnsupportedError(
            f"canonical tokenisation is exact for byte-level BPE alone; this tokenizer's model is {kind}",
            remedy="Leave out canonical tokenisation for this model.",
        )
    for option in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(option):
            raise UnsupportedError(
                f"canonical tokenisation does not know BPE with {option}={model[option]!r}",
                remedy="Leave out canonical tokenisation for this model.",
            )
