"""What follows ``*`` in DuckDB: columns that it does not stand for, values that stand for others, and other names."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Action, Name, Names, Node, Sign, choice, listed, maybe, seq, words
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.frames import Operand
from guided.grammar.sql.query.typed.relations import bare_columns
from guided.grammar.sql.query.typed.scope import Output, Pending, Query, is_open, refer
from guided.grammar.sql.query.typed.types import ALL, SORTABLE, settled

__all__ = ["but"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")


def but(catalog: Catalog, body: Node) -> Node:
    """EXCLUDE, REPLACE and RENAME, or nothing."""
    name = Name(_Excluded(catalog))
    exclude = seq(Action(_may_exclude), words("EXCLUDE"), choice(name, seq(_OPEN, listed(name, _COMMA), _CLOSE)))
    one = seq(Action(_begin), body, Action(_end), words("AS"), Name(_Replaced(catalog)))
    replace = seq(Action(_may_replace), words("REPLACE"), _OPEN, listed(one, _COMMA), _CLOSE)
    renamed = seq(Name(_Renamed(catalog)), words("AS"), Name(_NewName()))
    rename = seq(
        Action(_may_replace), words("RENAME"), choice(renamed, seq(_OPEN, listed(renamed, _COMMA), _CLOSE))
    )  # fmt: skip
    return seq(maybe(exclude), maybe(replace), maybe(rename))


def _may_exclude(query: Query) -> Query | None:
    """Behind ``*``, but where it stands for columns that are demanded."""
    return query if query.goals is None else None


def _may_replace(query: Query) -> Query | None:
    """Also where a column is awaited, whose type would be another."""
    return query if query.goals is None and query.awaiting is None else None


def _begin(query: Query) -> Query:
    """Before a value."""
    frame = Operand(query.system, SORTABLE if query.distinct else ALL)
    return query._replace(frame=frame, around=(), loose=frozenset(), tainted="", terms=frozenset(), trace=None,
                          asked=False, refers=False)  # fmt: skip


def _end(query: Query) -> Query | None:
    """Behind it: it waits for its name."""
    ended = do.end(query)
    if ended is None:
        return None
    star = ended.outputs[-1]
    kind = settled(ended.system, ended.value)
    value = Output(None, kind, None, None, ended.loose, ended.tainted, None, ended.terms, ended.asked, ended.refers)
    return ended._replace(
        outputs=(*ended.outputs[:-1], star._replace(replaced=(*star.replaced, value))),
        loose=frozenset(), tainted="", terms=frozenset(), column=None, name="",
    )  # fmt: skip


def _named(star: Output) -> frozenset[str]:
    """The columns for which ``*`` does not stand, or not as they are."""
    return star.excluded.union((one.name or "" for one in star.replaced), (old for old, _ in star.renamed))


class _Excluded:
    """A column that ``*`` does not stand for."""

    label = "a column"

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.price = catalog.longest

    def allowed(self, query: Query) -> Names:
        """Those in scope; before FROM any that a source may have."""
        if not is_open(query):
            where = query.outputs[-1].star
            source = query.source(where) if where else None
            found = set(bare_columns(query.sources).unique if source is None else source.relation.types)
            return Names(words_of(name for name in found if self.after(query, name) is not None))
        found = {*self._catalog.types, *(name for _, relation in query.named_tables for name in relation.types)}
        # Only what was named before may not stand here; a catalog has thousands of others.
        before = _named(query.outputs[-1]) | query.barred | {one.column for one in query.pending}
        found -= {name for name in found & before if self.after(query, name) is None}
        return Names(words_of(found), self._catalog.forward, self._catalog.names)

    def after(self, query: Query, name: str) -> Query | None:
        """The query in which FROM must have it."""
        star = query.outputs[-1]
        is_free = name not in _named(star) and not self._catalog.is_never(name)
        found = refer(query, Pending(star.star or None, name)) if is_free else None
        return found and found._replace(outputs=(*found.outputs[:-1], self._of(star, name)), loose=frozenset())

    def _of(self, star: Output, name: str) -> Output:
        return star._replace(excluded=star.excluded | {name})

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest."""
        names = self.allowed(query)
        short = sorted(names.words.members, key=lambda name: (len(name), name))
        return [name for name in short if self.after(query, name) is not None][:4] or ("a" if names.free else ())


class _Replaced(_Excluded):
    """A column for which a value stands."""

    def _of(self, star: Output, name: str) -> Output:
        *others, value = star.replaced
        return star._replace(replaced=(*others, value._replace(name=name)))


class _Renamed(_Excluded):
    """A column that gets another name."""

    def _of(self, star: Output, name: str) -> Output:
        return star._replace(renamed=(*star.renamed, (name, name)))


class _NewName:
    """The other name."""

    label = "a name for the column"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Any."""
        return Names(words_of(()), True)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted."""
        if name in query.system.undefinable or not name:
            return None
        star = query.outputs[-1]
        *others, (old, _) = star.renamed
        return query._replace(outputs=(*query.outputs[:-1], star._replace(renamed=(*others, (old, name)))))

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter."""
        return ("a",)
