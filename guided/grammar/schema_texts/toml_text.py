"""TOML: keys and values, then a table for each object inside, and an array of tables for each array of objects.

TOML has no null, integers of 64 bits, and an object at the root; other values are not written.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from guided.grammar.ir import Body, Member, Members, Repetition, Terminal
from guided.grammar.json_schema.layout import Order, Spelling
from guided.grammar.json_schema.lowering.terminals import NO_TEXT, sequence
from guided.grammar.json_schema.numbers.number_text import number_text
from guided.grammar.json_schema.numbers.ranges import NumberRange
from guided.grammar.json_schema.sets.shape import ArrayShape, Need, ObjectShape, Shape
from guided.grammar.json_schema.white_space import MOST_INDENTED
from guided.grammar.regular.decide import is_empty, shortest
from guided.grammar.regular.expr import (
    EMPTY,
    Expr,
    alternation,
    byte_set,
    concat,
    intersection,
    literal,
    optional,
    repeat,
)
from guided.grammar.regular.texts import CONTENT
from guided.grammar.schema_texts.escaping import quoted, within, without
from guided.grammar.schema_texts.lowering import TextLowering, either, mark

__all__ = ["TomlLowering"]

MAX_TABLES = 8
"""Names in the header of a table; what is nested deeper is written in the line."""
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_SPACE = literal(b" ")
_IN_TABLE = optional(_SPACE)
_IN_ARRAY = optional(
    alternation((_SPACE, concat(literal(b"\n"), repeat(byte_set(1 << 0x20 | 1 << 0x09), 0, MOST_INDENTED))))
)
Path = tuple[str, ...]


class TomlLowering(TextLowering):
    """Documents as TOML 1.0 reads them."""

    format_name = "TOML"

    def adapted(self, shape: Shape, need: Need) -> Shape:
        """Values without null; at the root, objects."""
        found = self.of_characters(shape, need, None)
        numbers = tuple(each for each in found.numbers if not is_empty(_numbers(number_text(each, Spelling.PLAIN))))
        if need == self.graph.root:
            return Shape(objects=found.objects)
        return Shape(False, found.true, found.false, numbers, found.strings, found.arrays, found.objects)

    def text(self) -> Body:
        """The document."""
        return either([self._table(thing, self.graph.root, ()) for thing in self.objects(self.graph.root)])

    # -- tables ---------------------------------------------------------------------------------------------------

    def _table(self, thing: ObjectShape, need: Need, path: Path) -> Body:
        """Lines of keys, then the tables inside."""
        counted = thing.low > len(thing.required) or (thing.high is not None and thing.high < len(thing.declared))
        if thing.clauses or counted:
            return self.members(thing, need, ("line", path), self._line, NO_TEXT)
        alive = self.graph.alive
        apart = {name for name, of in thing.declared.items() if of in alive and self._is_apart(of, (*path, name))}
        lines = ObjectShape(
            {name: of for name, of in thing.declared.items() if name not in apart},
            thing.classes,
            thing.required - apart,
        )
        parts = [self.members(lines, need, ("line", path), self._line, NO_TEXT)]
        if apart:
            tables = []
            for name, of in thing.declared.items():
                if name in apart:
                    self._inside(need, f"/properties/{name}", of)
                    head, body = self._apart(of, (*path, name))
                    tables.append(Member(head, body, name in thing.required))
            parts.append(Members(tuple(tables), (), NO_TEXT, self.order is Order.SCHEMA))
        return sequence(*parts)

    def _is_apart(self, need: Need, path: Path) -> bool:
        """Is a value written as a table, or as an array of them, and always so?"""
        shape = self.graph.shapes[need]
        if shape.has_scalar() or len(path) > MAX_TABLES:
            return False
        arrays, objects = self.arrays(need), self.objects(need)
        if not arrays:
            return bool(objects)
        return not objects and len(arrays) == 1 and self._are_tables(arrays[0], path)

    def _are_tables(self, array: ArrayShape, path: Path) -> bool:
        if array.counts or array.prefix or array.low < 1:
            return False
        return not self.arrays(array.rest) and self._is_apart(array.rest, path)

    def _apart(self, need: Need, path: Path) -> tuple[Terminal, Body]:
        """The first header, and what stands behind it."""
        name = ".".join(map(_written_name, path))
        arrays = self.arrays(need)
        if not arrays:
            head = _header(f"[{name}]")
            return head, self.rule(("table", need, path), self.place(need), lambda: self._tables(need, path))
        (array,) = arrays
        head = _header(f"[[{name}]]")
        self._inside(need, "/items", array.rest)
        body = self.rule(("table", array.rest, path), self.place(array.rest), lambda: self._tables(array.rest, path))
        high = None if array.high is None else array.high - 1
        return head, sequence(body, Repetition(sequence(head, body), array.low - 1, high))

    def _tables(self, need: Need, path: Path) -> Body:
        return either([self._table(thing, need, path) for thing in self.objects(need)])

    def _line(self, name: str, need: Need) -> tuple[Terminal, Body]:
        key = concat(literal(f"{_written_name(name)} = ".encode()))
        return Terminal(key, f"key {name!r}"), sequence(self._value(need, False), mark("\n"))

    # -- values in a line -----------------------------------------------------------------------------------------

    def _value(self, need: Need, in_table: bool) -> Body:
        return self.rule(("value", need, in_table), self.place(need), lambda: self._written(need, in_table))

    def _written(self, need: Need, in_table: bool) -> Body:
        options: list[Body] = []
        strings = self.strings(need)
        if strings is not EMPTY:
            options.append(Terminal(_texts(strings), "string"))
        numbers = self.numbers(need)
        if numbers is not EMPTY:
            options.append(Terminal(_numbers(numbers), "number"))
        options += [Terminal(text, "truth value") for text in self.constants(need)]
        for thing in self.objects(need):
            comma = mark(",", after=_IN_TABLE)
            if self.may_be_empty(thing):
                options.append(mark("{}"))
            if self.holds_members(thing):
                members = self.members(thing, need, "inline", self._inline, comma, least=1)
                options.append(sequence(mark("{", after=_IN_TABLE), members, mark("}", before=_IN_TABLE)))
        gap = _IN_TABLE if in_table else _IN_ARRAY
        for array in self.arrays(need):
            if array.low == 0 or not self.holds_items(array):
                options.append(mark("[]"))
            if self.holds_items(array):
                items = self.items(
                    array,
                    need,
                    ("items", in_table),
                    lambda of: self._value(of, in_table),
                    mark(",", after=gap),
                    least=1,
                )
                last = mark("]", before=alternation((gap, concat(literal(b","), gap))))
                options.append(sequence(mark("[", after=gap), items, last))
        return either(options)

    def _inline(self, name: str, need: Need) -> tuple[Terminal, Body]:
        return Terminal(literal(f"{_written_name(name)} = ".encode()), f"key {name!r}"), self._value(need, True)


def _written_name(name: str) -> str:
    if _BARE.match(name):
        return name
    text = shortest(quoted(literal(name.encode())))
    assert text is not None
    return text.decode()


def _header(text: str) -> Terminal:
    return Terminal(concat(optional(literal(b"\n")), literal(f"{text}\n".encode())), text)


@lru_cache(maxsize=4096)
def _texts(content: Expr) -> Expr:
    """Basic strings, and literal ones where these can be."""
    bare = within(content, without("'"))
    if bare is EMPTY:
        return quoted(content)
    return alternation((quoted(content), concat(literal(b"'"), bare, literal(b"'"))))


_WHOLE = number_text(NumberRange(low=Fraction(-(2**63)), high=Fraction(2**63 - 1), step=Fraction(1)), Spelling.PLAIN)
_FRACTIONAL = concat(CONTENT, byte_set(1 << ord(".") | 1 << ord("e") | 1 << ord("E")), CONTENT)
_FITTING = alternation((_WHOLE, _FRACTIONAL))


@lru_cache(maxsize=4096)
def _numbers(texts: Expr) -> Expr:
    """Of numbers in plain JSON those that are no integers beyond 64 bits."""
    found = intersection((texts, _FITTING))
    return EMPTY if is_empty(found) else found
