"""FROM: tables, sub-queries and joins."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Choice, Name, Node, Spelled, Star, choice, listed, maybe, seq, words
from guided.grammar.attributed.watched import asked
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query.barred import is_captured
from guided.grammar.sql.query.dialect import TableFunction
from guided.grammar.sql.query.names import sources as names
from guided.grammar.sql.query.names.fixed import FixedName
from guided.grammar.sql.query.names.schemas import table_name
from guided.grammar.sql.query.outer_joins import begin_outer
from guided.grammar.sql.query.relations import Relation
from guided.grammar.sql.query.scope import Clause, Query, unbound
from guided.grammar.sql.query.select.parts import Parts

__all__ = ["may_join", "sources"]


def sources(parts: Parts) -> Node:
    """What stands behind FROM."""
    plain, merging = _source(parts, names.Joining.PLAIN), _source(parts, names.Joining.USING)
    natural = _source(parts, names.Joining.NATURAL)
    settled = Action(do.settled)
    merged = listed(Name(names.MergedColumn(parts.catalog)), seq(Action(do.may_merge), parts.comma))
    on = seq(
        settled,
        Action(do.may_begin(Clause.ON)),
        words("ON"),
        Action(do.begin_on),
        parts.expression,
        Action(do.end_on),
    )
    using = seq(Action(do.may_merge), words("USING"), parts.open, merged, settled, parts.close)
    condition = choice(settled, on, using)
    side = choice(seq(), words("INNER"), seq(words("LEFT"), maybe(words("OUTER"))))
    # SQLite joins equal names of a RIGHT or FULL JOIN to one value, which an ON before it cannot have.
    outer = seq(choice(words("RIGHT"), words("FULL")), maybe(words("OUTER")))
    apart = Action(may_join(parts, names.Joining.PLAIN))
    alike = Action(may_join(parts, names.Joining.NATURAL))
    more = Choice(
        (
            seq(side, words("JOIN"), merging, condition),
            seq(Action(_may_hide), outer, words("JOIN"), merging, condition),
            seq(Action(_must_keep), apart, outer, words("JOIN"), plain, choice(settled, on)),
            seq(apart, choice(parts.comma, words("CROSS JOIN")), plain, settled),
            seq(
                alike,
                words("NATURAL"),
                choice(side, seq(Action(_may_hide), outer)),
                words("JOIN"),
                natural,
                Action(do.merge_all),
                settled,
            ),
        ),
        # What waits for a sub-query can only be joined with USING.
        lambda query: 0 if unbound(query) and not names.can_derive(query) else -1,
    )
    return seq(plain, settled, Star(seq(Action(do.may_widen), more)))


def _may_hide(query: Query) -> Query | None:
    """RIGHT or FULL JOIN that makes names one: conditions before it must not have them, so none may have any."""
    return None if query.is_joined or is_captured(query) else begin_outer(query)


def _must_keep(query: Query) -> Query | None:
    """RIGHT or FULL JOIN where they have some."""
    return begin_outer(query) if query.is_joined and not is_captured(query) else None


_OF_SOURCES = (
    "sources", "pending", "outputs", "tables", "barred", "chain", "is_distinct", "width", "recursion", "parent",
    "before_outer",
)  # fmt: skip
"""Fields that tell which tables may come."""


def may_join(parts: Parts, joining: names.Joining) -> do.Change:
    """Is there any source that can be joined so?"""
    name = names.TableName(parts.catalog, joining)

    @asked(*_OF_SOURCES)
    def is_any(query: Query) -> bool:
        derived = joining is names.Joining.PLAIN and do.may_derive(query) is not None
        return derived or bool(len(name.allowed(query).words))

    return lambda query: query if is_any(query) else None


def _source(parts: Parts, joining: names.Joining) -> Node:
    alias = Name(names.AliasOfSource(parts.catalog))
    implied = Name(names.AliasOfSource(parts.catalog, parts.dialect.keywords))
    named = choice(seq(words("AS"), alias), implied)
    table = seq(
        table_name(names.TableName(parts.catalog, joining)),
        Choice((named, Action(do.without_alias)), lambda query: 0 if names.wants_alias(query) else 1),
    )
    entered = Action(do.enter_source(merging=joining is names.Joining.USING))
    derived = seq(parts.open, entered, parts.compound, Action(do.leave), parts.close, _query_name(parts, named))
    if joining is names.Joining.NATURAL:
        # Which of its columns are those of the sources before is not known until it ends.
        return table
    # A table of that name hides the function.
    functions = (one for one in parts.dialect.table_functions if one.name not in parts.catalog.relations)
    called = (_called(parts, joining, function, named) for function in functions)
    return choice(table, derived if joining is names.Joining.USING else seq(Action(do.may_derive), derived), *called)


def _called(parts: Parts, joining: names.Joining, function: TableFunction, named: Node) -> Node:
    """A function as a source; its arguments know the sources before it."""
    relation = Relation(function.columns, hidden=frozenset(function.hidden))
    name = names.TableName(parts.catalog, joining)
    fits = Action(lambda query: query if name.fits(query, relation) else None)
    arguments = seq(parts.expression, maybe(Action(do.begun), parts.comma, parts.expression))
    # What waits may be a column of the function: it is read as a source only behind the bracket.
    shared = [column for column in function.columns if column in parts.catalog.columns]
    using = f" USING({','.join(shared)})" if shared else ""
    return seq(
        fits,
        Action(do.may_begin(Clause.ON)),
        Name(FixedName("a table function", [function.name]), Spelled.WORD),
        parts.open,
        Action(do.begin_arguments(relation), using),
        arguments,
        Action(do.end_arguments(function.name)),
        parts.close,
        Choice((named, Action(do.without_alias)), lambda query: 0 if names.wants_alias(query) else 1),
    )


def _query_name(parts: Parts, named: Node) -> Node:
    """The name of a sub-query; a text that ends soon gives one where some qualifier waits for it."""
    if parts.dialect.names_queries:
        return named
    return Choice((named, Action(do.without_name)), lambda query: 0 if names.waits_for_alias(query) else 1)
