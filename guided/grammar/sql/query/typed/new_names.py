"""The names that a query gives: of columns, common table expressions, and columns of the result as terms."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import EVERY, LETTERS
from guided.grammar.sql.query.typed import clauses, queries
from guided.grammar.sql.query.typed.relations import Relation, bare_columns
from guided.grammar.sql.query.typed.scope import Clause, Query, wanting
from guided.grammar.sql.query.typed.undecided import narrower, stands_for

__all__ = ["AliasOfColumn", "CommonTable", "NewColumn", "OutputName", "wanted"]


class AliasOfColumn:
    """The name of a column of the result."""

    label = "a name for the column"
    price = 1

    def __init__(self, excluded: frozenset[str] = frozenset()) -> None:
        self.excluded = excluded

    def allowed(self, query: Query) -> Names:
        """Any."""
        return Names(words_of(()), True, self.excluded)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted."""
        barred = name in self.excluded or name in query.system.undefinable or not name
        return None if barred else query._replace(name=name, label=("", 0))

    def suggested(self, query: Query) -> Iterable[str]:
        """What the query around waits for, else a letter."""
        return [name for name, kind in wanted(query) if stands_for(query.system, kind, query.value)][:1] or LETTERS


def wanted(query: Query) -> list[tuple[str, str]]:
    """Names with their types that the query around waits for, which a source should define: all of one source."""
    around = query.awaiting
    if around is None:
        return []
    missing = wanting(around)
    if not missing:
        return []
    # Those with a qualifier first: what is defined for the others would be in the way of its source.
    qualifier = min((pending.qualifier for pending in missing), key=lambda name: (name is None, name or ""))
    taken = {output.name for output in query.outputs}
    found: dict[str, str] = {}
    for pending in missing:
        if pending.column == EVERY or pending.column in taken or pending.column in query.system.undefinable:
            continue
        if pending.qualifier == qualifier and not clauses.is_of_distinct_on(query, pending.column):
            found[pending.column] = narrower(pending.type, found.get(pending.column, ""))
    # What waits without a qualifier as well USING makes one of two columns, which must be of one type.
    shared = {pending.column for pending in around.pending if pending.qualifier is None}
    there = bare_columns(around.sources).unique
    for pending in around.pending:
        if pending.column in found and pending.column in shared:
            found[pending.column] = narrower(pending.type, found[pending.column])
    found.update((name, there[name][1]) for name in shared if name in found and name in there)
    if not found and qualifier is not None and clauses.is_emptied(around, qualifier, taken):
        # One that ``*`` does not exclude.
        return [(letter, "") for letter in LETTERS if letter not in taken | shared][:1]
    return sorted(found.items())


class CommonTable:
    """The name of a common table expression that is being defined."""

    label = "a name for the table"
    price = 1

    def __init__(self, barred: frozenset[str] = frozenset()) -> None:
        self.barred = barred | {"recursive"}

    def allowed(self, query: Query) -> Names:
        """Any that is not taken by another."""
        return Names(words_of(()), True, self.barred)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted."""
        taken = name in self.barred or any(name == known for known, _ in query.tables)
        return None if taken else query._replace(name=name)

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter."""
        return LETTERS


class NewColumn:
    """A column in the list behind the name of a common table expression."""

    label = "a name for the column"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Any that is not in the list."""
        return Names(words_of(()), True)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the column in its list."""
        listed = query.relation.columns if query.relation is not None else ()
        if any(name == known for known, _ in listed) or name in query.system.undefinable:
            return None
        return query._replace(relation=Relation((*listed, (name, "text"))))

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter."""
        return LETTERS


class OutputName:
    """The name of a column of the result as a whole term of GROUP BY or ORDER BY."""

    label = "a column of the result"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Those that only one column has."""
        return Names(words_of(self._places(query)))

    def _places(self, query: Query) -> dict[str, int]:
        # The parts of a set operation group by names of their own.
        if query.result is not None and query.clause is not Clause.GROUP:
            names: list[str | None] = [name for name, _ in queries.columns_of(query)]
        else:
            names = query.given_names
        found = {name: place for place, name in enumerate(names) if name is not None and names.count(name) == 1}
        if query.clause is Clause.GROUP:
            bare = bare_columns(query.sources)
            found = {
                name: place for name, place in found.items() if name not in bare.unique and name not in bare.ambiguous
            }
        return {name: place for name, place in found.items() if clauses.may_order(query, place)}

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the term."""
        return clauses.term_of(query, self._places(query)[name])

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest."""
        return sorted(self._places(query), key=len)[:1]
