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
from guided.kernels.parsing.marks import ALONE, MARKS, MOST_QUOTES, read_quotes
from guided.kernels.parsing.marks import BEHIND as MARKED_BEHIND
from guided.kernels.parsing.marks import INSIDE as MARKED_INSIDE
from guided.kernels.parsing.threads import intern_state

__all__ = [
    "BEGUN", "ENDED", "FIELDS", "HELD_WHOLE", "LONE", "MORE", "MOST", "MOST_DEPTH", "MOST_NAME", "NAME_AT", "NOTHING",
    "OPENS", "POOL", "UNKNOWN", "WHOLE", "Left", "Mode", "copy_changed", "go_on", "note", "stay", "text_key",
]  # fmt: skip

TOKEN, MODE, OWN, LOOPS, DEPTH, ARRAYS, NAMES, USED, SIZE, IS_FREE, N_TOKENS = range(11)
"""The token to go on by, `NOTHING` where there is none and the mask is known, `UNKNOWN` where it is not; the `Mode`;
the automaton's state; whether it is in a string that takes any characters, -1: not known.  Of the containers that are
remembered how many are open within the outermost, -1: none; a bit for each that is an array, the lowest for the
innermost; a bit where a string would be a name; the bytes of the used names in the `POOL`; those of the name that is
read, and whether no used one begins like it.  How many tokens came since Python knew the text."""

TABLE, ROOT, PLACES, ENDS, WORDS, CHARACTERS, QUOTES, HELD, N_HELD, SUSPECTS, ROOM, CHANGED, SEEN = range(11, 24)
"""As for `guided.kernels.masking.stepping.step_rows`: the table, the root of the tries, the lexer states of a string,
where the row of end-of-text ids is, its words.  Where there is a byte for each token, 1 for whole characters; one that
tells of its quotation marks, `NONE`, `ONE`, `MORE` or `LONE`; the hash map of what tokens hold, and its size
(`guided.constraint.distinct.token_texts`).  Of how many bytes an undeclared name may be that is held here, -1: none may
begin.  Whether the mask has changed since it was copied.  And the number of the last array that was replaced
(`guided.kernels.data.addresses.REPLACED`) when the table was looked at."""

FIELDS = 24
"""Numbers of a line: three lines of the cache."""

NOTHING, UNKNOWN = -1, -2

NONE, ONE, MORE, LONE, OPENS = range(5)
"""Quotation marks of a token: none, one beside backslashes, more, or one without a backslash.  Where items of arrays
are compared, `OPENS` is a token with an opening bracket, which is Python's."""

PLAIN, ENDED, BEGUN = 0, 1 << 32, 2 << 32
"""What is said of a token that was taken: it ended an undeclared name, or began one where nothing was remembered."""

MOST = 256
"""Tokens that are kept for Python, which takes the text where there are more."""

MOST_DEPTH = 60
"""Containers that are remembered, each a bit."""

POOL, NAME_AT = 1024, 768
"""Bytes of a line's names: the used ones, each behind the number of its container and its size, and from `NAME_AT` on
the one that is read."""

HELD_WHOLE = 0x80
"""With the number of a used name's container: tokens hold it as a whole string."""

MOST_NAME = POOL - NAME_AT - 1

WHOLE = 1
"""The kind of key of texts that a token holds as a whole string; 0: that one ends."""

_BASIS, _PRIME = 0xCBF29CE484222325, 0x100000001B3


class Mode(IntEnum):
    """What is remembered of a text, and so which tokens it can go on by here."""

    OUTSIDE = 0
    """Python alone knows."""
    FREE = 1
    """There is no checker: any."""
    IDLE = 2
    """Nothing: those with one quotation mark at most."""
    BETWEEN = 3
    """Open containers, between their strings."""
    STRING = 4
    """The same, within a string that does not matter."""
    ESCAPE = 5
    """The same, just behind a backslash."""
    NAME = 6
    """A name that may be undeclared."""
    INSIDE = 7
    """A name or string whose masks the automaton does not tell: characters that leave its state as it is."""


class Left(IntEnum):
    """What `go_on` leaves to Python."""

    STEP = 0
    """All: Python has to see what it remembers, or another thread was here."""
    MASK = 1
    """The mask, which is the automaton's: for what was asked, or for more than a moment's work."""
    ASKED = 2
    """A step, or a mask less some tokens: for what was asked, or since Python may refuse some."""
    STALE = 3
    """All: the table has addresses of arrays that were replaced since."""


