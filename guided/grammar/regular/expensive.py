"""Which languages are expensive to read for the first time, as their structure tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from guided.grammar.regular.expr import Expr, Kind
from guided.grammar.regular.lengths import n_symbols
from guided.grammar.regular.stepwise import is_met_whole

__all__ = ["holds_met_whole", "is_expensive", "is_long"]

SEQUENCE = 8
"""Different expressions of which a language is made from which on it is expensive."""

CHOICE = 6
"""The same where there are alternatives: all that may come first must be read at once."""

TOO_LARGE = 40
"""The same from which on what combines languages takes 5 to 60 ms, too long for those whose texts never come there."""

LONG = 64
"""Symbols of what combines languages from which on it is long: its automaton takes 0.1 to 1.4 ms, with 256 some 4."""

_COMBINING = frozenset((Kind.INTERSECTION, Kind.COMPLEMENT))

_known: dict[Expr, bool] = {}


def is_expensive(language: Expr) -> bool:
    """Does it take 0.1 ms or more to find out what may come first in a language, and next?  Remembered.

    An estimate: true of nine in ten for which it says so (half of them take 0.2 ms or more), and of a fifth of the
    others.

    >>> from guided.grammar.regular.expr import complement, literal, repeat
    >>> is_expensive(repeat(literal(b"a"))), is_expensive(complement(literal(b"a")))
    (False, True)
    """
    found = _known.get(language)
    if found is None:
        found = _known[language] = _is_expensive(language)
    return found


def is_long(language: Expr) -> bool:
    """Does it combine languages of which one is written with many symbols, repetitions written out?  Remembered."""
    return n_symbols(language) >= LONG and language.kind is Kind.INTERSECTION and is_expensive(language)


def holds_met_whole(language: Expr) -> bool:
    """Is one of the first expressions of which a language is made an automaton that is met whole?"""
    return any(map(is_met_whole, _within(language, set())))


def _is_expensive(language: Expr) -> bool:
    seen: set[Expr] = set()
    combines = False
    enough = SEQUENCE
    for item in _within(language, seen):
        combines |= item.kind in _COMBINING
        if item.kind is Kind.ALTERNATION:
            enough = CHOICE
    return len(seen) < TOO_LARGE if combines else len(seen) >= enough


def _within(language: Expr, seen: set[Expr]) -> Iterator[Expr]:
    """The different expressions of which a language is made, until `TOO_LARGE` of them were ``seen``."""
    seen.add(language)
    work = [language]
    for item in work:
        yield item
        if item.kind is not Kind.SWITCH:
            # That is a class of characters, or words, which are written as they are.
            for part in item.parts:
                for inner in cast("tuple[object, ...]", part) if type(part) is tuple else (part,):
                    if isinstance(inner, Expr) and inner not in seen:
                        seen.add(inner)
                        work.append(inner)
            if len(seen) >= TOO_LARGE:
                return
