"""Columns in a query whose types are followed, with and without a qualifier, as each type that it may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import islice
from typing import Protocol

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import Words, words_of
from guided.grammar.sql.query.relations import EVERY, LETTERS
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.columns.awaited import MOST_TRIED, guesses, read_as, settled_before
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.columns.read import ReadColumns, Readings, columns_of
from guided.grammar.sql.query.typed.columns.unsorted import nameable_groups, unsorted, within_group
from guided.grammar.sql.query.typed.computed.contexts import varied
from guided.grammar.sql.query.typed.frames import UNKNOWN, parameters
from guided.grammar.sql.query.typed.queries import MOST_DEPTH
from guided.grammar.sql.query.typed.relations import Relation, Source, bare_columns, have_column, is_named
from guided.grammar.sql.query.typed.scope import (
    Clause,
    Pending,
    Query,
    depends,
    is_open,
    queries_in_scope,
    refer,
)
from guided.grammar.sql.query.typed.types import BIT, NESTED, OTHER, SORTABLE, settled

__all__ = ["BareColumn", "GroupedColumn", "QualifiedColumn", "Qualifier", "is_leaf"]

_NONE = Names(words_of(()))


def is_leaf(query: Query) -> bool:
    """Is it so deep that no source could follow in which names are defined?"""
    return query.depth > MOST_DEPTH and is_open(query)


@lru_cache(maxsize=8192)
def _visible(scopes: tuple[tuple[Source, ...], ...]) -> Words:
    """The columns that need no qualifier in the first of some scopes."""
    found: set[str] = set()
    hidden: set[str] = set()
    for sources in scopes:
        bare = bare_columns(sources)
        found |= bare.unique.keys() - hidden
        hidden |= bare.unique.keys() | bare.ambiguous
    return words_of(found)


def _aliases(query: Query) -> dict[str, str]:
    """The names of the result that conditions know, with their types; no columns of any source have these names."""
    clauses = (Clause.WHERE, Clause.HAVING, Clause.QUALIFY)
    if not query.system.aliases or query.clause not in clauses or not query.bound or query.calls:
        return {}
    barred = {
        "aggregate": (Clause.WHERE,),
        "window": (Clause.WHERE, Clause.HAVING),
        "both": (Clause.WHERE, Clause.HAVING),
        "rows": clauses,
        "volatile": clauses,
    }
    names = query.given_names
    found = {}
    for place, output in enumerate(query.outputs):
        name = names[place]
        if name is None or names.count(name) > 1 or query.clause in barred.get(output.tainted, ()):
            continue
        grouped = query.is_grouped and query.clause is not Clause.WHERE
        if grouped and place not in query.grouped_outputs and not all(depends(query, one) for one in output.loose):
            continue
        scopes = [bare_columns(at.sources) for at in queries_in_scope(query)]
        if not any(name in bare.unique or name in bare.ambiguous for bare in scopes):
            found[name] = settled(query.system, output.type)
    return found


def _wants_groups(query: Query) -> bool:
    """Are there rows in scope, here or around, that are grouped, so that columns of theirs must be groups?"""
    return any(at.bound and at.is_grouped for at in queries_in_scope(query))


def _readings(catalog: Catalog, query: Query) -> Readings:
    """What types are read as, if SELECT may use names that only a sub-query in FROM will define."""
    return read_as(query) if catalog.forward else frozenset()


def _but_parameters(query: Query, names: Names) -> Names:
    """Names but those of the parameters of lambdas around, which hide them."""
    hidden = parameters(query.around).keys()
    if not hidden:
        return names
    return Names(words_of(names.words.members - hidden), names.free, names.apart | hidden)


class BareColumn:
    """A column without a qualifier; ``variant`` 0 is one alone whose type does not matter, others its types in turn."""

    label = "a column"
    price = 1

    def __init__(self, catalog: Catalog, variant: int) -> None:
        self.catalog = catalog
        self.variant = variant

    def allowed(self, query: Query) -> Names:
        """Those that are in scope; before FROM all that a FROM can bind."""
        return _but_parameters(query, self._allowed(varied(query), _aliases(query)))

    def _allowed(self, query: Query, aliases: Mapping[str, str]) -> Names:
        if not do.open_column(query) or is_leaf(query):
            return _NONE
        if not self.variant and not (is_open(query) and query.top.plain and not query.top.waits):
            return _NONE
        held = not do.open_operand(query)
        if is_open(query) and not query.named_tables and (query.outside is None or query.is_local) and not held:
            free = self.catalog.forward and self.variant <= MOST_TRIED
            return Names(self.catalog.by_variant[self.variant], free, self.catalog.names)
        scopes = list(queries_in_scope(query))
        if not any(map(is_open, scopes)):
            return self._bound(query, _visible(tuple([at.sources for at in scopes])), aliases)
        found = self._awaited(query, scopes)
        if self.variant == 1:
            found |= aliases.keys()
        free = self.catalog.forward and self.variant <= MOST_TRIED
        return Names(words_of(self._followed(query, found)), free and not held, self.catalog.names)

    def _awaited(self, query: Query, scopes: Sequence[Query]) -> frozenset[str]:
        """Those with so many types where a FROM is still to come: most are read as all of their name are."""
        every = [self._columns(query, at) for at in scopes if is_open(at)]
        first = every[0]
        # What is in other scopes as well, or was used before, is looked at one by one.
        apart = set(first.untyped).union(*(one.types for one in every if one is not first))
        for at in scopes:
            if is_open(at):
                apart.update(pending.column for pending in at.pending if pending.qualifier is None)
            else:
                bare = bare_columns(at.sources)
                apart.update(bare.unique, bare.ambiguous)
        found: set[str] = set()
        hidden: set[str] = set()
        for at in scopes:
            if is_open(at):
                found |= (apart & self._columns(query, at).types.keys()) - hidden
            else:
                bare = bare_columns(at.sources)
                found |= bare.unique.keys() - hidden
                hidden |= bare.unique.keys() | bare.ambiguous
        if self.variant:
            found = {name for name in found if len(self._types(query, name)) >= self.variant}
        return (first.of_count(self.variant).members - apart) | found

    def _columns(self, query: Query, at: Query) -> ReadColumns:
        """The columns that a FROM to come may bind, as they can be used."""
        return self.catalog.columns(_readings(self.catalog, query), at.named_tables)

    def _bound(self, query: Query, visible: Words, aliases: Mapping[str, str]) -> Names:
        """Those that are in scope where no FROM is still to come: each has one type."""
        if self.variant != 1:
            return Names(words_of(()), False, self.catalog.names)
        if not aliases and not _wants_groups(query) and do.open_operand(query):
            return Names(visible, False, self.catalog.names)
        return Names(words_of(self._followed(query, {*visible.members, *aliases})), False, self.catalog.names)

    def _followed(self, query: Query, names: Set[str]) -> Set[str]:
        """Those that may go on.

        Where rows are grouped, a column must be a group, or an aggregate must hold it.  Where no cast leads to what is
        wanted, it must be of the very type.
        """
        if not _wants_groups(query) and do.open_operand(query):
            return names
        return {name for name in names if self.after(query, name) is not None}

    def _types(self, query: Query, name: str) -> tuple[str, ...]:
        """The types of a name, found once for all variants."""
        known = self.catalog.recent.of(query)
        found = known.get((None, name))
        if found is None:
            found = known[None, name] = self._find_types(query, name)
        return found

    def _find_types(self, query: Query, name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for at in queries_in_scope(query):
            if is_open(at):
                found.update(dict.fromkeys(self._columns(query, at).types.get(name, ())))
            else:
                bare = bare_columns(at.sources)
                if name in bare.ambiguous:
                    break
                if name in bare.unique:
                    found[bare.unique[name][1]] = None
                    break
        settled = settled_before(query, None, name, tuple(found))
        if settled:
            return settled
        if not found and self.catalog.forward and any(map(is_open, queries_in_scope(query))):
            return guesses(self.catalog.types, query)
        return tuple(found)

    def after(self, query: Query, name: str) -> Query | None:
        """The query in which it was used."""
        if self.catalog.is_never(name) or name in parameters(query.around):
            return None
        if not self.variant:
            return _used(varied(query), None, name, UNKNOWN)
        alias = _aliases(query).get(name) if self.variant == 1 else None
        if alias is not None:
            return do.read(do.untraced(query), alias)
        query = varied(query)
        types = self._types(query, name)
        return _used(query, None, name, types[self.variant - 1]) if len(types) >= self.variant else None

    def suggested(self, query: Query) -> Iterable[str]:
        """Columns that must be grouped, or come next of a group; else none, a literal is shorter."""
        if query.followed is not None:
            bare = bare_columns(query.sources).unique
            return [name for name, (where, _) in bare.items() if f"{where}.{name}" in do.next_parts(query)]
        if query.clause is not Clause.GROUP or query.around:
            return ()
        bare = bare_columns(query.sources).unique
        return sorted(name for where, name in nameable_groups(query) if bare.get(name, ("-",))[0] == where)


def _used(query: Query, qualifier: str | None, name: str, kind: str) -> Query | None:
    """The query behind a column of a type."""
    in_group = is_open(query) and query.aggregated and kind != UNKNOWN and not SORTABLE & BIT[kind]
    held = within_group(query) if in_group and not query.is_local else query
    if held is None:
        return None
    changed = refer(held, Pending(qualifier, name, "" if kind == UNKNOWN else kind, query.is_local), in_group=in_group)
    if changed is None:
        return None
    top = changed.top
    column = (qualifier, name)
    if changed.bound and qualifier is None and name in bare_columns(changed.sources).unique:
        column = (bare_columns(changed.sources).unique[name][0], name)
    found = do.read(varied(changed)._replace(name=""), kind, (name, 2))
    if found is None:
        return None
    # One that stands alone is read without its type: here something must follow that needs it.
    found = do.hear(found, f"{column[0] or ''}.{name}")
    if found is None:
        return None
    guessed = kind != UNKNOWN and top.plain and not top.waits and is_open(query) and not query.around
    return found.with_top(found.top._replace(column=None if top.waits else column, bound=guessed, indexed=True))


class _Behind(Protocol):
    """Columns behind a dot: with a number those of a type, None for all."""

    @property
    def variant(self) -> int | None: ...

    def allowed(self, query: Query) -> Names: ...


class Qualifier:
    """The name of a source before a dot, and before a ``column`` of it if there must be one."""

    label = "a table or alias"
    price = 1

    def __init__(self, catalog: Catalog, column: _Behind | None = None) -> None:
        self.catalog = catalog
        self.column = column

    def allowed(self, query: Query) -> Names:
        """The sources in scope; before FROM tables and names that FROM can introduce."""
        return _but_parameters(query, self._allowed(query))

    def _allowed(self, query: Query) -> Names:
        if is_leaf(query):
            return _NONE
        held = self.column is not None and not do.open_operand(query)
        alone = is_open(query) and not query.named_tables and query.outside is None and query.followed is None
        alone = alone and not held
        if alone and (self.column is None or self.column.variant is None):
            # Each table stands for itself, so it need not be tried whether it has a column.
            return Names(self.catalog.tables if self.column is None else self.catalog.with_columns, True)
        found: set[str] = set()
        free = False
        for at in queries_in_scope(query):
            if is_open(at):
                found |= self.catalog.tables.members
                found.update(name for name, _ in at.named_tables)
                free = True
            else:
                found.update(source.name for source in at.sources if is_named(source.name))
        return Names(words_of(name for name in found if self.after(query, name) is not None), free and not held)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the qualifier noted; None where it has no column that can be named."""
        if do.begins(name + ".")(query) is None or name in parameters(query.around) or _is_hidden(query, name):
            return None
        noted = query._replace(name=name)
        if self.column is None:
            return noted
        columns = self.column.allowed(noted)
        return noted if columns.free or len(columns.words) else None

    def suggested(self, query: Query) -> Iterable[str]:
        """Sources whose columns must be grouped, or come next of a group."""
        if query.followed is not None:
            return [
                one.name
                for one in query.sources
                if is_named(one.name) and one.name + "." in {p[: len(one.name) + 1] for p in do.next_parts(query)}
            ]
        if query.clause is not Clause.GROUP or query.around:
            return ()
        return sorted({where for where, _ in nameable_groups(query) if where and is_named(where)})


