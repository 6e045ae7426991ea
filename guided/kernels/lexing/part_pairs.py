"""Parts of lexer states that follow from numbers: symbols before a part, and a part within the bounds of a run.

There are three kinds: the rest of a symbol before a part, a symbol so many times, and a pattern's part with a run's
part.  Each is found by the numbers of its components, and its edges follow from theirs.  Python takes 10 to 50
microseconds for such a part, the kernel well below one.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.jit import entry, inner

__all__ = [
    "ABSORBS",
    "ANY_BYTE",
    "ANY_CHARACTER",
    "AT_HEAD",
    "BEGUN",
    "BUCKETS",
    "BY_BOUNDS",
    "BY_SYMBOL",
    "COMMON",
    "COUNTED",
    "DECIDED",
    "DERIVED",
    "EXPENSIVE",
    "INSIDE",
    "LOOPS",
    "MOST_CHARACTERS",
    "NEEDS_EDGES",
    "NEEDS_SPAN",
    "NOTHING",
    "NO_ROOM",
    "NULLABLE",
    "PARTS",
    "PART_EDGES",
    "SPELLED_ONCE",
    "TEXTUAL",
    "UNDECIDED",
    "WANTED",
    "WIDE_SYMBOL",
    "WITH",
    "WITHIN",
    "WORD",
    "WORDS",
    "expand_derived",
    "expand_part",
]  # fmt: skip

(
    NULLABLE, LOOPS, AT_HEAD, COMMON, ABSORBS, TEXTUAL, SPELLED_ONCE, WORDS, EXPENSIVE, INSIDE, BEGUN, COUNTED,
    WITHIN, NOTHING,
) = (1 << bit for bit in range(14))  # fmt: skip
"""Of a part: it may end here; it repeats without a small bound; the repetition is the first that it reads; it is just
the run of a class without a bound; no other part adds to it; it is inside a JSON string; in its one spelling only; it
begins with a word or a list of them, which by itself is written; it begins with what is read as a whole, and may be
expensive; it is a pair inside a character; it is the rest of a symbol and what follows; a symbol so many times; a
pattern's part within the bounds of a run; such a pair that holds no text."""

DERIVED = BEGUN | COUNTED | WITHIN
"""Of parts that follow from numbers."""

PARTS, PART_EDGES, WANTED, WITH, DECIDED = range(10, 15)
"""Further entries of `counts`: parts and their edges in use, the part that a call wants to know more of, and beside
which; and whether that pair holds any text (0: not known, 1: no, 2: yes)."""

NO_ROOM, NEEDS_EDGES, NEEDS_SPAN, UNDECIDED = -1, -2, -3, -4
"""What a call wants: room, the edges of a part, how long its texts are, whether a pair holds any text."""

WORD, WIDE_SYMBOL, ANY_CHARACTER, ANY_BYTE = (1 << bit for bit in range(4))
"""Of a symbol: it is a word; it may be most of ASCII; any character; any byte."""

BY_SYMBOL, BY_BOUNDS = -1, -2
"""How rows that Python gives say that edges are those of a symbol before a part, or of a pair, and not just one."""

BUCKETS = 1 << 15
"""Heads of the chains in which parts are found: 128 KB, which ten thousand schemas fill with chains of a few parts."""

FAR = 32
"""Characters up to which a bound is near to the tokens of any vocabulary."""

_AT_ONCE = 16
"""Parts that there must be room for before an edge is written, with what it leads to."""

MOST_CHARACTERS = (1 << 31) - 2
"""What no number of characters comes to that is known."""


@inner
def _find(parts, one, other, fewest, most):
    """The part that some numbers tell, -1 where there is none."""
    part = np.int64(parts.chain_first[(one * 61 + other * 7 + fewest * 3 + most * 5) & (BUCKETS - 1)]) - 1
    while part >= 0 and (
        parts.one[part] != one or parts.other[part] != other or parts.fewest[part] != fewest or parts.most[part] != most
    ):
        part = np.int64(parts.chain_next[part]) - 1
    return part


