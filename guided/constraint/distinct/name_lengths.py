"""How many bytes more end a name that must be none of some: read off the languages of undeclared names.

A state of a name's language from which a byte leads back to it can read that byte as often as one likes, and each time
it is another name.  So of a beginning behind which such a state comes, more than ``n`` names end within the way there,
``n`` times that byte, and the way from there to an end.  Where no such state comes there must be finitely many names:
where the text is no dead end one of them is not taken, and it is at most as long as the longest.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from typing import NamedTuple, cast

from guided.constraint.distinct.marked_rules import EXPLORED
from guided.errors import LimitError
from guided.grammar.ir import Grammar
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr, Kind, intersection, is_listed, listed_words
from guided.grammar.regular.rests import between

__all__ = ["NameLengths", "lengths_of"]


class NameLengths(NamedTuple):
    """Of every beginning of an undeclared name that can end as none of ``n``, within how many bytes it can."""

    most: int
    step: int

    def beyond(self, n: int) -> int:
        """So many bytes for ``n`` names."""
        return self.most + self.step * n


def lengths_of(grammar: Grammar) -> NameLengths | None:
    """What holds for all undeclared names of a grammar but those that may be any text but some; None: not known."""
    if grammar.prepared is None:
        return None
    found = [_lengths(names) for names in grammar.prepared.names]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return NameLengths(max((most for most, _ in known), default=0), max((step for _, step in known), default=0))


@lru_cache(maxsize=4096)
def _lengths(names: Expr) -> NameLengths | None:
    """Of one language of names."""
    parts = cast("tuple[Expr, ...]", names.parts) if names.kind is Kind.INTERSECTION else (names,)
    excluded = [cast(Expr, part.parts[0]) for part in parts if part.kind is Kind.COMPLEMENT]
    counted = {words: count for words in excluded if (count := _number_of_words(words)) is not None}
    # Each word that a name must not be is one more that it may turn out to be.
    kept = tuple(part for part in parts if part.kind is not Kind.COMPLEMENT or part.parts[0] not in counted)
    found = _explored(intersection(kept)) if kept else None
    if found is None:
        return None
    return NameLengths(found.beyond(sum(counted.values())), found.step)


def _number_of_words(expr: Expr) -> int | None:
    """At least how many words a language has that is written as their list; None for others."""
    match expr.kind:
        case Kind.EPSILON | Kind.LITERAL:
            return 1
        case Kind.BYTES:
            return cast(int, expr.parts[0]).bit_count()
        case Kind.SWITCH if is_listed(expr):
            return len(listed_words(expr)) or None
        case Kind.CONCAT:
            head, tail = map(_number_of_words, cast("tuple[Expr, Expr]", expr.parts))
            return None if head is None or tail is None else head * tail
        case Kind.ALTERNATION:
            found = [_number_of_words(part) for part in cast("tuple[Expr, ...]", expr.parts)]
            known = [count for count in found if count is not None]
            return sum(known) if len(known) == len(found) else None
    return None


def _explored(names: Expr) -> NameLengths | None:
    """The same by looking at all that may be left of a name; None where that is much, or a way to its end is rare."""
    sources: dict[Expr, list[tuple[int, Expr]]] = {names: []}
    repeated: dict[Expr, int] = {}
    order = [names]
    try:
        for state in order:
            if len(order) > EXPLORED:
                return None
            for low, high, target in edges(state):
                size = between(low, high)
                if target is state:
                    repeated[state] = min(size, repeated.get(state, size))
                if target not in sources:
                    sources[target] = []
                    order.append(target)
                sources[target].append((size, state))
    except LimitError:
        return None
    ends = _distances({state: 0 for state in order if state.nullable}, sources)
    found = _distances({state: ends[state] for state in repeated if state in ends}, sources)
    rare = _longest([state for state in order if state not in found])
    if rare is None:
        return None
    return NameLengths(max(rare, *found.values()) if found else rare, max(repeated.values(), default=0))


def _longest(states: list[Expr]) -> int | None:
    """Bytes of the longest text behind some states that only lead to others of them; None where there is no longest."""
    longest: dict[Expr, int] = {}
    left = dict.fromkeys(states)
    while left:
        ended = [state for state in left if all(target in longest for _, _, target in edges(state))]
        if not ended:
            return None
        for state in ended:
            del left[state]
            longest[state] = max((between(low, high) + longest[to] for low, high, to in edges(state)), default=0)
    return max(longest.values(), default=0)


def _distances(begun: dict[Expr, int], sources: dict[Expr, list[tuple[int, Expr]]]) -> dict[Expr, int]:
    """The least from each state to one of some, and what those begin with."""
    least: dict[Expr, int] = {}
    queue = [(size, number, state) for number, (state, size) in enumerate(begun.items())]
    heapq.heapify(queue)
    number = len(queue)
    while queue:
        size, _, state = heapq.heappop(queue)
        if state in least:
            continue
        least[state] = size
        for step, source in sources[state]:
            if source not in least:
                number += 1
                heapq.heappush(queue, (size + step, number, source))
    return least
