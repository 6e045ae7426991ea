"""The lexer states of numbers between bounds: which states there are, and which of them come to an end.

What is asked for is in `guided.automata.lexer.numbers`. A state is what was read of a number: where in it the text is,
how its digits so far compare with as many of each bound's, and, while an exponent may still come, with those that the
bound begins with in scientific notation.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import FAR
from guided.kernels.data.local_arrays import local_long_rows, local_longs
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.determinise import EDGES, STATES, add_edge

__all__ = [
    "CLOSED", "FROM_ZERO", "HIGH_OPEN", "LOW_OPEN", "MOST_EDGES", "MOST_FOUND", "PLAIN", "SYMBOLS", "USUAL",
    "WHOLE", "write_number",
]  # fmt: skip

WHOLE, PLAIN, FROM_ZERO, LOW_OPEN, HIGH_OPEN, CLOSED, USUAL = 1, 2, 4, 8, 16, 32, 64
"""Of a description: whole numbers, no fraction, no lower bound, and which bounds are not in the range; none is in it at
all; with those exponents alone with which programs write doubles."""

_FIRST_LARGE, _LAST_LARGE, _FIRST_SMALL, _LAST_SMALL = 16, 308, 5, 324
"""These exponents, as in `guided.grammar.json_schema.number_text`."""
_MOST_DIGITS = 3
"""Digits that they have."""

MOST_FOUND = 480
"""States of one sign of a number; bounds of 19 digits before the point and 17 behind it have some 200."""

SYMBOLS = b"\0+-.0123456789Ee"
"""What numbers are written with, and before it a sign for their end.

