"""What happens to the attribute of a query between its clauses: columns, sources, groups, orders."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.sql.query.relations import EVERY
from guided.grammar.sql.query.typed.changes import end
from guided.grammar.sql.query.typed.columns.traces import BREAK
from guided.grammar.sql.query.typed.columns.unsorted import has_groups
from guided.grammar.sql.query.typed.frames import CONDITION, PATH, UNKNOWN, Operand
from guided.grammar.sql.query.typed.queries import MOST_DEPTH, columns_of, may_be_cut, within
from guided.grammar.sql.query.typed.relations import Relation, bare_columns, is_named
from guided.grammar.sql.query.typed.scope import (
    Clause,
    Output,
    Pending,
    Query,
    Recursion,
    bind,
    conflicts,
    needed,
    queries_around,
    remaining,
    suits,
    unbound,
    wanting,
)
from guided.grammar.sql.query.typed.types import ALL, BIT, LITERALS, OTHER, SORTABLE, settled, settling

__all__ = [
    "UNNAMED", "admits", "all_columns", "all_columns_of", "all_rows", "awaits_table", "begin_distinct_on", "begin_from",
    "begin_group", "begin_group_term", "begin_groupings", "begin_having", "begin_item", "begin_limit", "begin_on",
    "begin_order", "begin_order_term", "begin_qualify", "begin_select", "begin_table", "begin_where", "bound",
    "comma", "distinct", "end_distinct_on", "end_group_term", "end_having", "end_item", "end_items", "end_on",
    "end_order_term",
    "end_value", "enter_count", "enter_lateral", "enter_recursive_table", "enter_source", "enter_table", "group_all",
    "grouped", "has_demanded", "has_none", "has_window", "is_emptied", "is_free", "is_of_distinct_on", "is_sortable",
    "lacks_columns", "leave_count", "leave_source", "leave_table", "may_be_distinct", "may_be_lateral",
    "may_be_written", "may_count", "may_enter", "may_have_values", "may_join", "may_order", "may_star", "next_item",
    "order_all", "sees_none", "settled_sources", "stands_for_demanded", "term_of", "wants_all", "wants_table",
]  # fmt: skip

_WHOLE = sum(BIT[name] for name in ("int2", "int4", "int8"))
_SORTED = SORTABLE & ~sum(BIT[name] for name in LITERALS)
"""Types that columns of a source may have and that have an order."""
UNNAMED = "?column?"
"""The name of a column that has none."""


def begin_item(query: Query) -> Query | None:
    """One more column, if as many are demanded."""
    goals = query.goals
    place = len(query.outputs)
    if goals is not None and (place >= len(goals) or not may_be_written(goals[place:])):
        return None
    goal = ALL if goals is None else goals[place]
    if query.distinct:
        goal &= SORTABLE
        if query.system.distinct_settles:
            goal = settling(query.system, goal)
    plain = goal == ALL and not (query.distinct or query.awaiting is not None or query.sees_parent)
    frame = Operand(query.system, goal, plain=plain)
    return query._replace(
        frame=frame, around=(), loose=frozenset(), tainted="", terms=frozenset(), column=None, trace=(), asked=False,
        refers=False,
    )  # fmt: skip


def end_value(query: Query) -> Query | None:
    """Behind the column's expression, before its name."""
    ended = end(query)
    if ended is None:
        return None
    name, strength = ended.label
    is_named = ended.system.labels or ended.column is not None or strength == PATH
    return ended._replace(name=name if is_named and strength and name != UNNAMED else "")


def end_item(query: Query) -> Query | None:
    """The column is whole, with the name that was noted."""
    name = query.name or None
    kind = query.value
    if name is not None and is_of_distinct_on(query, name) and not _is_as_named(query, name):
        return None
    if query.distinct and query.system.distinct_settles and kind != UNKNOWN:
        kind = settled(query.system, kind)
    demanded = query.goals is not None and query.result is None and kind != UNKNOWN
    if demanded and query.goals is not None and not query.goals[len(query.outputs)] & BIT[settled(query.system, kind)]:
        return None
    if name is not None and not _admits(query, name, settled(query.system, kind) if kind != UNKNOWN else kind):
        return None
    trace = query.trace if query.loose and query.column is None else None
    implied = query.label == (name, PATH)
    output = Output(
        name, kind, None, query.column, query.loose, query.tainted, trace, query.terms, query.asked, query.refers,
        implied,
    )  # fmt: skip
    return query._replace(
        outputs=(*query.outputs, output), loose=frozenset(), tainted="", terms=frozenset(), name="", column=None,
        trace=None,
    )  # fmt: skip


