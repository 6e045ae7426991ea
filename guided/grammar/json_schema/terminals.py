"""The terminals and small parts that all schemas share: constants, punctuation, names, any string and any number."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from guided.grammar.ir import Body, Sequence, Terminal, shown
from guided.grammar.json_schema.number_text import number_text
from guided.grammar.json_schema.numbers import ANY_NUMBER
from guided.grammar.json_schema.strings import CONTENT, canonical, every_word, quoted
from guided.grammar.regular.expr import Expr, concat, literal

NULL_TEXT = Terminal(literal(b"null"), "null")
TRUE_TEXT = Terminal(literal(b"true"), "true")
FALSE_TEXT = Terminal(literal(b"false"), "false")
NO_TEXT = Sequence(())


def sequence(*parts: Body) -> Body:
    """The parts one after another, those left out that are `NO_TEXT`."""
    if NO_TEXT in parts:
        parts = tuple([part for part in parts if part is not NO_TEXT])
    return parts[0] if len(parts) == 1 else Sequence(parts)


@lru_cache(maxsize=1)
def any_scalar() -> tuple[Terminal, ...]:
    """Any string and any number."""
    return Terminal(quoted(CONTENT, False), "string"), Terminal(number_text(ANY_NUMBER), "number")


@lru_cache(maxsize=64)
def punctuation(text: str, before: Expr, after: Expr) -> Terminal:
    """A mark with the white space around it."""
    return Terminal(concat(before, literal(text.encode()), after), text)


def text_of(name: str) -> bytes | None:
    """The text of a name whose key is every spelling of it; None where that is seen only with a closer look."""
    return name.encode() if name.isascii() else None


@lru_cache(maxsize=65536)
def key_of(name: str, compact: bool) -> Terminal:
    """The terminal of a declared name; names recur from schema to schema, so terminals are shared."""
    if compact:
        expr = literal(canonical(name))
    else:
        expr = quoted(literal(name.encode()) if name.isascii() else every_word(frozenset((name,))), False)
    return Terminal(expr, f"property name {shown(name)}")


@lru_cache(maxsize=16384)
def other_key(names: Expr, compact: bool) -> Terminal:
    """The terminal of undeclared names."""
    return Terminal(quoted(names, compact), "another property name")


def plain(value: Fraction) -> bytes:
    """The number as ``json.dumps`` writes it where a float holds it exactly, else in plain decimals."""
    if value.denominator == 1:
        return str(value.numerator).encode()
    near = repr(float(value))
    from decimal import Decimal

    if Fraction(Decimal(near)) == value:
        return near.encode()
    places = 0
    while value.denominator != 1:
        value, places = value * 10, places + 1
    sign, digits = ("-", -value.numerator) if value < 0 else ("", value.numerator)
    text = str(digits).rjust(places + 1, "0")
    return f"{sign}{text[:-places]}.{text[-places:]}".encode()
