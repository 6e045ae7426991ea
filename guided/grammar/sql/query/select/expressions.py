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
from guided.grammar.sql.query import limits, rows, values
from guided.grammar.sql.query.names.fixed import FixedName
from guided.grammar.sql.query.nesting import Binding
from guided.grammar.sql.query.select.calls import call
from guided.grammar.sql.query.select.parts import Parts

__all__ = ["expression"]


def expression(parts: Parts) -> Node:
    """Any expression."""
    negated = seq(maybe(Action(do.negated), words("NOT")), _comparison(parts))
    conjunction = listed(negated, seq(Action(do.joined_by(Binding.AND)), words("AND")))
    return listed(conjunction, seq(Action(do.joined_by(Binding.OR)), words("OR")))


def _comparison(parts: Parts) -> Node:
    value = Rule("value", _value(parts))
    equal = choice(*(Sign(sign) for sign in parts.dialect.comparisons if sign in values.EQUALITIES))
    ordered = choice(*(Sign(sign) for sign in parts.dialect.comparisons if sign not in values.EQUALITIES))
    member = seq(parts.when_held(values.hold_item), parts.expression)
    inside = choice(
        parts.bracketed(sees=True, width=1),
        seq(
            Action(do.begin_members),
            parts.when_held(values.begin_list),
            listed(member, seq(Action(do.begun), parts.comma)),
            Action(do.closed),
            parts.when_held(values.end_list),
            parts.close,
        ),
    )
    within = seq(Action(do.may_list), words("IN"), parts.open, Action(do.operand), inside)
    matched = choice(
        seq(words("LIKE"), value, maybe(words("ESCAPE"), value)),
        *(seq(words(pattern), value) for pattern in parts.dialect.patterns),
        seq(words("BETWEEN"), value, words("AND"), value),
    )
    short = choice(
        seq(equal, parts.when_held(values.hold), value),
        seq(ordered, value),
        seq(maybe(words("NOT")), within),
        choice(words("ISNULL"), words("NOTNULL"), words("NOT NULL")),
    )
    long = choice(
        seq(maybe(words("NOT")), matched),
        seq(words("IS"), maybe(words("NOT")), maybe(words("DISTINCT FROM")), parts.when_held(values.hold), value),
    )
    tail = choice(
        seq(Action(do.joined_by(Binding.COMPARISON)), short),
        seq(Action(do.joined_by(Binding.RANGE)), long),
    )
    plain = seq(value, Star(tail))
    return choice(plain, _row(parts, choice(equal, ordered))) if parts.dialect.has_rows else plain


def _row(parts: Parts, compare: Node) -> Node:
    """A row of columns and literals, compared with others."""
    element = choice(parts.number, parts.string, parts.bare, seq(parts.qualifier, Sign("."), parts.qualified))
    more = seq(Action(rows.next_of_row), parts.comma, element)
    row = seq(Action(rows.begin_row), parts.open, element, more, Star(more), parts.close)
    other = seq(
        Action(rows.begin_other),
        parts.expression,
        Star(seq(Action(rows.next_of_other), parts.comma, parts.expression)),
        Action(rows.end_other),
        parts.close,
    )
    query = seq(Action(rows.enter_row), parts.compound, Action(do.leave_operand), parts.close)
    members = seq(Action(do.begin_members), listed(seq(parts.open, other), parts.comma), Action(do.closed), parts.close)
    operator = choice(compare, seq(words("IS"), maybe(words("NOT"))))
    compared = seq(Action(do.joined_by(Binding.COMPARISON)), operator, parts.open, choice(other, query))
    within = seq(
        Action(do.joined_by(Binding.COMPARISON)),
        maybe(words("NOT")),
        words("IN"),
        parts.open,
        choice(members, query),
    )
    return seq(row, choice(compared, within), Action(rows.end_row))


def _value(parts: Parts) -> Node:
    operator = choice(*map(Sign, parts.dialect.operators))
    sign = seq(Action(do.not_alone), choice(*map(Sign, parts.dialect.prefixes)))
    # Nobody writes more, and tokens of 32 signs would have a place behind each of them.
    prefix = maybe(sign, maybe(sign))
    one = seq(prefix, _atom(parts), parts.collated)
    joined = seq(Action(do.joined_by(Binding.VALUE)), operator, parts.when_held(values.mixed))
    return seq(parts.when_held(values.begin_value), listed(one, joined))


def _atom(parts: Parts) -> Node:
    # TRUE is a column where a source has one of that name, and ambiguous where two have.
    columns = parts.catalog.lost_names & parts.catalog.columns.members
    literal = choice(*(words(one) for one in parts.dialect.constants if one.lower() not in columns))
    operand = Action(do.operand)
    apart = parts.when_held(values.no_column)
    case = seq(
        Action(do.opened(limits.CASE)),
        words("CASE"),
        apart,
        maybe(parts.expression),
        Star(_when(parts)),
        _when(parts),
        maybe(words("ELSE"), Action(do.begun), parts.expression),
        words("END"),
        Action(do.closed),
        apart,
    )
    cast = seq(
        Action(do.opened(limits.CAST)),
        words("CAST"),
        parts.open,
        apart,
        parts.expression,
        words("AS"),
        _type(parts),
        Action(do.closed),
        parts.close,
        apart,
    )
    exists = seq(Action(do.may_ask), words("EXISTS"), operand, parts.open, parts.bracketed(sees=True, width=None))
    inside = choice(
        seq(Action(do.deeper), parts.expression, Action(do.shallower), parts.close),
        seq(operand, parts.bracketed(sees=True, width=1)),
    )
    return choice(
        seq(parts.number, operand),
        seq(operand, parts.string),
        seq(operand, literal, apart),
        parts.bare,
        *((seq(Action(do.not_in_compound), parts.quoted),) if parts.dialect.lexis.string_quotes else ()),
        seq(parts.qualifier, Sign("."), parts.qualified),
        seq(call(parts), apart),
        case,
        cast,
        seq(exists, apart),
        seq(Action(do.may_open), parts.open, inside, apart),
    )


def _when(parts: Parts) -> Node:
    return seq(Action(do.begun), words("WHEN"), parts.expression, words("THEN"), Action(do.begun), parts.expression)


def _type(parts: Parts) -> Node:
    sizes = seq(parts.open, parts.whole, maybe(parts.comma, parts.whole), parts.close)
    single = (name for name in parts.dialect.types if " " not in name)
    several = (words(name) for name in parts.dialect.types if " " in name)
    return seq(choice(Name(FixedName("a type", single), Spelled.WORD), *several), maybe(sizes))
