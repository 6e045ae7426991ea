"""How far lexer states are from the end of a match, in bytes, and a shortest text that gets there.

Inside JSON strings the distance is that of the shortest spelling.  Searches are by Dijkstra over the edges of a
`StateTable`, which read the text of a string, not its bytes: a character that must be escaped costs what its
escape does.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import cast

import numpy as np

from guided.automata.lexer.first_texts import first_text
from guided.automata.lexer.runs import run_of
from guided.automata.lexer.spelling import written_edges
from guided.automata.lexer.states import StateTable
from guided.grammar.regular.derivative import least_length
from guided.grammar.regular.expr import Expr, Kind
from guided.grammar.regular.json_text import LONG_ESCAPES, UTF8_BLOCKS
from guided.grammar.regular.rests import between, closing_left, fewest_bytes, most_within
from guided.kernels.data.layout import CANONICAL, CLOSES, FAR, MATCHED, STRING
from guided.kernels.lexing.strings import DIGITS, ESCAPE, HALF, HALF_DIGITS, HALF_ESCAPE

MEASURED = 512
"""States explored to bound how far the end of a match can be; beyond, token effects are not used under a budget."""

MEASURED_FIXED = 64
"""The same from states that do not loop, for which effects are not used anyway: then only a token that ends inside an
escape wants to know, and a date's automaton has thousands of states of 0.2 ms each."""

_ESCAPED = 12
"""No escape has more bytes."""


def minimum(table: StateTable, state: int) -> int:
    """Fewest bytes from a state to the end of a match; at a start state of a terminal, at least one."""
    found = int(table.arrays.minimum[state])
    if found < 0:
        with table.lock:
            if table.arrays.decode[state]:
                found = _inside_escape(table, state)
            else:
                whole = table.whole(state)
                told = _told(table, whole)
                found = _reach(table, whole) if told is None else told
            table.arrays.minimum[state] = found
    return found


def minimum_owing(table: StateTable, state: int, obligation: int) -> int:
    """As `minimum`, for a run that must not end as a word: where it could only close as one, some character more."""
    least = minimum(table, state)
    if obligation and table.arrays.mode[state] & table.arrays.mode[obligation] & CLOSES:
        least += 1
    return least


def measure(table: StateTable, state: int) -> None:
    """Set ``minimum`` and ``widest`` of a state: by exploring what is reachable, up to `MEASURED` states."""
    with table.lock:
        if table.arrays.widest[state] >= 0 and table.arrays.minimum[state] >= 0:
            return
        if table.arrays.decode[state]:
            base = int(table.arrays.base[state])
            widest = _widest(table, base)
        else:
            whole = table.whole(state)
            bound = _bound_of_run(table, whole)
            widest = _explored(table, whole) if bound is None else bound
        minimum(table, state)
        table.arrays.widest[state] = widest


def bound_widest(table: StateTable, state: int) -> None:
    """Set ``widest`` of a state where that is not known: to what structure says, which costs no search.

    A place behind the state is behind some of its parts, each of which ends within what it takes from anywhere inside.
    """
    arrays = table.arrays
    if arrays.widest[state] >= 0:
        return
    parts = [] if arrays.decode[state] or arrays.owes[state] else table.parts.members(state)
    most = 0 if parts else FAR
    for content, mode in parts:
        inside = bool(mode & STRING)
        left = most_within(content, inside)
        most = max(most, left + (closing_left(content, bool(mode & CANONICAL)) if inside else 0))
    arrays.widest[state] = min(most, FAR)


def _widest(table: StateTable, state: int) -> int:
    if table.arrays.widest[state] < 0:
        measure(table, state)
    return int(table.arrays.widest[state])


def _bound_of_run(table: StateTable, state: int) -> int | None:
    """At least the widest of a run with bounds, None for anything else.

    From each of its states the unbounded run has no farther to its end, but for the bodies that ``low`` still asks for;
    and ``high`` never makes the way longer.  Exploring would take some states for every character that is allowed.
    """
    key = table.key(state)
    run = run_of(key) if isinstance(key, Expr) else None
    if run is None or (run.low == 0 and run.high is None):
        return None
    each = minimum(table, table.add(run.once)) if run.low else 0
    return _widest(table, table.add(run.unbounded)) + run.low * each


