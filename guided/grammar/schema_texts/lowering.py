"""What the formats share: from living shapes to rules, with what stands between the parts left to each format.

A format says which values it can write at all (`adapted`), how it writes scalars, and how members and items are put
together; here are the automata over members and items, and the rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import replace

from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.grammar.ir import Body, Choice, Member, Members, Reference, Repetition, Rule, Terminal
from guided.grammar.json_schema.layout import Order, Spelling
from guided.grammar.json_schema.lowering.terminals import NO_TEXT, sequence
from guided.grammar.json_schema.numbers.number_text import number_texts
from guided.grammar.json_schema.reading.document import escape
from guided.grammar.json_schema.satisfiability.graph import Graph, living_numbers, pointer_of
from guided.grammar.json_schema.sets.clauses import State as MemberState
from guided.grammar.json_schema.sets.contained import without_contained
from guided.grammar.json_schema.sets.counting import ItemCounter, State
from guided.grammar.json_schema.sets.shape import ANY, ArrayShape, Need, ObjectShape, Shape
from guided.grammar.json_schema.sets.strings import StringSet
from guided.grammar.regular.characters import CharacterSet, utf8
from guided.grammar.regular.derivative import inhabited
from guided.grammar.regular.expr import EMPTY, EPSILON, Expr, alternation, concat, intersection, literal, repeat

__all__ = ["MemberText", "TextLowering", "either", "mark"]

MAX_RULES = 50_000
"""Rules of one grammar: the same value is written in other ways at other depths."""

MemberText = Callable[[str, Need], "tuple[Terminal, Body]"]
"""The key of a declared member, and what stands behind it."""
ExtraText = Callable[[Expr, Need], "tuple[Terminal, Body]"]
"""The same for names of a language."""


class TextLowering(ABC):
    """Rules for what can be reached from the root of a graph; use one once."""

    format_name: str
    """For messages."""

    def __init__(self, graph: Graph, order: Order) -> None:
        self.graph = graph
        self.order = order
        self.notes: dict[str, None] = {}
        self._rules: list[Rule | None] = []
        self._made: dict[Hashable, Reference] = {}
        self._waiting: list[tuple[int, str, Callable[[], Body]]] = []
        self._at: dict[Need, str] = {graph.root: "#"}
        if graph.compares:
            raise UnsupportedError(
                f"uniqueItems: which items are equal is not compared in {self.format_name}",
                where=self._comparing(),
                remedy="Leave it out, or ask for JSON.",
            )
        for need, shape in graph.shapes.items():
            graph.shapes[need] = self.adapted(shape, need)
        graph.drop([])
        try:
            graph.check()
        except UnsatisfiableError as error:
            raise UnsatisfiableError(
                f"no value of this schema can be written in {self.format_name}",
                where=self._unwritten(),
                remedy=error.remedy,
            ) from None

    def _comparing(self) -> str:
        return next(
            pointer_of(need)
            for need, shape in self.graph.shapes.items()
            if any(array.unique is not None for array in shape.arrays)
        )

    def _unwritten(self) -> str:
        """The place of the deepest part that must be there and cannot be written."""
        need = self.graph.root
        while True:
            things = self.graph.shapes[need].objects
            dead = None
            if len(things) == 1:
                required = [name for name in things[0].declared if name in things[0].required]
                dead = next((name for name in required if things[0].declared[name] not in self.graph.alive), None)
            if dead is None:
                return self.place(need)
            inner = things[0].declared[dead]
            if inner in self._at:
                return self.place(inner)
            self._inside(need, f"/properties/{escape(dead)}", inner)
            need = inner

    @abstractmethod
    def adapted(self, shape: Shape, need: Need) -> Shape:
        """The values of a shape that the format can write, leaving those inside out of account."""

    @abstractmethod
    def text(self) -> Body:
        """The whole text."""

    def run(self) -> tuple[Rule, ...]:
        """All rules; the first is the start."""
        self.rule("start", f"{self.format_name} text", self.text)
        while self._waiting:
            number, name, make = self._waiting.pop()
            self._rules[number] = Rule(name, make())
        return tuple(rule for rule in self._rules if rule is not None)

    def rule(self, key: Hashable, name: str, make: Callable[[], Body]) -> Reference:
        """The rule of a key, made once and later."""
        found = self._made.get(key)
        if found is None:
            if len(self._rules) >= MAX_RULES:
                raise LimitError(
                    f"the grammar has more than {MAX_RULES} rules", where=name, remedy="Nest the schema less deeply."
                )
            found = self._made[key] = Reference(len(self._rules))
            self._rules.append(None)
            self._waiting.append((found.rule, name, make))
        return found

    # -- places ---------------------------------------------------------------------------------------------------

    def place(self, need: Need) -> str:
        """Where a need stands in the schema."""
        found = pointer_of(need)
        return self._at.get(need, "#") if found.startswith(ANY) or found == "any value" else found

    def _inside(self, parent: Need, part: str, need: Need) -> None:
        self._at.setdefault(need, f"{self.place(parent)}{part}")

    def refused(self, need: Need, what: str, remedy: str) -> GuidedError:
        """The error for what cannot be written exactly."""
        return UnsupportedError(f"{what} in {self.format_name}", where=self.place(need), remedy=remedy)

    # -- scalars --------------------------------------------------------------------------------------------------

    def of_characters(self, shape: Shape, need: Need, characters: CharacterSet | None) -> Shape:
        """The shape with strings of these characters only (None: of any), those left out that a checker must know."""
        kept: list[StringSet] = []
        every = None if characters is None else repeat(utf8(characters))
        for item in shape.strings:
            if item.regex is not None or item.host is not None:
                raise self.refused(
                    need,
                    "strings of the formats regex and idn-hostname are looked at by a checker of JSON, and none is",
                    'Leave out "format", or write a "pattern".',
                )
            if every is None:
                kept.append(item)
                continue
            content = intersection((item.content(), every))
            if inhabited(content):
                kept.append(StringSet(language=content))
        return replace(shape, strings=tuple(kept))

    def strings(self, need: Need) -> Expr:
        """The texts of a need's strings; `EMPTY` where there are none."""
        found = [item.content() for item in self.graph.shapes[need].strings]
        found = [content for content in found if inhabited(content)]
        return alternation(found) if found else EMPTY

    def numbers(self, need: Need) -> Expr:
        """A need's numbers as plain JSON writes them; `EMPTY` where there are none."""
        found = living_numbers(self.graph.shapes[need])
        return alternation(number_texts(found, Spelling.PLAIN)) if found else EMPTY

    def constants(self, need: Need) -> list[Expr]:
        """``true`` and ``false``, where a need has them."""
        shape = self.graph.shapes[need]
        return [literal(text) for text, there in ((b"true", shape.true), (b"false", shape.false)) if there]

    # -- containers -----------------------------------------------------------------------------------------------

    def arrays(self, need: Need) -> list[ArrayShape]:
        """The arrays of a need of which there are some."""
        return [array for array in self.graph.shapes[need].arrays if self.graph.array_alive(array)]

    def objects(self, need: Need) -> list[ObjectShape]:
        """The objects of a need of which there are some."""
        graph = self.graph
        return without_contained([t for t in graph.shapes[need].objects if graph.object_alive(t)], graph.alive)

    def holds_items(self, array: ArrayShape) -> bool:
        """May there be an item?"""
        if array.counts:
            return any(self.graph.item_states(array).values())
        return array.high != 0 and array.item(0) in self.graph.alive

    def items(
        self, array: ArrayShape, parent: Need, key: Hashable, item: Callable[[Need], Body], comma: Body, least: int = 0
    ) -> Body:
        """The items one after another, ``least`` of them at least, which is 0 or 1; ``key`` tells layouts apart."""
        if array.counts:
            return self._counted_items(array, parent, key, item, comma, least)
        alive = self.graph.alive
        prefix, high = array.prefix if array.high is None else array.prefix[: array.high], array.high
        for index, need in enumerate(prefix):
            if need not in alive:
                prefix, high = prefix[:index], index
                break
            self._inside(parent, f"/prefixItems/{index}", need)
        if array.rest not in alive:
            high = len(prefix)
        else:
            self._inside(parent, "/items", array.rest)
        low = max(array.low, least)
        left = None if high is None else high - len(prefix)
        body: Body = NO_TEXT
        if left is None or left > 0:
            after = max(low - len(prefix), 0)
            if prefix:
                body = Repetition(sequence(comma, item(array.rest)), after, left)
            else:
                body = Repetition(item(array.rest), after, left, None if comma is NO_TEXT else comma)
        for index in range(len(prefix) - 1, -1, -1):
            body = sequence(*((comma,) if index else ()), item(prefix[index]), body)
            if index >= low:
                body = Choice((NO_TEXT, body))
        return body

    def _counted_items(
        self, array: ArrayShape, parent: Need, key: Hashable, item: Callable[[Need], Body], comma: Body, least: int
    ) -> Body:
        states, counter = self.graph.item_states(array), ItemCounter(array)

        def after(state: State, ends: bool) -> Body:
            options: list[Body] = [NO_TEXT] if ends and counter.accepts(state) else []
            lead = (comma,) if state[0] else ()
            for step in states[state]:
                self._inside(parent, "/items", step.need)
                rest = self.rule((key, array, step.state), self.place(parent), lambda to=step.state: after(to, True))  # type: ignore[misc]
                options.append(sequence(*lead, item(step.need), rest))
            return either(options)

        return after(counter.start, not least)

    def holds_members(self, thing: ObjectShape) -> bool:
        """May there be a member?"""
        alive = self.graph.alive
        if thing.clauses:
            return any(self.graph.member_states(thing).values())
        if thing.high == 0:
            return False
        return any(need in alive for need in thing.declared.values()) or bool(self.graph.living_extras(thing))

    def may_be_empty(self, thing: ObjectShape) -> bool:
        """May there be no member?"""
        if thing.clauses:
            return self.graph.ends_at(thing, next(iter(self.graph.member_states(thing))))
        return not thing.required and not thing.low

    def members(
        self,
        thing: ObjectShape,
        parent: Need,
        key: Hashable,
        member: MemberText,
        comma: Body,
        least: int = 0,
        extra: ExtraText | None = None,
    ) -> Body:
        """The members one after another, ``least`` of them at least; ``extra`` writes those that are not declared."""
        if thing.clauses:
            return self._walked_members(thing, parent, key, member, comma, least, extra)
        alive = self.graph.alive
        declared = []
        for name, need in thing.declared.items():
            if need in alive:
                self._inside(parent, f"/properties/{escape(name)}", need)
                declared.append(Member(*member(name, need), name in thing.required))
        extras = []
        for each in self.graph.living_extras(thing):
            self._inside(parent, "/additionalProperties", each.need)
            if extra is None or thing.some or thing.low > len(thing.required) or thing.high is not None:
                raise self._undeclared(parent)
            extras.append(Member(*extra(each.names, each.need)))
        low = 0 if thing.low <= len(thing.required) else thing.low
        high = thing.high
        if high is not None and high >= len(declared):
            high = None
        least = 0 if thing.required else least
        in_order = self.order is Order.SCHEMA
        return Members(tuple(declared), tuple(extras), comma, in_order, max(low, least), high)

    def _undeclared(self, parent: Need) -> GuidedError:
        return self.refused(
            parent,
            "members whose names the schema does not declare: that none comes twice is not known",
            'Declare the names in "properties", and let "additionalProperties" be false.',
        )

    def _walked_members(
        self,
        thing: ObjectShape,
        parent: Need,
        key: Hashable,
        member: MemberText,
        comma: Body,
        least: int,
        extra: ExtraText | None,
    ) -> Body:
        states = self.graph.member_states(thing)

        def after(state: MemberState, ends: bool) -> Body:
            options: list[Body] = [NO_TEXT] if ends and self.graph.ends_at(thing, state) else []
            lead = (comma,) if state[3] and comma is not NO_TEXT else ()
            for step in states[state]:
                if step.extra is not None or step.name is None:
                    raise self._undeclared(parent)
                self._inside(parent, f"/properties/{escape(step.name)}", step.need)
                rest = self.rule((key, thing, step.state), self.place(parent), lambda to=step.state: after(to, True))  # type: ignore[misc]
                options.append(sequence(*lead, *member(step.name, step.need), rest))
            return either(options)

        return after(next(iter(states)), not least)


def either(options: list[Body]) -> Body:
    """Any one of the options."""
    return options[0] if len(options) == 1 else Choice(tuple(options))


def mark(text: str, before: Expr = EPSILON, after: Expr = EPSILON) -> Terminal:
    """Fixed text, with what may stand around it."""
    return Terminal(concat(before, literal(text.encode()), after), text.strip() or "line break")
