"""The grammar of SELECT statements over one database: its tables, its columns, nothing else.

`sql` is the public function.  A query is one of the cores that `guided.grammar.sql.scope` enumerates, or several of
equal width joined by UNION, INTERSECT or EXCEPT; values and conditions come from `guided.grammar.sql.expressions`.
Every accepted text is meant to run on that database without an error, up to the sizes SQLite itself refuses (chains of
more than 1,000 operands, 2,000 columns, 500 parts of a compound).  What is not accepted: aliases of the reader's
own choice (tables go by their names or as T1, T2, ...; columns of a sub-query in FROM as c1, c2, ...), comma joins,
window functions, WITH.
"""

from __future__ import annotations

import hashlib
from typing import Any

from guided.errors import GrammarError, UnsatisfiableError, UnsupportedError
from guided.grammar.ir import Body, Grammar, Lexing, Reference, Repetition, Terminal
from guided.grammar.sql.columns import ColumnTerminals, View
from guided.grammar.sql.conditions import Conditions, Queries
from guided.grammar.sql.reflect import reflect
from guided.grammar.sql.rules import Rules, choice, listed, maybe, sequence
from guided.grammar.sql.schema import Column, ColumnKind, DatabaseSchema, Table
from guided.grammar.sql.scope import Aliases, Binding, Joins, Scope, Scopes
from guided.grammar.sql.spelling import Spelling, Whitespace
from guided.grammar.sql.values import Flavour

__all__ = ["sql"]

DEFAULT_MAX_TABLES = 4
DEFAULT_MAX_SCOPES = 128
MAX_WIDTH = 5
"""Columns that both sides of UNION, INTERSECT and EXCEPT may have; more do not occur in Spider or Defog."""
MAX_DERIVED_WIDTH = 3
_JOIN_KINDS = (" JOIN ", " INNER JOIN ", " LEFT JOIN ")


def sql(
    schema_or_url: DatabaseSchema | str | Any,
    *,
    dialect: str = "sqlite",
    sample_values: int = 0,
    max_subquery_depth: int = 2,
    max_tables: int = DEFAULT_MAX_TABLES,
    max_scopes: int = DEFAULT_MAX_SCOPES,
    aliases: str = "both",
    joins: str = "any",
    whitespace: str = "canonical",
    ignore_case: bool = False,
) -> Grammar:
    """The language of SELECT statements over a database's own tables and columns.

    ``schema_or_url``: a `DatabaseSchema`, or a database URL, file or SQLAlchemy engine to reflect it from; then
    ``sample_values`` is how many values a text column may have for its comparisons to be held to them (0: any string).
    ``max_tables`` is the most tables in one FROM clause, one fewer for each level of sub-query; ``max_scopes`` bounds
    the number of combinations of tables, and thereby time and memory (what did not fit is in `Grammar.notes`).
    ``aliases`` is "names" (tables go by their own names), "numbered" (T1, T2, ...) or "both"; ``joins`` is "keys"
    (foreign keys and equal names only) or "any" (any two columns of comparable type).  ``whitespace`` is "canonical"
    (single spaces, which makes most of a query's tokens forced) or "any"; ``ignore_case`` accepts keywords and names
    in any letter case.

    Raises `UnsupportedError` for another dialect, `UnsatisfiableError` for a database without tables.
    """
    options = {
        "dialect": dialect,
        "max_subquery_depth": max_subquery_depth,
        "max_tables": max_tables,
        "max_scopes": max_scopes,
        "aliases": aliases,
        "joins": joins,
        "whitespace": whitespace,
        "ignore_case": ignore_case,
    }
    if isinstance(schema_or_url, DatabaseSchema):
        schema = schema_or_url
    else:
        schema = reflect(schema_or_url, sample_values=sample_values)
    for name in (dialect, schema.dialect):
        if name != "sqlite":
            raise UnsupportedError(
                f"the SQL dialect {name!r} is not supported", remedy="guided writes SQLite's SELECT statements only."
            )
    for option, low in (("max_subquery_depth", 0), ("max_tables", 1), ("max_scopes", 1)):
        if options[option] < low:  # type: ignore[operator]
            raise GrammarError(f"{option} is {options[option]}", remedy=f"Give {low} or more.")
    if not schema.tables:
        raise UnsatisfiableError("the database has no tables", remedy="Create some, or name another database.")
    for table in schema.tables:
        if not table.columns:
            raise UnsatisfiableError(f"the table {table.name!r} has no columns", remedy="Leave it out of the schema.")
    try:
        style = (Aliases(aliases), Joins(joins), Whitespace(whitespace))
    except ValueError as error:
        raise GrammarError(str(error), remedy='See the documentation of "guided.sql" for the options.') from None
    queries = _Queries(schema, *style, ignore_case, max_subquery_depth, max_tables, max_scopes)
    start = queries.top()
    source = repr((schema.tables, sorted(options.items())))
    return Grammar(
        rules=queries.rules.finish(),
        start=start.rule,
        lexing=Lexing.NONE,
        rebuild=(sql, (schema,), options),
        key="sql:" + hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        notes=(*schema.notes, *queries.scopes.notes),
    )


