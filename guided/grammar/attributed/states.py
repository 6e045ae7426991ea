"""Where a text of an L-attributed grammar is, and the lexeme that is over there."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from guided.grammar.attributed.lexis import Lexis, ascii_lower, is_called
from guided.grammar.attributed.nodes import LiteralForm
from guided.grammar.attributed.quotes import BRACKET
from guided.grammar.attributed.threads import Lexeme, LexemeKind, Place

__all__ = ["ANY", "MOST_KEPT", "MOST_QUOTED", "WHOLE", "At", "Reading", "kind_in_quotes", "read_lexeme"]


class Reading(Enum):
    """What the last byte belongs to."""

    # Python's own hashes the name, in Python; steps are looked up by states all the time.
    __hash__ = object.__hash__

    BLANK = "white space, or the beginning of the text"
    WORD = "a word"
    NUMBER = "a number"
    SIGN = "a sign"
    STRING = "a string"
    STRING_END = "the quote after which a string is over, unless another follows"
    NAME = "a name in quotes"
    NAME_END = "the quote after which a name is over, unless another follows"


class At(NamedTuple):
    """Where a text is; ``text`` is what was read of the lexeme, of free strings nothing unless they are kept."""

    place: Place
    reading: Reading
    text: bytes
    utf8: tuple[int, int, int] = (0, 0, 0)


MOST_QUOTED = 255
"""Bytes of a free name in quotes, or of a string in such quotes."""
WHOLE = (0, 0, 0)
"""Between characters."""
MOST_KEPT = 60
"""Bytes of a free string that is kept."""
ANY = b"\0"
"""Read of a string that is not kept and is none of those which others are held to where any may stand."""


def read_lexeme(at: At, lexis: Lexis) -> tuple[Lexeme, bool] | None:
    """The lexeme that is being read, if it may be over here, and is it a reserved word, which is no name?"""
    place, reading, text, _ = at
    match reading:
        case Reading.WORD:
            written = text.decode("utf-8", "replace")
            word = lexis.folded(written, False)
            return Lexeme(LexemeKind.WORD, word, _kept(written, lexis)), word in lexis.reserved
        case Reading.NUMBER:
            if not lexis.is_number(text):
                return None
            # Where any number may come, they are all the same.
            is_free = all(values is None for _, form, values in place.literals if form is LiteralForm.NUMBER)
            return Lexeme(LexemeKind.NUMBER, "0" if is_free else text.decode()), False
        case Reading.SIGN:
            sign = text.decode()
            return Lexeme(LexemeKind.WORD if is_called(sign) else LexemeKind.SIGN, ascii_lower(sign)), False
        case Reading.STRING_END:
            return Lexeme(LexemeKind.STRING, text.decode("utf-8", "replace")), False
        case Reading.NAME_END:
            quote, name = chr(text[0]), text[1:].decode("utf-8", "replace")
            kind = kind_in_quotes(quote, lexis)
            if lexis.no_blank_end and kind is not LexemeKind.TEXT and name.endswith(" "):
                return None
            return Lexeme(kind, lexis.folded(name, True), _kept(name, lexis)), False
    return None


def _kept(name: str, lexis: Lexis) -> str:
    """A name before it is folded, if its case may matter."""
    return name if lexis.keeps_case else ""


def kind_in_quotes(quote: str, lexis: Lexis) -> LexemeKind:
    """What stands in some quotes."""
    if quote in lexis.text_quotes:
        return LexemeKind.TEXT
    if quote == chr(BRACKET):
        return LexemeKind.BRACKETED
    return LexemeKind.DOUBTFUL if quote in lexis.string_quotes else LexemeKind.QUOTED
