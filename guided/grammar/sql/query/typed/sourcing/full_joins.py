"""FULL JOIN and ASOF JOIN, whose conditions compare columns of both sides: the engine can merge by no others."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Action, Name, Names, Node, Sign, Star, choice, seq, words
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.typed.clauses import is_sortable
from guided.grammar.sql.query.typed.relations import Source, is_named
from guided.grammar.sql.query.typed.scope import Query

__all__ = ["joins", "on_equal", "on_nearest"]


def joins(query: Query, source: Source) -> bool:
    """Has a source a column of a type that one of those before it has?"""
    kinds = {kind for kind in source.relation.types.values() if is_sortable(kind)}
    return any(kind in kinds for left in query.sources if is_named(left.name) for kind in left.relation.types.values())


def on_equal() -> Node:
    """ON and the equality."""
    return seq(words("ON"), _compared("="))


def on_nearest() -> Node:
    """ON and one inequality among equalities, as ASOF JOIN has it."""
    equal = _compared("=")
    before, behind = Star(seq(equal, words("AND"))), Star(seq(words("AND"), equal))
    return seq(words("ON"), before, _compared("<", "<=", ">", ">="), behind)


def _compared(*signs: str) -> Node:
    """A column of one side compared with one of the other."""
    ways = []
    for first in (True, False):
        ways.append(
            seq(Name(_Side(left=first)), Sign("."), Name(_Column(first=True)), choice(*map(Sign, signs)),
                Name(_Side(left=not first)), Sign("."), Name(_Column(first=False)))
        )  # fmt: skip
    return seq(Action(_forget), choice(*ways), Action(_forget))


def _forget(query: Query) -> Query:
    """The query without the names of the condition."""
    return query._replace(name="", value="")


def _types(query: Query, source: Source, *, left: bool) -> dict[str, str]:
    """The columns of a source that may be compared: with the other side, or of the type that was read."""
    last = query.sources[-1]
    if not is_named(source.name):
        return {}
    if query.value:
        kinds = {query.value}
    else:
        others = (last,) if left else query.sources[:-1]
        kinds = {kind for other in others if is_named(other.name) for kind in other.relation.types.values()}
    return {name: kind for name, kind in source.relation.types.items() if kind in kinds and is_sortable(kind)}


class _Side:
    """A source of one side."""

    label = "a table or alias"
    price = 1

    def __init__(self, *, left: bool) -> None:
        self.left = left

    def allowed(self, query: Query) -> Names:
        """Those with a column that may be compared."""
        sources = query.sources[:-1] if self.left else query.sources[-1:]
        return Names(words_of(source.name for source in sources if _types(query, source, left=self.left)))

    def after(self, query: Query, name: str) -> Query:
        """The query with the source noted."""
        return query._replace(name=name)

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest."""
        return sorted(self.allowed(query).words.members, key=len)


class _Column:
    """A column of that source; the ``first`` decides the type of the other."""

    label = "a column of that table"
    price = 64

    def __init__(self, *, first: bool) -> None:
        self.first = first

    def _columns(self, query: Query) -> dict[str, str]:
        source = query.source(query.name)
        assert source is not None
        return _types(query, source, left=source is not query.sources[-1])

    def allowed(self, query: Query) -> Names:
        """Those of a type that fits."""
        return Names(words_of(self._columns(query)))

    def after(self, query: Query, name: str) -> Query:
        """The query with the type noted."""
        return query._replace(value=self._columns(query)[name], name="")

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest."""
        return sorted(self._columns(query), key=len)
