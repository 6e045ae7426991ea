"""Whole statements: WITH, set operations, and what stands behind them."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Name, Node, Sign, Star, choice, listed, maybe, seq, words
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query import common_tables as tables
from guided.grammar.sql.query import set_operations as sets
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.dialect import Dialect
from guided.grammar.sql.query.scope import Clause
from guided.grammar.sql.query.select.core import core
from guided.grammar.sql.query.select.expressions import expression
from guided.grammar.sql.query.select.parts import Parts

__all__ = ["select"]


def select(catalog: Catalog, dialect: Dialect) -> Node:
    """The SELECT statements over a catalog."""
    parts = Parts(catalog, dialect)
    parts.expression.body = expression(parts)
    parts.compound.body = _compound(parts)
    return seq(parts.compound, maybe(Sign(";")))


def _compound(parts: Parts) -> Node:
    one = choice(core(parts), _values(parts))
    united = seq(Action(sets.next_united), words("UNION"), maybe(words("ALL")), one)
    compared = seq(Action(sets.next_part), choice(words("INTERSECT"), words("EXCEPT")), one)
    behind = choice(seq(), seq(Action(do.not_of_values), maybe(_order(parts)), maybe(_limit(parts))))
    return seq(maybe(_with(parts)), one, Star(choice(united, compared)), behind)


def _values(parts: Parts) -> Node:
    # What may refuse stands before the comma, behind which something must follow.
    one = Action(do.first_value)
    first = seq(one, listed(parts.expression, seq(one, parts.comma)))
    row = seq(
        parts.open,
        Action(do.begin_row),
        parts.expression,
        Star(seq(Action(do.next_value), parts.comma, parts.expression)),
        Action(do.end_row),
        parts.close,
    )
    return seq(
        words("VALUES"),
        Action(do.begin_values),
        parts.open,
        first,
        Action(do.end_items),
        parts.close,
        Star(seq(parts.comma, row)),
    )


def _with(parts: Parts) -> Node:
    table = seq(
        Action(tables.begin_table),
        Name(tables.CommonTable(parts.catalog, frozenset(one.name for one in parts.dialect.table_functions))),
        maybe(parts.open, listed(Name(tables.NewColumn()), parts.comma), parts.close),
        words("AS"),
        maybe(maybe(words("NOT")), words("MATERIALIZED")),
        parts.open,
        Action(tables.enter_table),
        parts.compound,
        Action(tables.leave_table),
        parts.close,
    )
    return seq(
        Action(tables.begin_with),
        words("WITH"),
        maybe(words("RECURSIVE")),
        listed(table, seq(Action(tables.may_define_another), parts.comma)),
    )


def _order(parts: Parts) -> Node:
    direction = maybe(choice(words("ASC"), words("DESC")))
    nulls = maybe(words("NULLS"), choice(words("FIRST"), words("LAST")))
    term = seq(
        choice(
            seq(Action(do.in_compound), Action(do.begin_term), choice(parts.number, parts.bare), parts.collated),
            seq(Action(do.not_in_compound), Action(do.begin_term), parts.expression),
        ),
        Action(do.end_term),
    )
    return seq(
        Action(do.may_begin(Clause.ORDER)),
        words("ORDER BY"),
        Action(do.begin_order),
        listed(seq(term, direction, nulls), parts.comma),
    )


def _limit(parts: Parts) -> Node:
    sign = maybe(choice(Sign("-"), Sign("+")))
    operator = choice(*map(Sign, ("+", "-", "*", "/")))
    counted = listed(seq(sign, parts.whole), operator)
    number = choice(
        counted, seq(Action(do.opened_limit), parts.open, parts.bracketed(sees=False, width=1), Action(do.closed))
    )
    return seq(
        Action(do.may_begin(Clause.ORDER)),
        words("LIMIT"),
        Action(do.begun),
        number,
        maybe(choice(words("OFFSET"), parts.comma), number),
    )
