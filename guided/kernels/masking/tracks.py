"""Texts that go on by kernels alone, many at once: where each stands is a line of numbers, and Python sees none of it.

Most tokens of a JSON text tell a checker nothing: they go on inside a string, or are between names.  For these Python
would look up its own objects, of which each is a wait for memory behind a pass of a model: 27 us a token, and 5 here.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from guided.kernels.data.layout import FUEL
from guided.kernels.data.views import counters, flat_at, token_data, token_offsets
from guided.kernels.entry import advance
from guided.kernels.jit import entry, inner
from guided.kernels.masking.stepping import is_in_string, write_mask
from guided.kernels.parsing.marks import INSIDE as MARKED

__all__ = [
    "ARRAYS", "CHANGED", "CHARACTERS", "DEPTH", "ENDS", "FIELDS", "LONE", "LOOPS", "MODE", "MORE", "MOST", "MOST_DEPTH",
    "NAMES", "NONE", "NOTHING", "N_TOKENS", "ONE", "OWN", "PLACES", "QUOTES", "ROOT", "TABLE", "TOKEN", "UNKNOWN",
    "WORDS", "Left", "Mode", "copy_changed", "go_on", "stay",
]  # fmt: skip

TOKEN, MODE, OWN, LOOPS, DEPTH, ARRAYS, NAMES, N_TOKENS = range(8)
"""The token to go on by, `NOTHING` where there is none and the mask is known, `UNKNOWN` where it is not; the `Mode`;
the automaton's state; whether it is in a string that takes any characters, -1: not known.  Of the containers that are
remembered how many are open within the outermost; a bit for each that is an array, the lowest for the innermost; a bit
where a string would be a name.  How many tokens came since Python knew the text."""

TABLE, ROOT, PLACES, ENDS, WORDS, CHARACTERS, QUOTES, CHANGED = range(8, 16)
"""As for `guided.kernels.masking.stepping.step_rows`: the table, the root of the tries, the lexer states of a string,
where the row of end-of-text ids is, its words.  Where there is a byte for each token, 1 for whole characters; and one
that tells of its quotation marks, `NONE`, `ONE`, `MORE` or `LONE`.  And whether the mask has changed since it was
copied."""

NONE, ONE, MORE, LONE = range(4)
"""Quotation marks of a token: none, one beside backslashes, more, or one without a backslash."""

FIELDS = 16
"""Numbers of a line: two lines of the cache."""

NOTHING, UNKNOWN = -1, -2

MOST = 64
"""Tokens that are kept for Python."""

MOST_DEPTH = 60
"""Containers that are remembered, each a bit."""


class Mode(IntEnum):
    """What is remembered of a text, and so which tokens it can go on by here."""

    OUTSIDE = 0
    """Python alone knows."""
    FREE = 1
    """There is no checker: any."""
    IDLE = 2
    """Nothing: those with one quotation mark at most."""
    BETWEEN = 3
    """Open containers, between their strings: those that begin no name."""
    STRING = 4
    """The same, within a string that does not matter."""
    ESCAPE = 5
    """The same, just behind a backslash."""
    NAME = 6
    """A name, or a string that does not matter: characters."""
    INSIDE = 7
    """The same, where the automaton does not tell the mask: characters that leave its state as it is."""


class Left(IntEnum):
    """What `go_on` leaves to Python."""

    STEP = 0
    MASK = 1


OUTSIDE, FREE, IDLE, BETWEEN, STRING, ESCAPE, NAME, INSIDE = (int(mode) for mode in Mode)
_STEP, _MASK = (int(left) for left in Left)

_QUOTE, _BACKSLASH, _COMMA = 0x22, 0x5C, 0x2C
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = 0x5B, 0x5D, 0x7B, 0x7D


@inner
def _keep(line, tokens):
    """Take the token of a line as read."""
    tokens[line[N_TOKENS]] = line[TOKEN]
    line[N_TOKENS] += 1
    line[TOKEN] = NOTHING


@inner
def _leaves_mask(line):
    """Does a line's token leave the mask as it is, as characters of a string?"""
    if line[LOOPS] != 1 or line[MODE] == BETWEEN or line[MODE] == OUTSIDE or line[N_TOKENS] >= MOST:
        return False
    token = line[TOKEN]
    return flat_at(token_data(line[TABLE]), line[CHARACTERS], token + 1)[token] != 0


@entry("long_rows, longs, long_rows, long_rows")
def stay(lines, order, tokens, left):
    """Take the tokens of lines ``order[i]`` that leave their masks as they are; how many others there are.

    ``left[j, 0]`` says which: those have another token, or no mask.  ``tokens[line]`` is kept for Python.
    """
    n = 0
    for i in range(order.shape[0]):
        at = order[i]
        line = lines[at]
        if at == 0 or line[TOKEN] == NOTHING:
            continue
        if line[TOKEN] >= 0 and _leaves_mask(line):
            _keep(line, tokens[at])
            continue
        left[n, 0] = at
        left[n, 1] = 0
        n += 1
    return n


