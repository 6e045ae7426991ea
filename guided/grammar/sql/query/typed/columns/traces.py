"""Groups within an expression: ``year(d) + 1`` where rows are grouped by ``year(d)``."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["OPERATED", "WHOLE", "outside_groups"]

Trace = tuple[str, ...]
Column = tuple[str | None, str]
WHOLE, OPERATED = ";", ".;"
"""The last lexeme of an expression: of one that is an operand, and of one that has operators."""


@lru_cache(maxsize=1 << 14)
def outside_groups(columns: frozenset[Column], trace: Trace | None, groups: frozenset[Trace]) -> frozenset[Column]:
    """Those of an expression's columns that stand in no part of it that is a group.

    >>> column, group = ("t", "d"), ("year", "t.d", ";", ")", ";")
    >>> outside_groups(frozenset([column]), ("year", "t.d", ";", ")", "+", "1", ".;"), frozenset([group]))
    frozenset()
    """
    if trace is None or not columns or not groups:
        return columns
    parts = [_part(group) for group in groups if group[-1:] in ((WHOLE,), (OPERATED,))]
    left: set[str] = set()
    place = 0
    while place < len(trace):
        found = max((len(part) for part in parts if trace[place : place + len(part)] == part), default=0)
        if not found:
            left.add(trace[place])
        place += found or 1
    return frozenset((where, name) for where, name in columns if f"{where or ''}.{name}" in left)


def _part(group: Trace) -> Trace:
    """What a group is within an expression: an operand as it is, operators in brackets."""
    return group[:-1] if group[-1] == WHOLE else ("(", *group, ")")
