"""Rows of sources as values, the only arguments of functions: json_agg(t)."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import EVERY, LETTERS
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.columns.references import Qualifier
from guided.grammar.sql.query.typed.relations import bare_columns
from guided.grammar.sql.query.typed.scope import Clause, Pending, Query, is_open

__all__ = ["RowName"]


class RowName:
    """A source whose rows are the values: json_agg(t).  No column may have its name, which would come first."""

    label = "a table or alias"
    price = 1

    def __init__(self, catalog: Catalog) -> None:
        self._qualifier = Qualifier(catalog)

    def allowed(self, query: Query) -> Names:
        """Sources of the query itself, where no column around has such a name."""
        if query.outside is not None or query.followed is not None or query.clause not in (Clause.SELECT, Clause.WHERE):
            return Names(words_of(()))
        if not query.is_local and (query.is_grouped or query.around_term is not None):
            return Names(words_of(()))
        found = self._qualifier.allowed(query)
        if is_open(query):
            named = {one.column for one in query.pending if one.column != EVERY}
        else:
            bare = bare_columns(query.sources)
            named = {*bare.unique, *bare.ambiguous}
        words = found.words if named.isdisjoint(found.words.members) else words_of(found.words.members - named)
        return Names(words, found.free, frozenset(named))

    def after(self, query: Query, name: str) -> Query | None:
        """The query behind it."""
        frame = query.frame
        found = query.with_top(frame._replace(types=("record",)))._replace(name="", trace=None)
        found = found._replace(ungrouped=found.ungrouped or not found.is_local)
        if not is_open(query):
            return found
        if any(one.column == name for one in query.pending):
            return None
        return found._replace(pending=query.pending | {Pending(name, EVERY, "", True)}, barred=query.barred | {name})

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter, which a sub-query goes by; else the shortest."""
        names = self.allowed(query)
        short = sorted(names.words.members, key=lambda name: (len(name), name))[:4]
        return (*LETTERS[:8], *short) if names.free else short
