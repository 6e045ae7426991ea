"""Functions whose result is rows as sources: generate_series(1, 12) AS m(n)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from guided.grammar.attributed.nodes import Action, Name, Names, Node, Sign, Spelled, choice, maybe, seq, words
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import EVERY, LETTERS
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed import clauses
from guided.grammar.sql.query.typed.arguments import arguments, end_call
from guided.grammar.sql.query.typed.calls import FunctionName
from guided.grammar.sql.query.typed.computed.contexts import begin, end
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.queries import MOST_DEPTH
from guided.grammar.sql.query.typed.relations import Relation
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.sourcing.column_lists import alias_with_columns, unlisted
from guided.grammar.sql.query.typed.sourcing.tables import with_source
from guided.grammar.sql.query.typed.types import ALL
from guided.grammar.sql.query.typed.undecided import stands_for

__all__ = ["rows", "rows_of_call"]

_SUGGESTED = 3
"""Functions that a text which ends soon tries."""
_MORE_ARGUMENTS = 12
"""Bytes of arguments behind the first, and of casts in them."""


def rows(dialect: TypedDialect, body: Node) -> Node:
    """A function as a source."""
    known = [name for name in dialect.system.row_sets if name not in dialect.system.row_columns]
    call = seq(
        Action(_may_compute), maybe(words("LATERAL")), Action(do.begin(ALL)),
        Name(_RowFunction(known), Spelled.WORD), Sign("("), Action(begin), arguments(body), Action(end_call), Sign(")"),
        Action(_end_rows),
    )  # fmt: skip
    named = choice(seq(words("AS"), Name(_Alias())), Name(_Alias(dialect.keywords)))
    column = seq(Sign("("), Name(_Column()), Sign(")"))
    # By its own name, without another.
    plain = choice(seq(named, choice(Action(_unlisted), column)), Action(_unlisted))
    if not dialect.system.row_columns:
        return seq(call, plain)
    numbered = seq(words("WITH ORDINALITY"), Action(_numbered), alias_with_columns(dialect))
    several = seq(
        maybe(words("LATERAL")), Action(do.begin(ALL)),
        Name(_RowFunction(list(dialect.system.row_columns)), Spelled.WORD),
        Sign("("), arguments(body), Action(end_call), Sign(")"), Action(_end_several),
        choice(alias_with_columns(dialect), Action(partial(unlisted, joined=False))),
    )  # fmt: skip
    return choice(seq(call, choice(plain, numbered)), several)


def rows_of_call(dialect: TypedDialect, body: Node) -> Node:
    """A function whose rows are those of the result, as a column of it."""
    name = Name(FunctionName(dialect.selected_rows, "scalar"), Spelled.WORD)
    end = Action(_of_rows) if dialect.system.aliases else seq()
    return seq(Action(do.untraced), name, Sign("("), arguments(body), Action(end_call), Sign(")"), end)


def _of_rows(query: Query) -> Query:
    """Behind such a call, of whose column no condition knows the name."""
    return query._replace(tainted="volatile" if query.tainted else "rows")


def _may_compute(query: Query) -> Query | None:
    """Where a query may follow that its arguments may need (`typed.computed`)."""
    return None if query.system.computable and query.depth >= MOST_DEPTH else query


class _RowFunction(FunctionName):
    """A function of which a text that ends soon has one: behind LATERAL nothing else may stand."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(
            names, "scalar", shortest=tuple(sorted(names, key=lambda name: (len(name), name))[:_SUGGESTED])
        )
        self.price += _MORE_ARGUMENTS


def _end_rows(query: Query) -> Query | None:
    """Behind the call: a relation of one column."""
    ended = do.end(query)
    ended = ended and end(ended)
    if ended is None:
        return None
    # Elsewhere the function gives a list.
    name = ended.label[0]
    kind = ended.value.removeprefix("_") if name in ended.system.scalars else ended.value
    return ended._replace(relation=Relation(((None, kind),)), name=name)


def _numbered(query: Query) -> Query:
    """Behind WITH ORDINALITY: a relation of two columns, the first of which only a list names."""
    assert query.relation is not None
    return query._replace(relation=Relation((*query.relation.columns, ("ordinality", "int8"))), name="")


def _end_several(query: Query) -> Query | None:
    """Behind a call that gives several columns, or one that has a name of its own."""
    ended = do.end(query)
    if ended is None:
        return None
    name = ended.label[0]
    columns = tuple((column, kind or ended.value) for column, kind in ended.system.row_columns[name])
    return ended._replace(relation=Relation(columns, is_value=len(columns) == 1), name=name)


def _named(query: Query, alias: str, column: str) -> Query | None:
    """The query with the rows as a source, None where names that wait do not agree with it."""
    assert query.relation is not None
    if column in query.system.undefinable:
        return None
    kind = query.relation.columns[0][1]
    if not clauses.admits(query, column, kind, joined=False) or not _fits(query, alias, kind, column):
        return None
    return with_source(query._replace(relation=Relation(((column, kind),))), alias)


def _fits(query: Query, alias: str, kind: str, column: str | None) -> bool:
    """Has a source of one column all that waits for it?"""
    waiting = [pending for pending in query.pending if pending.qualifier == alias and pending.column != EVERY]
    columns = {pending.column for pending in waiting}
    return (
        alias not in query.own_names
        and not clauses.is_emptied(query, alias, columns)
        and columns <= ({column} if column is not None else columns)
        and len(columns) <= 1
        and all(stands_for(query.system, pending.type, kind) for pending in waiting)
        and (not columns or clauses.is_sortable(kind))
    )


def _unlisted(query: Query) -> Query | None:
    """Without a list of columns the one has the name of the source."""
    return _named(query, query.name, query.name)


class _Alias:
    """The name of the rows."""

    label = "an alias"
    price = 1

    def __init__(self, excluded: frozenset[str] = frozenset()) -> None:
        self.excluded = excluded

    def allowed(self, query: Query) -> Names:
        """Any."""
        return Names(words_of(()), True)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted, if some column would do."""
        assert query.relation is not None
        fits = name not in self.excluded and _fits(query, name, query.relation.columns[0][1], None)
        noted = query._replace(name=name)
        return noted if fits and _column_names(noted) else None

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter that is not taken."""
        return [letter for letter in LETTERS if self.after(query, letter) is not None]


def _column_names(query: Query) -> list[str]:
    """Names that the column may have."""
    waiting = {pending.column for pending in query.pending if pending.qualifier == query.name} - {EVERY}
    return [name for name in (sorted(waiting) or LETTERS) if _named(query, query.name, name) is not None]


class _Column:
    """The name of their column."""

    label = "a name for the column"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Any."""
        return Names(words_of(()), True)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the rows as a source."""
        return _named(query, query.name, name)

    def suggested(self, query: Query) -> Iterable[str]:
        """One that will do."""
        return _column_names(query)[:1]
