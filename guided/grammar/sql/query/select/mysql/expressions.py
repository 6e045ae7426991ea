"""Expressions: conditions, comparisons, predicates, values (https://mariadb.com/kb/en/operator-precedence/)."""

from __future__ import annotations

from guided.grammar.attributed.nodes import (
    Action,
    Node,
    Rule,
    Sign,
    Star,
    choice,
    listed,
    maybe,
    seq,
    words,
)
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query import rows, values
from guided.grammar.sql.query.scope import Mixture
from guided.grammar.sql.query.select.mysql.calls import call, unit
from guided.grammar.sql.query.select.mysql.parts import MysqlParts

__all__ = ["expression"]


def expression(parts: MysqlParts) -> Node:
    """Any expression."""
    after = Action(do.operator)
    negated = seq(Star(seq(words("NOT"), Action(do.negation))), _comparison(parts))
    conjunction = listed(negated, seq(after, choice(words("AND"), Sign("&&"))))
    return listed(conjunction, seq(after, choice(words("OR"), words("XOR"), Sign("||"))))


def _comparison(parts: MysqlParts) -> Node:
    predicate = Rule("predicate", _predicate(parts))
    equal = choice(*(Sign(sign) for sign in parts.dialect.comparisons if sign in values.EQUALITIES))
    compare = choice(
        seq(equal, parts.when_held(values.hold)),
        *(Sign(sign) for sign in parts.dialect.comparisons if sign not in values.EQUALITIES),
    )
    every = seq(
        Action(do.may_ask),
        choice(words("ALL"), words("ANY"), words("SOME")),
        parts.open,
        Action(do.operand),
        _member(parts),
    )
    truth = seq(words("IS"), maybe(words("NOT")), choice(*map(words, ("NULL", "TRUE", "FALSE", "UNKNOWN"))))
    ordered = choice(*(Sign(sign) for sign in parts.dialect.comparisons if sign != "<=>"))
    tail = choice(seq(compare, predicate), seq(ordered, every), truth)
    return choice(seq(predicate, Star(seq(Action(do.operator), tail))), _row(parts, ordered))


def _row(parts: MysqlParts, ordered: Node) -> Node:
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
    compared = seq(ordered, parts.open, choice(other, query))
    member = seq(Action(rows.enter_members), parts.compound, Action(do.leave_operand), parts.close)
    among = choice(seq(listed(seq(parts.open, other), parts.comma), parts.close), member)
    within = seq(maybe(words("NOT")), words("IN"), parts.open, among)
    return seq(row, Action(do.operator), choice(compared, within), Action(rows.end_row))


def _member(parts: MysqlParts) -> Node:
    """A query of one column, without LIMIT, and the bracket behind it."""
    return seq(Action(do.enter_member), parts.compound, Action(do.leave_operand), parts.close)


def _predicate(parts: MysqlParts) -> Node:
    value = parts.value
    value.body = _value(parts)
    begin, end = parts.when_held(values.begin_list), parts.when_held(values.end_list)
    member = seq(parts.when_held(values.hold_item), parts.expression)
    inside = choice(_member(parts), seq(begin, listed(member, parts.comma), end, parts.close))
    escape = maybe(words("ESCAPE"), parts.character)
    negatable = choice(
        seq(words("LIKE"), value, escape),
        seq(choice(words("REGEXP"), words("RLIKE")), parts.pattern),
        seq(words("BETWEEN"), value, words("AND"), value),
        seq(words("IN"), parts.open, Action(do.operand), inside),
    )
    tail = choice(seq(maybe(words("NOT")), negatable), seq(words("SOUNDS LIKE"), value))
    return seq(value, Star(seq(Action(do.operator), tail)))


def _value(parts: MysqlParts) -> Node:
    sign = choice(*map(Sign, parts.dialect.operators), words("DIV"), words("MOD"))
    prefix = choice(*map(Sign, parts.dialect.prefixes), words("BINARY"))
    one = seq(Star(seq(Action(do.not_alone), prefix)), _atom(parts))
    summed = Action(do.mixed(Mixture.MOMENTS))
    interval = seq(summed, choice(Sign("+"), Sign("-")), words("INTERVAL"), parts.expression, unit())
    more = choice(seq(sign, parts.when_held(values.mixed), one), seq(interval, parts.when_held(values.no_column)))
    return seq(parts.when_held(values.begin_value), one, Star(seq(Action(do.operator), more)))


def _atom(parts: MysqlParts) -> Node:
    operand = Action(do.operand)
    asked = seq(Action(do.enter_existing), parts.compound, Action(do.leave_operand), parts.close)
    exists = seq(Action(do.may_ask), words("EXISTS"), operand, parts.open, asked)
    inside = choice(
        seq(Action(do.deeper), parts.expression, Action(do.shallower), parts.close),
        seq(operand, parts.bracketed(sees=True, width=1)),
    )
    apart = parts.when_held(values.no_column)
    return choice(
        seq(parts.number, operand),
        seq(operand, parts.string),
        seq(operand, parts.text),
        seq(operand, words("DATE"), parts.date, apart),
        seq(operand, words("TIMESTAMP"), parts.moment, apart),
        seq(operand, choice(*map(words, parts.dialect.constants)), apart),
        # They are numbers, which alone in ORDER BY would be positions.
        seq(Action(do.not_alone), operand, choice(words("TRUE"), words("FALSE")), apart),
        parts.bare,
        seq(parts.qualifier, Sign("."), parts.qualified),
        seq(call(parts), apart),
        seq(_case(parts), apart),
        seq(exists, apart),
        seq(Action(do.may_open), parts.open, inside, apart),
    )


def _case(parts: MysqlParts) -> Node:
    when = seq(words("WHEN"), parts.expression, words("THEN"), parts.expression)
    return seq(
        Action(do.opened_case),
        words("CASE"),
        Action(do.operand),
        parts.when_held(values.no_column),
        maybe(parts.expression),
        Star(when),
        when,
        maybe(words("ELSE"), parts.expression),
        Action(do.closed),
        words("END"),
    )
