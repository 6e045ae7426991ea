"""llguidance through its `LLMatcher`, with its defaults for JSON Schema."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.eval.engines.protocol import TokenSpace

__all__ = ["open_engine"]


class _Matcher:
    def __init__(self, matcher: Any, buffer: NDArray[np.int32]) -> None:
        from llguidance.numpy import fill_next_token_bitmask

        self._fill = fill_next_token_bitmask
        self._matcher = matcher
        self._buffer = buffer

    def fill_mask(self, row: NDArray[np.uint32], left: int | None) -> None:
        self._fill(self._matcher, self._buffer, 0)
        if self._matcher.is_error():
            raise RuntimeError(self._matcher.get_error())
        shared = min(row.size, self._buffer.shape[1])
        row[:shared] = self._buffer[0, :shared].view(np.uint32)
        row[shared:] = 0

    def advance(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            raise RuntimeError(self._matcher.get_error() or f"the mask allows token {token}, consume_token does not")


class _Compiled:
    notes: tuple[str, ...] = ()

    def __init__(self, fresh: Any, buffer: NDArray[np.int32]) -> None:
        self._fresh = fresh
        self._buffer = buffer

    def start(self) -> _Matcher:
        return _Matcher(self._fresh.deep_copy(), self._buffer)


class _Engine:
    def __init__(self, tokens: TokenSpace) -> None:
        import llguidance
        import llguidance.hf
        from llguidance.numpy import allocate_token_bitmask

        self._new = llguidance.LLMatcher
        ends = list(tokens.vocabulary.eos_ids)
        self._tokenizer = llguidance.hf.from_tokenizer(tokens.tokenizer, eos_token=ends if len(ends) > 1 else None)
        self._buffer: NDArray[np.int32] = allocate_token_bitmask(1, self._tokenizer.vocab_size)

    def compile(self, schema: Any) -> _Compiled:
        fresh = self._new(self._tokenizer, self._new.grammar_from_json_schema(json.dumps(schema)))
        if fresh.is_error():
            raise ValueError(fresh.get_error())
        return _Compiled(fresh, self._buffer)


def open_engine(tokens: TokenSpace) -> _Engine:
    """The adapter."""
    return _Engine(tokens)
