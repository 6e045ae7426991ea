"""What a query may name: the relations of a database, folded, and the functions of its engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from guided.grammar.attributed.lexis import Lexis
from guided.grammar.attributed.words import Words, words_of
from guided.grammar.sql.query.relations import Relation
from guided.grammar.sql.query.scope import CallKind
from guided.grammar.sql.schema import Table

__all__ = ["Catalog", "Function"]


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

    @staticmethod
    def relations_of(tables: Iterable[Table], lexis: Lexis) -> dict[str, Relation]:
        """The tables as relations; of tables with one name the first."""
        found: dict[str, Relation] = {}
        for table in tables:
            columns = tuple(lexis.folded(column.name, False) for column in table.columns)
            name = table.name if lexis.keeps_case else lexis.folded(table.name, False)
            found.setdefault(name, Relation(columns))
        return found

    @cached_property
    def tables(self) -> Words:
        """The names of all relations."""
        return words_of(self.relations)

    @cached_property
    def with_columns(self) -> Words:
        """Those that have columns."""
        return words_of(name for name, relation in self.relations.items() if relation.names)

    @cached_property
    def columns(self) -> Words:
        """The names of all columns."""
        return words_of(name for relation in self.relations.values() for name in relation.names)

    def columns_beside(self, used: frozenset[str]) -> Words:
        """The columns of all relations that have some columns."""
        if not used:
            return self.columns
        found = self._beside.get(used)
        if found is None:
            fitting = (relation for relation in self.relations.values() if used <= relation.names)
            found = self._beside[used] = words_of(name for relation in fitting for name in relation.names)
        return found

    @cached_property
    def _beside(self) -> dict[frozenset[str], Words]:
        return {}

    def functions_of(self, kind: CallKind) -> dict[str, Function]:
        """The functions of a kind, by name."""
        return {function.name: function for function in self.functions if function.kind is kind}
