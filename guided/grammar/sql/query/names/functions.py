"""The names of functions, by what these may be called for."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.catalog import Function
from guided.grammar.sql.query.operands import has_taint, read_atom
from guided.grammar.sql.query.scope import Call, CallKind, Clause, Query, Taint, has_windows, is_local

__all__ = ["FunctionName"]


def is_aggregate(query: Query) -> bool:
    """Does the result stand for groups of rows?"""
    return query.grouped or has_taint(query, (Taint.AGGREGATE,))


def _is_in_aggregate(query: Query | None) -> bool:
    """Is the text in the arguments of an aggregate of a query, or of one around it?"""
    while query is not None:
        if is_local(query):
            return True
        query = query.parent
    return False


class FunctionName:
    """A function of one kind, where such may be called."""

    def __init__(self, functions: dict[str, Function], kind: CallKind, *, is_attached: bool = False) -> None:
        """``is_attached``: the bracket belongs to the names, and stands right behind them."""
        self.functions = {f"{name}(": function for name, function in functions.items()} if is_attached else functions
        self.kind = kind
        self.label = {CallKind.SCALAR: "a function", CallKind.AGGREGATE: "an aggregate"}.get(kind, "a window function")
        self._words = words_of(self.functions)
        self.price = 1

    def allowed(self, query: Query) -> Names:
        """All of the kind, or none."""
        return Names(self._words if self._may_be_called(query) else words_of(()))

    def _may_be_called(self, query: Query) -> bool:
        if not limits.has_room(query, limits.WINDOW if self.kind is CallKind.WINDOW else limits.CALL):
            return False
        if self.kind is CallKind.SCALAR:
            return True
        within = {call.kind for call in query.calls}
        if self.kind is CallKind.AGGREGATE:
            ordered = query.clause in (Clause.ORDER, Clause.WINDOW) and is_aggregate(query)
            late = query.clause in (Clause.SELECT, Clause.HAVING)
            if query.laws.one_aggregate and _is_in_aggregate(query.parent):
                return False
            return (late or ordered) and CallKind.AGGREGATE not in within
        return has_windows(query) and not within - {CallKind.SCALAR}

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the call open."""
        function = self.functions[name]
        taint = {CallKind.AGGREGATE: Taint.AGGREGATE, CallKind.WINDOW: Taint.WINDOW}.get(self.kind, Taint.NONE)
        changed = limits.opened(limits.CALL)(read_atom(query, None, taint))
        if changed is None:
            return None
        if query.is_distinct:
            changed = changed._replace(has_call=True)
        return changed._replace(calls=(*query.calls, Call(self.kind, function.low, function.high)))

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a number is shorter."""
        return ()