OUTSIDE, FREE, IDLE, BETWEEN, STRING, ESCAPE, NAME, INSIDE = (int(mode) for mode in Mode)
_STEP, _MASK, _ASKED, _STALE = (int(left) for left in Left)
_DONE = -1

_ANY_INSIDE = sum(MARKED_INSIDE << MARKS * i for i in range(MOST_QUOTES))

_REFUSED = len(Mode)
"""In the place of a mode: a name repeats a used one."""

_QUOTE, _BACKSLASH, _COMMA = 0x22, 0x5C, 0x2C
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = 0x5B, 0x5D, 0x7B, 0x7D


def text_key(text: bytes, kind: int = 0) -> int:
    """The key of a text in the set of those that tokens hold: two may have the same.

    Source: Fowler, Noll and Vo, FNV-1a.
    """
    found = _BASIS ^ kind
    for byte in text:
        found = (found ^ byte) * _PRIME & (1 << 64) - 1
    return found | 1


@inner
def _held(line, like, names, begin, end, kind):
    """The first of the tokens that end (or hold) the text of these bytes in the map of `text_key`, and how many there
    are.
    """
    found = np.uint64(_BASIS ^ kind)
    for i in range(begin, end):
        found = (found ^ np.uint64(names[i])) * np.uint64(_PRIME)
    key = np.int64(found | np.uint64(1))
    table = flat_at(like, line[HELD], line[N_HELD])
    size = table[0]
    slot = (key >> 20) & (size - 1)
    while table[1 + 2 * slot]:
        if table[1 + 2 * slot] == key:
            where = table[2 + 2 * slot]
            return where >> 32, where & 0xFFFFFFFF
        slot = (slot + 1) & (size - 1)
    return np.int64(0), np.int64(0)


@inner
def _keep(line, tokens, said):
    """Take the token of a line as read."""
    tokens[line[N_TOKENS]] = line[TOKEN] | said
    line[N_TOKENS] += 1
    line[TOKEN] = NOTHING


@inner
def _spelled(names, size, data, begin, end):
    """Go on with the name that is read: its size, or -1 where there is no room."""
    if size + end - begin > MOST_NAME:
        return np.int64(-1)
    for i in range(begin, end):
        names[NAME_AT + size] = data[i]
        size += 1
    return size


@inner
def _stays(line, tokens, names):
    """Take a line's token if it leaves the mask as it is, as characters of a string."""
    mode = line[MODE]
    if line[LOOPS] != 1 or mode in (BETWEEN, ESCAPE, OUTSIDE) or line[N_TOKENS] >= MOST:
        return False
    token, t = line[TOKEN], line[TABLE]
    if not flat_at(token_data(t), line[CHARACTERS], token + 1)[token]:
        return False
    if mode == NAME:
        if not line[IS_FREE]:
            return False
        offsets = token_offsets(t)
        size = _spelled(names, line[SIZE], token_data(t), offsets[token], offsets[token + 1])
        if size < 0:
            # Python reads so long a name, from its tokens, and until it ends every character may come.
            line[MODE] = INSIDE
        else:
            line[SIZE] = size
    _keep(line, tokens, np.int64(PLAIN))
    return True


@entry("long_rows, word_rows, long, long")
def note(lines, masks, at, token):
    """Note the token that is sampled from a line's mask; False for what it does not allow, and for ends of text."""
    line = lines[at]
    word = token >> 5
    if line[TOKEN] != NOTHING or token < 0 or word >= masks.shape[1]:
        return False
    bit = np.uint32(1) << np.uint32(token & 31)
    if not masks[at, word] & bit or (word < line[WORDS] and flat_at(masks, line[ENDS], line[WORDS])[word] & bit):
        return False
    line[TOKEN] = token
    return True


@entry("long_rows, longs, long_rows, byte_rows, long_rows")
def stay(lines, order, tokens, names, left):
    """Take the tokens of lines ``order[i]`` that leave their masks as they are; how many others there are.

    ``left[j, 0]`` says which: those have another token, or no mask.  ``tokens[line]`` is kept for Python, and
    ``names[line]`` are the line's.
    """
    n = 0
    for i in range(order.shape[0]):
        at = order[i]
        line = lines[at]
        if at == 0 or line[TOKEN] == NOTHING:
            continue
        if line[TOKEN] >= 0 and _stays(line, tokens[at], names[at]):
            continue
        left[n, 0] = at
        left[n, 1] = 0
        n += 1
    return n


