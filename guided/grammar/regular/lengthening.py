"""How many more bytes end a text of a language as none of some: read off what may be left of its texts.

A state from which some bytes lead back to it can read those as often as one likes, and each time it is another text.
So of a beginning behind which such a state comes, more than ``n`` texts end within the way there, as many bytes as make
more than ``n`` words of these, and the way from there to an end.  Where no such state comes there must be finitely many
texts: where one is left that is none of the ``n``, it is at most as long as the longest.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, cast

from guided.errors import LimitError
from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.condensed import is_large
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr, Kind, intersection, is_listed, listed_words
from guided.grammar.regular.rests import between, bytes_of

__all__ = ["Lengthening", "larger", "lengthening", "without_listed"]

_ONE, _NINE = 0x31, 0x39
_PLAIN = tuple(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
"""Characters that are one byte of a string each."""
_PLAIN_UP_TO = (0, *accumulate(byte in _PLAIN for byte in range(256)))
_DIGITS_UP_TO = (0, *accumulate(_ONE <= byte <= _NINE for byte in range(256)))
"""How many there are, and how many digits but zero, below each byte."""

_BEGUN = 3
"""The most bytes that a character lacks of which one was read."""

EXPLORED = 200
"""States of a language that are looked at, 15 microseconds each; a date's are thousands."""

EXPLORED_LARGE = 16
"""Of these, what is left of combinations that are too large to be automata: 150 microseconds each, and one that has
more has mostly too many."""


class Lengthening(NamedTuple):
    """Of every beginning of a text that can end as none of ``n``, within how many bytes it can."""

    most: int
    step: int
    """Bytes of a character more, of which there may be as many as one likes; 0 where there is none."""
    ways: int = 1
    """At least so many characters may be each of them."""
    left_out: int = 0
    """Texts that it must not be either."""

    def beyond(self, n: int) -> int:
        """So many bytes for ``n`` texts."""
        n += self.left_out
        if self.ways < 2 or not self.step:
            return self.most + self.step * n
        size, words = 0, 1
        while words <= n:
            words *= self.ways
            size += 1
        return self.most + self.step * size


def larger(*each: Lengthening) -> Lengthening:
    """What is enough for any of some languages."""
    steps = [one for one in each if one.step]
    return Lengthening(
        max(one.most for one in each), max(one.step for one in each), min((one.ways for one in steps), default=1),
        max((one.left_out for one in steps), default=0),
    )  # fmt: skip


@lru_cache(maxsize=4096)
def lengthening(texts: Expr, by_digits: bool = False) -> Lengthening | None:
    """What holds for a language of texts, in bytes of a JSON string; None where it is not seen.

    ``by_digits``: of numbers, which a zero more need not make others.
    """
    whole, left_out = without_listed(texts)
    found = None if by_digits else _of_run(whole)
    if found is None:
        found = _explored(whole, by_digits)
    return None if found is None else found._replace(left_out=left_out)


def without_listed(texts: Expr) -> tuple[Expr, int]:
    """A language without the lists of words that are taken from it, and at most how many words those are."""
    kept: list[Expr] = []
    left_out = 0
    for part in cast("tuple[Expr, ...]", texts.parts) if texts.kind is Kind.INTERSECTION else (texts,):
        words = _number_of_words(cast(Expr, part.parts[0])) if part.kind is Kind.COMPLEMENT else None
        if words is None:
            kept.append(part)
        else:
            left_out += words
    return intersection(tuple(kept)), left_out


def _number_of_words(expr: Expr) -> int | None:
    """At most how many words a language has that is written as their list; None for others."""
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


def _of_run(texts: Expr) -> Lengthening | None:
    """Of a run of single characters up to some number of them; None of anything else.

    It is as if there were no bound: where fewer characters may come than make enough words, no text has more.
    """
    if texts.kind is not Kind.REPEAT:
        return None
    body, low, high = cast("tuple[Expr, int, int | None]", texts.parts)
    is_any = body is any_text()[0]
    if high is None or not (is_any or body.kind is Kind.BYTES):
        return None
    characters = bytes_of(body)
    # What is left of a run may have to be spelled in its longest characters; one of more bytes may have begun.
    step = max((between(byte, byte) for byte in range(256) if characters >> byte & 1), default=0)
    ways = sum(characters >> byte & 1 for byte in _PLAIN)
    return Lengthening(low * step + (_BEGUN if is_any else 0), step, ways) if ways else None


def _explored(texts: Expr, by_digits: bool) -> Lengthening | None:
    """The same by looking at all that may be left of a text; None where that is much, or there are other ways on."""
    sources: dict[Expr, list[tuple[int, Expr]]] = {texts: []}
    ways: dict[Expr, list[tuple[int, Expr]]] = {}
    repeated: dict[Expr, int] = {}
    ways_back: dict[Expr, int] = {}
    order = [texts]
    n_large = 0
    up_to = _DIGITS_UP_TO if by_digits else _PLAIN_UP_TO
    try:
        for state in order:
            n_large += is_large(state)
            if len(order) > EXPLORED or n_large > EXPLORED_LARGE:
                return None
            found = ways[state] = []
            for low, high, target in edges(state):
                size = between(low, high)
                found.append((size, target))
                if target is state and (not by_digits or (low <= _NINE and high >= _ONE)):
                    repeated[state] = min(size, repeated.get(state, size))
                    ways_back[state] = ways_back.get(state, 0) + up_to[high + 1] - up_to[low]
                if target not in sources:
                    sources[target] = []
                    order.append(target)
                sources[target].append((size, state))
    except LimitError:
        return None
    ends = _distances({state: 0 for state in order if state.nullable}, sources)
    open_ended = _distances({state: ends[state] for state in repeated if state in ends}, sources)
    rare = _longest({state: ways[state] for state in order if state not in open_ended})
    if rare is None:
        return None
    most = max(rare, *open_ended.values()) if open_ended else rare
    return Lengthening(most, max(repeated.values(), default=0), max(1, min(ways_back.values(), default=1)))


def _longest(ways: dict[Expr, list[tuple[int, Expr]]]) -> int | None:
    """Bytes of the longest text behind some states that only lead to others of them; None where there is no longest."""
    longest: dict[Expr, int] = {}
    left = dict.fromkeys(ways)
    while left:
        ended = [state for state in left if all(target in longest for _, target in ways[state])]
        if not ended:
            return None
        for state in ended:
            del left[state]
            longest[state] = max((size + longest[to] for size, to in ways[state]), default=0)
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
