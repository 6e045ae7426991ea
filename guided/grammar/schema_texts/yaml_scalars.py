"""How YAML spells a single text: plain, in quotes, or as a block of lines.

What is plain is read as a text by YAML 1.1 and by 1.2 alike: nothing that either takes for a number, a date, a truth
value or null.
"""

from __future__ import annotations

from functools import lru_cache

from guided.grammar.regular.characters import CharacterSet, normalise, utf8
from guided.grammar.regular.decide import is_empty
from guided.grammar.regular.derivative import matches
from guided.grammar.regular.expr import (
    EMPTY,
    Expr,
    alternation,
    byte_set,
    complement,
    concat,
    difference,
    intersection,
    literal,
    optional,
    repeat,
    words,
)
from guided.grammar.regular.texts import CONTENT
from guided.grammar.schema_texts.escaping import PRINTED, escaped, indented, quoted, within, without

__all__ = ["block_texts", "is_plain_name", "numbers_of", "one_line"]

_BLOCK_CHARACTERS = without("")
_FLOW_CHARACTERS = without(",[]{}?")
_LETTERS = normalise(
    [(0x41, 0x5A), (0x61, 0x7A), (0x30, 0x39), (0x5F, 0x5F), *[span for span in PRINTED if span[0] > 0xA0]]
)
"""What plain texts begin with: letters, digits, the underscore, and what is not ASCII."""
_RESOLVED = words(
    word.encode()
    for name in ("y", "yes", "n", "no", "true", "false", "on", "off", "null")
    for word in (name, name.capitalize(), name.upper())
)
_LIKE_NUMBERS = concat(
    byte_set(sum(1 << byte for byte in b"0123456789_")),
    repeat(byte_set(sum(1 << byte for byte in b"0123456789abcdefABCDEFxXoOtTzZ_+-.: "))),
)
"""More than all that is read as a number or a time and begins with a digit."""


def _plain(characters: CharacterSet) -> Expr:
    any_of = repeat(utf8(characters))
    inside = concat(utf8(_LETTERS), any_of)
    excluded = [
        concat(CONTENT, literal(b": "), CONTENT),
        concat(CONTENT, literal(b" #"), CONTENT),
        concat(CONTENT, byte_set(1 << 0x20 | 1 << 0x3A)),
        _RESOLVED,
        _LIKE_NUMBERS,
    ]
    if characters is _FLOW_CHARACTERS:
        # Before a comma or a bracket a colon ends a name, and readers differ on what else.
        excluded.append(concat(CONTENT, literal(b":"), CONTENT))
    return intersection((inside, *map(complement, excluded)))


_PLAIN_BLOCK = _plain(_BLOCK_CHARACTERS)
_PLAIN_FLOW = _plain(_FLOW_CHARACTERS)
_LINES = repeat(utf8(normalise([*PRINTED, (0x0A, 0x0A)])))
_BLANK_LINE = alternation(
    [
        concat(
            alternation([literal(b"\n"), concat(CONTENT, literal(b"\n"))]),
            repeat(literal(b" "), 1),
            optional(concat(literal(b"\n"), CONTENT)),
        ),
        concat(repeat(literal(b" "), 1), optional(concat(literal(b"\n"), CONTENT))),
    ]
)
_BLOCK_TEXT = intersection(
    [
        concat(difference(utf8(PRINTED), literal(b" ")), _LINES),
        complement(_BLANK_LINE),
        complement(concat(CONTENT, literal(b"\n"))),
    ]
)
"""Lines of which the first begins with neither space nor line break, the last is not empty, none is of spaces alone."""
_SINGLE = (("'", b"''"),)


@lru_cache(maxsize=4096)
def one_line(content: Expr, flow: bool) -> Expr:
    """The texts in one line: plain where that is read as the text, or in either quotes."""
    plain = intersection((content, _PLAIN_FLOW if flow else _PLAIN_BLOCK))
    single = within(content, PRINTED)
    found = [quoted(content)]
    if not is_empty(plain):
        found.append(plain)
    if single is not EMPTY:
        found.append(concat(literal(b"'"), escaped(single, _SINGLE), literal(b"'")))
    return alternation(found)


@lru_cache(maxsize=4096)
def block_texts(content: Expr, n_spaces: int) -> Expr:
    """Texts as literal blocks of lines behind so many spaces, with the line break at their end; `EMPTY` for none."""
    margin = literal(b" " * n_spaces)
    found = []
    stripped = intersection((content, _BLOCK_TEXT))
    if not is_empty(stripped):
        found.append(concat(literal(b"|-\n"), margin, indented(stripped, n_spaces), literal(b"\n")))
    kept = intersection((content, concat(_BLOCK_TEXT, literal(b"\n"))))
    if not is_empty(kept):
        found.append(concat(literal(b"|\n"), margin, indented(kept, n_spaces)))
    return alternation(found)


def is_plain_name(name: str) -> bool:
    """May a name stand without quotes?"""
    return matches(_PLAIN_FLOW, name.encode())


def numbers_of(texts: Expr) -> Expr:
    """Of numbers in plain JSON those that YAML 1.1 reads as such, too: before an exponent a point, in it a sign."""
    e = byte_set(1 << ord("e") | 1 << ord("E"))
    bare = concat(repeat(byte_set(sum(1 << byte for byte in b"-0123456789")), 1), e, CONTENT)
    unsigned = concat(CONTENT, e, byte_set(sum(1 << byte for byte in b"0123456789")), CONTENT)
    return intersection((texts, complement(bare), complement(unsigned)))
