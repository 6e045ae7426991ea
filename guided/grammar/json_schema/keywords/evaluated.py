"""``unevaluatedProperties`` and ``unevaluatedItems``: alternatives of a schema, each with what it has evaluated.

What a keyword like ``anyOf`` evaluates depends on which branches a value matches.  The more branches are taken into
account, the more is evaluated and the less is left for ``unevaluated*`` to object to; so a value is valid exactly if it
is so for *some* set of branches that it matches, and branches that it does not match need no mention.  That makes the
alternatives a cover, not a partition, and nothing is negated but what ``oneOf``, ``not`` and ``else`` negate anyway.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.keywords import patterns
from guided.grammar.json_schema.keywords.assertions import APPLICATORS, REFERENCES, Assertions
from guided.grammar.json_schema.reading.document import Located, Schema, Standing
from guided.grammar.json_schema.sets.algebra import check_alternatives, unite
from guided.grammar.json_schema.sets.disjoint import surely_disjoint
from guided.grammar.json_schema.sets.shape import (
    ANY_ARRAY,
    ANY_OBJECT,
    FALSE,
    NOTHING,
    TRUE,
    ArrayShape,
    Atom,
    Need,
    ObjectShape,
    Shape,
    negate,
    ordered,
)
from guided.grammar.regular.expr import Expr


class Container(Enum):
    """What is asked about: the value is the keyword that applies to the rest."""

    ARRAY = "unevaluatedItems"
    OBJECT = "unevaluatedProperties"


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Members by name or by language of names, items by position or by what they match; or everything."""

    everything: bool = False
    names: frozenset[str] = frozenset()
    languages: frozenset[Expr] = frozenset()
    prefix: int = 0
    matching: frozenset[Need] = frozenset()

    def __or__(self, other: Evaluated) -> Evaluated:
        if self.everything or other.everything:
            return EVERYTHING
        return Evaluated(
            False,
            self.names | other.names,
            self.languages | other.languages,
            max(self.prefix, other.prefix),
            self.matching | other.matching,
        )


NOT_EVALUATED = Evaluated()
EVERYTHING = Evaluated(True)

Alternatives: TypeAlias = "dict[Evaluated, Shape]"
"""A cover of the arrays, or of the objects, that a schema allows, by what is evaluated in them."""

_TOP = {
    Container.ARRAY: replace(NOTHING, arrays=(ANY_ARRAY,)),
    Container.OBJECT: replace(NOTHING, objects=(ANY_OBJECT,)),
}
_EVALUATING = {
    Container.ARRAY: frozenset(("prefixItems", "items", "additionalItems", "contains", "unevaluatedItems")),
    Container.OBJECT: frozenset(("properties", "patternProperties", "additionalProperties", "unevaluatedProperties")),
}


