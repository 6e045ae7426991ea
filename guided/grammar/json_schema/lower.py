"""From living shapes to the IR: rules for the values that recur, small shared terminals for the tokens of JSON.

White space stands where RFC 8259 allows it, each position once, so that no text has two readings for its sake.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache

from guided.errors import LimitError
from guided.grammar.ir import Body, Choice, Mark, Member, Members, Reference, Repetition, Rule, Sequence, Terminal
from guided.grammar.json_schema.counting import ItemCounter, State
from guided.grammar.json_schema.distinct import Distinct
from guided.grammar.json_schema.extras import goals
from guided.grammar.json_schema.graph import Graph, living_numbers, pointer_of, strings_alive
from guided.grammar.json_schema.number_text import number_text
from guided.grammar.json_schema.numbers import NumberRange
from guided.grammar.json_schema.shape import ArrayShape, Need, ObjectShape, Shape
from guided.grammar.json_schema.strings import (
    StringSet,
    canonical,
    every_word,
    quoted,
)
from guided.grammar.regular.expr import Expr, alternation, literal


class Order(Enum):
    """In which order the members of an object may come."""

    SCHEMA = "schema"
    """Declared members in the order of the schema, others anywhere between."""
    ANY = "any"
    """Every order."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How JSON is written: order of members, white space between tokens (None: none), one or every spelling."""

    order: Order
    space: Terminal | None
    compact: bool


_PUNCTUATION = {text: Terminal(literal(text.encode()), text) for text in "{}[],:"}
_NULL = Terminal(literal(b"null"), "null")
_TRUE = Terminal(literal(b"true"), "true")
_FALSE = Terminal(literal(b"false"), "false")
_EMPTY = Sequence(())