def _is_as_named(query: Query, name: str) -> bool:
    """Is the column that was read one of that name, and no other column of the result goes by it?"""
    alike = query.column is not None and query.column[1] == name
    return alike and all(one.column == query.column for one in query.outputs if one.name == name)


def is_of_distinct_on(query: Query, name: str) -> bool:
    """Would DISTINCT ON mean a column of the result by a name, rather than one of a source as it is read here?"""
    return query.system.distinct_on_result and (None, name) in query.distinct_on


def _admits(query: Query, name: str, kind: str) -> bool:
    """May a source have a column of a name: does what waits for it, or has it already, agree in type?"""
    around = query.awaiting
    if around is None:
        return True
    return admits(around, name, kind) and not (
        any(output.name == name for output in query.outputs) and _waits(around, name)
    )


def _waits(query: Query, name: str) -> bool:
    """Does a column wait without a qualifier, also in the query around to which ``*`` gives this one's?"""
    if any(pending.qualifier is None and pending.column == name for pending in query.pending):
        return True
    around = query.awaiting if query.is_starred else None
    return around is not None and _waits(around, name)


def _gives(query: Query, name: str, kind: str) -> bool:
    """May ``*`` give a column, if it is there, to the query around?"""
    around = query.awaiting if query.is_starred else None
    if around is None:
        return True
    if not admits(around, name, kind):
        return False
    bare = bare_columns(query.sources)
    known = any(output.name == name for output in query.outputs) or name in bare.unique or name in bare.ambiguous
    return not known or not _waits(around, name)


def admits(query: Query, name: str, kind: str, *, joined: bool = True) -> bool:
    """May one more source have such a column, by the names without a qualifier that wait?"""
    if not _gives(query, name, kind):
        return False
    if name in query.barred:
        return False
    waiting = [pending for pending in query.pending if pending.column == name]
    if all(pending.qualifier is not None for pending in waiting):
        return True
    # With a qualifier it is the same column, or USING makes one of both.
    is_merged = any(pending.qualifier is not None for pending in waiting)
    if (is_merged and not is_sortable(kind)) or not all(suits(query, pending, kind) for pending in waiting):
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
    whole = query.goals is None or len(query.outputs) == len(query.goals) or stands_for_demanded(query)
    return query if whole else None


def lacks_columns(query: Query) -> bool:
    """Are more columns demanded than there are?"""
    return query.goals is not None and len(query.outputs) < len(query.goals) and not stands_for_demanded(query)


def may_be_written(goals: tuple[int, ...]) -> bool:
    """Is there an expression for each column that is demanded?  Of types without a cast only tables have columns."""
    return all(goal & ~BIT[OTHER] for goal in goals)


def stands_for_demanded(query: Query) -> bool:
    """Is ``*`` all columns that are demanded, so that one source must have just these?"""
    return query.goals is not None and bool(query.outputs) and query.outputs[0].star is not None


def wants_table(query: Query) -> bool:
    """Is it the columns of a table that are demanded, which no sub-query has?"""
    return stands_for_demanded(query) and not may_be_written(query.goals or ())


def awaits_table(query: Query) -> bool:
    """Does a column wait whose name no sub-query gives?"""
    return any(pending.column in query.system.undefinable for pending in wanting(query))


def has_demanded(query: Query, relation: Relation) -> bool:
    """Has a source the columns that ``*`` must stand for, if it must?"""
    goals = query.goals
    if goals is None or not stands_for_demanded(query):
        return True
    kinds = [kind for _, kind in relation.columns]
    return len(kinds) == len(goals) and all(BIT[kind] & goal for kind, goal in zip(kinds, goals, strict=True))


def is_free(query: Query) -> Query | None:
    """Where any source may stand, also another: ``*`` stands for no columns that are demanded."""
    return None if stands_for_demanded(query) else query


def next_item(query: Query) -> Query | None:
    """Before the comma of one more column."""
    return query if query.goals is None or lacks_columns(query) else None


