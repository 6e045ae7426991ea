"""Groups within an expression: ``year(d) + 1`` where rows are grouped by ``year(d)``."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["BREAK", "OPERATED", "WHOLE", "broken", "left_of_groups", "outside_groups"]

Trace = tuple[str, ...]
Column = tuple[str | None, str]
WHOLE, OPERATED = ";", ".;"
"""The last lexeme of an expression: of one that is an operand, and of one that has operators."""
BREAK = "?"
"""In place of an aggregate, or of what was a group: no group holds it, and others may stand beside it."""


def broken(trace: Trace | None) -> Trace | None:
    """What an expression is made of, with an aggregate."""
    return trace if trace is None or trace[-1:] == (BREAK,) else (*trace, BREAK)


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


@lru_cache(maxsize=1 << 14)
def left_of_groups(begun: Trace, groups: frozenset[Trace]) -> frozenset[Trace]:
    """What is left of the groups as which an expression may have begun, or the operand in it that is read.

    >>> group = ("year", "t.d", ";", ")", ";")
    >>> left_of_groups(("1", "+", "year"), frozenset([group])) == {group[:-1], group[1:-1]}
    True
    """
    found = {group[len(begun) :] for group in groups if group[: len(begun)] == begun}
    for part in map(_part, groups):
        lengths = range(min(len(begun), len(part) - 1) + 1)
        found.update(part[n:] for n in lengths if begun[len(begun) - n :] == part[:n])
    return frozenset(found)