def _explored(table: StateTable, start: int) -> int:
    """The widest of a state that is not inside an escape, `FAR` where that takes too long."""
    order = [start]
    sources: dict[int, list[tuple[int, int]]] = {start: []}
    table.expand(start)
    most = MEASURED if table.arrays.loops[start] else MEASURED_FIXED
    computed = 0
    for item in order:
        # States inside literals are written with them; only the others are work.
        computed += table.is_derived(item)
        if computed > most or len(order) > MEASURED:
            break
        for price, target in _steps(table, item):
            if target not in sources:
                sources[target] = []
                order.append(target)
            sources[target].append((price, item))
    else:
        least: dict[int, int] = {}
        queue = [(0, item) for item in order if table.arrays.tag[item] >= 0]
        heapq.heapify(queue)
        while queue:
            distance, item = heapq.heappop(queue)
            if item not in least:
                least[item] = distance
                for price, source in sources[item]:
                    if source not in least:
                        heapq.heappush(queue, (distance + price, source))
        spelled = any(table.arrays.mode[item] & STRING for item in order)
        return max(least.values()) + spelled * _ESCAPED
    return FAR


def _steps(table: StateTable, state: int) -> Iterator[tuple[int, int]]:
    """Price and target of each step: an edge, or the closing quote of a string."""
    state = table.whole(state)
    inside = table.arrays.mode[state] & STRING
    for low, high, target in table.edges(state):
        yield between(low, high) if inside else 1, table.whole(target)
    if inside and table.arrays.mode[state] & CLOSES:
        yield 1, MATCHED


def _reach(table: StateTable, start: int) -> int:
    """Bytes on the way from a state to the nearest end of a match: best first, without a bound.

    Kept for all states on that way: whoever follows it asks for each of them, and a way may have thousands.

    What an expression says of the length of its texts is never too much, so the first end that is met is the nearest
    (Hart, Nilsson and Raphael, 1968); where it says nothing, this is Dijkstra's algorithm.  A state that was passed on
    the way out has at least what is left of the whole way, which later searches go by (Koenig and Likhachev, "Adaptive
    A*", 2005): a date's are asked for one character after another.
    """
    nearest = {start: 0}
    before: dict[int, int] = {}
    queue = [(_left(table, start), 0, start)]
    while queue:
        _, behind, item = heapq.heappop(queue)
        if -behind > nearest[item]:
            continue
        known = _told(table, item)
        if known is not None:
            total = known - behind
            for passed, distance in nearest.items():
                table.at_least[passed] = max(table.at_least.get(passed, 0), total - distance)
            table.arrays.minimum[item] = known
            while item != start:
                item = before[item]
                table.arrays.minimum[item] = total - nearest[item]
            return total
        for price, target in _steps(table, item):
            distance = price - behind
            if distance < nearest.get(target, FAR):
                nearest[target], before[target] = distance, item
                heapq.heappush(queue, (distance + _left(table, target), -distance, target))
    return FAR


def _told(table: StateTable, state: int) -> int | None:
    """The distance of a state, where it is known or what the state stands for tells; None where it is searched for.

    So it is of nearly all patterns and formats: what no text falls short of, some text comes by with.
    """
    if table.arrays.tag[state] >= 0:
        return 0
    known = int(table.arrays.minimum[state])
    if known >= 0:
        return known
    key = table.key(state)
    if key is None:
        is_inside = bool(table.arrays.mode[state] & STRING)
        ways = [fewest_bytes(content, is_inside) + is_inside for content, _ in table.parts.members(state)]
        enough = min(ways, default=FAR)
    else:
        enough = fewest_bytes(key, False) if isinstance(key, Expr) else FAR
    return enough if enough == _left(table, state) else None


def _left(table: StateTable, state: int) -> int:
    """A lower bound on the bytes from a state to the end of a match, read off what it stands for."""
    known = int(table.arrays.minimum[state])
    if known >= 0:
        return known
    known = table.at_least.get(state, -1)
    return _shortest_of(table, state) if known < 0 else known


def _shortest_of(table: StateTable, state: int) -> int:
    """What the expression says, or its parts."""
    key = table.key(state)
    if key is None:
        # Without the closing quote all states were a byte too near: each was looked at before the first end.
        return table.parts.least(state) + bool(table.arrays.mode[state] & STRING)
    left = 0
    while isinstance(key, Expr) and key.kind is Kind.CONCAT:
        head, key = cast("tuple[Expr, Expr]", key.parts)
        left += least_length(head)
    if isinstance(key, Expr):
        left += 1 + least_length(cast(Expr, key.parts[0])) if key.kind is Kind.JSON_STRING else least_length(key)
    return left


def _inside_escape(table: StateTable, state: int) -> int:
    """Fewest bytes from inside an escape: the rest of the escape, and from the character that is nearest to the end."""
    base, decode = int(table.arrays.base[state]), int(table.arrays.decode[state])
    best = FAR
    for rest, low, high in spelled(decode, bool(table.arrays.mode[base] & CANONICAL)):
        for first, last in utf8_blocks(low, high):
            best = min(best, rest + _least_between(table, base, first, last))
    return best


