"""The terminals and small parts that all schemas share: constants, punctuation, names, any string and any number."""

from __future__ import annotations

from functools import lru_cache

from guided.grammar.ir import Body, Sequence, Terminal, shown
from guided.grammar.json_schema.layout import Spelling
from guided.grammar.json_schema.numbers.number_text import number_text
from guided.grammar.json_schema.numbers.ranges import ANY_NUMBER
from guided.grammar.json_schema.sets.strings import every_word, quoted
from guided.grammar.regular.expr import Expr, concat, literal
from guided.grammar.regular.texts import CONTENT

NULL_TEXT = Terminal(literal(b"null"), "null")
TRUE_TEXT = Terminal(literal(b"true"), "true")
FALSE_TEXT = Terminal(literal(b"false"), "false")
NO_TEXT = Sequence(())


def sequence(*parts: Body) -> Body:
    """The parts one after another, those left out that are `NO_TEXT`."""
    if NO_TEXT in parts:
        parts = tuple([part for part in parts if part is not NO_TEXT])
    return parts[0] if len(parts) == 1 else Sequence(parts)


@lru_cache(maxsize=2)
def any_scalar(spelling: Spelling) -> tuple[Terminal, ...]:
    """Any string and any number."""
    return Terminal(quoted(CONTENT, spelling), "string"), Terminal(number_text(ANY_NUMBER, spelling), "number")


@lru_cache(maxsize=64)
def punctuation(text: str, before: Expr, after: Expr) -> Terminal:
    """A mark with the white space around it."""
    return Terminal(concat(before, literal(text.encode()), after), text)


def text_of(name: str) -> bytes | None:
    """The text of a name, in UTF-8; None where that is seen only with a closer look."""
    return name.encode() if name.isascii() else None


@lru_cache(maxsize=65536)
def key_of(name: str, spelling: Spelling) -> Terminal:
    """The terminal of a declared name; names recur from schema to schema, so terminals are shared."""
    text = literal(name.encode()) if name.isascii() else every_word(frozenset((name,)))
    return Terminal(quoted(text, spelling), f"property name {shown(name)}")


@lru_cache(maxsize=16384)
def other_key(names: Expr, spelling: Spelling) -> Terminal:
    """The terminal of undeclared names."""
    return Terminal(quoted(names, spelling), "another property name")
