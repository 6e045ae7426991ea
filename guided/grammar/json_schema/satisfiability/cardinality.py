"""How many different values a need has: bounds that are equal wherever the count is easy, and never wrong.

Values are counted, not texts: ``1`` and ``1.0`` are one, and so are the spellings of a string.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, cast

from guided.errors import LimitError
from guided.grammar.json_schema.numbers.ranges import NumberRange
from guided.grammar.json_schema.satisfiability.graph import Graph, living_numbers, strings_alive
from guided.grammar.json_schema.sets.extras import few_words
from guided.grammar.json_schema.sets.shape import ArrayShape, Need, ObjectShape, Shape
from guided.grammar.json_schema.sets.strings import StringSet
from guided.grammar.regular.derivative import edges, inhabited
from guided.grammar.regular.expr import Expr, Kind

MANY = 1 << 62
"""As good as infinitely many: no array has so many items."""
_CHARACTERS = 0x110000 - 0x800
_EXPLORED = 2000
"""States of a string's automaton up to which its words are counted."""
_LENGTHS = 1000
"""Lengths of arrays that are looked at one by one."""
_ONE_BY_ONE = 1000
"""Numbers that are looked at one by one where some are to be avoided."""

Bounds: TypeAlias = "tuple[int, int]"
"""At least and at most so many."""