def may_star(query: Query) -> Query | None:
    """Where ``*`` may stand behind a source; where columns are demanded it is not known yet which these will be."""
    return None if query.goals is not None or query.aggregated or not _may_give(query) else query


def _may_give(query: Query) -> bool:
    """May ``*`` give columns to a query that waits: once, and where a query as a source may follow?"""
    return query.awaiting is None or not (query.is_starred or query.bound or query.depth > MOST_DEPTH)


def all_columns(query: Query) -> Query | None:
    """``*``; where columns are demanded it is all of them, of one source, for which no other name waits then."""
    alone = query.goals is not None and not (query.outputs or query.bound or query.pending) and query.awaiting is None
    alone = alone and query.depth <= MOST_DEPTH
    if may_star(query) is None and not alone:
        return None
    if query.distinct and not all(goal & _SORTED for goal in query.goals or ()):
        return None
    # No column of a source is a literal.
    goals = None if query.goals is None else tuple(settling(query.system, goal) for goal in query.goals)
    return query._replace(
        outputs=(*query.outputs, Output(None, "text", "")), goals=goals, needs_from=True, frame=None, around=(),
        trace=None,
    )  # fmt: skip


def all_columns_of(query: Query) -> Query | None:
    """``t.*``."""
    if may_star(query) is None:
        return None
    pending = query.pending | {Pending(query.name, EVERY, "", True)}
    outputs = (*query.outputs, Output(None, "text", query.name))
    return query._replace(outputs=outputs, pending=pending, name="", frame=None, around=(), trace=None)


def begin_select(query: Query) -> Query:
    """SELECT behind the sources, which tell what its names mean."""
    return query._replace(clause=Clause.SELECT)


def may_be_distinct(query: Query) -> Query | None:
    """Before DISTINCT."""
    return query if distinct(query) else None


def distinct(query: Query) -> Query | None:
    """DISTINCT; each column that is demanded must have an order."""
    goals = [goal & SORTABLE for goal in query.goals or ()]
    if query.system.distinct_settles:
        goals = [settling(query.system, goal) for goal in goals]
    return query._replace(distinct=True) if all(goals) else None


def begin_from(query: Query) -> Query:
    """Behind FROM."""
    return query._replace(clause=Clause.FROM)


def settled_sources(query: Query) -> Query | None:
    """A source that is there to stay: nothing that waits has become ambiguous."""
    return None if conflicts(query) else query


def has_none(query: Query) -> bool:
    """Do the sources leave no column for ``*``, which excludes theirs?"""
    stars = [output for output in query.outputs if output.star is not None]
    if len(stars) < len(query.outputs) or not any(output.excluded for output in stars):
        return False
    columns = [(one.name, name) for one in query.sources for name, _ in one.relation.columns]
    return not any(
        output.star in ("", where) and name not in output.excluded for output in stars for where, name in columns
    )


def is_emptied(query: Query, name: str, columns: Iterable[str | None]) -> bool:
    """Does ``name.*`` exclude all columns of a source that goes by the name, where the result may have no other?"""
    if any(one.star is None or not one.excluded for one in query.outputs):
        return False
    all_ = frozenset(columns)
    return any(one.star == name and one.excluded and all_ <= one.excluded for one in query.outputs)


def begin_on(query: Query) -> Query:
    """Behind ON."""
    return query._replace(clause=Clause.ON, frame=Operand(query.system, CONDITION), around=())


def end_on(query: Query) -> Query | None:
    """Behind the condition of a join."""
    ended = end(query)
    return None if ended is None else ended._replace(clause=Clause.FROM)


def comma(query: Query) -> Query | None:
    """A comma between sources."""
    return None if _must_join(query) else query._replace(commas=True)


def cross(query: Query) -> Query | None:
    """CROSS JOIN."""
    return None if _must_join(query) else query._replace(crossed=True)


def _must_join(query: Query) -> bool:
    """Must USING join a source that is missing, since a name waits with it and without?  Or may no other follow?"""
    waiting = {pending.column for pending in query.pending if pending.qualifier is None}
    apart = any(pending.column in waiting for pending in unbound(query) if pending.qualifier is not None)
    return apart or stands_for_demanded(query)


def may_join(query: Query) -> Query | None:
    """JOIN with a condition: not behind a comma, where names before it are not in scope."""
    return None if query.commas or stands_for_demanded(query) else query


