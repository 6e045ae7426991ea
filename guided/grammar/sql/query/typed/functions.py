"""Calls of functions: which types may come as arguments, and what a call gives."""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product

from guided.grammar.attributed.words import Words, words_of
from guided.grammar.sql.query.typed.resolution import chosen, result_of
from guided.grammar.sql.query.typed.system import Signature, TypeSystem
from guided.grammar.sql.query.typed.types import ANY_NULL, BIT, LISTS, NO_LISTS, OTHER, UNBOUND, bits_of, is_literal
from guided.grammar.sql.query.typed.undecided import is_undecided, joined, members_of

__all__ = ["arity", "call_of", "gives_argument", "giving", "next_types"]

MOST_REPEATED = 12
"""Arguments of a function that takes any number; the engine takes 100."""


@cache
def _of(system: TypeSystem, name: str, count: int) -> tuple[Signature, ...]:
    """The signatures with so many arguments, repeated ones written out."""
    found = []
    for parameters, result in system.functions[name]:
        if parameters and parameters[-1].endswith("..."):
            last = parameters[-1][:-3].removeprefix("_")
            more = count - len(parameters) + 1
            if more > 0:
                found.append(Signature((*parameters[:-1], *(last,) * more), result))
        elif len(parameters) == count:
            found.append(Signature(parameters, result))
    return tuple(found)


@cache
def arity(system: TypeSystem, name: str) -> tuple[int, int]:
    """The least and most arguments."""
    counts = [count for count in range(MOST_REPEATED + 1) if _of(system, name, count)]
    return min(counts), max(counts)


@lru_cache(maxsize=4096)
def giving(system: TypeSystem, names: frozenset[str], types: int) -> Words:
    """Those of some functions that may give one of some types."""
    given = {name: {one.result for one in system.functions[name]} for name in names}
    return words_of(name for name, some in given.items() if any(_bits(one) & types for one in some))


@cache
def gives_argument(system: TypeSystem, name: str, place: int) -> bool:
    """Does a function give what its argument at a place is?"""
    rows = (one for one in system.functions[name] if place < len(one.parameters))
    return any(one.result.startswith("any") and one.result == one.parameters[place] for one in rows)


def _bits(result: str) -> int:
    if result == "anyarray":
        return LISTS
    return BIT.get(result, NO_LISTS if result.startswith("any") else 0)


@lru_cache(maxsize=1 << 16)
def call_of(system: TypeSystem, name: str, types: tuple[str, ...]) -> str | None:
    """The type of a call, None where the engine has no such function, or several."""
    if any(map(is_undecided, types)):
        some = product(*(members_of(system, one) for one in types))
        return joined(system, (call_of(system, name, each) for each in some))
    if name == "date" and len(types) == 1 and types[0] in ("text", "varchar", "bpchar", "'date", "'timestamp"):
        return "date"
    if OTHER in types and name not in ("count",):
        return None
    signature = chosen(system, _of(system, name, len(types)), types)
    result = None if signature is None else result_of(system, signature, types)
    has_no_arrays = result is not None and result[:1] == "_" and result not in system.types
    return result if result in BIT and not has_no_arrays else None


@lru_cache(maxsize=1 << 16)
def may_go_on(system: TypeSystem, name: str, types: tuple[str, ...]) -> bool:
    """Is there a call with these arguments and some behind them?"""
    low, high = arity(system, name)
    for count in range(max(low, len(types)), min(high, max(low, len(types) + 3)) + 1):
        if count == len(types) and call_of(system, name, types) is not None:
            return True
        for parameters, _ in _of(system, name, count):
            item = _item(parameters, types)
            rest = tuple(_concrete(wanted, item) for wanted in parameters[len(types) :])
            if call_of(system, name, (*types, *rest)) is not None:
                return True
    return False


def _item(parameters: tuple[str, ...], types: tuple[str, ...]) -> str:
    """What the polymorphic parameters stand for, by the first argument that says it; beside texts a text."""
    found = "int4"
    for wanted, given in zip(parameters, types, strict=False):
        if wanted.startswith("any") and wanted not in UNBOUND:
            if not is_literal(given):
                return given[1:] if _is_array(wanted) else given
            found = "text" if given != ANY_NULL else found
    return found


def _is_array(parameter: str) -> bool:
    return parameter.endswith("array") and not parameter.endswith("nonarray")


def _concrete(parameter: str, item: str = "int4") -> str:
    """A type that a parameter takes."""
    if not parameter.startswith("any"):
        return parameter
    return "_" + item if _is_array(parameter) else item


@lru_cache(maxsize=1 << 16)
def next_types(system: TypeSystem, name: str, types: tuple[str, ...]) -> int:
    """The types that the next argument may have."""
    found = 0
    for one, bit in bits_of(system):
        if may_go_on(system, name, (*types, one)):
            found |= bit
    return found