class Cardinality:
    """Counts for the needs of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[Need, Bounds] = {}

    def of(self, need: Need) -> Bounds:
        """How many values a need has; a need that is being counted already may have any number."""
        if need not in self._graph.alive:
            return 0, 0
        found = self._known.get(need)
        if found is None:
            self._known[need] = (1, MANY)
            found = self._known[need] = self._shape(self._graph.shapes[need])
        return found

    def _shape(self, shape: Shape) -> Bounds:
        literals = shape.null + shape.true + shape.false
        parts = [
            (literals, literals),
            _numbers(living_numbers(shape)),
            _strings(shape.strings) if strings_alive(shape) else (0, 0),
            _either([self._array(array) for array in shape.arrays if self._graph.array_alive(array)]),
            _either([self._object(thing) for thing in shape.objects if self._graph.object_alive(thing)]),
        ]
        return _capped(sum(low for low, _ in parts), sum(high for _, high in parts))

    def _array(self, array: ArrayShape) -> Bounds:
        if array.counts or array.unique is False:
            return 1, MANY
        rest = self.of(array.rest)
        longest = array.high
        if longest is None:
            if not rest[0]:
                longest = len(array.prefix)
            elif not array.unique or rest[0] == MANY:
                return MANY, MANY
            else:
                longest = len(array.prefix) + rest[1]
        low = high = 0
        least = most = 1
        for length in range(longest + 1):
            if length >= array.low:
                low, high = low + least, high + most
            if low >= MANY or not most or (not least and high >= MANY):
                break
            if length == _LENGTHS:
                return max(low, 1), MANY
            item = self.of(array.item(length))
            taken = length if array.unique else 0
            least *= max(item[0] - taken, 0)
            # Of items that are all of one need, earlier ones have taken as many; of others nothing is known.
            same = length - len(array.prefix) if array.unique and length > len(array.prefix) else 0
            most *= max(item[1] - same, 0)
            least, most = _capped(least, most)
        return _capped(low, high)

    def _object(self, thing: ObjectShape) -> Bounds:
        least = most = 1
        for name, need in thing.declared.items():
            low, high = self.of(need)
            optional = name not in thing.required
            most = min(most * (high + optional), MANY)
            if not optional:
                least = min(least * low, MANY)
            elif thing.high is None and thing.low <= len(thing.required):
                least = min(least * (low + 1), MANY)
        extras = self._graph.living_extras(thing)
        if extras and (thing.high is None or thing.high > len(thing.required)):
            most = MANY
            if not thing.some and thing.low <= len(thing.required) + 1:
                least = max(least, max(count_words(extra.names)[0] for extra in extras))
        return (1 if thing.some else least), most


def _capped(low: int, high: int) -> Bounds:
    return min(low, MANY), min(high, MANY)


def _either(parts: list[Bounds]) -> Bounds:
    """A union whose parts may overlap."""
    return _capped(max((low for low, _ in parts), default=0), sum(high for _, high in parts))


def _numbers(ranges: list[NumberRange]) -> Bounds:
    single = {item.low for item in ranges if item.low is not None and item.low == item.high}
    parts = [_range(item) for item in ranges if item.low is None or item.low != item.high]
    return _either([(len(single), len(single)), *parts])


def _range(item: NumberRange) -> Bounds:
    if item.step is None and item.notation.name != "PLAIN":
        return MANY, MANY
    if item.low is None or item.high is None:
        # Numbers to avoid leave infinitely many others, or none at all.
        return (MANY, MANY) if not item.avoid else (1, MANY)
    step = item.step or Fraction(1)
    first, last = -(-item.low // step), item.high // step
    first += item.low_open and first * step == item.low
    last -= item.high_open and last * step == item.high
    count = max(last - first + 1, 0)
    if not item.avoid:
        return _capped(count, count)
    looked_at = min(count, _ONE_BY_ONE)
    good = sum(all((first + n) * step % avoid for avoid in item.avoid) for n in range(looked_at))
    return _capped(good, good + count - looked_at)


def _strings(sets: tuple[StringSet, ...]) -> Bounds:
    words: set[str] = set()
    parts = []
    for item in sets:
        if item.words is not None:
            words |= item.words
        elif item.regex is not None or item.host is not None:
            parts.append((MANY if item.is_checked() else 1, MANY))
        elif item.language is None and item.hostname is None:
            parts.append(_lengths(item))
        else:
            few = few_words(item.content())
            if few is not None:
                words.update(few)
            else:
                parts.append(count_words(item.content()))
    return _either([(len(words), len(words)), *parts])


def _lengths(item: StringSet) -> Bounds:
    if item.high is None or item.high > 3:
        return MANY, MANY
    count = sum(_CHARACTERS**length for length in range(item.low, item.high + 1))
    return count - sum(item.low <= len(word) <= item.high for word in item.without), count


@lru_cache(maxsize=4096)
def count_words(language: Expr) -> Bounds:
    """How many strings a language has."""
    start = language
    try:
        if not inhabited(start):
            return 0, 0
        if _repeats(start):
            return MANY, MANY
        after: dict[Expr, list[tuple[int, Expr]]] = {}
        work = [start]
        while work:
            state = work.pop()
            if state in after:
                continue
            after[state] = [(high - low + 1, target) for low, high, target in edges(state)]
            if len(after) > _EXPLORED:
                return 1, MANY
            work.extend(target for _, target in after[state])
    except LimitError:
        return 1, MANY
    waiting = {state: len(targets) for state, targets in after.items()}
    before: dict[Expr, list[Expr]] = {state: [] for state in after}
    for state, targets in after.items():
        for _, target in targets:
            before[target].append(state)
    counts: dict[Expr, int] = {}
    ready = [state for state, count in waiting.items() if count == 0]
    for state in ready:
        counts[state] = state.nullable + sum(times * counts[target] for times, target in after[state])
        for source in before[state]:
            waiting[source] -= 1
            if waiting[source] == 0:
                ready.append(source)
    # Every state goes on to some word, so what waits for ever is on a cycle or leads to one.
    return _capped(counts[start], counts[start]) if start in counts else (MANY, MANY)


def _repeats(expr: Expr) -> bool:
    """Is it plain to see that an inhabited language is infinite: does it end in, or hold side by side, a repetition?"""
    if expr.kind is Kind.REPEAT:
        return expr.parts[2] is None and inhabited(cast(Expr, expr.parts[0]))
    if expr.kind is Kind.CONCAT:
        return any(_repeats(cast(Expr, part)) for part in expr.parts)
    if expr.kind is Kind.ALTERNATION:
        return any(inhabited(part) and _repeats(part) for part in cast("tuple[Expr, ...]", expr.parts))
    return False
