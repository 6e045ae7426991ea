"""From a need to its `Shape`: keywords that apply schemas to the same value are expanded here, as set algebra.

``allOf``, ``$ref``, ``anyOf``, ``oneOf``, ``not``, ``if`` and the dependent keywords become intersections, unions and
complements.  A complement follows the keywords (De Morgan), so that the negation of a union of many branches is an
intersection of small sets rather than the complement of a large one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

from guided.errors import GrammarError, GuidedError
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.keywords.assertions import APPLICATORS, ASSERTING, IN_PLACE, REFERENCES, VALIDATION
from guided.grammar.json_schema.keywords.evaluated import Alternatives, Container, Evaluation
from guided.grammar.json_schema.keywords.formats import Formats
from guided.grammar.json_schema.reading.document import Document, Located, Schema, Scope, Standing, escape
from guided.grammar.json_schema.sets.algebra import intersect, unite
from guided.grammar.json_schema.sets.clauses import MemberWalk, merged, simplified, written_out
from guided.grammar.json_schema.sets.disjoint import surely_disjoint
from guided.grammar.json_schema.sets.negation import subtract
from guided.grammar.json_schema.sets.shape import (
    ANY_OBJECT,
    ANYTHING,
    FALSE,
    NOTHING,
    OF_TYPES,
    TRUE,
    Atom,
    Constant,
    Need,
    Not,
    ObjectShape,
    Shape,
    ordered,
    typed,
)
from guided.grammar.json_schema.sets.strings import StringSet
from guided.grammar.json_schema.sets.values import fractional, freeze, plain_words, shape_of

FEW = 8
"""Alternatives of one type up to which a conjunction is made from a smaller one that is known."""

MAX_COMBINED = 50_000
"""Pairs of alternatives that are combined for one schema; 10 to 50 microseconds each; of MaskBench's
schemas that compile the largest needs 14,344."""

Branches: TypeAlias = "tuple[Located, int, int]"
"""Where a ``oneOf`` is and two of its branches."""

Places: TypeAlias = "dict[tuple[int, Scope], list[Schema]]"

_SINCE = dict(REFERENCES)

UNEVALUATED = frozenset(container.value for container in Container)


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """A value that two branches of a ``oneOf`` would both allow: the union is exact only if there is none."""

    shape: Shape
    branches: Branches


class Normaliser(Evaluation):
    """Expands needs to shapes, each once."""

    def __init__(self, document: Document, formats: Formats, overlapping: frozenset[Branches] = frozenset()) -> None:
        super().__init__(document, formats)
        self._overlapping = overlapping
        self.overlaps: list[Overlap] = []
        self._combined = 0
        self._negates_objects = False
        self._dead_needs: dict[Need, bool] = {}
        self._plain: dict[Atom, bool] = {}
        self._required_names: dict[str, Need] = {}
        self._shapes: dict[tuple[Atom, bool], Shape | None] = {}
        self._conjunctions: dict[Need, Shape] = {}
        self._alternatives: dict[tuple[Located, Container], Alternatives | None] = {}

    def need(self, at: Located) -> Need:
        """What a place asks for; references, and applicators of a single schema, that stand alone are followed.

        Raises `GrammarError` for a reference that leads back to itself.
        """
        for _ in range(1000):
            schema = at.schema
            if schema is True or (not schema and schema is not False):
                return TRUE
            if schema is False:
                return frozenset((at,))
            if "$ref" in schema:
                alone = len(schema) == 1 or at.resource.dialect.reference_stands_alone
                if not alone and not ASSERTING.isdisjoint(schema.keys() - {"$ref"}):
                    return frozenset((at,))
                at = self.document.resolve(at)
                continue
            said = ASSERTING.intersection(schema)
            if not said:
                return TRUE
            if len(said) > 1:
                return frozenset((at,))
            only = next(iter(said))
            if only == "type":
                return typed(schema["type"], at.resource.dialect) or frozenset((at,))
            if self._refers(at, only):
                at = self.document.resolve(at, only)
                continue
            branches = schema[only] if only in ("allOf", "anyOf", "oneOf") else None
            if not isinstance(branches, list) or len(branches) != 1:
                return frozenset((at,))
            at = self.document.child(at, only, 0, at.standing)
        raise GrammarError(
            "the reference leads back to itself", where=f"{at.pointer}/$ref", remedy="Let it end in a schema."
        )

    def under(self, at: Located, keyword: str, name: str | int | None = None) -> Need:
        """What the subschema under a keyword asks for; one that says only its type needs no place."""
        schema = at.schema[keyword]  # type: ignore[index]
        if name is not None:
            schema = schema[name]
        if type(schema) is dict:
            dialect = at.resource.dialect
            if dialect.identifier not in schema and "$schema" not in schema:
                said = ASSERTING.intersection(schema)
                if not said:
                    return TRUE
                if len(said) > 1:
                    if "$ref" not in said:
                        return frozenset((self.document.child(at, keyword, name),))
                elif "type" in said:
                    found = typed(schema["type"], dialect)
                    if found is not None:
                        return found
        return self.need(self.document.child(at, keyword, name))

    @staticmethod
    def _refers(at: Located, keyword: str) -> bool:
        return keyword in _SINCE and at.resource.dialect.order >= _SINCE[keyword]

    def shape(self, need: Need) -> Shape:
        """The values that all atoms of the need allow."""
        if len(need) < 2:
            if not need:
                return ANYTHING
            known = OF_TYPES.get(need)
            if known is not None:
                return known
            (atom,) = need
            return self.expand(atom, True)
        found = self._conjunctions.get(need)
        if found is None:
            found = self._conjunctions[need] = self._conjunction(need)
        return found

    def _conjunction(self, need: Need) -> Shape:
        # Needs grow atom by atom, where schemas are applied to one value one after another.  What has many alternatives
        # is better met by those atoms first that allow few values.
        for atom in need:
            known = self._conjunctions.get(need - {atom})
            if known is not None and max(map(len, (known.objects, known.arrays, known.numbers, known.strings))) <= FEW:
                return self.both(known, self.expand(atom, True), atom.pointer)
        result = ANYTHING
        for atom in ordered(need):
            shape = self.expand(atom, True)
            result = shape if result is ANYTHING else self.both(result, shape, atom.pointer)
        return result

    def complement(self, need: Need) -> Shape:
        """The values that some atom of the need does not allow."""
        return _failing([self.expand(atom, False) for atom in ordered(need)]) if need else NOTHING

    def expand(self, atom: Atom, positive: bool) -> Shape:
        """The values that one atom allows, or (not ``positive``) all others.

        Raises a refusal for a schema that applies itself to the same value.
        """
        key = (atom, positive)
        if key in self._shapes:
            found = self._shapes[key]
            if found is None:
                raise refusals.SELF_APPLYING.at(atom.pointer)
            return found
        self._shapes[key] = None
        try:
            found = self._shapes[key] = self._atom(atom, positive)
        except GuidedError as error:
            if error.where is not None:
                raise
            raise type(error)(error.what, where=atom.pointer, remedy=error.remedy) from None
        return found

    def _atom(self, atom: Atom, positive: bool) -> Shape:
        if not isinstance(atom, Located):
            if isinstance(atom, Not):
                return self.complement(atom.need) if positive else self.shape(atom.need)
            shape = shape_of([atom.value], atom.pointer)
            return shape if positive else self._others(shape, atom.pointer)
        schema = atom.schema
        if isinstance(schema, bool):
            return ANYTHING if schema is positive else NOTHING
        dialect = atom.resource.dialect
        if "$ref" in schema and dialect.reference_stands_alone:
            need = self.need(atom)
            return self.shape(need) if positive else self.complement(need)
        schema = self.keywords(atom)
        if not positive:
            return _failing(self._failures(atom, schema))
        shape = self.assertions(atom, schema)
        return shape if IN_PLACE.isdisjoint(schema) else self._in_place(atom, schema, shape)

    def keywords(self, at: Located) -> dict[str, Any]:
        """The keywords in force in a schema object."""
        schema = at.schema
        assert isinstance(schema, dict)
        if at.resource.dialect.asserts:
            return schema
        return {keyword: value for keyword, value in schema.items() if keyword not in VALIDATION}

    def check_names(self) -> None:
        """`UnsupportedError` where names are narrowed and what is left of them may have been taken for all."""
        if self._narrowed_names is not None and self._negates_objects:
            raise refusals.NARROWED_NAMES.at(self._narrowed_names)

    def _others(self, shape: Shape, pointer: str) -> Shape:
        if any(thing is not ANY_OBJECT for thing in shape.objects):
            self._negates_objects = True
        return subtract(ANYTHING, shape, pointer, self._prune)

    # -- alternatives that are surely empty ------------------------------------------------------------------------

    def both(self, a: Shape, b: Shape, pointer: str) -> Shape:
        """The values in both, without alternatives that are surely empty.

        Raises a refusal for too many alternatives.
        """
        self._combined += _pairs(a, b)
        if self._combined > MAX_COMBINED:
            raise refusals.ALTERNATIVES.at(pointer, limit=MAX_COMBINED)
        return self._prune(intersect(a, b, pointer))

    def _prune(self, shape: Shape) -> Shape:
        """Without the objects and arrays that need a part which is surely empty."""
        if not shape.objects and not shape.arrays:
            return shape
        objects = self._living(shape.objects)
        arrays = tuple(
            array
            for array in shape.arrays
            if not array.low or not any(self._dead(array.item(i)) for i in range(min(array.low, len(array.prefix) + 1)))
        )
        if objects is shape.objects and len(arrays) == len(shape.arrays):
            return shape
        return replace(shape, objects=objects, arrays=arrays)

    def _living(self, things: tuple[ObjectShape, ...]) -> tuple[ObjectShape, ...]:
        found = []
        changed = False
        for thing in things:
            left = None if any(self._dead(thing.declared[name]) for name in thing.required) else thing
            if left is not None and thing.clauses:
                left = simplified(thing, self._dead)
            changed |= left is not thing
            if left is not None:
                found.append(left)
        return tuple(found) if changed else things

    def settled(self, thing: ObjectShape, limit: int) -> tuple[ObjectShape, ...] | None:
        """An object with clauses as a union without them; None where that is longer than ``limit``."""
        return written_out(thing, self._living, self._dead, limit)

    def walk(self, thing: ObjectShape, in_order: bool) -> MemberWalk:
        """The automaton of an object with clauses."""
        return MemberWalk(thing, self._dead, in_order)

    def _dead(self, need: Need) -> bool:
        """Is a need surely empty?  Looks only as deep as it can without expanding what is being expanded."""
        found = self._dead_needs.get(need)
        if found is None:
            self._dead_needs[need] = False
            found = self._dead_needs[need] = self._surely_empty(need)
        return found

    def _surely_empty(self, need: Need) -> bool:
        if any(isinstance(atom, Located) and atom.schema is False for atom in need):
            return True
        places: Places | None = None
        for atom in need:
            # Something and its opposite.
            if not isinstance(atom, Not):
                continue
            if atom.need <= need:
                return True
            if places is None:
                places = _places(need)
            if all(part in need or _is_among(part, places) for part in atom.need):
                return True
        return len(need) > 1 and all(map(self._is_plain, need)) and self.shape(need).is_empty()

    def _is_plain(self, atom: Atom) -> bool:
        """Can the atom be expanded without expanding others about the same value?"""
        found = self._plain.get(atom)
        if found is None:
            if isinstance(atom, Located):
                schema = atom.schema
                found = isinstance(schema, bool) or ("propertyNames" not in schema and APPLICATORS.isdisjoint(schema))
            else:
                found = isinstance(atom, Constant) or all(map(self._is_plain, atom.need))
            self._plain[atom] = found
        return found

    # -- applicators to the same value ----------------------------------------------------------------------------

    def _in_place(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        order = at.resource.dialect.order
        shape = self.listed(at, schema, shape)
        asked = [container for container in Container if order >= 2019 and container.value in schema]
        if at.standing is Standing.WHOLE and Container.OBJECT not in asked and _declares_together(schema):
            asked.append(Container.OBJECT)
        return self._with_unevaluated(at, schema, shape, asked) if asked else self._applied(at, schema, shape)

    def _with_unevaluated(self, at: Located, schema: dict[str, Any], shape: Shape, asked: list[Container]) -> Shape:
        rest = shape
        if Container.ARRAY in asked:
            rest = replace(rest, arrays=())
        if Container.OBJECT in asked:
            rest = replace(rest, objects=())
        parts = [self._applied(at, schema, rest)]
        for container in asked:
            if shape.arrays if container is Container.ARRAY else shape.objects:
                parts.append(self.with_unevaluated(at, container))
        return unite(parts)

    def _applied(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        """The values of ``shape`` that meet all keywords which apply schemas to the same value."""
        pointer = at.pointer
        for keyword, since in REFERENCES:
            if keyword in schema and at.resource.dialect.order >= since:
                target = self.need(self.document.resolve(at, keyword, beside=True))
                shape = self.both(shape, self.shape(target), pointer)
        if "allOf" in schema:
            for i, need in enumerate(self.branches(at, schema, "allOf")):
                shape = self.both(shape, self.shape(need), f"{pointer}/allOf/{i}")
        if "anyOf" in schema:
            shape = self.both(shape, unite(map(self.shape, self.branches(at, schema, "anyOf"))), f"{pointer}/anyOf")
        if "oneOf" in schema:
            shape = self._one_of(at, schema, shape)
        if "not" in schema:
            shape = self.both(shape, self.complement(self.need(self.document.child(at, "not"))), f"{pointer}/not")
        if "if" in schema and at.resource.dialect.order >= 7 and ("then" in schema or "else" in schema):
            shape = self._conditional(at, schema, shape)
        for name, asked in self.dependents(at, schema):
            if shape.objects:
                present = self.both(_with_member(name), self.shape(asked), pointer)
                shape = self.both(shape, unite((_without_member(name), present)), pointer)
        return shape

    def _failures(self, at: Located, schema: dict[str, Any]) -> Iterator[Shape]:
        """The ways in which a value can fail the schema: one for each keyword."""
        order = at.resource.dialect.order
        pointer = at.pointer
        if order >= 2019 and not UNEVALUATED.isdisjoint(schema):
            yield self._others(self.expand(at, True), pointer)
            return
        yield self._others(self.assertions(at, schema), pointer)
        if IN_PLACE.isdisjoint(schema):
            return
        if "enum" in schema or ("const" in schema and order >= 6):
            yield self._others(self.listed(at, schema, ANYTHING), pointer)
        for keyword, since in REFERENCES:
            if keyword in schema and order >= since:
                yield self.complement(self.need(self.document.resolve(at, keyword)))
        if "allOf" in schema:
            for need in self.branches(at, schema, "allOf"):
                yield self.complement(need)
        if "anyOf" in schema:
            yield self._all(map(self.complement, self.branches(at, schema, "anyOf")), pointer)
        if "oneOf" in schema:
            needs = self.branches(at, schema, "oneOf")
            yield self._all(map(self.complement, needs), pointer)
            for j, second in enumerate(needs):
                for first in needs[:j]:
                    yield self.shape(first | second)
        if "not" in schema:
            yield self.shape(self.need(self.document.child(at, "not")))
        if "if" in schema and order >= 7:
            condition = self.need(self.document.child(at, "if"))
            if "then" in schema:
                then = self.complement(self.need(self.document.child(at, "then")))
                yield self.both(self.shape(condition), then, pointer)
            if "else" in schema:
                otherwise = self.complement(self.need(self.document.child(at, "else")))
                yield self.both(self.complement(condition), otherwise, pointer)
        for name, asked in self.dependents(at, schema):
            yield self.both(_with_member(name), self.complement(asked), pointer)

    def _all(self, shapes: Iterator[Shape], pointer: str) -> Shape:
        return reduce(lambda a, b: self.both(a, b, pointer), shapes, ANYTHING)

    def listed(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        """The values of ``shape`` that ``enum`` and ``const`` list.

        Raises `GrammarError` where ``enum`` is no list.
        """
        if "enum" in schema:
            values = schema["enum"]
            if not isinstance(values, list):
                raise GrammarError("enum must be a list of values", where=f"{at.pointer}/enum")
            words = plain_words(values)
            if words is not None:
                found = Shape(strings=(StringSet(words),))
            else:
                frozen = [freeze(value, f"{at.pointer}/enum/{i}") for i, value in enumerate(values)]
                found = shape_of(frozen, f"{at.pointer}/enum")
                self.document.fractional.update(fractional(values))
            shape = self.both(shape, found, at.pointer)
        if "const" in schema and at.resource.dialect.order >= 6:
            frozen = [freeze(schema["const"], f"{at.pointer}/const")]
            self.document.fractional.update(fractional(schema["const"]))
            shape = self.both(shape, shape_of(frozen, f"{at.pointer}/const"), at.pointer)
        return shape

    def _one_of(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        """Branches that can overlap lose what the others allow; those that seem not to are checked on the graph."""
        pointer = f"{at.pointer}/oneOf"
        if at.standing is not Standing.LETTER:
            # A value that two branches allow by the letter is not valid, however strictly these are read.
            branches = unite(map(self.shape, self.branches(at, schema, "oneOf")))
            return self.both(self._one_of(self.document.letter(at), schema, shape), branches, pointer)
        needs = self.branches(at, schema, "oneOf")
        shapes = [self.both(shape, self.shape(need), pointer) for need in needs]
        overlapping: list[list[int]] = [[] for _ in needs]
        self._negates_objects |= sum(bool(one.objects) for one in shapes) > 1
        for j, second in enumerate(shapes):
            for i in range(j):
                if surely_disjoint(shapes[i], second):
                    continue
                both = self.both(shapes[i], second, pointer)
                if both.is_empty():
                    continue
                pair = (at, i, j)
                if both.has_scalar() or pair in self._overlapping:
                    overlapping[i].append(j)
                    overlapping[j].append(i)
                else:
                    self.overlaps.append(Overlap(both, pair))
        parts = []
        for own, others in zip(shapes, overlapping, strict=True):
            for other in others:
                own = self.both(own, self.complement(needs[other]), pointer)
            parts.append(own)
        return unite(parts)

    def _conditional(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        child = self.document.child
        condition = self.need(child(at, "if"))
        held = self.both(shape, self.shape(condition), f"{at.pointer}/if")
        if "then" in schema:
            held = self.both(held, self.shape(self.need(child(at, "then"))), f"{at.pointer}/then")
        failed = self.both(shape, self.complement(condition), f"{at.pointer}/if")
        if "else" in schema:
            failed = self.both(failed, self.shape(self.need(child(at, "else"))), f"{at.pointer}/else")
        return unite((held, failed))

    def dependents(self, at: Located, schema: dict[str, Any]) -> Iterator[tuple[str, Need]]:
        """Names whose presence asks something of the whole object, with what it asks.

        Raises `GrammarError` for what lists no names.
        """
        order = at.resource.dialect.order
        older = order <= 7 or self.document.has_forms_of_old
        for keyword, known in (
            ("dependentRequired", order >= 2019),
            ("dependentSchemas", order >= 2019),
            ("dependencies", older),
        ):
            if keyword not in schema or not known:
                continue
            for name in self.mapping(at, schema, keyword):
                asked = schema[keyword][name]
                if isinstance(asked, str) and keyword == "dependencies":
                    asked = [asked]
                if isinstance(asked, list):
                    pointer = f"{at.pointer}/{keyword}/{escape(name)}"
                    if not all(isinstance(other, str) for other in asked):
                        raise GrammarError(f"{keyword} must list property names", where=pointer)
                    if asked:
                        yield name, self._requiring(asked, pointer, at)
                else:
                    yield name, self.need(self.document.child(at, keyword, name))

    def _requiring(self, names: list[str], pointer: str, at: Located) -> Need:
        need = self._required_names.get(pointer)
        if need is None:
            need = self._required_names[pointer] = frozenset((Located({"required": names}, pointer, at.resource),))
        return need

    def branches(self, at: Located, schema: dict[str, Any], keyword: str) -> list[Need]:
        """The needs of a keyword that lists schemas.  Raises `GrammarError` for an empty list, and for what is none."""
        found = schema[keyword]
        if not isinstance(found, list) or not found:
            raise GrammarError(f"{keyword} must be a list of at least one schema", where=f"{at.pointer}/{keyword}")
        standing = at.standing if keyword != "allOf" and not _declares_together(schema) else None
        return [self.need(self.document.child(at, keyword, i, standing)) for i in range(len(found))]


_EITHER = frozenset(("anyOf", "oneOf"))
_DECLARING = frozenset(("properties", "patternProperties", "additionalProperties")) | (
    APPLICATORS - _EITHER - {"not", "dependentRequired", "unevaluatedItems"}
)


def _declares_together(schema: dict[str, Any]) -> bool:
    """May several of the schemas that apply to one value declare members of it?  One list of alternatives does not."""
    either = len(_EITHER & schema.keys())
    return either > 1 or not _DECLARING.isdisjoint(schema)


def _failing(shapes: Iterable[Shape]) -> Shape:
    """The union of ways to fail, of which those of objects are mostly one clause."""
    shape = unite(shapes)
    objects = merged(shape.objects)
    return shape if objects is shape.objects else replace(shape, objects=objects)


def _pairs(a: Shape, b: Shape) -> int:
    """How much there is to combine in two shapes: objects, most of all those of many names, count more than numbers."""
    if a is ANYTHING or b is ANYTHING:
        return 1
    things = len(a.objects) * len(b.objects)
    if things:
        things *= 2 + (len(a.objects[0].declared) + len(b.objects[0].declared)) // 32
    scalars = len(a.numbers) * len(b.numbers) // 4 + len(a.strings) * len(b.strings)
    return max(1, things + 2 * len(a.arrays) * len(b.arrays) + scalars)


def _with_member(name: str) -> Shape:
    """Objects that have a member of this name."""
    return replace(NOTHING, objects=(ObjectShape({name: TRUE}, required=frozenset((name,))),))


def _without_member(name: str) -> Shape:
    """Everything but objects that have a member of this name."""
    return replace(ANYTHING, objects=(ObjectShape({name: FALSE}),))


def _places(need: Need) -> Places:
    """The schemas of a need, by where references in them lead."""
    found: Places = {}
    for atom in need:
        if isinstance(atom, Located):
            found.setdefault((id(atom.resource), atom.scope), []).append(atom.schema)
    return found


def _is_among(atom: Atom, places: Places) -> bool:
    """Does a schema at these places surely allow the same values?"""
    return isinstance(atom, Located) and atom.schema in places.get((id(atom.resource), atom.scope), ())
