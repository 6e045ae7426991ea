"""The literals of queries."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import Words, words_of
from guided.grammar.sql.query.kinds import read_atom
from guided.grammar.sql.query.scope import Clause, Query, Taint

__all__ = ["AnyString", "AnyText", "Number", "OneCharacter", "Size", "WholeNumber"]


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
        if any(output.star is not None for output in query.outputs):
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

    _SOME = words_of(str(number) for number in range(10_000))

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
        """Any."""
        return None

    def after(self, query: Query) -> Query:
        """The query behind it."""
        return read_atom(query)


class Size:
    """A whole number between two, as of digits."""

    label = "a size"

    def __init__(self, low: int, high: int) -> None:
        self.shortest = str(low)
        self._some = words_of(str(number) for number in range(low, high + 1))

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
        """Any."""
        return Names(words_of(()), True)

    def after(self, query: Query, name: str) -> Query:
        """The query behind it."""
        return read_atom(query)

    def suggested(self, query: Query) -> tuple[str, ...]:
        """None: a number is shorter."""
        return ()
