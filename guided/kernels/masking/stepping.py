"""The next token of many constraints at once, and masks of many, each in one call without the interpreter.

Between the two Python looks up what it knows of the states after: most masks of a batch were made before.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data.layout import FUEL, NEED
from guided.kernels.data.views import counters, rows, uint32_rows
from guided.kernels.entry import advance
from guided.kernels.jit import entry
from guided.kernels.masking.masks import fill

__all__ = ["advance_rows", "fill_rows"]


@entry("long_rows, long")
def advance_rows(jobs, fuel):
    """Go on by a token, row by row, each with so much work at most.

    A line of ``jobs`` is the table of a constraint without a lexer of its own, whether it is marking, a state and a
    token; behind them comes what `guided.kernels.entry.advance` says, -1 where it asked for something and all is to be
    done again.
    """
    for i in range(jobs.shape[0]):
        t = jobs[i, 0]
        counts = counters(t)
        # What is more than a moment's work is for a thread that nobody waits for.
        spared = max(counts[FUEL] - fuel, np.int64(0))
        counts[FUEL] -= spared
        jobs[i, 4] = advance(t, False, jobs[i, 1] != 0, jobs[i, 2], jobs[i, 3])
        counts[FUEL] += spared


@entry("long_rows, word_rows, long")
def fill_rows(jobs, out, fuel):
    """Write the masks of states to ``out``, row by row, each with so much work at most.

    A line of ``jobs`` is one of ``int64[2, 3]``: a table as for `advance_rows`, the root of its tries, a state; where
    the row of end-of-text ids is, 1, its words.  In the place of the table comes what `fill` says, -1 as above, and in
    that of the root the `NEED` of the mask.
    """
    for i in range(jobs.shape[0]):
        t = jobs[i, 0]
        counts = counters(t)
        spared = max(counts[FUEL] - fuel, np.int64(0))
        counts[FUEL] -= spared
        code = fill(t, jobs[i, 1], jobs[i, 2], np.int64(-1))
        counts[FUEL] += spared
        jobs[i, 0], jobs[i, 1] = code, counts[NEED]
        if code < 0:
            continue
        row = rows(t)[0]
        for j in range(row.shape[0]):
            out[i, j] = row[j]
        if code & 1:
            ends = uint32_rows(jobs, 2 * i + 1)[0]
            for j in range(ends.shape[0]):
                out[i, j] |= ends[j]
