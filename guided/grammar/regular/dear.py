"""Which languages are dear to read for the first time, as their structure tells."""

from __future__ import annotations

from typing import cast

from guided.grammar.regular.expr import Expr, Kind
from guided.grammar.regular.lengths import n_letters

__all__ = ["is_dear", "is_long"]

SEQUENCE = 8
"""Different expressions of which a language is made from which on it is dear."""

CHOICE = 6
"""The same where there are alternatives: all that may come first must be read at once."""

TOO_LARGE = 40
"""The same from which on what combines languages takes 5 to 60 ms, too long for those whose texts never come there."""

LONG = 64
"""Letters of what combines languages from which on its automaton takes more than 1 ms; with 256 it takes 4."""

_COMBINING = frozenset((Kind.INTERSECTION, Kind.COMPLEMENT))

_known: dict[Expr, bool] = {}


def is_dear(language: Expr) -> bool:
    """Does it take 0.1 ms or more to find out what may come first in a language, and next?  Remembered.

    So it is with nine in ten of which this is told, twice that with half of them; of a fifth of the others, too.

    >>> from guided.grammar.regular.expr import complement, literal, repeat
    >>> is_dear(repeat(literal(b"a"))), is_dear(complement(literal(b"a")))
    (False, True)
    """
    found = _known.get(language)
    if found is None:
        found = _known[language] = _is_dear(language)
    return found


def is_long(language: Expr) -> bool:
    """Does it combine languages of which one is written with many letters, repetitions written out?  Remembered."""
    return n_letters(language) >= LONG and language.kind is Kind.INTERSECTION and is_dear(language)


def _is_dear(language: Expr) -> bool:
    seen = {language}
    work = [language]
    combines = False
    enough = SEQUENCE
    for item in work:
        kind = item.kind
        combines |= kind in _COMBINING
        if kind is Kind.ALTERNATION:
            enough = CHOICE
        if kind is Kind.SWITCH:
            # A class of characters, or words, which are laid down as they are.
            continue
        for part in item.parts:
            for inner in cast("tuple[object, ...]", part) if type(part) is tuple else (part,):
                if isinstance(inner, Expr) and inner not in seen:
                    seen.add(inner)
                    work.append(inner)
        if len(seen) >= TOO_LARGE:
            break
    return len(seen) < TOO_LARGE if combines else len(seen) >= enough
