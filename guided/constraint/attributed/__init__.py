"""Masks of L-attributed grammars (`guided.grammar.attributed`)."""

from guided.constraint.attributed.constraint import AttributedConstraint

__all__ = ["AttributedConstraint"]
