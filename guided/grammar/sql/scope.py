"""Which tables may stand together in one FROM clause, and what their columns are called there.

SELECT comes before FROM, so which columns are in scope is not context-free.  The grammar therefore holds one SELECT
core for each `Scope`: a choice of tables with their names.  Scopes are enumerated in tiers, small before large, and
whole tiers only, so that what a large schema has to give up can be said in one sentence (`Scopes.notes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from guided.grammar.sql.schema import Column, ColumnKind, DatabaseSchema
from guided.grammar.sql.spelling import identifier

__all__ = ["Aliases", "Binding", "Joins", "Scope", "Scopes"]


class Aliases(Enum):
    """How tables are called in a query of several: by their own names, as ``T1``, ``T2`` in order, or either way."""

    NAMES = "names"
    NUMBERED = "numbered"
    BOTH = "both"


class Joins(Enum):
    """What may be joined on what.

    ``KEYS``: a foreign key's columns, or columns of equal name and comparable type.  ``ANY``: any two columns of
    comparable type; tables that no key and no equal name connects are joined in pairs.
    """

    KEYS = "keys"
    ANY = "any"


@dataclass(frozen=True)
class Binding:
    """A table with the name it goes by; ``alias`` is None when that is its own name."""

    table: int
    alias: str | None
    qualifier: str
    """The name before the dot, spelled as SQL."""
    name: str
    """What FROM says: the table's name, schema first where it has one, spelled as SQL."""

    @property
    def clause(self) -> str:
        """What follows the name in FROM."""
        return f" AS {self.alias}" if self.alias else ""

    @property
    def source(self) -> str:
        """What FROM says, alias included; for people."""
        return self.name + self.clause


@dataclass(frozen=True)
class Scope:
    """Bindings in scope together.  ``ordered``: FROM names them in this order; otherwise in any connected order."""

    bindings: tuple[Binding, ...]
    ordered: bool

    @property
    def title(self) -> str:
        """The tables, for people."""
        return ", ".join(binding.source for binding in self.bindings)

    @property
    def size(self) -> int:
        """How many tables."""
        return len(self.bindings)


