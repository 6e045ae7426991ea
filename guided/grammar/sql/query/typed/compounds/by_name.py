"""``UNION BY NAME``: a part whose columns are those of a name before it, or new ones, which the parts before lack.

Each column has a name that is known, and only one.  Such a part is a SELECT without brackets; its ``*`` stands alone,
for the columns of one table.
"""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Action, Node, choice, seq, words
from guided.grammar.sql.query.relations import LETTERS
from guided.grammar.sql.query.typed.changes import Change
from guided.grammar.sql.query.typed.queries import columns_of
from guided.grammar.sql.query.typed.scope import Output, Query
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import ANY_NULL, BIT, OTHER, SORTABLE, common, settled

__all__ = ["agree", "agrees", "has_free_name", "united_by_name"]


def united_by_name(select: Node) -> Node:
    """The operator and its part."""
    all_ = seq(Action(_begin(sorts=False)), words("UNION ALL BY NAME"))
    return seq(choice(seq(Action(_begin(sorts=True)), words("UNION BY NAME")), all_), select, Action(_end))


def _begin(*, sorts: bool) -> Change:
    def change(query: Query) -> Query | None:
        if query.recursion is not None or query.goals is not None or query.awaiting is not None:
            return None
        result = columns_of(query) if query.result is not None else tuple((o.name, o.type) for o in query.outputs)
        names = [name for name, _ in result]
        if not all(names) or len(set(names)) < len(names):
            return None
        if sorts and not all(SORTABLE & BIT[kind] for _, kind in result):
            return None
        begun = Query(query.system, query.parent, query.sees_parent, tables=query.tables, result=result,
                      depth=query.depth, operators=query.operators | {"by name"}, is_source=query.is_source,
                      in_part=query.in_part, by_name=sorts)  # fmt: skip
        return begun if has_free_name(begun) else None

    return change


def has_free_name(query: Query) -> bool:
    """Is there a letter by which one more column of the part can go, whatever it is?"""
    known = {output.name for output in query.outputs} | {name for name, _ in query.result or ()}
    return query.by_name is None or not known.issuperset(LETTERS)


def _end(query: Query) -> Query:
    """Behind the part: the columns before it, with their types now, and then its own."""
    kinds = dict(columns_of(query))
    before = query.result or ()
    result = [(name, _both(query.system, kind, kinds.get(name, kind)) or kind) for name, kind in before]
    known = {name for name, _ in before}
    result += [(output.name, output.type) for output in query.outputs if output.name not in known]
    outputs = tuple(Output(name, kind) for name, kind in result)
    return query._replace(result=tuple(result), outputs=outputs, by_name=None)


def _both(system: TypeSystem, left: str, right: str) -> str | None:
    """The type of a column that both have; here a literal in quotes is a text."""
    kinds = [kind if kind == ANY_NULL else settled(system, kind) for kind in (left, right)]
    return None if OTHER in kinds else common(system, *kinds)


def agrees(query: Query, name: str | None, kind: str) -> bool:
    """May one more column of the part have a name and a type?  Any where there is no such part."""
    if query.by_name is None:
        return True
    if name is None or any(output.name == name for output in query.outputs):
        return False
    left = dict(query.result or ()).get(name)
    fits = not query.by_name or bool(SORTABLE & BIT[kind])
    return fits and (left is None or _both(query.system, left, kind) is not None)


def agree(query: Query, columns: Iterable[tuple[str | None, str]]) -> bool:
    """May ``*`` stand for some columns in such a part?"""
    listed = tuple(columns)
    names = {name for name, _ in listed}
    alone = query._replace(outputs=())
    return len(names) == len(listed) and all(agrees(alone, name, kind) for name, kind in listed)
