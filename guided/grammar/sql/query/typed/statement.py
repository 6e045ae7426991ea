"""SELECT statements whose types are followed: WITH, set operations, the clauses of a SELECT, and its sources."""

from __future__ import annotations

from guided.grammar.attributed.nodes import (
    Action,
    Choice,
    Literal,
    LiteralForm,
    Name,
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
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed import clauses, new_names, queries, sources, terms
from guided.grammar.sql.query.typed import columns as names
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.expressions import columns, expression
from guided.grammar.sql.query.typed.full_joins import on_equal
from guided.grammar.sql.query.typed.literals import Place, Position, Size
from guided.grammar.sql.query.typed.rows import rows
from guided.grammar.sql.query.typed.scope import Query, needed

__all__ = ["select"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")
MOST_POSITION = 40
"""Columns of the result that GROUP BY may name by position."""


def select(dialect: TypedDialect, catalog: names.Catalog) -> Node:
    """The SELECT statements over a catalog."""
    body, query = Rule("expression"), Rule("query")
    body.body = expression(dialect, catalog, body, query)
    query.body = _compound(dialect, catalog, body, query)
    return seq(query, maybe(Sign(";")))


def _compound(dialect: TypedDialect, catalog: names.Catalog, body: Node, query: Node) -> Node:
    core = _core(dialect, catalog, body, query)
    operators = [
        seq(Action(queries.next_part(word.lower(), sorts=not every)), words(word + (" ALL" if every else "")))
        for word in ("UNION", "INTERSECT", "EXCEPT")
        for every in (False, True)
    ]
    return seq(
        maybe(_with(query)), core, Star(seq(choice(*operators), core)), maybe(_order(body)), maybe(_limit()),
    )  # fmt: skip


def _with(query: Node) -> Node:
    hint = maybe(maybe(words("NOT")), words("MATERIALIZED"))
    table = seq(
        Action(clauses.begin_table), Name(new_names.CommonTable()),
        maybe(_OPEN, listed(Name(new_names.NewColumn()), _COMMA), _CLOSE),
        words("AS"), hint, _OPEN, Action(clauses.enter_table), query, Action(clauses.leave_table), _CLOSE,
    )  # fmt: skip
    return seq(Action(queries.may_nest), words("WITH"), listed(table, _COMMA))


def _order(body: Node) -> Node:
    direction = maybe(choice(words("ASC"), words("DESC")))
    nulls = maybe(words("NULLS"), choice(words("FIRST"), words("LAST")))
    term = choice(
        Literal(LiteralForm.NUMBER, Position()),
        Name(new_names.OutputName()),
        Name(terms.TermColumn(qualified=False)),
        seq(Name(terms.TermQualifier()), Sign("."), Name(terms.TermColumn(qualified=True))),
        seq(Action(clauses.begin_order_term), body, Action(do.end)),
    )
    return seq(
        Action(_may_order), words("ORDER BY"), Action(clauses.begin_order), listed(seq(term, direction, nulls), _COMMA)
    )


def _may_order(query: Query) -> Query | None:
    """ORDER BY, which must be able to begin with the columns of DISTINCT ON."""
    return query if query.result is not None or terms.nameable(query) else None


def _limit() -> Node:
    count = Literal(LiteralForm.NUMBER, Size(0, 9999))
    unit = choice(words("ROW"), words("ROWS"))
    offset = seq(words("OFFSET"), count, maybe(unit))
    fetch = seq(words("FETCH"), choice(words("FIRST"), words("NEXT")), maybe(count), unit, words("ONLY"))
    limit = seq(words("LIMIT"), choice(count, words("ALL")))
    return seq(
        Action(clauses.begin_limit), choice(seq(limit, maybe(offset)), seq(offset, maybe(choice(limit, fetch))), fetch)
    )


def _core(dialect: TypedDialect, catalog: names.Catalog, body: Node, query: Node) -> Node:
    bare, qualified = columns(catalog)
    one = seq(Action(clauses.begin_distinct_on), choice(*bare, qualified), Action(clauses.end_distinct_on))
    on = seq(words("ON"), _OPEN, listed(one, _COMMA), _CLOSE)
    where = seq(words("WHERE"), Action(clauses.begin_where), body, Action(do.end))
    bound = seq(Action(clauses.bound), maybe(where), _group(body))
    read = seq(
        Action(clauses.end_items), words("FROM"), Action(clauses.begin_from), _sources(dialect, catalog, body, query)
    )
    return seq(
        words("SELECT"),
        maybe(choice(seq(words("DISTINCT"), choice(Action(clauses.distinct), on)), words("ALL"))),
        _items(dialect, catalog, body),
        choice(
            seq(Action(clauses.end_items), Action(clauses.bound), maybe(where), Action(clauses.grouped)),
            seq(read, bound),
        ),
    )


def _group(body: Node) -> Node:
    """GROUP BY and HAVING; without them nothing may be left to group."""
    place = choice(*(Literal(LiteralForm.NUMBER, Place(place)) for place in range(MOST_POSITION)))
    named = Name(new_names.OutputName())
    free = seq(Action(clauses.begin_group_term), body, Action(clauses.end_group_term))
    term = Choice((free, place, named), lambda query: 0 if needed(query) else -1)
    having = seq(words("HAVING"), Action(clauses.begin_having), body, Action(do.end))
    terms = seq(term, Star(seq(_COMMA, term), lambda query: bool(needed(query))))
    several = seq(
        Action(clauses.begin_groupings), choice(words("ROLLUP"), words("CUBE")), _OPEN,
        free, Star(seq(_COMMA, free), lambda query: bool(needed(query))), _CLOSE,
    )  # fmt: skip
    begin = seq(words("GROUP BY"), Action(clauses.begin_group))
    group = seq(begin, choice(terms, several), Action(clauses.grouped), maybe(having))
    return choice(Action(clauses.grouped), group)


def _items(dialect: TypedDialect, catalog: names.Catalog, body: Node) -> Node:
    alias, implied = Name(new_names.AliasOfColumn()), Name(new_names.AliasOfColumn(dialect.keywords))
    named = Choice(
        (seq(), choice(seq(words("AS"), alias), implied)), lambda query: 1 if new_names.wanted(query) else -1
    )
    every = Name(names.Qualifier(catalog))
    item = Choice(
        (
            seq(Action(clauses.begin_item), body, Action(clauses.end_value), named, Action(clauses.end_item)),
            seq(Action(clauses.all_columns), Sign("*")),
            seq(Action(clauses.begin_item), every, Sign("."), Action(clauses.all_columns_of), Sign("*")),
        ),
        # A text that ends soon has a value: `*` would need a FROM.
        lambda query: 0,
    )
    return seq(
        item, Star(seq(_COMMA, item), lambda query: bool(new_names.wanted(query)) or clauses.lacks_columns(query))
    )


def _sources(dialect: TypedDialect, catalog: names.Catalog, body: Node, query: Node) -> Node:
    settled = Action(clauses.settled_sources)
    plain, joined = (_source(dialect, catalog, query, joined=joined) for joined in (False, True))
    plain = choice(plain, rows(dialect, body))
    shared = _table(dialect, catalog, joined=True, merged=True)
    merged = listed(Name(sources.MergedColumn(catalog)), seq(Action(sources.may_merge), _COMMA))
    using = seq(Action(sources.may_merge), words("USING"), _OPEN, merged, settled, _CLOSE)
    on = seq(words("ON"), settled, Action(clauses.begin_on), body, Action(clauses.end_on))
    side = choice(seq(), words("INNER"), seq(choice(words("LEFT"), words("RIGHT")), maybe(words("OUTER"))))
    full = seq(words("FULL"), maybe(words("OUTER")))
    more = choice(
        seq(Action(clauses.comma), _COMMA, plain, settled),
        seq(Action(clauses.cross), words("CROSS JOIN"), plain, settled),
        seq(Action(clauses.may_join), side, words("JOIN"), joined, choice(using, on)),
        seq(
            Action(clauses.may_join),
            Action(sources.may_merge_any(catalog)),
            full,
            words("JOIN"),
            shared,
            choice(using, on_equal(settled)),
        ),
    )
    return seq(plain, settled, Star(more))


def _source(dialect: TypedDialect, catalog: names.Catalog, query: Node, *, joined: bool) -> Node:
    alias, implied = Name(sources.AliasOfSource()), Name(sources.AliasOfSource(dialect.keywords))
    named = choice(seq(words("AS"), alias), implied)
    table = _table(dialect, catalog, joined=joined)
    derived = seq(_OPEN, Action(clauses.enter_source), query, Action(clauses.leave_source), _CLOSE, named)
    return choice(table, derived)


def _table(dialect: TypedDialect, catalog: names.Catalog, *, joined: bool, merged: bool = False) -> Node:
    named = choice(seq(words("AS"), Name(sources.AliasOfSource())), Name(sources.AliasOfSource(dialect.keywords)))
    name = sources.TableName(catalog, joined=joined, merged=merged)
    return seq(
        choice(Name(name), seq(Name(sources.SchemaName(name)), Sign("."), Name(name))),
        Choice((named, Action(sources.without_alias)), lambda query: 0 if sources.wants_alias(query) else 1),
    )
