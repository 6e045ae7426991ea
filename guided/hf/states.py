"""Automaton states by the tokens that led to them: a bounded memo, so that a logits processor stays a pure function.

Nothing here is ever wrong when it is forgotten, only slower: the state is a function of the tokens, and what is not
known is advanced again from the longest known prefix, or from the start.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains

__all__ = ["PrefixStates"]

MEMO_BYTES = 16 << 20
"""Bytes of keys kept.  A key is 8 bytes a token: the last 500 positions of a text of 4,000 tokens, or 4,000 texts of
500, which is far more than beams, rewinds of assisted decoding and interleaved calls go back."""

LOOK_BACK = 32
"""How many tokens a key may be ahead of a known one before it is advanced from the start; candidates are shorter."""


class PrefixStates:
    """The states of one constraint after token sequences, each at most one `advance` away from a known one as a rule.

    Cost of a call: hash of the tokens, 5 us at 1,000 tokens.  Safe for several threads.
    """

    def __init__(self, constraint: Constrains, memo_bytes: int = MEMO_BYTES) -> None:
        self._constraint = constraint
        self._size = constraint.vocabulary.size
        self._memo: dict[bytes, int] = {}
        self._room = memo_bytes
        self._memo_bytes = memo_bytes
        self._lock = threading.Lock()

    def after(self, tokens: NDArray[np.int64]) -> int:
        """The state after the tokens: 0 once one was not allowed, and `end` for good after an end-of-text id.

        What follows an end-of-text id is padding, whatever its id.
        """
        if not tokens.size:
            return self._constraint.start
        key = tokens.tobytes()
        state = self._memo.get(key)
        if state is None:
            state, known = self._longest_known(key)
            for token in tokens[known:].tolist():
                state = self._step(state, token)
            self._remember(key, state)
        return state

    def _longest_known(self, key: bytes) -> tuple[int, int]:
        """State and length in tokens of the longest memoised proper prefix within `LOOK_BACK`."""
        length = len(key) // 8
        for shorter in range(length - 1, max(length - 1 - LOOK_BACK, 0), -1):
            state = self._memo.get(key[: 8 * shorter])
            if state is not None:
                return state, shorter
        return self._constraint.start, 0

    def _step(self, state: int, token: int) -> int:
        if state in (0, self._constraint.end):
            return state
        return self._constraint.advance(state, token) if 0 <= token < self._size else 0

    def _remember(self, key: bytes, state: int) -> None:
        with self._lock:
            if key in self._memo or len(key) > self._memo_bytes:
                return
            self._memo[key] = state
            self._room -= len(key)
            while self._room < 0:
                oldest = next(iter(self._memo))
                del self._memo[oldest]
                self._room += len(oldest)
