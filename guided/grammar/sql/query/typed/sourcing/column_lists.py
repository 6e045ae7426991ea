"""Names of a query in FROM, and of its columns: (VALUES (1, 'x')) AS v(a, b)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from guided.grammar.attributed.nodes import Action, Choice, Name, Names, Node, Sign, Star, choice, seq, words
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import EVERY, LETTERS
from guided.grammar.sql.query.typed import clauses
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.relations import Relation, bare_columns, unnamed
from guided.grammar.sql.query.typed.scope import Query, wanting
from guided.grammar.sql.query.typed.sourcing.tables import goes_by, with_source
from guided.grammar.sql.query.typed.undecided import UNDECIDED, narrower, stands_for

__all__ = ["alias_with_columns", "unlisted", "without_name"]

_COMMA = Sign(",")
_NO_TYPE = "?none"
"""That of a column which must have two."""


def alias_with_columns(dialect: TypedDialect, *, joined: bool = False) -> Node:
    """The name, and the list of all columns, if there is one; ``joined`` says that USING may follow."""
    named = choice(seq(words("AS"), Name(_Alias(joined=joined))), Name(_Alias(dialect.keywords, joined=joined)))
    column = Name(_Column(joined=joined))
    wanted = Star(seq(Action(_next), _COMMA, column), lambda query: query.cell < len(query.relation.columns))
    listed = seq(Action(_begin), Sign("("), column, wanted, Action(_whole), Sign(")"), Action(_listed))
    as_they_are = Action(partial(unlisted, joined=joined))
    return seq(named, Choice((as_they_are, listed), lambda query: 0 if _fits(query, query.name, joined=joined) else 1))


def without_name(query: Query, *, joined: bool) -> Query | None:
    """The query with it as a source that has no name."""
    name = unnamed(len(query.sources))
    return with_source(query, name) if _fits(query, name, joined=joined) else None


def _waiting(query: Query, name: str) -> dict[str, str]:
    """The columns that wait for a source of a name, with their types if these are known."""
    found: dict[str, str] = {}
    for pending in query.pending:
        if pending.qualifier == name and pending.column != EVERY:
            found[pending.column] = narrower(pending.type, found.get(pending.column, ""))
    # USING makes one of it and of what is there without a qualifier.
    there = bare_columns(query.sources).unique
    shared = {pending.column for pending in query.pending if pending.qualifier is None} & there.keys()
    for name in shared & found.keys():
        kind = there[name][1]
        found[name] = kind if stands_for(query.system, found[name], kind) else _NO_TYPE
    return found


def _fits(query: Query, name: str, *, joined: bool) -> bool:
    """Can it go by a name with the columns as they are?"""
    assert query.relation is not None
    if not goes_by(query, name):
        return False
    types = query.relation.types
    if query.relation.is_value:
        types = {name: query.relation.columns[0][1], **types}
    return all(clauses.admits(query, column, kind, joined=joined) for column, kind in types.items())


def _can_be_listed(query: Query, waiting: dict[str, str], kinds: Iterable[str], taken: Iterable[str] = ()) -> bool:
    """Is there a column for each that waits behind those that are listed?"""
    left = list(kinds)
    most = len(left) - clauses.is_emptied(query, query.name, (*taken, *waiting))
    if len(waiting) > most or (query.aggregated and waiting and not all(map(clauses.is_sortable, left))):
        return False
    # What fits the narrower of two that are not decided fits the wider as well, so none needs a second try.
    for wanted in sorted(filter(None, waiting.values()), key=lambda kind: len(UNDECIDED.get(kind, ()))):
        fitting = [kind for kind in left if stands_for(query.system, wanted, kind)]
        if not fitting:
            return False
        left.remove(fitting[0])
    return True


def _begin(query: Query) -> Query | None:
    """Before the list."""
    assert query.relation is not None
    waiting = _waiting(query, query.name)
    kinds = [kind for _, kind in query.relation.columns]
    return query._replace(cell=0) if _can_be_listed(query, waiting, kinds) else None


def _next(query: Query) -> Query | None:
    """Before another column, where there is one."""
    assert query.relation is not None
    return query if query.cell < len(query.relation.columns) else None


def unlisted(query: Query, *, joined: bool) -> Query | None:
    """The query with the source as it is, where no list follows."""
    return with_source(query, query.name) if _fits(query, query.name, joined=joined) else None


def _whole(query: Query) -> Query | None:
    """Before the end of the list, which has all columns."""
    assert query.relation is not None
    return query if query.cell == len(query.relation.columns) else None


def _listed(query: Query) -> Query | None:
    """Behind the list."""
    return with_source(query._replace(cell=0), query.name)


class _Alias:
    """The name that the query goes by."""

    label = "an alias"
    price = 1

    def __init__(self, excluded: frozenset[str] = frozenset(), *, joined: bool) -> None:
        self.excluded = excluded
        self.joined = joined

    def allowed(self, query: Query) -> Names:
        """Names in use before FROM that fit, and any other."""
        awaited = words_of(name for name in self._awaited(query) if name not in self.excluded)
        return Names(awaited, True, self.excluded)

    def _awaited(self, query: Query) -> list[str]:
        waiting = sorted({pending.qualifier for pending in wanting(query) if pending.qualifier is not None})
        return [name for name in waiting if self._may_be(query, name)]

    def _may_be(self, query: Query, name: str) -> bool:
        if name in self.excluded or name in query.own_names:
            return False
        noted = query._replace(name=name)
        if _fits(query, name, joined=self.joined):
            return True
        return _begin(noted) is not None and bool(_names(noted._replace(cell=0), joined=self.joined))

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted."""
        return query._replace(name=name) if self._may_be(query, name) else None

    def suggested(self, query: Query) -> Iterable[str]:
        """What is awaited, also where it can only stand behind AS; else a letter."""
        waiting = sorted({pending.qualifier for pending in wanting(query) if pending.qualifier is not None})
        known = [name for name in waiting if _fits(query, name, joined=self.joined)][:1]
        return known or self._awaited(query)[:1] or [one for one in LETTERS if self._may_be(query, one)][:1]


