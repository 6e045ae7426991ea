"""Tables of functions as text: ``name:least-most`` arguments; without the most any number may come."""

from __future__ import annotations

from guided.grammar.sql.query.catalog import Function
from guided.grammar.sql.query.scope import CallKind

__all__ = ["functions_of"]


def functions_of(text: str, kind: CallKind) -> tuple[Function, ...]:
    """The functions of a table.

    >>> functions_of("log:1-2", CallKind.SCALAR)[0].high
    2
    """
    found = []
    for entry in text.split():
        name, _, count = entry.partition(":")
        low, dash, high = count.partition("-")
        found.append(Function(name, kind, int(low), int(high or low) if high or not dash else None))
    return tuple(found)
