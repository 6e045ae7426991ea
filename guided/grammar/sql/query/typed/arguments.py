"""The arguments of a call, one after another, and the bracket that closes it."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Node, Sign, Star, seq
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed import frames, functions
from guided.grammar.sql.query.typed.computed.contexts import begin_part, called, lacks_query
from guided.grammar.sql.query.typed.frames import Calling
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.types import BIT, HELD, IN_QUOTES, SORTABLE

__all__ = [
    "COMMA", "argument", "arguments", "begin_argument", "end_argument", "end_call", "frame_of", "may_close",
    "more_arguments",
]  # fmt: skip

COMMA = seq(Action(do.heard(",")), Sign(","))
"""A comma that tells expressions apart."""
_DISTINCT = SORTABLE | sum(BIT[name] for name in HELD)
"""The types of arguments behind DISTINCT: no constant needs an order."""


def frame_of(query: Query) -> Calling:
    """The call whose arguments are being read."""
    frame = query.frame
    assert isinstance(frame, Calling)
    return frame


def _next_types(query: Query) -> int:
    """The types that one more argument may have."""
    frame = frame_of(query)
    if len(frame.types) >= functions.arity(query.system, frame.name)[1]:
        return 0
    found = functions.next_types(query.system, frame.name, frame.types)
    if query.computed.is_whole and frame.name == "date":
        # It reads a text, which a literal spells right.
        found &= ~BIT["text"]
    if query.system.lists and frame.name in query.system.row_sets:
        # Where another argument is no constant, a text in quotes is one of VARCHAR, and there is no such function.
        found &= ~IN_QUOTES
    if query.computed and functions.gives_argument(query.system, frame.name, len(frame.types)):
        found &= frames.leading(query.around[-1])
    return found & _DISTINCT if frame.distinct else found


def may_go_on(query: Query) -> Query | None:
    """Before the comma of one more argument."""
    return query if _next_types(query) else None


def begin_argument(query: Query) -> Query | None:
    """Before one more argument."""
    frame = frame_of(query)
    found = do.push(query, _next_types(query))
    folded = len(frame.types) in query.system.folded.get(frame.name, ())
    return begin_part(found) if found and folded else found


def end_argument(query: Query) -> Query | None:
    """Behind it."""
    if query.computed and lacks_query(query):
        return None
    ended = do.end(query)
    if ended is None:
        return None
    frame = frame_of(ended)._replace(types=(*frame_of(ended).types, ended.value))
    if frame.distinct and ended.column is not None:
        frame = frame._replace(columns=(*frame.columns, ended.column))
    if ended.computed.is_whole:
        frame = frame._replace(digits=max(frame.digits, ended.amount))
    return ended.with_top(frame)


def end_call(query: Query) -> Query | None:
    """The bracket that closes a call."""
    frame = frame_of(query)
    kind = functions.call_of(query.system, frame.name, frame.types)
    if kind is None:
        return None
    left, digits = called(do.allows_null(query.popped()), frame, kind)
    return do.read(do.hear(left, ")"), kind, (frame.name, 2), digits)


def may_close(query: Query) -> Query | None:
    """Where a call has all its arguments."""
    frame = frame_of(query)
    return None if functions.call_of(query.system, frame.name, frame.types) is None else query


def arguments(expression: Node) -> Node:
    """The arguments of a call, one or more."""
    return seq(argument(expression), more_arguments(expression))


def argument(expression: Node) -> Node:
    """One argument."""
    return seq(Action(begin_argument), expression, Action(end_argument))


def more_arguments(expression: Node) -> Node:
    """Any number of arguments behind one."""
    return Star(seq(Action(may_go_on), COMMA, argument(expression)), lambda query: may_close(query) is None)
