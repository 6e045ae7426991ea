"""CSV: a header with the declared names, then a line for each object of an array.

CSV has no types: a text stands for all values that its cells can be read as, and is in the language where one of them
is an instance.  A cell without text is the empty text, null, or a member that is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from guided.grammar.ir import Body, Terminal
from guided.grammar.json_schema.lowering.terminals import NO_TEXT, sequence
from guided.grammar.json_schema.sets.counting import ItemCounter
from guided.grammar.json_schema.sets.shape import ArrayShape, Need, ObjectShape, Shape
from guided.grammar.regular.characters import normalise
from guided.grammar.regular.expr import EMPTY, EPSILON, Expr, alternation, concat, difference, literal
from guided.grammar.schema_texts.escaping import ANY_TEXT, escaped, within, without
from guided.grammar.schema_texts.lowering import TextLowering, either

__all__ = ["CsvLowering"]

_CHARACTERS = normalise([(low or 1, high) for low, high in ANY_TEXT])
"""All but NUL, at which readers stop."""
_BARE = without(',"')
_DOUBLED = (('"', b'""'),)


class CsvLowering(TextLowering):
    """Tables as RFC 4180 has them, with line feeds."""

    format_name = "CSV"

    def adapted(self, shape: Shape, need: Need) -> Shape:
        """At the root arrays, in them objects, in these scalars."""
        found = self.of_characters(shape, need, _CHARACTERS)
        return Shape(arrays=found.arrays) if need == self.graph.root else found

    def text(self) -> Body:
        """Header and rows."""
        root = self.graph.root
        arrays = self.arrays(root)
        rows: dict[Need, None] = {}
        for array in arrays:
            for need in self._row_needs(array):
                if need in self.graph.alive:
                    rows[need] = None
        names: dict[str, None] = {}
        for need in rows:
            self._inside(root, "/items", need)
            for thing in self._rows_of(need):
                names.update(dict.fromkeys(thing.declared))
        columns = tuple(names)
        if not columns:
            raise self.refused(root, "a table without columns", 'Declare the names of the rows in "properties".')
        header = concat(_joined([_written(literal(name.encode()), False) for name in columns]), literal(b"\n"))
        key = Terminal(header, "header")
        bodies = [self.items(array, root, "row", lambda need: self._row(need, columns), NO_TEXT) for array in arrays]
        return sequence(key, either(bodies))

    def _row_needs(self, array: ArrayShape) -> list[Need]:
        if array.counts:
            return sorted(ItemCounter(array).needs(), key=self.place)
        return [*array.prefix, array.rest]

    def _rows_of(self, need: Need) -> list[ObjectShape]:
        shape = self.graph.shapes[need]
        if shape.has_scalar() or self.arrays(need):
            raise self.refused(need, "rows that are no objects", 'Let the "type" of the items be "object".')
        found = self.objects(need)
        for thing in found:
            if thing.clauses or thing.low > len(thing.required) or thing.high is not None:
                raise self.refused(
                    need,
                    "conditions on which members there are: a cell without text may be a member",
                    'Leave out "minProperties", "maxProperties", and what depends on other members.',
                )
            if self.graph.living_extras(thing):
                raise self._undeclared(need)
        return found

    def _row(self, need: Need, columns: tuple[str, ...]) -> Body:
        return self.rule(("row", need), self.place(need), lambda: self._cells(need, columns))

    def _cells(self, need: Need, columns: Sequence[str]) -> Body:
        options: list[Body] = []
        for thing in self._rows_of(need):
            parts: list[Body] = []
            for index, name in enumerate(columns):
                of = thing.declared.get(name)
                cell: Expr = EMPTY
                if of is not None and of in self.graph.alive:
                    self._inside(need, f"/properties/{name}", of)
                    cell = self._cell(of, len(columns) == 1)
                if name not in thing.required:
                    cell = alternation((cell, _nothing(len(columns) == 1)))
                end = literal(b"\n" if index == len(columns) - 1 else b",")
                parts.append(Terminal(concat(cell, end), f"column {name!r}"))
            options.append(sequence(*parts))
        return either(options)

    def _cell(self, need: Need, alone: bool) -> Expr:
        shape = self.graph.shapes[need]
        if (shape.arrays and self.arrays(need)) or (shape.objects and self.objects(need)):
            raise self.refused(
                need, "arrays and objects in a cell", "Let columns hold texts, numbers and truth values."
            )
        found = [*self.constants(need), self.numbers(need)]
        strings = self.strings(need)
        if strings is not EMPTY:
            found.append(_written(strings, alone))
        if shape.null:
            found.append(_nothing(alone))
        return alternation(found)


def _joined(cells: Sequence[Expr]) -> Expr:
    parts: list[Expr] = []
    for index, cell in enumerate(cells):
        parts += [literal(b","), cell] if index else [cell]
    return concat(*parts)


def _nothing(alone: bool) -> Expr:
    """A cell without text: a line of nothing would be no row."""
    return alternation([literal(b'""'), *([] if alone else [EPSILON])])


@lru_cache(maxsize=4096)
def _written(content: Expr, alone: bool) -> Expr:
    """Texts as cells: in quotes, or as they are where that can be."""
    bare = within(content, _BARE)
    if alone and bare is not EMPTY:
        bare = difference(bare, EPSILON)
    return alternation((bare, concat(literal(b'"'), escaped(content, _DOUBLED), literal(b'"'))))
