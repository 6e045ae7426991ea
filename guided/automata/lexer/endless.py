"""Languages every state of which accepts infinitely many suffixes: excluding finitely many words leaves no dead end."""

from __future__ import annotations

from guided.grammar.regular.condensed import condensed, place_of
from guided.grammar.regular.derivative import possible_edges
from guided.grammar.regular.expr import Expr

__all__ = ["is_endless"]


def is_endless(language: Expr) -> bool:
    """Has every state of a minimal automaton infinitely many texts?  False also for what is none."""
    found = place_of(condensed(language, possible_edges))
    return found is not None and found[0].is_endless(found[1])