@inner
def _unescaped(data, at, end):
    """The byte that an escape of one letter stands for, -1 for others and where none is."""
    byte = np.int64(data[at]) if at < end else np.int64(0)
    if byte in (_QUOTE, _BACKSLASH, 0x2F):
        return byte
    for letter, plain in ((0x62, 0x08), (0x66, 0x0C), (0x6E, 0x0A), (0x72, 0x0D), (0x74, 0x09)):
        if byte == letter:
            return np.int64(plain)
    return np.int64(-1)


@inner
def _begins(names, used, depth, size, whole):
    """Does a used name of a container begin as the one that is read does, or is it that, with ``whole``?"""
    at = np.int64(0)
    while at < used:
        length = np.int64(names[at + 1])
        if np.int64(names[at]) & ~HELD_WHOLE == depth and (length == size if whole else length >= size):
            same = True
            for i in range(size):
                if names[at + 2 + i] != names[NAME_AT + i]:
                    same = False
                    break
            if same:
                return True
        at += 2 + length
    return False


@inner
def _left(names, used, depth):
    """The bytes of the used names of the containers up to a depth."""
    at = np.int64(0)
    while at < used and np.int64(names[at]) & ~HELD_WHOLE <= depth:
        at += 2 + np.int64(names[at + 1])
    return at


@inner
def _read(line, like, names, data, begin, end, said):
    """Read a token where something is remembered: the mode behind it, how many containers are open, their bits, the
    sizes of their names and of that which is read, whether that is free, and whether an undeclared one has ended;
    `_REFUSED` where it repeats one, `OUTSIDE` where Python has to see.

    ``said``: what the automaton says at each quotation mark, as `read_quotes`.  As
    `guided.constraint.distinct.json_text.Reader`.
    """
    mode, depth, arrays, names_at = line[MODE], line[DEPTH], line[ARRAYS], line[NAMES]
    used, size, n_ended, undeclared = line[USED], line[SIZE], 0, False
    i = begin
    while i < end:
        byte = data[i]
        if mode == NAME:
            stop = i
            while stop < end and data[stop] != _QUOTE and data[stop] != _BACKSLASH:
                stop += 1
            size = _spelled(names, size, data, i, stop)
            if size < 0:
                mode = np.int64(OUTSIDE)
                break
            i = stop
            if i < end and data[i] == _BACKSLASH:
                plain = _unescaped(data, i + 1, end)
                if plain < 0 or size == MOST_NAME:
                    mode = np.int64(OUTSIDE)
                    break
                if plain == _QUOTE:
                    said >>= MARKS
                names[NAME_AT + size] = plain
                size += 1
                i += 2
                continue
            if i < end:
                n_ended += 1
                if n_ended > 1:
                    mode = np.int64(OUTSIDE)
                    break
                if depth >= 0 and said & MARKED_BEHIND and _begins(names, used, depth, size, True):
                    mode = np.int64(_REFUSED if said & ALONE else OUTSIDE)
                    break
                if said & MARKED_BEHIND:
                    # Within a longer one all names that may come could be held.
                    if used + 2 + size > NAME_AT or size > line[ROOM]:
                        mode = np.int64(OUTSIDE)
                        break
                    if depth < 0:
                        depth, arrays, names_at = np.int64(0), np.int64(0), np.int64(0)
                    _, n_held = _held(line, like, names, NAME_AT, NAME_AT + size, WHOLE)
                    names[used], names[used + 1] = depth | (HELD_WHOLE if n_held else 0), size
                    for j in range(size):
                        names[used + 2 + j] = names[NAME_AT + j]
                    used += 2 + size
                    undeclared = True
                said >>= MARKS
                names_at &= ~np.int64(1)
                mode = np.int64(BETWEEN if depth >= 0 else IDLE)
                i += 1
            continue
        i += 1
        is_quote = byte == _QUOTE
        if is_quote:
            said >>= MARKS
        if mode == IDLE:
            if is_quote:
                mode = np.int64(OUTSIDE)
                break
        elif mode == ESCAPE:
            mode = np.int64(STRING)
        elif mode == STRING:
            if byte == _BACKSLASH:
                mode = np.int64(ESCAPE)
            elif is_quote:
                mode = np.int64(BETWEEN)
                names_at &= ~np.int64(1)
        elif is_quote:
            if names_at & 1:
                mode, size = np.int64(NAME), np.int64(0)
            else:
                mode = np.int64(STRING)
        elif byte == _COMMA:
            names_at |= ~arrays & 1
        elif byte in (_OPEN_ARRAY, _OPEN_OBJECT):
            if depth >= MOST_DEPTH:
                mode = np.int64(OUTSIDE)
                break
            is_array = np.int64(byte == _OPEN_ARRAY)
            depth, arrays, names_at = depth + 1, arrays << 1 | is_array, names_at << 1 | 1 - is_array
        elif byte in (_CLOSE_ARRAY, _CLOSE_OBJECT):
            depth, arrays, names_at = depth - 1, arrays >> 1, names_at >> 1
            used = _left(names, used, depth)
            if depth < 0:
                mode = np.int64(IDLE)
    free = mode != NAME or depth < 0 or not _begins(names, used, depth, size, False)
    return mode, depth, arrays, names_at, used, size, free, undeclared


