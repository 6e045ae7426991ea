"""JSON read as rows whose columns are listed with their types: jsonb_to_recordset(j) AS r(id int, name text)."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import (
    Action,
    Literal,
    LiteralForm,
    Name,
    Names,
    Node,
    Sign,
    Spelled,
    Star,
    choice,
    maybe,
    seq,
    words,
)
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import EVERY, LETTERS
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed import clauses
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.literals import Digits, Scale, Size, without_scale
from guided.grammar.sql.query.typed.relations import Relation
from guided.grammar.sql.query.typed.scope import Query, unbound
from guided.grammar.sql.query.typed.sourcing.tables import with_source
from guided.grammar.sql.query.typed.types import BIT, only
from guided.grammar.sql.query.typed.undecided import narrower, stands_for

__all__ = ["records"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")


def records(dialect: TypedDialect, body: Node) -> Node:
    """Such a function as a source, its name and its columns."""
    known = tuple(dict.fromkeys(dialect.type_words.values()))
    calls = choice(
        *(
            seq(choice(words(f"{kind}_TO_RECORDSET"), words(f"{kind}_TO_RECORD")), _OPEN,
                Action(do.begin(only(kind))), body, Action(_end), _CLOSE)
            for kind in ("jsonb", "json")
        )
    )  # fmt: skip
    named = choice(
        seq(words("AS"), Name(_Alias(known))), Name(_Alias(known, dialect.keywords))
    )  # fmt: skip
    column = seq(Name(_Column(known)), _type(dialect))
    more = Star(seq(_COMMA, column), _lacks_column)
    return seq(maybe(words("LATERAL")), calls, named, _OPEN, column, more, Action(_listed), _CLOSE)


def _type(dialect: TypedDialect) -> Node:
    """The type of the column whose name was read."""
    size = Literal(LiteralForm.NUMBER, Size(1, 999))
    sized = (seq(Action(_typed(name)), words(word), _OPEN, size, _CLOSE) for word, name in dialect.sized_types.items())
    phrases = (seq(Action(_typed(name)), words(word)) for word, name in dialect.type_phrases.items())
    digits = Literal(LiteralForm.NUMBER, Digits(1, dialect.most_digits), hears=True)
    scale = seq(_COMMA, Literal(LiteralForm.NUMBER, Scale(0, dialect.most_digits), hears=True))
    decimal = seq(Action(_typed("numeric")), choice(words("DECIMAL"), words("NUMERIC")), _OPEN, digits,
                  choice(scale, Action(without_scale)), _CLOSE)  # fmt: skip
    array = seq(Name(_Type(dialect, array=True), Spelled.WORD), Sign("["), Sign("]"))
    return choice(Name(_Type(dialect), Spelled.WORD), array, decimal, *sized, *phrases)


def _end(query: Query) -> Query | None:
    """Behind the argument: no column is listed yet."""
    ended = do.end(query)
    return None if ended is None else ended._replace(relation=Relation(()), name="")


def _waiting(query: Query) -> dict[str, str]:
    """The columns that wait for a source of the name, with their types where these are known."""
    found: dict[str, str] = {}
    for pending in query.pending:
        if pending.qualifier == query.name and pending.column != EVERY:
            found[pending.column] = narrower(pending.type, found.get(pending.column, ""))
    return found


def _missing(query: Query) -> list[str]:
    """Those that are not listed yet."""
    assert query.relation is not None
    listed = {name for name, _ in query.relation.columns}
    return sorted(name for name in _waiting(query) if name not in listed)


def _lacks_column(query: Query) -> bool:
    """Must one more be listed?"""
    assert query.relation is not None
    columns = (name for name, _ in query.relation.columns)
    return bool(_missing(query)) or clauses.is_emptied(query, query.name, columns)


def _may_be(query: Query, name: str, kind: str) -> bool:
    """May a column of a name have a type?"""
    wanted = _waiting(query).get(name)
    if wanted is not None and not stands_for(query.system, wanted, kind):
        return False
    sorted_ = wanted is None or not query.aggregated or clauses.is_sortable(kind)
    return sorted_ and clauses.admits(query, name, kind, joined=False)


def _typed(kind: str) -> do.Change:
    """The last column has a type."""

    def change(query: Query) -> Query | None:
        assert query.relation is not None
        *others, (name, _) = query.relation.columns
        if not _may_be(query, name or "", kind):
            return None
        return query._replace(relation=Relation((*others, (name, kind))))

    return change


def _listed(query: Query) -> Query | None:
    """Behind the last column: what waits for the source has its column."""
    return None if _lacks_column(query) else with_source(query, query.name)


class _Alias:
    """The name of the rows."""

    label = "an alias"
    price = 1

    def __init__(self, known: tuple[str, ...], excluded: frozenset[str] = frozenset()) -> None:
        self._known = known
        self._excluded = excluded

    def allowed(self, query: Query) -> Names:
        """Any."""
        return Names(words_of(()), True, self._excluded)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted, where each column that waits for it can have a type."""
        if name in self._excluded or name in query.own_names:
            return None
        noted = query._replace(name=name)
        waiting = _waiting(noted)
        fits = all(any(_may_be(noted, column, kind) for kind in self._known) for column in waiting)
        return noted if fits else None

    def suggested(self, query: Query) -> Iterable[str]:
        """What is awaited, else a letter."""
        waiting = sorted({one.qualifier for one in unbound(query) if one.qualifier is not None})
        return [name for name in (*waiting, *LETTERS) if self.after(query, name) is not None][:1]


class _Column:
    """The name of a column."""

    label = "a name for the column"
    price = 1

    def __init__(self, known: tuple[str, ...]) -> None:
        self._known = known

    def allowed(self, query: Query) -> Names:
        """Any."""
        return Names(words_of(()), True)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the column, whose type is still to come."""
        assert query.relation is not None
        columns = query.relation.columns
        if any(name == listed for listed, _ in columns) or name in query.system.moments:
            return None
        if not any(_may_be(query, name, kind) for kind in self._known):
            return None
        return query._replace(relation=Relation((*columns, (name, ""))))

    def suggested(self, query: Query) -> Iterable[str]:
        """What waits, else a letter."""
        return [name for name in (*_missing(query), *LETTERS) if self.after(query, name) is not None][:1]


class _Type:
    """The name of its type."""

    label = "a type"

    def __init__(self, dialect: TypedDialect, *, array: bool = False) -> None:
        prefix = "_" if array else ""
        self._words = {word: prefix + name for word, name in dialect.type_words.items() if prefix + name in BIT}
        self.price = max(map(len, self._words))

    def allowed(self, query: Query) -> Names:
        """Those that the column may have."""
        return Names(words_of(word for word, name in self._words.items() if _typed(name)(query) is not None))

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the column whole."""
        return _typed(self._words[name])(query)

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest."""
        return sorted(self.allowed(query).words.members, key=lambda word: (len(word), word))[:1]
