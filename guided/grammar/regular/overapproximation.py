"""Over-approximations: supersets of few states, which show soon that a language is disjoint from another.

An automaton that is made state by state may have thousands of states.  A search goes through all of them before it can
say that none leads to a match; a superset with few states often says it as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import cast

from guided.grammar.regular.expr import Expr, Kind, alternation, concat, intersection, repeat, sequence
from guided.grammar.regular.stepwise import automaton_of, state_of

MAX_REMEMBERED = 10_000
"""Expressions whose over-approximations are remembered, some 100 bytes each."""

_found: dict[Expr, Expr] = {}


class Overapproximated(ABC):
    """An automaton for `stepwise` that has an over-approximation."""

    @abstractmethod
    def overapproximation(self, state: Hashable) -> Expr | None:
        """A language of few states that holds all that a state accepts; None where its own are few."""


def overapproximation(expr: Expr) -> Expr:
    """A superset of the language: its automata are replaced by their over-approximations, if they have any."""
    found = _found.get(expr)
    if found is None:
        if len(_found) >= MAX_REMEMBERED:
            _found.clear()
        found = _found[expr] = _overapproximation(expr)
    return found


def _overapproximation(expr: Expr) -> Expr:
    match expr.kind:
        case Kind.RECURSION:
            automaton = automaton_of(expr)
            rough = automaton.overapproximation(state_of(expr)) if isinstance(automaton, Overapproximated) else None
            return expr if rough is None else rough
        case Kind.CONCAT:
            items = sequence(expr)
            rougher = list(map(overapproximation, items))
            return expr if rougher == items else concat(*rougher)
        case Kind.REPEAT:
            body, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
            rough = overapproximation(body)
            return expr if rough is body else repeat(rough, low, high)
        case Kind.ALTERNATION | Kind.INTERSECTION:
            operands = cast("tuple[Expr, ...]", expr.parts)
            rougher = list(map(overapproximation, operands))
            if rougher == [*operands]:
                return expr
            return alternation(rougher) if expr.kind is Kind.ALTERNATION else intersection(rougher)
        case _:
            return expr