class Evaluation(Assertions):
    """Expands schemas to alternatives; the algebra comes from the class below."""

    _alternatives: dict[tuple[Located, Container], Alternatives | None]

    @abstractmethod
    def complement(self, need: Need) -> Shape:
        """The values that some atom of the need does not allow."""

    @abstractmethod
    def both(self, a: Shape, b: Shape, pointer: str) -> Shape:
        """The values in both."""

    @abstractmethod
    def expand(self, atom: Atom, positive: bool) -> Shape:
        """The values that one atom allows, or (not ``positive``) all others."""

    @abstractmethod
    def keywords(self, at: Located) -> dict[str, Any]:
        """The keywords in force in a schema object."""

    @abstractmethod
    def listed(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        """The values of ``shape`` that ``enum`` and ``const`` list."""

    @abstractmethod
    def branches(self, at: Located, schema: dict[str, Any], keyword: str) -> list[Need]:
        """The needs of a keyword that lists schemas."""

    @abstractmethod
    def dependents(self, at: Located, schema: dict[str, Any]) -> Iterator[tuple[str, Need]]:
        """Names whose presence asks something of the whole object, with what it asks."""

    def with_unevaluated(self, at: Located, container: Container) -> Shape:
        """The arrays or the objects that a schema allows, its ``unevaluated`` keyword included."""
        return unite(self._of_place(at, container).values())

    def _of_need(self, need: Need, container: Container) -> Alternatives:
        result: Alternatives = {NOT_EVALUATED: _TOP[container]}
        for atom in ordered(need):
            result = self._product(result, self._of_atom(atom, container), atom.pointer)
        return result

    def _of_atom(self, atom: Atom, container: Container) -> Alternatives:
        if isinstance(atom, Located) and not (_EVALUATING[container] | APPLICATORS).isdisjoint(_keywords(atom.schema)):
            return self._of_place(atom, container)
        return _alternatives([(NOT_EVALUATED, _only(self.expand(atom, True), container))])

    def _of_place(self, at: Located, container: Container) -> Alternatives:
        key = (at, container)
        if key in self._alternatives:
            found = self._alternatives[key]
            if found is None:
                raise refusals.SELF_APPLYING.at(at.pointer)
            return found
        self._alternatives[key] = None
        try:
            found = self._alternatives[key] = self._expand_place(at, container)
        except BaseException:
            del self._alternatives[key]
            raise
        return found

    def _expand_place(self, at: Located, container: Container) -> Alternatives:
        schema = self.keywords(at)
        pointer = at.pointer
        if "$ref" in schema and at.resource.dialect.reference_stands_alone:
            return self._of_need(self.need(at), container)
        own = self.listed(at, schema, _only(self.assertions(at, schema), container))
        result = _alternatives([(self._evaluated(at, schema, container), own)])
        for keyword, since in REFERENCES:
            if keyword in schema and at.resource.dialect.order >= since:
                target = self.need(self.document.resolve(at, keyword, beside=True))
                result = self._product(result, self._of_need(target, container), pointer)
        if "allOf" in schema:
            for need in self.branches(at, schema, "allOf"):
                result = self._product(result, self._of_need(need, container), pointer)
        if "anyOf" in schema:
            result = self._any_of(at, schema, container, result)
        if "oneOf" in schema:
            result = self._evaluated_one_of(at, schema, container, result)
        if "not" in schema:
            opposite = self.complement(self.need(self.document.child(at, "not")))
            result = self._product(result, {NOT_EVALUATED: opposite}, f"{pointer}/not")
        if "if" in schema and at.resource.dialect.order >= 7:
            result = self._evaluated_conditional(at, schema, container, result)
        if container is Container.OBJECT:
            for name, asked in self.dependents(at, schema):
                present = self._product(
                    {NOT_EVALUATED: _with_member(name)}, self._of_need(asked, container), f"{pointer}/{name}"
                )
                cases = [(NOT_EVALUATED, _without_member(name)), *present.items()]
                result = self._product(result, _alternatives(cases), pointer)
        if container.value in schema and at.resource.dialect.order >= 2019:
            rest = self.need(self.document.child(at, container.value))
            cases = []
            for evaluated, shape in result.items():
                if not evaluated.everything and rest != TRUE:
                    shape = self.both(shape, _rest(evaluated, rest, container, pointer), f"{pointer}/{container.value}")
                cases.append((EVERYTHING, shape))
            result = _alternatives(cases)
        elif container is Container.OBJECT and at.standing is Standing.WHOLE:
            cases = []
            for evaluated, shape in result.items():
                if evaluated.names or evaluated.languages:
                    shape = self.both(shape, _rest(evaluated, FALSE, container, pointer), pointer)
                cases.append((EVERYTHING, shape))
            result = _alternatives(cases)
        return result

    def _evaluated(self, at: Located, schema: dict[str, Any], container: Container) -> Evaluated:
        """What the schema's own keywords evaluate."""
        order = at.resource.dialect.order
        if container is Container.OBJECT:
            if "additionalProperties" in schema:
                return EVERYTHING
            found = schema.get("patternProperties", {})
            languages = [patterns.pattern_language(p, f"{at.pointer}/patternProperties") for p in found]
            return Evaluated(names=frozenset(schema.get("properties", ())), languages=frozenset(languages))
        items = schema.get("items")
        if isinstance(items, list):
            if "additionalItems" in schema:
                return EVERYTHING
            return Evaluated(prefix=len(items))
        if items is not None:
            return EVERYTHING
        result = Evaluated(prefix=len(schema.get("prefixItems", ())) if order >= 2020 else 0)
        if "contains" in schema and order >= 2020:
            need = self.need(self.document.child(at, "contains"))
            result |= EVERYTHING if need == TRUE else Evaluated(matching=frozenset((need,)))
        return result

    def _any_of(self, at: Located, schema: dict[str, Any], container: Container, result: Alternatives) -> Alternatives:
        pointer = f"{at.pointer}/anyOf"
        chosen: Alternatives = {}
        for need in self.branches(at, schema, "anyOf"):
            branch = self._of_need(need, container)
            more = self._product(result, branch, pointer)
            # Together with earlier branches, where that evaluates more than either side alone.
            check_alternatives(len(chosen) * len(branch), pointer)
            joint = [
                (a | b, self.both(x, y, pointer))
                for a, x in chosen.items()
                for b, y in branch.items()
                if a | b not in (a, b)
            ]
            chosen = _alternatives([*chosen.items(), *more.items(), *joint])
            check_alternatives(len(chosen), pointer)
        return chosen

    def _evaluated_one_of(
        self, at: Located, schema: dict[str, Any], container: Container, result: Alternatives
    ) -> Alternatives:
        pointer = f"{at.pointer}/oneOf"
        needs = self.branches(at, schema, "oneOf")
        # What another branch allows by the letter, this one must not.
        others = needs if at.standing is Standing.LETTER else self.branches(self.document.letter(at), schema, "oneOf")
        cases: list[tuple[Evaluated, Shape]] = []
        for i, need in enumerate(needs):
            for evaluated, shape in self._product(result, self._of_need(need, container), pointer).items():
                for j, other in enumerate(others):
                    if j == i or surely_disjoint(shape, self.shape(other)):
                        continue
                    if not self.both(shape, self.shape(other), pointer).is_empty():
                        shape = self.both(shape, self.complement(other), pointer)
                cases.append((evaluated, shape))
        return _alternatives(cases)

    def _evaluated_conditional(
        self, at: Located, schema: dict[str, Any], container: Container, result: Alternatives
    ) -> Alternatives:
        condition = self.need(self.document.child(at, "if"))
        held = self._product(result, self._of_need(condition, container), f"{at.pointer}/if")
        if "then" in schema:
            then = self.need(self.document.child(at, "then"))
            held = self._product(held, self._of_need(then, container), f"{at.pointer}/then")
        failed = self._product(result, {NOT_EVALUATED: self.complement(condition)}, f"{at.pointer}/if")
        if "else" in schema:
            otherwise = self.need(self.document.child(at, "else"))
            failed = self._product(failed, self._of_need(otherwise, container), f"{at.pointer}/else")
        return _alternatives([*held.items(), *failed.items()])

    def _product(self, left: Alternatives, right: Alternatives, pointer: str) -> Alternatives:
        check_alternatives(len(left) * len(right), pointer)
        return _alternatives([(a | b, self.both(x, y, pointer)) for a, x in left.items() for b, y in right.items()])


def _alternatives(cases: list[tuple[Evaluated, Shape]]) -> Alternatives:
    """Cases that evaluate the same are one; empty ones are none."""
    grouped: dict[Evaluated, list[Shape]] = {}
    for evaluated, shape in cases:
        if not shape.is_empty():
            grouped.setdefault(evaluated, []).append(shape)
    return {evaluated: unite(shapes) for evaluated, shapes in grouped.items()}


def _keywords(schema: Schema) -> Iterable[str]:
    return schema if isinstance(schema, dict) else ()


def _only(shape: Shape, container: Container) -> Shape:
    if container is Container.ARRAY:
        return replace(NOTHING, arrays=shape.arrays)
    return replace(NOTHING, objects=shape.objects)


def _rest(evaluated: Evaluated, rest: Need, container: Container, pointer: str) -> Shape:
    """Arrays or objects in which whatever is not evaluated meets the need."""
    if container is Container.OBJECT:
        classes = patterns.partition(
            [(language, TRUE) for language in evaluated.languages], rest, f"{pointer}/{container.value}"
        )
        return replace(NOTHING, objects=(ObjectShape(dict.fromkeys(sorted(evaluated.names), TRUE), classes),))
    if evaluated.matching:
        # An item matches something that was evaluated, or meets the need: not (neither).
        neither: Need = negate(rest, pointer)
        for need in evaluated.matching:
            neither |= negate(need, pointer)
        rest = negate(neither, pointer)
    return replace(NOTHING, arrays=(ArrayShape((TRUE,) * evaluated.prefix, rest),))


def _with_member(name: str) -> Shape:
    return replace(NOTHING, objects=(ObjectShape({name: TRUE}, required=frozenset((name,))),))


def _without_member(name: str) -> Shape:
    return replace(NOTHING, objects=(ObjectShape({name: FALSE}),))
