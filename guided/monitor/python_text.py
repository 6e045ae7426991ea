"""Reading Python byte by byte, as far as a monitor needs: strings, comments, numbers, brackets, logical lines, chains.

Half-written code has no parse, so this is a lexer's view only.  The inside of an f-string counts as a string.
"""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache

__all__ = [
    "KEYWORDS",
    "TAIL",
    "Layout",
    "Place",
    "Primary",
    "PythonText",
    "before_dot",
    "binds",
    "imports",
    "is_known",
    "may_have_more",
    "names_in",
]


class _Mode(IntEnum):
    CODE = 0
    COMMENT = 1
    STRING = 2
    LONG_STRING = 3
    ONE_QUOTE = 4
    TWO_QUOTES = 5


class _Last(IntEnum):
    """What the code before the cursor ends with."""

    OTHER = 0
    WORD = 1
    NUMBER = 2
    POINT = 3
    """The point of a number."""
    DOT = 4
    """A dot behind which a name is looked up."""
    DOTS = 5
    """Several dots, as in an ellipsis."""
    BACKSLASH = 6


_Lexical = tuple[int, int, int]
"""A mode; in code what came last, else the quote; in strings how many bytes of an end are read, -1 behind ``\\``."""

_START: _Lexical = (_Mode.CODE, _Last.OTHER, 0)
_NEWLINES = b"\r\n"
_QUOTES = b"'\""
_OPENING, _CLOSING = b"([{", b")]}"


@dataclass(frozen=True)
class Layout:
    """Open brackets, innermost last, and where the logical line begins, in bytes."""

    brackets: bytes = b""
    line: int = 0

    @property
    def closers(self) -> str:
        """What would close the brackets."""
        return "".join(")]}"["([{".index(chr(byte))] for byte in reversed(self.brackets))


@dataclass(frozen=True)
class Primary:
    """The expression that a dot looks into: a name or literal with attributes, calls and subscripts behind it."""

    root: str | None
    """The name it begins with, None for a literal or brackets."""
    attributes: tuple[str, ...] | None
    """The names behind the root, where there is nothing else but names."""
    start: int
    """Characters before it."""
    text: str
    """Its text, the last dot left out."""


class PythonText:
    """The lexical side of a monitor for Python."""

    trigger_bytes = b"."
    start: _Lexical = _START

    @staticmethod
    def dereferences(lexical: _Lexical) -> bool:
        """Is the byte just read a dot behind which a name is looked up?"""
        return lexical[0] == _Mode.CODE and lexical[1] == _Last.DOT

    @staticmethod
    def read(lexical: _Lexical, byte: int) -> _Lexical:
        """The lexical state after one byte."""
        mode, detail, run = lexical
        if mode == _Mode.COMMENT:
            return _START if byte in _NEWLINES else lexical
        if mode == _Mode.STRING:
            if run < 0:
                return (mode, detail, 0)
            if byte == 0x5C:
                return (mode, detail, -1)
            return _START if byte == detail or byte in _NEWLINES else lexical
        if mode == _Mode.LONG_STRING:
            if run < 0:
                return (mode, detail, 0)
            if byte == 0x5C:
                return (mode, detail, -1)
            if byte != detail:
                return (mode, detail, 0)
            return (mode, detail, run + 1) if run < 2 else _START
        if mode == _Mode.ONE_QUOTE:
            if byte == detail:
                return (_Mode.TWO_QUOTES, detail, 0)
            return PythonText.read((_Mode.STRING, detail, 0), byte)
        if mode == _Mode.TWO_QUOTES:
            if byte == detail:
                return (_Mode.LONG_STRING, detail, 0)
            return PythonText.read(_START, byte)
        if byte == 0x23:
            return (_Mode.COMMENT, 0, 0)
        if byte in _QUOTES:
            return (_Mode.ONE_QUOTE, byte, 0)
        return (_Mode.CODE, _last(detail, byte), 0)

    @staticmethod
    def follow(layout: Layout, lexical: _Lexical, byte: int, position: int) -> Layout:
        """Brackets and lines after one byte at an offset; ``lexical`` is the state before it."""
        mode, detail, _ = lexical
        if byte in _NEWLINES:
            # A comment or a short string ends with the line; a long string and a bracket go on.
            if mode == _Mode.LONG_STRING or layout.brackets or (mode == _Mode.CODE and detail == _Last.BACKSLASH):
                return layout
            if mode == _Mode.STRING and lexical[2] < 0:
                return layout
            return Layout(b"", position + 1)
        if mode not in (_Mode.CODE, _Mode.TWO_QUOTES):
            return layout
        if byte in _OPENING:
            return Layout(layout.brackets + bytes([byte]), layout.line)
        if byte in _CLOSING and layout.brackets:
            return Layout(layout.brackets[:-1], layout.line)
        return layout


def _last(last: int, byte: int) -> int:
    if byte == 0x2E:
        if last == _Last.NUMBER:
            return _Last.POINT
        return _Last.DOTS if last in (_Last.DOT, _Last.DOTS) else _Last.DOT
    if 0x30 <= byte <= 0x39:
        return _Last.WORD if last == _Last.WORD else _Last.NUMBER
    if byte == 0x5F or byte >= 0x80 or 0x41 <= byte & 0xDF <= 0x5A:
        return _Last.NUMBER if last in (_Last.NUMBER, _Last.POINT) else _Last.WORD
    return _Last.BACKSLASH if byte == 0x5C else _Last.OTHER


