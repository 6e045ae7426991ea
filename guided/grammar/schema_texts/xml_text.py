"""XML: an element for each member, one for each item of an array, and the text of scalars; no attributes.

XML has no types: a text stands for all values that its elements can be read as, and is in the language where one of
them is an instance.  An array of no items is no element, and so is a member that is not there.
"""

from __future__ import annotations

import re

from guided.grammar.ir import Body, Choice, Member, Members, Terminal
from guided.grammar.json_schema.layout import Order
from guided.grammar.json_schema.lowering.terminals import NO_TEXT, sequence
from guided.grammar.json_schema.satisfiability.graph import Graph
from guided.grammar.json_schema.sets.shape import Need, ObjectShape, Shape
from guided.grammar.json_schema.white_space import MOST_INDENTED
from guided.grammar.regular.characters import normalise
from guided.grammar.regular.expr import EMPTY, EPSILON, Expr, alternation, byte_set, concat, literal, optional, repeat
from guided.grammar.schema_texts.escaping import escaped
from guided.grammar.schema_texts.lowering import TextLowering, either, mark

__all__ = ["XmlLowering"]

_NAME = re.compile(r"(?![Xx][Mm][Ll])[A-Za-z_][A-Za-z0-9_.-]*\Z")
_CHARACTERS = normalise([(0x09, 0x0A), (0x0D, 0x0D), (0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF)])
"""Char of XML 1.0."""
_ESCAPES = (("&", b"&amp;"), ("<", b"&lt;"), (">", b"&gt;"), ("\r", b"&#13;"))
_GAP = optional(concat(literal(b"\n"), repeat(byte_set(1 << 0x20 | 1 << 0x09), 0, MOST_INDENTED)))
_DECLARATION = optional(concat(literal(b'<?xml version="1.0" encoding="UTF-8"?>'), _GAP))
ITEM = "item"
"""The name of the elements of an array that is no member."""


class XmlLowering(TextLowering):
    """Documents of XML 1.0."""

    format_name = "XML"

    def __init__(self, graph: Graph, order: Order, root: str) -> None:
        self._root = root
        super().__init__(graph, order)

    def adapted(self, shape: Shape, need: Need) -> Shape:
        """Strings of characters that XML has."""
        return self.of_characters(shape, need, _CHARACTERS)

    def text(self) -> Body:
        """The outermost element."""
        root = self.graph.root
        open_, close = self._tags(self._root, root)
        options = self._contents(root, close)
        start, end = self._tags(ITEM, root)
        for array in self.arrays(root):
            if array.low == 0 or not self.holds_items(array):
                options.append(close)
            if self.holds_items(array):
                items = self.items(array, root, "item", lambda need: self._element(need, ITEM, end), start, least=1)
                options.append(sequence(mark("", after=_GAP), start, items, close))
        return sequence(Terminal(concat(_DECLARATION, open_.expr), f"<{self._root}>"), either(options))

    def _tags(self, name: str, need: Need) -> tuple[Terminal, Terminal]:
        """The opening tag, and the closing one with white space behind it."""
        if not _NAME.match(name):
            raise self.refused(
                need, f"the name {name!r} of an element", "Use letters, digits, '_', '-' and '.', a letter first."
            )
        return mark(f"<{name}>"), mark(f"</{name}>", after=_GAP)

    def _element(self, need: Need, name: str, close: Terminal) -> Body:
        """What stands behind an opening tag, with the closing one."""
        return self.rule(("element", need, name), self.place(need), lambda: self._one(need, close))

    def _one(self, need: Need, close: Terminal) -> Body:
        if self.graph.shapes[need].arrays and self.arrays(need):
            raise self.refused(need, "arrays of arrays", "Put an object between them.")
        return either(self._contents(need, close))

    def _contents(self, need: Need, close: Terminal) -> list[Body]:
        """Scalars and objects, with the closing tag."""
        shape = self.graph.shapes[need]
        texts: list[Expr] = [*self.constants(need), self.numbers(need)]
        strings = self.strings(need)
        if strings is not EMPTY:
            texts.append(escaped(strings, _ESCAPES))
        if shape.null:
            texts.append(EPSILON)
        text = alternation(texts)
        options: list[Body] = [] if text is EMPTY else [sequence(Terminal(text, "text"), close)]
        for thing in self.objects(need):
            options.append(sequence(Terminal(_GAP, "white space"), self._children(thing, need), close))
        return options

    def _children(self, thing: ObjectShape, parent: Need) -> Body:
        alive = self.graph.alive
        if self.graph.living_extras(thing) and not thing.clauses:
            raise self._undeclared(parent)
        empty = {name for name, need in thing.declared.items() if need in alive and self._may_be_no_element(need)}
        counted = thing.low > len(thing.required) or thing.high is not None
        if (thing.clauses or counted) and empty:
            raise self.refused(
                parent,
                "conditions on which members there are: an array of no items is no element",
                'Give the arrays "minItems": 1.',
            )
        if thing.clauses or counted:
            return self.members(thing, parent, "element", self._member, NO_TEXT)
        declared = []
        for name, need in thing.declared.items():
            if need in alive:
                self._inside(parent, f"/properties/{name}", need)
                declared.append(Member(*self._member(name, need), name in thing.required and name not in empty))
        return Members(tuple(declared), (), NO_TEXT, self.order is Order.SCHEMA)

    def _may_be_no_element(self, need: Need) -> bool:
        return any(array.low == 0 or not self.holds_items(array) for array in self.arrays(need))

    def _member(self, name: str, need: Need) -> tuple[Terminal, Body]:
        start, end = self._tags(name, need)
        return start, self.rule(("member", need, name), self.place(need), lambda: self._behind(need, name, start, end))

    def _behind(self, need: Need, name: str, start: Terminal, end: Terminal) -> Body:
        options = self._contents(need, end)
        for array in self.arrays(need):
            if self.holds_items(array):
                key = ("item", name)
                options.append(self.items(array, need, key, lambda of: self._element(of, name, end), start, least=1))
        return either(options) if options else Choice(())
