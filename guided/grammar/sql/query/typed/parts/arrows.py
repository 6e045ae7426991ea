"""``json -> 'a' ->> 'b'`` in DuckDB, where the arrow binds more loosely than any operator.

So what stands before the first arrow is the expression so far, and behind a step nothing follows but another step: a
cast or an operator would belong to the step's key.
"""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Choice, Literal, LiteralForm, Node, Sign, Star, choice, maybe, seq
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.literals import PATTERNS, Size
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.types import BIT

__all__ = ["arrows"]

_JSON, _TEXT = "jsonb", "text"


def arrows() -> Node:
    """Steps into JSON behind an expression, or nothing."""
    step = choice(
        Literal(LiteralForm.STRING, _Key(), hears=True), Literal(LiteralForm.NUMBER, _Place(0, 999), hears=True)
    )
    json = seq(Sign("->"), step)
    text = seq(Sign("->>"), step, Action(_end_as(_TEXT)))

    def preferred(query: Query) -> int:
        return 0 if query.top.goal & BIT[_JSON] else 1

    return maybe(Action(_begin), json, Star(json), Choice((Action(_end_as(_JSON)), text), preferred))


def _begin(query: Query) -> Query | None:
    """Before the first arrow: the expression so far is JSON, and what may come of it is wanted."""
    top = query.top
    left = frames.reduced(top, 0)
    if left is None or left.type != _JSON or left.narrow or not left.goal & (BIT[_JSON] | BIT[_TEXT]):
        return None
    return query.with_top(frames.alone(left))


def _end_as(name: str) -> do.Change:
    """Behind the last step."""

    def change(query: Query) -> Query | None:
        top = query.top
        return query.with_top(top._replace(type=name)) if top.goal & BIT[name] else None

    return change


class _Key:
    """The name of a member, or a path."""

    label = "a path into JSON"
    shortest = "'a'"
    _values = Spellings(PATTERNS["'path"])

    def allowed(self, query: Query) -> Spellings:
        """The same everywhere."""
        return self._values

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query behind the step."""
        return do.hear(query, f"-> '{text}'")


class _Place(Size):
    """The number of an element."""

    label = "the number of an element"

    def after(self, query: Query, text: str = "") -> Query | None:
        """The query behind the step."""
        return do.hear(query, f"-> {text}")
