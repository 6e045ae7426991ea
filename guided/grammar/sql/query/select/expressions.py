"""Expressions, by how tightly their operators bind."""

from __future__ import annotations

from guided.grammar.attributed.nodes import (
    Action,
    Name,
    Node,
    Rule,
    Sign,
    Spelled,
    Star,
    choice,
    listed,
    maybe,
    seq,
    words,
)
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query import kinds
from guided.grammar.sql.query.select.calls import call
from guided.grammar.sql.query.select.parts import Parts

__all__ = ["expression"]


def expression(parts: Parts) -> Node:
    """Any expression."""
    negated = seq(Star(seq(words("NOT"), Action(do.operand))), _comparison(parts))
    conjunction = listed(negated, seq(words("AND"), Action(do.complex_value)))
    return listed(conjunction, seq(words("OR"), Action(do.complex_value)))


def _comparison(parts: Parts) -> Node:
    value = Rule("value", _value(parts))
    compare = choice(*map(Sign, parts.dialect.comparisons))
    inside = choice(parts.bracketed(sees=True, width=1), seq(listed(parts.expression, parts.comma), parts.close))
    negatable = choice(
        seq(words("LIKE"), value, maybe(words("ESCAPE"), value)),
        *(seq(words(pattern), value) for pattern in parts.dialect.patterns),
        seq(words("BETWEEN"), value, words("AND"), value),
        seq(words("IN"), parts.open, Action(do.operand), inside),
    )
    tail = choice(
        seq(compare, value),
        seq(maybe(words("NOT")), negatable),
        seq(words("IS"), maybe(words("NOT")), maybe(words("DISTINCT FROM")), value),
        choice(words("ISNULL"), words("NOTNULL"), words("NOT NULL")),
    )
    return seq(value, Star(seq(Action(do.complex_value), tail)))


def _value(parts: Parts) -> Node:
    operator = choice(*map(Sign, parts.dialect.operators))
    sign = seq(Action(do.not_alone), choice(*map(Sign, parts.dialect.prefixes)))
    # Nobody writes more, and tokens of 32 signs would have a place behind each of them.
    prefix = maybe(sign, maybe(sign))
    one = seq(prefix, _atom(parts), parts.collated)
    return listed(one, seq(Action(do.complex_value), operator))


def _atom(parts: Parts) -> Node:
    literal = choice(*map(words, parts.dialect.constants))
    operand = Action(do.operand)
    case = seq(
        words("CASE"),
        operand,
        maybe(parts.expression),
        Star(_when(parts)),
        _when(parts),
        maybe(words("ELSE"), parts.expression),
        words("END"),
    )
    cast = seq(words("CAST"), parts.open, operand, parts.expression, words("AS"), _type(parts), parts.close)
    exists = seq(words("EXISTS"), operand, parts.open, parts.bracketed(sees=True, width=None))
    inside = choice(
        seq(Action(do.deeper), parts.expression, Action(do.shallower), parts.close),
        seq(operand, parts.bracketed(sees=True, width=1)),
    )
    return choice(
        seq(parts.number, operand),
        seq(operand, parts.string),
        seq(operand, literal),
        parts.bare,
        *((seq(Action(do.not_in_compound), parts.quoted),) if parts.dialect.lexis.string_quotes else ()),
        seq(parts.qualifier, Sign("."), parts.qualified),
        call(parts),
        case,
        cast,
        exists,
        seq(parts.open, Action(do.complex_value), inside),
    )


def _when(parts: Parts) -> Node:
    return seq(words("WHEN"), parts.expression, words("THEN"), parts.expression)


def _type(parts: Parts) -> Node:
    sizes = seq(parts.open, parts.whole, maybe(parts.comma, parts.whole), parts.close)
    single = (name for name in parts.dialect.types if " " not in name)
    several = (words(name) for name in parts.dialect.types if " " in name)
    return seq(choice(Name(kinds.FixedName("a type", single), Spelled.WORD), *several), maybe(sizes))