class Lowering:
    """Rules for the living part of a graph, made on demand from the root."""

    def __init__(self, graph: Graph, layout: Layout) -> None:
        self.graph = graph
        self.layout = layout
        self.compact = layout.compact
        self.notes: dict[str, None] = {}
        self.rules: list[Rule | None] = [None]
        self._bodies: dict[Need, Body] = {}
        self._undeclared: dict[Need, Reference] = {}
        self._compares = any(array.unique is not None for shape in graph.shapes.values() for array in shape.arrays)
        """Must the checker compare items, and so know which containers are open?"""
        self._distinct = Distinct(graph)
        self._waiting: list[tuple[int, str, Shape]] = []
        space: tuple[Body, ...] = () if layout.space is None else (layout.space,)
        self._space = space
        self._comma = _sequence(_PUNCTUATION[","], *space)
        self._colon = (*space, _PUNCTUATION[":"], *space)
        self._open_array, self._close_array = (_PUNCTUATION["["], *space), _PUNCTUATION["]"]
        self._open_object, self._close_object = (_PUNCTUATION["{"], *space), _PUNCTUATION["}"]

    def run(self) -> tuple[Rule, ...]:
        """All rules; the first is the start."""
        root = self.value(self.graph.root)
        self.rules[0] = Rule("JSON text", _sequence(*self._space, root, *self._space))
        while self._waiting:
            index, pointer, shape = self._waiting.pop()
            self.rules[index] = Rule(pointer, self._shape(shape, pointer))
        return tuple(rule for rule in self.rules if rule is not None)

    def value(self, need: Need) -> Body:
        """A value of a living need: a terminal when it is one token, a reference to its rule otherwise."""
        found = self._bodies.get(need)
        if found is None:
            shape = self.graph.shapes[need]
            pointer = pointer_of(need)
            if shape.arrays or shape.objects:
                found = Reference(len(self.rules))
                self.rules.append(None)
                self._waiting.append((found.rule, pointer, shape))
            else:
                found = self._shape(shape, pointer)
            self._bodies[need] = found
        return found

    def _shape(self, shape: Shape, pointer: str) -> Body:
        try:
            return self._alternatives(shape, pointer)
        except LimitError as error:
            if error.where is not None:
                raise
            raise LimitError(error.what, where=pointer, remedy=error.remedy) from None

    def _alternatives(self, shape: Shape, pointer: str) -> Body:
        options: list[Body] = []
        if strings_alive(shape):
            options.append(self._strings(shape.strings, pointer))
        numbers = living_numbers(shape)
        if numbers:
            options.append(self._numbers(numbers, pointer))
        options.extend(self._object(thing, pointer) for thing in shape.objects if self.graph.object_alive(thing))
        options.extend(self._array(array, pointer) for array in shape.arrays if self.graph.array_alive(array))
        if shape.true:
            options.append(_TRUE)
        if shape.false:
            options.append(_FALSE)
        if shape.null:
            options.append(_NULL)
        return options[0] if len(options) == 1 else Choice(tuple(options))

    # -- scalars --------------------------------------------------------------------------------------------------

    def _strings(self, found: tuple[StringSet, ...], pointer: str) -> Terminal:
        expr = alternation([item.text(self.compact) for item in found])
        # That there is such a string is known by now, and costly to find out again behind the spelling.
        expr.inhabited = True
        if len(found) == 1 and found[0].words is not None:
            shown = sorted(found[0].words)
            kind = ", ".join(_quoted(word) for word in shown[:4]) + (", ..." if len(shown) > 4 else "")
            return Terminal(expr, f"{kind} at {pointer}")
        return Terminal(expr, f"string at {pointer}")

    def _numbers(self, found: list[NumberRange], pointer: str) -> Terminal:
        texts = [self._number(item) for item in found]
        whole = all(item.step is not None and item.step.denominator == 1 for item in found)
        return Terminal(alternation(texts), f"{'integer' if whole else 'number'} at {pointer}")

    def _number(self, item: NumberRange) -> Expr:
        if self.compact and item.low is not None and item.low == item.high:
            return literal(_plain(item.low))
        if item.step is not None or item.avoid:
            self.notes["integers and multiples have an exponent only where there is no upper bound: 1.5e+16"] = None
        elif item.low is not None or item.high is not None:
            self.notes["numbers under a bound have an exponent only after a single digit before the point"] = None
        return number_text(item)

    # -- arrays ---------------------------------------------------------------------------------------------------

    def _array(self, array: ArrayShape, pointer: str) -> Body:
        if array.unique and not self._distinct.array_alive(array, pointer):
            return Choice(())
        if array.counts:
            return self._counted_array(array, pointer)
        alive = self.graph.alive
        prefix = array.prefix if array.high is None else array.prefix[: array.high]
        high = array.high
        for index, need in enumerate(prefix):
            if need not in alive:
                prefix, high = prefix[:index], index
                break
        if array.rest not in alive:
            high = len(prefix) if high is None else min(high, len(prefix))
        left = None if high is None else high - len(prefix)
        tail: Body = _EMPTY
        if left is None or left > 0:
            item = self._item(array.rest)
            low = max(array.low - len(prefix), 0)
            if not prefix:
                content: Body = Repetition(item, low, left, self._comma)
                return self._brackets(content, array.unique, pointer)
            tail = Repetition(_sequence(self._comma, item), low, left)
        # Items that must be there stand in one sequence; optional ones each in a rule, which keeps bodies flat.
        for index in range(len(prefix) - 1, array.low - 1, -1):
            item = self._item(prefix[index])
            lead = (self._comma, item) if index else (item,)
            tail = Choice((_EMPTY, self._rule(_sequence(*lead, tail), f"{pointer} from item {index}")))
        parts: list[Body] = []
        for index, need in enumerate(prefix[: array.low]):
            parts.extend((self._comma, self._item(need)) if index else (self._item(need),))
        return self._brackets(_sequence(*parts, tail), array.unique, pointer)

    def _counted_array(self, array: ArrayShape, pointer: str) -> Body:
        """One rule for each state of the counts; the first is written in place."""
        states = self.graph.item_states(array)
        counter = ItemCounter(array)
        rules: dict[State, Reference] = {}
        for state in states:
            if state != counter.start:
                self.rules.append(None)
                rules[state] = Reference(len(self.rules) - 1)
        content: Body = _EMPTY
        for state, steps in states.items():
            options: list[Body] = [_EMPTY] if counter.accepts(state) else []
            lead = (self._comma,) if state[0] else ()
            options.extend(_sequence(*lead, self._item(step.need), rules[step.state]) for step in steps)
            body = options[0] if len(options) == 1 else Choice(tuple(options))
            if state == counter.start:
                content = body
            else:
                self.rules[rules[state].rule] = Rule(f"items of {pointer} after {state[0]}", body)
        return self._brackets(content, array.unique, pointer)

    def _rule(self, body: Body, name: str, mark: Mark | None = None) -> Reference:
        self.rules.append(Rule(name, body, mark))
        return Reference(len(self.rules) - 1)

    def _brackets(self, content: Body, unique: bool | None, pointer: str) -> Body:
        """An array of this content; a rule of its own where the checker must know that it is open."""
        if not self._compares:
            return _sequence(*self._open_array, content, self._close_array)
        mark = Mark.ARRAY if unique is None else Mark.DISTINCT if unique else Mark.REPEATING
        return _sequence(self._rule(_sequence(*self._open_array, content), pointer, mark), self._close_array)

    def _item(self, need: Need) -> Body:
        return _sequence(self.value(need), *self._space)

    # -- objects --------------------------------------------------------------------------------------------------

    def _object(self, thing: ObjectShape, pointer: str) -> Body:
        declared = self._declared(thing)
        extras = self._extras(thing)
        if extras and thing.low > len(thing.required):
            self._distinct.check_object(thing, pointer)
        low = 0 if thing.low <= len(thing.required) else thing.low
        high = thing.high
        if high is not None and not extras and high >= len(declared):
            high = None
        ordered = self.layout.order is Order.SCHEMA
        return self._braces(Members(declared, extras, self._comma, ordered, low, high, goals(thing)), pointer)

    def _declared(self, thing: ObjectShape) -> tuple[Member, ...]:
        alive = self.graph.alive
        return tuple(
            Member(_key(name, self.compact), self._member(need), name in thing.required)
            for name, need in thing.declared.items()
            if need in alive
        )

    def _extras(self, thing: ObjectShape) -> tuple[Member, ...]:
        found = []
        for extra in self.graph.living_extras(thing):
            key = _other_key(extra.names, self.compact)
            found.append(Member(key, self._undeclared_member(extra.need), meets=extra.meets))
        return tuple(found)

    def _braces(self, body: Body, pointer: str) -> Body:
        if not self._compares:
            return _sequence(*self._open_object, body, self._close_object)
        return _sequence(self._rule(_sequence(*self._open_object, body), pointer, Mark.OBJECT), self._close_object)

    def _member(self, need: Need) -> Body:
        return Sequence((*self._colon, self.value(need), *self._space))

    def _undeclared_member(self, need: Need) -> Reference:
        """The same behind a name that the checker must see to be new."""
        found = self._undeclared.get(need)
        if found is None:
            found = self._undeclared[need] = self._rule(self._member(need), pointer_of(need), Mark.UNDECLARED)
        return found


def _sequence(*parts: Body) -> Body:
    kept = tuple(part for part in parts if part is not _EMPTY)
    return kept[0] if len(kept) == 1 else Sequence(kept)


@lru_cache(maxsize=65536)
def _key(name: str, compact: bool) -> Terminal:
    """The terminal of a declared name; names recur from schema to schema, so terminals are shared."""
    expr = literal(canonical(name)) if compact else quoted(every_word(frozenset((name,))), compact)
    return Terminal(expr, f"property name {_quoted(name)}")


@lru_cache(maxsize=16384)
def _other_key(names: Expr, compact: bool) -> Terminal:
    return Terminal(quoted(names, compact), "another property name")


def _plain(value: Fraction) -> bytes:
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


def _quoted(name: str) -> str:
    return f'"{name}"' if len(name) <= 40 else f'"{name[:37]}..."'
