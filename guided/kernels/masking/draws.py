"""The next token of every row of a batch by its scores, mask, temperature and chance, in one call.

A mask of a few tokens costs what these cost: operations on whole tensors take exponentials of what is forbidden, too.
"""

from __future__ import annotations

import math

import numpy as np

from guided.kernels.data.floats import exponential
from guided.kernels.data.views import uint32_rows
from guided.kernels.jit import entry, inner

__all__ = ["draw_rows"]

_NONE = -np.inf

_RUN = 64
"""Weights that are summed together: where a chance falls, only its run is gone through one by one."""


@inner
def _greatest(values, n):
    """The greatest of the first numbers; of NaN any."""
    m0 = m1 = m2 = m3 = _NONE
    for i in range(0, n - 3, 4):
        m0 = values[i] if values[i] > m0 else m0
        m1 = values[i + 1] if values[i + 1] > m1 else m1
        m2 = values[i + 2] if values[i + 2] > m2 else m2
        m3 = values[i + 3] if values[i + 3] > m3 else m3
    for i in range(n - n % 4, n):
        m0 = values[i] if values[i] > m0 else m0
    return max(max(m0, m1), max(m2, m3))


@inner
def _sum(values, low, high):
    """The sum of the numbers from one place to another."""
    s0 = s1 = s2 = s3 = 0.0
    stop = high - (high - low) % 4
    for i in range(low, stop, 4):
        s0, s1, s2, s3 = s0 + values[i], s1 + values[i + 1], s2 + values[i + 2], s3 + values[i + 3]
    for i in range(stop, high):
        s0 += values[i]
    return (s0 + s1) + (s2 + s3)


@inner
def _exponentials(values, n, top, temperature, weights):
    """Write ``exp((value - top) / temperature)`` of the first values to ``weights``; their sum, run by run."""
    if temperature == 1.0:
        for i in range(n):
            weights[i] = exponential(values[i] - top)
    else:
        for i in range(n):
            weights[i] = exponential((values[i] - top) / temperature)
    total = 0.0
    for low in range(0, n, _RUN):
        total += _sum(weights, low, min(low + _RUN, n))
    return total


@inner
def _norm(total, top):
    """The logarithm of what scores come to, by the sum of ``exp(value - top)``; ``top`` where that is none."""
    return top if top == _NONE else math.log(total) + top


@inner
def _allowed(line, mask, width, values, places):
    """Write the numbers of a line whose bits a mask has, and their places; how many there are."""
    n = np.int64(0)
    for j in range(mask.shape[0]):
        word = mask[j]
        at = np.int64(32) * j
        while word and at < width:
            if word & np.uint32(1):
                values[n], places[n] = line[at], at
                n += 1
            word >>= np.uint32(1)
            at += 1
    return n


@inner
def _place(weights, n, wanted):
    """The first place up to which the weights come to more than was wanted, run by run; one with a weight."""
    before = 0.0
    last = np.int64(0)
    for low in range(0, n, _RUN):
        high = min(low + _RUN, n)
        run = _sum(weights, low, high)
        if run > 0.0 and before + run > wanted:
            for i in range(low, high):
                before += weights[i]
                if weights[i] > 0.0:
                    last = np.int64(i)
                    if before > wanted:
                        return last
            # Only rounding comes here: the sum one by one is not that of the run.
            return last
        if run > 0.0:
            for i in range(low, high):
                if weights[i] > 0.0:
                    last = np.int64(i)
        before += run
    return last


@entry(
    "const single_rows, long_rows, const double_rows, const longs, const longs, const doubles, double_rows, longs, "
    "double_rows",
    "const double_rows, long_rows, const double_rows, const longs, const longs, const doubles, double_rows, longs, "
    "double_rows",
)
def draw_rows(scores, masks, laws, shift_starts, shift_tokens, shift_amounts, room, places, found):
    """Draw a token of each row of ``scores``, and write what is known of it to ``found``, ``float64[n, 6]``.

    Line ``i`` of ``masks`` says where the row's mask is, 1, and its words; 0 words: all is allowed.  Line ``i`` of
    ``laws`` has a temperature, 0 for the greatest, and a number in [0, 1), inverted in the order of ids.  To the scores
    are added ``shift_amounts`` at ``shift_tokens``, row ``i``'s from ``shift_starts[i]`` on, before the mask.  ``room``
    is ``float64[3, width]``, ``places`` ``int64[width]``.

    Found are the token; the logarithm of its probability in the law drawn from, that under the mask at temperature 1
    where it is 0; the same in the scores' own law, without shifts; and what scores come to as logarithms: those that
    are allowed, all without shifts, all with them.  Where nothing can be drawn one of the first two is not finite.
    """
    width = scores.shape[1]
    line, values, weights = room[0], room[1], room[2]
    for i in range(scores.shape[0]):
        for k in range(width):
            line[k] = scores[i, k]
        top = _greatest(line, width)
        total = _exponentials(line, width, top, 1.0, weights)
        whole = _norm(total, top)
        shifted = shift_starts[i + 1] > shift_starts[i]
        for k in range(shift_starts[i], shift_starts[i + 1]):
            line[shift_tokens[k]] += shift_amounts[k]
        found[i, 3] = found[i, 4] = found[i, 5] = whole
        n = np.int64(width)
        chosen = line
        masked = masks[i, 2] > 0
        if masked:
            if shifted:
                top = _greatest(line, width)
                found[i, 5] = _norm(_exponentials(line, width, top, 1.0, weights), top)
            n = _allowed(line, uint32_rows(masks, i)[0], width, values, places)
            chosen = values
        top = _greatest(chosen, n)
        if not math.isfinite(whole) or top == _NONE:
            found[i, 3] = _NONE if math.isfinite(whole) else whole
            continue
        if masked or shifted:
            total = _exponentials(chosen, n, top, 1.0, weights)
            found[i, 3] = _norm(total, top)
        if not masked:
            found[i, 5] = found[i, 3]
        temperature = laws[i, 0]
        place = np.int64(0)
        if temperature > 0.0:
            if temperature != 1.0:  # Those of temperature 1 are there.
                total = _exponentials(chosen, n, top, temperature, weights)
            place = _place(weights, n, laws[i, 1] * total)
            found[i, 1] = (chosen[place] - top) / temperature - math.log(total)
        else:
            while chosen[place] != top:
                place += 1
            found[i, 1] = top - found[i, 3]
        token = places[place] if masked else place
        found[i, 0] = token
        found[i, 2] = scores[i, token] - whole
