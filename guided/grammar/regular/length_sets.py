"""Lengths in characters that some texts of a language have, read off its structure.

Whether a pattern leaves any text between two lengths is mostly plain from a stretch of lengths that it surely has; else
all of them are found, as the bits of a number.  A search would go through a state for every length and every place in
the pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from guided.grammar.regular.expr import EMPTY, Edge, Expr, Kind, is_listed, listed_words
from guided.grammar.regular.lengths import CONTINUING, begins, n_begun, n_symbols

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from guided.grammar.regular.minimal import Lengths, Register

__all__ = ["certain_lengths", "has_length_between", "lengths_between", "tells_lengths"]

Span: TypeAlias = "tuple[int, int | None]"
"""From one length to another (None: endless), with all between them."""

MAX_DEPTH = 60
"""Nested expressions that are looked into."""
MAX_REMEMBERED = 20_000
_FEW_EDGES = 8
"""Of what begins in many ways, the ways that are looked at."""

_known: dict[Expr, Span | None] = {}


def has_length_between(expr: Expr, low: int, high: int | None, automata: Callable[[Expr], Lengths | None]) -> bool:
    """Is it plain that some text has ``low`` to ``high`` characters?  ``automata`` tells what is known of states."""
    found = certain_lengths(expr, automata)
    if found is None:
        return False
    return (high is None or found[0] <= high) and (found[1] is None or low <= found[1])


def certain_lengths(expr: Expr, automata: Callable[[Expr], Lengths | None], depth: int = MAX_DEPTH) -> Span | None:
    """Lengths of which there is a text each, in bytes that do not continue a character; None where none is seen."""
    if expr not in _known:
        if len(_known) >= MAX_REMEMBERED:
            _known.clear()
        if not depth:
            return None
        _known[expr] = None  # what leads to itself again tells nothing
        _known[expr] = _attained(expr, automata, depth - 1)
    return _known[expr]


def _attained(expr: Expr, automata: Callable[[Expr], Lengths | None], depth: int) -> Span | None:
    known = automata(expr)
    if known is not None:
        if known.infinite and known.around is not None:
            return known.around, None
        return known.near, known.near
    match expr.kind:
        case Kind.EPSILON:
            return 0, 0
        case Kind.LITERAL:
            return _length(cast(bytes, expr.parts[0]))
        case Kind.BYTES:
            n = int(cast(int, expr.parts[0]) & ~CONTINUING != 0)
            return n, n
        case Kind.CONCAT:
            low, high = 0, cast("int | None", 0)
            while expr.kind is Kind.CONCAT:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                found = certain_lengths(head, automata, depth)
                if found is None:
                    return None
                low, high = low + found[0], None if high is None or found[1] is None else high + found[1]
            found = certain_lengths(expr, automata, depth)
            if found is None:
                return None
            return low + found[0], None if high is None or found[1] is None else high + found[1]
        case Kind.REPEAT:
            body, fewest, most = cast("tuple[Expr, int, int | None]", expr.parts)
            found = certain_lengths(body, automata, depth)
            return ((0, 0) if fewest == 0 else None) if found is None else _repeated(found, fewest, most)
        case Kind.ALTERNATION:
            return _joined([certain_lengths(cast(Expr, part), automata, depth) for part in expr.parts])
        case Kind.SWITCH if is_listed(expr):
            return _joined([_length(word) for word in listed_words(expr)[:_FEW_EDGES]])
        case Kind.SWITCH:
            ways: list[Span | None] = [(0, 0)] if expr.nullable else []
            for low, _, target in cast("tuple[Edge, ...]", expr.parts[0])[:_FEW_EDGES]:
                found = None if target is EMPTY else certain_lengths(target, automata, depth)
                if found is not None:
                    n = int(begins(low))
                    ways.append((found[0] + n, None if found[1] is None else found[1] + n))
            return _joined(ways)
    return None


def _length(text: bytes) -> Span:
    n = n_begun(text)
    return n, n


def _repeated(span: Span, fewest: int, most: int | None) -> Span:
    """Lengths of repetitions, from a number on of which those of one more begin where those before end."""
    low, high = span
    if high is None:
        return (0, None) if low <= 1 and not fewest else (max(fewest, 1) * low, None)
    if low > 1:
        joined = fewest if high == low else max(fewest, -(-(low - 1) // (high - low)))
        if high == low or (most is not None and joined > most):
            return fewest * low, fewest * high
        fewest = joined
    elif high == 0:
        return 0, 0
    return fewest * low, None if most is None else most * high


def _joined(spans: Sequence[Span | None]) -> Span | None:
    """The longest stretch of lengths that some of them make up."""
    best: Span | None = None
    at: Span | None = None
    for span in sorted((span for span in spans if span is not None), key=lambda span: span[0]):
        if at is None or at[1] is None or span[0] > at[1] + 1:
            if at is not None and at[1] is None:
                break
            at = span
        elif span[1] is None or span[1] > at[1]:
            at = at[0], span[1]
        if best is None or at[1] is None or (best[1] is not None and at[1] - at[0] >= best[1] - best[0]):
            best = at
    return best


# -- all lengths -------------------------------------------------------------------------------------------------------

MOST_BITS = 1 << 22
"""Lengths of all states of an automaton together."""

_Places: TypeAlias = "Callable[[Expr], tuple[Register, int] | None]"


def lengths_between(expr: Expr, low: int, high: int | None, places: _Places) -> bool | None:
    """Has some text ``low`` to ``high`` characters?  None where the structure does not tell.

    ``places`` tells which expressions are states of minimal automata.
    """
    place = places(expr)
    most = high
    if most is None:
        # Of endlessly many lengths one lies in every stretch that is as long as the language has places.
        most = low + (len(_reachable(*place)) if place is not None else n_symbols(expr) + 1)
    if most >= MOST_BITS:
        return None
    found = _bits(expr, most, places, {})
    if found is None:
        return None
    return found >> low != 0 or (False if high is not None or place is not None else None)


def tells_lengths(register: Register, start: int, low: int, high: int | None) -> bool:
    """Can `lengths_between` tell of every state that one leads to, where so many characters are still to be read?"""
    states = _reachable(register, start)
    if len(states) * (low + len(states) if high is None else high) <= MOST_BITS:
        return True
    known = map(register.lengths, states)
    if high is None:
        return all(each.infinite for each in known)
    # So long a stretch is left as long as one must still read on.
    return all(each.around is not None and each.around <= high - low for each in known)


def _bits(expr: Expr, most: int, places: _Places, known: dict[Expr, int | None]) -> int | None:
    """A bit for each length up to ``most``."""
    if expr not in known:
        known[expr] = None  # what leads to itself is not told by its structure
        known[expr] = _all_lengths(expr, most, places, known)
    return known[expr]


def _all_lengths(expr: Expr, most: int, places: _Places, known: dict[Expr, int | None]) -> int | None:
    place = places(expr)
    if place is not None:
        return _of_automaton(*place, most)
    match expr.kind:
        case Kind.EPSILON:
            return 1
        case Kind.LITERAL:
            n = n_begun(cast(bytes, expr.parts[0]))
            return 1 << n if n <= most else 0
        case Kind.BYTES:
            return 1 << int(cast(int, expr.parts[0]) & ~CONTINUING != 0)
        case Kind.CONCAT:
            total = 1
            while expr.kind is Kind.CONCAT:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                found = _bits(head, most, places, known)
                if found is None:
                    return None
                total = _sums(total, found, most)
            found = _bits(expr, most, places, known)
            return None if found is None else _sums(total, found, most)
        case Kind.REPEAT:
            body, fewest, greatest = cast("tuple[Expr, int, int | None]", expr.parts)
            found = _bits(body, most, places, known)
            if found is None:
                return None
            more = most + 1 if greatest is None else greatest - fewest
            return _sums(_times(found, fewest, most), _times(found | 1, more, most), most)
        case Kind.ALTERNATION:
            return _either([_bits(cast(Expr, part), most, places, known) for part in expr.parts])
        case Kind.SWITCH if is_listed(expr):
            total = 0
            for word in listed_words(expr):
                n = n_begun(word)
                total |= 1 << n if n <= most else 0
            return total
        case Kind.SWITCH:
            total = int(expr.nullable)
            for low, _, target in cast("tuple[Edge, ...]", expr.parts[0]):
                found = 0 if target is EMPTY else _bits(target, most, places, known)
                if found is None:
                    return None
                total |= found << int(begins(low))
            return total & ((2 << most) - 1)
    return None


def _either(ways: Sequence[int | None]) -> int | None:
    total = 0
    for way in ways:
        if way is None:
            return None
        total |= way
    return total


def _sums(one: int, other: int, most: int) -> int:
    """The lengths of a text of one language and then one of the other: shifted by all of a stretch at a time."""
    if one.bit_count() > other.bit_count():
        one, other = other, one
    within = (2 << most) - 1
    total = start = 0
    while one:
        skip = (one & -one).bit_length() - 1
        start, one = start + skip, one >> skip
        n = (~one & (one + 1)).bit_length() - 1
        if start > most:
            break
        stretch, done = other << start & within, 1
        while done < min(n, most + 1):
            stretch |= stretch << min(done, n - done) & within
            done *= 2
        total |= stretch
        start, one = start + n, one >> n
    return total


def _times(lengths: int, n: int, most: int) -> int:
    """The lengths of so many texts, one after the other."""
    total, power = 1, lengths
    while n and total:
        if n & 1:
            total = _sums(total, power, most)
        n >>= 1
        before, power = power, _sums(power, power, most) if n else power
        if before == power and power & 1:
            # More of them are no further lengths.
            return _sums(total, power, most) if n else total
    return total


def _reachable(register: Register, start: int) -> list[int]:
    seen = {start: None}
    for state in (queue := [start]):
        for _, _, target in register.row(state):
            if target not in seen:
                seen[target] = None
                queue.append(target)
    return queue


def _of_automaton(register: Register, start: int, most: int) -> int | None:
    states = _reachable(register, start)
    if len(states) * most > MOST_BITS:
        return None
    within = (2 << most) - 1
    ways = {state: {(target, int(begins(low))) for low, _, target in register.row(state)} for state in states}
    found = {state: int(register.lengths(state).near == 0) for state in states}
    before: dict[int, set[int]] = {state: set() for state in states}
    for state, targets in ways.items():
        for target, _ in targets:
            before[target].add(state)
    work = dict.fromkeys(reversed(states))
    while work:
        state, _ = work.popitem()
        bits = found[state]
        for target, n in ways[state]:
            bits |= found[target] << n
        bits &= within
        if bits != found[state]:
            found[state] = bits
            work.update(dict.fromkeys(before[state]))
    return found[start]