def spelled(decode: int, canonical: bool) -> list[tuple[int, int, int]]:
    """``(bytes left, low, high)``: the characters that an escape can still become, by the bytes that it then takes.

    ``canonical``: where each character has one spelling, that of ``json.dumps``.
    """
    kind, count, value, half = decode & 7 << 24, decode >> 12 & 3, decode & 0xFFF, decode >> 14 & 0x3FF
    if canonical:
        if kind == ESCAPE:
            return [*((1, code, code) for code in b'"\\\b\f\n\r\t'), *((5, low, high) for low, high in LONG_ESCAPES)]
        low = value << 4 * (4 - count)
        high = low + (1 << 4 * (4 - count)) - 1
        cut = [(4 - count, max(low, first), min(high, last)) for first, last in LONG_ESCAPES]
        return [item for item in cut if item[1] <= item[2]]
    if kind == ESCAPE:
        short = [(1, code, code) for code in b'"\\/\b\f\n\r\t']
        return [*short, (5, 0, 0xD7FF), (5, 0xE000, 0xFFFF), (11, 0x10000, 0x10FFFF)]
    if kind == DIGITS:
        low = value << 4 * (4 - count)
        high = low + (1 << 4 * (4 - count)) - 1
        left = 4 - count
        first, last = max(low, 0xD800), min(high, 0xDBFF)
        found = [(left, max(low, a), min(high, b)) for a, b in ((0, 0xD7FF), (0xE000, 0xFFFF))]
        if first <= last:
            found.append((left + 6, 0x10000 + ((first & 0x3FF) << 10), 0x10000 + ((last & 0x3FF) << 10) + 0x3FF))
        return [item for item in found if item[1] <= item[2]]
    base = 0x10000 + (half << 10)
    if kind in (HALF, HALF_ESCAPE):
        return [(6 if kind == HALF else 5, base, base + 0x3FF)]
    assert kind == HALF_DIGITS
    low = max(value << 4 * (4 - count), 0xDC00)
    high = min(((value + 1) << 4 * (4 - count)) - 1, 0xDFFF)
    return [(4 - count, base + (low & 0x3FF), base + (high & 0x3FF))]


def utf8_blocks(low: int, high: int) -> Iterator[tuple[bytes, bytes]]:
    """The UTF-8 of a range's ends, cut where its length changes."""
    for start, stop in UTF8_BLOCKS:
        first, last = max(low, start), min(high, stop)
        if first <= last:
            yield chr(first).encode(), chr(last).encode()


def _least_between(table: StateTable, state: int, first: bytes, last: bytes) -> int:
    """The least distance to an end after a character between two of equal length; the character itself is free."""
    if not first:
        return minimum(table, state)
    best = FAR
    for low, high, target in table.edges(state):
        target = table.whole(target)
        if max(low, first[0] + 1) <= min(high, last[0] - 1):
            # Any later bytes do, and each costs one from there.
            best = min(best, minimum(table, target) - len(first) + 1)
        if first[0] == last[0] and low <= first[0] <= high:
            best = min(best, _least_between(table, target, first[1:], last[1:]))
            continue
        if low <= first[0] <= high:
            best = min(best, _least_between(table, target, first[1:], b"\xbf" * (len(first) - 1)))
        if low <= last[0] <= high:
            best = min(best, _least_between(table, target, b"\x80" * (len(last) - 1), last[1:]))
    return best


def shortest(table: StateTable, state: int) -> bytes:
    """A shortest text from a state to the end of a match, the first in byte order."""
    known = _read_off(table, state)
    if known:
        return known
    text = bytearray()
    left = minimum(table, state)
    while left:
        left -= 1
        byte, state = next((low, to) for low, _, to in written_edges(table, state) if minimum(table, to) == left)
        text.append(byte)
    return bytes(text)


def _read_off(table: StateTable, state: int) -> bytes | None:
    """The same, where what the state stands for tells."""
    if table.arrays.decode[state]:
        return None
    key = table.key(state)
    if key is not None:
        return first_text(key, False) if isinstance(key, Expr) else None
    is_inside = bool(table.arrays.mode[state] & STRING)
    texts = [first_text(content, is_inside) for content, _ in table.parts.members(state)]
    known = [text + b'"' * is_inside for text in texts if text is not None]
    return min(known, key=lambda text: (len(text), text)) if known and len(known) == len(texts) else None


def tags(table: StateTable, state: int) -> list[int]:
    """The terminals in whose match a state may end, found within `MEASURED` states, in ascending order."""
    order = [state]
    seen = {state}
    for item in order:
        if len(order) > MEASURED:
            break
        for _, target in _steps(table, item):
            if target not in seen:
                seen.add(target)
                order.append(target)
    return sorted(set(np.asarray(table.arrays.tag)[order].tolist()) - {-1})
