"""Windows: OVER and what stands in its brackets, and the windows that the clause WINDOW gives names.

A name is used before WINDOW defines it, as columns are before FROM: SELECT does not end before each has its definition.
"""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import (
    Action,
    Choice,
    Literal,
    LiteralForm,
    Name,
    Names,
    Node,
    Sign,
    Star,
    choice,
    listed,
    maybe,
    seq,
    words,
)
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import LETTERS
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.literals import Size, TypedText
from guided.grammar.sql.query.typed.scope import Clause, Query, Term
from guided.grammar.sql.query.typed.types import SORTABLE

__all__ = ["defined_windows", "directed", "ordering", "over"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")
_BEGINNINGS = frozenset(["partition", "range", "rows", "groups"])
"""Words with which a window may begin, and so not with the name of another."""
_MOMENTS = ("date", "timestamp", "timestamptz", "?stamp")


def ordering(expression: Node, begin: do.Change) -> Node:
    """Terms by which rows are ordered."""
    return listed(_term(expression, begin), _COMMA)


def _term(expression: Node, begin: do.Change) -> Node:
    return directed(seq(Action(begin), expression, Action(do.end)))


def _begin_term(query: Query) -> Query:
    """Before an expression by which the rows of a window are parted or ordered."""
    begun = do.begin(SORTABLE)(query)
    assert begun is not None
    if query.clause is not Clause.SELECT:
        return begun
    return begun._replace(around_term=query.loose, loose=frozenset(), trace=())


def _end_term(query: Query) -> Query | None:
    """Behind it."""
    ended = do.end(query)
    if ended is None or ended.around_term is None:
        return ended
    term = Term(ended.loose, ended.trace)
    return ended._replace(loose=ended.around_term, around_term=None, terms=ended.terms | {term}, trace=None)


def directed(term: Node) -> Node:
    """A term of an order and its direction."""
    direction = maybe(choice(words("ASC"), words("DESC")))
    return seq(term, direction, maybe(words("NULLS"), choice(words("FIRST"), words("LAST"))))


def over(dialect: TypedDialect, expression: Node) -> Node:
    """OVER and a window, or the name of one."""
    frame = _frames(dialect)[0]
    copies = (
        seq(Name(_Copied(ordered=False)), maybe(frame)),
        seq(Name(_Copied(ordered=True)), _ordered(dialect, expression)),
    )
    # A name would need its definition.
    bracket = seq(_OPEN, Choice((_window(dialect, expression), *copies), lambda query: 0), _CLOSE)
    return seq(words("OVER"), Choice((bracket, Name(_WindowName())), lambda query: 0))


def _between(unit: str, first: Node, last: Node) -> Node:
    return seq(words(unit), choice(first, seq(words("BETWEEN"), first, words("AND"), last)))


def _frames(dialect: TypedDialect) -> tuple[Node, Node, Node]:
    """What a frame may be: of any window, of one with an order, and of one whose order is by a date or time."""
    size = Literal(LiteralForm.NUMBER, Size(0, 9999))
    begin = choice(words("UNBOUNDED PRECEDING"), words("CURRENT ROW"))
    end = choice(words("UNBOUNDED FOLLOWING"), words("CURRENT ROW"))
    first = choice(begin, seq(size, words("PRECEDING")))
    last = choice(end, seq(size, words("FOLLOWING")))
    text = Literal(LiteralForm.STRING, _Span("'interval", "interval"), hears=True)
    units = choice(*map(words, dialect.span_units))
    span = seq(
        words("INTERVAL"), choice(text, *(seq(Literal(one, Size(0, 9999)), units) for one in dialect.span_forms))
    )
    if not dialect.system.lists:
        span = choice(span, text)
    spans = _between("RANGE", choice(begin, seq(span, words("PRECEDING"))), choice(end, seq(span, words("FOLLOWING"))))
    without = maybe(
        words("EXCLUDE"), choice(words("CURRENT ROW"), words("GROUP"), words("TIES"), words("NO OTHERS"))
    )  # fmt: skip
    frame = seq(choice(_between("ROWS", first, last), _between("RANGE", begin, end)), without)
    ordered = seq(
        choice(_between("ROWS", first, last), _between("RANGE", begin, end), _between("GROUPS", first, last)), without
    )
    return frame, ordered, seq(Action(_by_moment), spans, without)


def _window(dialect: TypedDialect, expression: Node) -> Node:
    return seq(_parted(expression), choice(seq(), _frames(dialect)[0], _ordered(dialect, expression)))


def _parted(expression: Node) -> Node:
    by = listed(seq(Action(_begin_term), expression, Action(_end_term)), _COMMA)
    return maybe(words("PARTITION BY"), by)


def _ordered(dialect: TypedDialect, expression: Node) -> Node:
    """An order and its frame."""
    _, frame, moving = _frames(dialect)
    term = directed(seq(Action(_begin_term), expression, Action(_end_term)))
    more = seq(_COMMA, term, Star(seq(_COMMA, term)), maybe(frame))
    return seq(words("ORDER BY"), term, choice(seq(), frame, moving, more))


def _by_moment(query: Query) -> Query | None:
    """Are the rows ordered by one date or time, from which a span leads to another?"""
    return query if query.value in _MOMENTS else None


class _Span(TypedText):
    """A span of time that is no operand, only the size of a frame."""

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query as it was."""
        return query


class _WindowName:
    """The name of a window behind OVER; before WINDOW any, behind it those that it has."""

    label = "a window"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Any, or those that are defined."""
        if query.clause is Clause.SELECT:
            return Names(words_of(query.windows), True)
        return Names(words_of(query.defined_windows))

    def after(self, query: Query, name: str) -> Query | None:
        """The query that demands it."""
        if query.clause is Clause.SELECT:
            return query._replace(windows=query.windows | {name})
        return query if name in query.defined_windows else None

    def suggested(self, query: Query) -> Iterable[str]:
        """One that is used already, else a letter."""
        if query.clause is Clause.SELECT:
            return sorted(query.windows, key=len)[:1] or LETTERS[:1]
        return sorted(query.defined_windows, key=len)


class _Copied:
    """The name of a window from which another goes on: one without a frame, and without an order if that has one."""

    label = "a window"
    price = 1

    def __init__(self, *, ordered: bool) -> None:
        self.ordered = ordered

    def allowed(self, query: Query) -> Names:
        """Any, where WINDOW is still to come."""
        return Names(words_of(query.windows - _BEGINNINGS), query.clause is Clause.SELECT, _BEGINNINGS)

    def after(self, query: Query, name: str) -> Query | None:
        """The query that demands it."""
        if query.clause is not Clause.SELECT or name in _BEGINNINGS:
            return None
        return query._replace(windows=query.windows | {name}, copied=query.copied | {(name, self.ordered)})

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter."""
        return LETTERS[:1]


class _NewWindow:
    """The name of a window that is being defined."""

    label = "a name for the window"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Any but those that are defined."""
        return Names(words_of(query.windows - query.defined_windows), True, query.defined_windows)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the window defined."""
        if name in query.defined_windows:
            return None
        return query._replace(defined_windows=query.defined_windows | {name}, name=name)

    def suggested(self, query: Query) -> Iterable[str]:
        """One that is used, else a letter."""
        missing = sorted(query.windows - query.defined_windows)
        return missing or [letter for letter in LETTERS if letter not in query.defined_windows]


def defined_windows(dialect: TypedDialect, expression: Node) -> Node:
    """The clause WINDOW, or nothing where no name waits for it."""
    term = directed(seq(Action(_begin_term), expression, Action(_end_term)))
    order = maybe(words("ORDER BY"), listed(term, _COMMA))
    window = choice(
        seq(Action(_defines()), _window(dialect, expression)),
        seq(Action(_defines(False)), _parted(expression), order),
        seq(Action(_defines(True)), _parted(expression)),
    )
    one = seq(Name(_NewWindow()), words("AS"), _OPEN, window, _CLOSE)
    clause = seq(words("WINDOW"), Action(_begin), one, Star(seq(_COMMA, one), _lacks), Action(_done))
    return Choice((Action(_done), clause), lambda query: 1 if _lacks(query) else 0)


def _defines(*ordered: bool) -> do.Change:
    """Before a definition, by whether others go on from the window at all, and the most that they add: an order?"""

    def change(query: Query) -> Query | None:
        demanded = [orders for name, orders in query.copied if name == query.name]
        return query._replace(name="") if [*ordered] == ([any(demanded)] if demanded else []) else None

    return change


def _begin(query: Query) -> Query:
    """Behind WINDOW."""
    return query._replace(clause=Clause.WINDOW)


def _lacks(query: Query) -> bool:
    """Does a name wait for its window?"""
    return bool(query.windows - query.defined_windows)


def _done(query: Query) -> Query | None:
    """Where all names have their windows."""
    return None if _lacks(query) else query
