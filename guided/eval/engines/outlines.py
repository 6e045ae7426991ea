"""Outlines through outlines-core: the schema to a regular expression, an index of it, and a guide.

The index knows one end-of-text id; where the model has several, the first stands for all.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.errors import VocabularyError
from guided.eval.engines.protocol import TokenSpace

__all__ = ["open_engine"]


class _Matcher:
    def __init__(self, guide: Any, buffer: NDArray[np.uint32]) -> None:
        self._guide = guide
        self._buffer = buffer

    def fill_mask(self, row: NDArray[np.uint32], left: int | None) -> None:
        self._guide.write_mask_into(self._buffer.ctypes.data, self._buffer.size, self._buffer.itemsize)
        row[:] = self._buffer

    def advance(self, token: int) -> None:
        self._guide.advance(token, return_tokens=False)


class _Compiled:
    notes: tuple[str, ...] = ()

    def __init__(self, index: Any, buffer: NDArray[np.uint32]) -> None:
        self._index = index
        self._buffer = buffer

    def start(self) -> _Matcher:
        from outlines_core import Guide

        return _Matcher(Guide(self._index), self._buffer)


class _Engine:
    def __init__(self, tokens: TokenSpace) -> None:
        from outlines_core import Vocabulary

        if not tokens.vocabulary.eos_ids:
            raise VocabularyError("outlines needs an end-of-text id, and the tokenizer names none")
        spelled: dict[bytes, list[int]] = {}
        for token, text in enumerate(tokens.vocabulary.tokens):
            if text is not None:
                spelled.setdefault(text, []).append(token)
        self._vocabulary = Vocabulary(tokens.vocabulary.eos_ids[0], spelled)
        self._buffer = np.zeros(tokens.n_words, np.uint32)

    def compile(self, schema: Any) -> _Compiled:
        from outlines_core import Index
        from outlines_core.json_schema import build_regex_from_schema

        return _Compiled(Index(build_regex_from_schema(json.dumps(schema)), self._vocabulary), self._buffer)


def open_engine(tokens: TokenSpace) -> _Engine:
    """The adapter."""
    return _Engine(tokens)