class _Queries:
    """Makes the rules from the statement down; `level` counts the sub-queries around a query."""

    def __init__(
        self,
        schema: DatabaseSchema,
        aliases: Aliases,
        joins: Joins,
        whitespace: Whitespace,
        ignore_case: bool,
        max_depth: int,
        max_tables: int,
        max_scopes: int,
    ) -> None:
        self.max_depth = max_depth
        self.scopes = Scopes(schema, aliases, joins, max_tables, max_scopes)
        self.rules = Rules()
        self.spelling = Spelling(whitespace, ignore_case)
        # Behind the database's own tables stand those that a sub-query in FROM makes: c1, c1..c2, ...
        self._first_derived = len(schema.tables)
        derived = tuple(
            Table("T1", tuple(Column(f"c{place}") for place in range(1, width + 1)))
            for width in range(1, MAX_DERIVED_WIDTH + 1)
        )
        self.columns = ColumnTerminals(self.spelling, schema.tables + derived)
        self.conditions = Conditions(self.rules, self.columns)
        self.values = self.conditions.values
        s = self.spelling.snippet
        self._comma, self._close = s(", "), s(")")
        self._select = s("SELECT ", "SELECT DISTINCT ")
        self._operator = s(" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ")
        self._limit = maybe(s(" LIMIT "), self.spelling.integer, maybe(s(" OFFSET "), self.spelling.integer))
        self._at_level = [
            tuple(scope for scope in self.scopes.chosen if scope.size <= max(1, max_tables - level))
            for level in range(max_depth + 1)
        ]

    # The statement -----------------------------------------------------------------------------------------------

    def top(self) -> Reference:
        """A whole statement."""
        scopes = list(self._at_level[0])
        if self.max_depth:
            scopes += [self._derived_scope(width) for width in range(1, MAX_DERIVED_WIDTH + 1)]
        return self.rules.get("query", "query", lambda: choice(*(self._core(scope) for scope in scopes)))

    def _core(self, scope: Scope) -> Reference:
        def build() -> Body:
            s, item = self.spelling.snippet, self._item(scope, 0)
            free = self._tail(scope, 0, None)
            own = self.spelling.names((f"{b.qualifier}.*" for b in scope.bindings), "all columns of a table")
            starred = sequence(own, Repetition(sequence(self._comma, choice(item, own))), free)
            # What follows the n-th item knows n, which a set operation needs; wider lists have none.
            more: Body = sequence(listed(item, self._comma), free)
            for width in range(MAX_WIDTH, 0, -1):
                after = self._tail(scope, 0, self._compound(width, 0))
                more = sequence(item, choice(after, sequence(self._comma, more)))
            return sequence(self._select, choice(sequence(s("*"), free), starred, more))

        return self._rule("SELECT", scope, 0, build)

    def _rule(self, what: str, scope: Scope, level: int, build: Any, *more: Any) -> Reference:
        return self.rules.get((what, scope, level, *more), f"{what} over {scope.title}", build)

    def _item(self, scope: Scope, level: int) -> Reference:
        def build() -> Body:
            queries = self._queries(scope, level)
            value = self.values.value(scope, Flavour.GROUP)
            return value if queries is None else choice(value, self._computed(queries))

        return self._rule("column", scope, level, build)

    def _computed(self, queries: Queries) -> Body:
        """A scalar sub-query, with literals added to it or multiplied."""
        s, literal = self.spelling.snippet, self.spelling.number
        arithmetic = s(" + ", " - ", " * ", " / ")
        more = Repetition(sequence(arithmetic, choice(literal, queries.scalar)), 0, 2)
        return sequence(maybe(literal, arithmetic), queries.scalar, more)

    def _tail(self, scope: Scope, level: int, compound: Reference | None) -> Body:
        """From FROM to the end, of the last query or of the first of a compound."""
        return choice(self._whole(scope, level), sequence(self._part(scope, level), compound) if compound else None)

    def _whole(self, scope: Scope, level: int) -> Reference:
        def build() -> Body:
            grouped = sequence(self._group(scope, level), self._order_and_limit(scope, Flavour.GROUP))
            return sequence(self._source(scope, level), choice(self._order_and_limit(scope, Flavour.ROW), grouped))

        return self._rule("FROM to LIMIT", scope, level, build)

    def _part(self, scope: Scope, level: int) -> Reference:
        def build() -> Body:
            return sequence(self._source(scope, level), maybe(self._group(scope, level)))

        return self._rule("FROM to HAVING", scope, level, build)

    def _order_and_limit(self, scope: Scope, flavour: Flavour) -> Reference:
        def build() -> Body:
            s = self.spelling.snippet
            key = self.values.sort_key(scope, flavour)
            term = sequence(key, maybe(s(" ASC", " DESC")), maybe(s(" NULLS FIRST", " NULLS LAST")))
            return sequence(maybe(s(" ORDER BY "), listed(term, self._comma)), self._limit)

        return self._rule(f"ORDER BY ({flavour.value})", scope, 0, build)

    def _group(self, scope: Scope, level: int) -> Reference:
        def build() -> Body:
            s = self.spelling.snippet
            keys = listed(self.values.sort_key(scope, Flavour.ROW), self._comma)
            having = self.conditions.condition(scope, Flavour.GROUP, self._queries(scope, level), 1)
            return sequence(s(" GROUP BY "), keys, maybe(s(" HAVING "), having))

        return self._rule("GROUP BY", scope, level, build)

    # Set operations ----------------------------------------------------------------------------------------------

    def _compound(self, width: int, level: int) -> Reference:
        """The rest of a compound query of so many columns after its first part."""

        def build() -> Body:
            s = self.spelling.snippet
            # ORDER BY of a compound takes columns of the result only: here, their positions.
            place = sequence(s(*(str(n) for n in range(1, width + 1))), maybe(s(" ASC", " DESC")))
            order = maybe(s(" ORDER BY "), listed(place, self._comma))
            more = sequence(self._operator, self._operand(width, level))
            return sequence(Repetition(more, 1), order, self._limit)

        return self.rules.get(("compound", width, level), "set operation", build)

    def _operand(self, width: int, level: int) -> Reference:
        def build() -> Body:
            options: list[Body] = []
            for scope in self._at_level[level]:
                items = Repetition(self._item(scope, level), width, width, self._comma)
                options.append(sequence(self._select, items, self._part(scope, level)))
            return choice(*options)

        return self.rules.get(("operand", width, level), "query of a set operation", build)

    # FROM and WHERE ----------------------------------------------------------------------------------------------

    def _source(self, scope: Scope, level: int) -> Reference:
        def build() -> Body:
            where = self.conditions.condition(scope, Flavour.ROW, self._queries(scope, level))
            return sequence(self._from(scope), maybe(self.spelling.snippet(" WHERE "), where))

        return self._rule("FROM and WHERE", scope, level, build)

    def _from(self, scope: Scope) -> Reference:
        def build() -> Body:
            s, bindings = self.spelling.snippet, scope.bindings
            if bindings[0].table >= self._first_derived:
                inner = self._derived_query(bindings[0].table - self._first_derived + 1)
                return sequence(s(" FROM ("), inner, s(") AS T1"))
            starts = bindings[:1] if scope.ordered else bindings
            return choice(*(self._joined_after(scope, (first,), self._read(" FROM ", first)) for first in starts))

        return self._rule("FROM", scope, 0, build)

    def _read(self, before: str, binding: Binding) -> Terminal:
        return self.spelling.phrase((before,), binding.name, binding.clause)

    def _joined_after(self, scope: Scope, joined: tuple[Binding, ...], head: Body) -> Body:
        return sequence(head, self._joins(scope, joined)) if len(joined) < scope.size else head

    def _joins(self, scope: Scope, joined: tuple[Binding, ...]) -> Reference:
        """The tables of the scope that are still to be joined, in any order in which each can be."""

        def build() -> Body:
            s = self.spelling.snippet
            missing = [binding for binding in scope.bindings if binding not in joined]
            options: list[Body] = []
            for new in missing[:1] if scope.ordered else missing:
                partners = [old for old in joined if self.scopes.comparable(old.table, new.table)]
                if not scope.ordered and not partners:
                    continue
                after = tuple(binding for binding in scope.bindings if binding in joined or binding is new)
                head: Body = self._read(" CROSS JOIN ", new)
                if partners:
                    join = self.spelling.phrase(_JOIN_KINDS, new.name, new.clause + " ON ")
                    equation = choice(*(self._equation(new, old) for old in partners))
                    views = (View(binding, frozenset()) for binding in after)
                    also = choice(equation, *(self.conditions.joined_on(view) for view in views))
                    more = Repetition(sequence(s(" AND ", " OR "), also))
                    head = choice(head, sequence(join, equation, more))
                options.append(self._joined_after(scope, after, head))
            return choice(*options)

        return self._rule("JOIN", scope, 0, build, joined)

    def _equation(self, new: Binding, old: Binding) -> Reference:
        def build() -> Body:
            s = self.spelling.snippet
            options = self._keys_equal(new, old)
            if self.scopes.joins is Joins.ANY:
                for kind in (ColumnKind.NUMBER, ColumnKind.TEXT):
                    left, right = self.columns.of_kind(new, kind), self.columns.of_kind(old, kind)
                    if left is not None and right is not None:
                        options += [sequence(left, s(" = "), right), sequence(right, s(" = "), left)]
            return choice(*options)

        return self.rules.get(("equation", new, old), f"equation of {new.source} and {old.source}", build)

    def _keys_equal(self, new: Binding, old: Binding) -> list[Body]:
        s, names = self.spelling.snippet, self.spelling.names
        options: list[Body] = []
        for here, there in sorted(self.scopes.equations(new.table, old.table)):
            left, right = names([f"{new.qualifier}.{here}"], "key"), names([f"{old.qualifier}.{there}"], "key")
            options += [sequence(left, s(" = "), right), sequence(right, s(" = "), left)]
        return options

    # Sub-queries -------------------------------------------------------------------------------------------------

    def _queries(self, scope: Scope, level: int) -> Queries | None:
        """What may stand in brackets inside a query at this level."""
        if level >= self.max_depth:
            return None
        column = self._column_query(level + 1)
        return Queries(
            level,
            self._rule("scalar query", scope, level, lambda: self._scalar(scope, column)),
            column,
            self._rule("rows", scope, level, lambda: self._rows(scope, level)),
        )

    def _scalar(self, scope: Scope, column: Reference) -> Body:
        bound = [self._correlated(binding, one_column=True) for binding in scope.bindings]
        return sequence(self.spelling.snippet("("), choice(column, *bound), self._close)

    def _rows(self, scope: Scope, level: int) -> Body:
        bound = [self._correlated(binding, one_column=False) for binding in scope.bindings]
        return choice(self._any_query(level + 1), *bound)

    def _column_query(self, level: int) -> Reference:
        """A query of one column."""

        def build() -> Body:
            return choice(
                *(
                    sequence(self._select, self._item(scope, level), self._tail(scope, level, self._compound(1, level)))
                    for scope in self._at_level[level]
                )
            )

        return self.rules.get(("column query", level), "query of one column", build)

    def _any_query(self, level: int) -> Reference:
        def build() -> Body:
            s = self.spelling.snippet
            sources = choice(*(self._source(scope, level) for scope in self._at_level[level]))
            return sequence(s("SELECT *", "SELECT 1"), sources)

        return self.rules.get(("any query", level), "query that EXISTS asks about", build)

    def _correlated(self, outer: Binding, *, one_column: bool) -> Reference | None:
        """A query of one table whose key equals a key of the outer table; of rows for EXISTS, or of one column."""
        if outer.table >= self._first_derived:
            return None
        tables = self.scopes.tables
        # A table of the outer name would hide it: its own columns would be meant.
        near = [
            table
            for table in sorted(self.scopes.neighbours[outer.table])
            if tables[table].name.lower() != (outer.alias or tables[outer.table].name).lower()
        ]
        if not near:
            return None
        return self.rules.get(
            ("correlated", outer, one_column),
            f"query that refers to {outer.source}",
            lambda: choice(*(self._correlated_with(outer, table, one_column) for table in near)),
        )

    def _correlated_with(self, outer: Binding, table: int, one_column: bool) -> Body:
        inner = Scope((self.scopes.binding(table, None),), False)
        source = inner.bindings[0]
        equations = self._keys_equal(source, outer)
        further = maybe(self.spelling.snippet(" AND "), self.conditions.condition(inner, Flavour.ROW, None))
        if one_column:
            start = self.spelling.phrase((" FROM ",), source.name, " WHERE ")
            head: Body = sequence(self._select, self._item(inner, self.max_depth), start)
        else:
            head = self.spelling.phrase(("SELECT * FROM ", "SELECT 1 FROM "), source.name, " WHERE ")
        return sequence(head, choice(*equations), further)

    def _derived_scope(self, width: int) -> Scope:
        return Scope((Binding(self._first_derived + width - 1, "T1", "T1", f"{width} columns of a query"),), True)

    def _derived_query(self, width: int) -> Reference:
        """A query in FROM, whose columns are called c1, c2, ..."""

        def build() -> Body:
            s = self.spelling.snippet
            options: list[Body] = []
            for scope in self._at_level[1]:
                items: list[Body] = []
                for place in range(1, width + 1):
                    items += [self._item(scope, 1), s(f" AS c{place}" + (", " if place < width else ""))]
                options.append(sequence(self._select, *items, self._tail(scope, 1, None)))
            return choice(*options)

        return self.rules.get(("derived", width), f"query of {width} named columns", build)
