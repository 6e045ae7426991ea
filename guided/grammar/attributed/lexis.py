"""How texts are cut into lexemes, byte by byte: words, quoted names, numbers, strings and signs, as SQL has them.

A lexeme is the longest text that is one, whatever the grammar expects: ``<=`` is never ``<`` and ``=``.  Where the
grammar would want it cut otherwise, or a comment would begin, the text is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from guided.grammar.attributed.words import Words, words_of

__all__ = [
    "BLANKS",
    "MOST_BLANKS",
    "MOST_NAME",
    "NUMBER",
    "POINT",
    "Lexis",
    "ascii_lower",
    "is_called",
    "is_word_byte",
    "next_utf8",
]

MOST_BLANKS = 16
"""White space between two lexemes: a line break and the indentation of a query within four others."""
MOST_DIGITS = 15
"""Sums over thousands of rows of such numbers stay below the 64 bits of integers."""
MOST_NAME = 63
"""Bytes of a name of the writer's own choice; PostgreSQL cuts longer ones."""

_POWER = "[eE][+-]?[0-9]{0,2}"
_POINT = rf"\.(?:[0-9]{{1,{MOST_DIGITS}}}(?:{_POWER})?)?"
NUMBER = rf"(?:[0-9]{{1,{MOST_DIGITS}}}(?:{_POINT}|{_POWER})?|{_POINT})"
"""A regular expression for the beginnings of numbers."""
_NUMBER = re.compile(NUMBER.encode() + rb"\Z")
_WHOLE_NUMBER = re.compile(rb"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_HEXADECIMAL = re.compile(rb"0[xX][0-9a-fA-F]{0,12}\Z")
"""No longer, so that they are as small as the others (`MOST_DIGITS`)."""
_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$") | frozenset(range(128, 256))
BLANKS = frozenset(b" \t\r\n")
_FOUR_BYTES = bytes(range(0xF0, 0xF5))
"""The first bytes of characters of four."""
POINT = ord(".")
"""With which a number may begin, and which stands between names."""


def is_word_byte(byte: int) -> bool:
    """Does a byte belong to the word or number before it?"""
    return byte in _WORD


@dataclass(frozen=True)
class Lexis:
    """What differs between dialects."""

    reserved: frozenset[str]
    """Words that are no names unless they are quoted, in lower case."""
    quotes: tuple[str, ...] = ('"',)
    """The quotes of names; within them they are doubled, but for brackets (`guided.grammar.attributed.quotes`)."""
    string_quotes: tuple[str, ...] = ()
    """Those of the quotes in which a string may stand as well."""
    text_quotes: tuple[str, ...] = ()
    """Those in which only strings stand, besides ``'``."""
    escapes: bool = False
    """Does a backslash in a string stand for itself and the character behind it?"""
    keeps_case: bool = False
    """Are there names whose letter case matters (`guided.grammar.attributed.nodes.Name.is_exact`)?"""
    hexadecimal: bool = False
    """Are there whole numbers such as ``0x1F``?"""
    signs: frozenset[str] = frozenset()
    """All signs that the engine cuts as one."""
    operator_characters: str = ""
    """The characters of which PostgreSQL's operators are made, each the longest run of them."""
    names_by_points: bool = False
    """Is a point right behind a word always one between names, so that no number begins there?"""
    basic_names: bool = False
    """Have names in quotes only characters of up to three bytes?"""
    no_blank_end: bool = False
    """Does no name in quotes end with a blank?"""
    folds_quoted: bool = True
    """Are names in quotes compared regardless of case, as others are?"""

    def munches(self, sign: str, byte: int) -> bool:
        """Would the engine read a sign together with the next byte?"""
        longer = sign + chr(byte)
        together = sign[-1] in self.operator_characters and chr(byte) in self.operator_characters
        # A sign at the end belongs to the operator only if one of some characters does.
        if together and (chr(byte) not in "+-" or any(character in "~!@#%^&|`?" for character in sign)):
            return True
        return longer in ("--", "/*") or any(known.startswith(longer) for known in self.signs)

    def folded(self, text: str, quoted: bool) -> str:
        """A name as names are compared: ASCII letters in lower case."""
        return text if quoted and not self.folds_quoted else ascii_lower(text)

    def ends_run(self, quote: str) -> bytes:
        """The quote, and other bytes that do not stand for themselves between such quotes, or not at all."""
        if quote == "'" or quote in self.text_quotes:
            return quote.encode() + (b"\\" if self.escapes else b"")
        return quote.encode() + (_FOUR_BYTES if self.basic_names else b"")

    def plain(self, words: Words, is_exact: bool = False) -> Words:
        """Those of some names that can be written without quotes."""
        return _plain(words, self, is_exact)

    def is_plain(self, name: str, is_exact: bool = False) -> bool:
        """Can a name be written without quotes?"""
        if ascii_lower(name) in self.reserved or not (_PLAIN_IN_ANY_CASE if is_exact else _PLAIN).match(name):
            return False
        # Where names without quotes are folded and others are not, it depends on the server which letters beyond ASCII
        # are: PostgreSQL folds them in an encoding of one byte a character.
        return self.folds_quoted or name.isascii() or name == name.lower()

    def written(self, name: str) -> str:
        """A folded name as it is written, in quotes where it needs them: a new one does for letters beyond ASCII."""
        if is_called(name) or (name.isascii() and self.is_plain(name) and len(name) <= MOST_NAME):
            return name
        quote = self.quotes[0]
        return quote + name.replace(quote, quote + quote) + quote

    def number_may_go_on(self, text: bytes) -> bool:
        """Is a text the beginning of a number?"""
        return _NUMBER.match(text) is not None or self._is_hexadecimal(text)

    def is_number(self, text: bytes) -> bool:
        """Is a text a whole number or a decimal one?"""
        return _WHOLE_NUMBER.match(text) is not None or (len(text) > 2 and self._is_hexadecimal(text))

    def _is_hexadecimal(self, text: bytes) -> bool:
        """Is a text the beginning of a hexadecimal number?"""
        return self.hexadecimal and _HEXADECIMAL.match(text) is not None


_PLAIN = re.compile(r"[^\W\dA-Z][^\WA-Z]*\Z")
_CALLED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\(\Z")
_PLAIN_IN_ANY_CASE = re.compile(r"[^\W\d]\w*\Z")
"""Letters and digits of any script: engines take every character beyond ASCII for a part of a name."""


def is_called(name: str) -> bool:
    """Is a name one with the bracket that must stand right behind it, as of functions of MySQL?"""
    return name[1:].endswith("(") and _CALLED.match(name) is not None


def ascii_lower(text: str) -> str:
    """ASCII letters in lower case, as engines fold names; other letters stay."""
    return text.translate(_LOWER)


_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


@lru_cache(maxsize=4096)
def _plain(words: Words, lexis: Lexis, is_exact: bool) -> Words:
    return words_of(word for word in words.members if is_called(word) or lexis.is_plain(word, is_exact))


def next_utf8(state: tuple[int, int, int], byte: int) -> tuple[int, int, int] | None:
    """The state of reading UTF-8 after a byte: continuation bytes to come, and the bounds of the next of them.

    ``(0, 0, 0)`` is between characters; None where no character goes on so.
    """
    left, low, high = state
    if left:
        return (
            (left - 1, 0x80, 0xBF) if low <= byte <= high and left > 1 else (0, 0, 0) if low <= byte <= high else None
        )
    if byte < 0x80:
        return (0, 0, 0)
    return _LEADING.get(byte)


_LEADING: dict[int, tuple[int, int, int]] = {
    **dict.fromkeys(range(194, 224), (1, 128, 191)),
    0xE0: (2, 0xA0, 0xBF),
    **dict.fromkeys((*range(225, 237), 238, 239), (2, 128, 191)),
    0xED: (2, 0x80, 0x9F),
    0xF0: (3, 0x90, 0xBF),
    **dict.fromkeys(range(241, 244), (3, 128, 191)),
    0xF4: (3, 0x80, 0x8F),
}
"""Leading bytes (Unicode, table 3-7)."""
