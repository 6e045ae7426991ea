"""How the pieces of a query are written: keywords, identifiers, literals, white space, letter case.

A *snippet* is a piece of SQL in canonical spelling (``" ORDER BY "``, ``"COUNT("``): keywords in upper case, one
space where a space belongs.  `Spelling` turns snippets, names and values into terminals, in their one canonical
spelling or, by option, in any case and with any white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from guided.grammar.ir import Terminal
from guided.grammar.regular.characters import ANY_CHARACTER, intersect, negate, utf8
from guided.grammar.regular.expr import (
    Expr,
    alternation,
    byte_range,
    byte_set,
    concat,
    literal,
    optional,
    repeat,
    words,
)

__all__ = ["KEYWORDS", "Spelling", "Whitespace", "identifier", "string_literal"]

# Source: the keyword list of SQLite 3.46 (https://sqlite.org/lang_keywords.html), plus TRUE and FALSE, which SQLite
# reads as 1 and 0 where no column of that name is in scope.
KEYWORDS = frozenset(
    """ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE
    CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE
    EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FALSE FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB
    GROUP GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL
    JOIN KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER
    OTHERS OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX
    RELEASE RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN
    TIES TO TRANSACTION TRIGGER TRUE UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW
    WITH WITHIN WITHOUT""".split()  # noqa: SIM905 (a hundred and fifty quoted words read worse)
)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PIECE = re.compile(r"[A-Za-z0-9_]+| +|'[^']*'|<=|>=|<>|!=|\|\||[^A-Za-z0-9_ ]")

MAX_INTEGER_DIGITS = 15
"""Sums over thousands of rows of such literals stay below SQLite's 64-bit overflow error."""
MAX_FRACTION_DIGITS = 10
MAX_LIMIT_DIGITS = 9


class Whitespace(Enum):
    """Between tokens: the one canonical space, or any white space where SQL allows it."""

    CANONICAL = "canonical"
    ANY = "any"


def identifier(name: str) -> str:
    """The name as SQL: as it is where it can be, in double quotes otherwise.

    >>> identifier("age"), identifier("order"), identifier('say "hi"')
    ('age', '"order"', '"say ""hi""\"')
    """
    if _PLAIN_NAME.match(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def string_literal(value: str) -> str:
    """The value as a string of SQL.

    >>> string_literal("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


class Spelling:
    """Makes terminals; the same text gives the same terminal object, so that a grammar shares them."""

    def __init__(self, whitespace: Whitespace = Whitespace.CANONICAL, ignore_case: bool = False) -> None:
        self.whitespace = whitespace
        self.ignore_case = ignore_case
        self._terminals: dict[object, Terminal] = {}
        space = byte_set(sum(1 << ord(character) for character in " \t\r\n"))
        self._some, self._any = repeat(space, 1), repeat(space)
        self.string = Terminal(_string(), "a string")
        self.number = Terminal(_number(), "a number")
        self.integer = Terminal(_natural(MAX_LIMIT_DIGITS), "a whole number")
        self.digit = Terminal(byte_range(ord("0"), ord("9")), "a digit")
        self.date_format = Terminal(_date_format(), "a date format")

    def snippet(self, *alternatives: str) -> Terminal:
        """Any of these pieces of SQL, given in canonical spelling."""
        found = self._terminals.get(alternatives)
        if found is None:
            label = " or ".join(text.strip() for text in alternatives)
            found = Terminal(alternation(map(self._snippet, alternatives)), label)
            self._terminals[alternatives] = found
        return found

    def names(self, spelled: Iterable[str], label: str) -> Terminal:
        """Any of these identifiers or qualified names, already spelled as SQL."""
        key = frozenset(spelled)
        found = self._terminals.get(key)
        if found is None:
            found = self._terminals[key] = Terminal(self._words(key), label)
        return found

    def phrase(self, before: tuple[str, ...], name: str, after: str = "") -> Terminal:
        """Any of the snippets ``before``, then a name already spelled as SQL, then the snippet ``after``."""
        key = (before, name, after)
        found = self._terminals.get(key)
        if found is None:
            head, tail = alternation(map(self._snippet, before)), self._snippet(after)
            label = " or ".join((text + name + after).strip() for text in before)
            found = self._terminals[key] = Terminal(concat(head, self._words([name]), tail), label)
        return found

    def values(self, values: Iterable[str]) -> Terminal:
        """A string literal that is one of these values."""
        key = ("values", frozenset(values))
        found = self._terminals.get(key)
        if found is None:
            expr = words(string_literal(value).encode() for value in key[1])
            found = self._terminals[key] = Terminal(expr, "a value of the column")
        return found

    def _words(self, texts: Iterable[str]) -> Expr:
        if not self.ignore_case:
            return words(text.encode() for text in texts)
        return alternation(map(_caseless, texts))

    def _snippet(self, text: str) -> Expr:
        keyword = _caseless if self.ignore_case else _exactly
        if self.whitespace is Whitespace.CANONICAL:
            return keyword(text)
        parts: list[Expr] = []
        pieces = _PIECE.findall(text)
        around = ["", *pieces, ""]
        for before, piece, after in zip(around, pieces, around[2:], strict=False):
            if piece.isspace():
                # A space next to a word at both ends keeps words apart; next to a mark it is free.
                glued = _is_mark(before) or _is_mark(after)
                parts.append(self._any if glued else self._some)
            elif _is_mark(piece):
                parts.extend([self._any if not before.isspace() else literal(b""), keyword(piece)])
                parts.append(self._any if not after.isspace() else literal(b""))
            else:
                parts.append(keyword(piece))
        return concat(*parts)


def _is_mark(piece: str) -> bool:
    return bool(piece) and not piece.isspace() and not (piece[0].isalnum() or piece[0] == "_")


def _exactly(text: str) -> Expr:
    return literal(text.encode())


def _caseless(text: str) -> Expr:
    """The text with ASCII letters in either case, as SQLite compares names and keywords."""
    return concat(*(_either_case(character) for character in text))


def _either_case(character: str) -> Expr:
    if not (character.isascii() and character.isalpha()):
        return literal(character.encode())
    return byte_set(1 << ord(character.lower()) | 1 << ord(character.upper()))


def _string() -> Expr:
    """``'...'`` with doubled quotes inside; no control characters (SQLite ends a statement at NUL)."""
    inside = intersect(ANY_CHARACTER, negate(((0, 0x1F), (0x27, 0x27), (0x7F, 0x7F))))
    quote = literal(b"'")
    return concat(quote, repeat(alternation([utf8(inside), literal(b"''")])), quote)


def _natural(digits: int) -> Expr:
    nonzero = concat(byte_range(ord("1"), ord("9")), repeat(byte_range(ord("0"), ord("9")), 0, digits - 1))
    return alternation([literal(b"0"), nonzero])


def _number() -> Expr:
    fraction = concat(literal(b"."), repeat(byte_range(ord("0"), ord("9")), 1, MAX_FRACTION_DIGITS))
    return concat(_natural(MAX_INTEGER_DIGITS), optional(fraction))


def _date_format() -> Expr:
    """A format of STRFTIME: its substitutions with the marks that dates are written with in between."""
    field = concat(literal(b"%"), byte_set(sum(1 << ord(letter) for letter in "dfHjJmMsSwWY")))
    mark = byte_set(sum(1 << ord(letter) for letter in "-/:., T0123456789"))
    return concat(literal(b"'"), repeat(alternation([field, mark]), 1), literal(b"'"))
