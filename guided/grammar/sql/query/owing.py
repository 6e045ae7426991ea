"""What a query owes to its end: what is enough for what it demands beside its clauses, by a measure."""

from __future__ import annotations

from guided.grammar.attributed.measures import Measure
from guided.grammar.attributed.pricing import Rise
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.relations import Holders
from guided.grammar.sql.query.scope import Clause, Item, Query, conflicts, has_star, taken_names, unbound, waiting_names

__all__ = ["Owing"]

_DEFINED = ' WINDOW "" AS(PARTITION BY 1 ORDER BY 1 RANGE 1 PRECEDING)'
"""As much as the definition of a window."""


class Owing:
    """Bounds for what queries over a catalog demand."""

    def __init__(self, catalog: Catalog, measure: Measure) -> None:
        text = measure.text
        self._holders = Holders(relation.names for relation in catalog.relations.values())
        self._widest = catalog.widest
        self._name = measure.name
        self._quotes = text('""')
        self._value = text(",1")
        self._window = text(_DEFINED)
        self._joined = text(" CROSS JOIN(SELECT ) USING()")
        self._listed = text("1 , ,")
        self._source = self._joined + 2 * self._quotes
        """A sub-query as a source beside its columns and two times its name."""
        self._column = self._listed + 2 * self._quotes
        """A column of it, beside two times its name."""

    def owed(self, query: Query) -> int:
        """What is enough for what a query and those around it demand beside their clauses.

        Each source that is still missing may be a sub-query that defines what waits for it, joined with USING.
        """
        # Where no number may be, since it would be a position, a string takes one more.
        found = 1
        at: Query | None = query
        while at is not None:
            found += sum(self._value * max(0, call.low - call.given) for call in at.calls)
            if at.width is not None and not (at.bound and at.is_starred):
                found += self._value * max(0, at.width - len(at.outputs))
            if at.clause is Clause.VALUES and at.cells:
                found += self._value * (len(at.outputs) - at.cells)
            found += self._value * at.row
            if not at.bound:
                found += self._sources_owed(at)
            found += sum(self._window + 2 * self._name(use.name) for use in at.uses)
            if at.is_distinct or at.barred or at.item is Item.ROW_NUMBER:
                # A column that needs a name, or another.
                found += self._column
            at = at.parent
        if query.name and query.clause is not Clause.FROM and query.source(query.name) is None:
            # A qualifier, whose column is still to be named; a query around may have to bind it.
            found += self._joined + 2 * self._name(query.name) + 2 * self._column
        return found

    def rises(self, query: Query) -> Rise:
        """What a query may owe besides while more lexemes are read.

        A name adds a source with a column, the definition of a window, or arguments; a keyword begins a query that may
        be ``*``, for which FROM must have a source.  With a sign or keyword a query or row may begin that must have as
        many columns as another: one that is there already, or one that began with ``*`` and whose FROM is read
        meanwhile.  Each name that waits may be in the way of a relation that is being read, and of one that was.
        """
        columns = once = 0
        at: Query | None = query
        while at is not None:
            columns = max(columns, len(at.outputs), at.width or 0, at.row, len(at.result or ()))
            if at.relation is not None:
                columns = max(columns, len(at.relation.columns))
            if at.sources and has_star(at):
                columns = max(columns, sum(len(source.relation.columns) for source in at.sources))
            columns = max([columns, *(len(relation.columns) for _, relation in at.tables)])
            if not at.bound:
                once += 2 * sum(map(self._again, waiting_names(at)))
            if at.clause is Clause.SELECT and not at.needs_from:
                once += self._source
            at = at.parent
        sign = self._column + self._value * (2 + columns)
        other = max(self._source + 3 * self._column, self._window, sign + self._source)
        return Rise(sign, other, once, self._value * self._widest)

    def _again(self, name: str) -> int:
        """A name that waits once more."""
        return self._listed + self._quotes + self._name(name)

    def _sources_owed(self, query: Query) -> int:
        missing = unbound(query)
        groups = {pending.qualifier for pending in missing}
        found = sum(self._joined + 2 * self._name(group or "") for group in groups)
        found += sum(self._listed + 2 * self._name(pending.column) for pending in missing)
        found += sum(map(self._again, conflicts(query)))
        if query.clause is Clause.FROM and query.relation is not None:
            # USING must make one what the relation that was read has as well.
            found += sum(map(self._again, taken_names(query) & query.relation.names))
        elif query.clause is Clause.FROM and query.sources and self._holders.is_in_each(taken_names(query)):
            # No table is apart: a sub-query, or behind a schema a table that USING joins by all of them.
            found += self._source + sum(map(self._again, taken_names(query)))
        if (query.needs_from and not query.sources) or query.missing_columns:
            found += self._source
        if query.relation is not None and query.clause is Clause.SELECT:
            found += self._value * len(query.relation.columns)
        return found
