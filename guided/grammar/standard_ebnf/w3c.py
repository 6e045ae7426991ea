"""The W3C's EBNF as pieces: the notation of section 6 of the XML 1.0 recommendation.

``name ::= ...``, ``#x9``, ``[a-z]``, ``[^#x5D]``, texts in either quotes, without escapes, ``A? A+ A*``, ``A B``,
``A | B``, ``A - B``, ``/* comments */``; rules may carry their number, ``[27]``, as recommendations print them.

The recommendation does not say how ``A B - C`` is bracketed, nor ``A - B - C``: both are refused.  Constraints in
prose, ``[wfc: ...]`` and ``[vc: ...]``, are refused too; in brackets they would look like classes.
"""

from __future__ import annotations

import re

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.folding import place_of
from guided.grammar.pieces import Class, Definition, Name, Piece, Repeated, Text, row
from guided.grammar.regular.characters import CharacterSet, negate, normalise
from guided.grammar.standard_ebnf.cutting import Reader, Token, cut, either
from guided.grammar.standard_ebnf.exceptions import Difference

__all__ = ["read_w3c"]

_TOKENS = re.compile(
    r"""(?P<rule>(?:(?<![^\n])[ \t]*\[\d+[a-z]?\][ \t]+)?[A-Za-z_][\w.-]*\s*::=)
      | (?P<space>\n|[^\S\n]+)
      | (?P<comment>/\*(?s:.*?)\*/)
      | (?P<name>[A-Za-z_](?:[\w.]|-(?=\w))*)
      | (?P<text>"[^"\n]*"|'[^'\n]*')
      | (?P<code>\#x[0-9a-fA-F]+)
      | (?P<class>\[[^\]\n]+\])
      | (?P<mark>[()|?*+-])""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"[ \t]*\[\d+[a-z]?\][ \t]+")
_PROSE = re.compile(r"\[\s*(?:wfc|vc|nsc)\s*:", re.IGNORECASE)
_CODE = re.compile(r"#x([0-9a-fA-F]+)")
_REMEDY = "Quote texts, write characters as #xN, and close quotes and brackets on their line."


def read_w3c(text: str) -> dict[str, Definition]:
    """All rules by name, in order, and behind them what stands for exceptions.

    Raises `GrammarError`, `UnsupportedError` or `LimitError` with line and column.

    >>> list(read_w3c('number ::= digit+\\n[2] digit ::= [0-9]'))
    ['number', 'digit']
    """
    return _Reader(text, cut(text, _TOKENS, _REMEDY, _first(text))).rules()


def _first(text: str) -> int:
    """Where rules begin: a byte order mark is none of the text."""
    return 1 if text.startswith("\ufeff") else 0


class _Reader(Reader):
    def rules(self) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        while self.token.kind != "end":
            token = self.take()
            if token.kind != "rule":
                raise self.error(f"unexpected {token.text!r}", token, "A rule begins: name ::= ...")
            number = _NUMBER.match(token.text)
            skipped = number.end() if number else 0
            name = token.text[skipped:].removesuffix("::=").rstrip()
            self.define(found, name, self.options(), token.offset + skipped)
        return self.exceptions.settled(found, self.text)

    def options(self) -> Piece:
        options = [self.sequence()]
        while self.takes("|"):
            options.append(self.sequence())
        return either(options)

    def ends(self) -> bool:
        token = self.token
        return token.kind in ("rule", "end") or (token.kind == "mark" and token.text in "|)")

    def sequence(self) -> Piece:
        if self.ends():
            raise self.error("an option without anything in it", self.token, "Write the empty text as ''.")
        first = self.token
        parts = [self.item()]
        minus = None
        while not self.ends():
            if self.token.text == "-" and self.token.kind == "mark":
                minus = self.take()
                if len(parts) > 1:
                    break
                without = self.item()
                found = Difference(parts[0], without, minus.offset, self.label(first))
                parts = [self.exceptions.add(found)]
                if not self.ends():
                    minus = self.token
                    break
                return parts[0]
            parts.append(self.item())
        if minus is not None:
            raise self.error(
                "an exception beside other parts, of which the notation does not say how they are bracketed",
                minus,
                "Put parentheses around the exception: (A - B) C.",
            )
        return row(parts)

    def item(self) -> Piece:
        piece = self.primary()
        for mark, low, high in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self.takes(mark):
                return Repeated(piece, low, high)
        return piece

    def primary(self) -> Piece:
        token = self.take()
        match token.kind:
            case "name":
                return Name(token.text, token.offset)
            case "text":
                return Text(token.text[1:-1])
            case "code":
                code = self.code(token.text, token.offset)
                return Class(((code, code),))
            case "class":
                return Class(self.characters(token))
        if token.text == "(":
            self.deeper(token)
            inner = self.options()
            self.expect(")", after="after a group")
            self.depth -= 1
            return inner
        raise self.error(
            f"unexpected {token.text!r}" if token.text else "the text ends here",
            token,
            "Write a name, a text or (...).",
        )

    def code(self, written: str, offset: int) -> int:
        """A character by its number; raises `GrammarError`, also for surrogates, which UTF-8 has not."""
        code = int(written[2:], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise GrammarError(
                f"{written} is no character",
                where=place_of(self.text, offset),
                remedy="Write #x0 to #xD7FF or #xE000 to #x10FFFF.",
            )
        return code

    def characters(self, token: Token) -> CharacterSet:
        if _PROSE.match(token.text):
            raise UnsupportedError(
                f"the constraint {token.text!r}, which is prose",
                where=place_of(self.text, token.offset),
                remedy="Leave it out, and write what it says as rules where that matters.",
            )
        inside = token.text[1:-1]
        at = 1 if inside.startswith("^") else 0
        negated = at == 1
        if at == len(inside):
            raise self.error("a class without characters", token, "Write them behind '^'.")
        ranges = []
        while at < len(inside):
            low, at = self.member(token, inside, at)
            high = low
            if inside.startswith("-", at) and at + 1 < len(inside):
                high, at = self.member(token, inside, at + 1)
                if high < low:
                    raise self.error(f"a range of {token.text} is in the wrong order", token, "Write low-high.")
            ranges.append((low, high))
        found = normalise(ranges)
        found = negate(found) if negated else found
        if not found:
            raise self.error(f"{token.text} has no characters", token, "Leave it out.")
        return found

    def member(self, token: Token, inside: str, at: int) -> tuple[int, int]:
        """The code of the character at a place of a class, and where it ends."""
        found = _CODE.match(inside, at)
        if found is None:
            return ord(inside[at]), at + 1
        return self.code(found.group(), token.offset + 1 + at), found.end()
