"""Mask rows as contents: a fingerprint by which equal ones are found, and the comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from guided.kernels.jit import JUST_IN_TIME, entry, inner, intrinsic

if JUST_IN_TIME:
    from llvmlite import ir
    from numba import types
    from numba.np.arrayobj import make_array

__all__ = ["LINE", "add_token", "add_tokens", "filled_words", "fingerprint", "remove_tokens", "same"]

LINE = 16
"""Words of a row that are looked at together: a line of the cache."""


@intrinsic
def filled_words(typing_context: Any, row: Any, first: Any) -> Any:
    """Which of the `LINE` words of a row from ``first`` on are not 0, as bits, the lowest for the first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        line = ir.VectorType(ir.IntType(32), LINE)
        data = builder.gep(make_array(signature.args[0])(context, builder, arguments[0]).data, [arguments[1]])
        words = builder.load(builder.bitcast(data, line.as_pointer()), align=4)
        filled = builder.icmp_unsigned("!=", words, ir.Constant(line, [0] * LINE))
        return builder.zext(builder.bitcast(filled, ir.IntType(LINE)), ir.IntType(32))

    return types.uint32(row, types.intp), generate


@inner
def add_token(row, token):
    """Set the bit of a token."""
    row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@inner
def add_tokens(tokens, row, begin, stop):
    """Set the bits of the tokens of the nodes from ``begin`` to ``stop``."""
    for i in range(tokens.token_offset[begin], tokens.token_offset[stop]):
        add_token(row, tokens.token_ids[i])


@inner
def remove_tokens(tokens, row, begin, stop):
    """Clear them."""
    for i in range(tokens.token_offset[begin], tokens.token_offset[stop]):
        token = tokens.token_ids[i]
        row[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))


@entry("words, words")
def fingerprint(row, weights):
    """The sum of the words, each by its weight (``uint32``), in 61 bits."""
    found = np.uint64(0)
    for i in range(row.shape[0]):
        found += np.uint64(row[i]) * np.uint64(weights[i])
    return np.int64(found >> np.uint64(3))


@entry("words, words")
def same(row, other):
    """Do two rows of equal length hold the same words?  Without a way out in between, which would be slower."""
    differing = np.uint32(0)
    for i in range(row.shape[0]):
        differing |= row[i] ^ other[i]
    return differing == 0
