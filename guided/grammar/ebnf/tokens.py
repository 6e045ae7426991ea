"""The text of an EBNF grammar cut into tokens, with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from guided.errors import GrammarError
from guided.grammar.folding import place_of

__all__ = ["Token", "TokenKind", "character_at", "cut"]


class TokenKind(Enum):
    """What a token is; a mark is its own text."""

    NAME = "a name"
    RULE = "the name of a rule"
    STRING = "a string"
    CLASS = "a character class"
    NUMBER = "a number"
    MARK = "a mark"
    END = "the end of the text"


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` as it is written; ``value`` of a string without its escapes."""

    kind: TokenKind
    text: str
    offset: int
    value: str = ""


_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_MARK = re.compile(r"::=|\(=|[(){}|,*+?=]")
_CLASS = re.compile(r"\[(?:\\[^\r\n]|[^\]\\\r\n])*\]")
_OPTIONS = re.compile(r"\[(?:\"[^\"\r\n\\]*\"|[^\]\"\r\n])*\](?=[ \t]*::=)")
_STRING = re.compile(r'"(?:\\[^\r\n]|[^"\\\r\n])*"')
_NAMED_ESCAPES = {
    "'": 0x27, '"': 0x22, "?": 0x3F, "\\": 0x5C, "/": 0x2F, "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9,
    "v": 11, "0": 0, "e": 0x1B,
}  # fmt: skip
_HEXADECIMAL = re.compile(r"\\(?:x([0-9A-Fa-f]+)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")


def cut(text: str) -> list[Token]:
    """All tokens, the end last; a name before ``::=`` is `TokenKind.RULE`, and its options stand behind it as a class.

    Raises `GrammarError` for what is no token and for a rule that does not begin its line.

    >>> [token.text for token in cut('root ::= "a" [b-c]* # comment')]
    ['root', '::=', '"a"', '[b-c]', '*', '']
    """
    tokens: list[Token] = []
    at = _skip(text, 0)
    while at < len(text):
        token = _next(text, at, tokens)
        tokens.append(token)
        at = _skip(text, at + len(token.text))
    tokens.append(Token(TokenKind.END, "", len(text)))
    return _with_rules(text, tokens)


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()


def _next(text: str, at: int, before: list[Token]) -> Token:
    character = text[at]
    if character == '"':
        return _string(text, at)
    if character == "[":
        follows_name = bool(before) and before[-1].kind is TokenKind.NAME
        adjacent = follows_name and before[-1].offset + len(before[-1].text) == at
        match = (_OPTIONS.match(text, at) if adjacent else None) or _CLASS.match(text, at)
        if match is None:
            raise _error(text, at, "this character class is never closed", "Add the missing ']' on its line.")
        return Token(TokenKind.CLASS, match[0], at)
    for kind, pattern in ((TokenKind.NAME, _NAME), (TokenKind.MARK, _MARK), (TokenKind.NUMBER, _NUMBER)):
        if (match := pattern.match(text, at)) is not None:
            if kind is TokenKind.MARK and match[0] == "+" and (number := _NUMBER.match(text, at)):
                # A digit cannot follow a repetition: only numbers begin with this sign.
                return Token(TokenKind.NUMBER, number[0], at)
            return Token(kind, match[0], at)
    raise _error(text, at, f"unexpected {character!r}", "Quote the character.")


def _string(text: str, at: int) -> Token:
    match = _STRING.match(text, at)
    if match is None:
        raise _error(text, at, "this string is never closed", "Add the missing '\"' on its line; write new lines \\n.")
    codes = []
    inside, end = at + 1, match.end() - 1
    while inside < end:
        code, width = character_at(text, inside)
        codes.append(chr(code))
        inside += width
    return Token(TokenKind.STRING, match[0], at, "".join(codes))


def character_at(text: str, at: int, more: str = "") -> tuple[int, int]:
    """The code point at ``at``, an escape or itself, and how many characters it takes.

    ``more`` are characters that stand for themselves behind a backslash.  Raises `GrammarError` for other escapes.
    """
    if text[at] != "\\":
        return ord(text[at]), 1
    letter = text[at + 1]
    if letter in more:
        return ord(letter), 2
    if letter in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[letter], 2
    match = _HEXADECIMAL.match(text, at)
    if match is None:
        raise _error(text, at, f"unknown escape '\\{letter}'", "Write the character itself, or \\uXXXX.")
    code = int(match[1] or match[2] or match[3], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise _error(text, at, "there is no such character", "Characters are \\u0000 to \\U0010FFFF, no surrogates.")
    return code, len(match[0])


def _with_rules(text: str, tokens: list[Token]) -> list[Token]:
    """The names before ``::=`` as rules."""
    for index, token in enumerate(tokens):
        if token.text != "::=" or token.kind is not TokenKind.MARK:
            continue
        at = index - 1
        if at > 0 and tokens[at].kind is TokenKind.CLASS and tokens[at - 1].kind is TokenKind.NAME:
            at -= 1
        if at < 0 or tokens[at].kind is not TokenKind.NAME:
            raise _error(text, token.offset, "expected the name of a rule before '::='", "Write: name ::= ...")
        name = tokens[at]
        line_start = text.rfind("\n", 0, name.offset) + 1
        if at > 0 and tokens[at - 1].offset >= line_start:
            raise _error(text, name.offset, "a rule begins on a new line", "Put a new line before its name.")
        tokens[at] = Token(TokenKind.RULE, name.text, name.offset)
    return tokens


def _error(text: str, offset: int, what: str, remedy: str) -> GrammarError:
    return GrammarError(what, where=place_of(text, offset), remedy=remedy)