@inner
def _may_repeat(line, names):
    """May a token of the automaton's mask repeat a used name?"""
    mode = line[MODE]
    if mode in (FREE, IDLE, INSIDE):
        return False
    if mode == NAME and not line[IS_FREE]:
        return True
    at = np.int64(0)
    while at < line[USED]:
        if names[at] & HELD_WHOLE:
            return True
        at += 2 + np.int64(names[at + 1])
    return False


@inner
def _without(line, like, names, spare, mask, begin, end, kind):
    """Take from a mask the tokens that repeat a name, of those that end (or hold) these bytes of ``names``.

    `_DONE`, or what is left to Python.  ``spare`` has room for names.
    """
    t = line[TABLE]
    data, offsets = token_data(t), token_offsets(t)
    first, n = _held(line, like, names, begin, end, kind)
    tokens = flat_at(like, line[HELD], line[N_HELD])
    for i in range(first, first + n):
        token = tokens[i]
        bit = np.uint32(1) << np.uint32(token & 31)
        if not mask[token >> 5] & bit:
            continue
        found, said = read_quotes(t, line[OWN], data, offsets[token], offsets[token + 1], False)
        if found <= 0:
            return _ASKED if found < 0 else _STEP
        for j in range(POOL):
            spare[j] = names[j]
        mode = _read(line, like, spare, data, offsets[token], offsets[token + 1], said)[0]
        if mode == OUTSIDE:
            return _STEP
        if mode == _REFUSED:
            mask[token >> 5] &= ~bit
    return _DONE


@inner
def _without_repeated(line, like, names, spare, mask):
    """Take from the automaton's mask the tokens that repeat a used name: `_DONE`, or what is left to Python."""
    size = line[SIZE]
    at = np.int64(0)
    while at < line[USED]:
        container, begin = np.int64(names[at]), at + 2
        at = begin + np.int64(names[at + 1])
        if container & HELD_WHOLE:
            todo = _without(line, like, names, spare, mask, begin, at, WHOLE)
            if todo != _DONE:
                return todo
        if line[MODE] == NAME and container & ~HELD_WHOLE == line[DEPTH] and at - begin >= size:
            same = True
            for i in range(size):
                if names[begin + i] != names[NAME_AT + i]:
                    same = False
            if same:
                todo = _without(line, like, names, spare, mask, begin + size, at, 0)
                if todo != _DONE:
                    return todo
    return _DONE


@inner
def _shown(line, like, names, spare, mask, fuel):
    """Write the mask of a line: `_DONE`, or what is left to Python."""
    t = line[TABLE]
    line[LOOPS] = np.int64(is_in_string(t, line[OWN], line[PLACES]))
    line[CHANGED] = 1
    line[TOKEN] = UNKNOWN
    repeats = _may_repeat(line, names)
    if write_mask(t, line[ROOT], line[OWN], fuel, flat_at(mask, line[ENDS], line[WORDS]), mask) < 0:
        return _ASKED if repeats else _MASK
    if repeats:
        counts = counters(t)
        spared = max(counts[FUEL] - fuel, np.int64(0))
        counts[FUEL] -= spared
        todo = _without_repeated(line, like, names, spare, mask)
        counts[FUEL] += spared
        if todo != _DONE:
            return todo
    if line[SUSPECTS]:
        suspects = flat_at(mask, line[SUSPECTS], line[WORDS])
        for i in range(line[WORDS]):
            if mask[i] & suspects[i]:
                return _ASKED
    line[TOKEN] = NOTHING
    return _DONE


