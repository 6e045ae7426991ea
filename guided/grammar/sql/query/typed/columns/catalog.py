"""The relations of a database by name, and the types that columns of each name have."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from guided.grammar.attributed.kept import Kept, Last
from guided.grammar.attributed.measures import BYTES
from guided.grammar.attributed.words import Words, words_of
from guided.grammar.sql.query.typed.columns.read import ReadColumns, Readings
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.relations import Relation
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import OTHER
from guided.grammar.sql.query.typed.undecided import stands_for
from guided.grammar.sql.schema import DatabaseSchema

__all__ = ["MOST_VARIANTS", "Catalog"]

Tables = tuple[tuple[str, Relation], ...]
"""Common table expressions by name."""
Used = frozenset[tuple[str, str]]
"""Columns with their types."""
_READ = 1 << 18
"""Names of columns that are remembered with their types, in all ways to read them together."""
MOST_VARIANTS = 7
"""Types that a column of one name may have in different tables."""


def _nothing(_: Query) -> dict[Any, Any]:
    return {}


@dataclass(frozen=True)
class Catalog:
    """The relations of a database by name."""

    relations: dict[str, Relation]
    schemas: dict[str, dict[str, Relation]]
    """All relations by schema."""
    forward: bool = True
    """May SELECT use names that only a sub-query in FROM will define?"""
    undefinable: frozenset[str] = frozenset()
    """The names that no sub-query may define, so that only tables have such columns."""
    recent: Last[Query] = field(default_factory=lambda: Last(_nothing), repr=False, compare=False)
    """What was found of the columns of a query, about which its variants ask."""

    @staticmethod
    def of(schema: DatabaseSchema, dialect: TypedDialect, *, forward: bool) -> Catalog:
        """The tables as relations."""
        lexis, declared = dialect.lexis, dialect.declared
        default = schema.default_schema or ""
        found: dict[str, dict[str, Relation]] = {}
        for table in schema.tables:
            names = [lexis.folded(one.name, True) for one in table.columns]
            columns = tuple(
                (None if name in dialect.system.row_names else name, declared(one.type))
                for name, one in zip(names, table.columns, strict=True)
            )
            key = frozenset(lexis.folded(name, True) for name in table.primary_key if dialect.system.depends_on_keys)
            place = found.setdefault(lexis.folded(table.schema or default, True), {})
            sizes = tuple((name, one.type) for name, one in zip(names, table.columns, strict=True) if "(" in one.type)
            place.setdefault(lexis.folded(table.name, True), Relation(columns, key, not table.view, sizes=sizes))
        return Catalog(
            found.get(default, {}),
            {name: one for name, one in found.items() if name},
            forward,
            dialect.system.undefinable,
        )

    @cached_property
    def tables(self) -> Words:
        """The names of all relations."""
        return words_of(self.relations)

    @cached_property
    def with_columns(self) -> Words:
        """Those that have columns which can be named."""
        return words_of(name for name, relation in self.relations.items() if relation.types)

    @cached_property
    def types(self) -> dict[str, tuple[str, ...]]:
        """The types of columns by name, those of most tables first; none of those that no cast leads to."""
        count: dict[str, dict[str, int]] = {}
        every = (*self.relations.values(), *(one for of in self.schemas.values() for one in of.values()))
        for relation in dict.fromkeys(every):
            for name, kind in relation.types.items():
                types = count.setdefault(name, {})
                if kind != OTHER:
                    types[kind] = types.get(kind, 0) + 1
        return {name: tuple(sorted(types, key=lambda kind: -types[kind])) for name, types in count.items()}

    @cached_property
    def _read(self) -> Kept[Any, ReadColumns]:
        return Kept(max(8, _READ // max(1, len(self.types))))

    def columns(self, readings: Readings, tables: Tables) -> ReadColumns:
        """The columns of all tables, and of some common table expressions."""
        key = (readings, tables)
        found = self._read.get(key)
        if found is None:
            kinds = {name: list(types) for name, types in self.types.items()}
            for _, relation in tables:
                for name, kind in relation.types.items():
                    kinds.setdefault(name, []).append(kind)
            found = self._read[key] = ReadColumns(kinds.items(), readings)
        return found

    def columns_beside(self, readings: Readings, tables: Tables, used: Used, system: TypeSystem) -> ReadColumns:
        """The columns of the relations that have some of a type each, as a source to come is known to have."""
        key = (readings, tables, used)
        found = self._read.get(key)
        if found is None:
            kinds: dict[str, dict[str, None]] = {}
            others = (one for name, of in self.schemas.items() if of is not self.relations for one in of.values())
            for relation in (*{**self.relations, **dict(reversed(tables))}.values(), *others):
                types = relation.types
                if all(name in types and stands_for(system, kind, types[name]) for name, kind in used):
                    for name, kind in types.items():
                        kinds.setdefault(name, {})[kind] = None
            found = self._read[key] = ReadColumns(kinds.items(), readings)
        return found

    @cached_property
    def unsorted(self) -> frozenset[str]:
        """The names of columns that have no order in some table."""
        every = (*self.relations.values(), *(one for of in self.schemas.values() for one in of.values()))
        return frozenset().union(*(relation.unsorted for relation in every))

    @cached_property
    def by_variant(self) -> tuple[Words, ...]:
        """The names with so many types or more; all of them first."""
        return tuple(
            words_of(name for name, types in self.types.items() if len(types) >= place)
            for place in range(MOST_VARIANTS + 1)
        )

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that are not like any other: of all columns, whose types are known, and those that none can define."""
        return self.undefinable.union(self.types)

    def is_never(self, name: str) -> bool:
        """Can no source have a column of a name?"""
        return name in self.undefinable and name not in self.types

    @cached_property
    def widest(self) -> int:
        """The most columns of a relation."""
        every = (*self.relations.values(), *(one for of in self.schemas.values() for one in of.values()))
        return max((len(relation.columns) for relation in every), default=0)

    @cached_property
    def longest(self) -> int:
        """The most bytes of a name in quotes."""
        return max(map(BYTES.name, self.every_name), default=0)

    @property
    def every_name(self) -> list[str]:
        """The names of all schemas, relations and columns."""
        return [*self.schemas, *(name for of in self.schemas.values() for name in of), *self.relations, *self.types]
