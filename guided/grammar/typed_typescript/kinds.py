"""The types that typed TypeScript knows, what they have as members, and which is taken where another is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Kind", "Listed", "Literals", "Named", "Primitive", "Shape", "Signature", "Types", "shown"]


class Primitive(Enum):
    """The primitive types, and what a call without a result returns."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    VOID = "void"


@dataclass(frozen=True)
class Literals:
    """A union of texts."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Listed:
    """An array."""

    item: Kind


@dataclass(frozen=True)
class Named:
    """An interface, an object type with a name, or a class."""

    name: str


Kind = Primitive | Literals | Listed | Named


@dataclass(frozen=True)
class Signature:
    """What a call takes, of which the first ``required`` must be given, and what it returns."""

    parameters: tuple[Kind, ...]
    required: int
    result: Kind


@dataclass(frozen=True)
class Shape:
    """The members of an object type."""

    attributes: Mapping[str, Kind] = field(default_factory=dict)
    optional: Mapping[str, Kind] = field(default_factory=dict)
    """Attributes that may be missing: they may be written, and are not read."""
    methods: Mapping[str, Signature] = field(default_factory=dict)
    bases: tuple[str, ...] = ()
    is_whole: bool = True
    """Are all members here?  Those of types that are not known are left out."""
    is_class: bool = False
    readonly: frozenset[str] = frozenset()
    """Attributes that are not assigned to."""


N, S, B = Primitive.NUMBER, Primitive.STRING, Primitive.BOOLEAN

_TEXT_METHODS: Mapping[str, Signature] = {
    "toUpperCase": Signature((), 0, S), "toLowerCase": Signature((), 0, S), "trim": Signature((), 0, S),
    "includes": Signature((S,), 1, B), "startsWith": Signature((S,), 1, B), "endsWith": Signature((S,), 1, B),
    "indexOf": Signature((S,), 1, N), "charAt": Signature((N,), 1, S), "slice": Signature((N, N), 0, S),
    "split": Signature((S,), 1, Listed(S)), "repeat": Signature((N,), 1, S), "replace": Signature((S, S), 2, S),
}  # fmt: skip


def _list_methods(kind: Listed) -> Mapping[str, Signature]:
    return {
        "includes": Signature((kind.item,), 1, B), "indexOf": Signature((kind.item,), 1, N),
        "join": Signature((S,), 0, S), "slice": Signature((N, N), 0, kind), "concat": Signature((kind,), 1, kind),
    }  # fmt: skip


class Types:
    """The declared types, with members and assignability."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self.shapes = shapes

    def members(self, kind: Kind) -> tuple[Mapping[str, Kind], Mapping[str, Signature]]:
        """The attributes that can be read, and the methods."""
        match kind:
            case Named(name):
                shape = self.shapes[name]
                return shape.attributes, shape.methods
            case Listed():
                return {"length": N}, _list_methods(kind)
            case Literals() | Primitive.STRING:
                return {"length": N}, _TEXT_METHODS
            case Primitive.NUMBER:
                return {}, {"toFixed": Signature((N,), 0, S)}
        return {}, {}

    def assignable(self, kind: Kind, wanted: Kind, assumed: frozenset[tuple[str, str]] = frozenset()) -> bool:
        """Whether a value of one type is taken where another is wanted.

        Object types are compared by their members, as TypeScript does; what ``assumed`` says is being compared already.
        """
        match kind, wanted:
            case (Literals(), Primitive.STRING):
                return True
            case (Literals(texts), Literals(others)):
                return set(texts) <= set(others)
            case (Listed(item), Listed(other)):
                return self.assignable(item, other, assumed)
            case (Named(name), Named(other_name)):
                return name == other_name or (name, other_name) in assumed or self._fits(name, other_name, assumed)
        return kind == wanted

    def _fits(self, name: str, wanted: str, assumed: frozenset[tuple[str, str]]) -> bool:
        """Whether one object type has what another asks for."""
        shape, other = self.shapes[name], self.shapes[wanted]
        if self._extends(name, wanted):
            return True
        if not other.is_whole:
            return False
        assumed = assumed | {(name, wanted)}
        known = {**shape.optional, **shape.attributes}
        if (
            not other.attributes
            and not other.methods
            and not (known.keys() | shape.methods.keys()) & other.optional.keys()
        ):
            return False  # A type of which nothing is required wants one member in common.
        if not shape.is_whole and other.optional.keys() - known.keys():
            return False  # What is not known of the one may be of another type there.
        return (
            all(
                each in shape.attributes and self.assignable(shape.attributes[each], kind, assumed)
                for each, kind in other.attributes.items()
            )
            and all(
                each not in known or self.assignable(known[each], kind, assumed)
                for each, kind in other.optional.items()
            )
            and not shape.methods.keys() & other.optional.keys()
            and all(
                each in shape.methods and self._overrides(shape.methods[each], method, assumed)
                for each, method in other.methods.items()
            )
        )

    def _extends(self, name: str, wanted: str) -> bool:
        return any(base == wanted or self._extends(base, wanted) for base in self.shapes[name].bases)

    def _overrides(self, one: Signature, other: Signature, assumed: frozenset[tuple[str, str]]) -> bool:
        """Whether a method may stand for another: of methods each parameter may be the wider one."""
        if one.required > len(other.parameters):
            return False
        pairs = zip(one.parameters, other.parameters, strict=False)
        return all(self.assignable(a, b, assumed) or self.assignable(b, a, assumed) for a, b in pairs) and (
            other.result is Primitive.VOID or self.assignable(one.result, other.result, assumed)
        )


def shown(kind: Kind) -> str:
    """As TypeScript writes it."""
    match kind:
        case Primitive():
            return kind.value
        case Literals(texts):
            return " | ".join(f'"{text}"' for text in texts)
        case Listed(Literals() as item):
            return f"({shown(item)})[]"
        case Listed(item):
            return f"{shown(item)}[]"
        case Named(name):
            return name
    raise AssertionError(kind)
