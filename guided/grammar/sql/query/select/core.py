"""One SELECT: its columns, WHERE, GROUP BY and HAVING."""

from __future__ import annotations

from guided.grammar.attributed.nodes import (
    Action,
    Choice,
    Literal,
    LiteralForm,
    Name,
    Node,
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
from guided.grammar.sql.query.names import columns
from guided.grammar.sql.query.scope import Clause, bind
from guided.grammar.sql.query.select.parts import Parts
from guided.grammar.sql.query.select.sources import sources
from guided.grammar.sql.query.select.windows import windows
from guided.grammar.sql.query.spelled import AliasInQuotes, may_be_any

__all__ = ["core", "items"]


def core(parts: Parts) -> Node:
    """SELECT up to HAVING."""
    term = seq(Action(do.begin_term), parts.expression, Action(do.end_term))
    group = seq(
        Action(do.may_begin(Clause.GROUP)),
        words("GROUP BY"),
        Action(do.begin_clause(Clause.GROUP)),
        listed(term, parts.comma),
        maybe(
            Action(do.may_begin(Clause.HAVING)),
            words("HAVING"),
            Action(do.begin_clause(Clause.HAVING)),
            parts.expression,
        ),
    )
    where = seq(Action(do.may_begin(Clause.WHERE)), words("WHERE"), parts.expression)
    read = seq(Action(do.end_items), words("FROM"), Action(do.begin_from), sources(parts))
    bound = seq(Action(bind), maybe(where), maybe(group))
    return seq(
        words("SELECT"),
        maybe(choice(words("DISTINCT"), words("ALL"))),
        items(parts),
        choice(seq(Action(do.end_items), bound), seq(read, bound)),
        windows(parts),
    )


def items(parts: Parts) -> Node:
    """The columns of the result."""
    alias = Name(columns.AliasOfColumn(parts.catalog))
    implied = Name(columns.AliasOfColumn(parts.catalog, parts.dialect.keywords))
    quoted = Name(columns.AliasOfColumn(parts.catalog), Spelled.STRING)
    held = Literal(LiteralForm.STRING, AliasInQuotes(), hears=True)
    free = Action(may_be_any)
    texts = (seq(words("AS"), quoted), seq(free, words("AS"), held)) if parts.dialect.lexis.text_quotes else ()
    named = maybe(choice(seq(words("AS"), alias), implied, *texts))
    # A text that ends soon has a value: `*` would need a FROM.
    item = Choice(
        (
            seq(parts.expression, _named(named), Action(do.end_item)),
            seq(Action(do.all_columns), Sign("*")),
            seq(parts.any_qualifier, Sign("."), Action(do.all_columns_of), Sign("*")),
        ),
        lambda query: 0,
    )
    begin = Action(do.begin_item)
    more = Star(seq(begin, parts.comma, item), lambda query: bool(columns.wanted_names(query)))
    return seq(begin, item, more)


def _named(named: Node) -> Node:
    """A name for a column; a text that ends soon gives one where a query around waits for it."""
    assert isinstance(named, Choice)
    return Choice(named.options, lambda query: 1 if columns.wanted_names(query) else -1)