def enter_source(query: Query) -> Query | None:
    """Begin a query as a source; it may be deeper than others, since names may wait for it."""
    goals = query.goals if stands_for_demanded(query) else None
    begun = within(query, goals, sees=False, most=MOST_DEPTH + 1)
    return None if begun is None else begun._replace(is_source=True)


def may_enter(query: Query) -> Query | None:
    """Where a query may be a source: one that must be all of a table has a source itself."""
    return query if query.depth + wants_table(query) <= MOST_DEPTH else None


def may_be_lateral(query: Query) -> Query | None:
    """Where LATERAL may begin a query as a source, which USING never joins."""
    return None if _must_join(query) else query


def enter_lateral(query: Query) -> Query | None:
    """Begin one that sees the sources before it."""
    begun = within(query, None, most=MOST_DEPTH + 1)
    return None if begun is None else begun._replace(is_source=True)


def leave_source(query: Query) -> Query | None:
    """Behind it."""
    assert query.parent is not None
    return query.parent._replace(relation=Relation(columns_of(query)), name="")


def bound(query: Query) -> Query | None:
    """Behind the sources."""
    return bind(query)


def begin_where(query: Query) -> Query:
    """Behind WHERE."""
    return query._replace(frame=Operand(query.system, CONDITION), around=())


def begin_group(query: Query) -> Query | None:
    """Before GROUP BY; not where a column could not be named there, or has no order."""
    if query.distinct_on or query.ungrouped:
        return None
    for output in query.outputs:
        for where, name in output.loose.union(*(term.loose for term in output.terms)):
            if where and not is_named(where) and name not in bare_columns(query.sources).unique:
                return None
    return query._replace(clause=Clause.GROUP, grouped=True) if has_groups(query) else None


def begin_groupings(query: Query) -> Query:
    """Before ROLLUP, CUBE and GROUPING SETS."""
    return query._replace(several_groupings=True)


def begin_group_term(query: Query) -> Query:
    """A term of GROUP BY."""
    return query._replace(alone=True, frame=Operand(query.system, SORTABLE), around=(), column=None, trace=())


def end_group_term(query: Query) -> Query | None:
    """Behind it."""
    ended = end(query)
    if ended is None:
        return None
    if ended.column is None:
        same = {place for place, output in enumerate(ended.outputs) if output.trace and output.trace == ended.trace}
        traces = ended.grouped_traces | ({ended.trace} if ended.trace else set())
        return ended._replace(grouped_outputs=ended.grouped_outputs | same, grouped_traces=traces, trace=None)
    groups = ended.groups | {ended.column}
    return ended._replace(groups=groups, column=None, trace=None)


def group_all(query: Query) -> Query | None:
    """GROUP BY ALL: by each column that has no aggregate, and no window; others have no columns beside aggregates."""
    found = query._replace(all_grouped=True)
    for place, output in enumerate(query.outputs):
        if not output.tainted:
            if not is_sortable(output.type):
                return None
            found = term_of(found, place)
        elif output.tainted not in ("aggregate", "both") or output.loose or any(term.loose for term in output.terms):
            return None
    return found


def wants_all(query: Query) -> bool:
    """Are there columns to group, and does GROUP BY ALL have them all?"""
    grouped_by_all = group_all(query) if needed(query) else None
    return grouped_by_all is not None and not needed(grouped_by_all)


def order_all(query: Query) -> Query | None:
    """ORDER BY ALL: by each column of the result; ARRAY(SELECT 1 ORDER BY ALL) would want a FROM."""
    if query.parent is not None and not query.sources and query.result is None:
        return None
    kinds = [kind for _, kind in columns_of(query)]
    return query if all(map(is_sortable, kinds)) and not remaining(query) else None


def begin_qualify(query: Query) -> Query | None:
    """Behind QUALIFY, the condition on what windows gave."""
    if query.all_grouped:
        return None
    return query._replace(clause=Clause.QUALIFY, frame=Operand(query.system, CONDITION), around=())


def has_window(query: Query) -> Query | None:
    """Where a window was used, so that QUALIFY may do without."""
    return query if query.windowed else None


def all_rows(query: Query) -> Query | None:
    """HAVING without GROUP BY: all rows are one group."""
    return None if query.groupings or query.distinct_on or query.ungrouped else grouped(query._replace(grouped=True))


