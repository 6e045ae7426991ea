"""How lexer states read a byte: plain edges, and the spelling of JSON strings on top of edges that read their text.

A place is ``decode << 32 | state``.  ``decode`` is 0 outside escapes; inside, its kind in the bits from 24 on, and
below the digits read: ``count << 12 | value`` of the first four, and from bit 14 the high half of a surrogate pair.  So
an escape costs no states, whatever the text's language is, and a state's table is that of the text alone.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import CANONICAL, CLOSES, MATCHED, STRING
from guided.kernels.jit import called, entry, inner

_MASK32 = 0xFFFFFFFF


# Kinds of a begun escape: after the backslash, in the digits of ``u``, after a high surrogate, after its backslash, in
# the digits of the low one.
ESCAPE, DIGITS, HALF, HALF_ESCAPE, HALF_DIGITS = 1 << 24, 2 << 24, 3 << 24, 4 << 24, 5 << 24
KIND = 7 << 24


@inner
def edge(automaton, state, byte):
    """The state after ``byte`` by the edges of ``state``: 0 dead, ``-state`` when they are not known yet."""
    first = automaton.first[state]
    if first < 0:
        return -np.int64(state)
    for at in range(first, first + automaton.count[state]):
        if byte <= automaton.high[at]:
            if byte >= automaton.low[at]:
                return np.int64(automaton.target[at])
            return np.int64(0)
    return np.int64(0)


@inner
def _utf8(code, length, index):
    """Byte ``index`` of the UTF-8 of ``code``, which has ``length`` bytes."""
    if length == 1:
        return code
    if index == 0:
        return ((0xF00 >> length) & 0xFF) | (code >> (6 * (length - 1)))
    return 0x80 | ((code >> (6 * (length - 1 - index))) & 0x3F)


@inner
def _length(code):
    return np.int64(1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4)


@inner
def _read(automaton, state, code):
    """The state after one character of the text; 0 dead, negative: edges not known."""
    length = _length(code)
    at = np.int64(state)
    for index in range(length):
        at = edge(automaton, at, _utf8(code, length, index))
        if at <= 0:
            return at
    return at


@inner
def _at_least(automaton, state, code, length, index):
    """Can bytes from ``index`` on be read that are those of ``code`` or greater?  Targets always go on."""
    at = np.int64(state)
    for i in range(index, length):
        first = automaton.first[at]
        if first < 0:
            return -at
        byte = _utf8(code, length, i)
        last = first + automaton.count[at]
        if last > first and automaton.high[last - 1] > byte:
            return np.int64(1)
        at = edge(automaton, at, byte)
        if at <= 0:
            return at
    return np.int64(1)


@inner
def _at_most(automaton, state, code, length, index):
    """Can bytes from ``index`` on be read that are those of ``code`` or smaller?"""
    at = np.int64(state)
    for i in range(index, length):
        first = automaton.first[at]
        if first < 0:
            return -at
        byte = _utf8(code, length, i)
        if automaton.count[at] > 0 and automaton.low[first] < byte:
            return np.int64(1)
        at = edge(automaton, at, byte)
        if at <= 0:
            return at
    return np.int64(1)


@inner
def _block(automaton, state, low, high, length):
    """Can a character between two of equal length be read?  1, 0, or negative: edges not known."""
    at = np.int64(state)
    index = np.int64(0)
    while index < length and _utf8(low, length, index) == _utf8(high, length, index):
        at = edge(automaton, at, _utf8(low, length, index))
        if at <= 0:
            return at
        index += 1
    if index == length:
        return np.int64(1)
    least = _utf8(low, length, index)
    most = _utf8(high, length, index)
    first = automaton.first[at]
    if first < 0:
        return -at
    for e in range(first, first + automaton.count[at]):
        if max(np.int64(automaton.low[e]), least + 1) <= min(np.int64(automaton.high[e]), most - 1):
            return np.int64(1)
    below = edge(automaton, at, least)
    if below > 0:
        below = _at_least(automaton, below, low, length, index + 1)
        if below != 0:
            return below
    above = edge(automaton, at, most)
    if above > 0:
        return _at_most(automaton, above, high, length, index + 1)
    return np.int64(0)


@inner
def _reaches(automaton, state, low, high):
    """Can a character between two be read next?  1, 0, or negative: edges not known."""
    length = _length(low)
    while low <= high:
        top = 0x7F if length == 1 else 0x7FF if length == 2 else 0xFFFF if length == 3 else 0x10FFFF
        found = _block(automaton, state, low, min(high, top), length)
        if found != 0:
            return found
        low = top + 1
        length += 1
    return np.int64(0)


@inner
def _reaches_escaped(automaton, state, mode, low, high):
    """As `_reaches`, for characters that are written as ``u`` and four digits."""
    if not mode & CANONICAL:
        return _reaches(automaton, state, low, high)
    found = _reaches(automaton, state, low, min(high, np.int64(7)))
    if found == 0:
        found = _reaches(automaton, state, max(low, np.int64(11)), min(high, np.int64(11)))
    if found == 0:
        found = _reaches(automaton, state, max(low, np.int64(14)), min(high, np.int64(31)))
    return found


@inner
def _digits(automaton, state, mode, count, value):
    """Is there a character whose escape begins with these digits?"""
    low = value << (4 * (4 - count))
    high = low + (1 << (4 * (4 - count))) - 1
    found = np.int64(0)
    if low < 0xD800:
        found = _reaches_escaped(automaton, state, mode, low, min(high, 0xD7FF))
    if found == 0 and high > 0xDFFF:
        found = _reaches_escaped(automaton, state, mode, max(low, 0xE000), high)
    if found == 0 and not mode & CANONICAL and low < 0xDC00 and high >= 0xD800:
        first = 0x10000 + ((max(low, 0xD800) & 0x3FF) << 10)
        found = _reaches(automaton, state, first, 0x10000 + ((min(high, 0xDBFF) & 0x3FF) << 10) + 0x3FF)
    return found


@inner
def _hex(byte):
    """The value of a hexadecimal digit, -1 for other bytes."""
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    if 0x61 <= byte <= 0x66:
        return byte - 0x57
    if 0x41 <= byte <= 0x46:
        return byte - 0x37
    return -1


@inner
def _short(byte):
    """The character of a one-letter escape, -1 for none."""
    if byte == 0x22 or byte == 0x5C or byte == 0x2F:
        return np.int64(byte)
    if byte == 0x62:
        return np.int64(8)
    if byte == 0x66:
        return np.int64(12)
    if byte == 0x6E:
        return np.int64(10)
    if byte == 0x72:
        return np.int64(13)
    if byte == 0x74:
        return np.int64(9)
    return np.int64(-1)


@inner
def _place(found, kind, state):
    """The place inside an escape when ``found`` is 1; else ``found`` itself (0 dead, negative: edges not known)."""
    if found == 1:
        return (np.int64(kind) << 32) | state
    return found


@inner
def _begins_escape(automaton, state, mode):
    """Can a backslash come here?  Where a character has begun only its later bytes have edges, so no."""
    if mode & CANONICAL:
        found = np.int64(0)
        for low, high in ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)):
            if found == 0:
                found = _reaches(automaton, state, low, high)
        return found
    first = automaton.first[state]
    if first < 0:
        return -np.int64(state)
    for e in range(first, first + automaton.count[state]):
        if automaton.low[e] < 0x80 or automaton.high[e] >= 0xC2:
            return np.int64(1)
    return np.int64(0)


@inner
def _escape(automaton, decode, state, mode, byte):
    """One byte inside an escape, where the byte alone does not tell."""
    kind = decode & KIND
    if kind == ESCAPE:
        if not mode & CANONICAL:
            # Some character can come, else no escape had begun, and its number spells any.
            return (np.int64(DIGITS) << 32) | state
        return _place(_digits(automaton, state, mode, 0, 0), DIGITS, state)
    if kind == HALF:
        return _place(np.int64(byte == 0x5C), HALF_ESCAPE | (decode & 0xFFC000), state)
    if kind == HALF_ESCAPE:
        return _place(np.int64(byte == 0x75), HALF_DIGITS | (decode & 0xFFC000), state)
    digit = _hex(byte)
    if digit < 0 or (mode & CANONICAL and 0x41 <= byte <= 0x46):
        return np.int64(0)
    count = ((decode >> 12) & 3) + 1
    value = ((decode & 0xFFF) << 4) | digit
    first = automaton.first[state]
    if kind == DIGITS and first >= 0 and automaton.count[state] == 1 and automaton.low[first] == automaton.high[first]:
        # Inside a name: only one character can come.
        code = np.int64(automaton.low[first])
        if code < 0x80:
            if code >> (4 * (4 - count)) != value:
                return np.int64(0)
            if not mode & CANONICAL:
                if count == 4:
                    return np.int64(automaton.target[first])
                return (np.int64(DIGITS | (count << 12) | value) << 32) | state
    if kind == DIGITS:
        if count < 4:
            return _place(_digits(automaton, state, mode, count, value), DIGITS | (count << 12) | value, state)
        found = _digits(automaton, state, mode, 4, value)
        if found != 1:
            return found
        if 0xD800 <= value < 0xDC00:
            return _place(found, HALF | ((value & 0x3FF) << 14), state)
        return _read(automaton, state, value)
    half = (decode >> 14) & 0x3FF
    low = max(value << (4 * (4 - count)), 0xDC00)
    high = min(((value + 1) << (4 * (4 - count))) - 1, 0xDFFF)
    if low > high:
        return np.int64(0)
    base = 0x10000 + (half << 10)
    if count == 4:
        return _read(automaton, state, base + (low & 0x3FF))
    found = _reaches(automaton, state, base + (low & 0x3FF), base + (high & 0x3FF))
    return _place(found, HALF_DIGITS | (half << 14) | (count << 12) | value, state)


@inner
def _spelled(automaton, decode, state, mode, byte):
    """One byte that begins an escape or goes on with one."""
    called()
    if decode:
        return _escape(automaton, decode, state, mode, byte)
    return _place(_begins_escape(automaton, state, mode), ESCAPE, state)


@inner
def move(automaton, place, byte):
    """The place after ``byte``: 0 dead, ``-state`` when the edges of a state are not known yet."""
    state = place & _MASK32
    mode = automaton.mode[state]
    if place >> 32 == ESCAPE and byte != 0x75:
        code = _short(byte)
        if code < 0 or (code == 0x2F and mode & CANONICAL):
            return np.int64(0)
        return edge(automaton, state, code)
    if place >> 32:
        if _hex(byte) < 0 and byte != 0x5C and byte != 0x75:
            return np.int64(0)
        return _spelled(automaton, place >> 32, state, mode, byte)
    if mode & STRING:
        if byte == 0x5C:
            return _spelled(automaton, 0, state, mode, byte)
        if byte == 0x22:
            return np.int64(MATCHED) if mode & CLOSES else np.int64(0)
        if byte < 0x20:
            return np.int64(0)
    return edge(automaton, state, byte)


@inner
def enter(automaton, state):
    """The place of a state as threads hold it: inside an escape, that of the state before with what was read."""
    return (np.int64(automaton.decode[state]) << 32) | automaton.base[state]


@inner
def owe(automaton, obligation, decode, byte):
    """What is still owed after ``byte``, read at the same place of the text: 0 nothing, negative: edges not known."""
    place = np.int64(obligation)
    if automaton.mode[obligation] & STRING:
        place |= np.int64(decode) << 32
    after = move(automaton, place, byte)
    return after if after < 0 else after & _MASK32


@inner
def partial(automaton, place):
    """The id of the state inside an escape at ``place``; -1 when it has none yet."""
    size = automaton.partials.shape[0]
    slot = np.int64(np.uint64(place) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)) % size
    while automaton.partials[slot] > 0:
        found = automaton.partials[slot]
        if enter(automaton, found) == place:
            return np.int64(found)
        slot += 1
        if slot == size:
            slot = 0
    return np.int64(-1)


@entry("long, long, long")
def place_after(table, place, byte):
    """As `move`, for callers that have a table of addresses."""
    return move(views.automaton(table), place, byte)


@entry("long, long")
def state_at(table, place):
    """As `partial`, for callers that have a table of addresses."""
    return partial(views.automaton(table), place)
