"""The types of an engine: which there are, what casts lead where, and what operators and functions take and give.

This is data, read from rows; what follows from it is in `typed.types`, `typed.resolution`, `typed.operators` and
`typed.functions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

__all__ = ["OF_SHARES", "FunctionRows", "Signature", "TypeSystem", "functions_of", "operators_of"]

Types = tuple[str, ...]
OF_SHARES = "[]"
"""What their names have behind them among the functions (`TypeSystem.of_shares`)."""


class Signature(NamedTuple):
    """The types that an operator or function takes, and the one it gives."""

    parameters: Types
    result: str


FunctionRows = Mapping[str, tuple[Signature, ...]]


@dataclass(frozen=True, eq=False)
class TypeSystem:
    """One engine's; compared by identity."""

    types: frozenset[str]
    """Those that a cast can lead to."""
    implicit: Mapping[str, Mapping[str, int]]
    """What a type becomes where another is wanted, and what that costs where the cheapest is chosen."""
    explicit: frozenset[tuple[str, str]]
    """Casts that must be written."""
    operators: FunctionRows
    """Binary ones; all comparisons are one, ``compare``, or equality apart, ``equal``, where it takes more."""
    levels: Mapping[str, int]
    """How tightly operators bind, loosest first; ``quantified``, a comparison with ANY or ALL, only where that binds in
    its own way."""
    prefixes: Mapping[str, frozenset[str]]
    """Signs by what they may stand before."""
    scalars: FunctionRows
    aggregates: FunctionRows
    windows: FunctionRows
    ordered_sets: FunctionRows
    row_sets: FunctionRows
    """Functions that are sources in FROM."""
    row_columns: Mapping[str, tuple[tuple[str, str], ...]]
    """Those whose columns have names of their own, with their types, empty for that of the function."""
    forward_types: tuple[str, ...]
    """What a column may be that only a sub-query behind will define, the likeliest first."""
    spelled: FunctionRows = field(default_factory=dict)
    """Functions that are written in other ways than as calls."""
    of_shares: FunctionRows = field(default_factory=dict)
    """Aggregates that take a list of shares: functions of their own, since of some types there are no lists."""
    cheapest: bool = False
    """Is of several functions the one chosen whose casts cost least?"""
    layered: bool = False
    """Does no operator follow a test (IS NULL, IN) that binds more tightly than the test?"""
    moments: frozenset[str] = frozenset()
    """Words for dates and times which a column of that name would hide; so nothing is given such a name."""
    row_names: frozenset[str] = frozenset()
    """Names that each table has for its rows; a column of that name would be ambiguous beside one, so none is named."""
    no_windows: frozenset[str] = frozenset()
    """Aggregates that OVER would make other functions."""
    bare_aggregates: frozenset[str] = frozenset()
    """Those with nothing but their arguments."""
    depends_on_keys: bool = True
    """Do all columns of a table depend on its primary key where rows are grouped by that?"""
    constant_order: bool = True
    """May the rows of an aggregate be ordered by a literal?"""
    null_is_text: bool = True
    """Is NULL a text where nothing else decides?"""
    distinct_settles: bool = True
    """Is a literal a text behind DISTINCT, whatever the columns of a set operation are?"""
    distinct_on_result: bool = True
    """Does a name in DISTINCT ON mean a column of the result, if there is one, and must there be one only?"""
    value_names: tuple[str, int] = ("column", 1)
    """The names of the columns of VALUES, which go on with a number, and the first number."""
    volatile: frozenset[str] = frozenset()
    """Functions whose every call gives another value; no name of a column can stand for them."""
    null_matters: frozenset[str] = frozenset()
    """Functions that give another type where the engine, while it prepares, finds that an argument is NULL."""
    aliases: bool = False
    """Do WHERE, HAVING and QUALIFY know the names of the result?"""
    all_columns: bool = False
    """Are there GROUP BY ALL and ORDER BY ALL, and ``* EXCLUDE``?"""
    qualify: bool = False
    """Are there QUALIFY, SEMI JOIN and ANTI JOIN?"""
    from_first: bool = False
    """May FROM stand before SELECT, or without it?"""
    lists: bool = False
    """Are arrays written in brackets alone, and is there TRY_CAST?"""
    recursive_order: bool = True
    """May a UNION in WITH RECURSIVE have ORDER BY and LIMIT, if it does not read itself?"""
    leading_values: bool = True
    """May a bracket with which a query begins begin with VALUES?"""
    shared_first: bool = True
    """Does ``*`` begin with the columns that USING made of two?"""
    labels: bool = True
    """Has an expression the name of its function, or of the type that it is cast to?"""
    computable: Mapping[str, int] = field(default_factory=dict)
    """Where the engine computes constants while it prepares: functions that never fail then, by the digits of what they
    give (`typed.computed.digits`); 0 are those of the arguments, and less than 0 so many more than they have."""
    failing: frozenset[str] = frozenset()
    """Functions that stand in no part of an expression that it computes, since some constants fail them."""
    folded: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of functions the places of those arguments that it computes so wherever they stand, if they are constant."""

    @cached_property
    def undefinable(self) -> frozenset[str]:
        """Names that nothing is given."""
        return self.moments | self.row_names

    @cached_property
    def functions(self) -> FunctionRows:
        """All of them."""
        of_shares = {name + OF_SHARES: rows for name, rows in self.of_shares.items()}
        called = {**self.scalars, **self.aggregates, **of_shares, **self.windows, **self.ordered_sets, **self.row_sets}
        return {**called, **self.spelled}


def operators_of(rows: Mapping[str, str]) -> FunctionRows:
    """Operators from rows ``left: right>result ...; ...``; a result that is missing is a boolean."""
    return {name: _operator(text) for name, text in rows.items()}


def _operator(text: str) -> tuple[Signature, ...]:
    found = []
    for row in text.split(";"):
        left, _, rights = row.strip().partition(": ")
        for entry in rights.split():
            right, _, given = entry.partition(">")
            found.append(Signature((left, right), given or "bool"))
    return tuple(found)


def functions_of(rows: str) -> FunctionRows:
    """Functions from lines ``name name: argument argument>result; ...``, which go on behind four blanks."""
    found: dict[str, tuple[Signature, ...]] = {}
    for line in rows.strip().replace("\n    ", " ").split("\n"):
        names, _, entries = line.partition(": ")
        signatures = []
        for entry in entries.split("; "):
            parameters, _, result = entry.partition(">")
            signatures.append(Signature(tuple(parameters.split()), result))
        found.update(dict.fromkeys(names.split(), tuple(signatures)))
    return found
