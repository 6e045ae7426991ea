"""YAML: block style, two spaces for each level, with flow style as the other way for arrays and objects."""

from __future__ import annotations

from guided.grammar.ir import Body, Terminal
from guided.grammar.json_schema.lowering.terminals import NO_TEXT, sequence
from guided.grammar.json_schema.sets.shape import Need, Shape
from guided.grammar.regular.expr import EMPTY, Expr, alternation, concat, literal, optional
from guided.grammar.schema_texts.escaping import quoted
from guided.grammar.schema_texts.lowering import TextLowering, either, mark
from guided.grammar.schema_texts.yaml_scalars import block_texts, is_plain_name, numbers_of, one_line

__all__ = ["YamlLowering"]

MAX_BLOCKS = 12
"""Levels in block style; what is nested deeper is written in flow style, so that recursive schemas end."""
MAX_NAME = 120
"""Characters of a name: readers look for the colon in the first 1,024 and not beyond."""
_GAP = optional(literal(b" "))


class YamlLowering(TextLowering):
    """Values as YAML writes them, read alike by 1.1 and 1.2."""

    format_name = "YAML"

    def adapted(self, shape: Shape, need: Need) -> Shape:
        """All values."""
        return self.of_characters(shape, need, None)

    def text(self) -> Body:
        """One document without markers."""
        root = self.graph.root
        options = self._blocks(root, 0)
        scalars = self._scalars(root, flow=False)
        if scalars is not EMPTY:
            options.append(Terminal(concat(scalars, literal(b"\n")), "value"))
        flows = self._flows(root)
        if flows:
            options.append(sequence(either(flows), mark("\n")))
        return either(options)

    # -- scalars --------------------------------------------------------------------------------------------------

    def _scalars(self, need: Need, *, flow: bool) -> Expr:
        """Everything that stands in one line and has no brackets."""
        found = self.constants(need)
        if self.graph.shapes[need].null:
            found.append(literal(b"null"))
        numbers = self.numbers(need)
        if numbers is not EMPTY:
            found.append(numbers_of(numbers))
        strings = self.strings(need)
        if strings is not EMPTY:
            found.append(one_line(strings, flow))
        return alternation(found)

    def _key(self, name: str, need: Need) -> Expr:
        if len(name) > MAX_NAME:
            raise self.refused(need, f"names of more than {MAX_NAME} characters", "Shorten the name.")
        written = name.encode()
        return literal(written) if is_plain_name(name) else quoted(literal(written))

    # -- block style ----------------------------------------------------------------------------------------------

    def _blocks(self, need: Need, depth: int) -> list[Body]:
        """Lines of members or items, of which the first has its indentation already; all end with a line break."""
        margin = mark("  " * depth) if depth else NO_TEXT
        options: list[Body] = []
        for thing in self.objects(need):
            if self.holds_members(thing):
                options.append(
                    self.members(
                        thing, need, ("block", depth), lambda name, of: self._member(name, of, depth), margin, least=1
                    )
                )
        for array in self.arrays(need):
            if self.holds_items(array):
                options.append(
                    self.items(array, need, ("block", depth), lambda of: self._item(of, depth), margin, least=1)
                )
        return options

    def _member(self, name: str, need: Need, depth: int) -> tuple[Terminal, Body]:
        key = Terminal(concat(self._key(name, need), literal(b":")), f"property name {name!r}")
        return key, self.rule(("behind", need, depth), self.place(need), lambda: self._behind(need, depth))

    def _behind(self, need: Need, depth: int) -> Body:
        """What stands behind a name and its colon, up to the end of its lines."""
        options = self._in_line(need, depth)
        if depth + 1 < MAX_BLOCKS:
            blocks = self._blocks(need, depth + 1)
            if blocks:
                options.append(sequence(mark("\n" + "  " * (depth + 1)), either(blocks)))
        return either(options)

    def _item(self, need: Need, depth: int) -> Body:
        return self.rule(("item", need, depth), self.place(need), lambda: self._behind_dash(need, depth))

    def _behind_dash(self, need: Need, depth: int) -> Body:
        options: list[Body] = [sequence(mark("-"), each) for each in self._in_line(need, depth)]
        if depth + 1 < MAX_BLOCKS:
            blocks = self._blocks(need, depth + 1)
            if blocks:
                options.append(sequence(mark("- "), either(blocks)))
        return either(options)

    def _in_line(self, need: Need, depth: int) -> list[Body]:
        """A space, and what begins in the same line."""
        texts = []
        scalars = self._scalars(need, flow=False)
        if scalars is not EMPTY:
            texts.append(concat(scalars, literal(b"\n")))
        strings = self.strings(need)
        if strings is not EMPTY:
            texts.append(block_texts(strings, 2 * (depth + 1)))
        options: list[Body] = []
        if texts:
            options.append(Terminal(concat(literal(b" "), alternation(texts)), "value"))
        flows = self._flows(need)
        if flows:
            options.append(sequence(mark(" "), either(flows), mark("\n")))
        return options

    # -- flow style -----------------------------------------------------------------------------------------------

    def _flows(self, need: Need) -> list[Body]:
        """Arrays and objects in brackets, in one line."""
        options: list[Body] = []
        comma = mark(",", after=literal(b" "))
        for thing in self.objects(need):
            open_, close = mark("{"), mark("}")
            if self.may_be_empty(thing):
                options.append(sequence(open_, close))
            if self.holds_members(thing):
                members = self.members(thing, need, "flow", self._flow_member, comma, least=1)
                options.append(sequence(open_, mark("", after=_GAP), members, mark("", after=_GAP), close))
        for array in self.arrays(need):
            open_, close = mark("["), mark("]")
            if array.low == 0 or not self.holds_items(array):
                options.append(sequence(open_, close))
            if self.holds_items(array):
                options.append(sequence(open_, self.items(array, need, "flow", self._flow, comma, least=1), close))
        return options

    def _flow_member(self, name: str, need: Need) -> tuple[Terminal, Body]:
        return Terminal(concat(self._key(name, need), literal(b": ")), f"property name {name!r}"), self._flow(need)

    def _flow(self, need: Need) -> Body:
        return self.rule(("flow", need), self.place(need), lambda: self._in_flow(need))

    def _in_flow(self, need: Need) -> Body:
        scalars = self._scalars(need, flow=True)
        options = self._flows(need)
        if scalars is not EMPTY:
            options.insert(0, Terminal(scalars, "value"))
        return either(options)
