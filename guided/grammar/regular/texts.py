"""Texts in UTF-8 as a regular language, and which of them are in another.

Here are texts as values; how JSON spells them is `json_text`'s.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from guided.grammar.regular.characters import ANY_CHARACTER, Utf8
from guided.grammar.regular.derivative import matches
from guided.grammar.regular.expr import Expr, Kind

TEXT = Utf8()
CHARACTER = TEXT.characters(ANY_CHARACTER)
"""One character of a text; shared, so that engines recognise it."""
CONTENT = TEXT.text
"""Any text."""


def holds(language: Expr, text: bytes) -> bool:
    """Is the text in the language?  Boolean operations are asked part by part, which builds no product."""
    if language.kind is Kind.INTERSECTION:
        return all(holds(part, text) for part in cast("tuple[Expr, ...]", language.parts))
    if language.kind is Kind.ALTERNATION:
        return any(holds(part, text) for part in cast("tuple[Expr, ...]", language.parts))
    if language.kind is Kind.COMPLEMENT:
        return not holds(cast(Expr, language.parts[0]), text)
    return matches(language, text)


@lru_cache(maxsize=65536)
def holds_word(language: Expr, word: str) -> bool:
    """Is the word in the language?"""
    return language is CONTENT or holds(language, word.encode("utf-8", "surrogatepass"))
