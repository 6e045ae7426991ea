"""What a query demands of the text behind it, in bytes: names that wait, columns that must be grouped, values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from guided.grammar.attributed.pricing import Rise
from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.ending import Ending
from guided.grammar.sql.query.typed.frames import Alternatives, Calling, Operand
from guided.grammar.sql.query.typed.relations import Relation
from guided.grammar.sql.query.typed.row_values import Row
from guided.grammar.sql.query.typed.scope import Clause, Column, Pending, Query, conflicts, needed, unbound
from guided.grammar.sql.query.typed.undecided import example, is_undecided

__all__ = ["Owing"]

_FROM = len(" FROM")
_SOURCE = len(", (SELECT )")
"""Bytes of a sub-query as a source beside its columns and its name, which is a letter where nothing waits for it."""
_JOINED = len(" JOIN USING()") - len(",")
"""Those more where it must be joined, since a column of it waits without a qualifier, too."""
_GROUPED = len(" GROUP BY")
_WINDOW = len(",  AS()")
_NULL = len(",NULL")
_NOT_NULL = len("TIMESTAMP '0001-01-01'") - len("NULL")
"""Bytes of a value more than of NULL, in the arguments of a function for which NULL matters."""
_ALONE = len("((NULL))")
"""Bytes of a value more than of NULL where a literal alone is no term."""
_LISTED = len(",a") + 2
"""Bytes of a name in a list of columns, or of the brackets around it."""
_CONDITIONS = ("compare", "equal", "quantified")


class Owing:
    """Bounds for the bytes that queries of one engine demand."""

    def __init__(self, dialect: TypedDialect, catalog: Catalog) -> None:
        self._ending = Ending(dialect)
        self._column_to_come = len("NULL::") + self._ending.dearest_type + len(" a,") + 2
        # What a name demands beside its own bytes: a sub-query with a column, and a group.
        self._demanded = _FROM + _SOURCE + _JOINED + self._column_to_come + _GROUPED + 8
        self._tables = {id(one) for of in (catalog.relations, *catalog.schemas.values()) for one in of.values()}
        self._widest = catalog.widest
        self._longest = catalog.longest

    def owed(self, query: Query) -> int:
        """Bytes that are enough for what a query and those around it demand beside their clauses."""
        found = self._parts(query)
        for at in _chain(query):
            found += self._expressions(at) + self._columns(at)
            if not at.bound:
                found += self._sources(at, unbound(at)) + sum(2 + _written(name) for name in conflicts(at))
            if at.is_grouped:
                found += _grouped(_loose(at) if not at.bound else needed(at))
            if at.windows - at.defined_windows:
                found += _GROUPED + sum(_WINDOW + _written(name) for name in at.windows - at.defined_windows)
            if at.followed:
                found += max(map(_left, at.followed))
            found += sum(_qualified(column) for column in at.distinct_on)
        return found

    def rises(self, query: Query) -> Rise:
        """Bytes that a query may owe besides while more lexemes are read.

        One changes an expression and begins another or two, or it begins a call.  A name may wait for a source that has
        it, and must be grouped; a qualifier waits with its column.  A bracket or a set operator begins a row of as many
        columns as another has, which are there already, or are those of a source that is read meanwhile.
        """
        ending = self._ending
        once = ending.dearest - ending.fresh
        columns = parts = 0
        mixed = is_starred = False
        for at in _chain(query):
            columns = max(columns, len(at.outputs), len(at.goals or ()), len(at.result or ()))
            sources = [source.relation for source in at.sources] + ([] if at.relation is None else [at.relation])
            starred = any(output.star is not None for output in at.outputs)
            is_starred = is_starred or starred
            if starred:
                columns = max(columns, sum(len(relation.columns) for relation in sources))
            columns = max([columns, *(len(relation.columns) for _, relation in at.tables)])
            mixed = mixed or bool(at.operators)
            parts += at.in_part
            if at.clause is Clause.SELECT and not (at.needs_from or at.pending):
                once += _FROM + _SOURCE
            if at.clause is Clause.VALUES:
                once += _NULL * len(at.outputs)
            if at.is_source:
                once += _LISTED * (columns + 1)
            if not at.bound:
                known = at.pending - unbound(at)
                once += sum(2 + _written(pending.column) for pending in known if pending.qualifier is None)
            if not at.is_grouped:
                columns_of = [(one.name, name or "") for one in at.sources for name, _ in one.relation.columns]
                once += _grouped(_loose(at).union(columns_of if starred else ()))
            traces = (*at.grouped_traces, *(output.trace or () for output in at.outputs))
            once += max((_left(trace) for trace in traces), default=0)
        row = columns * (2 + (_NULL - 1 + ending.dearest_type + 2 if mixed else _NULL))
        part = _NULL * (parts + 1) + (_NOT_NULL if ending.system.null_matters else 0)
        keyword = max(ending.dearest, ending.fresh + _FROM + _SOURCE) + 2 * _NULL
        other = part + max(self._demanded, ending.dearest_call + _NULL, keyword, row, _LISTED * (columns + 1))
        late = self._widest * (_NULL * (parts + 1) + ending.dearest_type + 2 * self._longest) + _left(query.trace or ())
        return Rise(ending.fresh + part, other, once, late, 2 if is_starred else 3)

    def named(self, query: Query) -> int:
        """Bytes that a query may owe besides when one more name is read."""
        rise = self.rises(query)
        return rise.other + rise.once

    # Expressions ---------------------------------------------------------------------------------------------------

    def _expressions(self, query: Query) -> int:
        """Bytes for the expressions that are being read."""
        found = 0
        above: Any = None
        every = _frames(query)
        for frame in reversed(every):
            match frame:
                case Operand():
                    found += self._operand(frame, above, query)
                case Calling(name=name, types=types):
                    found += self._ending.more(name, len(types) + isinstance(above, Operand)) + _NULL
                case Alternatives():
                    found += 2 * _NULL
                case Row(types=types, overlaps=True):
                    found += self._ending.more("overlaps", len(types) + isinstance(above, Operand)) + _NULL
                case Row(types=types):
                    found += _NULL * len(types)
            above = frame
        if query.no_null:
            found += _NOT_NULL * (len(every) - query.no_null + 2)
        return found + _ALONE * query.alone

    def _operand(self, operand: Operand, above: Any, query: Query) -> int:
        """Bytes for one of them, on which another may have begun."""
        ending = self._ending
        may_be_indexed = operand.indexed and operand.type[:1] == "_"
        # What does not matter here, so that equal ones are found once.
        operand = operand._replace(label=("", 0), column=None, indexed=False, no_query=False, asks=frames.Asks.NOTHING)
        if not operand.type:
            found = ending.behind(operand)
            if operand.waits and operand.waits[-1].operator in _CONDITIONS:
                # What is begun may be an array behind ANY, or its query.
                *rest, wait = operand.waits
                compared = ending.begun(frames.as_condition(operand._replace(waits=tuple(rest)), wait.operator))
                found = max(found, compared + (ending.any_array if above is None else 0))
            if above is None:
                return max(found, ending.begun(operand))
            if isinstance(above, Row):
                found = max(found, ending.begun(frames.as_condition(operand, "compare")))
            return found
        if isinstance(above, Alternatives):
            return ending.begun(frames.as_condition(operand, "in"))
        found = ending.begun(operand)
        if may_be_indexed:
            found = max(found, ending.begun(operand._replace(type=operand.type[1:])))
        return found

    def _columns(self, query: Query) -> int:
        """Bytes for columns of the result that are still demanded, of a row, or of the list of a source's columns."""
        found = 0
        if query.goals is not None:
            found += sum(2 + self._ending.value(goal) for goal in query.goals[len(query.outputs) :])
        if query.clause is Clause.VALUES and query.distinct:
            found += _NULL * max(0, len(query.outputs) - query.cell)
        if query.relation is not None and not self._is_table(query, query.relation):
            found += _LISTED + _LISTED * len(query.relation.columns)
        return found

    def _is_table(self, query: Query, relation: Relation) -> bool:
        """Has it names for its columns that no list may replace?"""
        return id(relation) in self._tables or any(one is relation for _, one in query.named_tables)

    def _parts(self, query: Query) -> int:
        """Bytes for a second part of each set operation that begins with the query in brackets."""
        count = sum(1 for at in _chain(query) if at.in_part)
        if not count:
            return 0
        columns = 0
        for at in _chain(query):
            width = max(len(at.outputs) + 1, len(at.goals or ()))
            if any(output.star is not None for output in at.outputs):
                width += sum(len(source.relation.columns) for source in at.sources) or self._widest
            columns = max(columns, width)
            if at.in_part:
                break
        return count * _NULL * columns

    # Names that wait -----------------------------------------------------------------------------------------------

    def _sources(self, query: Query, missing: Iterable[Pending]) -> int:
        """Bytes for sub-queries that define what waits for sources, and for what else FROM must have."""
        bare = {one.column for one in query.pending if one.qualifier is None}
        types: dict[Column, int] = {}
        for pending in missing:
            column = (pending.qualifier, pending.column)
            types[column] = max(types.get(column, 0), self._defined(pending.type))
        found = 0
        for qualifier in {where for where, _ in types}:
            found += _SOURCE + (1 if qualifier is None else _written(qualifier))
        for (where, name), value in types.items():
            found += value + 2 + _written(name)
            if where is not None and name in bare:
                found += _JOINED + 1 + _written(name)
        if query.needs_from and not query.sources and not types:
            found += _SOURCE
        if query.name and query.frame is not None and query.clause is not Clause.FROM:
            # A qualifier whose column is still to come.
            found += _SOURCE + _written(query.name) + self._column_to_come
        top = query.frame
        if (
            query.calls
            and isinstance(top, Operand)
            and not (top.type or any(isinstance(one, Calling) for one in query.around))
        ):
            # GROUPING, whose column is still to come.
            found += _SOURCE + self._column_to_come
        return found + (_FROM if found and query.clause is Clause.SELECT else 0)

    def _defined(self, kind: str) -> int:
        """Bytes of a column of a type, without its name."""
        if is_undecided(kind):
            kind = example(self._ending.system, kind)
        return 1 if kind in ("", "int4") else len("NULL::") + self._ending.word(kind)


