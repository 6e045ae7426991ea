"""Packed masks in bulk: rows copied from many places at once, and rows applied to scores in one pass.

Scores are seen as integers of their width (``int16`` serves float16 and bfloat16): what is written is one bit pattern,
that of minus infinity, and nothing is computed with the numbers.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data.views import flat_at, uint32_rows
from guided.kernels.jit import JUST_IN_TIME, entry, intrinsic

if JUST_IN_TIME:
    from numba import types

__all__ = ["apply_rows", "copy_rows"]

_ALL = np.uint32(0xFFFFFFFF)

_FEW = 5
"""Forbidden tokens of one word that are written one by one; from then on, selecting all 32 is quicker (measured)."""


@intrinsic
def _lowest(typing_context, word):  # type: ignore[no-untyped-def]
    """The number of the lowest bit that is set, of a ``uint32`` that is not 0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.uint32(types.uint32), generate


@entry("long_rows, word_rows")
def copy_rows(rows, out):
    """Copy the row at address ``rows[i, 0]``, ``rows[i, 2]`` words long, to row ``i`` of ``out``; 0 copies nothing."""
    for i in range(rows.shape[0]):
        if rows[i, 0]:
            row = uint32_rows(rows, i)[0]
            for j in range(row.shape[0]):
                out[i, j] = row[j]


@entry(
    "long, long, long, long, long_rows, long, long, long, int, int_rows",
    "long, long, long, long, long_rows, long, long, long, long, long_rows",
    "long, long, long, long, long_rows, long, long, long, short, short_rows",
)
def apply_rows(source, target, source_stride, target_stride, masks, width, low, high, forbidden, drops):
    """Write scores ``low..high`` (rows) of ``source`` to ``target``, ``forbidden`` where the mask's bit is 0.

    ``source`` and ``target`` are addresses: as arrays, a tensor's numbers would cost a step 20 us, in no cache.  Row
    ``i`` begins ``i`` times the stride in bytes behind.  Where both are one, words that forbid nothing are not touched.
    Line ``i`` of ``masks`` says where a mask is, 1, and its words.  Scores beyond the mask are forbidden.
    ``drops[256, 8]`` has all ones for each 0 of a byte and 0 for each 1, in the integers of the scores.
    """
    in_place = source == target
    for i in range(low, high):
        mask = uint32_rows(masks, i)[0]
        target_row = flat_at(drops, target + i * target_stride, width)
        source_row = flat_at(drops, source + i * source_stride, width)
        words = mask.shape[0]
        whole = np.uint64(min(words, width >> 5))
        j = np.uint64(0)
        while j < whole:
            word = mask[j]
            at = np.uint64(32) * j
            if word == 0:
                # Long runs, as a rule: writing them at once takes a third of the time of word after word.
                while j < whole and mask[j] == 0:
                    j += np.uint64(1)
                target_row[at : np.uint64(32) * j] = forbidden
                continue
            j += np.uint64(1)
            if word & (word - np.uint32(1)) == 0:
                k = np.uint64(_lowest(word))
                value = source_row[at + k]
                for n in range(np.uint64(32)):
                    target_row[at + n] = forbidden
                target_row[at + k] = value
                continue
            if not in_place:
                for k in range(np.uint64(32)):
                    target_row[at + k] = source_row[at + k]
            if word == _ALL:
                continue
            zeros = ~word
            few = zeros
            for _ in range(_FEW):
                few &= few - np.uint32(1)
            if few == 0:
                while zeros:
                    target_row[at + np.uint64(_lowest(zeros))] = forbidden
                    zeros &= zeros - np.uint32(1)
            else:
                for quarter in range(np.uint64(4)):
                    byte = np.uint64((word >> np.uint32(8 * quarter)) & np.uint32(255))
                    begin = at + np.uint64(8) * quarter
                    for k in range(np.uint64(8)):
                        value = target_row[begin + k]
                        target_row[begin + k] = value ^ ((value ^ forbidden) & drops[byte, k])
        for k in range(np.uint64(32 * whole), np.uint64(width)):
            word = mask[k >> np.uint64(5)] if k >> np.uint64(5) < np.uint64(words) else np.uint32(0)
            if (word >> np.uint32(k & np.uint64(31))) & np.uint32(1) == 0:
                target_row[k] = forbidden
            elif not in_place:
                target_row[k] = source_row[k]
