"""OVER and WINDOW: windows, named or not, and their frames."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Name, Node, Spelled, Star, choice, listed, maybe, seq, words
from guided.grammar.sql.query import windows as do
from guided.grammar.sql.query.select.parts import Parts

__all__ = ["over", "windows"]


def over(parts: Parts) -> Node:
    """OVER and its window."""
    inline = seq(Action(do.begin_window), parts.open, _window(parts), Action(do.end_window), parts.close)
    return seq(Action(do.may_be_window), words("OVER"), choice(inline, Name(do.WindowName(), Spelled.WORD)))


def windows(parts: Parts) -> Node:
    """The clause WINDOW, or nothing where no window waits for it."""
    window = seq(
        # SQLite tells windows by their names as they are written, quotes and all.
        Name(do.NewWindow(), Spelled.WORD),
        words("AS"),
        Action(do.begin_window),
        parts.open,
        _window(parts),
        Action(do.end_window),
        parts.close,
        Action(do.define_window),
    )
    clause = seq(Action(do.begin_windows), words("WINDOW"), window, Star(seq(parts.comma, window), do.wants_window))
    return seq(maybe(clause), Action(do.end_windows))


def _window(parts: Parts) -> Node:
    """What stands in the brackets of a window."""
    direction = maybe(choice(words("ASC"), words("DESC")))
    nulls = maybe(words("NULLS"), choice(words("FIRST"), words("LAST")))
    term = seq(parts.expression, direction, nulls)
    base = Name(do.WindowName(parts.dialect.keywords, extends=True), Spelled.WORD)
    counted = _frame(parts, choice(words("ROWS"), words("GROUPS")))
    unmeasured = maybe(Action(do.frame_window), choice(counted, _frame_without_offset()))
    measured = seq(Action(do.frame_window), _frame(parts, words("RANGE")))
    # RANGE with an offset wants one term to measure it by.
    ordered = seq(
        Action(do.order_window),
        words("ORDER BY"),
        term,
        choice(measured, unmeasured, seq(parts.comma, listed(term, parts.comma), unmeasured)),
    )
    partition = seq(words("PARTITION BY"), listed(parts.expression, parts.comma))
    return seq(choice(seq(), base, partition), choice(ordered, unmeasured))


def _frame(parts: Parts, unit: Node) -> Node:
    """A frame whose ends may be offsets; SQLite wants its beginning before its end."""
    before, after = seq(parts.whole, words("PRECEDING")), seq(parts.whole, words("FOLLOWING"))
    first, last, here = words("UNBOUNDED PRECEDING"), words("UNBOUNDED FOLLOWING"), words("CURRENT ROW")
    between = choice(
        seq(first, words("AND"), choice(before, here, after, last)),
        seq(before, words("AND"), choice(before, here, after, last)),
        seq(here, words("AND"), choice(here, after, last)),
        seq(after, words("AND"), choice(after, last)),
    )
    return seq(unit, choice(first, here, before, seq(words("BETWEEN"), between)), _exclusion())


def _frame_without_offset() -> Node:
    """A frame of RANGE where nothing measures an offset."""
    first, last, here = words("UNBOUNDED PRECEDING"), words("UNBOUNDED FOLLOWING"), words("CURRENT ROW")
    between = choice(
        seq(first, words("AND"), choice(here, last)),
        seq(here, words("AND"), choice(here, last)),
    )
    return seq(words("RANGE"), choice(first, here, seq(words("BETWEEN"), between)), _exclusion())


def _exclusion() -> Node:
    what = choice(words("NO OTHERS"), words("CURRENT ROW"), words("GROUP"), words("TIES"))
    return maybe(words("EXCLUDE"), what)
