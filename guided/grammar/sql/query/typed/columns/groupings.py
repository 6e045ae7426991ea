"""GROUPING and its columns: in SELECT any, which are groups then, and behind GROUP BY those that are."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Action, Name, Names, Node, Sign, choice, listed, seq, words
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.calls import end_kind, may_aggregate, stronger
from guided.grammar.sql.query.typed.columns import references as names
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.columns.terms import TermQualifier
from guided.grammar.sql.query.typed.columns.unsorted import unsorted
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.frames import Operand
from guided.grammar.sql.query.typed.relations import bare_columns, is_named
from guided.grammar.sql.query.typed.scope import Clause, Column, Query, is_open
from guided.grammar.sql.query.typed.types import SORTABLE

__all__ = ["grouping"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")


def grouping(dialect: TypedDialect, catalog: Catalog) -> list[Node]:
    """GROUPING and its columns, in SELECT and behind GROUP BY."""
    number = Action(do.operand(dialect.whole, ("grouping", 2)))
    any_type = seq(Name(names.Qualifier(catalog, names.QualifiedColumn(catalog, 0))), Sign("."),
                   Name(names.QualifiedColumn(catalog, 0)))  # fmt: skip
    one = seq(Action(_begin_group), choice(Name(names.GroupedColumn(catalog)), any_type), Action(_end_group))
    early = seq(
        Action(_may_be_grouping), words("GROUPING"), Action(_begin_grouping), _OPEN, listed(one, _COMMA),
        Action(end_kind), number, _CLOSE,
    )  # fmt: skip
    group = choice(
        Name(_Group(catalog, qualified=False)),
        seq(Name(TermQualifier(_named_groups)), Sign("."), Name(_Group(catalog, qualified=True))),
    )
    late = seq(Action(_tells_groups), words("GROUPING"), _OPEN, listed(group, _COMMA), number, _CLOSE)
    return [early, late]


class _Group:
    """A group in GROUPING behind GROUP BY, where all groups are known."""

    label = "a group"

    def __init__(self, catalog: Catalog, *, qualified: bool) -> None:
        self.qualified = qualified
        self.price = catalog.longest

    def allowed(self, query: Query) -> Names:
        """Those that are columns."""
        bare = bare_columns(query.sources).unique
        if self.qualified:
            return Names(words_of(name for where, name in query.groups if where == query.name))
        return Names(words_of(name for where, name in query.groups if bare.get(name, (None,))[0] == where))

    def after(self, query: Query, name: str) -> Query:
        """The query behind it."""
        return query._replace(name="")

    def suggested(self, query: Query) -> Iterable[str]:
        """Any of them."""
        return sorted(self.allowed(query).words.members, key=len)


def _named_groups(query: Query) -> frozenset[Column]:
    """The groups that are columns which can be named."""
    bare = bare_columns(query.sources).unique
    return frozenset((where, name) for where, name in query.groups if (where and is_named(where)) or name in bare)


def _tells_groups(query: Query) -> Query | None:
    """Where GROUPING may stand behind GROUP BY."""
    late = query.clause is Clause.HAVING or (query.clause is Clause.ORDER and query.result is None)
    fits = late and query.grouped and not query.calls and query.followed is None and _named_groups(query)
    found = do.at_operand(query) if fits else None
    return None if found is None else do.untraced(found)


def _may_be_grouping(query: Query) -> Query | None:
    """Where GROUPING may stand."""
    if names.is_leaf(query) or query.calls or not is_open(query):
        return None
    return query if do.open_operand(query) and may_aggregate(query) else None


def _begin_grouping(query: Query) -> Query | None:
    """Before GROUPING, which makes its columns groups."""
    found = do.at_operand(query)
    if found is None:
        return None
    tainted = stronger(query.tainted, "aggregate")
    return found._replace(calls=("aggregate",), tainted=tainted, aggregated=True, trace=None)


def _begin_group(query: Query) -> Query:
    """Before one of them, of whatever type it is."""
    return query.pushed(Operand(query.system, SORTABLE, plain=True))


def _end_group(query: Query) -> Query | None:
    """Behind it."""
    ended = do.end(query)
    if ended is None or ended.column is None or ended.column in unsorted(query):
        return None
    return ended._replace(groupings=ended.groupings | {ended.column}, column=None)
