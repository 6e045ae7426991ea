"""What a query may name: the relations of a database, folded, and the functions of its engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from guided.grammar.attributed.lexis import Lexis
from guided.grammar.attributed.measures import BYTES
from guided.grammar.attributed.words import Words, words_of
from guided.grammar.sql.query.relations import ROW_NAMES, Relation
from guided.grammar.sql.query.scope import CallKind
from guided.grammar.sql.schema import Table

MOST_VALUE = 120
"""Bytes of a value, quotes and what they double among them: a column with a longer one is compared with any string."""

__all__ = ["Catalog", "Function", "longest"]


@dataclass(frozen=True)
class Function:
    """A function by its name in lower case; ``high`` is None where any number of arguments may come."""

    name: str
    kind: CallKind
    low: int
    high: int | None


@dataclass(frozen=True)
class Catalog:
    """The relations by folded name, and what the dialect has."""

    relations: dict[str, Relation]
    functions: tuple[Function, ...]
    lexis: Lexis
    forward: bool = True
    """May SELECT use names that only a sub-query in FROM will define?"""
    schema_name: str = ""
    """What may stand before the name of a table, folded; empty where nothing may."""
    lost_names: frozenset[str] = frozenset()
    """As of `guided.grammar.sql.query.laws.Laws`."""

    @staticmethod
    def relations_of(tables: Iterable[Table], lexis: Lexis) -> dict[str, Relation]:
        """The tables as relations; of tables with one name the first."""
        found: dict[str, Relation] = {}
        for table in tables:
            columns = tuple(lexis.folded(column.name, False) for column in table.columns if not column.hidden)
            hidden = frozenset(lexis.folded(column.name, False) for column in table.columns if column.hidden)
            name = table.name if lexis.keeps_case else lexis.folded(table.name, False)
            values = tuple(
                (lexis.folded(column.name, False), words_of(column.values))
                for column in table.columns
                if column.values and _may_hold(column.values, lexis)
            )
            row_names = ROW_NAMES.difference(columns, hidden) if table.has_rowid else frozenset[str]()
            found.setdefault(name, Relation(columns, values, hidden, row_names))
        return found

    @cached_property
    def tables(self) -> Words:
        """The names of all relations."""
        return words_of(self.relations)

    @cached_property
    def row_names(self) -> frozenset[str]:
        """The names of the number of a row, where some table has it."""
        return frozenset[str]().union(*(relation.row_names for relation in self.relations.values()))

    @cached_property
    def hides(self) -> bool:
        """Has any of them columns that ``*`` leaves out?"""
        return any(relation.hidden for relation in self.relations.values())

    @cached_property
    def with_columns(self) -> Words:
        """Those that have columns."""
        return words_of(name for name, relation in self.relations.items() if relation.names)

    @cached_property
    def columns(self) -> Words:
        """The names of all columns."""
        return words_of(name for relation in self.relations.values() for name in relation.names)

    @cached_property
    def awaited(self) -> Words:
        """Those that may wait for a source whose name is not that of a relation: any sub-query can define them."""
        lost = self.lost_names & self.columns.members
        return words_of(self.columns.members - lost) if lost else self.columns

    @cached_property
    def widest(self) -> int:
        """The most columns that a relation has."""
        return max((len(relation.columns) for relation in self.relations.values()), default=0)

    @property
    def has_values(self) -> bool:
        """Are values of any column known?"""
        return any(relation.values for relation in self.relations.values())

    def columns_beside(self, used: frozenset[str]) -> Words:
        """What a qualifier has in the relations that have some columns; numbers of rows are among both."""
        if not used and not self.row_names:
            return self.awaited
        found = self._beside.get(used)
        if found is None:
            fitting = (relation for relation in self.relations.values() if used <= relation.named)
            found = self._beside[used] = words_of(
                name for relation in fitting for name in relation.named - self.lost_names
            )
        return found

    @cached_property
    def _beside(self) -> dict[frozenset[str], Words]:
        return {}

    def functions_of(self, kind: CallKind) -> dict[str, Function]:
        """The functions of a kind, by name."""
        return {function.name: function for function in self.functions if function.kind is kind}


def longest(names: Words) -> int:
    """The most bytes that one of some names has, in quotes."""
    return max(map(BYTES.name, names.members), default=BYTES.name(""))


def _may_hold(values: tuple[str, ...], lexis: Lexis) -> bool:
    """Is each short, and written as it is but for quotes?"""
    return max(map(_written_bytes, values)) <= MOST_VALUE and not (lexis.escapes and any("\\" in one for one in values))


def _written_bytes(value: str) -> int:
    return 2 + len(value.encode("utf-8", "surrogatepass")) + value.count("'")
