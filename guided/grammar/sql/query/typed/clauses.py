"""What happens to the attribute of a query between its clauses: columns, sources, groups, orders."""

from __future__ import annotations

from guided.grammar.sql.query.typed.changes import end
from guided.grammar.sql.query.typed.frames import CONDITION, UNKNOWN, Operand
from guided.grammar.sql.query.typed.queries import MOST_DEPTH, columns_of, within
from guided.grammar.sql.query.typed.relations import Relation, bare_columns
from guided.grammar.sql.query.typed.scope import (
    Clause,
    Output,
    Pending,
    Query,
    bind,
    conflicts,
    needed,
    remaining,
    type_of,
    unbound,
)
from guided.grammar.sql.query.typed.types import ALL, BIT, SORTABLE, settled

__all__ = [
    "UNNAMED", "admits", "all_columns", "all_columns_of", "begin_distinct_on", "begin_from", "begin_group",
    "begin_group_term", "begin_groupings", "begin_having", "begin_item", "begin_limit", "begin_on", "begin_order",
    "begin_order_term", "begin_table", "begin_where", "bound", "comma", "distinct", "end_distinct_on",
    "end_group_term", "end_item", "end_items", "end_on", "end_value", "enter_source", "enter_table", "grouped",
    "is_sortable", "lacks_columns", "leave_source", "leave_table", "may_join", "may_order", "settled_sources",
    "term_of",
]  # fmt: skip

UNNAMED = "?column?"
"""The name of a column that has none."""


def begin_item(query: Query) -> Query | None:
    """One more column, if as many are demanded."""
    goals = query.goals
    place = len(query.outputs)
    if goals is not None and place >= len(goals):
        return None
    goal = ALL if goals is None else goals[place]
    if query.distinct:
        goal &= SORTABLE
    plain = goal == ALL and not (query.distinct or query.is_awaited or query.sees_parent)
    frame = Operand(query.system, goal, plain=plain)
    return query._replace(frames=(frame,), loose=frozenset(), tainted=False, column=None, trace=())


def end_value(query: Query) -> Query | None:
    """Behind the column's expression, before its name."""
    ended = end(query)
    if ended is None:
        return None
    name = ended.label[0]
    return ended._replace(name=name if ended.label[1] and name != UNNAMED else "")


def end_item(query: Query) -> Query | None:
    """The column is whole, with the name that was noted."""
    name = query.name or None
    kind = query.value
    demanded = query.goals is not None and query.result is None and kind != UNKNOWN
    if demanded and query.goals is not None and not query.goals[len(query.outputs)] & BIT[settled(query.system, kind)]:
        return None
    if name is not None and not _admits(query, name, settled(query.system, kind) if kind != UNKNOWN else kind):
        return None
    trace = query.trace if query.loose and query.column is None else None
    output = Output(name, kind, None, query.column, query.loose, query.tainted, trace)
    return query._replace(
        outputs=(*query.outputs, output), loose=frozenset(), tainted=False, name="", column=None, trace=None
    )


def _admits(query: Query, name: str, kind: str) -> bool:
    """May a source have a column of a name: does what waits for it, or has it already, agree in type?"""
    if not query.is_awaited or query.result is not None:
        return True
    around = query.parent
    assert around is not None
    return admits(around, name, kind) and not (
        any(output.name == name for output in query.outputs)
        and any(pending.qualifier is None and pending.column == name for pending in around.pending)
    )


def admits(query: Query, name: str, kind: str, *, joined: bool = True) -> bool:
    """May one more source have such a column, by the names without a qualifier that wait?"""
    waiting = [pending for pending in query.pending if pending.qualifier is None and pending.column == name]
    if not waiting:
        return True
    if any(pending.type not in ("", kind) for pending in waiting) or (query.aggregated and not is_sortable(kind)):
        return False
    bare = bare_columns(query.sources)
    if name in bare.ambiguous:
        return False
    if name not in bare.unique:
        return True
    return (
        joined and not (query.commas or query.crossed) and bare.unique[name][1] == kind and bool(SORTABLE & BIT[kind])
    )


def end_items(query: Query) -> Query | None:
    """Behind the last column: as many as are demanded."""
    return query if query.goals is None or len(query.outputs) == len(query.goals) else None


def lacks_columns(query: Query) -> bool:
    """Are more columns demanded than there are?"""
    return query.goals is not None and len(query.outputs) < len(query.goals)


def all_columns(query: Query) -> Query | None:
    """``*``; where a number of columns is demanded it is not known yet how many these will be."""
    if query.goals is not None or query.aggregated or query.is_awaited:
        return None
    return query._replace(outputs=(*query.outputs, Output(None, "text", "")), needs_from=True, frames=(), trace=None)


def all_columns_of(query: Query) -> Query | None:
    """``t.*``."""
    if query.goals is not None or query.aggregated or query.is_awaited:
        return None
    pending = query.pending | {Pending(query.name, "*", "", True)}
    outputs = (*query.outputs, Output(None, "text", query.name))
    return query._replace(outputs=outputs, pending=pending, name="", frames=(), trace=None)


def distinct(query: Query) -> Query:
    """DISTINCT."""
    return query._replace(distinct=True)


def begin_from(query: Query) -> Query:
    """Behind FROM."""
    return query._replace(clause=Clause.FROM)


def settled_sources(query: Query) -> Query | None:
    """A source that is there to stay: nothing that waits has become ambiguous."""
    return None if conflicts(query) else query


