"""Languages of which a text may take a number of tokens at most; how many it takes, a language does not know.

The wrapper changes no text.  It gives the language states of its own, so that no lexer state is shared with the same
language elsewhere; `guided.constraint.limited` knows texts within by them, and counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import cast

from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.stepwise import Step, automaton_of, state_of, stepwise

__all__ = ["limited", "most_tokens", "whole_language"]


class _Limited:
    """The automaton of a language's derivatives, which are its states."""

    def __init__(self, most: int) -> None:
        self.most = most

    def accepts(self, state: Hashable) -> bool:
        return cast(Expr, state).nullable

    def steps(self, state: Hashable) -> Iterable[Step]:
        return edges(cast(Expr, state))


@lru_cache(maxsize=1024)
def limited(language: Expr, most: int) -> Expr:
    """The same language, a text of which takes ``most`` tokens at most, 1 or more: so many of them begin in it.

    Equal arguments give the same expression while it is among the recently used; what is made of it stays right.
    """
    if most < 1:
        raise ValueError("a text without tokens is no text")
    return stepwise(_Limited(most), language) if edges(language) else language


def most_tokens(language: Expr) -> int | None:
    """The tokens that the whole text may take of which ``language`` is left; None where they are not limited.

    >>> from guided.grammar.regular.derivative import derivative
    >>> from guided.grammar.regular.expr import literal
    >>> most_tokens(literal(b"ab")), most_tokens(derivative(limited(literal(b"ab"), 2), ord("a")))
    (None, 2)
    """
    automaton = automaton_of(language)
    return automaton.most if isinstance(automaton, _Limited) else None


def whole_language(language: Expr) -> Expr:
    """The same texts without a limit."""
    return language if most_tokens(language) is None else cast(Expr, state_of(language))
