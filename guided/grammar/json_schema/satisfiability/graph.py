"""Which needs can be met at all: the graph of everything reachable, and the least fixpoint of "has a value" on it.

A need is a node; its shape's alternatives refer to further needs.  A node is alive when one alternative is: an array
whose first ``minItems`` items are, an object whose required members are.  Recursion that never ends is not alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from guided.errors import LimitError, UnsatisfiableError
from guided.grammar.goals import fewest_to_meet
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.keywords.normalise import Normaliser
from guided.grammar.json_schema.numbers.number_text import number_text
from guided.grammar.json_schema.numbers.ranges import MAX_AVOIDED, NumberRange
from guided.grammar.json_schema.sets.algebra import MAX_ALTERNATIVES
from guided.grammar.json_schema.sets.clauses import FEW_WAYS, MemberWalk, told_apart
from guided.grammar.json_schema.sets.clauses import State as MemberState
from guided.grammar.json_schema.sets.clauses import Step as MemberStep
from guided.grammar.json_schema.sets.counting import ItemCounter, State, Step
from guided.grammar.json_schema.sets.extras import Extra, extras, few_names_declared, goals, other_names
from guided.grammar.json_schema.sets.shape import ANY, NOTHING, OF_TYPES, ArrayShape, Need, ObjectShape, Shape, is_false
from guided.grammar.json_schema.sets.strings import ANY_STRING
from guided.grammar.regular.expr import EMPTY

MAX_NODES = 20_000
"""Distinct conjunctions of subschemas; the largest of the JSON Schema corpora need about 3,000."""

MAX_MENTIONS = 40_000
"""Parts of all nodes together."""


class Graph:
    """The nodes reachable from one need, with their shapes and whether they are alive."""

    def __init__(self, normaliser: Normaliser, root: Need, in_order: bool = True) -> None:
        self.normaliser = normaliser
        self.root = root
        self.shapes: dict[Need, Shape] = {}
        self.alive: set[Need] = set()
        self._pending: list[Need] = []
        self._settled = False
        self._dropped: set[ArrayShape] = set()
        self._item_states: dict[ArrayShape, dict[State, list[Step]]] = {}
        self._extras: dict[ObjectShape, list[Extra]] = {}
        self._walks: dict[ObjectShape, MemberWalk] = {}
        self._member_states: dict[ObjectShape, dict[MemberState, list[MemberStep]]] = {}
        self._in_order = in_order
        # In any order the states are many: which members are there is part of them.
        self._most_ways = FEW_WAYS if in_order else MAX_ALTERNATIVES
        self._mentioned = 0
        self.compares = False
        """Does some array ask whether its items differ?"""
        self._discover(root)
        overlaps: list[Shape] = []
        while len(overlaps) < len(normaliser.overlaps):
            overlap = normaliser.overlaps[len(overlaps)]
            overlaps.append(self._without_clauses(overlap.shape, overlap.branches[0].pointer))
            for child in self._children(overlaps[-1]):
                self._discover(child)
        normaliser.check_names()
        self._settle()
        self._settled = True
        self.overlapping = {
            overlap.branches
            for overlap, shape in zip(normaliser.overlaps, overlaps, strict=True)
            if self.shape_alive(shape)
        }
        """Pairs of places in a oneOf that were taken to exclude each other and do not: the graph is not exact then."""
        del self.normaliser

    def check(self) -> None:
        """`UnsatisfiableError` when the root has no value."""
        if self.root not in self.alive:
            raise UnsatisfiableError(
                "no value satisfies this schema",
                where=self._cause(self.root),
                remedy="Relax the part named here.",
            )

    def drop(self, arrays: list[ArrayShape]) -> None:
        """Count these arrays as having no value, and settle again."""
        self._dropped.update(arrays)
        self._item_states.clear()
        self._member_states.clear()
        self._settled = False
        self._pending = [*self.shapes]
        self.alive.clear()
        self._settle()
        self._settled = True

    def _discover(self, need: Need) -> None:
        if need in self.shapes:
            return
        work = [need]
        while work:
            need = work.pop()
            if need in self.shapes:
                continue
            if self._mentioned > MAX_MENTIONS:
                raise refusals.MENTIONS.at(pointer_of(need), limit=MAX_MENTIONS)
            shape = OF_TYPES.get(need)
            if shape is not None and shape.has_scalar():
                self.shapes[need] = shape
                self.alive.add(need)
                continue
            if is_false(need):
                self.shapes[need] = NOTHING
                continue
            shape = self.normaliser.shape(need)
            if shape.objects:
                shape = _told_apart(self._without_clauses(shape, pointer_of(need)))
            for array in shape.arrays:
                if array.unique is not None:
                    self.compares = True
            self.shapes[need] = shape
            if len(self.shapes) > MAX_NODES:
                raise refusals.NODES.at(pointer_of(need), limit=MAX_NODES)
            if self._is_alive(need):
                self.alive.add(need)
            else:
                self._pending.append(need)
            try:
                children = self._children(shape)
                self._mentioned += len(children)
                work.extend(children)
            except LimitError as error:
                raise LimitError(error.what, where=error.where or pointer_of(need), remedy=error.remedy) from None

    def _without_clauses(self, shape: Shape, pointer: str) -> Shape:
        """The same values, with clauses written out where they are few; others are kept track of by automata."""
        if not any(thing.clauses for thing in shape.objects):
            return shape
        found: list[ObjectShape] = []
        for thing in shape.objects:
            found += self._settled_clauses(thing, pointer) if thing.clauses else (thing,)
        return replace(shape, objects=tuple(found))

    def _settled_clauses(self, thing: ObjectShape, pointer: str) -> Iterable[ObjectShape]:
        ways = self.normaliser.settled(thing, self._most_ways)
        if ways is not None:
            return ways
        thing = told_apart(thing)
        try:
            self._walks[thing] = self.normaliser.walk(thing, self._in_order)
        except LimitError as error:
            ways = self.normaliser.settled(thing, MAX_ALTERNATIVES) if self._in_order else None
            if ways is None:
                raise LimitError(error.what, where=pointer, remedy=error.remedy) from None
            return ways
        return (thing,)

    def _settle(self) -> None:
        changed = True
        while changed:
            changed = False
            rest = []
            for need in reversed(self._pending):
                if self._is_alive(need):
                    self.alive.add(need)
                    changed = True
                else:
                    rest.append(need)
            rest.reverse()
            self._pending = rest

    def _is_alive(self, need: Need) -> bool:
        try:
            return self.shape_alive(self.shapes[need])
        except LimitError as error:
            raise LimitError(error.what, where=error.where or pointer_of(need), remedy=error.remedy) from None

    def shape_alive(self, shape: Shape) -> bool:
        """Does some alternative have a value, as far as is known?"""
        if scalar_alive(shape):
            return True
        for array in shape.arrays:
            if self.array_alive(array):
                return True
        for thing in shape.objects:  # noqa: SIM110 -- asked of every node, and a generator takes several times as long
            if self.object_alive(thing):
                return True
        return False

    def array_alive(self, array: ArrayShape) -> bool:
        """Can its first ``low`` items be there?"""
        if array.counts:
            return bool(self.item_states(array))
        if array.low == 0:
            return True
        if array in self._dropped:
            return False
        if any(need not in self.alive for need in array.prefix[: array.low]):
            return False
        return array.low <= len(array.prefix) or array.rest in self.alive

    def item_states(self, array: ArrayShape) -> dict[State, list[Step]]:
        """The automaton of an array that counts its items, of living items only; empty when there is no such array."""
        if not self._settled:
            return ItemCounter(array).living(self.alive.__contains__)
        found = self._item_states.get(array)
        if found is None:
            found = self._item_states[array] = ItemCounter(array).living(self.alive.__contains__)
        return found

    def member_states(self, thing: ObjectShape) -> dict[MemberState, list[MemberStep]]:
        """The automaton of an object with clauses, of living members only; empty when there is no such object."""
        if not self._settled:
            return self._walks[thing].living(self.alive.__contains__)
        found = self._member_states.get(thing)
        if found is None:
            found = self._member_states[thing] = self._walks[thing].living(self.alive.__contains__)
        return found

    def ends_at(self, thing: ObjectShape, state: MemberState) -> bool:
        """May an object with clauses end in a state?"""
        return self._walks[thing].accepts(state)

    def object_alive(self, thing: ObjectShape) -> bool:
        """Can its required members, and as many as ``low`` asks for, be there?"""
        if thing.clauses:
            return bool(self.member_states(thing))
        for name in thing.required:
            if thing.declared[name] not in self.alive:
                return False
        needed = len(thing.required)
        if thing.some:
            fewest = fewest_to_meet([extra.meets for extra in self.living_extras(thing)], goals(thing))
            if fewest is None:
                return False
            needed += fewest
        if thing.high is not None and needed > thing.high:
            return False
        if thing.low <= needed:
            return True
        possible = sum(need in self.alive for need in thing.declared.values())
        if possible >= thing.low:
            return True
        return any(need in self.alive and other_names(thing, language) is not EMPTY for language, need in thing.classes)

    def living_extras(self, thing: ObjectShape) -> list[Extra]:
        """The sorts of undeclared members that have a value."""
        alive = self.alive
        if not thing.some and not any(need in alive for _, need in thing.classes):
            return []
        return [extra for extra in self._all_extras(thing) if extra.need in alive]

    def _all_extras(self, thing: ObjectShape) -> list[Extra]:
        found = self._extras.get(thing)
        if found is None:
            found = self._extras[thing] = extras(thing)
        return found

    def _children(self, shape: Shape) -> list[Need]:
        found: list[Need] = []
        for array in shape.arrays:
            if array.counts:
                found.extend(ItemCounter(array).needs())
                continue
            found.extend(array.prefix)
            if array.high is None or array.high > len(array.prefix):
                found.append(array.rest)
        for thing in shape.objects:
            if thing.clauses:
                found.extend(self._walks[thing].needs())
                continue
            found.extend(thing.declared.values())
            found.extend([need for _, need in thing.classes])
            if thing.some:
                found.extend(extra.need for extra in self._all_extras(thing))
        return found

    def _cause(self, need: Need) -> str:
        """The pointer of the deepest part that makes a need empty."""
        seen: set[Need] = set()
        while need in self.shapes and need not in seen:
            seen.add(need)
            shape = self.shapes[need]
            dead: Need | None = None
            if len(shape.arrays) + len(shape.objects) == 1:
                for array in shape.arrays:
                    dead = next((array.item(i) for i in range(array.low) if array.item(i) not in self.alive), None)
                for thing in shape.objects:
                    names = [name for name in thing.declared if name in thing.required]
                    dead = next((thing.declared[n] for n in names if thing.declared[n] not in self.alive), None)
            if dead is None:
                break
            need = dead
        return pointer_of(need)


def pointer_of(need: Need) -> str:
    """Where a need comes from, for messages and labels."""
    if len(need) == 1:
        return next(iter(need)).pointer
    places = sorted(atom.pointer for atom in need)
    return " and ".join(place for place in places if not place.startswith(ANY)) or (
        places[0] if places else "any value"
    )


def _told_apart(shape: Shape) -> Shape:
    """The same values, with names declared that must be told apart."""
    for thing in shape.objects:
        if thing.clauses:
            continue
        if thing.some or thing.low > len(thing.required):
            break
    else:
        return shape
    found = [(thing,) if thing.clauses else few_names_declared(thing) for thing in shape.objects]
    return replace(shape, objects=tuple([more for things in found for more in things]))


def scalar_alive(shape: Shape) -> bool:
    """Is there a value that is no array or object?"""
    if shape.null or shape.true or shape.false or (shape.numbers and living_numbers(shape)):
        return True
    return bool(shape.strings) and strings_alive(shape)


def living_numbers(shape: Shape) -> list[NumberRange]:
    """The number ranges that hold a number; where ``avoid`` leaves that open, the automaton decides."""
    return [item for item in shape.numbers if len(item.avoid) <= MAX_AVOIDED or number_text(item) is not EMPTY]


def strings_alive(shape: Shape) -> bool:
    """Is there a string?  The alternatives that are easy to decide are asked first."""
    found = shape.strings
    for item in found:
        # Asked of every value, so not by comparing it with `ANY_STRING` field by field.
        if item.words or item is ANY_STRING:
            return True
    return any(item.is_surely_inhabited() for item in found) or any(not item.is_empty() for item in found)
