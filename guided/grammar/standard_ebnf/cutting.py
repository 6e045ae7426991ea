"""The text of an EBNF grammar cut into tokens by a notation's pattern, and the cursor over them that readers share.

What tokens mean is said by the readers, `iso` and `w3c`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from guided.errors import GrammarError, LimitError
from guided.grammar.folding import place_of
from guided.grammar.pieces import Definition, Either, Piece
from guided.grammar.standard_ebnf.exceptions import Exceptions

__all__ = ["MAX_NESTING", "Reader", "Token"]

MAX_NESTING = 100
"""Brackets inside each other; what follows recurses."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is the name of the group of the notation's pattern, ``end`` behind the last token."""

    kind: str
    text: str
    offset: int


class Reader:
    """A place in the tokens of a text."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = [*tokens, Token("end", "", len(text))]
        self.at = 0
        self.depth = 0
        self.exceptions = Exceptions()

    @property
    def token(self) -> Token:
        """The next one."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """The next one, which is passed."""
        token = self.token
        self.at += token.kind != "end"
        return token

    def takes(self, *marks: str) -> bool:
        """Is the next token one of these marks?  Then it is passed."""
        found = self.token.kind == "mark" and self.token.text in marks
        self.at += found
        return found

    def expect(self, *marks: str, after: str) -> None:
        """Pass one of these marks, or raise `GrammarError`."""
        if not self.takes(*marks):
            wanted = " or ".join(map(repr, marks))
            raise self.error(f"expected {wanted} {after}", self.token, f"Write {marks[0]!r} there.")

    def deeper(self, token: Token) -> None:
        """Go into a bracket; raises `LimitError`."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise LimitError(
                f"brackets nest deeper than {MAX_NESTING} levels",
                where=place_of(self.text, token.offset),
                remedy="Give the inner parts rules of their own.",
            )

    def define(self, rules: dict[str, Definition], name: str, body: Piece, offset: int) -> None:
        """Add a rule; raises `GrammarError` for the second of a name."""
        if name in rules:
            where = Token("name", name, offset)
            raise self.error(f"rule {name!r} is defined twice", where, "Join the definitions with '|'.")
        rules[name] = Definition(body, offset)

    def label(self, first: Token) -> str:
        """The text from a token to before the next one, as one line."""
        return " ".join(self.text[first.offset : self.token.offset].split())

    def error(self, what: str, token: Token, remedy: str) -> GrammarError:
        """At a token."""
        return GrammarError(what, where=place_of(self.text, token.offset), remedy=remedy)


def either(options: list[Piece]) -> Piece:
    """Any one of the options; a single one as it is."""
    return options[0] if len(options) == 1 else Either(tuple(options))


def cut(text: str, pattern: re.Pattern[str], remedy: str, offset: int = 0) -> list[Token]:
    """The tokens, without those of the groups ``space`` and ``comment``; raises `GrammarError` where none matches."""
    surrogate = _SURROGATE.search(text)
    if surrogate is not None:
        raise GrammarError(
            f"{surrogate.group()!r} is no character",
            where=place_of(text, surrogate.start()),
            remedy="Decode the grammar's file as UTF-8.",
        )
    tokens = []
    while offset < len(text):
        found = pattern.match(text, offset)
        if found is None or found.lastgroup is None or found.end() == offset:
            character = text[offset]
            never = {'"': "a quoted text is", "'": "a quoted text is", "[": "a bracket is", "?": "a sequence is"}
            what = f"{never[character]} never closed" if character in never else f"unexpected {character!r}"
            raise GrammarError(what, where=place_of(text, offset), remedy=remedy)
        if found.lastgroup not in ("space", "comment"):
            tokens.append(Token(found.lastgroup, found.group(), offset))
        offset = found.end()
    return tokens