class Scopes:
    """All scopes of a schema within a budget, and the links between its tables.

    ``tables``: the schema's tables; ``chosen``: the scopes; ``notes``: what did not fit.
    """

    def __init__(self, schema: DatabaseSchema, aliases: Aliases, joins: Joins, max_tables: int, budget: int) -> None:
        self.tables = schema.tables
        self.joins = joins
        self.notes: list[str] = []
        self._by_name: dict[tuple[str | None, str], int] = {}
        for index, table in enumerate(self.tables):
            self._by_name[(table.schema, table.name.lower())] = index
        self._links: dict[tuple[int, int], frozenset[tuple[str, str]]] = {}
        self._link_keys()
        self._link_names()
        every = range(len(self.tables))
        self.neighbours: tuple[frozenset[int], ...] = tuple(
            frozenset(b for b in every if b != a and self.links(a, b)) for a in every
        )
        self.chosen = self._choose(aliases, max_tables, budget)

    def links(self, left: int, right: int) -> frozenset[tuple[str, str]]:
        """Pairs of columns, (of ``left``, of ``right``), that a foreign key or an equal name connects."""
        return self._links.get((left, right), frozenset())

    def equations(self, left: int, right: int) -> frozenset[tuple[str, str]]:
        """The linked pairs of columns as SQL spells them."""
        return frozenset((identifier(a), identifier(b)) for a, b in self.links(left, right))

    def comparable(self, left: int, right: int) -> bool:
        """Is there any pair of columns that a join may compare?"""
        if self.links(left, right):
            return True
        if self.joins is Joins.KEYS:
            return False
        return any(_comparable(a, b) for a in self.tables[left].columns for b in self.tables[right].columns)

    def _link(self, left: int, right: int, pairs: set[tuple[str, str]]) -> None:
        self._links[(left, right)] = self.links(left, right) | pairs
        self._links[(right, left)] = self.links(right, left) | {(b, a) for a, b in pairs}

    def _link_keys(self) -> None:
        for index, table in enumerate(self.tables):
            own = {column.name.lower(): column.name for column in table.columns}
            for key in table.foreign_keys:
                other = self._by_name.get((table.schema, key.table.lower()))
                if other is None:
                    continue
                theirs = {column.name.lower(): column.name for column in self.tables[other].columns}
                for here, there in zip(key.columns, key.referred, strict=False):
                    if here.lower() in own and there.lower() in theirs:
                        self._link(index, other, {(own[here.lower()], theirs[there.lower()])})

    def _link_names(self) -> None:
        by_name: dict[str, list[tuple[int, Column]]] = {}
        for index, table in enumerate(self.tables):
            for column in table.columns:
                by_name.setdefault(column.name.lower(), []).append((index, column))
        # A name that most tables share (id, name, created_at) connects nothing: joining on it is rarely meant.
        common = max(2, len(self.tables) // 2)
        for holders in by_name.values():
            if len(holders) <= common:
                for (left, a), (right, b) in combinations(holders, 2):
                    if left != right and _comparable(a, b):
                        self._link(left, right, {(a.name, b.name)})

    def _choose(self, aliases: Aliases, max_tables: int, budget: int) -> tuple[Scope, ...]:
        named, numbered = aliases is not Aliases.NUMBERED, aliases is not Aliases.NAMES
        any_pair = self.joins is Joins.ANY
        linked = "joins of {} tables that keys or equal names connect"
        # In the order of what real queries need: of the 360 distinct queries over Spider's development databases,
        # 59 % read one table at a time, 33 % join two at most, 7 % three and 1 % four.
        tiers = [
            (named, 1, "single tables by their names", self._named(1)),
            (named, 2, linked.format("two") + ", by their names", self._named(2)),
            (named, 3, linked.format("three") + ", by their names", self._named(3)),
            (numbered, 1, "single tables as T1", self._numbered(1)),
            (numbered, 2, linked.format("two") + ", as T1 and T2", self._numbered(2)),
            (True, 2, "tables joined with themselves", self._self_joins()),
            (True, 3, "joins with a table that two keys refer to, once for each", self._twice()),
            (named and any_pair, 2, "joins of any two tables, by their names", self._unlinked(False)),
            (numbered, 3, linked.format("three") + ", as T1 to T3", self._numbered(3)),
            (named, 4, linked.format("four") + ", by their names", self._named(4)),
            (numbered and any_pair, 2, "joins of any two tables, as T1 and T2", self._unlinked(True)),
            (numbered, 4, linked.format("four") + ", as T1 to T4", self._numbered(4)),
        ]
        tiers = [tier for tier in tiers if tier[0] and tier[1] <= max_tables]
        chosen: list[Scope] = []
        for number, (_, _, what, scopes) in enumerate(tiers):
            room = budget - len(chosen) if number else max(budget, len(self.tables))
            tier = []
            for scope in scopes:
                tier.append(scope)
                if len(tier) > room:
                    break
            if len(tier) > room:
                self.notes.append(f"left out, because the schema is large (max_scopes={budget}): {what}")
            else:
                chosen.extend(tier)
        return tuple(chosen)

    def _named(self, size: int) -> Iterator[Scope]:
        for group in self._connected(size):
            # Two schemas may hold tables of one name, which then cannot qualify a column.
            if len({self.tables[index].name.lower() for index in group}) == size:
                yield Scope(tuple(self.binding(index, None) for index in sorted(group)), False)

    def _numbered(self, size: int) -> Iterator[Scope]:
        for order in self._orders(size):
            yield self._in_order(order)

    def _self_joins(self) -> Iterator[Scope]:
        for index in range(len(self.tables)):
            yield self._in_order((index, index))

    def _twice(self) -> Iterator[Scope]:
        """A table with another one that it refers to by two keys: a flight and both its airports."""
        for (left, right), pairs in self._links.items():
            if left != right and len({column for column, _ in pairs}) > 1 and len({column for _, column in pairs}) == 1:
                yield self._in_order((left, right, right))
                yield self._in_order((right, left, right))

    def _unlinked(self, numbered: bool) -> Iterator[Scope]:
        for left, right in combinations(range(len(self.tables)), 2):
            if right in self.neighbours[left] or not self.comparable(left, right):
                continue
            if numbered:
                yield self._in_order((left, right))
                yield self._in_order((right, left))
            elif self.tables[left].name.lower() != self.tables[right].name.lower():
                yield Scope((self.binding(left, None), self.binding(right, None)), False)

    def _in_order(self, order: tuple[int, ...]) -> Scope:
        return Scope(tuple(self.binding(index, f"T{place}") for place, index in enumerate(order, 1)), True)

    def _connected(self, size: int) -> Iterator[frozenset[int]]:
        """Sets of tables in which links lead from each to each other."""
        seen: set[frozenset[int]] = set()
        stack = [frozenset({index}) for index in reversed(range(len(self.tables)))]
        while stack:
            group = stack.pop()
            if group in seen:
                continue
            seen.add(group)
            if len(group) == size:
                yield group
                continue
            around = set().union(*(self.neighbours[index] for index in group)) - group
            stack.extend(group | {index} for index in sorted(around, reverse=True))

    def _orders(self, size: int) -> Iterator[tuple[int, ...]]:
        """Sequences of distinct tables in which each but the first is linked to an earlier one."""
        stack: list[tuple[int, ...]] = [(index,) for index in reversed(range(len(self.tables)))]
        while stack:
            order = stack.pop()
            if len(order) == size:
                yield order
                continue
            around = set().union(*(self.neighbours[index] for index in order)) - set(order)
            stack.extend((*order, index) for index in sorted(around, reverse=True))

    def binding(self, index: int, alias: str | None) -> Binding:
        """The table under an alias, or under its own name."""
        table = self.tables[index]
        name = identifier(table.name)
        source = name if table.schema is None else f"{identifier(table.schema)}.{name}"
        return Binding(index, alias, alias or name, source)


def _comparable(left: Column, right: Column) -> bool:
    return left.kind is right.kind or ColumnKind.ANY in (left.kind, right.kind)
