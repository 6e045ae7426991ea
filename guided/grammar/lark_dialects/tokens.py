"""The text of a grammar in a dialect of Lark's notation cut into tokens, with their places."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from guided.errors import GrammarError
from guided.grammar.folding import place_of

__all__ = ["Token", "TokenKind", "cut"]


class TokenKind(Enum):
    """What a token is; a mark is its own text."""

    NAME = "a name"
    STRING = "a string"
    PATTERN = "a pattern"
    NUMBER = "a number"
    SPECIAL = "a special token"
    GRAMMAR = "a grammar's name"
    DIRECTIVE = "a directive"
    MARK = "a mark"
    NEW_LINE = "the end of the line"
    END = "the end of the text"


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` as it is written; ``value`` is the JSON value behind a directive, and a string without its escapes."""

    kind: TokenKind
    text: str
    offset: int
    value: Any = None


_TOKENS = re.compile(
    r"""(?P<blank>[ \t\f]+|\#[^\r\n]*|//[^\r\n]*)
    | (?P<NEW_LINE>\r\n|\r|\n)
    | (?P<STRING>"(?:\\[^\r\n]|[^"\\\r\n])*"i?)
    | (?P<PATTERN>/(?!/)(?:\\.|[^/\\])+/[A-Za-z]*)
    | (?P<SPECIAL><[^<>\s]+>)
    | (?P<GRAMMAR>@[A-Za-z0-9_-]+)
    | (?P<DIRECTIVE>%[A-Za-z_]+)
    | (?P<MARK>->|::|\.\.|[:,.=()\[\]{}|&~*+](?![0-9])|[:,.=()\[\]{}|&~*]|\?(?![A-Za-z_]))
    | (?P<NAME>(?:[!?]{0,2}[A-Za-z]|[!?]{0,2}_)[A-Za-z0-9_-]*)
    | (?P<NUMBER>0[xX][0-9a-fA-F]+|[+-]?[0-9]+(?:\.(?!\.)[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    | (?P<mark>\?)""",
    re.VERBOSE | re.DOTALL,
)
_WITH_JSON = frozenset(("%json", "%regex", "%llguidance", "%grammar_options"))
_HEXADECIMAL_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\x([0-9A-Fa-f]{2})")


def cut(text: str) -> list[Token]:
    """All tokens but blanks and comments, the end last.  Raises `GrammarError` for what is none.

    >>> [token.text for token in cut('start: "a"i /b/ // comment')]
    ['start', ':', '"a"i', '/b/', '']
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None or match.lastgroup is None:
            raise _error(text, at, f"unexpected {text[at]!r}", "Close or quote it; strings stand in double quotes.")
        offset, at = at, match.end()
        if match.lastgroup == "blank":
            continue
        kind = TokenKind[match.lastgroup.upper()]
        value: Any = None
        if kind is TokenKind.STRING:
            value = _unquoted(text, match[0].removesuffix("i"), offset)
        elif match[0] in _WITH_JSON:
            value, at = _json(text, at, offset)
        tokens.append(Token(kind, match[0], offset, value))
    tokens.append(Token(TokenKind.END, "", len(text)))
    return tokens


def _unquoted(text: str, written: str, offset: int) -> str:
    try:
        found = json.loads(_HEXADECIMAL_ESCAPE.sub(r"\1\\u00\2", written))
        found.encode()
    except ValueError as error:
        remedy = 'Escapes are those of JSON: \\n, \\t, \\", \\\\, \\uXXXX; control characters are written so.'
        raise _error(text, offset, f"malformed string {written}", remedy) from error
    return str(found)


def _json(text: str, at: int, offset: int) -> tuple[Any, int]:
    while at < len(text) and text[at].isspace():
        at += 1
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except ValueError as error:
        place = getattr(error, "pos", at)
        raise _error(text, place, f"no JSON behind {text[offset : offset + 6].split()[0]}", "Correct it.") from error


def _error(text: str, offset: int, what: str, remedy: str) -> GrammarError:
    return GrammarError(what, where=place_of(text, offset), remedy=remedy)
