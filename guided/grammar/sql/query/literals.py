"""The literals of queries."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.lexis import Lexis
from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import Words, numbers_between, words_of
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.operands import read_atom
from guided.grammar.sql.query.relations import ROW_NAMES
from guided.grammar.sql.query.scope import Clause, Pending, Query, Taint, has_alias, has_star, is_full, is_local, refer

__all__ = [
    "AnyString",
    "AnyText",
    "HeldString",
    "HeldText",
    "Number",
    "OneCharacter",
    "QuotedString",
    "Size",
    "WholeNumber",
]


class Number:
    """A number; alone in a term of GROUP BY or ORDER BY the position of a column."""

    label = "a number"
    shortest = "1"

    def allowed(self, query: Query) -> Words | None:
        """Positions, or any."""
        if not query.alone:
            return None
        if query.clause is Clause.COMPOUND_ORDER:
            return words_of(str(place + 1) for place in range(len(query.result or ())))
        if has_star(query):
            return words_of(
                str(place + 1) for place in range(len(query.columns) if query.clause is Clause.ORDER else 0)
            )
        late = query.clause is Clause.ORDER
        return words_of(
            str(place + 1) for place, output in enumerate(query.outputs) if late or output.taint is Taint.NONE
        )

    def after(self, query: Query) -> Query:
        """The query behind it."""
        return read_atom(query)


class WholeNumber:
    """A whole number that is no value, as in LIMIT; any number that has no fraction is short enough."""

    label = "a whole number"
    shortest = "1"

    _SOME = numbers_between(0, 9_999)

    def allowed(self, query: Query) -> Words | None:
        """Numbers below ten thousand."""
        return self._SOME

    def after(self, query: Query) -> Query:
        """The query as it was."""
        return query


class AnyString:
    """A string."""

    label = "a string"
    shortest = "''"

    def allowed(self, query: Query) -> Words | None:
        """The values of the column that it is compared with, or any."""
        return query.held

    def after(self, query: Query) -> Query:
        """The query behind it."""
        return read_atom(query)


class Size:
    """A whole number between two, as of digits."""

    label = "a size"

    def __init__(self, low: int, high: int) -> None:
        self.shortest = str(low)
        self._some = numbers_between(low, high)

    def allowed(self, query: Query) -> Words | None:
        """Those between."""
        return self._some

    def after(self, query: Query) -> Query:
        """The query as it was."""
        return query


class OneCharacter:
    """A string of one character, as behind ESCAPE."""

    label = "a character in quotes"
    shortest = "'!'"

    _SOME = words_of(chr(code) for code in range(33, 127) if chr(code) not in "'\\")

    def allowed(self, query: Query) -> Words | None:
        """Those of ASCII that stand for themselves in a string."""
        return self._SOME

    def after(self, query: Query) -> Query:
        """The query as it was."""
        return query


class AnyText:
    """A string in the quotes that other engines have for names."""

    label = "a string"
    price = 2

    def allowed(self, query: Query) -> Names:
        """Any, where none is held to values."""
        return Names(words_of(()), query.held is None)

    def after(self, query: Query, name: str) -> Query:
        """The query behind it."""
        return read_atom(query)

    def suggested(self, query: Query) -> tuple[str, ...]:
        """None: a number is shorter."""
        return ()


class HeldText(AnyText):
    """A value in such quotes."""

    label = "a value of the column"

    def allowed(self, query: Query) -> Names:
        """What is held, or nothing: any other string is an `AnyText`."""
        return Names(query.held if query.held is not None else words_of(()))


class QuotedString:
    """A string in the quotes of names, as SQLite reads what is no column; `BareColumn` has those that are."""

    label = "a string"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Any, where one more name may wait for FROM, and none is held to values."""
        waits = not query.bound and query.clause is Clause.SELECT
        may_wait = not (waits and (limits.is_leaf(query) or is_full(query, None)))
        return Names(words_of(()), may_wait and query.held is None, ROW_NAMES)

    def after(self, query: Query, name: str) -> Query | None:
        """The query behind it; a FROM that comes later must not make it an ambiguous column.

        Alone it is a column of the result, which goes by its text.
        """
        if name in ROW_NAMES or has_alias(query, name):
            return None
        changed = refer(query, Pending(None, name, is_local(query), True))
        return None if changed is None else read_atom(changed, name or None)

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a number is shorter."""
        return ()


class HeldString(QuotedString):
    """A value in the quotes of names."""

    label = "a value of the column"

    def __init__(self, lexis: Lexis) -> None:
        self._lexis = lexis

    def allowed(self, query: Query) -> Names:
        """What is held, or nothing: any other string is a `QuotedString`."""
        return Names(query.held if query.held is not None else words_of(()))

    def after(self, query: Query, name: str) -> Query | None:
        """As behind any other."""
        return super().after(query, self._lexis.folded(name, False))

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a number is shorter."""
        return ()
