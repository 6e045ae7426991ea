"""Combinations of languages that nothing is left to be found out about, so that no text comes to a limit.

Whether anything is left of an intersection is asked at every byte that is read.  Small ones are automata as soon as
they are met (`guided.grammar.regular.condensed`), and of one pattern with a bound on its length the lengths that it
has decide (`guided.grammar.regular.length_sets`).  All others become automata here, when their grammar is made and
with more room; what does not find room is refused then.
"""

from __future__ import annotations

from typing import cast

from guided.errors import LimitError
from guided.grammar.regular.condensed import Size, condensed, is_decided, place_of, without_bounds
from guided.grammar.regular.derivative import MOST_STEPS, possible_edges
from guided.grammar.regular.expr import Expr, Kind, alternation, concat, intersection, repeat
from guided.grammar.regular.product import n_parted

__all__ = ["Settled"]

MOST_STATES = 200_000
"""States of all products of a grammar that are not small: 0.8 s.  Of 7,959 schemas in use the largest takes 135,205."""
MOST_EXPRESSIONS = 25_000
"""New expressions for the states of their operands, and alternatives of these that are read: 0.5 to 1 s.  The largest
of the same schemas takes 1,231."""
MOST_PARTED = 50_000
"""States of one where alternatives are walked apart."""
MOST_SYMBOLS = 100_000
"""Symbols of an operand, counting repetitions."""
MAX_REMEMBERED = 10_000

_remembered: dict[Expr, Expr] = {}


class Settled:
    """The languages of one grammar, all of whose states are known to hold texts."""

    def __init__(self) -> None:
        self._size = Size(MOST_STATES, MOST_EXPRESSIONS, 0, MOST_SYMBOLS, shrinks=True)
        self._found: dict[Expr, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        """The same language; raises `LimitError` where it is too large."""
        if not _holds_combination(expr):
            return expr
        found = self._found.get(expr)
        if found is None:
            found = _remembered.get(expr) or self._settle(expr)
            if len(_remembered) >= MAX_REMEMBERED:
                _remembered.clear()
            self._found[expr] = _remembered[expr] = found
        return found

    def _settle(self, expr: Expr) -> Expr:
        match expr.kind:
            case Kind.CONCAT:
                return concat(*map(self, _parts(expr)))
            case Kind.ALTERNATION:
                return alternation(list(map(self, _parts(expr))))
            case Kind.REPEAT:
                body, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
                return repeat(self(body), low, high)
        small = condensed(expr, possible_edges)
        if is_decided(small, possible_edges):
            if expr.kind is Kind.INTERSECTION and place_of(small) is None:
                # The lengths of a pattern follow from its structure.
                return intersection([part if part.kind in _COMBINATIONS else self(part) for part in _parts(expr)])
            return expr
        if self._is_short(expr):
            return expr
        if self._size.states > 0 and self._size.expressions > 0:
            made = condensed(expr, possible_edges, self._size)
            if is_decided(made, possible_edges):
                return made
        raise LimitError(
            f"what patterns have in common takes more than {MOST_STATES} states, or {MOST_EXPRESSIONS} of one of them",
            remedy="Simplify the patterns or shorten the counted repeats that are combined here.",
        )

    def _is_short(self, expr: Expr) -> bool:
        """Does no search for what is left of it take too long, alternatives apart and lengths counted?"""
        others, low, high = (
            without_bounds(expr, possible_edges) if expr.kind is Kind.INTERSECTION else ([expr], 0, None)
        )
        length = 1 + (low if high is None else high)
        most = min(MOST_PARTED, self._size.states, MOST_STEPS // length)
        found = n_parted(intersection(others), most, possible_edges)
        self._size.spend(most if found is None else found, 0)
        return found is not None


def _parts(expr: Expr) -> tuple[Expr, ...]:
    return cast("tuple[Expr, ...]", expr.parts)


_COMBINATIONS = frozenset((Kind.INTERSECTION, Kind.COMPLEMENT))
_MADE_OF_OTHERS = frozenset((Kind.CONCAT, Kind.ALTERNATION, Kind.REPEAT, Kind.JSON_STRING))
_holding: dict[Expr, bool] = {}


def _holds_combination(expr: Expr) -> bool:
    """Is an expression made of any intersection or complement?  Remembered."""
    if len(_holding) >= 10 * MAX_REMEMBERED:
        _holding.clear()
    work = [expr]
    while work:
        item = work[-1]
        if item in _holding:
            work.pop()
            continue
        parts = [part for part in item.parts if isinstance(part, Expr)] if item.kind in _MADE_OF_OTHERS else []
        missing = [part for part in parts if part not in _holding]
        if missing:
            work += missing
            continue
        _holding[item] = item.kind in _COMBINATIONS or any(_holding[part] for part in parts)
        work.pop()
    return _holding[expr]