@inner
def _skim(line, data, begin, end):
    """Read a token in open containers whose values do not matter: the mode behind it, how many containers are open,
    their bits; `OUTSIDE` where a name begins.  As `guided.constraint.distinct.json_text.Reader.skimmed`.
    """
    mode, depth, arrays, names = line[MODE], line[DEPTH], line[ARRAYS], line[NAMES]
    for i in range(begin, end):
        byte = data[i]
        if mode == IDLE:
            if byte == _QUOTE:
                mode = np.int64(OUTSIDE)
                break
        elif mode == ESCAPE:
            mode = np.int64(STRING)
        elif mode == STRING:
            if byte == _BACKSLASH:
                mode = np.int64(ESCAPE)
            elif byte == _QUOTE:
                mode = np.int64(BETWEEN)
                names &= ~np.int64(1)
        elif byte == _QUOTE:
            if names & 1:
                mode = np.int64(OUTSIDE)
                break
            mode = np.int64(STRING)
        elif byte == _COMMA:
            names |= ~arrays & 1
        elif byte in (_OPEN_ARRAY, _OPEN_OBJECT):
            if depth >= MOST_DEPTH:
                mode = np.int64(OUTSIDE)
                break
            is_array = np.int64(byte == _OPEN_ARRAY)
            depth, arrays, names = depth + 1, arrays << 1 | is_array, names << 1 | 1 - is_array
        elif byte in (_CLOSE_ARRAY, _CLOSE_OBJECT):
            if depth == 0:
                mode = np.int64(IDLE)
            else:
                depth, arrays, names = depth - 1, arrays >> 1, names >> 1
    return mode, depth, arrays, names


@entry("long_rows, long_rows, long, long_rows, word_rows, long, long")
def go_on(lines, left, n, tokens, masks, fuel, mask_fuel):
    """Go on in the lines ``left[:n, 0]`` and write their masks, each with so much work at most; how many are left.

    Only lines with ``left[i, 1]`` not 0, whose locks are held and tables fresh.  What is left comes to the front of
    ``left``, with what is left to do.
    """
    rest = 0
    for i in range(n):
        at = left[i, 0]
        line = lines[at]
        token, mode, t = line[TOKEN], line[MODE], line[TABLE]
        todo = _STEP
        if left[i, 1] and token >= 0 and mode != OUTSIDE and line[N_TOKENS] < MOST:
            if line[LOOPS] < 0:
                line[LOOPS] = np.int64(is_in_string(t, line[OWN], line[PLACES]))
            if _leaves_mask(line):
                _keep(line, tokens[at])
                continue
            offsets = token_offsets(t)
            depth, arrays, names = line[DEPTH], line[ARRAYS], line[NAMES]
            quotes = np.uint8(NONE)
            if mode == IDLE:
                quotes = flat_at(token_data(t), line[QUOTES], token + 1)[token]
                if quotes == MORE:
                    mode = np.int64(OUTSIDE)
            elif mode == NAME:
                if not flat_at(token_data(t), line[CHARACTERS], token + 1)[token]:
                    mode = np.int64(OUTSIDE)
            elif mode == INSIDE:
                mode = np.int64(OUTSIDE)
            elif mode != FREE:
                mode, depth, arrays, names = _skim(line, token_data(t), offsets[token], offsets[token + 1])
            if mode != OUTSIDE:
                counts = counters(t)
                spared = max(counts[FUEL] - fuel, np.int64(0))
                counts[FUEL] -= spared
                found = advance(t, False, quotes != NONE, line[OWN], token)
                counts[FUEL] += spared
                if quotes != NONE and found > 0:
                    # One quotation mark: a name that begins has not ended.
                    if found & MARKED:
                        mode = np.int64(NAME if quotes == LONE else OUTSIDE)
                    found >>= 2
                if found > 0 and mode != OUTSIDE:
                    _keep(line, tokens[at])
                    line[MODE], line[OWN], line[DEPTH], line[ARRAYS], line[NAMES] = mode, found, depth, arrays, names
                    line[LOOPS] = np.int64(is_in_string(t, found, line[PLACES]))
                    line[CHANGED] = 1
                    ends = flat_at(masks, line[ENDS], line[WORDS])
                    if write_mask(t, line[ROOT], found, mask_fuel, ends, masks[at]) >= 0:
                        continue
                    line[TOKEN] = UNKNOWN
                    todo = _MASK
        left[rest, 0], left[rest, 1] = at, todo
        rest += 1
    return rest


@entry("long_rows, longs, word_rows, word_rows, flag")
def copy_changed(lines, order, masks, out, whole):
    """Copy the masks of lines ``order[i]`` to rows ``i`` of ``out``: those that have changed, or all."""
    for i in range(order.shape[0]):
        at = order[i]
        if whole or lines[at, CHANGED]:
            lines[at, CHANGED] = 0
            row, target = masks[at], out[i]
            for j in range(target.shape[0]):
                target[j] = row[j]
