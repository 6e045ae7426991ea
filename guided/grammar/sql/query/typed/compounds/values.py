"""VALUES: rows of expressions, whose columns have names that the engine gives them."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Node, Sign, Star, seq, words
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.alternatives import alike
from guided.grammar.sql.query.typed.computed.contexts import begin, end
from guided.grammar.sql.query.typed.queries import MOST_DEPTH
from guided.grammar.sql.query.typed.scope import Clause, Computed, Output, Query
from guided.grammar.sql.query.typed.types import ALL, ANY_NULL, BIT, OTHER, common, settled, settling

__all__ = ["values"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")


def values(body: Node) -> Node:
    """VALUES and its rows."""
    cell = seq(Action(_begin_cell), body, Action(_end_cell))
    more = Star(seq(Action(_next_cell), _COMMA, cell), _wants_cell)
    row = seq(Action(_begin_row), _OPEN, cell, more, Action(_end_row), _CLOSE)
    return seq(Action(_begin), words("VALUES"), row, Star(seq(_COMMA, row), _may_fail), Action(_end))


def _begin(query: Query) -> Query | None:
    """Before VALUES: there will be no sources."""
    leads = query.in_part and query.result is None and query.parent is not None and query.parent.result is None
    if leads and not query.system.leading_values:
        return None
    if not all(settling(query.system, goal) & ~BIT[OTHER] for goal in query.goals or ()):
        # No expression without sources is of such a type.
        return None
    if query.system.computable and query.depth >= MOST_DEPTH:
        # No query may follow that the rows may need (`typed.computed`).
        return None
    return begin(query._replace(clause=Clause.VALUES, bound=True))


def _begin_row(query: Query) -> Query:
    return query._replace(cell=0)


def _next_cell(query: Query) -> Query | None:
    """Before the comma of one more cell: the first row, or what is demanded, says how many there are."""
    free = not query.distinct and query.goals is None
    return query if free or _wants_cell(query) else None


def _begin_cell(query: Query) -> Query | None:
    place = query.cell
    goal = ALL
    if query.goals is not None:
        if place >= len(query.goals):
            return None
        goal = settling(query.system, query.goals[place])
    if query.distinct:
        # A row is there already.
        if place >= len(query.outputs):
            return None
        goal = alike(query.system, query.outputs[place].type, goal)
    found = do.push(query, goal)
    return None if found is None else found._replace(trace=())


def _end_cell(query: Query) -> Query | None:
    ended = do.end(query)
    if ended is None:
        return None
    place, kind, outputs = ended.cell, ended.value, list(ended.outputs)
    if ended.distinct:
        shared = common(ended.system, outputs[place].type, kind)
        if shared is None:
            return None
        outputs[place] = outputs[place]._replace(type=_of_rows(ended, shared), trace=None)
    else:
        name, first = ended.system.value_names
        outputs.append(Output(f"{name}{place + first}", _of_rows(ended, kind), trace=ended.trace))
    return ended._replace(outputs=tuple(outputs), cell=place + 1, trace=None, column=None, label=("", 0))


def _of_rows(query: Query, kind: str) -> str:
    """The type of a column so far: DuckDB reads no literal as what stands in a later row."""
    return settled(query.system, kind) if query.system.lists and kind != ANY_NULL else kind


def _wants_cell(query: Query) -> bool:
    """Must one more cell come?"""
    wanted = len(query.outputs) if query.distinct else 0 if query.goals is None else len(query.goals)
    return query.cell < wanted


def _end_row(query: Query) -> Query | None:
    # ORDER BY may name but the columns of the rows, as behind DISTINCT.
    return None if _wants_cell(query) else query._replace(distinct=True)


def _may_fail(query: Query) -> bool:
    """Must one more row come, which has a query?"""
    return query.computed is Computed.RISKY


def _end(query: Query) -> Query | None:
    """Behind the last row: what is a literal still is a text; NULL where that is one."""
    free = () if query.system.null_is_text else (ANY_NULL,)
    kinds = (one.type if one.type in free else settled(query.system, one.type) for one in query.outputs)
    outputs = tuple(one._replace(type=kind, trace=None) for one, kind in zip(query.outputs, kinds, strict=True))
    return end(query._replace(outputs=outputs, cell=0))
