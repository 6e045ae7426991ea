"""Automaton states by the tokens that led to them: a bounded memo, so that what asks by tokens stays a pure function.

Nothing here is ever wrong when it is forgotten, only slower: the state is a function of the tokens, and what is not
known is advanced again from the longest known prefix, or from the start.
"""

from __future__ import annotations

import sys
import threading
from collections import deque

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains

__all__ = ["PrefixStates"]

MEMO_BYTES = 16 << 20
"""Bytes of keys kept.  A key is 8 bytes a token: the last 500 positions of a text of 4,000 tokens, or 4,000 texts of
500, which is far more than beams, rewinds of assisted decoding and interleaved calls go back."""

TAIL = 64
"""Bytes at a key's end (eight tokens) by which it is looked up, then compared whole: a fifth of hashing it."""

KEPT_EVERY = 64
"""Bytes (eight tokens) between the keys that are kept of a row that grows alone: going back advances seven at most."""

LOOK_BACK = 32
"""How many tokens a key may be ahead of a known one before it is advanced from the start; candidates are shorter."""


class PrefixStates:
    """The states of one constraint after token sequences, each at most one `advance` away from a known one as a rule.

    Cost of a call: the tokens copied once and compared once, 1 us at 1,000 tokens and 3 us at 10,000.  Thread-safe.
    """

    def __init__(self, constraint: Constrains, memo_bytes: int = MEMO_BYTES) -> None:
        self.constraint = constraint
        self._size = constraint.vocabulary.size
        # Keys by their length and last bytes; the tuples are replaced, never changed, so that reading needs no lock.
        self._memo: dict[tuple[int, bytes], tuple[tuple[bytes, int], ...]] = {}
        self._order: deque[bytes] = deque()
        self._last = b"", constraint.start
        self._room = memo_bytes
        self._memo_bytes = memo_bytes
        self._lock = threading.Lock()

    def after(self, tokens: NDArray[np.int64]) -> int:
        """The state after the tokens: 0 once one was not allowed, and `end` for good after an end-of-text id.

        What follows an end-of-text id is padding, whatever its id.
        """
        return self.after_bytes(tokens.tobytes())

    def after_bytes(self, key: bytes) -> int:
        """As `after`, of the ids as they lie in memory: eight bytes each."""
        size = len(key)
        before, state = self._last
        if key == before:
            return state
        if size == len(before) + 8 and key.startswith(before):
            # One row that grows by a token: nothing to look up, in caches that the model's pass has emptied.
            state = self._step(state, int.from_bytes(key[-8:], sys.byteorder, signed=True))
            self._last = key, state
            if size % KEPT_EVERY == 0:
                self._remember(key, state)
            return state
        for known, state in self._memo.get((size, key[-TAIL:]), ()):
            if key == known:
                return state
        if size == 0:
            return self.constraint.start
        state, known_size = self._longest_known(key)
        for token in np.frombuffer(key[known_size:], np.int64).tolist():
            state = self._step(state, token)
        self._remember(key, state)
        self._last = key, state
        return state

    def _longest_known(self, key: bytes) -> tuple[int, int]:
        """State and length in bytes of the longest memoised proper prefix within `LOOK_BACK`."""
        longest = len(key) - 8
        for size in range(longest, max(longest - 8 * LOOK_BACK, 0), -8):
            for known, state in self._memo.get((size, key[max(size - TAIL, 0) : size]), ()):
                if key.startswith(known):
                    return state, size
        return self.constraint.start, 0

    def _step(self, state: int, token: int) -> int:
        if state in (0, self.constraint.end):
            return state
        return self.constraint.advance(state, token) if 0 <= token < self._size else 0

    def _remember(self, key: bytes, state: int) -> None:
        if len(key) > self._memo_bytes:
            return
        place = len(key), key[-TAIL:]
        with self._lock:
            there = self._memo.get(place, ())
            if any(key == known for known, _ in there):
                return
            self._memo[place] = (*there, (key, state))
            self._order.append(key)
            self._room -= len(key)
            while self._room < 0:
                self._forget(self._order.popleft())

    def _forget(self, key: bytes) -> None:
        place = len(key), key[-TAIL:]
        left = tuple(item for item in self._memo[place] if item[0] is not key)
        if left:
            self._memo[place] = left
        else:
            del self._memo[place]
        self._room += len(key)
