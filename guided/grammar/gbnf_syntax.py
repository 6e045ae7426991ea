"""The text of a GBNF grammar as a tree: rules, groups, repetitions, characters, with their places.

The notation is that of llama.cpp's ``grammars/README.md``: newlines end a rule except inside parentheses and after
``::=``, ``(`` and ``|``; repetition marks apply to the symbol or literal before them.  What the tree means is decided
in `guided.grammar.gbnf`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.folding import place_of
from guided.grammar.pieces import Class, Definition, Either, Name, Piece, Repeated, Special, Text, row
from guided.grammar.regular.characters import ANY_CHARACTER, CharacterSet, negate, normalise
from guided.grammar.special import names_of_reference

MAX_NESTING = 100
"""Parentheses inside each other.  Grammars converted from JSON Schema nest up to some dozen; what follows recurses."""
MAX_MARKS = 4
"""Repetition marks one after another on the same symbol."""


def read_gbnf(text: str, special_tokens: Mapping[str, int] | None = None) -> dict[str, Definition]:
    """All rules by name, in order; raises `GrammarError`, `UnsupportedError` or `LimitError` with line and column.

    ``special_tokens`` are a tokenizer's by name, for references by id.

    >>> sorted(read_gbnf('root ::= "a" | b # comment\\nb ::= [0-9]+'))
    ['b', 'root']
    """
    return read_with_notes(text, special_tokens)[0]


def read_with_notes(
    text: str, special_tokens: Mapping[str, int] | None = None
) -> tuple[dict[str, Definition], tuple[str, ...]]:
    """As `read_gbnf`, and what is to be said of how the text was read."""
    reader = _Reader(text, special_tokens)
    return reader.rules(), tuple(reader.notes)


@dataclass(slots=True)
class _Group:
    """An open parenthesis, or a rule's body: the finished options and the parts of the one being read."""

    offset: int
    options: list[Piece] = field(default_factory=list)
    parts: list[Piece] = field(default_factory=list)

    def piece(self) -> Piece:
        options = [*self.options, row(self.parts)]
        return options[0] if len(options) == 1 else Either(tuple(options))


def _marks(piece: Piece) -> int:
    count = 0
    while isinstance(piece, Repeated):
        piece = piece.body
        count += 1
    return count


_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_HEXADECIMAL = {"x": 2, "u": 4, "U": 8}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


_UNBOUNDED = re.compile(r"[ \t]*(\))?[ \t]*\*")
"""What follows the one thing in a group, or before one, that there is any number of."""


