"""Whole statements: WITH, set operations, and what stands behind them."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Name, Node, Sign, Star, choice, listed, maybe, seq, words
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query import kinds
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.dialect import Dialect
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
    operator = choice(words("UNION"), words("UNION ALL"), words("INTERSECT"), words("EXCEPT"))
    one = core(parts)
    return seq(
        maybe(_with(parts)),
        one,
        Star(seq(Action(do.next_part), operator, one)),
        maybe(_order(parts)),
        maybe(_limit(parts)),
    )


def _with(parts: Parts) -> Node:
    table = seq(
        Action(do.begin_table),
        Name(kinds.CommonTable(parts.catalog)),
        maybe(parts.open, listed(Name(kinds.NewColumn()), parts.comma), parts.close),
        words("AS"),
        parts.open,
        Action(do.enter_table),
        parts.compound,
        Action(do.leave_table),
        parts.close,
    )
    return seq(words("WITH"), Action(do.begin_with), listed(table, parts.comma))


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
    return seq(words("ORDER BY"), Action(do.begin_order), listed(seq(term, direction, nulls), parts.comma))


def _limit(parts: Parts) -> Node:
    sign = maybe(choice(Sign("-"), Sign("+")))
    operator = choice(*map(Sign, ("+", "-", "*", "/")))
    counted = listed(seq(sign, parts.whole), operator)
    number = choice(counted, seq(parts.open, parts.bracketed(sees=False, width=1)))
    return seq(words("LIMIT"), number, maybe(choice(words("OFFSET"), parts.comma), number))
