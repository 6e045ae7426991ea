"""Whole statements: WITH, set operations, SELECT and its clauses."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Name, Node, Sign, Star, choice, listed, maybe, seq, words
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query import common_tables as tables
from guided.grammar.sql.query import set_operations as sets
from guided.grammar.sql.query import windows as window
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.dialect import Dialect
from guided.grammar.sql.query.scope import Clause, bind
from guided.grammar.sql.query.select.core import items
from guided.grammar.sql.query.select.mysql.calls import windows
from guided.grammar.sql.query.select.mysql.expressions import expression
from guided.grammar.sql.query.select.mysql.parts import MysqlParts
from guided.grammar.sql.query.select.mysql.sources import sources

__all__ = ["select"]


def select(catalog: Catalog, dialect: Dialect) -> Node:
    """The SELECT statements over a catalog."""
    parts = MysqlParts(catalog, dialect)
    parts.expression.body = expression(parts)
    parts.compound.body = _compound(parts)
    return seq(choice(parts.compound, _bracketed(parts)), maybe(Sign(";")))


def _more(parts: MysqlParts, one: Node) -> Node:
    """A set operation and its right side."""
    every = maybe(choice(words("ALL"), words("DISTINCT")))
    united = seq(Action(sets.next_united), words("UNION"), every, one)
    common = seq(Action(sets.next_intersected), words("INTERSECT"), every, one)
    return choice(united, common, seq(Action(sets.next_part), words("EXCEPT"), every, one))


def _compound(parts: MysqlParts) -> Node:
    return seq(maybe(_with(parts)), _parts(parts))


def _parts(parts: MysqlParts) -> Node:
    """SELECT, and others behind set operations."""
    one = _core(parts)
    behind = choice(seq(), seq(Action(tables.not_within_itself), maybe(_order(parts)), maybe(_limit(parts))))
    return seq(one, Star(_more(parts, one)), behind)


def _bracketed(parts: MysqlParts) -> Node:
    """A whole statement in brackets, or one whose parts stand in such, with ORDER BY and LIMIT of their own."""
    inside = _parts(parts)
    one = seq(parts.open, Action(do.enter_part), inside, Action(do.leave_part), parts.close)
    order = _order(parts, do.begin_compound_order)
    return seq(one, Star(_more(parts, one)), maybe(order), maybe(_limit(parts)))


def _with(parts: MysqlParts) -> Node:
    more = seq(Action(tables.may_define_another), parts.comma)
    plain = listed(_table(parts, recursive=False), more)
    recursive = seq(words("RECURSIVE"), listed(_table(parts, recursive=True), more))
    return seq(Action(tables.begin_with), words("WITH"), choice(plain, recursive))


def _table(parts: MysqlParts, *, recursive: bool) -> Node:
    return seq(
        Action(tables.begin_table),
        Name(tables.CommonTable(parts.catalog), is_exact=parts.is_exact),
        maybe(parts.open, listed(Name(tables.NewColumn()), parts.comma), parts.close),
        words("AS"),
        parts.open,
        Action(tables.enter_table),
        *(() if recursive else (Action(tables.not_recursive),)),
        parts.compound,
        Action(tables.leave_table),
        parts.close,
    )


def _core(parts: MysqlParts) -> Node:
    """SELECT up to HAVING."""
    term = seq(Action(do.begin_term), parts.expression, Action(do.end_term))
    direction = maybe(choice(words("ASC"), words("DESC")))
    group = seq(
        words("GROUP BY"),
        Action(do.begin_clause(Clause.GROUP)),
        listed(seq(term, direction), parts.comma),
        maybe(words("WITH ROLLUP"), Action(do.roll_up)),
    )
    having = seq(
        Action(tables.not_within_itself), words("HAVING"), Action(do.begin_clause(Clause.HAVING)), parts.expression
    )
    where = seq(words("WHERE"), parts.expression)
    read = seq(Action(do.end_items), words("FROM"), Action(do.begin_from), sources(parts), Action(bind))
    alone = seq(Action(do.end_items), Action(bind), maybe(words("FROM DUAL")))
    behind = seq(maybe(where), maybe(group), maybe(having))
    return seq(
        words("SELECT"),
        maybe(choice(words("DISTINCT"), words("DISTINCTROW"), words("ALL"))),
        items(parts),
        # Without tables there is no clause WINDOW.
        choice(seq(Action(window.end_windows), alone, behind), seq(read, behind, windows(parts))),
    )


def _order(parts: MysqlParts, begin: do.Change = do.begin_order) -> Node:
    direction = maybe(choice(words("ASC"), words("DESC")))
    term = seq(
        choice(
            seq(Action(do.in_compound), Action(do.begin_term), choice(parts.number, parts.bare)),
            seq(Action(do.not_in_compound), Action(do.begin_term), parts.expression),
        ),
        Action(do.end_term),
    )
    return seq(Action(do.may_order), words("ORDER BY"), Action(begin), listed(seq(term, direction), parts.comma))


def _limit(parts: MysqlParts) -> Node:
    number = parts.whole
    return seq(Action(do.may_limit), words("LIMIT"), number, maybe(choice(words("OFFSET"), parts.comma), number))
