"""Operators by the types of their operands, and how tightly they bind."""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product

from guided.grammar.sql.query.typed.resolution import operator_of, result_of
from guided.grammar.sql.query.typed.system import Signature, TypeSystem
from guided.grammar.sql.query.typed.types import ALL, ANY_NULL, BIT, bits_of, coerces
from guided.grammar.sql.query.typed.undecided import ANY, UNDECIDED, is_undecided, joined, members_of

__all__ = ["COMPARISONS", "EQUALITIES", "LEVELS", "compares", "result", "rights", "viable"]

_KEPT = 1 << 17
"""What operators do that is remembered: 18,000 for a system along 60 random texts, and each database with types of its
own has a system."""
EQUALITIES = ("=", "<>", "!=")
COMPARISONS = (*EQUALITIES, "<", "<=", ">", ">=")
_OTHERS = ("||", "~", "->", "->>", "#>", "#>>", "@>", "<@", "&&", "?", "?|", "?&", "@?", "@@")
LEVELS = {
    "or": 0, "and": 1, "not": 2, "is": 3, **dict.fromkeys((*COMPARISONS, "compare", "equal"), 4), "between": 5,
    "like": 5, "in": 5, **dict.fromkeys(_OTHERS, 6),
    "+": 7, "-": 7, "*": 8, "/": 8, "//": 8, "%": 8, "^": 9, "**": 9, "at": 10, "sign": 12,
}  # fmt: skip
"""How tightly operators bind, loosest first (https://www.postgresql.org/docs/current/sql-syntax-lexical.html)."""


@lru_cache(maxsize=_KEPT)
def result(system: TypeSystem, operator: str, left: str, right: str) -> str | None:
    """The type of an operation, None where the engine has none; comparisons are one ``compare``.

    >>> from guided.grammar.sql.query.dialects.postgresql.types import SYSTEM
    >>> result(SYSTEM, "+", "date", "int4"), result(SYSTEM, "compare", "int4", "text")
    ('date', None)
    """
    compares = operator in ("compare", "equal")
    if compares and ANY in (left, right):
        # With NULL alone it could be, which no query gives where NULL is a text.
        return None
    if is_undecided(left) or is_undecided(right):
        pairs = product(members_of(system, left), members_of(system, right))
        return joined(system, (result(system, operator, *pair) for pair in pairs))
    if system.cheapest and not compares and ANY_NULL in (left, right):
        return None
    bit = BIT[right]
    between = [signature for signature, takes in _beside(system, operator, left) if takes & bit]
    if not between:
        return None
    signature = operator_of(system, between, left, right, compares=compares)
    given = None if signature is None else result_of(system, signature, (left, right))
    return given if given in BIT else None


@cache
def _beside(system: TypeSystem, operator: str, left: str) -> tuple[tuple[Signature, int], ...]:
    """The operators of a name that take a left operand, each with the types that it takes on the right."""
    found = system.operators.get(operator, ())
    beside = (one for one in found if coerces(system, left, one.parameters[0]))
    return tuple((one, _taken(system, one.parameters[1])) for one in beside)


@cache
def _taken(system: TypeSystem, wanted: str) -> int:
    """The types that may stand where one is wanted."""
    return sum(bit for name, bit in bits_of(system) if coerces(system, name, wanted))


@cache
def _given(system: TypeSystem, operator: str) -> int:
    """The types that the operators of a name may give, and perhaps others."""
    found = 0
    for _, given in system.operators.get(operator, ()):
        found |= ALL if given.startswith("any") else BIT.get(given, 0)
    for name, members in UNDECIDED.items():
        found |= BIT[name] if any(found & BIT[member] for member in members) else 0
    return found


@cache
def _results(system: TypeSystem, operator: str, left: str) -> tuple[tuple[int, int], ...]:
    """The types of results, each with those of the right operands that give it."""
    found: dict[int, int] = {}
    taken = 0
    for member in members_of(system, left):
        for _, takes in _beside(system, operator, member):
            taken |= takes
    for right, bit in bits_of(system) if taken else ():
        # Most operands fit no operator.
        if not taken & bit and not is_undecided(right):
            continue
        given = result(system, operator, left, right)
        if given is not None:
            found[BIT[given]] = found.get(BIT[given], 0) | bit
    return tuple(found.items())


@lru_cache(maxsize=_KEPT)
def rights(system: TypeSystem, operator: str, left: str, wanted: int) -> int:
    """The types of right operands with which the result is one of those that are wanted."""
    found = 0
    if not _given(system, operator) & wanted:
        # The table of an operator costs a millisecond.
        return found
    for given, operands in _results(system, operator, left):
        if given & wanted:
            found |= operands
    return found


@cache
def compares(system: TypeSystem, left: str) -> int:
    """The types that a type can be compared with."""
    return rights(system, "compare", left, ALL)


@cache
def viable(system: TypeSystem, wanted: int, loosest: int, level: int) -> int:
    """The types from which one operator that binds as tightly as ``level`` or looser leads to one that is wanted.

    Those looser than ``loosest`` end the operand, and so does that level itself.
    """
    if loosest < LEVELS["is"] and wanted & BIT["bool"] and level >= LEVELS["is"]:
        # IS NULL takes any type.
        return ALL
    found = wanted
    operators = [name for name in system.operators if loosest < system.levels[name] <= level]
    for left, bit in bits_of(system):
        if not found & bit and any(rights(system, name, left, wanted) for name in operators):
            found |= bit
    return found
