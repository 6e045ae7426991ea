"""Patterns of formats: this project's own regex front end (Python's notation, whole string) over JSON strings."""

from __future__ import annotations

from guided.grammar.regular.expr import Expr
from guided.grammar.regular.lengths import with_length
from guided.grammar.regular.texts import CHARACTER, TEXT


def pattern_language(pattern: str) -> Expr:
    """The insides of the JSON strings that a pattern matches from end to end."""
    from guided.grammar.regex.lower import lower
    from guided.grammar.regex.parse import parse

    return lower(parse(pattern), TEXT)


def of_length(language: Expr, low: int, high: int) -> Expr:
    """The part of a language with so many characters."""
    return with_length(language, CHARACTER, low, high)
