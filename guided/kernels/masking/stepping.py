"""The next token of many constraints at once with the mask after it, and masks of many, each in one call.

Between the two Python looks up what it knows of the states after: many masks were made before.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data.layout import FUEL, NEED
from guided.kernels.data.views import counters, machine, rows, uint32_rows
from guided.kernels.entry import advance
from guided.kernels.jit import entry, inner
from guided.kernels.masking.masks import fill

__all__ = ["LINES", "fill_rows", "is_in_string", "step_rows", "write_mask"]

LINES = 4
"""Lines of three numbers that a row of `step_rows` has."""

_MASK32 = 0xFFFFFFFF


@inner
def write_mask(t, root, state, fuel, ends, out):
    """Write the mask of a state to a row, with so much work at most; what `fill` says."""
    counts = counters(t)
    spared = max(counts[FUEL] - fuel, np.int64(0))
    counts[FUEL] -= spared
    code = fill(t, root, state, np.int64(-1))
    counts[FUEL] += spared
    if code >= 0:
        row = rows(t)[0]
        for j in range(row.shape[0]):
            out[j] = row[j]
        if code & 1:
            for j in range(ends.shape[0]):
                out[j] |= ends[j]
    return code


@inner
def is_in_string(t, state, places):
    """Are all threads of a state in one of two lexer states (the one ``<< 32``, and the other), and owe nothing?"""
    tables = machine(t)
    for i in range(tables.state_offset[state], tables.state_offset[state + 1]):
        place = np.int64(tables.thread_state[i])
        if (place != places >> 32 and place != places & _MASK32) or tables.thread_obligation[i]:
            return False
    return True


@entry("long_rows, long, long")
def step_rows(jobs, fuel, mask_fuel):
    """Go on by a token and write the mask of the state after it, row by row, each with so much work at most.

    A row has `LINES` lines: the table of a constraint without a lexer of its own, whether it is marking, a state; a
    token, the root of the tries or 0 where no mask is wanted, the two lexer states of a string that takes any
    characters; where the row of end-of-text ids is, 1, its words; and where the mask is to be, 1, its words.

    In the second line come what `guided.kernels.entry.advance` says, -1 where it asked for something and all is to be
    done again; what `fill` says, -1 also where there is no mask; and whether the state after is in such a string.
    """
    for i in range(jobs.shape[0] // LINES):
        line = LINES * i
        t, marking = jobs[line, 0], jobs[line, 1] != 0
        root, places = jobs[line + 1, 1], jobs[line + 1, 2]
        counts = counters(t)
        # What is more than a moment's work is for a thread that nobody waits for.
        spared = max(counts[FUEL] - fuel, np.int64(0))
        counts[FUEL] -= spared
        found = advance(t, False, marking, jobs[line, 2], jobs[line + 1, 0])
        counts[FUEL] += spared
        jobs[line + 1, 0], jobs[line + 1, 1], jobs[line + 1, 2] = found, np.int64(-1), np.int64(0)
        state = found >> 2 if marking else found
        if found > 0:
            jobs[line + 1, 2] = np.int64(is_in_string(t, state, places))
            if root:
                ends, out = uint32_rows(jobs, line + 2)[0], uint32_rows(jobs, line + 3)[0]
                jobs[line + 1, 1] = write_mask(t, root, state, mask_fuel, ends, out)


@entry("long_rows, word_rows, long")
def fill_rows(jobs, out, fuel):
    """Write the masks of states to ``out``, row by row, each with so much work at most.

    A line of ``jobs`` is one of ``int64[2, 3]``: a table as for `step_rows`, the root of its tries, a state; where
    the row of end-of-text ids is, 1, its words.  In the place of the table comes what `fill` says, -1 as above, and in
    that of the root the `NEED` of the mask.
    """
    for i in range(jobs.shape[0]):
        t = jobs[i, 0]
        code = write_mask(t, jobs[i, 1], jobs[i, 2], fuel, uint32_rows(jobs, 2 * i + 1)[0], out[i])
        jobs[i, 0], jobs[i, 1] = code, counters(t)[NEED]