def grouped(query: Query) -> Query | None:
    """Behind GROUP BY, and where none is: no column may be left that must be grouped."""
    return None if needed(query) else query


def begin_having(query: Query) -> Query:
    """Behind HAVING."""
    begun = query._replace(clause=Clause.HAVING, frame=Operand(query.system, CONDITION), around=())
    return begun._replace(trace=(BREAK,) if query.grouped_traces else None)


def end_having(query: Query) -> Query | None:
    """Behind its condition."""
    ended = end(query)
    return None if ended is None else ended._replace(trace=None)


def begin_order(query: Query) -> Query:
    """Behind ORDER BY."""
    return query._replace(clause=Clause.ORDER)


def may_have_values(query: Query) -> Query | None:
    """Where columns of the result may be any: not those of a table alone."""
    return query if may_be_written(query.goals or ()) else None


def begin_distinct_on(query: Query) -> Query:
    """Before a column of DISTINCT ON."""
    return query._replace(frame=Operand(query.system, SORTABLE), around=())


def end_distinct_on(query: Query) -> Query | None:
    """Behind it."""
    ended = end(query)
    if ended is None or ended.column is None:
        return None
    return ended._replace(distinct_on=ended.distinct_on | {ended.column}, column=None, loose=frozenset())


def begin_order_term(query: Query) -> Query | None:
    """A term of ORDER BY that is an expression: not of a set operation or VALUES, with DISTINCT a column's."""
    if query.result is not None or remaining(query):
        return None
    begun = query._replace(alone=True, frame=Operand(query.system, SORTABLE), around=(), column=None)
    if query.distinct:
        columns = (one.trace for one in query.outputs if one.trace and BREAK not in one.trace and is_sortable(one.type))
        traces = frozenset(columns)
        return begun._replace(followed=traces, trace=None) if traces else None
    return begun._replace(trace=() if query.grouped_traces else None)


def end_order_term(query: Query) -> Query | None:
    """Behind it: it is the whole of a group, or of a column of DISTINCT, if it had to become one."""
    ended = end(query)
    if ended is None or (ended.followed is not None and () not in ended.followed):
        return None
    return ended._replace(followed=None, trace=None)


def begin_limit(query: Query) -> Query | None:
    """Before LIMIT and OFFSET."""
    return query._replace(clause=Clause.LIMIT) if may_be_cut(query) else None


def enter_count(query: Query) -> Query | None:
    """Begin a query that says how many rows there are: it does not see those."""
    return within(query, (_WHOLE,), sees=False)


def may_count(query: Query) -> Query | None:
    """Where one may begin: in DuckDB not of a set operation, nor within a query that may name columns of another."""
    if query.system.lists and (query.result is not None or sees_none(query) is None):
        return None
    return query if enter_count(query) else None


def sees_none(query: Query) -> Query | None:
    """Where neither the query nor one around it may name columns from around."""
    return None if query.sees_parent or any(at.sees_parent for at in queries_around(query)) else query


def leave_count(query: Query) -> Query:
    """Behind it."""
    assert query.parent is not None
    return query.parent


def begin_table(query: Query) -> Query:
    """Before the name of a common table expression."""
    return query._replace(name="", relation=None)


def enter_table(query: Query) -> Query | None:
    """Begin its query, of as many columns as its list has."""
    listed = query.relation
    return within(query, None if listed is None else (ALL,) * len(listed.columns), sees=False)


def enter_recursive_table(query: Query) -> Query | None:
    """Begin the query of a table that may read itself."""
    begun = enter_table(query)
    names = () if query.relation is None else tuple(name or "" for name, _ in query.relation.columns)
    return None if begun is None else begun._replace(recursion=Recursion(query.name, names))


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
    if query.clause is Clause.GROUP and (
        query.outputs[place].refers or query.outputs[place].tainted not in ("", "rows")
    ):
        return False
    if query.clause is Clause.ORDER and query.result is None and remaining(query):
        return False
    return is_sortable(kind)


def term_of(query: Query, place: int) -> Query:
    """The query behind such a term."""
    if query.clause is not Clause.GROUP:
        return query
    column, trace = query.outputs[place].column, query.outputs[place].trace
    groups = query.groups if column is None else query.groups | {column}
    traces = query.grouped_traces | ({trace} if trace else set())
    return query._replace(grouped_outputs=query.grouped_outputs | {place}, groups=groups, grouped_traces=traces)