_NAME = re.compile(r"[^\W\d]\w*")
_IMPORT = re.compile(r"\s*(?:from|import)\b")
_STAR = re.compile(r"import[\s(]*\*")
_BINDERS = frozenset({"for", "lambda", "as", "def", "class", "case", "isinstance"})
_WORD_END = re.compile(r"[^\W\d]\w*\Z")
_SPACE = " \t\r\n"
TAIL = 400
"""Characters before the cursor in which an expression is looked for."""
_BUILTIN = frozenset(dir(builtins))
_CONSTANTS = frozenset({"True", "False", "None"})
KEYWORDS = frozenset(keyword.kwlist)


@lru_cache(maxsize=16)
def names_in(text: str) -> frozenset[str]:
    """All identifiers of a text, wherever they stand; and ``*`` when it may import names that it does not show."""
    found = frozenset(_NAME.findall(text))
    return found | {"*"} if "import" in found and _STAR.search(text) else found


def is_known(root: str, names: frozenset[str]) -> bool:
    """Can an analysis know what a name stands for: is it in the text, built in, or maybe star-imported?"""
    if root in KEYWORDS:
        return root in _CONSTANTS
    return root in names or root in _BUILTIN or "*" in names


_OWN = frozenset({"self", "cls", "super"})
_TESTS = r"\b(?:isinstance|issubclass|hasattr|callable|type|cast)\s*\(\s*%s\b|\bmatch\s+%s\s*:"


def may_have_more(before: str, primary: Primary) -> bool:
    """May an object have names that its declared type has not, whatever an engine lists?

    So it is in a class that is still being written, behind a test of what the object is, and for what a call or a
    subscript gives, of which an engine does not say whether it was declared or guessed.
    """
    if primary.root is None:
        return False
    if primary.root in _OWN or primary.attributes is None:
        return True
    name = re.escape(primary.root)
    return re.search(_TESTS % (name, name), before) is not None


class Place(Enum):
    """What stands before a dot, if it is not found to be a `Primary`."""

    EXPRESSION = "an expression longer than is looked for"
    NOTHING = "nothing that has attributes"


def before_dot(text: str, *, inside: bool) -> Primary | Place:
    """What the dot at the end of ``text`` looks into, read backwards; ``inside``: is a bracket open there?"""
    stop = len(text) - 1
    least = max(0, stop - TAIL)
    attributes: list[str] | None = []
    at = stop
    while True:
        at = _skip(text, at, " \t" if at == stop and not inside else _SPACE, least)
        if at <= least:
            return Place.EXPRESSION if least else Place.NOTHING
        last = text[at - 1]
        if last == "_" or last.isalnum():
            begin = at
            while begin > least and (text[begin - 1] == "_" or text[begin - 1].isalnum()):
                begin -= 1
            if begin == least and least:
                return Place.EXPRESSION
            word = text[begin:at]
            if not word.isidentifier():
                return Place.NOTHING
            dot = _skip(text, begin, _SPACE, least)
            if dot > least and text[dot - 1] == ".":
                if attributes is not None:
                    attributes.append(word)
                at = dot - 1
                continue
            found = None if attributes is None else tuple(reversed(attributes))
            return Primary(word, found, begin, text[begin:stop])
        attributes = None
        if last in "\"'":
            begin = _string_start(text, at, least)
            if begin < 0:
                return Place.EXPRESSION if least else Place.NOTHING
            first = begin
            while first > least and text[first - 1] in "rRbBuUfF":
                first -= 1
            if first > least and (text[first - 1] == "_" or text[first - 1].isalnum()):
                return Place.NOTHING
            # What a string holds says nothing about its attributes.
            return Primary(None, None, first, text[first:begin] + "''" + text[at:stop])
        if last not in ")]}":
            return Place.NOTHING
        begin = _opening(text, at, least)
        if begin < 0:
            return Place.EXPRESSION if least else Place.NOTHING
        before = text[begin - 1 : begin] if begin > least else ""
        if before and (before in "_)]\"'" or before.isalnum()):
            called = _WORD_END.search(text, max(least, begin - 40), begin)
            if called is None or called.group() not in KEYWORDS:
                at = begin
                continue
        return Primary(None, None, begin, text[begin:stop])


def _skip(text: str, at: int, spaces: str, least: int) -> int:
    while at > least and text[at - 1] in spaces:
        at -= 1
    return at


def _string_start(text: str, at: int, least: int) -> int:
    """Where the string that ends at ``at`` begins, its prefix letters left out; -1 if it is not found."""
    quote = text[at - 1]
    mark = 3 * quote if text[at - 3 : at] == 3 * quote and at - 6 >= least else quote
    found = text.rfind(mark, least, at - len(mark))
    while found > 0 and len(mark) == 1 and text[found - 1] == "\\":
        found = text.rfind(mark, least, found)
    return found


def _opening(text: str, at: int, least: int) -> int:
    """The bracket that the one before ``at`` closes; -1 if it is not found.  Strings between them are jumped over."""
    open_now = []
    while at > least:
        character = text[at - 1]
        if character in ")]}":
            open_now.append("([{"[")]}".index(character)])
        elif character in "([{":
            if open_now.pop() != character:
                return -1
            if not open_now:
                return at - 1
        elif character in "\"'":
            at = _string_start(text, at, least)
            if at < 0:
                return -1
            continue
        at -= 1
    return -1


def binds(line: str, words: frozenset[str]) -> bool:
    """Can the words of a logical line give a name another meaning for the rest of that line?"""
    return bool(words & _BINDERS) or ";" in line or ":=" in line


def imports(line: str) -> bool:
    """Is the end of a logical line in an import statement?"""
    return _IMPORT.match(line, max(line.rfind("\n"), line.rfind("\r")) + 1) is not None
