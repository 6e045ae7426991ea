"""JSON5: unquoted names, both quotes, trailing commas and comments."""

from __future__ import annotations

import re

from guided.grammar.ir import Body, Terminal
from guided.grammar.json_schema.layout import Order
from guided.grammar.json_schema.lowering.terminals import sequence
from guided.grammar.json_schema.satisfiability.graph import Graph
from guided.grammar.json_schema.sets.shape import Need, Shape
from guided.grammar.json_schema.white_space import MOST_INDENTED
from guided.grammar.regular.characters import normalise, utf8
from guided.grammar.regular.expr import (
    EMPTY,
    Expr,
    alternation,
    byte_set,
    complement,
    concat,
    intersection,
    literal,
    optional,
    repeat,
)
from guided.grammar.regular.texts import CONTENT
from guided.grammar.schema_texts.escaping import PRINTED, quoted
from guided.grammar.schema_texts.lowering import TextLowering, either, mark

__all__ = ["Json5Lowering"]

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_SPACE = literal(b" ")
_LINE = concat(literal(b"\n"), repeat(byte_set(1 << 0x20 | 1 << 0x09), 0, MOST_INDENTED))
_PLAIN = optional(alternation((_SPACE, _LINE)))
_COMMENT_TEXT = repeat(utf8(normalise([*PRINTED, (0x09, 0x09)])))
_LINE_COMMENT = concat(literal(b"//"), _COMMENT_TEXT, _LINE)
_BLOCK_COMMENT = concat(
    literal(b"/*"),
    intersection(
        (
            _COMMENT_TEXT,
            complement(concat(CONTENT, literal(b"*/"), CONTENT)),
            complement(concat(CONTENT, literal(b"*"))),
        )
    ),
    literal(b"*/"),
    _PLAIN,
)
GAP = concat(_PLAIN, repeat(alternation((_LINE_COMMENT, _BLOCK_COMMENT))))
"""A space or a line break with its indentation, and comments."""


class Json5Lowering(TextLowering):
    """Values as JSON5 writes them."""

    format_name = "JSON5"

    def __init__(self, graph: Graph, order: Order) -> None:
        self._gap = Terminal(GAP, "white space")
        # A comma may stand behind the last part, and then no other does.
        self._comma = mark(",", after=GAP)
        self._last = Terminal(concat(optional(concat(literal(b","), GAP))), "trailing comma")
        super().__init__(graph, order)

    def adapted(self, shape: Shape, need: Need) -> Shape:
        """All values."""
        return self.of_characters(shape, need, None)

    def text(self) -> Body:
        """A value, with white space around it."""
        return sequence(self._gap, self._value(self.graph.root), self._gap)

    def _value(self, need: Need) -> Body:
        return self.rule(need, self.place(need), lambda: self._written(need))

    def _written(self, need: Need) -> Body:
        options: list[Body] = []
        strings = self.strings(need)
        if strings is not EMPTY:
            options.append(Terminal(alternation((quoted(strings), quoted(strings, "'"))), "string"))
        numbers = self.numbers(need)
        if numbers is not EMPTY:
            options.append(Terminal(numbers, "number"))
        options += [Terminal(text, "truth value") for text in self.constants(need)]
        if self.graph.shapes[need].null:
            options.append(mark("null"))
        for thing in self.objects(need):
            members = self.members(thing, need, "member", self._member, self._comma, extra=self._extra)
            if not self.holds_members(thing):
                options.append(sequence(mark("{", after=GAP), mark("}")))
            elif self.may_be_empty(thing):
                some = self.members(thing, need, "member", self._member, self._comma, least=1, extra=self._extra)
                options.append(
                    sequence(mark("{", after=GAP), either([mark("}"), sequence(some, self._last, mark("}"))]))
                )
            else:
                options.append(sequence(mark("{", after=GAP), members, self._last, mark("}")))
        for array in self.arrays(need):
            open_, close = mark("[", after=GAP), mark("]")
            if array.low == 0 or not self.holds_items(array):
                options.append(sequence(open_, close))
            if self.holds_items(array):
                items = self.items(array, need, "item", self._item, self._comma, least=1)
                options.append(sequence(open_, items, self._last, close))
        return either(options)

    def _item(self, need: Need) -> Body:
        return sequence(self._value(need), self._gap)

    def _member(self, name: str, need: Need) -> tuple[Terminal, Body]:
        text = literal(name.encode())
        spelled = [quoted(text), quoted(text, "'")]
        if _IDENTIFIER.match(name):
            spelled.append(text)
        return Terminal(alternation(spelled), f"property name {name!r}"), self._behind_name(need)

    def _extra(self, names: Expr, need: Need) -> tuple[Terminal, Body]:
        # A reader takes the last of two members of one name, so both are of the schema, and so is the value.
        self.notes["a member that is not declared may be written twice: readers take the last"] = None
        return Terminal(alternation((quoted(names), quoted(names, "'"))), "another property name"), self._behind_name(
            need
        )

    def _behind_name(self, need: Need) -> Body:
        return sequence(mark(":", optional(_SPACE), GAP), self._value(need), self._gap)