Kernels get it with the description: loops of a known length are written out, and compiling takes three times as long.
"""

MOST_EDGES = MOST_FOUND * len(SYMBOLS)

_HEAD = 9
_SYMBOLS = len(SYMBOLS)
_DIGITS = _HEAD + _SYMBOLS
"""Where the digits of bounds begin in a description."""

_START, _ZERO, _WHOLE, _POINT, _FRACTION, _E, _SIGN, _ZEROS, _EXPONENT = range(9)

_FREE = 2
"""How digits compare with a bound, besides -1, 0 and 1: nothing depends on it any more."""

_NO, _ONE_DIGIT, _NOTHING = 0, 1, 2
"""May an exponent come, as the digits so far are: not, one before the point that is not 0, or none but zeros."""

_FAR = 255
"""A place behind the digits of all bounds."""

_NONE, _ENDS, _TO_DIGITS, _TO_ZEROS, _TO_MINUS = -1, -2, -3, -4, -5
"""No state, the end, any digits for ever, zeros for ever, what stands behind the minus sign."""

_ANY_EXPONENT = 4
"""The sort of exponents that may be any number; of others the bits 1 and 2 say that the digits before it are not below
those of the lower bound, and not above those of the upper."""


@inner
def _against(relation, digit, said, begin, n, at):
    """How digits compare with those of a bound after one more, the one at place ``at`` of ``n``; zeros follow these."""
    if relation != 0:
        return relation
    other = said[begin + at] - 48 if at < n else np.int64(0)
    return np.int64(digit > other) - np.int64(digit < other)


@inner
def _digit_of(number, at):
    """The digit of a number at a place from the left; -1 where there is none."""
    n = np.int64(1)
    rest = number
    while rest >= 10:
        rest //= 10
        n += 1
    if at >= n:
        return np.int64(-1)
    for _ in range(n - 1 - at):
        number //= 10
    return number % 10


@inner
def _step_behind_e(said, state, symbol):
    """As `_step`, for states behind the e.  Leading zeros of the exponent count as nothing."""
    place, at = state >> 28, state >> 20 & 255
    low, high = (state >> 16 & 15) - 1, (state >> 12 & 15) - 1
    sort, sign = state >> 4 & 15, state & 15
    none, nil = np.int64(_NONE), np.int64(0)
    usual = said[0] & USUAL != 0
    if 0 < symbol < 48:
        if place != _E or symbol == 46:
            return none
        return _SIGN << 28 | sort << 4 | np.int64(symbol == 45)
    # The least and the most that it may be without its sign; -1: there is no bound.
    least, most = nil, np.int64(-1)
    if sort != _ANY_EXPONENT:
        first, last = said[7] + 1 - (sort & 1), said[8] - 1 + (sort >> 1)
        if sign == 0:
            if said[6] > 0:
                if last < 0:
                    return none
                most = last
            least = max(first, nil) if said[5] > 0 else nil
        else:
            if said[5] > 0:
                if first > 0:
                    return none
                most = -first
            least = max(-last, nil) if said[6] > 0 else nil
    if usual:
        first_usual, last_usual = (_FIRST_SMALL, _LAST_SMALL) if sign else (_FIRST_LARGE, _LAST_LARGE)
        least = max(least, np.int64(first_usual))
        most = np.int64(last_usual) if most < 0 else min(most, np.int64(last_usual))
        if least > most:
            return none
    below, above = _digit_of(least, at), _digit_of(max(most, nil), at)
    if symbol == 0:
        ends = place == _ZEROS and least == 0
        if place == _EXPONENT:
            ends = (low == _FREE or (below < 0 and low >= 0)) and (high == _FREE or above >= 0 or high <= 0)
        return np.int64(_ENDS) if ends else none
    if symbol > 57:
        return none
    digit = symbol - 48
    if place != _EXPONENT:
        if digit == 0:
            if usual and (place == _ZEROS or sign == 0 or least > 9):
                return none
            return np.int64(_TO_DIGITS) if least == 0 and most < 0 else _ZEROS << 28 | sort << 4 | sign
        if usual and place == _ZEROS:
            # One digit behind the zero, and no more: as behind all that the last exponent may have.
            if digit < least or digit > most:
                return none
            return _EXPONENT << 28 | _MOST_DIGITS << 20 | _FREE + 1 << 16 | 1 << 12 | sort << 4 | sign
        low, high = np.int64(_FREE if least == 0 else 0), np.int64(_FREE if most < 0 else 0)
    if high != _FREE:
        if above < 0 or most == 0:
            return none
        if high == 0:
            high = np.int64(digit > above) - np.int64(digit < above)
    if low != _FREE:
        if below < 0:
            low = np.int64(_FREE)
        elif low == 0:
            low = np.int64(digit > below) - np.int64(digit < below)
    if low == _FREE and high == _FREE:
        return np.int64(_TO_DIGITS)
    return _EXPONENT << 28 | at + 1 << 20 | low + 1 << 16 | high + 1 << 12 | sort << 4 | sign


@inner
def _step(said, state, symbol):
    """The state behind a symbol, or less than 0."""
    flags, n_least, n_below, n_most, n_above = said[0], said[1], said[2], said[3], said[4]
    n_first, n_last = said[5], said[6]
    least = np.int64(_DIGITS)
    below = least + n_least
    most = below + n_below
    above = most + n_most
    first_digits = above + n_above
    last_digits = first_digits + n_first
    place, at = state >> 28, state >> 20 & 255
    low, high, kind = (state >> 16 & 15) - 1, (state >> 12 & 15) - 1, state >> 8 & 15
    first, second = (state >> 4 & 15) - 1, (state & 15) - 1
    digit = symbol - 48
    nil, none, free = np.int64(0), np.int64(_NONE), np.int64(_FREE)
    if symbol == 45:
        return np.int64(_TO_MINUS) if place == _START else none
    if flags & CLOSED:
        return none
    if 0 <= digit <= 9:
        if place == _ZERO:
            return none
        if place == _POINT:
            return np.int64(_TO_ZEROS) if digit == 0 else none
        if place <= _WHOLE:
            if place == _START:
                if digit == 0:
                    return np.int64(_ZERO << 28)
                low, high = free if flags & FROM_ZERO else nil, nil if n_most > 0 else free
            if at == n_most and high != _FREE:
                return none
            if low != _FREE:
                low = free if at >= n_least else _against(low, digit, said, least, n_least, at)
            high = _against(high, digit, said, most, n_most, at)
            at += 1
            kind = nil
            if place == _START and (n_last > 0 or n_most == 0) and not flags & (WHOLE | PLAIN):
                kind = np.int64(_ONE_DIGIT)
                first = _against(nil, digit, said, first_digits, n_first, nil)
                second = _against(nil, digit, said, last_digits, n_last, nil)
            else:
                first = second = nil
                at = np.int64(_FAR) if low == _FREE and high == _FREE else at
            place = np.int64(_WHOLE)
        else:
            if low == 0:
                low = _against(nil, digit, said, below, n_below, at)
                low = free if low > 0 else low
            if high == 0:
                high = _against(nil, digit, said, above, n_above, at)
                high = free if high < 0 else -high
            if low < 0 or high < 0:
                low = high = none
            at += 1
            if kind == _ONE_DIGIT:
                first = _against(first, digit, said, first_digits, n_first, at)
                second = _against(second, digit, said, last_digits, n_last, at)
            elif digit != 0:
                kind = nil
            if kind == _NO:
                if low < 0:
                    return none
                if low == _FREE and high == _FREE:
                    return np.int64(_TO_DIGITS)
            size = max(max(n_below, n_above), max(max(n_first, n_last) - 1, 1))
            if low != 0 and high != 0 and (kind != _ONE_DIGIT or (first != 0 and second != 0)):
                at = size
            at = min(at, size)
        return place << 28 | at << 20 | low + 1 << 16 | high + 1 << 12 | kind << 8 | first + 1 << 4 | second + 1
    if place == _START or (place >= _POINT and at == 0):
        return none
    if symbol > 57:
        if place == _ZERO and flags & FROM_ZERO and not flags & (WHOLE | PLAIN):
            kind = np.int64(_NOTHING)
        if kind == _NO or (flags & USUAL and (kind == _NOTHING or symbol == 69)):
            return none
        sort = np.int64(_ANY_EXPONENT)
        if kind == _ONE_DIGIT:
            behind = at if place == _FRACTION else nil
            is_below = first < 0 or (first == 0 and (behind + 1 < n_first or flags & LOW_OPEN))
            is_above = second > 0 or (second == 0 and behind + 1 >= n_last and flags & HIGH_OPEN)
            sort = np.int64(0 if is_below else 1) | np.int64(0 if is_above else 2)
        return _E << 28 | sort << 4
    if symbol == 43 or (symbol == 46 and (place == _FRACTION or flags & PLAIN)):
        return none
    # The end or the point: how do the digits compare that stand before the point?
    if place != _FRACTION:
        if place == _ZERO:
            low = free if flags & FROM_ZERO else nil if said[least] == 48 else none
            high = nil if said[most] == 48 else none
            at = np.int64(1)
        if (low != _FREE and (at < n_least or low < 0)) or (at == n_most and high > 0):
            low = high = none
        else:
            low, high = nil if low == 0 else free, nil if at == n_most and high == 0 else free
        at = nil
    ends = low > 0 or (low == 0 and at >= n_below and not flags & LOW_OPEN)
    ends = ends and (high != 0 or at < n_above or not flags & HIGH_OPEN)
    if symbol == 0:
        return np.int64(_ENDS) if ends else none
    if flags & WHOLE:
        return np.int64(_POINT << 28) if ends else none
    if place == _ZERO:
        kind = np.int64(_NOTHING if flags & FROM_ZERO else _NO)
        first = second = nil
    if low < 0 and kind == _NO:
        return none
    return _FRACTION << 28 | low + 1 << 16 | high + 1 << 12 | kind << 8 | first + 1 << 4 | second + 1


@entry("long, longs, long, long, long")
def write_number(t, said, minus, digits, zeros):
    """Write the states of the numbers in a range, without sign; the first is the one before them.  How many there are.

    ``said`` is the description: its flags; of the lower bound, the upper bound, and their digits in scientific notation
    how many digits there are (before the point and behind it, for the bounds; none of a missing upper one);
    the two exponents; `SYMBOLS`; and these digits, one behind the other.  The first state leads to the state ``minus``
    with a minus sign, where that is not 0.
    ``digits`` and ``zeros`` are the states of as many as one likes.  How far states are from
    ends is written with them, as that of ``minus`` was.  There must be room for `MOST_FOUND` states and `MOST_EDGES`
    edges.  0: there is no number in the range; -1: there are more states.
    """
    automaton = views.automaton(t)
    counts = views.parts(t).counts
    found = local_longs(MOST_FOUND)
    symbols = said[_HEAD:_DIGITS]
    n_symbols = symbols.shape[0]
    to = local_long_rows(MOST_FOUND, _SYMBOLS)
    found[0] = 0
    n = 1
    here = 0
    while here < n:
        state = found[here]
        before = np.int64(_NONE)
        place = 0
        for i in range(n_symbols):
            symbol = symbols[i]
            target = _step_behind_e(said, state, symbol) if state >> 28 >= _E else _step(said, state, symbol)
            if target >= 0:
                if target != before:
                    before = target
                    place = 0
                    while place < n and found[place] != target:
                        place += 1
                    if place == n:
                        if n == MOST_FOUND:
                            return -1
                        found[n] = target
                        n += 1
                target = np.int64(place)
            elif target == _TO_MINUS and minus == 0:
                target = np.int64(_NONE)
            to[here, i] = target
        here += 1
    # How far each is from an end, from the last on: states lead to later ones, mostly.
    behind_minus = np.int64(automaton.minimum[minus]) if minus else np.int64(0)
    nearest = local_longs(MOST_FOUND)
    nearest[:n] = FAR
    changed = True
    while changed:
        changed = False
        for here in range(n - 1, -1, -1):
            for i in range(n_symbols):
                target = to[here, i]
                if target == _NONE:
                    continue
                ahead = np.int64(-1)
                if target >= 0:
                    ahead = nearest[target]
                elif target != _ENDS:
                    ahead = behind_minus if target == _TO_MINUS else np.int64(0)
                if ahead + 1 < nearest[here]:
                    nearest[here] = ahead + 1
                    changed = True
    if nearest[0] == FAR:
        return 0
    # What is farthest of all that is ahead of each.
    widest = local_longs(MOST_FOUND)
    widest[:n] = 0
    behind_minus = np.int64(automaton.widest[minus]) if minus else np.int64(0)
    changed = True
    while changed:
        changed = False
        for here in range(n - 1, -1, -1):
            if nearest[here] == FAR:
                continue
            farthest = max(widest[here], nearest[here])
            for i in range(n_symbols):
                target = to[here, i]
                if target >= 0:
                    farthest = max(farthest, widest[target])
                elif target == _TO_MINUS:
                    farthest = max(farthest, behind_minus)
            if farthest > widest[here]:
                widest[here] = farthest
                changed = True
    begin = np.int64(counts[STATES])
    lives = found
    at = begin
    for here in range(n):
        lives[here] = 0
        if nearest[here] < FAR:
            lives[here] = at
            at += 1
    edge = np.int64(counts[EDGES])
    for here in range(n):
        at = lives[here]
        if at == 0:
            continue
        if to[here, 0] == _ENDS:
            automaton.tag[at] = 0
        automaton.minimum[at], automaton.widest[at] = nearest[here], widest[here]
        first = edge
        for i in range(1, n_symbols):
            target = to[here, i]
            if target >= 0:
                target = lives[target]
            elif target <= _TO_DIGITS:
                target = digits if target == _TO_DIGITS else zeros if target == _TO_ZEROS else minus
            if target <= 0:
                continue
            edge = add_edge(automaton, first, edge, symbols[i], target)
        automaton.first[at], automaton.count[at] = first, edge - first
        counts[STATES] = at + 1
    counts[EDGES] = edge
    return counts[STATES] - begin