def begin_on(query: Query) -> Query:
    """Behind ON."""
    return query._replace(clause=Clause.ON, frames=(Operand(query.system, CONDITION),))


def end_on(query: Query) -> Query | None:
    """Behind the condition of a join."""
    ended = end(query)
    return None if ended is None else ended._replace(clause=Clause.FROM)


def comma(query: Query) -> Query | None:
    """A comma between sources; not where USING must make one of two columns of a name."""
    waiting = {pending.column for pending in query.pending if pending.qualifier is None}
    if any(pending.column in waiting for pending in unbound(query) if pending.qualifier is not None):
        return None
    return query._replace(commas=True)


def cross(query: Query) -> Query:
    """CROSS JOIN."""
    return query._replace(crossed=True)


def may_join(query: Query) -> Query | None:
    """JOIN with a condition: not behind a comma, where names before it are not in scope."""
    return None if query.commas else query


def enter_source(query: Query) -> Query | None:
    """Begin a query as a source; it may be deeper than others, since names may wait for it."""
    return within(query, None, sees=False, most=MOST_DEPTH + 1)


def leave_source(query: Query) -> Query | None:
    """Behind it."""
    assert query.parent is not None
    return query.parent._replace(relation=Relation(columns_of(query)), name="")


def bound(query: Query) -> Query | None:
    """Behind the sources."""
    return bind(query)


def begin_where(query: Query) -> Query:
    """Behind WHERE."""
    return query._replace(frames=(Operand(query.system, CONDITION),))


def begin_group(query: Query) -> Query | None:
    """Behind GROUP BY; not where a column could not be named there, or has no order."""
    if query.distinct_on:
        return None
    for output in query.outputs:
        for where, name in output.loose:
            kind = type_of(query, (where or None, name))
            if kind is None or not is_sortable(kind):
                return None
    return query._replace(clause=Clause.GROUP, grouped=True)


def begin_groupings(query: Query) -> Query:
    """Before ROLLUP and CUBE."""
    return query._replace(several_groupings=True)


def begin_group_term(query: Query) -> Query:
    """A term of GROUP BY."""
    return query._replace(alone=True, frames=(Operand(query.system, SORTABLE),), column=None, trace=())


def end_group_term(query: Query) -> Query | None:
    """Behind it."""
    ended = end(query)
    if ended is None:
        return None
    if ended.column is None:
        same = {place for place, output in enumerate(ended.outputs) if output.trace and output.trace == ended.trace}
        return ended._replace(grouped_outputs=ended.grouped_outputs | same, trace=None)
    groups = ended.groups | {ended.column}
    return ended._replace(groups=groups, column=None, trace=None)


def grouped(query: Query) -> Query | None:
    """Behind GROUP BY, and where none is: no column may be left that must be grouped."""
    return None if needed(query) else query


def begin_having(query: Query) -> Query:
    """Behind HAVING."""
    return query._replace(clause=Clause.HAVING, frames=(Operand(query.system, CONDITION),))


def begin_order(query: Query) -> Query:
    """Behind ORDER BY."""
    return query._replace(clause=Clause.ORDER)


def begin_distinct_on(query: Query) -> Query:
    """Before a column of DISTINCT ON."""
    return query._replace(frames=(Operand(query.system, SORTABLE),))


def end_distinct_on(query: Query) -> Query | None:
    """Behind it."""
    ended = end(query)
    if ended is None or ended.column is None:
        return None
    return ended._replace(distinct_on=ended.distinct_on | {ended.column}, column=None, loose=frozenset())


def begin_order_term(query: Query) -> Query | None:
    """A term of ORDER BY that is an expression: not of a set operation, nor with DISTINCT."""
    if query.result is not None or query.distinct or remaining(query):
        return None
    return query._replace(alone=True, frames=(Operand(query.system, SORTABLE),), column=None)


def begin_limit(query: Query) -> Query:
    """Behind LIMIT and OFFSET."""
    return query._replace(clause=Clause.LIMIT)


def begin_table(query: Query) -> Query:
    """Before the name of a common table expression."""
    return query._replace(name="", relation=None)


def enter_table(query: Query) -> Query | None:
    """Begin its query, of as many columns as its list has."""
    listed = query.relation
    return within(query, None if listed is None else (ALL,) * len(listed.columns), sees=False)


def leave_table(query: Query) -> Query:
    """The query around, with the table defined."""
    around = query.parent
    assert around is not None
    columns = columns_of(query)
    if around.relation is not None:
        columns = tuple((name, kind) for (name, _), (_, kind) in zip(around.relation.columns, columns, strict=True))
    return around._replace(tables=((around.name, Relation(columns)), *around.tables), name="", relation=None)


def is_sortable(kind: str) -> bool:
    """Has a type an order?"""
    return bool(SORTABLE & BIT[kind])


def may_order(query: Query, place: int) -> bool:
    """May a column of the result be such a term?"""
    kind = columns_of(query)[place][1] if query.result is not None else query.outputs[place].type
    if query.clause is Clause.GROUP and query.outputs[place].tainted:
        return False
    if query.clause is Clause.ORDER and query.result is None and remaining(query):
        return False
    return is_sortable(kind)


def term_of(query: Query, place: int) -> Query:
    """The query behind such a term."""
    if query.clause is not Clause.GROUP:
        return query
    column = query.outputs[place].column
    groups = query.groups if column is None else query.groups | {column}
    return query._replace(grouped_outputs=query.grouped_outputs | {place}, groups=groups)
