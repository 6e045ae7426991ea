"""From living shapes to the IR: rules for the values that recur, small shared terminals for the tokens of JSON.

White space stands where RFC 8259 allows it, each position once, so that no text has two readings for its sake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import cast

from guided.errors import LimitError
from guided.grammar.ir import (
    AnyTerminal,
    Body,
    Choice,
    DeferredMembers,
    ListedTerminal,
    Mark,
    Member,
    Members,
    Prepared,
    RangedTerminal,
    Reference,
    Repetition,
    Rule,
    Sequence,
    Terminal,
)
from guided.grammar.json_schema.layout import Layout, Order, Rank, Spelling
from guided.grammar.json_schema.lowering.any_value import ANY_VALUES, UNDECLARED, any_value
from guided.grammar.json_schema.lowering.declared_members import DeclaredMembers
from guided.grammar.json_schema.lowering.terminals import (
    FALSE_TEXT,
    NO_TEXT,
    NULL_TEXT,
    TRUE_TEXT,
    any_scalar,
    key_of,
    other_key,
    punctuation,
    sequence,
    text_of,
)
from guided.grammar.json_schema.numbers.number_text import is_single, may_be_refused, number_text, number_texts
from guided.grammar.json_schema.numbers.ranged_numbers import ranges_of
from guided.grammar.json_schema.numbers.ranges import NumberRange
from guided.grammar.json_schema.satisfiability.distinct import Distinct
from guided.grammar.json_schema.satisfiability.graph import Graph, living_numbers, pointer_of, strings_alive
from guided.grammar.json_schema.sets.clauses import State as MemberState
from guided.grammar.json_schema.sets.contained import without_contained
from guided.grammar.json_schema.sets.counting import ItemCounter, State, Step
from guided.grammar.json_schema.sets.extras import Extra, goals
from guided.grammar.json_schema.sets.shape import ANY, ANYTHING, OF_TYPES, TRUE, ArrayShape, Need, ObjectShape, Shape
from guided.grammar.json_schema.sets.strings import StringSet, encoded, quoted
from guided.grammar.regular.expensive import is_expensive, is_long
from guided.grammar.regular.expr import EPSILON, Expr, alternation, words
from guided.grammar.regular.settled import Settled
from guided.grammar.regular.texts import CONTENT
from guided.grammar.rules import RulesOnDemand, UnmadeRule

MOST_LISTED = 1024
"""Bytes of the texts of an enumeration, or of the names of an object that are told apart from others, that are a list;
of more an expression is made, which engines write as they come to it."""

MAX_WRITTEN_OUT = 3
"""Repetitions up to this bound are not counted by engines, see `guided.grammar.ir.Prepared`."""


class Lowering:
    """Rules for the living part of a graph that can be reached from the root.

    Which rules there are is planned at once, and with it everything that can be refused; bodies are made when they are
    looked at.
    """

    def __init__(self, graph: Graph, layout: Layout, fractional: frozenset[Fraction] = frozenset()) -> None:
        """``fractional``: the whole numbers among the constants that the schema writes with a fraction."""
        self.graph = graph
        self.layout = layout
        self._fractional = fractional
        self._spelling = layout.spelling
        self.notes: dict[str, None] = {}
        self.rules: list[Rule | UnmadeRule] = []
        self._marks: dict[int, Mark] = {}
        self._ranks: list[int] = []
        self._nullable: list[int] = []
        self._forces_several = False
        self._scalars: dict[Need, Body] = {}
        self._patterns: dict[Shape, list[Reference]] = {}
        """Rules of strings that are patterns: the checker knows more of these than any automaton."""
        self._values: dict[Need, Reference] = {}
        self._undeclared: dict[Need, Reference] = {}
        self._members: dict[Need, Reference] = {}
        self._items: dict[tuple[Need, bool], Reference] = {}
        self._opened: dict[ArrayShape | ObjectShape, Reference] = {}
        self._optional: dict[ArrayShape, list[Reference]] = {}
        self._counted: dict[ArrayShape, dict[State, Reference]] = {}
        self._walked: dict[ObjectShape, dict[MemberState, Reference]] = {}
        self._compares = graph.compares
        """Must the checker compare items, and so know which containers are open?"""
        self._distinct = Distinct(graph)
        self._sorts: dict[ObjectShape, list[Extra]] = {}
        self._settled = Settled()
        self._expensive: dict[Expr, None] = {}
        """Strings that are expensive to read for the first time."""
        self._planned: set[Need] = set()
        self._containers: set[ArrayShape | ObjectShape] = set()
        self._waiting: list[Need] = []
        self._space: tuple[Body, ...] = () if layout.space is None else (layout.space,)
        space = EPSILON if layout.space is None else layout.space.expr
        # White space is one terminal with what it stands behind: a member has two nodes less.
        self._colon = punctuation(":", *layout.around_colon)
        self._comma = punctuation(",", *layout.around_comma)
        self._open_array, self._close_array = punctuation("[", EPSILON, space), punctuation("]", EPSILON, EPSILON)
        self._open_object, self._close_object = punctuation("{", EPSILON, space), punctuation("}", EPSILON, EPSILON)
        self._rule("JSON text", Rank.START, lambda: sequence(*layout.outer, self.value(graph.root), *layout.outer))
        self._common = any_value(layout) if TRUE in graph.shapes and not graph.compares else None
        if self._common is not None:
            self.rules += self._common.rules
            self._ranks += self._common.rank
            self._marks.update(self._common.marks)
            self._values.update(ANY_VALUES)
            self._planned.update(ANY_VALUES)
            self._undeclared[TRUE] = UNDECLARED

    def run(self) -> RulesOnDemand:
        """All rules; the first is the start.  Raises `LimitError` with the place of a pattern that is too much work."""
        self._plan(self.graph.root)
        while self._waiting:
            need = self._waiting.pop()
            shape = self.graph.shapes[need]
            try:
                if shape.numbers:
                    self._check_numbers(shape)
                for item in shape.strings:
                    if item.regex or item.host:
                        self._plan_patterns(shape, pointer_of(need))
                        break
                    if item.words is None:
                        self._settled(item.content())
                    if item.language is not None or item.hostname is not None:
                        bare = None if item.is_bounded() or item.hostname is not None else item.language
                        if is_expensive(bare or item.content()):
                            self._expensive[self._text(item)] = None
                if shape.arrays or shape.objects:
                    self._plan_containers(need, shape)
            except LimitError as error:
                if error.where is not None:
                    raise
                raise LimitError(error.what, where=pointer_of(need), remedy=error.remedy) from None
        # Their makers hold this object: it must not hold them in turn, or only the collector could free a grammar.
        rules, self.rules = self.rules, []
        return RulesOnDemand(rules)

    def prepared(self) -> Prepared:
        """What is known of the rules, once they are planned."""
        names = dict.fromkeys(self._settled(extra.names) for extras in self._sorts.values() for extra in extras)
        return Prepared(
            nullable=frozenset(self._nullable),
            rank=tuple(self._ranks),
            forces_several=self._forces_several,
            marks=self._marks,
            names=tuple(names),
            common=self._common,
            patterns=tuple(self._expensive),
            met_whole=tuple([quoted(each, self._spelling) for each in names if is_long(each)]),
        )

    # -- planning -------------------------------------------------------------------------------------------------

    def _rule(self, name: str, rank: Rank, make: Callable[[], Body], mark: Mark | None = None) -> Reference:
        if mark is not None:
            self._marks[len(self.rules)] = mark
        self.rules.append(UnmadeRule(name, make, mark))
        self._ranks.append(int(rank))
        return Reference(len(self.rules) - 1)

    def _plan(self, need: Need) -> None:
        if need not in self._planned:
            self._planned.add(need)
            self._waiting.append(need)

    def _plan_patterns(self, shape: Shape, pointer: str) -> None:
        if shape in self._patterns:
            return
        made = self._patterns[shape] = []
        for item in shape.strings:
            if item.is_checked():
                label = _label("host name" if item.host else "regular expression", pointer)
                mark = Mark.HOST_NAME if item.host else Mark.PATTERN
                made.append(self._rule(pointer, Rank.INNER, partial(_pattern, item, self._spelling, label), mark))

    def _plan_containers(self, need: Need, shape: Shape) -> None:
        pointer = pointer_of(need)
        graph = self.graph
        arrays = [array for array in shape.arrays if graph.array_alive(array)]
        things = without_contained([thing for thing in shape.objects if graph.object_alive(thing)], graph.alive)
        self._values[need] = self._rule(
            pointer, Rank.VALUE, partial(self._alternatives, shape, arrays, things, pointer)
        )
        # Equal needs share their shapes, and any value its own.
        for array in arrays:
            if array not in self._containers:
                self._containers.add(array)
                self._plan_array(array, pointer)
        for thing in things:
            if thing not in self._containers:
                self._containers.add(thing)
                self._plan_object(thing, pointer)

    def _plan_array(self, array: ArrayShape, pointer: str) -> None:
        if array.unique:
            self._distinct.check_array(array, pointer)
        if self._compares:
            mark = Mark.ARRAY if array.unique is None else Mark.DISTINCT if array.unique else Mark.REPEATING
            self._open(array, pointer, mark, lambda: (self._open_array, self._items_of(array, pointer)))
            if array.unique and array.low > 1:
                self._forces_several = True
        if array.counts:
            self._plan_counts(array, pointer)
            return
        prefix, high = self._places(array)
        for need in prefix:
            self._plan(need)
        if high is None or high > len(prefix):
            self._plan(array.rest)
            left = None if high is None else high - len(prefix)
            if _is_counted(max(array.low - len(prefix), 0), left) and (prefix or self._space):
                self._plan_item(array.rest, pointer, bool(prefix))
        if array.low < len(prefix):
            self._optional[array] = made = []
            for index in range(array.low, len(prefix)):
                self._nullable.append(len(self.rules))
                made.append(self._rule(f"{pointer} from item {index}", Rank.REST, partial(self._rest_of, array, index)))

    def _plan_item(self, need: Need, pointer: str, led: bool) -> None:
        """A rule for an item that engines count, led by a comma or not."""
        if (need, led) not in self._items:
            lead = (self._comma,) if led else ()
            self._items[need, led] = self._rule(pointer, Rank.REST, lambda: sequence(*lead, *self._item(need)))

    def _plan_counts(self, array: ArrayShape, pointer: str) -> None:
        """One rule for each state of the counts; the first is written in place."""
        states = self.graph.item_states(array)
        counter = ItemCounter(array)
        references: dict[State, Reference] = {}
        self._counted[array] = references
        for state, steps in states.items():
            for step in steps:
                self._plan(step.need)
            if state != counter.start:
                if counter.accepts(state):
                    self._nullable.append(len(self.rules))
                references[state] = self._rule(
                    f"items of {pointer} after {state[0]}",
                    Rank.REST,
                    partial(self._after, state, steps, counter, references),
                )

    def _plan_object(self, thing: ObjectShape, pointer: str) -> None:
        if thing.clauses:
            self._plan_members(thing, pointer)
            return
        alive = self.graph.alive
        counted = thing.low > len(thing.required)
        free = self.layout.order is Order.ANY or counted or thing.high is not None or bool(thing.some)
        for need in thing.declared.values():
            if need in alive:
                self._plan(need)
                if free and need not in self._members:
                    self._members[need] = self._rule(pointer_of(need), Rank.INNER, partial(self._member, need))
        extras = self._extra_needs(thing)
        for need in extras:
            self._plan(need)
            if need not in self._undeclared:
                self._undeclared[need] = self._rule(
                    pointer_of(need), Rank.INNER, partial(self._member, need), Mark.UNDECLARED
                )
        if extras and counted:
            # One that is asked for beside others is none of those: they are not asked for, or of another sort.
            self._forces_several = self._forces_several or thing.low > len(thing.required) + 1
            self._distinct.check_object(thing, pointer)
        if self._compares:
            self._open(thing, pointer, Mark.OBJECT, lambda: (self._open_object, self._members_of(thing, pointer)))

    def _plan_members(self, thing: ObjectShape, pointer: str) -> None:
        """One rule for each state of the clauses; the first is written in place."""
        states = self.graph.member_states(thing)
        references: dict[MemberState, Reference] = {}
        self._walked[thing] = references
        for number, (state, steps) in enumerate(states.items()):
            for step in steps:
                self._plan(step.need)
                if step.extra is not None:
                    self._settled(step.extra.names)
                    self._forces_several = True
                    if step.need not in self._undeclared:
                        self._undeclared[step.need] = self._rule(
                            pointer_of(step.need), Rank.INNER, partial(self._member, step.need), Mark.UNDECLARED
                        )
            if number:
                if self.graph.ends_at(thing, state):
                    self._nullable.append(len(self.rules))
                name = f"members of {pointer}, state {number}"
                references[state] = self._rule(name, Rank.REST, partial(self._walk, thing, state))
        if thing.low > len(thing.required):
            self._distinct.check_object(thing, pointer)
        if self._compares:
            self._open(thing, pointer, Mark.OBJECT, lambda: (self._open_object, self._members_of(thing, pointer)))

    def _extra_needs(self, thing: ObjectShape) -> list[Need]:
        """What undeclared members may hold: the needs of `Graph.living_extras`."""
        if not thing.some and len(thing.classes) == 1 and thing.classes[0][0] is CONTENT:
            # However many names are declared, there are others.
            need = thing.classes[0][1]
            return [need] if need in self.graph.alive else []
        found = self._sorts[thing] = self.graph.living_extras(thing)
        for extra in found:
            self._settled(extra.names)
        return [extra.need for extra in found]

    def _open(
        self, shape: ArrayShape | ObjectShape, pointer: str, mark: Mark, make: Callable[[], tuple[Body, ...]]
    ) -> None:
        """A rule for a container up to before its closing bracket: the checker must know that it is open."""
        self._opened[shape] = self._rule(pointer, Rank.OPENED, lambda: sequence(*make()), mark)

    def _check_numbers(self, shape: Shape) -> None:
        """What can be refused of numbers is refused now."""
        for item in living_numbers(shape):
            if self._spelling is Spelling.PLAIN:
                pass  # integers are digits, and of other numbers the documentation tells
            elif item.step is not None or item.avoid:
                self.notes["integers and multiples have an exponent only where there is no upper bound: 1.5e+16"] = None
            elif item.low is not None or item.high is not None:
                self.notes["numbers under a bound have an exponent only after a single digit before the point"] = None
            if may_be_refused(item):
                number_text(item, self._spelling)

    # -- bodies ---------------------------------------------------------------------------------------------------

    def value(self, need: Need) -> Body:
        """A value of a living need: a terminal when it is one token, a reference to its rule otherwise."""
        container = self._values.get(need)
        if container is not None:
            return container
        found = self._scalars.get(need)
        if found is None:
            found = self._scalars[need] = self._scalar(need)
        return found

    def _scalar(self, need: Need) -> Body:
        shape = self.graph.shapes[need]
        if need not in OF_TYPES:
            return self._alternatives(shape, [], [], pointer_of(need))
        key = need, self._spelling is Spelling.PLAIN
        found = _of_types.get(key)
        if found is None:
            found = _of_types[key] = self._alternatives(shape, [], [], pointer_of(need))
        return found

    def _alternatives(self, shape: Shape, arrays: list[ArrayShape], things: list[ObjectShape], pointer: str) -> Body:
        options: list[Body] = []
        if shape is ANYTHING and pointer.startswith(ANY):
            options.extend(any_scalar(self._spelling))
        elif shape.strings or shape.numbers:
            patterns = self._patterns.get(shape)
            if patterns:
                options.extend(patterns)
                shape = replace(shape, strings=tuple(item for item in shape.strings if not item.is_checked()))
            if shape.strings and strings_alive(shape):
                options.append(self._strings(shape.strings, pointer))
            numbers = living_numbers(shape)
            if numbers:
                options.append(self._numbers(numbers, pointer))
        for thing in things:
            options.append(self._object(thing, pointer))
        for array in arrays:
            options.append(self._array(array, pointer))
        if shape.true:
            options.append(TRUE_TEXT)
        if shape.false:
            options.append(FALSE_TEXT)
        if shape.null:
            options.append(NULL_TEXT)
        return options[0] if len(options) == 1 else Choice(tuple(options))

    # -- scalars --------------------------------------------------------------------------------------------------

    def _strings(self, found: tuple[StringSet, ...], pointer: str) -> AnyTerminal:
        if len(found) == 1 and found[0].words is not None:
            return self._words(found[0].words, pointer)
        texts = [self._text(item) for item in found]
        expr = texts[0] if len(texts) == 1 else alternation(texts)
        # That there is such a string is known by now, and costly to find out again behind the spelling.
        expr.inhabited = True
        return Terminal(expr, _label("string", pointer))

    def _text(self, item: StringSet) -> Expr:
        """The language in JSON, with quotes."""
        return quoted(self._settled(item.content()), self._spelling)

    def _words(self, found: frozenset[str], pointer: str) -> AnyTerminal:
        texts = encoded(found)
        listed = ListedTerminal(texts, _label("", pointer), self._spelling is Spelling.PLAIN)
        if texts and sum(map(len, texts)) <= MOST_LISTED:
            return listed
        return Terminal(listed.language(), listed.label)

    def _numbers(self, found: list[NumberRange], pointer: str) -> AnyTerminal:
        whole = all(item.step is not None and item.step.denominator == 1 for item in found)
        label = _label("integer" if whole else "number", pointer)
        if len(found) == 1:
            ranges = ranges_of(found[0], self._spelling)
            if ranges is not None:
                return RangedTerminal(ranges, partial(number_text, found[0], self._spelling), label)
        return Terminal(alternation([*number_texts(found, self._spelling), *self._floats(found)]), label)

    def _floats(self, found: list[NumberRange]) -> list[Expr]:
        """Whole numbers as plain spelling has them besides, where the schema writes them so."""
        if self._spelling is Spelling.ANY or not self._fractional:
            return []
        texts = [repr(float(item.low)).encode() for item in found if is_single(item) and item.low in self._fractional]
        return [words(texts)] if texts else []

    # -- arrays ---------------------------------------------------------------------------------------------------

    def _array(self, array: ArrayShape, pointer: str) -> Body:
        opened = self._opened.get(array)
        if opened is not None:
            return sequence(opened, self._close_array)
        return sequence(self._open_array, self._items_of(array, pointer), self._close_array)

    def _items_of(self, array: ArrayShape, pointer: str) -> Body:
        if array.counts:
            counter = ItemCounter(array)
            steps = self.graph.item_states(array)[counter.start]
            return self._after(counter.start, steps, counter, self._counted[array])
        prefix, _ = self._places(array)
        if not prefix:
            return self._tail(array)
        # Items that must be there stand in one sequence; optional ones each in a rule, which keeps bodies flat.
        parts: list[Body] = []
        for index, need in enumerate(prefix[: array.low]):
            parts.extend((self._comma, *self._item(need)) if index else self._item(need))
        optional = self._optional.get(array)
        return sequence(*parts, optional[0] if optional else self._tail(array))

    def _rest_of(self, array: ArrayShape, index: int) -> Body:
        """The optional items from a place in the prefix on."""
        prefix, _ = self._places(array)
        lead = (self._comma,) if index else ()
        following = index + 1 - array.low
        optional = self._optional[array]
        rest = optional[following] if following < len(optional) else self._tail(array)
        return Choice((NO_TEXT, sequence(*lead, *self._item(prefix[index]), rest)))

    def _tail(self, array: ArrayShape) -> Body:
        """The items behind the prefix."""
        prefix, high = self._places(array)
        left = None if high is None else high - len(prefix)
        if left is not None and left <= 0:
            return NO_TEXT
        low = max(array.low - len(prefix), 0)
        item = self._items.get((array.rest, bool(prefix)))
        if prefix:
            return Repetition(item or sequence(self._comma, *self._item(array.rest)), low, left)
        return Repetition(item or sequence(*self._item(array.rest)), low, left, self._comma)

    def _places(self, array: ArrayShape) -> tuple[tuple[Need, ...], int | None]:
        """The prefix as far as items can be there, and how many items there can be."""
        alive = self.graph.alive
        prefix = array.prefix if array.high is None else array.prefix[: array.high]
        high = array.high
        for index, need in enumerate(prefix):
            if need not in alive:
                prefix, high = prefix[:index], index
                break
        if array.rest not in alive:
            high = len(prefix) if high is None else min(high, len(prefix))
        return prefix, high

    def _after(self, state: State, steps: list[Step], counter: ItemCounter, rules: dict[State, Reference]) -> Body:
        """The items from a state of the counts on."""
        options: list[Body] = [NO_TEXT] if counter.accepts(state) else []
        lead = (self._comma,) if state[0] else ()
        options.extend(sequence(*lead, *self._item(step.need), rules[step.state]) for step in steps)
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _item(self, need: Need) -> tuple[Body, ...]:
        return (self.value(need), *self._space)

    # -- objects --------------------------------------------------------------------------------------------------

    def _object(self, thing: ObjectShape, pointer: str) -> Body:
        opened = self._opened.get(thing)
        if opened is not None:
            return sequence(opened, self._close_object)
        return sequence(self._open_object, self._members_of(thing, pointer), self._close_object)

    def _members_of(self, thing: ObjectShape, pointer: str) -> Body:
        if thing.clauses:
            return self._walk(thing, next(iter(self.graph.member_states(thing))))
        alive = self.graph.alive
        at = "" if " " in pointer else f"{pointer}/properties/"
        names = tuple([name for name, need in thing.declared.items() if need in alive])
        spelling, needed = self._spelling, thing.required
        required = tuple([name in needed for name in names])
        low = 0 if thing.low <= len(thing.required) else thing.low
        high, in_order = thing.high, self.layout.order is Order.SCHEMA
        if in_order and low == 0 and not thing.some:
            texts = tuple(map(text_of, names))
            besides, others = self._others(thing, texts)
            if high is None or (not others and high >= len(names)):
                source, space = DeclaredMembers(self, names, thing.declared, at), self.layout.space
                canonical = spelling is Spelling.PLAIN
                return DeferredMembers(
                    texts, canonical, required, source, self._colon, space, others, self._comma, besides
                )
        extras = tuple(
            [
                Member(other_key(self._settled(extra.names), spelling), self._undeclared[extra.need], meets=extra.meets)
                for extra in self._sorts.get(thing) or self.graph.living_extras(thing)
            ]
        )
        if high is not None and not extras and high >= len(names):
            high = None
        members = tuple(
            [
                Member(key_of(name, spelling), self._members[thing.declared[name]], must)
                for name, must in zip(names, required, strict=True)
            ]
        )
        return Members(members, extras, self._comma, in_order, low, high, goals(thing))

    def _walk(self, thing: ObjectShape, state: MemberState) -> Body:
        """The members from a state of the clauses on."""
        options: list[Body] = [NO_TEXT] if self.graph.ends_at(thing, state) else []
        lead = (self._comma,) if state[3] else ()
        after = self._walked[thing]
        for step in self.graph.member_states(thing)[state]:
            if step.extra is not None:
                key = other_key(self._settled(step.extra.names), self._spelling)
                options.append(sequence(*lead, key, self._undeclared[step.need], after[step.state]))
            else:
                assert step.name is not None
                value = (key_of(step.name, self._spelling), self._colon, self.value(step.need), *self._space)
                options.append(sequence(*lead, *value, after[step.state]))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _others(
        self, thing: ObjectShape, texts: tuple[bytes | None, ...]
    ) -> tuple[tuple[bytes, ...], tuple[tuple[Terminal, int], ...]]:
        """The last two of what `DeferredMembers` says of other names, given the declared names that may be there."""
        alive, classes = self.graph.alive, thing.classes
        if len(classes) == 1 and classes[0][0] is CONTENT:
            need = classes[0][1]
            if need not in alive:
                return (), ()
            if len(texts) < len(thing.declared):
                texts = tuple(map(text_of, thing.declared))
            if None not in texts:
                besides = cast("tuple[bytes, ...]", texts)
                if sum(map(len, besides)) <= MOST_LISTED:
                    return besides, ((other_key(CONTENT, self._spelling), self._undeclared[need].rule),)
        sorts = self._sorts.get(thing) or self.graph.living_extras(thing)
        keys = [other_key(self._settled(extra.names), self._spelling) for extra in sorts]
        return (), tuple([(key, self._undeclared[extra.need].rule) for key, extra in zip(keys, sorts, strict=True)])

    def at_hand(self, needs: list[Need]) -> list[Body | None]:
        """Values as `value` gives them, those that are made already and of needs that say only a type."""
        rules, scalars = self._values, self._scalars
        return [
            rules.get(need) or scalars.get(need) or (self.value(need) if need in OF_TYPES else None) for need in needs
        ]

    def _member(self, need: Need) -> Body:
        return Sequence((self._colon, self.value(need), *self._space))


def _pattern(item: StringSet, spelling: Spelling, label: str) -> Terminal:
    return Terminal(item.skeleton(spelling), label)


def _is_counted(low: int, high: int | None) -> bool:
    """May engines count such a repetition rather than write it out?"""
    return low > MAX_WRITTEN_OUT or (high is not None and high > MAX_WRITTEN_OUT)


def _label(kind: str, pointer: str) -> str:
    return kind if pointer.startswith(ANY) else f"{kind} at {pointer}"


_of_types: dict[tuple[Need, bool], Body] = {}
"""Values of the needs that say only a type, where they are one token, in plain spelling or not: the same in every
schema."""
