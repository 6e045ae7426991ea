"""Calls of PostgreSQL's functions: which types may come as arguments, and what a call gives."""

from __future__ import annotations

from functools import cache, lru_cache

from guided.grammar.sql.query.typed import function_rows as rows
from guided.grammar.sql.query.typed.resolution import Signature, chosen, result_of
from guided.grammar.sql.query.typed.types import BIT, OTHER

__all__ = ["AGGREGATES", "ORDERED_SETS", "ROW_SETS", "SCALARS", "WINDOWS", "arity", "call_of", "next_types"]

MOST_REPEATED = 12
"""Arguments of a function that takes any number; the engine takes 100."""


def _read(text: str) -> dict[str, tuple[Signature, ...]]:
    found: dict[str, tuple[Signature, ...]] = {}
    for line in text.strip().replace("\n    ", " ").split("\n"):
        name, _, entries = line.partition(": ")
        signatures = []
        for entry in entries.split("; "):
            parameters, _, result = entry.partition(">")
            signatures.append(Signature(tuple(parameters.split()), result))
        found[name] = tuple(signatures)
    return found


SCALARS = _read(rows.SCALARS)
AGGREGATES = _read(rows.AGGREGATES)
WINDOWS = _read(rows.WINDOWS)
ORDERED_SETS = _read(rows.ORDERED_SETS)
ROW_SETS = _read(rows.ROW_SETS)
_ALL = {**SCALARS, **AGGREGATES, **WINDOWS, **ORDERED_SETS, **ROW_SETS}


@cache
def _of(name: str, count: int) -> tuple[Signature, ...]:
    """The signatures with so many arguments, repeated ones written out."""
    found = []
    for parameters, result in _ALL[name]:
        if parameters and parameters[-1].endswith("..."):
            last = parameters[-1][:-3].removeprefix("_")
            more = count - len(parameters) + 1
            if more > 0:
                found.append(Signature((*parameters[:-1], *(last,) * more), result))
        elif len(parameters) == count:
            found.append(Signature(parameters, result))
    return tuple(found)


@cache
def arity(name: str) -> tuple[int, int]:
    """The least and most arguments."""
    counts = [count for count in range(MOST_REPEATED + 1) if _of(name, count)]
    return min(counts), max(counts)


@lru_cache(maxsize=1 << 16)
def call_of(name: str, types: tuple[str, ...]) -> str | None:
    """The type of a call, None where the engine has no such function, or several."""
    if name == "date" and len(types) == 1 and types[0] in ("text", "varchar", "bpchar", "'date", "'timestamp"):
        return "date"
    if OTHER in types and name not in ("count",):
        return None
    signature = chosen(_of(name, len(types)), types)
    result = None if signature is None else result_of(signature, types)
    return result if result in BIT else None


@lru_cache(maxsize=1 << 16)
def may_go_on(name: str, types: tuple[str, ...]) -> bool:
    """Is there a call with these arguments and some behind them?"""
    low, high = arity(name)
    for count in range(max(low, len(types)), min(high, max(low, len(types) + 3)) + 1):
        if count == len(types) and call_of(name, types) is not None:
            return True
        for parameters, _ in _of(name, count):
            rest = tuple(map(_concrete, parameters[len(types) :]))
            if call_of(name, (*types, *rest)) is not None:
                return True
    return False


def _concrete(parameter: str) -> str:
    """A type that a parameter takes."""
    if not parameter.startswith("any"):
        return parameter
    return "_int4" if parameter.endswith("array") and not parameter.endswith("nonarray") else "int4"


@lru_cache(maxsize=1 << 16)
def next_types(name: str, types: tuple[str, ...]) -> int:
    """The types that the next argument may have."""
    found = 0
    for one, bit in BIT.items():
        if may_go_on(name, (*types, one)):
            found |= bit
    return found
