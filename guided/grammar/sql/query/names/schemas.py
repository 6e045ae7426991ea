"""The name of the schema before that of a table: main.singer, shop.orders."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Name, Names, Node, Sign, choice, seq
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.names.sources import TableName
from guided.grammar.sql.query.relations import Relation
from guided.grammar.sql.query.scope import Query, taken_names

__all__ = ["table_name"]


def table_name(table: TableName, *, is_exact: bool = False) -> Node:
    """A table, also behind its schema where that has a name."""
    plain = Name(table, is_exact=is_exact)
    if not table.catalog.schema_name:
        return plain
    within = _TableOfSchema(table.catalog, table.joining)
    name = Name(_SchemaName(within), is_exact=is_exact)
    return choice(plain, seq(name, Sign("."), Name(within, is_exact=is_exact)))


class _TableOfSchema(TableName):
    """A table behind its schema, which no common table expression hides."""

    def allowed(self, query: Query) -> Names:
        """Those of which some FROM can be made."""
        return Names(words_of(name for name, relation in self.catalog.relations.items() if self.fits(query, relation)))

    def _relation(self, query: Query, name: str) -> Relation:
        return self.catalog.relations[name]

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the relation noted."""
        return query._replace(name=name, relation=self.catalog.relations[name])

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest, those first of which USING need not name a column."""
        taken, relations = taken_names(query), self.catalog.relations
        names = self.allowed(query).words.members
        return sorted(names, key=lambda name: (not taken.isdisjoint(relations[name].names), len(name), name))


class _SchemaName:
    """The schema, where one of its tables may stand."""

    label = "a schema"

    def __init__(self, table: _TableOfSchema) -> None:
        self.table = table
        self.price = 2 + 2 * len(table.catalog.schema_name.encode("utf-8", "surrogatepass"))

    def allowed(self, query: Query) -> Names:
        """It."""
        return Names(words_of([self.table.catalog.schema_name] if len(self.table.allowed(query).words) else ()))

    def after(self, query: Query, name: str) -> Query | None:
        """The query as it was."""
        return query

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a table needs it not."""
        return ()