def _renamed(query: Query, name: str, *, joined: bool) -> Query | None:
    """The query with the next column named, None where what waits would have no column left."""
    relation, place = query.relation, query.cell
    assert relation is not None
    if place >= len(relation.columns) or name in query.system.undefinable:
        return None
    taken = [known or "" for known, _ in relation.columns[:place]]
    kind = relation.columns[place][1]
    if name in taken or not clauses.admits(query, name, kind, joined=joined):
        return None
    waiting = {one: wanted for one, wanted in _waiting(query, query.name).items() if one not in taken}
    wanted = waiting.pop(name, "")
    rest = relation.columns[place + 1 :]
    if not stands_for(query.system, wanted, kind):
        return None
    if not _can_be_listed(query, waiting, (other for _, other in rest), (*taken, name)):
        return None
    columns = (*relation.columns[:place], (name, kind), *rest)
    return query._replace(relation=Relation(columns), cell=place + 1)


def _names(query: Query, *, joined: bool) -> list[str]:
    """Names that the next column may have, those that wait first."""
    waiting = _waiting(query, query.name)
    known = sorted(waiting, key=lambda name: (not waiting[name], name))
    return [name for name in (*known, *LETTERS) if _renamed(query, name, joined=joined) is not None][:1]


class _Column:
    """The name of one of its columns."""

    label = "a name for the column"
    price = 1

    def __init__(self, *, joined: bool) -> None:
        self.joined = joined

    def allowed(self, query: Query) -> Names:
        """Any."""
        return Names(words_of(()), True)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the column named."""
        return _renamed(query, name, joined=self.joined)

    def suggested(self, query: Query) -> Iterable[str]:
        """One that will do."""
        return _names(query, joined=self.joined)
