"""Which of several operators or functions of one name is meant, by the types of its arguments.

Source: https://www.postgresql.org/docs/current/typeconv-oper.html and typeconv-func.html, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat

from guided.grammar.sql.query.typed.system import Signature, Types, TypeSystem
from guided.grammar.sql.query.typed.types import (
    ANY_NULL,
    BIT,
    OTHER,
    RANGES,
    UNBOUND,
    category,
    coerces,
    common,
    is_literal,
    is_preferred,
    takes,
)

__all__ = ["chosen", "operator_of", "result_of"]


def operator_of(
    system: TypeSystem, signatures: Sequence[Signature], left: str, right: str, *, compares: bool = False
) -> Signature | None:
    """The binary operator that is meant; a literal beside a type is first tried as one of that type.

    Where the cheapest is chosen only comparisons have that rule, and NULL is taken by them alone.
    """
    if is_literal(left) != is_literal(right) and (compares or not system.cheapest):
        known = right if is_literal(left) else left
        for signature in signatures:
            if signature.parameters == (known, known):
                return signature
    return chosen(system, signatures, (left, right))


def chosen(system: TypeSystem, signatures: Sequence[Signature], types: Types) -> Signature | None:
    """The function that is meant, None where none fits or several do."""
    if not any(map(is_literal, types)):
        for signature in signatures:
            if signature.parameters == types:
                return signature
    found = [one for one in signatures if len(one.parameters) == len(types) and _fits(system, one, types)]
    if len(found) <= 1:
        return found[0] if found else None
    if system.cheapest:
        if ANY_NULL in types:
            return None
        costs = [_cost(system, one, types) for one in found]
        least = min(costs)
        found = [one for one, cost in zip(found, costs, strict=True) if cost == least]
        return found[0] if len(found) == 1 else None
    found = _most(found, lambda one: sum(map(_is_exact, types, one.parameters)))
    if len(found) > 1:
        found = _most(found, lambda one: sum(map(_is_near, types, one.parameters)))
    if len(found) > 1:
        found = _by_literals(system, found, types)
    return found[0] if len(found) == 1 else None


def _fits(system: TypeSystem, signature: Signature, types: Types) -> bool:
    # Most fit not: the tables of an engine are filled by millions of these.
    return all(map(coerces, repeat(system), types, signature.parameters)) and (
        not _is_polymorphic(signature) or _agrees(system, signature, types) is not None
    )


@cache
def _is_polymorphic(signature: Signature) -> bool:
    return any(wanted.startswith("any") for wanted in signature.parameters)


def _cost(system: TypeSystem, signature: Signature, types: Types) -> int:
    """What its casts cost together."""
    return sum(map(_cost_of, repeat(system), types, signature.parameters))


@cache
def _cost_of(system: TypeSystem, given: str, wanted: str) -> int:
    if given == wanted:
        return 0
    if given == ANY_NULL:
        return system.implicit[ANY_NULL].get(wanted, _ANYTHING)
    if is_literal(given):
        return 1 if wanted == "text" else _ANYTHING if wanted.startswith("any") else _LITERAL
    return system.implicit.get(given, {}).get(wanted, _ANYTHING)


_ANYTHING, _LITERAL = 5, 20
"""What it costs that a parameter takes anything, and that a literal is read as something other than a text."""


def _is_exact(given: str, wanted: str) -> bool:
    return given == wanted


def _is_near(given: str, wanted: str) -> bool:
    if is_literal(given):
        return False
    return given == wanted or (is_preferred(wanted) and category(wanted) == category(given))


def _most(found: list[Signature], count: Callable[[Signature], int]) -> list[Signature]:
    most = max(map(count, found))
    return [one for one in found if count(one) == most]


def _by_literals(system: TypeSystem, found: list[Signature], types: Types) -> list[Signature]:
    """Those that fit literals best: strings where any takes them, else the one category that all have."""
    places = [place for place, name in enumerate(types) if is_literal(name)]
    if not places:
        return found
    wanted: dict[int, tuple[str, bool]] = {}
    for place in places:
        slots = [one.parameters[place] for one in found]
        kinds = {category(slot) for slot in slots}
        kind = "S" if "S" in kinds else kinds.pop() if len(kinds) == 1 else None
        if kind is None:
            wanted = {}
            break
        wanted[place] = kind, any(category(slot) == kind and is_preferred(slot) for slot in slots)
    if wanted:
        kept = [one for one in found if all(_is_of(one.parameters[place], wanted[place]) for place in places)]
        found = kept or found
        if len(found) == 1:
            return found
    known = {name for name in types if not is_literal(name)}
    if len(known) == 1:
        same = tuple(known) * len(types)
        fitting = [one for one in found if _fits(system, one, same)]
        if len(fitting) == 1:
            return fitting
    return found


def _is_of(name: str, wanted: tuple[str, bool]) -> bool:
    kind, preferred = wanted
    return category(name) == kind and (is_preferred(name) or not preferred)


def _agrees(system: TypeSystem, signature: Signature, types: Types) -> tuple[str | None, str | None] | None:
    """What the polymorphic parameters stand for: ``anyelement`` and ``anycompatible``; None where they disagree."""
    element: str | None = None
    shared: str | None = None
    for given, wanted in zip(types, signature.parameters, strict=True):
        if not wanted.startswith("any") or wanted in UNBOUND or is_literal(given):
            continue
        is_array = wanted.endswith("array") and not wanted.endswith("nonarray")
        item = given[1:] if is_array else given
        if wanted.startswith("anycompatible"):
            both = item if shared is None else common(system, shared, item)
            if both is None:
                return None
            shared = both
        elif element not in (None, item):
            return None
        else:
            element = item
    return element, shared


def result_of(system: TypeSystem, signature: Signature, types: Types) -> str | None:
    """The type of the result; None where a literal cannot be read as its parameter."""
    agreed = _agrees(system, signature, types)
    if agreed is None:
        return None
    element, shared = agreed
    if system.cheapest and len(types) > 1 and signature.parameters[0] == "anyelement" and is_literal(types[0]):
        return None
    if not _is_of_range(signature, types):
        return None
    for given, wanted in zip(types, signature.parameters, strict=True):
        actual = _actual(wanted, element, shared)
        if actual is None or not (wanted in UNBOUND or takes(system, actual, given)):
            return None
    result = _actual(signature.result, element, shared)
    # Of some types, such as arrays and ranges, no arrays are known.
    return result if result is None or result[0] != "_" or result in BIT else None


def _is_of_range(signature: Signature, types: Types) -> bool:
    """Is what stands beside a range of the very type that it has?  Nothing tells of which type an unknown range is."""
    ranges = [wanted in RANGES for wanted in signature.parameters]
    if all(ranges) or not any(ranges):
        return True
    pairs = zip(types, signature.parameters, ranges, strict=True)
    return all(given == wanted or (is_literal(given) and not is_range) for given, wanted, is_range in pairs)


def _actual(name: str, element: str | None, shared: str | None) -> str | None:
    """A parameter's type, with what a polymorphic one stands for."""
    if not name.startswith("any") or name in UNBOUND:
        return name
    base = (shared or "text") if name.startswith("anycompatible") else element
    if base is None or base == OTHER:
        return None
    return "_" + base if name.endswith("array") and not name.endswith("nonarray") else base