@inner
def _make(parts, one, other, fewest, most, traits):
    """A new part, named by its numbers."""
    part = np.int64(parts.counts[PARTS])
    parts.counts[PARTS] = part + 1
    parts.one[part], parts.other[part] = one, other
    parts.fewest[part], parts.most[part] = fewest, most
    parts.traits[part] = traits
    parts.edge_first[part] = -1
    bucket = (one * 61 + other * 7 + fewest * 3 + most * 5) & (BUCKETS - 1)
    parts.chain_next[part] = parts.chain_first[bucket]
    parts.chain_first[bucket] = part + 1
    return part


@inner
def _begun(parts, rest, follows):
    """The part of the rest of a symbol and a part that follows; without the bound of that one it is another."""
    found = _find(parts, -1 - rest, follows, 0, 0)
    if found >= 0:
        return found
    last = np.int64(-1)
    while True:
        made = _find(parts, -1 - rest, follows, 0, 0)
        is_new = made < 0
        if is_new:
            traits = parts.traits[follows] & (LOOPS | TEXTUAL | SPELLED_ONCE) | BEGUN
            made = _make(parts, -1 - rest, follows, 0, 0, traits)
        if last < 0:
            found = made
        else:
            parts.boundless[last] = made
        if not is_new or parts.bound[follows] == 0:
            return found
        parts.bound[made] = parts.bound[follows]
        last = made
        follows = np.int64(parts.boundless[follows])


@inner
def _traits_of_run(parts, symbol, ends, fewest, most):
    """The traits of so many times a symbol before the part of an empty text, as `traits` has them."""
    flags = np.int64(parts.symbol_flags[symbol])
    text = np.int64(parts.traits[ends]) & (TEXTUAL | SPELLED_ONCE)
    traits = text | COUNTED
    if fewest == 0:
        traits |= NULLABLE
    if fewest == 1 and most == 1:
        return traits | WORDS if flags & WORD else traits
    if most < 0:
        traits |= AT_HEAD | COMMON
        if fewest == 0 and flags & (ANY_CHARACTER if text else ANY_BYTE):
            traits |= ABSORBS
    if text or most < 0 or most >= 8 or (most > 1 and flags & WIDE_SYMBOL):
        traits |= LOOPS
    return traits


@inner
def _counted(parts, symbol, ends, fewest, most):
    """The part of ``fewest`` to ``most`` times a symbol (-1: any number); of none it is ``ends``, of an empty text."""
    if most == 0:
        return ends
    found = _find(parts, -1 - symbol, ends, fewest, most)
    if found < 0:
        traits = _traits_of_run(parts, symbol, ends, fewest, most)
        found = _make(parts, -1 - symbol, ends, fewest, most, traits)
        if traits & TEXTUAL and most > FAR:
            boundless = _find(parts, -1 - symbol, ends, fewest, -1)
            if boundless < 0:
                traits = _traits_of_run(parts, symbol, ends, fewest, -1)
                boundless = _make(parts, -1 - symbol, ends, fewest, -1, traits)
            parts.bound[found], parts.boundless[found] = most, boundless
    return found


@inner
def _measure(parts, part):
    """Is it known how long the texts of a part are, or does it follow from numbers?

    Entries of ``spans``, for parts and symbols: of `guided.automata.lexer.spans.Span` each number and 1, 0 for none; of
    what is not known the first is 0.
    """
    spans, at = parts.spans, 4 * part
    if spans[at]:
        return True
    traits = np.int64(parts.traits[part])
    if not traits & (BEGUN | COUNTED):
        return False
    symbol, behind = 4 * (-1 - np.int64(parts.one[part])), 4 * np.int64(parts.other[part])
    of_symbol = parts.symbol_spans
    if not of_symbol[symbol] or not spans[behind]:
        return False
    fewest, most = np.int64(1), np.int64(1)
    if traits & COUNTED:
        fewest, most = np.int64(parts.fewest[part]), np.int64(parts.most[part])
    least = fewest * (of_symbol[symbol] - 1) + spans[behind] - 1
    greatest = soon = ever = np.int64(-1)
    if most >= 0 and of_symbol[symbol + 1] and spans[behind + 1]:
        greatest = most * (of_symbol[symbol + 1] - 1) + spans[behind + 1] - 1
    if of_symbol[symbol + 2] and of_symbol[symbol + 3] and spans[behind + 2] and spans[behind + 3]:
        after = np.int64(spans[behind + 2]) - 1
        once = np.int64(of_symbol[symbol + 2]) - 1
        soon = fewest * once + after
        within = np.int64(of_symbol[symbol + 3]) - 1
        if fewest > 1:
            within += (fewest - 1) * once
        ever = max(within + after, np.int64(spans[behind + 3]) - 1)
    if least >= MOST_CHARACTERS:
        return False
    spans[at] = least + 1
    spans[at + 1] = greatest + 1 if greatest < MOST_CHARACTERS else 0
    spans[at + 2] = soon + 1 if soon < MOST_CHARACTERS else 0
    spans[at + 3] = ever + 1 if ever < MOST_CHARACTERS else 0
    return True


