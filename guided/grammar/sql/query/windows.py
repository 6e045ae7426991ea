"""Named windows: used before the clause WINDOW defines them, as columns are before FROM."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.relations import LETTERS
from guided.grammar.sql.query.scope import (
    Call,
    CallKind,
    Clause,
    Item,
    Query,
    Taint,
    Window,
    WindowNeed,
    WindowUse,
    has_windows,
)

__all__ = [
    "NewWindow", "WindowName", "begin_window", "begin_windows", "define_window", "end_window", "end_windows",
    "frame_window", "may_be_window", "order_window", "wants_window",
]  # fmt: skip


def may_be_window(query: Query) -> Query | None:
    """OVER, where windows may be."""
    if not has_windows(query):
        return None
    if any(call.kind is not CallKind.SCALAR for call in query.calls) or not limits.window_fits(query):
        return None
    return query._replace(taint=Taint.WINDOW) if query.clause is Clause.SELECT else query


def begin_window(query: Query) -> Query | None:
    """The bracket of a window: no windows within."""
    window = query.window if query.clause is Clause.WINDOW else Window()
    opened = limits.window_opened(query)
    return None if opened is None else opened._replace(calls=(*query.calls, Call(CallKind.WINDOW, 0, 0)), window=window)


def end_window(query: Query) -> Query:
    """Before the bracket that closes it."""
    window = query.window if query.clause is Clause.WINDOW else None
    return limits.closed(query)._replace(calls=query.calls[:-1], window=window)


def order_window(query: Query) -> Query | None:
    """Behind ORDER BY, which one of both may have: the window or the one that it extends."""
    window = query.window
    assert window is not None
    if window.ordered or WindowUse(window.name, WindowNeed.UNORDERED) in query.uses:
        return None
    if window.base and _defined(query, window.base) is None:
        query = query._replace(uses=query.uses | {WindowUse(window.base, WindowNeed.UNORDERED)})
    return query._replace(window=window._replace(ordered=True))


def frame_window(query: Query) -> Query | None:
    """A frame, which no window has that others extend."""
    window = query.window
    assert window is not None
    if any(use.name == window.name and use.need is not WindowNeed.ANY for use in query.uses):
        return None
    return query._replace(window=window._replace(framed=True))


def _defined(query: Query, name: str) -> Window | None:
    return next((window for window in query.defined if window.name == name), None)


class WindowName:
    """A window by its name: behind OVER, or at the beginning of one that ``extends`` it."""

    label = "a window"

    def __init__(self, excluded: frozenset[str] = frozenset(), *, extends: bool = False, price: int = 1) -> None:
        self.price = price
        self.excluded = excluded
        self.extends = extends

    def allowed(self, query: Query) -> Names:
        """Those that are defined; before that any."""
        names = {window.name for window in query.defined if not (self.extends and window.framed)}
        if query.clause is not Clause.SELECT:
            return Names(words_of(names - self.excluded))
        return Names(words_of(use.name for use in query.uses), True, self.excluded)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the use noted."""
        if name in self.excluded:
            return None
        if query.clause is Clause.SELECT:
            need = WindowNeed.UNFRAMED if self.extends else WindowNeed.ANY
            query = query._replace(uses=query.uses | {WindowUse(name, need)})
        if not self.extends:
            return query
        assert query.window is not None
        base = _defined(query, name)
        ordered = base is not None and base.ordered
        if ordered and WindowUse(query.window.name, WindowNeed.UNORDERED) in query.uses:
            return None
        return query._replace(window=query.window._replace(base=name, ordered=ordered))

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter behind OVER; brackets are as short."""
        return ()


class NewWindow:
    """The name of a window that WINDOW defines."""

    label = "a name for the window"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Those that are used, and any other."""
        return Names(words_of(use.name for use in query.uses), True)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the window begun."""
        return None if _defined(query, name) else query._replace(window=Window(name))

    def suggested(self, query: Query) -> Iterable[str]:
        """What waits, else a letter."""
        return sorted(use.name for use in query.uses)[:1] or LETTERS


def wants_window(query: Query) -> bool:
    """Does some window wait to be defined?"""
    return bool(query.uses)


def begin_windows(query: Query) -> Query | None:
    """WINDOW."""
    if not limits.window_fits(query):
        return None
    return limits.begun(query)._replace(clause=Clause.WINDOW, item=Item.COMPLEX)


def define_window(query: Query) -> Query:
    """Behind the bracket of a window with a name."""
    window = query.window
    assert window is not None
    uses = frozenset(use for use in query.uses if use.name != window.name)
    return query._replace(uses=uses, defined=(*query.defined, window), window=None)


def end_windows(query: Query) -> Query | None:
    """Behind the last clause that may define windows: none waits."""
    return None if query.uses else query
