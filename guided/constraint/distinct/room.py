"""How far texts of a language can be read with many of them still to come.

For whoever holds some texts that must not come again: of a beginning with more texts behind it than are held, one is
left, and so it need not be looked for.
"""

from __future__ import annotations

from functools import lru_cache

from guided.errors import LimitError
from guided.grammar.regular.derivative import edges
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.lengthening import without_listed

__all__ = ["FARTHEST", "room"]

FARTHEST = 64
"""Bytes beyond which nobody looks: names of JSON that are longer are rare."""

EXPLORED = 200
"""States of a language that are looked at, 15 microseconds each; a run of up to 255 characters takes `FARTHEST`."""


@lru_cache(maxsize=4096)
def room(texts: Expr, words: int) -> int:
    """The most bytes behind which, whichever they are, more than ``words`` texts come; -1 where none are seen.

    So it is of all shorter beginnings.  Never too many; `FARTHEST` is not exceeded.

    >>> from guided.grammar.regular.expr import byte_range, repeat
    >>> letter = byte_range(0x61, 0x7A)
    >>> room(repeat(letter, 1, 20), 100), room(repeat(letter, 0, None), 100), room(letter, 100)
    (18, 64, -1)
    """
    whole, left_out = without_listed(texts)
    most = words + left_out + 1
    layers, ways = _layers(whole)
    # Of what was not looked at there is one text at least.
    found = dict.fromkeys(ways, 1)
    # Each round sees one byte farther, and no way goes farther without a loop.
    for _ in range(EXPLORED):
        before = found
        found = {
            state: min(most, state.nullable + sum(n * before.get(target, 1) for n, target in onward))
            for state, onward in ways.items()
        }
        if found == before:
            break
    far = -1
    for layer in layers:
        if any(found.get(state, 1) < most for state in layer):
            break
        far += 1
    return far


def _layers(whole: Expr) -> tuple[list[set[Expr]], dict[Expr, list[tuple[int, Expr]]]]:
    """What may be left behind so many bytes, by their number; and of what was looked at, how many bytes lead where."""
    layers = [{whole}]
    ways: dict[Expr, list[tuple[int, Expr]]] = {}
    try:
        for _ in range(FARTHEST):
            new = layers[-1] - ways.keys()
            # All of a layer or none: which states a set has first is chance.
            if len(ways) + len(new) > EXPLORED:
                break
            ways.update((state, [(high - low + 1, to) for low, high, to in edges(state)]) for state in new)
            layers.append({target for state in layers[-1] for _, target in ways[state]})
    except LimitError:
        pass
    return layers, ways
