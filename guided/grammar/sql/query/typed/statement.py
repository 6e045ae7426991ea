"""SELECT statements whose types are followed: WITH, set operations, the clauses of a SELECT, and its sources."""

from __future__ import annotations

from functools import partial

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
from guided.grammar.sql.query.typed import clauses, new_names, queries
from guided.grammar.sql.query.typed.calls import may_qualify, windowed_call
from guided.grammar.sql.query.typed.columns import starred, terms
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.columns.references import Qualifier
from guided.grammar.sql.query.typed.columns.unsorted import MOST_POSITION, group_by_place, nameable_groups
from guided.grammar.sql.query.typed.compounds.brackets import bracketed
from guided.grammar.sql.query.typed.compounds.tables import has_whole_table, whole_table
from guided.grammar.sql.query.typed.compounds.values import values
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.expressions import beginning_with, casts, expression
from guided.grammar.sql.query.typed.literals import Percent, Place, Position, Size
from guided.grammar.sql.query.typed.scope import Clause, Query, needed, unbound, wanting
from guided.grammar.sql.query.typed.sourcing import tables as sources
from guided.grammar.sql.query.typed.sourcing.column_lists import alias_with_columns, without_name
from guided.grammar.sql.query.typed.sourcing.full_joins import on_equal, on_nearest
from guided.grammar.sql.query.typed.sourcing.records import records
from guided.grammar.sql.query.typed.sourcing.rows import rows, rows_of_call
from guided.grammar.sql.query.typed.sourcing.samples import sample, sampled_result
from guided.grammar.sql.query.typed.windows import defined_windows, directed

