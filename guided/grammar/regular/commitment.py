"""Languages whose texts end as soon as they may: what lazy terminals and budgets of characters mean."""

from __future__ import annotations

from guided.grammar.regular.characters import ANY_CHARACTER, utf8
from guided.grammar.regular.expr import Expr, byte_range, concat, difference, intersection, repeat

__all__ = ["ended_after", "shortest_matches"]


def shortest_matches(language: Expr) -> Expr:
    """The texts of which no beginning but the whole is in the language.

    >>> from guided.grammar.regular.derivative import matches
    >>> from guided.grammar.regular.expr import literal
    >>> numbers = shortest_matches(concat(repeat(byte_range(48, 57)), literal(b".")))
    >>> [matches(numbers, text) for text in (b"1.", b"1.2.", b".")]
    [True, False, True]
    """
    return difference(language, concat(language, repeat(byte_range(0, 255), 1)))


def ended_after(language: Expr, n_characters: int) -> Expr:
    """The texts that end at the first place where they may, once they have this many characters.

    A text is longer only where no place before its end was one, as XGrammar's ``max_chars`` has it.

    >>> from guided.grammar.regular.derivative import matches
    >>> pairs = ended_after(repeat(concat(byte_range(97, 122), byte_range(48, 57))), 3)
    >>> [matches(pairs, text) for text in (b"", b"a1", b"a1b2", b"a1b2c3")]
    [True, True, True, False]
    """
    used_up = intersection([language, repeat(utf8(ANY_CHARACTER), n_characters)])
    return difference(language, concat(used_up, repeat(byte_range(0, 255), 1)))
