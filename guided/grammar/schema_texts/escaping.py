"""How formats spell the characters of a text: languages of texts to languages of what is written for them.

`escaped` replaces single characters, `indented` puts white space behind line breaks.  Both are automata that are made
state by state, where a text comes to them; which characters a format must escape, its own file says.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import cast

from guided.grammar.regular.characters import ANY_CHARACTER, CharacterSet, negate, normalise, utf8
from guided.grammar.regular.derivative import derivative, edges, inhabited
from guided.grammar.regular.expr import EMPTY, Expr, concat, intersection, literal, repeat
from guided.grammar.regular.stepwise import Step, stepwise
from guided.grammar.regular.texts import CONTENT

__all__ = ["JSON_ESCAPES", "PRINTED", "UNPRINTED", "escaped", "indented", "quoted", "within", "without"]

UNPRINTED: CharacterSet = normalise([(0x00, 0x1F), (0x7F, 0x9F), (0x2028, 0x2029), (0xFEFF, 0xFEFF), (0xFFFE, 0xFFFF)])
"""Characters that some of the formats must escape, refuse or read as line breaks, and which are escaped in all."""
PRINTED: CharacterSet = negate(UNPRINTED)

_SHORT = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", "\\": "\\"}
JSON_ESCAPES: Mapping[str, bytes] = {
    **{
        chr(code): f"\\u{code:04x}".encode() if chr(code) not in _SHORT else f"\\{_SHORT[chr(code)]}".encode()
        for low, high in UNPRINTED
        for code in range(low, high + 1)
    },
    "\\": b"\\\\",
}
"""Escapes that JSON5, YAML's and TOML's double-quoted texts have in common; the quote is not among them."""


def without(characters: str) -> CharacterSet:
    """All printed characters but for these."""
    return negate(normalise([*UNPRINTED, *[(ord(each), ord(each)) for each in characters]]))


def within(content: Expr, characters: CharacterSet) -> Expr:
    """Those texts that are made of the characters; `EMPTY` where there are none."""
    every = repeat(utf8(characters))
    found = every if content is CONTENT else intersection((content, every))
    return found if inhabited(found) else EMPTY


@lru_cache(maxsize=4096)
def quoted(content: Expr, quote: str = '"') -> Expr:
    """Texts between quotes, with the escapes of JSON; both quotes may enclose them."""
    mark = quote.encode()
    text = escaped(content, tuple({**JSON_ESCAPES, quote: b"\\" + mark}.items()))
    return concat(literal(mark), text, literal(mark))


@lru_cache(maxsize=4096)
def escaped(content: Expr, escapes: tuple[tuple[str, bytes], ...]) -> Expr:
    """The texts with some characters replaced.

    No replacement begins another, and each begins with a character that is itself replaced.
    """
    return stepwise(_Escaped(dict(escapes)), (content, b"", False))


class _Escaped:
    """States are ``(rest, begun, inside)``: what may come of the text; what was written of a replacement, or read of a
    character that others are replaced beside; which of the two."""

    def __init__(self, escapes: Mapping[str, bytes]) -> None:
        self._written = {character.encode(): text for character, text in escapes.items()}
        self._begun = {text[:n] for text in self._written for n in range(1, len(text))}

    def accepts(self, state: Hashable) -> bool:
        rest, begun, _ = cast("tuple[Expr, bytes, bool]", state)
        return not begun and rest.nullable

    def steps(self, state: Hashable) -> list[Step]:
        rest, begun, inside = cast("tuple[Expr, bytes, bool]", state)
        found = {} if begun and not inside else dict(self._plain(rest, begun))
        if not inside:
            found.update(self._replaced(rest, begun))
        return [(byte, byte, found[byte]) for byte in sorted(found)]

    def _plain(self, rest: Expr, begun: bytes) -> Iterator[tuple[int, Hashable]]:
        """Bytes of characters that stay as they are."""
        for low, high, target in edges(rest):
            for byte in range(low, high + 1):
                read = begun + bytes((byte,))
                if read in self._written:
                    continue
                if read not in self._begun:
                    yield byte, (target, b"", False)
                elif next(self._plain(target, read), None) is not None:
                    yield byte, (target, read, True)

    def _replaced(self, rest: Expr, begun: bytes) -> Iterator[tuple[int, Hashable]]:
        """Bytes of replacements."""
        for character, text in self._written.items():
            if not text.startswith(begun):
                continue
            after: Expr | None = rest
            for byte in character:
                after = after and derivative(after, byte)
            if after is not None:
                at = len(begun)
                yield text[at], (after, b"", False) if at + 1 == len(text) else (rest, text[: at + 1], False)


@lru_cache(maxsize=4096)
def indented(content: Expr, n_spaces: int) -> Expr:
    """Texts whose lines stand behind so many spaces, but for the first and empty ones.

    None of the texts may hold a line of nothing but white space.
    """
    return stepwise(_Indented(n_spaces), (content, n_spaces))


class _Indented:
    """States are ``(rest, column)``; 0: behind a line break; the last: in a line, or where the first begins."""

    def __init__(self, n_spaces: int) -> None:
        self._n = n_spaces

    def accepts(self, state: Hashable) -> bool:
        rest, column = cast("tuple[Expr, int]", state)
        return column in (0, self._n) and rest.nullable

    def steps(self, state: Hashable) -> list[Step]:
        rest, column = cast("tuple[Expr, int]", state)
        found: dict[int, Hashable] = {}
        inside = column >= self._n
        for low, high, target in edges(rest):
            for byte in range(low, high + 1):
                if byte == _LINE_BREAK:
                    if column in (0, self._n):
                        found[byte] = (target, 0)
                elif inside:
                    found[byte] = (target, self._n)
                else:
                    found[_SPACE] = (rest, column + 1 if column + 1 < self._n else self._n + 1)
        if column > self._n:
            # The indentation is written: no line break comes, since no line is of white space alone.
            found.pop(_LINE_BREAK, None)
        return [(byte, byte, found[byte]) for byte in sorted(found)]


_LINE_BREAK, _SPACE = 0x0A, 0x20
ANY_TEXT: CharacterSet = ANY_CHARACTER
"""Every character."""