__all__ = ["select"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")


def select(dialect: TypedDialect, catalog: Catalog) -> Node:
    """The SELECT statements over a catalog."""
    body, query, operand = Rule("expression"), Rule("query"), Rule("query as an operand")
    body.body, one = expression(dialect, catalog, body, operand)
    query.body = _compound(dialect, catalog, body, query, one, leads=True)
    # Where a bracket may as well begin an expression, none leads.
    operand.body = _compound(dialect, catalog, body, query, one, leads=False)
    return seq(query, maybe(Sign(";")))


def _compound(dialect: TypedDialect, catalog: Catalog, body: Rule, query: Rule, one: Node, *, leads: bool) -> Node:
    """A query; ``leads`` says that its first part may be in brackets."""
    core = choice(_core(dialect, catalog, body, query, one), values(body), whole_table(catalog))
    inner = bracketed(catalog, query)
    part = choice(core, inner)
    operators = [
        seq(
            Action(queries.next_part(word.lower(), sorts=not every or word != "UNION")),
            words(word + (" ALL" if every else "")),
        )
        for word in ("UNION", "INTERSECT", "EXCEPT")
        for every in (False, True)
    ]
    more = seq(choice(*operators), part)
    first = choice(core, seq(inner, more)) if leads else core
    order, limit = _order(dialect, body), _limit(dialect, query)
    return seq(maybe(_with(catalog, query)), first, Star(more), maybe(order), maybe(limit))


def _with(catalog: Catalog, query: Node) -> Node:
    hint = maybe(maybe(words("NOT")), words("MATERIALIZED"))
    # Where tables may read themselves, a name is that of the table in queries before it, too.
    known = frozenset((*catalog.relations, *(name for of in catalog.schemas.values() for name in of)))
    ways = []
    for name, enter in (
        (new_names.CommonTable(), clauses.enter_table),
        (new_names.CommonTable(known), clauses.enter_recursive_table),
    ):
        table = seq(
            Action(clauses.begin_table), Name(name), maybe(_OPEN, listed(Name(new_names.NewColumn()), _COMMA), _CLOSE),
            words("AS"), hint, _OPEN, Action(enter), query, Action(clauses.leave_table), _CLOSE,
        )  # fmt: skip
        ways.append(listed(table, _COMMA))
    plain, recursive = ways
    # A table that has what is demanded of it must not be hidden by another of its name.
    return seq(
        Action(queries.may_nest),
        Action(clauses.may_have_values),
        words("WITH"),
        choice(plain, seq(words("RECURSIVE"), recursive)),
    )


def _order(dialect: TypedDialect, body: Node) -> Node:
    term = choice(
        Literal(LiteralForm.NUMBER, Position()),
        Name(new_names.OutputName()),
        Name(terms.TermColumn(qualified=False)),
        seq(Name(terms.TermQualifier()), Sign("."), Name(terms.TermColumn(qualified=True))),
        seq(Action(clauses.begin_order_term), body, Action(clauses.end_order_term)),
    )
    order = listed(directed(term), _COMMA)
    if dialect.system.all_columns:
        order = choice(order, directed(seq(Action(clauses.order_all), words("ALL"))))
    return seq(Action(_may_order), words("ORDER BY"), Action(clauses.begin_order), order)


def _may_order(query: Query) -> Query | None:
    """ORDER BY, which must be able to begin with the columns of DISTINCT ON, or to name a column with an order."""
    if not queries.may_be_cut(query):
        return None
    if query.result is None and query.clause is not Clause.VALUES:
        return query if terms.nameable(query) else None
    return query if any(clauses.may_order(query, place) for place in range(len(query.outputs))) else None


def _limit(dialect: TypedDialect, query: Node) -> Node:
    asked = seq(
        Action(clauses.may_count), _OPEN, Action(clauses.enter_count), query, Action(clauses.leave_count), _CLOSE
    )
    count = choice(Literal(LiteralForm.NUMBER, Size(0, 9999)), asked)
    unit = choice(words("ROW"), words("ROWS"))
    offset = seq(words("OFFSET"), count, maybe(unit))
    fetch = seq(words("FETCH"), choice(words("FIRST"), words("NEXT")), maybe(count), unit, words("ONLY"))
    share = seq(Action(clauses.sees_none), Literal(LiteralForm.NUMBER, Percent()), choice(Sign("%"), words("PERCENT")))
    most = choice(count, words("ALL"), *((share,) if dialect.system.from_first else ()))
    limit = seq(words("LIMIT"), most)
    return seq(
        Action(clauses.begin_limit), choice(seq(limit, maybe(offset)), seq(offset, maybe(choice(limit, fetch))), fetch)
    )


def _core(dialect: TypedDialect, catalog: Catalog, body: Rule, query: Rule, one: Node) -> Node:
    apart, there_is = terms.sole_column(catalog, clauses.begin_distinct_on, clauses.end_distinct_on)
    on = seq(Action(clauses.may_have_values), Action(there_is), words("ON"), _OPEN, listed(apart, _COMMA), _CLOSE)

    def may_be_distinct(query: Query) -> Query | None:
        on = clauses.may_have_values(query) and there_is(query)
        return query if on or clauses.distinct(query) else None

    distinct = seq(Action(may_be_distinct), words("DISTINCT"), choice(Action(clauses.distinct), on))
    where = seq(words("WHERE"), Action(clauses.begin_where), body, Action(do.end))
    named = defined_windows(dialect, body)
    qualify = (_qualify(dialect, catalog, body, query, one),) if dialect.system.qualify else ()
    drawn = (sampled_result(),) if dialect.system.from_first else ()
    bound = seq(Action(clauses.bound), maybe(where), _group(dialect, catalog, body), named, *qualify, *drawn)
    sources_ = seq(words("FROM"), Action(clauses.begin_from), _sources(dialect, catalog, body, query))
    read = seq(Action(clauses.end_items), sources_)
    items = _items(dialect, catalog, body)
    selected = seq(
        words("SELECT"),
        maybe(choice(distinct, words("ALL"))),
        items,
        choice(
            seq(Action(clauses.end_items), Action(clauses.bound), maybe(where), Action(clauses.grouped), named),
            seq(read, bound),
        ),
    )
    if not dialect.system.from_first:
        return selected
    unique = seq(Action(clauses.may_be_distinct), words("DISTINCT"), Action(clauses.distinct))
    last = seq(Action(clauses.bound), Action(clauses.begin_select), words("SELECT"),
               maybe(choice(unique, words("ALL"))), items, Action(clauses.end_items), bound)  # fmt: skip
    # Not cheaper than SELECT, which may stand where FROM may not.
    every = seq(Action(has_whole_table(catalog)), Action(clauses.all_columns, "SELECT 1"), sources_, bound)
    return choice(selected, every, seq(sources_, last))


def _group(dialect: TypedDialect, catalog: Catalog, body: Node) -> Node:
    """GROUP BY and HAVING; without them nothing may be left to group."""
    places = tuple(Literal(LiteralForm.NUMBER, Place(place)) for place in range(MOST_POSITION))
    place = Choice(places, lambda query: -1 if (found := group_by_place(query)) is None else found)
    named = Name(new_names.OutputName())
    begin, end = Action(clauses.begin_group_term), Action(clauses.end_group_term)
    free = seq(begin, body, end)

    def lacks(query: Query) -> bool:
        return bool(needed(query))

    def lacks_name(query: Query) -> bool:
        return bool(nameable_groups(query))

    def preferred(query: Query) -> int:
        return 0 if lacks_name(query) else options.index(place) if lacks(query) else -1

    several = seq(Action(clauses.begin_groupings), choice(words("ROLLUP"), words("CUBE")), _OPEN, free,
                  Star(seq(_COMMA, free), lacks_name), _CLOSE)  # fmt: skip
    alone, _ = terms.sole_column(catalog, clauses.begin_group_term, clauses.end_group_term)
    group = choice(seq(_OPEN, choice(seq(), seq(free, Star(seq(_COMMA, free), lacks_name))), _CLOSE), alone)
    sets = seq(Action(clauses.begin_groupings), words("GROUPING SETS"), _OPEN, group,
               Star(seq(_COMMA, group), lacks_name), _CLOSE)  # fmt: skip
    options = (free, place, named, several, sets)
    term = Choice(options, preferred)
    having = seq(words("HAVING"), Action(clauses.begin_having), body, Action(clauses.end_having))
    listed_terms = seq(term, Star(seq(_COMMA, term), lacks))
    if dialect.system.all_columns:
        every = seq(Action(clauses.group_all), words("ALL"))
        # It is shorter than any column, and bounds count on that.
        listed_terms = Choice((listed_terms, every), lambda query: 1 if clauses.wants_all(query) else -1)
    group_by = seq(Action(clauses.begin_group), words("GROUP BY"), listed_terms, Action(clauses.grouped), maybe(having))
    return choice(Action(clauses.grouped), group_by, seq(Action(clauses.all_rows), having))


def _qualify(dialect: TypedDialect, catalog: Catalog, body: Rule, query: Node, one: Node) -> Node:
    """QUALIFY, which has a window if the columns have none."""
    begin = Action(clauses.begin_qualify)
    first = beginning_with(dialect, windowed_call(dialect, catalog, body), one, body, query)
    condition = choice(seq(Action(clauses.has_window), body), first)
    return maybe(Action(may_qualify), words("QUALIFY"), begin, condition, Action(do.end))


def _items(dialect: TypedDialect, catalog: Catalog, body: Node) -> Node:
    alias, implied = Name(new_names.AliasOfColumn()), Name(new_names.AliasOfColumn(dialect.keywords))
    named = Choice(
        (seq(), choice(seq(words("AS"), alias), implied)), lambda query: 1 if new_names.wanted(query) else -1
    )
    every = Name(Qualifier(catalog))
    but = (starred.but(catalog, body),) if dialect.system.all_columns else ()
    value = choice(body, seq(rows_of_call(dialect, body), casts(dialect))) if dialect.selected_rows else body
    item = Choice(
        (
            seq(Action(clauses.begin_item), value, Action(clauses.end_value), named, Action(clauses.end_item)),
            seq(Action(has_whole_table(catalog)), Action(clauses.all_columns), Sign("*"), *but),
            seq(
                Action(clauses.may_star),
                Action(clauses.begin_item),
                every,
                Sign("."),
                Action(clauses.all_columns_of),
                Sign("*"),
                *but,
            ),
        ),
        # A text that ends soon has a value: `*` would need a FROM.
        lambda query: 0,
    )
    more = seq(Action(clauses.next_item), _COMMA, item)
    return seq(item, Star(more, lambda query: bool(new_names.wanted(query)) or clauses.lacks_columns(query)))


def _sources(dialect: TypedDialect, catalog: Catalog, body: Node, query: Node) -> Node:
    settled = Action(clauses.settled_sources)
    functions = rows(dialect, body)
    if dialect.system.row_columns:
        functions = choice(functions, records(dialect, body))
    plain = choice(_source(dialect, catalog, query), seq(Action(clauses.is_free), functions))
    lateral = seq(Action(clauses.may_be_lateral), _derived(dialect, query, lateral=True))
    beside = choice(plain, lateral)
    depending = seq(choice(lateral, functions), Action(sources.lateral))
    joined = choice(_source(dialect, catalog, query, joined=True), depending)
    nullable = choice(_source(dialect, catalog, query, joined=True, nullable=True), depending)
    apart = _source(dialect, catalog, query, joined=True)
    shared = _table(dialect, catalog, joined=True, merged=True)
    using, using_or_compared = (_using(catalog, names) for names in (1, 4))
    on = seq(settled, words("ON"), Action(clauses.begin_on), body, Action(clauses.end_on))
    outer = maybe(words("OUTER"))
    full = seq(words("FULL"), outer)
    inner = seq(maybe(words("INNER")), words("JOIN"), joined)
    left = seq(words("LEFT"), outer, words("JOIN"), nullable)
    right = seq(Action(sources.may_be_nullable), words("RIGHT"), outer, words("JOIN"), apart)
    half = seq(
        choice(words("SEMI"), words("ANTI")), words("JOIN"), Action(sources.halved), apart, choice(using, on),
        Action(sources.unjoined),
    )  # fmt: skip
    halves = (seq(Action(clauses.may_join), half),) if dialect.system.qualify else ()
    side = choice(seq(), words("INNER"), seq(words("LEFT"), outer))
    if dialect.system.from_first:
        nearest = seq(Action(clauses.may_join), Action(sources.may_merge_any(catalog)), words("ASOF"), side,
                      words("JOIN"), shared, choice(using_or_compared, seq(settled, on_nearest())))  # fmt: skip
        positional = seq(Action(clauses.may_join), Action(clauses.sees_none), Action(clauses.cross),
                         words("POSITIONAL JOIN"), beside, settled)  # fmt: skip
        halves = (*halves, nearest, positional)
    more = choice(
        seq(Action(clauses.comma), _COMMA, beside, settled),
        seq(Action(clauses.cross), words("CROSS JOIN"), beside, settled),
        seq(Action(clauses.may_join), choice(inner, left, right), choice(using, on)),
        seq(
            Action(clauses.may_join),
            Action(sources.may_be_nullable),
            Action(sources.may_merge_any(catalog)),
            full,
            words("JOIN"),
            shared,
            choice(using_or_compared, seq(settled, on_equal())),
        ),
        *halves,
    )
    # Another source would be looked for without end where none is missing.
    return seq(plain, settled, Star(more, of_use=lambda query: bool(unbound(query)) or clauses.has_none(query)))


def _using(catalog: Catalog, names: int) -> Node:
    """USING, beside which a condition has so many names."""
    merge = Action(sources.may_merge)
    merged = listed(Name(sources.MergedColumn(catalog, names=names)), seq(merge, _COMMA))
    return seq(merge, words("USING"), _OPEN, merged, Action(clauses.settled_sources), _CLOSE)


def _source(
    dialect: TypedDialect, catalog: Catalog, query: Node, *, joined: bool = False, nullable: bool = False
) -> Node:
    table = _table(dialect, catalog, joined=joined, nullable=nullable)
    derived = _derived(dialect, query, joined=joined)

    def preferred(query: Query) -> int:
        return 0 if clauses.wants_table(query) or clauses.awaits_table(query) else -1

    return Choice((table, derived), preferred)


def _derived(dialect: TypedDialect, query: Node, *, lateral: bool = False, joined: bool = False) -> Node:
    """A query as a source."""
    enter = (
        seq(Action(clauses.may_enter), words("LATERAL"), _OPEN, Action(clauses.enter_lateral))
        if lateral
        else seq(Action(clauses.may_enter), _OPEN, Action(clauses.enter_source))
    )
    nameless = partial(without_name, joined=joined)

    def preferred(query: Query) -> int:
        return 0 if any(one.qualifier for one in wanting(query)) or nameless(query) is None else 1

    # Its price is that of a letter: no sub-query is cheaper than a table because of it.
    named = Choice((alias_with_columns(dialect, joined=joined), Action(nameless, " a")), preferred)
    return seq(enter, query, Action(clauses.leave_source), _CLOSE, named)


def _table(
    dialect: TypedDialect, catalog: Catalog, *, joined: bool, merged: bool = False, nullable: bool = False
) -> Node:
    named = choice(seq(words("AS"), Name(sources.AliasOfSource())), Name(sources.AliasOfSource(dialect.keywords)))
    name = sources.TableName(catalog, joined=joined, merged=merged, nullable=nullable)
    return seq(
        choice(Name(name), seq(Name(sources.SchemaName(name)), Sign("."), Name(name))),
        Choice((named, Action(sources.without_alias)), lambda query: 0 if sources.wants_alias(query) else 1),
        maybe(sample(dialect)),
    )
