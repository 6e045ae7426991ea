"""Any text: any number of characters in UTF-8, and what is left of that inside a character."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from guided.grammar.regular.characters import ANY_CHARACTER, utf8
from guided.grammar.regular.expr import Edge, Expr, repeat


@lru_cache(maxsize=1)
def any_text() -> tuple[Expr, Expr]:
    """One character, and any number of them; shared with all who write texts so."""
    character = utf8(ANY_CHARACTER)
    return character, repeat(character)


_states: dict[Expr, tuple[Edge, ...]] = {}


def text_states(raw_edges: Callable[[Expr], Sequence[Edge]]) -> dict[Expr, tuple[Edge, ...]]:
    """Any text, first, and all that can be left of it, with their edges."""
    if not _states:
        found: dict[Expr, tuple[Edge, ...]] = {}
        work = [any_text()[1]]
        for item in work:
            if item not in found:
                found[item] = tuple(raw_edges(item))
                work.extend(target for _, _, target in found[item])
        _states.update(found)
    return _states
