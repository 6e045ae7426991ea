"""Which queries a gold entry accepts: several separated by ``;``, and any of the columns in braces.

defog's form: ``SELECT {u.id, u.name}, COUNT(*) .. GROUP BY {}`` accepts either column or both, and the empty braces
stand for the same choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, combinations

__all__ = ["MAX_VARIANTS", "accepted_queries", "is_ordered"]

MAX_VARIANTS = 64
"""Accepted queries of one question that are looked at: six columns to choose from make 63."""

_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+|.", re.DOTALL)


def accepted_queries(gold: str) -> list[str]:
    """The queries of a gold entry, in order, without the ``;`` behind them.

    >>> accepted_queries("SELECT {a, b}, ';' FROM t GROUP BY {}; SELECT 1")
    ["SELECT a, ';' FROM t GROUP BY a", "SELECT b, ';' FROM t GROUP BY b", "SELECT a, b, ';' FROM t GROUP BY a, b", \
'SELECT 1']
    """
    queries: list[str] = []
    for query in _split(gold, ";"):
        if query.strip():
            queries += _choices(query.strip())
    return queries[:MAX_VARIANTS]


def is_ordered(query: str) -> bool:
    """Whether the rows' order is part of the answer: an ORDER BY outside of all parentheses.

    >>> is_ordered("SELECT a FROM t order\\nby a"), is_ordered("SELECT a FROM (SELECT a FROM t ORDER BY a)")
    (True, False)
    """
    depth, before = 0, ""
    for piece in _PIECE.findall(query):
        if piece.isspace() or piece.startswith(("--", "/*")):
            continue
        depth += (piece == "(") - (piece == ")")
        if depth == 0 and piece.upper() == "BY" and before == "ORDER":
            return True
        before = piece.upper()
    return False


def _split(text: str, mark: str) -> list[str]:
    """The parts between marks that stand outside of quotes."""
    parts = [""]
    for piece in _PIECE.findall(text):
        if piece == mark:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _choices(query: str) -> list[str]:
    start, end = _braces(query)
    if start < 0:
        return [query]
    columns = [column.strip() for column in _split(query[start + 1 : end], ",")]
    if columns == [""]:
        return [query]
    found: list[str] = []
    for chosen in chain.from_iterable(combinations(columns, n) for n in range(1, len(columns) + 1)):
        written = ", ".join(chosen)
        rest = query[end + 1 :].replace("{}", written)
        found += _choices(query[:start] + written + rest)
        if len(found) >= MAX_VARIANTS:
            break
    return found


def _braces(query: str) -> tuple[int, int]:
    """Where the first braces that are not empty stand; -1 where there are none."""
    start = -1
    for position, piece in _positions(query):
        if piece == "{":
            start = position
        elif piece == "}" and start >= 0:
            if query[start + 1 : position].strip():
                return start, position
            start = -1
    return -1, -1


def _positions(query: str) -> Iterator[tuple[int, str]]:
    for match in _PIECE.finditer(query):
        yield match.start(), match.group()
