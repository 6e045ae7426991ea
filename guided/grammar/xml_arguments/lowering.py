"""From the graph of a schema to rules: members of the outermost object as elements, what is inside them as JSON.

A string stands as it is, so it does not hold what closes its element; every other value is JSON.  Where the notation
says no types and any string may stand, other values are texts like these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from guided.errors import UnsatisfiableError, UnsupportedError
from guided.grammar.excluded import Excluded
from guided.grammar.ir import Body, Choice, Member, Members, Reference, Rule, Terminal
from guided.grammar.json_schema.layout import Layout, Order
from guided.grammar.json_schema.lowering.any_value import ARRAY, OBJECT
from guided.grammar.json_schema.lowering.lower import Lowering
from guided.grammar.json_schema.lowering.terminals import FALSE_TEXT, NO_TEXT, NULL_TEXT, TRUE_TEXT, sequence
from guided.grammar.json_schema.reading.document import escape
from guided.grammar.json_schema.satisfiability.graph import Graph, living_numbers, pointer_of
from guided.grammar.json_schema.sets.clauses import State as MemberState
from guided.grammar.json_schema.sets.contained import without_contained
from guided.grammar.json_schema.sets.extras import goals
from guided.grammar.json_schema.sets.shape import ANY, TRUE, Need, ObjectShape, Shape
from guided.grammar.json_schema.sets.strings import ANY_STRING, StringSet, encoded
from guided.grammar.regular.characters import negate, normalise, utf8
from guided.grammar.regular.derivative import inhabited
from guided.grammar.regular.expr import EPSILON, Expr, alternation, concat, intersection, repeat, words
from guided.grammar.rules import every_rule
from guided.grammar.tags.free_text import innermost, text_without
from guided.grammar.xml_arguments.notation import JsonType, Notation

__all__ = ["ArgumentsLowering"]

_MARKUP = normalise([(0, 0x20), (0x22, 0x22), (0x26, 0x26), (0x3C, 0x3C), (0x3E, 0x3E), (0x7F, 0x7F)])
"""Characters that an undeclared name does not hold: markup, white space and control characters."""
_NAMES = repeat(utf8(negate(_MARKUP)), 1)


class ArgumentsLowering(Lowering):
    """The rules of a schema's JSON values, and behind them those of the arguments."""

    def __init__(
        self,
        graph: Graph,
        layout: Layout,
        fractional: frozenset[Fraction],
        notation: Notation,
        spelled: Callable[[str], Expr],
        excludes: Sequence[str] = (),
    ) -> None:
        """``spelled`` gives a text of the notation as the tokenizer writes it; no string holds one of ``excludes``."""
        super().__init__(graph, layout, fractional)
        self._notation = notation
        self._spelled = spelled
        self._around = EPSILON if layout.space is None else layout.space.expr
        self._own: list[Rule] = []
        self._first = 0
        self._elements: dict[Need, Body | None] = {}
        self._text_of: dict[Need, Expr | None] = {}
        self._left_out = innermost([notation.closing, *excludes])
        self._free = text_without(self._left_out)
        self._excluded = Excluded(excludes) if excludes else None

    def arguments(self) -> tuple[tuple[Rule, ...], int]:
        """All rules, and which is the start.  Raises `UnsatisfiableError` when no object fits the schema."""
        rules = every_rule(self.run())
        self._first = len(rules)
        root = self.graph.shapes[self.graph.root]
        things = without_contained([t for t in root.objects if self.graph.object_alive(t)], self.graph.alive)
        pointer = "#"
        if not things:
            raise UnsatisfiableError(
                "arguments are an object, and the schema admits none", where=pointer, remedy='Let its type be "object".'
            )
        options = [self._arguments_of(thing, pointer) for thing in things]
        space = Terminal(self._around, "white space")
        body = sequence(space, options[0] if len(options) == 1 else Choice(tuple(options)))
        start = self._add(Rule("arguments", body))
        if self._excluded is not None:
            rules = tuple(map(self._excluded.rule, rules))
        return (*rules, *self._own), start.rule

    def _add(self, rule: Rule) -> Reference:
        self._own.append(rule)
        return Reference(self._first + len(self._own) - 1)

    # -- members --------------------------------------------------------------------------------------------------

    def _arguments_of(self, thing: ObjectShape, pointer: str) -> Body:
        if thing.clauses:
            return self._walked_arguments(thing, pointer)
        declared = []
        for name, need in thing.declared.items():
            key = self._key(name, need)
            element = self._element(need) if key is not None and need in self.graph.alive else None
            if key is not None and element is not None:
                declared.append(Member(key, element, name in thing.required))
            elif name in thing.required:
                raise UnsatisfiableError(
                    f"the argument {name!r} can be no text without {', '.join(map(repr, self._left_out))}",
                    where=_place(name, need),
                    remedy="Admit other values.",
                )
        low = 0 if thing.low <= len(thing.required) else thing.low
        extras = []
        for extra in self.graph.living_extras(thing):
            element = self._element(extra.need)
            names = self._names(extra.names)
            if element is not None and names is not None:
                extras.append(Member(names, element, meets=extra.meets))
        if extras and (low or thing.high is not None):
            raise UnsupportedError(
                "a count of arguments with names that are not declared: that these differ is not known",
                where=pointer,
                remedy='Leave out "minProperties" and "maxProperties", or declare the names.',
            )
        if extras:
            self.notes["an argument that is not declared may be written twice"] = None
        in_order = self.layout.order is Order.SCHEMA
        return Members(tuple(declared), tuple(extras), NO_TEXT, in_order, low, thing.high, goals(thing))

    def _walked_arguments(self, thing: ObjectShape, pointer: str) -> Body:
        """One rule for each state of the clauses."""
        states = self.graph.member_states(thing)
        # References go in both directions: the numbers are known before the bodies.
        first = self._first + len(self._own)
        after = {state: Reference(first + number) for number, state in enumerate(states)}
        self._own += [Rule(f"arguments of {pointer}, state {number}", NO_TEXT) for number in range(len(states))]
        for number, state in enumerate(states):
            at = first - self._first + number
            self._own[at] = replace(self._own[at], body=self._from(thing, state, after))
        return after[next(iter(states))]

    def _from(self, thing: ObjectShape, state: MemberState, after: dict[MemberState, Reference]) -> Body:
        options: list[Body] = [NO_TEXT] if self.graph.ends_at(thing, state) else []
        for step in self.graph.member_states(thing)[state]:
            element = self._element(step.need)
            if step.extra is not None:
                self.notes["an argument that is not declared may be written twice"] = None
                key = self._names(step.extra.names)
            else:
                assert step.name is not None
                key = self._key(step.name, step.need)
            if key is not None and element is not None:
                options.append(sequence(key, element, after[step.state]))
        return Choice(tuple(options))

    def _key(self, name: str, need: Need) -> Terminal | None:
        notation = self._notation
        written = notation.name(name)
        if notation.after[:1] in written or "\ud800" <= max(written, default="") <= "\udfff":
            raise UnsupportedError(
                f"the name {name!r} cannot be told from the text around it in this notation",
                where=_place(name, need),
                remedy=f"Rename it, without {notation.after[:1]!r}.",
            )
        if self._excluded is not None and any(word in written for word in self._left_out):
            return None
        return Terminal(self._spelled(f"{notation.before}{written}{notation.after}"), f"argument {name!r}")

    def _names(self, names: Expr) -> Terminal | None:
        """Names that are not declared, as far as they can be told from the text around them."""
        found = intersection((self._settled(names), _NAMES, self._free))
        if not inhabited(found):
            return None
        notation = self._notation
        key = concat(self._spelled(notation.before), found, self._spelled(notation.after))
        return Terminal(key, "another argument")

    # -- values ---------------------------------------------------------------------------------------------------

    def _element(self, need: Need) -> Body | None:
        """What follows a name: the opening, a value, what closes it, and white space; None where there is no value."""
        if need not in self._elements:
            options = list(self._openings(need))
            closing = Terminal(concat(self._spelled(self._notation.closing), self._around), self._notation.closing)
            body = None if not options else options[0] if len(options) == 1 else Choice(tuple(options))
            # One rule for all places, since values recur.
            self._elements[need] = body and self._add(Rule(pointer_of(need), sequence(body, closing)))
        return self._elements[need]

    def _openings(self, need: Need) -> Iterable[Body]:
        """The values of a need behind their openings, those with the same opening together."""
        grouped: dict[str, list[tuple[JsonType, Body]]] = {}
        for kind, body in self._typed(need):
            grouped.setdefault(self._notation.openings[kind], []).append((kind, body))
        space = Terminal(self._around, "white space")
        for opening, values in grouped.items():
            text = self._string(need)
            if values[0][0] is JsonType.STRING and text is self._free:
                # Any other value is such a text too, and read as what the schema says.
                bodies: list[Body] = [Terminal(text, "text")]
            else:
                bodies = [
                    body if kind is JsonType.STRING and not self._is_padded(text) else sequence(space, body, space)
                    for kind, body in values
                ]
            lead: list[Body] = [space] if self._notation.apart else []
            if opening:
                lead.append(Terminal(self._spelled(opening), opening))
            yield sequence(*lead, bodies[0] if len(bodies) == 1 else Choice(tuple(bodies)))

    def _is_padded(self, text: Expr | None) -> bool:
        return self._notation.padded and text is not self._free

    def _typed(self, need: Need) -> Iterable[tuple[JsonType, Body]]:
        shape = self.graph.shapes[need]
        pointer = pointer_of(need)
        text = self._string(need)
        if text is not None:
            yield JsonType.STRING, Terminal(text, f"text of {pointer}")
        numbers = living_numbers(shape)
        if numbers:
            yield JsonType.NUMBER, self._numbers(numbers, pointer)
        truths = [each for each, there in ((TRUE_TEXT, shape.true), (FALSE_TEXT, shape.false)) if there]
        if truths:
            yield JsonType.BOOLEAN, truths[0] if len(truths) == 1 else Choice(tuple(truths))
        if shape.null:
            yield JsonType.NULL, NULL_TEXT
        if need == TRUE and self._common is not None:
            yield from ((JsonType.OBJECT, OBJECT), (JsonType.ARRAY, ARRAY))
            return
        things = without_contained([t for t in shape.objects if self.graph.object_alive(t)], self.graph.alive)
        if things:
            yield JsonType.OBJECT, self._json(self._alternatives(Shape(objects=shape.objects), [], things, pointer))
        arrays = [array for array in shape.arrays if self.graph.array_alive(array)]
        if arrays:
            yield JsonType.ARRAY, self._json(self._alternatives(Shape(arrays=shape.arrays), arrays, [], pointer))

    def _json(self, body: Body) -> Body:
        """A part that is JSON, without what is excluded."""
        return body if self._excluded is None else self._excluded.body(body)

    def _string(self, need: Need) -> Expr | None:
        """The strings of a need as they stand in an element; None where there are none."""
        if need not in self._text_of:
            found = [self._bare(item, pointer_of(need)) for item in self.graph.shapes[need].strings]
            texts = [text for text in found if text is not None]
            self._text_of[need] = self._free if self._free in texts else alternation(texts) if texts else None
        return self._text_of[need]

    def _bare(self, item: StringSet, pointer: str) -> Expr | None:
        if item == ANY_STRING:
            return self._free
        if item.words is not None:
            there = [text for text in encoded(item.words) if not any(w.encode() in text for w in self._left_out)]
            return words(there) if there else None
        if item.is_checked() or item.regex or item.host:
            raise UnsupportedError(
                "strings of this format are checked as JSON strings, and an argument is none",
                where=pointer,
                remedy='Leave out "format", or write a "pattern".',
            )
        found = intersection((self._settled(item.content()), self._free))
        return found if inhabited(found) else None


def _place(name: str, need: Need) -> str:
    """The place of a member's schema; one that says only a type is the same everywhere."""
    found = pointer_of(need)
    return f"#/properties/{escape(name)}" if found.startswith(ANY) else found
