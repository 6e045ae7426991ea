"""`Eventful`: which tokens of a vocabulary may run over a place where a monitor triggers, and rows of the others.

All of it is a function of the vocabulary, the monitor's reading of bytes and its verdicts, so it is found once for all
texts.  What a mask makes of it is `guided.monitor.monitor`'s.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.live import TokenTree
from guided.monitor.interface import Monitor
from guided.monitor.names import FREE, Verdict
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Crossing", "Eventful"]

_REMEMBERED = 256
"""Rows and walks that are kept for each vocabulary: at most 16 KB each for 128,000 tokens."""


@dataclass(frozen=True)
class Crossing:
    """Tokens that agree up to a place where the monitor triggers."""

    prefix: bytes
    """Their bytes up to that place."""
    going_on: tuple[tuple[int, bytes], ...]
    """Ids, with what follows."""
    ending: tuple[int, ...]
    """Ids that are just the prefix."""


class Eventful:
    """The tokens of a vocabulary that may run over or end at a trigger, by the lexical state that they begin in."""

    def __init__(self, vocabulary: Vocabulary, monitor: Monitor) -> None:
        self.monitor = monitor
        self.vocabulary = vocabulary
        trie = vocabulary.trie
        self.tree = tree = TokenTree(vocabulary)
        texts = np.diff(vocabulary.offsets) > 0
        self.free_row = tree.row(np.flatnonzero(texts))
        tokens = vocabulary.tokens
        self.tokens: dict[int, bytes] = {}
        for token, data in enumerate(tokens):
            if data is None:
                continue
            if 0xFF in data:
                tokenset.remove(self.free_row, token)
            elif any(byte in data for byte in monitor.trigger_bytes):
                self.tokens[token] = data
        place_of = np.empty(vocabulary.size, np.int64)
        place_of[trie.token_ids] = np.arange(trie.token_ids.size)
        self.sorted_ids = np.array(sorted(self.tokens, key=lambda token: place_of[token]), np.int64)
        self.places = place_of[self.sorted_ids]
        self._by_state: dict[Hashable, tuple[tuple[Crossing, ...], tuple[int, ...]]] = {}
        # Constraints have locks of their own, but share a monitor and what it keeps.
        self._lock = threading.RLock()
        self._first_rows: dict[bytes, NDArray[np.uint32]] = {}
        self._matching: dict[bytes, tuple[NDArray[np.uint32], tuple[int, ...]]] = {}
        self._walked: dict[Verdict, tuple[NDArray[np.int32], tuple[int, ...]]] = {}

    def crossings(self, lexical: Hashable) -> tuple[tuple[Crossing, ...], tuple[int, ...]]:
        """Tokens with one trigger from a lexical state, by what comes up to it, and those with several."""
        found = self._by_state.get(lexical)
        if found is None:
            found = self._by_state[lexical] = self._find(lexical)
        return found

    def _find(self, begin: Hashable) -> tuple[tuple[Crossing, ...], tuple[int, ...]]:
        monitor = self.monitor
        going_on: dict[bytes, list[tuple[int, bytes]]] = {}
        ending: dict[bytes, list[int]] = {}
        several = []
        for token, data in self.tokens.items():
            lexical, places = begin, []
            for at, byte in enumerate(data, 1):
                lexical = monitor.read(lexical, byte)
                if monitor.triggers(lexical):
                    places.append(at)
            if len(places) > 1:
                several.append(token)
            elif places:
                prefix = data[: places[0]]
                if places[0] == len(data):
                    ending.setdefault(prefix, []).append(token)
                else:
                    going_on.setdefault(prefix, []).append((token, data[places[0] :]))
        crossings = [
            Crossing(prefix, tuple(going_on.get(prefix, ())), tuple(ending.get(prefix, ())))
            for prefix in sorted({*going_on, *ending})
        ]
        return tuple(crossings), tuple(several)

    def matching(self, pattern: bytes) -> tuple[NDArray[np.uint32], tuple[int, ...]]:
        """The tokens that a regular expression matches whole, and which of them are eventful."""
        with self._lock:
            found = self._matching.get(pattern)
            if found is None:
                found = self._match(pattern)
            return found

    def _match(self, pattern: bytes) -> tuple[NDArray[np.uint32], tuple[int, ...]]:
        match = re.compile(pattern).fullmatch
        ids = [token for token, data in enumerate(self.vocabulary.tokens) if data is not None and match(data)]
        found = (self.tree.row(ids), tuple(token for token in ids if token in self.tokens))
        if len(self._matching) >= _REMEMBERED:
            del self._matching[next(iter(self._matching))]
        self._matching[pattern] = found
        return found

    def walked(self, verdict: Verdict) -> tuple[NDArray[np.int32], tuple[int, ...]]:
        """The tokens that stay within a verdict, and the trie's nodes at which one that follows them is left."""
        with self._lock:
            remembered = self._walked.get(verdict)
            if remembered is None:
                remembered = self._walk(verdict)
            return remembered

    def _walk(self, verdict: Verdict) -> tuple[NDArray[np.int32], tuple[int, ...]]:
        found: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
        released: list[int] = []
        stack: list[tuple[Verdict, int]] = [(verdict, 0)]
        while stack:
            here, place = stack.pop()
            children = self.tree.children(place)
            if not children:
                continue
            for byte in here.continuing():
                child = children.get(byte)
                if child is not None:
                    after = here.step(byte)
                    assert after is not None and after is not FREE
                    found.append(self.tree.spelled_here(child))
                    stack.append((after, child))
            if place:
                released.extend(children[byte] for byte in here.releasing() if byte in children)
        remembered = self._walked[verdict] = (np.concatenate(found), tuple(released))
        if len(self._walked) > _REMEMBERED:
            del self._walked[next(iter(self._walked))]
        return remembered

    def first_row(self, first: bytes) -> NDArray[np.uint32]:
        """The tokens whose first byte is one of these."""
        found = self._first_rows.get(first)
        if found is None:
            trie = self.tree.trie
            slices = [
                trie.token_ids[trie.token_offset[node] : trie.token_offset[trie.end[node]]]
                for byte, node in self.tree.children(0).items()
                if byte in first
            ]
            found = self._first_rows[first] = self.tree.row(np.concatenate(slices) if slices else ())
        return found
