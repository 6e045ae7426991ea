"""Patterns of strings and of property names: ECMA-262 expressions as languages of texts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from guided.errors import GrammarError, GuidedError
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.sets.shape import Classes, Need
from guided.grammar.regular.characters import Utf8
from guided.grammar.regular.derivative import inhabited
from guided.grammar.regular.expr import Expr, complement, difference, intersection
from guided.grammar.regular.texts import CONTENT, TEXT, holds_word

MAX_OVERLAPS = 32
"""Name classes of one object beyond two for each pattern; n overlapping patternProperties can make 2**n."""
MAX_COMPARISONS = 10_000
"""Pairs of patterns and name classes that are compared; about 50 microseconds each."""
CELL_STEPS = 5_000
"""States that one emptiness search of a name class may visit; patterns that are told apart need below 100."""


@lru_cache(maxsize=8192)
def _language(pattern: str) -> Expr:
    from guided.grammar.regex.lower import search
    from guided.grammar.regex.parse import parse
    from guided.grammar.regex.syntax import Dialect

    return search(parse(pattern, Dialect.ECMA), TEXT)


def pattern_language(pattern: Any, pointer: str) -> Expr:
    """The strings in which the pattern is found anywhere.

    Raises `GrammarError` for what is no string, and what the pattern's own syntax refuses, with its place in the
    schema.
    """
    if not isinstance(pattern, str):
        raise GrammarError("a pattern must be a string", where=pointer)
    try:
        return _language(pattern)
    except GuidedError as error:
        place = f" at {error.where} of the pattern" if error.where else ""
        raise type(error)(f"{error.what}{place}", where=pointer, remedy=error.remedy) from None


def has_name(language: Expr, name: str) -> bool:
    """Is the name in the language?"""
    return holds_word(language, name)


def partition(found: list[tuple[Expr, Need]], additional: Need, pointer: str) -> Classes:
    """Disjoint classes of all names: each with the needs of the patterns it matches, or else ``additional``.

    Raises a refusal where there are too many classes or comparisons.
    """
    cells: list[tuple[Expr, Need, tuple[Expr, ...]]] = []
    allowed = 2 * len(found) + MAX_OVERLAPS
    compared = 0
    for language, need in found:
        refined: list[tuple[Expr, Need, tuple[Expr, ...]]] = []
        earlier: dict[Expr, None] = {}  # patterns that share names with this one
        compared += len(cells)
        for cell, needs, members in cells:
            inside = cell if cell is language else intersection((cell, language))
            if not inhabited(inside, CELL_STEPS):
                refined.append((cell, needs, members))
                continue
            earlier.update(dict.fromkeys(members))
            refined.append((inside, needs | need, (*members, language)))
            outside = difference(cell, language)
            if inhabited(outside, CELL_STEPS):
                refined.append((outside, needs, members))
        # Complements stay apart: of their union an automaton would be made.
        rest = intersection((language, *map(complement, earlier))) if earlier else language
        if inhabited(rest, CELL_STEPS):
            refined.append((rest, need, (language,)))
        cells = refined
        if len(cells) > allowed:
            raise refusals.NAME_CLASSES.at(pointer, limit=allowed)
        if compared > MAX_COMPARISONS:
            raise refusals.NAME_COMPARISONS.at(pointer, limit=MAX_COMPARISONS)
    others = intersection((CONTENT, *(complement(language) for language, _ in found))) if found else CONTENT
    classes = tuple((cell, needs) for cell, needs, _ in cells)
    return (*classes, (others, additional)) if inhabited(others, CELL_STEPS) else classes


def white_space(pattern: str, allowed: Expr) -> Expr:
    """The language of a pattern (Python's syntax) for the white space between tokens; it must be JSON white space.

    Raises `GrammarError` where it is not, and where the pattern matches nothing.
    """
    from guided.grammar.regex.lower import lower
    from guided.grammar.regex.parse import parse

    language = lower(parse(pattern), Utf8())
    if inhabited(difference(language, allowed)):
        raise GrammarError(
            f"the white space pattern {pattern!r} matches text that is no JSON white space",
            remedy="Use spaces, tabs, line feeds and carriage returns only.",
        )
    if not inhabited(language):
        raise GrammarError(f"the white space pattern {pattern!r} matches nothing", remedy="Use 'compact' for none.")
    return language
