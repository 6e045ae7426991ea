"""The white space of JSON texts: all that RFC 8259 allows, what programs write, none, or what a user says."""

from __future__ import annotations

from guided.grammar.ir import Terminal
from guided.grammar.json_schema.layout import Layout, Order, Spelling
from guided.grammar.regular.expr import alternation, byte_set, concat, literal, optional, repeat

__all__ = ["MOST_INDENTED", "layout_of"]

_SPACE = repeat(byte_set(1 << 0x20 | 1 << 0x09 | 1 << 0x0A | 1 << 0x0D))
_ANY_SPACE = Terminal(_SPACE, "white space")

MOST_INDENTED = 64
"""Characters of indentation behind a line break in plain spelling: 16 levels of four spaces, or 32 of two."""

_LINE_BREAK = concat(optional(literal(b"\r")), literal(b"\n"))
_INDENTATION = repeat(byte_set(1 << 0x20 | 1 << 0x09), 0, MOST_INDENTED)
_PLAIN_SPACE = Terminal(
    optional(alternation((literal(b" "), concat(_LINE_BREAK, _INDENTATION)))), "a space or a line break"
)
_ONE_SPACE = Terminal(optional(literal(b" ")), "a space")


def layout_of(order: Order, spelling: Spelling, whitespace: str | None, *, alone: bool = True) -> Layout:
    """The layout that options of `guided.json_schema` ask for; ``alone``: white space may stand around the text."""
    return Layout(order, spelling, *_space(whitespace, spelling), alone)


def _space(pattern: str | None, spelling: Spelling) -> tuple[Terminal | None, Terminal | None]:
    """White space between tokens, and before colons."""
    if pattern is None and spelling is Spelling.PLAIN:
        return _PLAIN_SPACE, _ONE_SPACE
    if pattern is None or pattern == "any":
        return _ANY_SPACE, _ANY_SPACE
    if pattern == "compact":
        return None, None
    from guided.grammar.json_schema.keywords.patterns import white_space

    space = Terminal(white_space(pattern, _SPACE), "white space")
    return space, space