@inner
def _within(parts, pattern, run):
    """The part of a pattern within the bounds of a run, -1: it holds nothing; less: what is wanted, and `BY_BOUNDS`.

    It is that of the pattern where that keeps the bounds anyway.
    """
    counts, spans = parts.counts, parts.spans
    found = _find(parts, pattern, run, 0, 0)
    if found >= 0:
        return np.int64(-1) if parts.traits[found] & NOTHING else found
    if not _measure(parts, pattern) or not _measure(parts, run):
        counts[WANTED] = run if spans[4 * pattern] else pattern
        return np.int64(NEEDS_SPAN)
    least, most = np.int64(spans[4 * pattern]) - 1, np.int64(spans[4 * pattern + 1]) - 1
    soon, ever = np.int64(spans[4 * pattern + 2]) - 1, np.int64(spans[4 * pattern + 3]) - 1
    low, high = np.int64(spans[4 * run]) - 1, np.int64(spans[4 * run + 1]) - 1
    if (high >= 0 and least > high) or (0 <= most < low):
        return np.int64(-1)
    if low <= least and (high < 0 or 0 <= most <= high):
        return pattern
    one, other = np.int64(parts.traits[pattern]), np.int64(parts.traits[run])
    if one & ABSORBS:
        return run
    if not (low <= least and (high < 0 or 0 <= soon <= high)):
        if counts[DECIDED] == 0 or counts[WANTED] != pattern or counts[WITH] != run:
            counts[WANTED], counts[WITH], counts[DECIDED] = pattern, run, 0
            return np.int64(UNDECIDED)
        fits = counts[DECIDED] == 2
        counts[DECIDED] = 0
        if not fits:
            _make(parts, pattern, run, 0, 0, WITHIN | NOTHING)
            return np.int64(-1)
    traits = one & other & NULLABLE | (one | other) & (LOOPS | TEXTUAL | SPELLED_ONCE) | one & EXPENSIVE | WITHIN
    found = _make(parts, pattern, run, 0, 0, traits | INSIDE if other & BEGUN else traits)
    if low == 0 and ever >= 0 and high - ever > FAR:
        parts.bound[found], parts.boundless[found] = high - ever, pattern
        if parts.bound[pattern] > 0:
            parts.bound[found] = min(high - ever, np.int64(parts.bound[pattern]))
            parts.boundless[found] = parts.boundless[pattern]
    return found


@inner
def _write(parts, at, low, high, to):
    """One more edge; where the next is written, or `NO_ROOM`."""
    if at >= parts.to.shape[0] or parts.counts[PARTS] + _AT_ONCE > parts.traits.shape[0]:
        return np.int64(NO_ROOM)
    parts.low[at], parts.high[at], parts.to[at] = low, high, to
    return at + 1


@inner
def _spell(parts, at, symbol, follows):
    """Write the edges of a symbol, or of the rest of one, before a part; where the next is written, or `NO_ROOM`."""
    first = np.int64(parts.symbol_first[symbol])
    for i in range(first, first + parts.symbol_count[symbol]):
        rest = np.int64(parts.symbol_to[i])
        at = _write(parts, at, parts.symbol_low[i], parts.symbol_high[i], follows)
        if at < 0:
            break
        if rest >= 0:
            parts.to[at - 1] = _begun(parts, rest, follows)
    return at


