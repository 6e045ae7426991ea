"""The next token and the mask after it for many constraints at once, in one call without the interpreter."""

from __future__ import annotations

import numpy as np

from guided.kernels.data.layout import FINISHED, FUEL, NEED
from guided.kernels.data.views import counters, rows, uint32_rows
from guided.kernels.entry import advance
from guided.kernels.jit import entry
from guided.kernels.masking.masks import fill

__all__ = ["step_rows"]


@entry("long_rows, word_rows, long")
def step_rows(jobs, out, fuel):
    """Go on by a token and write the mask of the state after it to ``out``, row by row, each with so much work at most.

    A line of ``jobs`` is one of ``int64[3, 3]``: the table of a constraint without a lexer of its own, the root of its
    tries, a state; a token or -1 for none, and in the places behind it what comes back: the state after, or -1 where
    the kernels asked for something and all is to be done again, and the `NEED` of its mask; where the row of
    end-of-text ids is, 1, its words.  Where no token may come, the state after is `DEAD` and there is no mask.
    """
    for i in range(jobs.shape[0]):
        t = jobs[i, 0]
        counts = counters(t)
        # What is more than a moment's work is for a thread that nobody waits for.
        spared = max(counts[FUEL] - fuel, np.int64(0))
        counts[FUEL] -= spared
        after = jobs[i, 2] if jobs[i, 3] < 0 else advance(t, False, False, jobs[i, 2], jobs[i, 3])
        code = np.int64(0)
        if after > FINISHED:
            code = fill(t, jobs[i, 1], after, np.int64(-1))
        counts[FUEL] += spared
        jobs[i, 4] = after if code >= 0 else np.int64(-1)
        jobs[i, 5] = counts[NEED]
        if code < 0 or after <= FINISHED:
            continue
        row = rows(t)[0]
        for j in range(row.shape[0]):
            out[i, j] = row[j]
        if code & 1:
            ends = uint32_rows(jobs, 3 * i + 2)[0]
            for j in range(ends.shape[0]):
                out[i, j] |= ends[j]
