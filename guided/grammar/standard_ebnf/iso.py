"""EBNF of ISO/IEC 14977:1996 as pieces, with the alternative representations of its marks.

``name = a, b | 3 * "c", [d], {e}, (f - g);`` and ``(* comments *)``, which nest.  Gaps inside a name count for
nothing, as in the standard: ``syntax rule`` is ``syntaxrule``.  Beyond it, names may hold ``_``, and texts any
character.

The standard leaves the meaning of special sequences to who reads them.  Here ``? U+000A ?`` is a character and
``? U+0000 .. U+10FFFF ?`` one of a range; others are refused.
"""

from __future__ import annotations

import re

from guided.errors import GrammarError, LimitError, UnsupportedError
from guided.grammar.folding import place_of
from guided.grammar.pieces import Class, Definition, Name, Piece, Repeated, Row, Text, row
from guided.grammar.regular.characters import normalise
from guided.grammar.standard_ebnf.cutting import Reader, Token, cut, either
from guided.grammar.standard_ebnf.exceptions import Difference

__all__ = ["read_iso"]

_TOKENS = re.compile(
    r"""(?P<space>\s+)
      | (?P<name>[A-Za-z][A-Za-z0-9_]*(?:\s+[A-Za-z0-9_]+)*)
      | (?P<number>[0-9]+)
      | (?P<text>"[^"\n]+"|'[^'\n]+')
      | (?P<special>\?[^?]*\?)
      | (?P<mark>\(/|/\)|\(:|:\)|[()\[\]{}|/!,;.=*-])""",
    re.VERBOSE,
)
_COMMENT_MARKS = re.compile(r"""\(\*|\*\)|"[^"\n]+"|'[^'\n]+'|\?[^?]*\?""")
_CHARACTERS = re.compile(r"\?\s*U\+([0-9A-Fa-f]{1,6})(?:\s*\.\.\s*U\+([0-9A-Fa-f]{1,6}))?\s*\?")
_REMEDY = "Quote texts of one character or more, and close quotes and special sequences."
_ENDS = {"[": "]", "(/": "/)", "{": "}", "(:": ":)", "(": ")"}


def read_iso(text: str) -> dict[str, Definition]:
    """All rules by name, in order, and behind them what stands for exceptions.

    Raises `GrammarError`, `UnsupportedError` or `LimitError` with line and column.

    >>> list(read_iso('number = digit, { digit }; digit = "0" | "1";'))
    ['number', 'digit']
    """
    return _Reader(text, cut(_without_comments(text), _TOKENS, _REMEDY)).rules()


def _without_comments(text: str) -> str:
    """The text with a space for each character of a comment, so that places stay; line ends are kept."""
    result = list(text)
    depth = begun = at = 0
    while found := _COMMENT_MARKS.search(text, at):
        mark = found.group()
        # What looks quoted inside a comment is prose: an apostrophe has no other end.
        at = found.end() if mark in ("(*", "*)") or not depth else found.start() + 1
        if mark == "(*":
            begun = begun if depth else found.start()
            depth += 1
        elif mark == "*)" and depth:
            depth -= 1
            if not depth:
                result[begun:at] = ["\n" if character == "\n" else " " for character in text[begun:at]]
    if depth:
        raise GrammarError("a comment is never closed", where=place_of(text, begun), remedy="Close it with '*)'.")
    return "".join(result)


class _Reader(Reader):
    def rules(self) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        while self.token.kind != "end":
            token = self.take()
            if token.kind != "name":
                raise self.error(f"unexpected {token.text!r}", token, "A rule begins: name = ...")
            self.expect("=", after="after the name of a rule")
            body = self.options()
            self.expect(";", ".", after="after a rule")
            self.define(found, "".join(token.text.split()), body, token.offset)
        return self.exceptions.settled(found, self.text)

    def options(self) -> Piece:
        options = [self.sequence()]
        while self.takes("|", "/", "!"):
            options.append(self.sequence())
        return either(options)

    def sequence(self) -> Piece:
        parts = [self.term()]
        while self.takes(","):
            parts.append(self.term())
        return row(parts)

    def term(self) -> Piece:
        first = self.token
        body = self.factor()
        minus = self.token
        if not self.takes("-"):
            return body
        without = self.factor()
        return self.exceptions.add(Difference(body, without, minus.offset, self.label(first)))

    def factor(self) -> Piece:
        count = self.token
        if count.kind != "number":
            return self.primary()
        self.take()
        self.expect("*", after="after a count")
        if len(count.text) > 10:
            raise LimitError(
                "a repetition count is too large", where=place_of(self.text, count.offset), remedy="Stay below 10**9."
            )
        return Repeated(self.primary(), int(count.text), int(count.text))

    def primary(self) -> Piece:
        token = self.token
        match token.kind:
            case "name":
                self.take()
                return Name("".join(token.text.split()), token.offset)
            case "text":
                self.take()
                return Text(token.text[1:-1])
            case "special":
                self.take()
                return self.special(token)
        closing = _ENDS.get(token.text) if token.kind == "mark" else None
        if closing is None:
            # Nothing is the empty sequence; whoever reads on says what may follow it.
            return Row(())
        self.take()
        self.deeper(token)
        inner = self.options()
        self.expect(closing, after=f"for {token.text!r} of {place_of(self.text, token.offset)}")
        self.depth -= 1
        if token.text == "(":
            return inner
        return Repeated(inner, 0, 1 if token.text in ("[", "(/") else None)

    def special(self, token: Token) -> Piece:
        found = _CHARACTERS.fullmatch(token.text)
        if found is None:
            raise UnsupportedError(
                f"the special sequence {token.text}, whose meaning the standard leaves open",
                where=place_of(self.text, token.offset),
                remedy="Write a character as ? U+000A ?, a range as ? U+0000 .. U+001F ?, other things as rules.",
            )
        low = int(found[1], 16)
        high = int(found[2], 16) if found[2] else low
        ranges = normalise([(low, high)]) if high <= 0x10FFFF else ()
        if not ranges:
            raise self.error(f"{token.text} has no characters", token, "Write U+0000 to U+10FFFF, without surrogates.")
        return Class(ranges)