@inner
def _cross(parts, at, pattern, run):
    """Write the edges of a pattern's part beside those of a run's, both known, where something is left of the two.

    Where the next is written, or what is wanted.
    """
    first, last = np.int64(parts.edge_first[pattern]), np.int64(parts.edge_first[run])
    for i in range(first, first + parts.edge_count[pattern]):
        for j in range(last, last + parts.edge_count[run]):
            low = max(np.int64(parts.low[i]), np.int64(parts.low[j]))
            high = min(np.int64(parts.high[i]), np.int64(parts.high[j]))
            if low <= high:
                to = _within(parts, parts.to[i], parts.to[j])
                if to < -1:
                    return to
                if to >= 0:
                    at = _write(parts, at, low, high, to)
                    if at < 0:
                        return at
    return at


@inner
def _known(parts, part):
    """Are the edges of a part known?  Else they are wanted."""
    if parts.edge_first[part] < 0:
        parts.counts[WANTED] = part
        return False
    return True


@inner
def _end(parts, part, at):
    """Let the edges written up to ``at`` be those of a part; ``at`` may also be what is wanted."""
    if at < 0:
        return at
    first = np.int64(parts.counts[PART_EDGES])
    parts.edge_count[part] = at - first
    parts.edge_first[part] = first
    parts.counts[PART_EDGES] = at
    return np.int64(0)


@inner
def _expand_one(parts, part):
    """Write the edges of a part that follows from numbers: 0, or what is wanted."""
    one, other = np.int64(parts.one[part]), np.int64(parts.other[part])
    traits = np.int64(parts.traits[part])
    at = np.int64(parts.counts[PART_EDGES])
    if parts.counts[PARTS] + _AT_ONCE > parts.traits.shape[0]:
        return np.int64(NO_ROOM)
    if traits & WITHIN:
        if not _known(parts, one) or not _known(parts, other):
            return np.int64(NEEDS_EDGES)
        return _end(parts, part, _cross(parts, at, one, other))
    follows = other
    if traits & COUNTED:
        fewest, most = np.int64(parts.fewest[part]), np.int64(parts.most[part])
        follows = _counted(parts, -1 - one, other, max(fewest - 1, 0), most - 1 if most > 0 else most)
    elif parts.symbol_first[-1 - one] < 0:
        parts.counts[WANTED] = part
        return np.int64(NEEDS_EDGES)
    return _end(parts, part, _spell(parts, at, -1 - one, follows))


@inner
def expand_derived(parts, part):
    """Write the edges of a part that follows from numbers, and of those that it takes: 0, or what is wanted."""
    wanted = part
    while True:
        code = _expand_one(parts, wanted)
        after = np.int64(parts.counts[WANTED])
        if code == NEEDS_EDGES and after != wanted and parts.traits[after] & DERIVED:
            wanted = after
        elif code < 0 or wanted == part:
            return code
        else:
            wanted = part


@entry("long, long, long")
def expand_part(t, part, n):
    """Write the edges of a part, as ``given[:n]`` tells them, or its own numbers (``n`` < 0): 0, or what is wanted.

    Three entries each: `BY_SYMBOL`, symbol, the part that follows; `BY_BOUNDS`, a pattern's part, a run's; or the bytes
    ``low << 8 | high``, the rest of a symbol or -1, and the part that follows.
    """
    parts = views.parts(t)
    given = parts.given
    if n < 0:
        return expand_derived(parts, part)
    for i in range(0, n, 3):
        if given[i] == BY_BOUNDS:
            for item in (np.int64(given[i + 1]), np.int64(given[i + 2])):
                if not _known(parts, item):
                    code = np.int64(NEEDS_EDGES)
                    if parts.traits[item] & DERIVED:
                        code = expand_derived(parts, item)
                    if code < 0:
                        return code
    at = np.int64(parts.counts[PART_EDGES])
    for i in range(0, n, 3):
        kind, one, other = np.int64(given[i]), np.int64(given[i + 1]), np.int64(given[i + 2])
        if kind == BY_SYMBOL:
            at = _spell(parts, at, one, other)
        elif kind == BY_BOUNDS:
            at = _cross(parts, at, one, other)
        else:
            at = _write(parts, at, kind >> 8, kind & 255, other)
            if at >= 0 and one >= 0:
                parts.to[at - 1] = _begun(parts, one, other)
        if at < 0:
            return at
    return _end(parts, part, at)
