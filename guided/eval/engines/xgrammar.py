"""XGrammar through its compiler and matcher.

``strict_mode=False``, because its default closes every object that does not say ``additionalProperties``, which is
another language than the schema's.  Its cache is off, and it compiles with one thread as the others do.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.eval.engines.native_messages import native_messages
from guided.eval.engines.protocol import TokenSpace

__all__ = ["open_engine"]


class _Matcher:
    def __init__(self, matcher: Any, buffer: Any) -> None:
        self._matcher = matcher
        self._buffer = buffer

    def fill_mask(self, row: NDArray[np.uint32], left: int | None) -> None:
        self._matcher.fill_next_token_bitmask(self._buffer)
        found = self._buffer[0].numpy().view(np.uint32)
        shared = min(row.size, found.size)
        row[:shared] = found[:shared]
        row[shared:] = 0

    def advance(self, token: int) -> None:
        if not self._matcher.accept_token(token):
            raise RuntimeError(f"the mask allows token {token}, accept_token does not")


class _Compiled:
    def __init__(self, grammar: Any, buffer: Any, notes: tuple[str, ...]) -> None:
        self._grammar = grammar
        self._buffer = buffer
        self.notes = notes

    def start(self) -> _Matcher:
        import xgrammar

        return _Matcher(xgrammar.GrammarMatcher(self._grammar), self._buffer)


class _Engine:
    def __init__(self, tokens: TokenSpace) -> None:
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(
            tokens.tokenizer, vocab_size=tokens.width, stop_token_ids=list(tokens.vocabulary.eos_ids)
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._buffer = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def compile(self, schema: Any) -> _Compiled:
        with native_messages() as lines:
            grammar = self._compiler.compile_json_schema(json.dumps(schema), strict_mode=False)
        notes = dict.fromkeys(line.split("Warning: ")[-1] for line in lines if line.strip())
        return _Compiled(grammar, self._buffer, tuple(notes))


def open_engine(tokens: TokenSpace) -> _Engine:
    """The adapter."""
    return _Engine(tokens)