def _chain(query: Query | None) -> Iterator[Query]:
    """A query and those around it."""
    while query is not None:
        yield query
        query = query.parent


def _frames(query: Query) -> tuple[Any, ...]:
    """What waits of the expression that is read, the outermost first."""
    return () if query.frame is None else (*query.around, query.frame)


def _loose(query: Query) -> frozenset[Column]:
    """The columns that must be grouped where rows are."""
    terms = [*query.terms, *(term for output in query.outputs for term in output.terms)]
    parts = [
        query.loose,
        query.around_term or frozenset(),
        *(one.loose for one in query.outputs),
        *(one.loose for one in terms),
    ]
    return query.groupings.union(*parts)


def _left(trace: tuple[str, ...]) -> int:
    """Bytes of what is left of an expression that must be another."""
    return sum(len(part) + 4 for part in trace)


def _grouped(columns: frozenset[Column]) -> int:
    return _GROUPED + sum(map(_qualified, columns)) if columns else 0


@lru_cache(maxsize=1 << 14)
def _qualified(column: Column) -> int:
    """Bytes of a column behind a comma and its source, which may go by a letter."""
    where, name = column
    return 2 + _written(name) + (0 if where is None else 1 + _written(where))


@lru_cache(maxsize=1 << 14)
def _written(name: str) -> int:
    """Bytes of a name in quotes."""
    return 2 + len(name.encode("utf-8", "surrogatepass")) + name.count('"')