class _Reader:
    def __init__(self, text: str, special_tokens: Mapping[str, int] | None) -> None:
        self.text = text
        self.special_tokens = special_tokens
        self.at = 0
        self.notes: list[str] = []

    def rules(self) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        self.space(newlines=True)
        while self.at < len(self.text):
            offset = self.at
            name = self.name()
            if not name:
                remedy = "Write: name ::= ...; a new line goes on with a rule only after '|' or inside parentheses."
                raise self.error("a rule begins with its name", offset, remedy)
            if name in found:
                raise self.error(f"rule {name!r} is defined twice", offset, "Join the definitions with '|'.")
            self.space(newlines=False)
            if not self.text.startswith("::=", self.at):
                raise self.error(f"expected '::=' after the rule name {name!r}", self.at, "Write: name ::= ...")
            self.at += 3
            self.space(newlines=True)
            found[name] = Definition(self.body(), offset)
            if self.at < len(self.text) and self.text[self.at] not in "\r\n":
                raise self.error(
                    f"unexpected {self.text[self.at]!r}",
                    self.at,
                    "End the rule with a newline, or quote the character.",
                )
            self.space(newlines=True)
        return found

    def body(self) -> Piece:
        """Alternatives up to the end of the rule; parentheses are kept on a stack of our own."""
        stack = [_Group(self.at)]
        while self.at < len(self.text):
            group = stack[-1]
            nested = len(stack) > 1
            character = self.text[self.at]
            offset = self.at
            if character == "(":
                if len(stack) > MAX_NESTING:
                    raise LimitError(
                        f"parentheses nest deeper than {MAX_NESTING} levels",
                        where=self.place(offset),
                        remedy="Give the inner parts rules of their own.",
                    )
                self.at += 1
                self.space(newlines=True)
                stack.append(_Group(offset))
                continue
            if character == "|":
                self.at += 1
                group.options.append(row(group.parts))
                group.parts = []
                self.space(newlines=True)
                continue
            if character == ")" and nested:
                self.at += 1
                stack.pop()
                stack[-1].parts.append(group.piece())
            elif character in "*+?{":
                low, high = self.counts()
                if not group.parts:
                    raise self.error(f"there is nothing before {character!r} to repeat", offset, "Quote the character.")
                if _marks(group.parts[-1]) >= MAX_MARKS:
                    raise LimitError(
                        f"more than {MAX_MARKS} repetition marks on one symbol",
                        where=self.place(offset),
                        remedy="Use parentheses, or one mark: 'x**' is 'x*'.",
                    )
                group.parts[-1] = Repeated(group.parts[-1], low, high)
            elif (piece := self.symbol()) is not None:
                group.parts.append(piece)
            else:
                break
            self.space(newlines=len(stack) > 1)
        if len(stack) > 1:
            raise self.error("this parenthesis is never closed", stack[-1].offset, "Add the missing ')'.")
        return stack[0].piece()

    def symbol(self) -> Piece | None:
        character = self.text[self.at]
        offset = self.at
        if character == '"':
            return Text(self.quoted())
        if character == "[":
            return Class(self.character_class())
        if character == ".":
            self.at += 1
            return Class(ANY_CHARACTER)
        if character == "<":
            end = self.text.find(">", offset)
            reference = self.text[offset : end + 1]
            if end < 0 or "\n" in reference:
                raise self.error("this token is never closed", offset, "Add the missing '>', or quote the '<'.")
            self.at = end + 1
            return Special(names_of_reference(reference, self.special_tokens, self.place(offset)))
        if character == "!":
            return self.other_tokens(offset)
        name = self.name()
        return Name(name, offset) if name else None

    def other_tokens(self, offset: int) -> Piece:
        """``!<think>`` any number of times is text: no other special token is in it either, which the reader notes."""
        end = self.text.find(">", offset)
        rest = _UNBOUNDED.match(self.text, end + 1) if end >= 0 and self.text.startswith("<", offset + 1) else None
        alone = rest is not None and (rest[1] is None or self.text[:offset].rstrip(" \t").endswith("("))
        if not alone:
            raise UnsupportedError(
                "'!' stands for every other token of a tokenizer, and a grammar here knows none",
                where=self.place(offset),
                remedy="Write the text by its characters: no text holds a special token, '.*' is all of it.",
            )
        self.at += 1
        self.symbol()
        self.notes.append(f"no special token is in the text at {self.place(offset)}")
        return Repeated(Class(ANY_CHARACTER), 0, None)

    def name(self) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in _NAME:
            self.at += 1
        return self.text[start : self.at]

    def quoted(self) -> str:
        offset = self.at
        self.at += 1
        codes: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise self.error("this string is never closed", offset, "Add the missing '\"'.")
            if self.text[self.at] == '"':
                self.at += 1
                return "".join(codes)
            start = self.at
            code = self.character(offset)
            if 0xD800 <= code <= 0xDFFF:
                raise self.error("a surrogate is not a character", start, "Write the character itself, or \\UXXXXXXXX.")
            codes.append(chr(code))

    def character_class(self) -> CharacterSet:
        offset = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        while True:
            if self.at >= len(self.text):
                raise self.error("this character class is never closed", offset, "Add the missing ']'.")
            if self.text[self.at] == "]":
                self.at += 1
                break
            start = self.at
            low = high = self.character(offset)
            if self.text.startswith("-", self.at) and not self.text.startswith("]", self.at + 1):
                self.at += 1
                high = self.character(offset)
            if high < low:
                raise self.error("the ends of this range are in the wrong order", start, "Write the lower one first.")
            ranges.append((low, high))
        characters = normalise(ranges)
        if negated and ranges:
            characters = negate(characters)
        if not characters:
            raise self.error("this character class has no characters", offset, "Name at least one, or write '.'.")
        return characters

    def character(self, opening: int) -> int:
        """One character of a string or class, as a code point; ``opening`` is where that began."""
        offset = self.at
        if offset >= len(self.text):
            raise self.error("this string or class is never closed", opening, "Add the missing quote or bracket.")
        if self.text[offset] != "\\":
            self.at += 1
            return ord(self.text[offset])
        letter = self.text[offset + 1 : offset + 2]
        if letter in _HEXADECIMAL:
            digits = self.text[offset + 2 : offset + 2 + _HEXADECIMAL[letter]]
            if len(digits) < _HEXADECIMAL[letter] or not _HEX_DIGITS.issuperset(digits):
                raise self.error(
                    f"\\{letter} takes {_HEXADECIMAL[letter]} hexadecimal digits", offset, "Pad with zeros."
                )
            code = int(digits, 16)
            if code > 0x10FFFF:
                raise self.error("there is no such character", offset, "The last one is \\U0010FFFF.")
            self.at += 2 + len(digits)
            return code
        if letter not in _ESCAPES:
            what = f"unknown escape '\\{letter}'" if letter else "the text ends in a backslash"
            raise self.error(
                what, offset if letter else opening, 'Known are \\t \\r \\n \\\\ \\" \\[ \\] \\- \\x \\u \\U.'
            )
        self.at += 2
        return ord(_ESCAPES[letter])

    def counts(self) -> tuple[int, int | None]:
        """A repetition mark: the least and greatest number of copies."""
        offset = self.at
        mark = self.text[offset]
        self.at += 1
        if mark != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[mark]
        low = self.number()
        self.space(newlines=False)
        high = low
        if self.text.startswith(",", self.at):
            self.at += 1
            self.space(newlines=False)
            high = self.number()
            self.space(newlines=False)
        elif low is None:
            raise self.error("expected a number after '{'", offset, "Write {m}, {m,}, {m,n} or {,n}.")
        if not self.text.startswith("}", self.at):
            raise self.error("expected '}'", self.at, "Write {m}, {m,}, {m,n} or {,n}.")
        self.at += 1
        if high is not None and high < (low or 0):
            raise self.error("the counts of this repetition are in the wrong order", offset, "Write {low,high}.")
        return low or 0, high

    def number(self) -> int | None:
        self.space(newlines=False)
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in _DIGITS:
            self.at += 1
        if self.at - start > 9:
            raise LimitError("a repetition count is too large", where=self.place(start), remedy="Stay below 10**9.")
        return int(self.text[start : self.at]) if self.at > start else None

    def space(self, newlines: bool) -> None:
        """Skip blanks and comments, and line ends where they do not end the rule."""
        blank = " \t\r\n" if newlines else " \t"
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                while self.at < len(self.text) and self.text[self.at] not in "\r\n":
                    self.at += 1
            elif self.text[self.at] in blank:
                self.at += 1
            else:
                return

    def place(self, offset: int) -> str:
        return place_of(self.text, offset)

    def error(self, what: str, offset: int, remedy: str) -> GrammarError:
        return GrammarError(what, where=self.place(offset), remedy=remedy)
