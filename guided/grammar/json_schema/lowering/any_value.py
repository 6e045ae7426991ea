"""The rules of any JSON value, object and array: they are the same in most schemas, and so lowered once for all."""

from __future__ import annotations

from functools import lru_cache

from guided.grammar.ir import (
    Body,
    Choice,
    Common,
    Mark,
    Member,
    Members,
    Reference,
    Repetition,
    Rule,
    Sequence,
    Terminal,
)
from guided.grammar.json_schema.layout import Layout, Order, Rank, Spelling
from guided.grammar.json_schema.lowering.terminals import (
    FALSE_TEXT,
    NULL_TEXT,
    TRUE_TEXT,
    any_scalar,
    other_key,
    punctuation,
)
from guided.grammar.json_schema.sets.shape import ANY, OF_TYPE, TRUE, Need
from guided.grammar.regular.expr import EPSILON, Expr
from guided.grammar.regular.texts import CONTENT

VALUE, UNDECLARED, OBJECT, ARRAY = (Reference(index) for index in range(1, 5))
"""A value; a colon and a value; an object; an array: where their rules stand in the grammars that have them."""

ANY_VALUES: dict[Need, Reference] = {
    TRUE: VALUE,
    **{OF_TYPE[dialect][name]: rule for dialect in OF_TYPE for name, rule in (("object", OBJECT), ("array", ARRAY))},
}
"""The rules of the needs that say so much."""


def any_value(layout: Layout) -> Common | None:
    """The four rules, for grammars in which no checker must know what is open; None for a layout that is seldom."""
    if layout.order is Order.ANY or layout.space is None:
        return None
    return _common(layout.spelling, layout.space, layout.around_colon)


@lru_cache(maxsize=4)
def _common(spelling: Spelling, space: Terminal, around_colon: tuple[Expr, Expr]) -> Common:
    around = space.expr
    colon, comma = punctuation(":", *around_colon), punctuation(",", EPSILON, around)
    extra = Member(other_key(CONTENT, spelling), UNDECLARED)
    object_: tuple[Body, ...] = (
        punctuation("{", EPSILON, around),
        Members((), (extra,), comma),
        punctuation("}", EPSILON, EPSILON),
    )
    array: tuple[Body, ...] = (
        punctuation("[", EPSILON, around),
        Repetition(Sequence((VALUE, space)), separator=comma),
        punctuation("]", EPSILON, EPSILON),
    )
    options: tuple[Body, ...] = (
        *any_scalar(spelling),
        Sequence(object_),
        Sequence(array),
        TRUE_TEXT,
        FALSE_TEXT,
        NULL_TEXT,
    )
    return Common(
        (
            Rule(f"{ANY}value", Choice(options)),
            Rule(f"{ANY}value", Sequence((colon, VALUE, space)), Mark.UNDECLARED),
            Rule(f"{ANY}object", Sequence(object_)),
            Rule(f"{ANY}array", Sequence(array)),
        ),
        (Rank.VALUE, Rank.INNER, Rank.VALUE, Rank.VALUE),
    )
