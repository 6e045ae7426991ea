"""OVER: windows and their frames."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Node, choice, listed, maybe, seq, words
from guided.grammar.sql.query import changes as do
from guided.grammar.sql.query.select.parts import Parts

__all__ = ["over"]


def over(parts: Parts) -> Node:
    """OVER and its window."""
    return seq(words("OVER"), Action(do.may_be_window), parts.open, _window(parts), parts.close)


def _window(parts: Parts) -> Node:
    direction = maybe(choice(words("ASC"), words("DESC")))
    listing = listed(parts.expression, parts.comma)
    ordered = listed(seq(parts.expression, direction), parts.comma)
    bound = choice(words("UNBOUNDED PRECEDING"), words("CURRENT ROW"), seq(parts.whole, words("PRECEDING")))
    end = choice(words("UNBOUNDED FOLLOWING"), words("CURRENT ROW"), seq(parts.whole, words("FOLLOWING")))
    frame = seq(words("ROWS"), choice(bound, seq(words("BETWEEN"), bound, words("AND"), end)))
    return seq(
        Action(do.begin_window),
        maybe(words("PARTITION BY"), listing),
        maybe(words("ORDER BY"), ordered, maybe(frame)),
        Action(do.end_window),
    )
