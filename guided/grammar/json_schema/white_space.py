"""The white space of JSON texts: all that RFC 8259 allows, what programs write, none, or what a user says."""

from __future__ import annotations

from guided.errors import GrammarError
from guided.grammar.ir import Terminal
from guided.grammar.json_schema.layout import Layout, Order, Spelling
from guided.grammar.regular.expr import EPSILON, Expr, alternation, byte_set, concat, literal, optional, repeat

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


def layout_of(
    order: Order,
    spelling: Spelling,
    whitespace: str | None,
    separators: tuple[str, str] | None = None,
    *,
    alone: bool = True,
) -> Layout:
    """The layout that options of `guided.json_schema` ask for; ``alone``: white space may stand around the text."""
    if separators is not None:
        if whitespace not in (None, "compact"):
            raise GrammarError(
                "separators say all of the white space there is", remedy="Leave out whitespace or separators."
            )
        comma, colon = _around(separators)
        return Layout(order, spelling, None, comma, colon, alone)
    space, before_colon = _space(whitespace, spelling)
    behind = EPSILON if space is None else space.expr
    before = EPSILON if before_colon is None else before_colon.expr
    return Layout(order, spelling, space, (EPSILON, behind), (before, behind), alone)


def _around(separators: tuple[str, str]) -> list[tuple[Expr, Expr]]:
    """What stands before and behind the marks of separators."""
    remedy = 'Pass separators=(", ", ": "), as to json.dumps.'
    if isinstance(separators, str) or len(separators) != 2:
        raise GrammarError(f"{separators!r} are not two separators", remedy=remedy)
    found = []
    for given, mark in zip(separators, ",:", strict=True):
        before, there, behind = given.partition(mark) if isinstance(given, str) else ("", "", "")
        if not there or (before + behind).strip(" \t\n\r"):
            raise GrammarError(f"{given!r} is not {mark!r} with white space around it", remedy=remedy)
        found.append((literal(before.encode()), literal(behind.encode())))
    return found


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
