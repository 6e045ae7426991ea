"""Kernels over the logarithms of one distribution, by runs of tokens, and over pairs of what was made of them.

Runs lie one after the other, in ``tokens`` or in the places of pairs.  Run ``i`` begins at ``starts[i]`` and ends where
the next begins.
"""

from __future__ import annotations

import math

import numpy as np

from guided.kernels.data.floats import exponential
from guided.kernels.data.local_arrays import local_doubles
from guided.kernels.jit import entry

__all__ = ["product_sums", "run_masses", "spread", "sum_maxima"]

_AT_ONCE = 512
"""Tokens of a round: 4 KB, which stay in the nearest cache between reading them and their exponentials."""

_NONE = -np.inf


@entry(
    "const singles, const longs, const longs, doubles, doubles",
    "const doubles, const longs, const longs, doubles, doubles",
)
def run_masses(row, tokens, starts, masses, greatest):
    """Of each run the logarithm of the sum of the exponentials of ``row`` at its tokens, and the greatest of ``row``.

    A run of -inf alone has both -inf.  One with +inf or NaN has the mass NaN; its greatest is any.  Cost: 2.5 ns for
    each token.
    """
    values = local_doubles(_AT_ONCE)
    for run in range(starts.size):
        at = starts[run]
        end = starts[run + 1] if run + 1 < starts.size else tokens.size
        top = _NONE
        # Eight sums, or each addition would wait for the one before.
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        while at < end:
            n = min(np.int64(_AT_ONCE), end - at)
            for i in range(n):
                values[i] = row[tokens[at + i]]
            n_eights = (n + 7) // 8
            for i in range(n, 8 * n_eights):
                values[i] = _NONE
            m0 = m1 = m2 = m3 = _NONE
            for i in range(0, 8 * n_eights, 4):
                m0 = values[i] if values[i] > m0 else m0
                m1 = values[i + 1] if values[i + 1] > m1 else m1
                m2 = values[i + 2] if values[i + 2] > m2 else m2
                m3 = values[i + 3] if values[i + 3] > m3 else m3
            m0 = m1 if m1 > m0 else m0
            m2 = m3 if m3 > m2 else m2
            m0 = m2 if m2 > m0 else m0
            if m0 > top:
                shrunk = math.exp(top - m0)
                s0, s1, s2, s3 = shrunk * s0, shrunk * s1, shrunk * s2, shrunk * s3
                s4, s5, s6, s7 = shrunk * s4, shrunk * s5, shrunk * s6, shrunk * s7
                top = m0
            # Beside 0 where there is no greatest: of -inf alone the sum is 0, and NaN is to be found.
            around = top if top > _NONE else 0.0
            for i in range(8 * n_eights):
                values[i] = exponential(values[i] - around)
            for i in range(0, 8 * n_eights, 8):
                s0, s1, s2, s3 = s0 + values[i], s1 + values[i + 1], s2 + values[i + 2], s3 + values[i + 3]
                s4, s5, s6, s7 = s4 + values[i + 4], s5 + values[i + 5], s6 + values[i + 6], s7 + values[i + 7]
            at += n
        total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
        masses[run] = _NONE if total == 0.0 else math.log(total) + (top if top > _NONE else 0.0)
        greatest[run] = top


@entry(
    "const singles, const longs, const longs, const doubles, doubles",
    "const doubles, const longs, const longs, const doubles, doubles",
)
def spread(row, tokens, starts, weights, onto):
    """Add to ``onto[t]``, for each token of each run, the exponential of ``row[t]`` plus the run's weight.

    Cost: 3 ns a token.
    """
    values = local_doubles(_AT_ONCE)
    for run in range(starts.size):
        at = starts[run]
        end = starts[run + 1] if run + 1 < starts.size else tokens.size
        weight = weights[run]
        if weight == _NONE:
            continue
        while at < end:
            n = min(np.int64(_AT_ONCE), end - at)
            for i in range(n):
                values[i] = row[tokens[at + i]] + weight
            for i in range(n):
                values[i] = exponential(values[i])
            for i in range(n):
                onto[tokens[at + i]] += values[i]
            at += n


@entry("const doubles, const longs, const doubles, const longs, const longs, doubles")
def product_sums(one, at_one, other, at_other, starts, sums):
    """Of each run of pairs the sum of ``one[at_one] * other[at_other]``."""
    for run in range(starts.size):
        at = starts[run]
        end = starts[run + 1] if run + 1 < starts.size else at_one.size
        s0 = s1 = 0.0
        for i in range(at, end - 1, 2):
            s0 += one[at_one[i]] * other[at_other[i]]
            s1 += one[at_one[i + 1]] * other[at_other[i + 1]]
        if (end - at) & 1:
            s0 += one[at_one[end - 1]] * other[at_other[end - 1]]
        sums[run] = s0 + s1


@entry("const doubles, const longs, const doubles, const longs, const longs, doubles")
def sum_maxima(one, at_one, other, at_other, starts, greatest):
    """Of each run of pairs the greatest ``one[at_one] + other[at_other]``; NaN is never greatest."""
    for run in range(starts.size):
        at = starts[run]
        end = starts[run + 1] if run + 1 < starts.size else at_one.size
        m0 = m1 = _NONE
        for i in range(at, end - 1, 2):
            value = one[at_one[i]] + other[at_other[i]]
            m0 = value if value > m0 else m0
            value = one[at_one[i + 1]] + other[at_other[i + 1]]
            m1 = value if value > m1 else m1
        if (end - at) & 1:
            value = one[at_one[end - 1]] + other[at_other[end - 1]]
            m0 = value if value > m0 else m0
        greatest[run] = m0 if m0 > m1 else m1