@entry("long_rows, long_rows, long, long_rows, byte_rows, word_rows, long, long, long")
def go_on(lines, left, n, tokens, names, masks, fuel, mask_fuel, seen):
    """Go on in the lines ``left[:n, 0]`` and write their masks, each with so much work at most; how many are left.

    Only lines with ``left[i, 1]`` not 0, whose locks are held.  What is left comes to the front of ``left``, with what
    is left to do.  ``seen`` is the number that a line whose table is as it should be has `SEEN`.
    """
    rest = 0
    for i in range(n):
        at = left[i, 0]
        line = lines[at]
        todo = _STEP
        if left[i, 1] and line[MODE] != OUTSIDE:
            if line[SEEN] != seen:
                todo = _STALE
            elif line[TOKEN] >= 0:
                if line[N_TOKENS] < MOST:
                    if line[LOOPS] < 0:
                        line[LOOPS] = np.int64(is_in_string(line[TABLE], line[OWN], line[PLACES]))
                    todo = _DONE if _stays(line, tokens[at], names[at]) else _moved(line, tokens[at], names[at], fuel)
            else:
                todo = _MASK
            if todo == _MASK:
                # No name is in the line of rows without constraint.
                todo = _shown(line, tokens[at], names[at], names[0], masks[at], mask_fuel)
        if todo != _DONE:
            left[rest, 0], left[rest, 1] = at, todo
            rest += 1
    return rest


@inner
def _advanced(line, quotes, fuel):
    """The state after a line's token with so much work at most, 0 where there is none, -1: request; and what is said
    of its quotation marks.
    """
    token, mode, t = line[TOKEN], line[MODE], line[TABLE]
    counts = counters(t)
    spared = max(counts[FUEL] - fuel, np.int64(0))
    counts[FUEL] -= spared
    said = np.int64(0)
    if quotes == MORE:
        offsets = token_offsets(t)
        found, said = read_quotes(t, line[OWN], token_data(t), offsets[token], offsets[token + 1], mode == IDLE)
        if found > 0:
            found = intern_state(t, found)
    else:
        marking = quotes != NONE and mode in (IDLE, NAME)
        found = advance(t, False, marking, line[OWN], token)
        if marking and found > 0:
            said, found = found & 3, found >> 2
    counts[FUEL] += spared
    return found, said


@inner
def _moved(line, tokens, names, fuel):
    """Take a line's token with so much work at most: what is left is then the mask.  Else nothing changes."""
    token, mode, t = line[TOKEN], line[MODE], line[TABLE]
    quotes = np.int64(NONE)
    if mode == INSIDE:
        return _STEP
    if mode != FREE:
        quotes = np.int64(flat_at(token_data(t), line[QUOTES], token + 1)[token])
        if quotes == OPENS:
            return _STEP
    found, said = _advanced(line, quotes, fuel)
    if found <= 0:
        return _STEP if found == 0 else _ASKED
    if mode == FREE or (mode == IDLE and not said & _ANY_INSIDE):
        line[OWN] = found
        _keep(line, tokens, np.int64(PLAIN))
        return _MASK
    data, offsets = token_data(t), token_offsets(t)
    begin, end = offsets[token], offsets[token + 1]
    if mode == IDLE:
        # One quotation mark: a name that begins has not ended.
        if quotes != LONE or line[ROOM] < 0:
            return _STEP
        while data[begin] != _QUOTE:
            begin += 1
        size = _spelled(names, np.int64(0), data, begin + 1, end)
        if size < 0:
            return _STEP
        line[MODE], line[DEPTH], line[USED], line[SIZE], line[IS_FREE] = NAME, -1, 0, size, 1
        line[OWN] = found
        _keep(line, tokens, np.int64(BEGUN))
        return _MASK
    mode, depth, arrays, bits, used, size, free, ended = _read(line, tokens, names, data, begin, end, said)
    if mode in (OUTSIDE, _REFUSED):
        return _STEP
    line[MODE], line[DEPTH], line[ARRAYS], line[NAMES], line[USED] = mode, depth, arrays, bits, used
    line[SIZE], line[IS_FREE], line[OWN] = size, np.int64(free), found
    _keep(line, tokens, np.int64(ENDED if ended else PLAIN))
    return _MASK


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
