"""What a query demands of the text behind it: names that wait, columns that must be grouped, values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from guided.grammar.attributed.measures import Measure
from guided.grammar.attributed.pricing import Rise
from guided.grammar.sql.query.relations import Holders
from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.alternatives import alike
from guided.grammar.sql.query.typed.clauses import may_be_written, stands_for_demanded
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.columns.unsorted import MOST_POSITION, unsorted_outputs
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.ending import Ending
from guided.grammar.sql.query.typed.frames import Alternatives, Calling, Lambda, Operand
from guided.grammar.sql.query.typed.relations import Relation, bare_columns
from guided.grammar.sql.query.typed.row_values import Row
from guided.grammar.sql.query.typed.scope import Clause, Column, Pending, Query, conflicts, needed, unbound
from guided.grammar.sql.query.typed.sourcing.tables import taken_names
from guided.grammar.sql.query.typed.types import settling
from guided.grammar.sql.query.typed.undecided import example, is_undecided

__all__ = ["Owing"]

_CONDITIONS = ("compare", "equal", "quantified")


class Owing:
    """Bounds for what queries of one engine demand, by a measure."""

    def __init__(self, dialect: TypedDialect, catalog: Catalog, measure: Measure) -> None:
        text = measure.text
        self._ending = ending = Ending(dialect, measure)
        self._holders = Holders(relation.types for relation in catalog.relations.values())
        self._tables = {id(one) for of in (catalog.relations, *catalog.schemas.values()) for one in of.values()}
        self._widest = catalog.widest
        self._longest = max(map(measure.name, catalog.every_name), default=0)
        self._comma = text(", ")
        self._letter = text("a")
        self._condition = text(" TRUE") - text(" 1")
        """What the condition of a join takes more than the shortest expression."""
        self._one = text("1")
        self._from = text(" FROM")
        self._table = self._from + text(" .") + 2 * self._longest
        """A table with its schema."""
        self._source = text(", (SELECT )")
        """A sub-query as a source beside its columns and its name, which is a letter where nothing waits for it."""
        self._joined = text(" JOIN USING()") - text(",")
        """What it takes besides where it must be joined, since a column of it waits without a qualifier, too."""
        self._group = text(" GROUP BY")
        self._place = text(", ") + text(str(MOST_POSITION))
        self._window = text(",  AS()")
        self._null = text(",NULL")
        self._not_null = text("TIMESTAMP '0001-01-01'") - text("NULL")
        """What a value takes more than NULL, in the arguments of a function for which NULL matters."""
        self._alone = text("((NULL))")
        """What a value takes more than NULL where a literal alone is no term."""
        self._listed = text(",a") + text('""')
        """A name in a list of columns, or the brackets around it."""
        self._cast = text("NULL::")
        self._column_to_come = self._cast + ending.dearest_type + text(" a,") + text('""')
        self._cell = self._comma + self._cast + ending.dearest_type
        self._asked = text(",()") + text("||(SELECT 0)::text")
        self._named = self._from + self._source + self._joined + self._column_to_come + self._group + 4 * text('""')
        """What a name demands beside its own: a sub-query with a column, and a group."""
        self._written = measure.name

    def owed(self, query: Query) -> int:
        """What is enough for what a query and those around it demand beside their clauses."""
        found = self._parts(query)
        for at in _chain(query):
            found += self._expressions(at) + self._columns(at)
            if at.clause is Clause.FROM:
                found += self._condition
            if not at.bound:
                found += self._sources(at, unbound(at)) + sum(
                    self._comma + self._written(name) for name in conflicts(at)
                )
                found += self._shared(at)
            if at.is_grouped:
                found += self._place * unsorted_outputs(at)
                found += self._grouped(needed(at) if at.bound and at.clause is not Clause.SELECT else _used(at))
            if at.computed.is_whole:
                found += self._query_more(max(len(at.outputs), len(at.goals or ())))
            if at.windows - at.defined_windows:
                found += self._group + sum(
                    self._window + self._written(name) for name in at.windows - at.defined_windows
                )
            if at.followed:
                found += max(map(self._left, at.followed))
            found += sum(self._qualified(column) for column in at.distinct_on)
            if at.distinct_on and at.clause is Clause.SELECT:
                # The column that is read may need another name than it has.
                found += self._listed
        return found

    def rises(self, query: Query) -> Rise:
        """What a query may owe besides while more lexemes are read.

        One changes an expression and begins another or two, or it begins a call.  A name may wait for a source that has
        it, and must be grouped; a qualifier waits with its column.  A bracket or a set operator begins a row of as many
        columns as another has, which are there already, or are those of a source that is read meanwhile.
        """
        once = self._ending.dearest - self._ending.fresh
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
                once += self._from + self._source
            if at.clause is Clause.VALUES:
                once += self._null * len(at.outputs)
            if at.is_source:
                once += self._listed * (columns + 1)
            if not at.bound:
                known = at.pending - unbound(at)
                once += sum(
                    self._comma + self._written(pending.column) for pending in known if pending.qualifier is None
                )
            if not at.is_grouped:
                columns_of = [(one.name, name or "") for one in at.sources for name, _ in one.relation.columns]
                once += self._grouped(_used(at).union(columns_of if starred else ()))
                once += self._place * unsorted_outputs(at)
            traces = (*at.grouped_traces, *(output.trace or () for output in at.outputs))
            once += max((self._left((*trace, ")")) for trace in traces), default=0)
        row = columns * (self._comma + self._null + (self._ending.dearest_type + self._comma if mixed else 0))
        part = self._null * (parts + 1) + (self._not_null if self._ending.system.null_matters else 0)
        keyword = max(self._ending.dearest, self._ending.fresh + self._from + self._source) + 2 * self._null
        if self._ending.system.computable:
            row += self._query_more(columns)
        other = part + max(
            self._named, self._ending.dearest_call + self._null, keyword, row, self._listed * (columns + 1)
        )
        late = self._widest * (self._null * (parts + 1) + self._ending.dearest_type + 2 * self._longest) + self._left(
            query.trace or ()
        )
        return Rise(self._ending.fresh + part, other, once, late, 2 if is_starred else 3)

    def _query_more(self, columns: int) -> int:
        """A query among constants that may fail (`typed.computed`): in one more row, or with an operator."""
        return self._asked + (columns + 1) * self._cell

    # Expressions ---------------------------------------------------------------------------------------------------

    def _expressions(self, query: Query) -> int:
        """What is enough for the expressions that are being read."""
        found = 0
        above: Any = None
        every = _frames(query)
        for frame in reversed(every):
            match frame:
                case Operand():
                    found += self._operand(frame, above, query)
                case Calling(name=name, types=types):
                    found += self._ending.more(name, len(types) + isinstance(above, Operand)) + self._null
                case Alternatives():
                    found += 2 * self._null
                case Lambda():
                    found += self._ending.dearest_call + 2 * self._null
                case Row(types=types, overlaps=True):
                    found += self._ending.more("overlaps", len(types) + isinstance(above, Operand)) + self._null
                case Row(types=types):
                    found += self._null * len(types)
            above = frame
        if query.no_null:
            found += self._not_null * (len(every) - query.no_null + 2)
        return found + self._alone * query.alone

    def _operand(self, operand: Operand, above: Any, query: Query) -> int:
        """What is enough for one of them, on which another may have begun."""
        ending = self._ending
        may_be_indexed = operand.indexed and operand.type[:1] == "_"
        # What does not matter here, so that equal ones are found once.
        operand = operand._replace(label=("", 0), column=None, indexed=False, no_query=False, asks=frames.Asks.NOTHING)
        if operand.computed:
            operand = operand._replace(digits=0, risky=False)
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
        """Columns of the result that are still demanded, of a row, or of the list of a source's columns."""
        found = 0
        goals = query.goals
        if goals is not None and query.clause is Clause.VALUES:
            # No literal that becomes another type.
            goals = tuple(settling(query.system, goal) for goal in goals)
        if goals is not None:
            place = len(query.outputs)
            if stands_for_demanded(query) and not query.sources:
                # A sub-query has them.
                place = 0
                found += self._listed
            found += sum(self._comma + self._ending.value(goal) for goal in goals[place:])
            if not may_be_written(goals):
                found += self._table
        if query.clause is Clause.VALUES and query.distinct:
            left = query.outputs[query.cell :]
            found += self._null * len(left)
            if goals is not None:
                pairs = zip(left, goals[query.cell :], strict=True)
                found += sum(self._ending.value(alike(query.system, one.type, goal)) for one, goal in pairs)
        if query.relation is not None and not self._is_table(query, query.relation):
            found += self._listed * (1 + len(query.relation.columns))
        return found

    def _is_table(self, query: Query, relation: Relation) -> bool:
        """Has it names for its columns that no list may replace?"""
        return id(relation) in self._tables or any(one is relation for _, one in query.named_tables)

    def _parts(self, query: Query) -> int:
        """What is enough for a second part of each set operation that begins with the query in brackets."""
        found = columns = 0
        for at in _chain(query):
            width = max(len(at.outputs) + 1, len(at.goals or ()))
            if any(output.star is not None for output in at.outputs):
                width += sum(len(source.relation.columns) for source in at.sources) or self._widest
            columns = max(columns, width)
            if at.in_part:
                found += self._null * columns
        return found

    # Names that wait -----------------------------------------------------------------------------------------------

    def _sources(self, query: Query, missing: Iterable[Pending]) -> int:
        """What is enough for sub-queries that define what waits for sources, and for what else FROM must have."""
        bare = {one.column for one in query.pending if one.qualifier is None}
        there = bare_columns(query.sources).unique
        types: dict[Column, int] = {}
        for pending in missing:
            column = (pending.qualifier, pending.column)
            # USING makes one of it and of what a source has, which are of one type.
            kind = there[pending.column][1] if pending.column in bare and pending.column in there else pending.type
            types[column] = max(types.get(column, 0), self._defined(kind))
        found = 0
        for qualifier in {where for where, _ in types}:
            found += self._source + (self._letter if qualifier is None else self._written(qualifier))
        for (where, name), value in types.items():
            found += value + self._comma + self._written(name)
            if where is not None and name in bare:
                found += self._joined + self._letter + self._written(name)
        if any(output.excluded for output in query.outputs):
            # Another source, that a column is left.
            found += self._source + max(self._longest, self._letter)
        if query.needs_from and not query.sources and not types:
            found += self._source
        if query.name and query.frame is not None and query.clause is not Clause.FROM:
            # A qualifier whose column is still to come.
            found += self._source + self._written(query.name) + self._column_to_come
        top = query.frame
        if (
            query.calls
            and isinstance(top, Operand)
            and not (top.type or any(isinstance(one, Calling) for one in query.around))
        ):
            # GROUPING, whose column is still to come.
            found += self._source + self._column_to_come
        return found + (self._from if found and query.clause is Clause.SELECT else 0)

    def _shared(self, query: Query) -> int:
        """What is enough for a source that is read or to come, which may have a column that waits and is there."""
        if query.clause is not Clause.FROM or not query.sources:
            return 0
        taken, found = taken_names(query), 0
        if query.relation is not None:
            taken &= query.relation.types.keys()
        elif self._holders.is_in_each(taken):
            # No table is apart: a sub-query, or behind a schema a table that USING joins by all of them.
            found = self._source + self._letter
        else:
            return 0
        return found + sum(self._comma + self._written(name) for name in taken)

    def _defined(self, kind: str) -> int:
        """A column of a type, without its name."""
        if is_undecided(kind):
            kind = example(self._ending.system, kind)
        return self._one if kind in ("", "int4") else self._cast + self._ending.word(kind)

    # Names ---------------------------------------------------------------------------------------------------------

    def _left(self, trace: tuple[str, ...]) -> int:
        """What is left of an expression that must be another."""
        return sum(self._comma + self._written(part) for part in trace)

    def _grouped(self, columns: frozenset[Column]) -> int:
        return self._group + sum(map(self._qualified, columns)) if columns else 0

    def _qualified(self, column: Column) -> int:
        """A column behind a comma and its source, which may go by a letter."""
        where, name = column
        return self._comma + self._written(name) + (0 if where is None else self._letter + self._written(where))


def _chain(query: Query | None) -> Iterator[Query]:
    """A query and those around it."""
    while query is not None:
        yield query
        query = query.parent


def _frames(query: Query) -> tuple[Any, ...]:
    """What waits of the expression that is read, the outermost first."""
    return () if query.frame is None else (*query.around, query.frame)


def _used(query: Query) -> frozenset[Column]:
    """The columns that must be grouped where rows are."""
    return query.used | query.groupings