def _is_hidden(query: Query, name: str) -> bool:
    """Is it the name of a column, which DuckDB looks for before the sources of a query around?"""
    if not query.system.lists:
        return False
    for at in queries_in_scope(query):
        if is_open(at) or name in at.own_names:
            return False
        if have_column(at.sources, name):
            # In conditions it goes on to the sources unless the column has fields.
            _, kind = bare_columns(at.sources).unique.get(name, ("", OTHER))
            return at.clause not in (Clause.WHERE, Clause.ON) or kind == OTHER or kind in NESTED
    return False


class QualifiedColumn:
    """A column behind a qualifier and a dot; variants as of `BareColumn`, None for all of them."""

    label = "a column of that table"

    def __init__(self, catalog: Catalog, variant: int | None) -> None:
        self.catalog = catalog
        self.variant = variant
        self.price = catalog.longest

    def allowed(self, query: Query) -> Names:
        """The columns of the source; of one that FROM is to introduce those of relations that have all used so far."""
        if self.variant == 0 and not (is_open(query) and query.top.plain and not query.top.waits):
            return _NONE
        found, is_later = self._known(query)
        if found is None:
            return _NONE
        free = is_later and self.catalog.forward and query.name not in self._named(query)
        if self.variant:
            found = {name: types for name, types in found.items() if len(types) >= self.variant}
            free = free and self.variant <= MOST_TRIED
        place = slice(None) if self.variant is None else slice(self.variant - 1, self.variant)
        if query.aggregated and is_open(query) and (query.top.waits or not query.top.plain):
            # What has no order may be used in what can be a group.
            found = {
                name: types
                for name, types in found.items()
                if any(SORTABLE & BIT[kind] or _used(query, query.name, name, kind) for kind in types[place])
            }
        if _wants_groups(query) or not do.open_operand(query):
            # Where no cast leads to what is wanted, a column must be of the very type.
            fits = (name for name in found if any(_used(query, query.name, name, kind) for kind in found[name][place]))
            return Names(words_of(fits), free and do.open_operand(query) is not None, self.catalog.names)
        return Names(words_of(found), free, self.catalog.names)

    def _named(self, query: Query) -> dict[str, Relation]:
        return {**self.catalog.relations, **dict(reversed(query.named_tables))}

    def _known(self, query: Query) -> tuple[Mapping[str, tuple[str, ...]] | None, bool]:
        """The columns of the source with their types, and whether it is still to come; found once for all variants."""
        known = self.catalog.recent.of(query)
        found = known.get(query.name)
        if found is None:
            found = known[query.name] = self._find_known(query)
        return found

    def _find_known(self, query: Query) -> tuple[Mapping[str, tuple[str, ...]] | None, bool]:
        for at in queries_in_scope(query):
            source = at.source(query.name)
            if source is not None:
                return {name: (kind,) for name, kind in source.relation.types.items()}, False
            if is_open(at):
                return self._later(at, query.name, _readings(self.catalog, query)).types, True
        return None, False

    def _later(self, query: Query, name: str, readings: Readings) -> ReadColumns:
        named = self._named(query)
        outside = query.outside
        while outside is not None:
            source = outside.source(name)
            if source is not None and not any(pending.qualifier == name for pending in query.pending):
                return columns_of(source.relation, readings)
            outside = outside.outside
        if name in named:
            return columns_of(named[name], readings)
        used = (one for one in query.pending if one.qualifier == name and one.column != EVERY)
        return self.catalog.columns_beside(
            readings, query.named_tables, frozenset((one.column, one.type) for one in used), query.system
        )

    def after(self, query: Query, name: str) -> Query | None:
        """The query in which it was used."""
        found, is_later = self._known(query)
        assert self.variant is not None and found is not None
        if self.catalog.is_never(name):
            return None
        if not self.variant:
            return _used(query, query.name, name, UNKNOWN)
        types = found.get(name, guesses(self.catalog.types, query) if is_later and self.catalog.forward else ())
        types = (settled_before(query, query.name, name, types) if is_later else ()) or types
        return _used(query, query.name, name, types[self.variant - 1]) if len(types) >= self.variant else None

    def suggested(self, query: Query) -> Iterable[str]:
        """Columns that must be grouped, else the shortest."""
        names = self.allowed(query)
        if query.followed is not None:
            return [name for name in names.words.members if f"{query.name}.{name}" in do.next_parts(query)]
        if query.clause is Clause.GROUP and not query.around:
            grouped = sorted(
                name for where, name in nameable_groups(query) if where == query.name and name in names.words
            )
            if grouped:
                return grouped
        shortest_first = sorted(names.words.members, key=lambda name: (len(name), name))
        short = [*islice((name for name in shortest_first if self.after(query, name) is not None), 4)]
        others = (name for name in LETTERS if names.free and self.after(query, name) is not None)
        return short or tuple(islice(others, 1))


class GroupedColumn(BareColumn):
    """A column in GROUPING."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog, 0)
        sorted_ = (name for name, types in catalog.types.items() if any(SORTABLE & BIT[kind] for kind in types))
        self._names = LETTERS if catalog.forward else sorted(sorted_, key=lambda name: (len(name), name))
        # Those that are used with a type without an order are passed over.
        last = self._names[0 if catalog.forward or not catalog.unsorted else -1] if self._names else ""
        self.price = len(last) + 2

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest."""
        barred = unsorted(query)
        return tuple(islice((name for name in self._names if (None, name) not in barred), 1))
