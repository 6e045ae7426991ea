"""Calls of functions, with FILTER and OVER."""

from __future__ import annotations

from functools import partial

from guided.grammar.attributed.nodes import Action, Name, Node, Sign, Spelled, choice, listed, maybe, seq, words
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query.catalog import Function
from guided.grammar.sql.query.names.functions import FunctionName
from guided.grammar.sql.query.scope import CallKind
from guided.grammar.sql.query.select.parts import Parts
from guided.grammar.sql.query.select.windows import over

__all__ = ["call"]

_OPERATORS = FunctionName({name: Function(name, CallKind.SCALAR, 2, 2) for name in ("glob", "like")}, CallKind.SCALAR)
"""Functions of SQLite whose names are operators."""


def call(parts: Parts) -> Node:
    """A call of any function."""
    return choice(*(_call_of(parts, kind) for kind in CallKind))


def _call_of(parts: Parts, kind: CallKind) -> Node:
    name = Name(FunctionName(parts.catalog.functions_of(kind), kind), Spelled.WORD)
    # What may refuse stands before the comma, behind which something must follow.
    arguments = seq(Action(do.argument), listed(parts.expression, seq(Action(do.argument), parts.comma)))
    some = choice(seq(), arguments)
    closed = seq(Action(do.end_call), parts.close)
    if kind is CallKind.SCALAR:
        by_operator = (seq(Action(partial(_OPERATORS.after, name=word)), words(word)) for word in _OPERATORS.functions)
        return seq(choice(name, *by_operator), parts.open, some, closed)
    window = over(parts)
    if kind is CallKind.WINDOW:
        return seq(name, parts.open, some, closed, window)
    where = seq(Action(do.begin_filter), words("FILTER"), parts.open, words("WHERE"), parts.expression,
                Action(do.end_filter), parts.close)  # fmt: skip
    distinct = seq(Action(do.one_argument), words("DISTINCT"), Action(do.argument), parts.expression, closed)
    every = seq(Action(do.counts_all), Sign("*"), parts.close)
    plain = seq(choice(every, seq(some, closed)), maybe(where), maybe(window))
    return seq(name, parts.open, choice(seq(distinct, maybe(where)), plain))
