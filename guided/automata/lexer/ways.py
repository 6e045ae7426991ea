"""One way in which a match may go on, and what is left of it behind each range of bytes.

What `guided.automata.lexer.ordered` makes lexer states of.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from guided.automata.lexer.backtracking import IMPOSSIBLE, Cell, Condition, Memory, decided
from guided.grammar.regular.expr import EMPTY, EPSILON, Expr

__all__ = ["Item", "Left", "Words", "advanced", "parts_of", "ways_on"]

Words: TypeAlias = "tuple[tuple[Expr, int], ...]"
"""What is left of each keyword that the match may still turn out to be, with its terminal; the first that fits wins."""


Left: TypeAlias = "Mapping[Expr, Sequence[Expr | None]]"
"""What is left of each language behind each range of bytes, None: nothing."""


class Item(NamedTuple):
    """One way to go on.  ``expr``: the character being read, EPSILON: the match ends here, None: it ended before.

    A match that ended before stays in the list while its condition on the text is undecided, since it hides the less
    preferred ones if it holds.
    """

    terminal: int
    expr: Expr | None
    chain: Cell | None
    condition: Condition
    memory: Memory
    words: Words


def parts_of(item: Item) -> Iterable[Expr]:
    """All languages that an item reads."""
    if item.expr is not None:
        yield item.expr
    if item.condition is not None:
        yield from item.condition
    for _, automaton in item.memory:
        yield automaton
    for word, _ in item.words:
        yield word


def ways_on(item: Item, left: Left) -> list[tuple[Expr | None, Condition] | None]:
    """For each range of bytes what is left of what an item reads, and its condition; None where it does not go on."""
    expr, condition = item.expr, item.condition
    is_over = expr is None or expr is EPSILON
    if condition is None:
        return [None if rest is None else (rest, None) for rest in left[cast(Expr, expr)]]
    languages, texts = left[condition[0]], left[condition[1]]
    rests = itertools.repeat(None, len(texts)) if is_over else left[cast(Expr, expr)]
    known: dict[tuple[Expr | None, Expr | None, Expr | None], tuple[Expr | None, Condition] | None] = {}
    column = []
    for key in zip(rests, languages, texts, strict=True):
        if key not in known:
            narrowed = IMPOSSIBLE if key[0] is None and not is_over else decided(key[1], key[2])
            known[key] = None if narrowed is IMPOSSIBLE else (key[0], cast(Condition, narrowed))
        column.append(known[key])
    return column


def advanced(memory: Memory, left: Left, at: int) -> Memory:
    """What look-behinds remember behind a range of bytes."""
    return tuple((initial, left[current][at] or EMPTY) for initial, current in memory)
