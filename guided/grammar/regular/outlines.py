"""Languages of few states that hold others, to see soon that these have nothing in common with a third.

An automaton that is made state by state may have thousands, all of which a search goes through before it can say that
none of them leads to a match.  What such an automaton is roughly like often says it as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import cast

from guided.grammar.regular.expr import Expr, Kind, alternation, concat, intersection, repeat, sequence
from guided.grammar.regular.stepwise import automaton_of, state_of

MAX_REMEMBERED = 10_000
"""Expressions whose outlines are remembered, some 100 bytes each."""

_outlines: dict[Expr, Expr] = {}


class Outlined(ABC):
    """An automaton for `stepwise` that has an outline."""

    @abstractmethod
    def outline(self, state: Hashable) -> Expr | None:
        """A language of few states that holds all that a state accepts; None where its own are few."""


def outline(expr: Expr) -> Expr:
    """The language with automata replaced by their outlines, itself where it has none: it holds all that it held."""
    found = _outlines.get(expr)
    if found is None:
        if len(_outlines) >= MAX_REMEMBERED:
            _outlines.clear()
        found = _outlines[expr] = _outline(expr)
    return found


def _outline(expr: Expr) -> Expr:
    match expr.kind:
        case Kind.RECURSION:
            automaton = automaton_of(expr)
            rough = automaton.outline(state_of(expr)) if isinstance(automaton, Outlined) else None
            return expr if rough is None else rough
        case Kind.CONCAT:
            items = sequence(expr)
            rougher = list(map(outline, items))
            return expr if rougher == items else concat(*rougher)
        case Kind.REPEAT:
            body, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
            rough = outline(body)
            return expr if rough is body else repeat(rough, low, high)
        case Kind.ALTERNATION | Kind.INTERSECTION:
            operands = cast("tuple[Expr, ...]", expr.parts)
            rougher = list(map(outline, operands))
            if rougher == [*operands]:
                return expr
            return alternation(rougher) if expr.kind is Kind.ALTERNATION else intersection(rougher)
        case _:
            return expr
