"""Expressions as they are read: operators that wait for their right operand, calls that wait for arguments.

This is operator precedence (Pratt, *Top down operator precedence*, 1973) of which only types are kept.  Each operand
has a *goal*, the types with which it may end; a cast can always lead there, so that no expression is a dead end.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cache, lru_cache
from typing import NamedTuple

from guided.grammar.attributed.kept import Last
from guided.grammar.attributed.records import quickly_replaced
from guided.grammar.sql.query.typed.computed.digits import amount_of_cast, amount_of_operation
from guided.grammar.sql.query.typed.operators import LEVELS, result, rights, viable
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import (
    ALL,
    BIT,
    HELD,
    IN_QUOTES,
    LITERALS,
    cast_targets,
    is_literal,
    members,
    only,
    turns_into,
)
from guided.grammar.sql.query.typed.undecided import UNDECIDED, members_of

__all__ = [
    "CONDITION",
    "PATH",
    "QUANTIFIED",
    "UNKNOWN",
    "Alternatives",
    "Asks",
    "Calling",
    "Lambda",
    "Operand",
    "Wait",
    "alone",
    "as_condition",
    "at_column",
    "at_operand",
    "before_test",
    "between_done",
    "cast",
    "escaped",
    "finish",
    "fits",
    "goal_of",
    "hopes",
    "is_between",
    "is_met",
    "leading",
    "may_cast",
    "negated",
    "operated",
    "parameters",
    "read",
    "reduced",
    "rights",
    "signed",
    "soon",
    "target_types",
    "whole",
]  # fmt: skip

CONDITION = only("bool")
UNKNOWN = "?"
"""The type of a column alone in SELECT, which only FROM will tell."""
PATH = 3
"""How strong the name of a column is that is a path into a struct: that of its last field."""
_TIGHTEST = LEVELS["sign"]
_LOOSER = -1
"""More loosely than any operator binds."""
QUANTIFIED = LEVELS["in"]
"""How tightly an operator may bind behind ``quantified``: one as tight would belong to it, ANY ((array) || 'x')."""


class Wait(NamedTuple):
    """An operator whose right operand is being read, which must have a type of the goal."""

    operator: str
    left: str
    goal: int
    digits: int = 0
    """Of the left operand (`Operand.digits`)."""


class Asks(IntEnum):
    """Is an operand a query by itself?  As the only element of IN it is read by DuckDB as the query of IN."""

    NOTHING = 0
    VALUES = 1
    """In brackets or behind ARRAY: it has the values that are meant."""
    ROWS = 2
    """Behind EXISTS, ANY or IN: x IN (EXISTS (SELECT 1, 2)) would be x IN (SELECT 1, 2)."""


@quickly_replaced
class Operand(NamedTuple):
    """An expression in progress."""

    system: TypeSystem
    goal: int
    waits: tuple[Wait, ...] = ()
    type: str = ""
    """Of the operand that was read last, empty where one must come."""
    tight: bool = False
    """Was it an operand by itself, which a cast may follow?"""
    label: tuple[str, int] = ("", 0)
    """The name that the engine gives to the column, and how strong it is."""
    column: tuple[str | None, str] | None = None
    """The column that it is alone."""
    plain: bool = False
    """May it be a column alone whose type does not matter?"""
    narrow: bool = False
    """Is it one of the arguments of POSITION, which have no AT TIME ZONE?"""
    indexed: bool = False
    """May a subscript follow?"""
    bound: bool = False
    """Was a column's type guessed, so that something must follow which needs it?"""
    tightest: int = _TIGHTEST
    """How tightly an operator may bind that follows."""
    no_query: bool = False
    """May it not begin with a query in brackets?"""
    asks: Asks = Asks.NOTHING
    """Is the last operand a query by itself?  Of ANY from that word on; noted where the engine makes it that of IN."""
    computed: bool = False
    """May the engine compute it while it prepares?  Only then there are:"""
    digits: int = 0
    """Those of the last operand, if it is a constant (`typed.computed.digits`)."""
    risky: bool = False
    """May an operator fail that was applied?"""
    wide: int = 0
    """The goal once what is read is no constant (`typed.computed.contexts.varied`), where that is another."""
    part: int = -1
    """How many operators wait where a part begins that the engine computes (`Computed.PART`); -1 where none does."""


class Calling(NamedTuple):
    """A call whose arguments are being read."""

    name: str
    types: tuple[str, ...] = ()
    distinct: bool = False
    columns: tuple[tuple[str | None, str], ...] = ()
    """Of DISTINCT, the arguments that are a column alone, by which its rows may be ordered."""
    digits: int = 0
    """The most of an argument, where constants are computed (`typed.computed`)."""


class Alternatives(NamedTuple):
    """CASE, COALESCE, IN and the like: expressions of one type."""

    type: str = ""
    """Their common type so far."""
    subject: str = ""
    """The type that they are compared with, of CASE and IN."""
    negated: bool = False
    """Is it NOT IN?  Noted as ``lone`` is."""
    lone: Asks | None = None
    """Is the only element of IN a query (`Operand.asks`)?  None before it."""


class Lambda(NamedTuple):
    """A function of a list and of what is done with each element."""

    list: str = ""
    """The type of the list, once it was read."""
    names: tuple[str, ...] = ()
    """Of the parameters."""
    reads_two: bool = False
    """Are the first two parameters elements?  One more is a place."""
    open: bool = False
    """Is the body read, where the parameters are known?"""
    body: str = ""
    """The type of the body, once it was read."""


def parameters(frames: Iterable[object]) -> dict[str, str]:
    """The parameters that are known within some frames, with their types."""
    found: dict[str, str] = {}
    for frame in frames:
        if isinstance(frame, Lambda) and frame.open:
            for place, name in enumerate(frame.names):
                found[name] = frame.list[1:] if place <= frame.reads_two else "int8"
    return found


def _level(operand: Operand) -> int:
    return operand.system.levels[operand.waits[-1].operator] if operand.waits else -1


def goal_of(operand: Operand) -> int:
    """The types with which the operand that is read may end."""
    return operand.waits[-1].goal if operand.waits else operand.goal


def hopes(operand: Operand, level: int = _TIGHTEST) -> int:
    """The types from which operators up to a level lead to the goal of the operand that is read."""
    return viable(operand.system, goal_of(operand), _level(operand), level)


def fits(operand: Operand, name: str) -> bool:
    """May a literal stand here: as it is, or as what a cast makes of it?"""
    return not operand.type and bool(hopes(operand) & _led_to(operand.system, name))


@cache
def _led_to(system: TypeSystem, name: str) -> int:
    """The types that a literal has, or that a cast of it leads to."""
    found = 0
    texts = LITERALS["'text"]
    for target in LITERALS[name] if is_literal(name) else ():
        if target not in texts or name == "'text":
            found |= BIT[target]
    return BIT[name] | (found & cast_targets(system))


def leading(operand: Operand) -> int:
    """The types of the goal, and those from which a cast leads there that no constant fails; all where a test does."""
    return ALL if hopes(operand) == ALL else _leading(operand.system, goal_of(operand))


@cache
def _leading(system: TypeSystem, wanted: int) -> int:
    found = wanted
    targets = members(wanted & cast_targets(system))
    for name, bit in BIT.items():
        if found & bit or not (name in system.types or is_literal(name)):
            continue
        for target in targets:
            if turns_into(system, name, target) and not amount_of_cast(name, 0, target)[1]:
                found |= bit
                break
    return found


def read(operand: Operand, name: str, label: tuple[str, int] = ("", 0)) -> Operand | None:
    """The expression behind an operand of a type."""
    goal = goal_of(operand)
    if operand.type or not (goal & cast_targets(operand.system) or (name != UNKNOWN and goal & BIT[name])):
        return None
    return operand._replace(type=name, tight=True, label=label if not operand.waits else ("", 0), column=None,
                            indexed=False, asks=Asks.NOTHING)  # fmt: skip


def cast(operand: Operand, target: str) -> Operand:
    """The expression behind a cast of its last operand."""
    label = operand.label if operand.label[1] > 1 or operand.waits else (target.removeprefix("_"), 1)
    return operand._replace(type=target, label=label, column=None, bound=False, indexed=False, asks=Asks.NOTHING)


@lru_cache(maxsize=1 << 16)
def reduced(operand: Operand, level: int) -> Operand | None:
    """The expression with all operators applied that bind at least so tightly."""
    if not operand.type:
        return None
    while operand.waits and operand.system.levels[operand.waits[-1].operator] >= level:
        *rest, wait = operand.waits
        given = _applied(operand.system, wait, operand.type)
        if given is None:
            return None
        if operand.computed:
            digits, risky = amount_of_operation(
                wait.operator, wait.left, wait.digits, operand.type, operand.digits, given
            )
            operand = operand._replace(digits=digits, risky=operand.risky or risky)
        operand = operand._replace(
            waits=tuple(rest), type=given, tight=False, label=("", 0), bound=False, asks=Asks.NOTHING
        )
    return operand


def _applied(system: TypeSystem, wait: Wait, right: str) -> str | None:
    """The type of an operator with its right operand; of BETWEEN only with its second."""
    if right == UNKNOWN or not wait.goal & BIT[right]:
        return None
    match wait.operator:
        case "sign":
            return right
        case "or" | "and" | "not" | "is":
            return "bool"
        case "between":
            return "bool" if wait.left == "" else None
        case "in":
            return "bool"
        case "like":
            return "bool"
    return result(system, wait.operator, wait.left, right)


def signed(operand: Operand, sign: str) -> Operand | None:
    """A sign before an operand, of which there are two in a row at most.

    Nobody writes more, and tokens of 32 signs would have a place behind each of them.
    """
    if operand.type:
        return None
    goal = hopes(operand) & _signable(operand.system, sign)
    if not goal or [wait.operator for wait in operand.waits[-2:]] == ["sign", "sign"]:
        return None
    return operand._replace(waits=(*operand.waits, Wait("sign", "", goal)), label=("", 0))


@cache
def _signable(system: TypeSystem, sign: str) -> int:
    """The types that take a sign, also those that are not decided between some that do."""
    signed = system.prefixes[sign]
    among = sum(BIT[name] for name in UNDECIDED if signed.issuperset(members_of(system, name)))
    return among | sum(BIT[name] for name in signed)


def negated(operand: Operand) -> Operand | None:
    """NOT before an operand; not where operators wait that bind more tightly."""
    if operand.type or _level(operand) > LEVELS["not"] or not hopes(operand, LEVELS["not"]) & BIT["bool"]:
        return None
    return operand._replace(waits=(*operand.waits, Wait("not", "", CONDITION)), label=("", 0))


_FAILING = ("//", "%", "at")
"""Operators that constants may fail whatever their types are: by zero, or for a zone that is none."""
_NO_CHAIN = (LEVELS["compare"], LEVELS["between"], LEVELS["is"])


@lru_cache(maxsize=1 << 14)
def _behind_operators(operand: Operand) -> dict[str, Operand | None]:
    """The expressions behind operators that are known, of an operand as `_alike` gives it."""
    return {}


def _alike(operand: Operand) -> Operand:
    """The operand without what no operator that follows reads."""
    return operand._replace(label=("", 0), column=None, tight=False, indexed=False, bound=False, asks=Asks.NOTHING)


_OPERATIONS = Last[Operand](lambda operand: _behind_operators(_alike(operand)))
"""A place asks about all operators behind an operand in turn."""


def operated(operand: Operand, operator: str) -> Operand | None:
    """The expression behind a binary operator, None where no right operand leads to the goal."""
    known = _OPERATIONS.of(operand)
    if operator not in known:
        known[operator] = _operated(_alike(operand), operator)
    found: Operand | None = known[operator]
    return found


def _operated(operand: Operand, operator: str) -> Operand | None:
    level = operand.system.levels[operator]
    if level > operand.tightest:
        return None
    # Of operators that cannot be chained the one before stays.
    left = _before(operand, level)
    if left is None or (
        operator == "at" and (left.narrow or any(wait.operator == "between" and wait.left for wait in left.waits))
    ):
        return None
    if left.computed and (operator in _FAILING or (operator == "/" and left.type == "interval")):
        return None
    wanted = hopes(left, QUANTIFIED if operator == "quantified" else level)
    match operator:
        case "or" | "and":
            goal = CONDITION if wanted & BIT["bool"] and CONDITION & BIT[left.type] else 0
        case "is" | "compare" | "quantified":
            goal = rights(left.system, "compare", left.type, wanted) if wanted & BIT["bool"] else 0
        case "equal":
            # A constant text may be no number.
            alike = "compare" if left.computed else "equal"
            goal = rights(left.system, alike, left.type, wanted) if wanted & BIT["bool"] else 0
        case "between":
            goal = rights(left.system, "compare", left.type, CONDITION) if wanted & BIT["bool"] else 0
        case _:
            goal = rights(left.system, operator, left.type, wanted)
    # No cast leads to a literal; those that are held need none.
    if not goal & ~IN_QUOTES:
        return None
    wait = Wait(operator, left.type, goal, left.digits)
    return left._replace(
        waits=(*left.waits, wait),
        type="",
        tight=False,
        label=("", 0),
        bound=False,
        tightest=_TIGHTEST,
        asks=Asks.NOTHING,
    )


def _before(operand: Operand, level: int) -> Operand | None:
    """The left operand of an operator of a level, None where none is."""
    left = reduced(operand, level + 1 if level in _NO_CHAIN else level)
    if left is None or left.type == UNKNOWN or (level in _NO_CHAIN and _level(left) == level):
        return None
    return left


def escaped(operand: Operand) -> Operand | None:
    """ESCAPE and its character behind the pattern of LIKE, which is no operand of another operator."""
    if not operand.waits or operand.waits[-1].operator != "like":
        return None
    found = reduced(operand, LEVELS["like"])
    return None if found is None else found._replace(tightest=LEVELS["compare"])


def between_done(operand: Operand) -> Operand | None:
    """AND behind the first bound of BETWEEN."""
    left = reduced(operand, LEVELS["between"] + 1)
    if left is None or not left.waits or left.waits[-1].operator != "between" or not left.waits[-1].left:
        return None
    *rest, wait = left.waits
    if left.type == UNKNOWN or not wait.goal & BIT[left.type]:
        return None
    goal = wait.goal
    if left.system.cheapest:
        # All three are of one type.
        goal &= rights(left.system, "compare", left.type, CONDITION)
    if not goal:
        return None
    return left._replace(waits=(*rest, wait._replace(left="", goal=goal)), type="", tight=False, tightest=_TIGHTEST)


def is_between(operand: Operand) -> bool:
    """Does the first bound of BETWEEN wait?"""
    return any(wait.operator == "between" and wait.left for wait in operand.waits)


@lru_cache(maxsize=1 << 16)
def before_test(operand: Operand, operator: str, types: int) -> Operand | None:
    """The expression before a test such as IS NULL, whose result is a condition."""
    level = LEVELS[operator]
    left = _before(operand, level) if level <= operand.tightest else None
    if left is None or not hopes(left, level) & BIT["bool"] or not types & BIT[left.type]:
        return None
    return left


def as_condition(operand: Operand, operator: str) -> Operand:
    """The expression behind such a test."""
    tightest = operand.system.levels[operator] if operand.system.layered else _TIGHTEST
    return operand._replace(type="bool", tight=False, label=("", 0), bound=False, tightest=tightest, asks=Asks.NOTHING)


def alone(operand: Operand) -> Operand:
    """The expression as an operand behind which no operator, cast or subscript follows."""
    found = operand._replace(tight=False, label=("", 0), column=None, bound=False, indexed=False, asks=Asks.NOTHING)
    return found._replace(tightest=_LOOSER)


def whole(operand: Operand) -> Operand | None:
    """The expression where it ends, None where it may not."""
    # Where no operator waits there are many operands, and little to find.
    found = reduced(operand, 0) if operand.waits else operand if operand.type else None
    if found is None or found.bound:
        return None
    if found.type == UNKNOWN:
        return found if found.plain else None
    return found if found.goal & BIT[found.type] else None


def at_operand(operand: Operand) -> bool:
    """Must an operand come that may be more than a literal or a column of the very type, since a cast leads there?"""
    return not operand.type and bool(goal_of(operand) & cast_targets(operand.system))


def at_column(operand: Operand) -> bool:
    """Must an operand come that may be a column?"""
    return not operand.type and bool(goal_of(operand) & ALL)


def may_cast(operand: Operand) -> bool:
    """May a cast follow, since one leads to the goal?"""
    return operand.tight and operand.type != UNKNOWN and bool(goal_of(operand) & cast_targets(operand.system))


def is_met(operand: Operand) -> bool:
    """Has the last operand a type of its own goal?"""
    return operand.type not in ("", UNKNOWN) and bool(goal_of(operand) & BIT[operand.type]) and not operand.bound


_MOST_OPERATORS = 2
"""So far it is looked ahead which types lead to an end: PostgreSQL's times take intervals, to which products lead."""
_CONTINUED = ("->>", "||", "+", "-", "*", "/", "at", "#>>", "->", "#>", "^", "%", "~", "<@", "@>")


@lru_cache(maxsize=1 << 16)
def finish(operand: Operand) -> str:
    """What ends an expression soon: ``cast``, ``and`` of BETWEEN, ``test``, an operator, or nothing (empty)."""
    if between_done(operand) is not None:
        return "and"
    if not operand.type or whole(operand) is not None:
        return ""
    castable = operand.tight and operand.type != UNKNOWN
    if castable:
        if _is_cast_to(operand, 0):
            return "cast"
        tested = before_test(operand, "is", ALL)
        if tested is not None and _ends(as_condition(tested, "is"), "bool"):
            # Shorter than a cast to what can be cast to anything.
            return "test"
        if not is_met(operand):
            return "cast"
    if before_test(operand, "is", ALL) is not None:
        return "test"
    for more in range(_MOST_OPERATORS):
        for operator in _CONTINUED:
            if _goes_on(operand, operator, more):
                return operator
        if castable and _is_cast_to(operand, more + 1):
            return "cast"
    return "cast" if operand.tight else ""


def _is_cast_to(operand: Operand, operators: int) -> bool:
    """Does a cast lead to what may end the expression, with so many operators behind it?"""
    targets = (name for name in target_types(operand) if turns_into(operand.system, operand.type, name))
    return any(_leads(operand, name, operators) for name in targets)


@lru_cache(maxsize=1 << 16)
def target_types(operand: Operand) -> tuple[str, ...]:
    """The types that a cast should lead to for the expression to end soon."""
    found = tuple(name for name in members(goal_of(operand)) if name in operand.system.types)
    for more in range(_MOST_OPERATORS + 1):
        leading = tuple(name for name in found if _leads(operand, name, more))
        if leading:
            return leading
    return found


def _ends(operand: Operand, name: str) -> bool:
    """May the expression end behind an operand of a type?"""
    found = operand._replace(type=name, tight=True, bound=False)
    return (between_done(found) if is_between(found) else whole(found)) is not None


def _leads(operand: Operand, name: str, operators: int) -> bool:
    """May the expression end behind an operand of a type, and so many operators with operands at most?"""
    if _ends(operand, name):
        return True
    found = _alike(operand)._replace(type=name, tight=True)
    return bool(operators) and any(_goes_on(found, operator, operators - 1) for operator in _CONTINUED)


@lru_cache(maxsize=1 << 16)
def _goes_on(operand: Operand, operator: str, more: int) -> bool:
    """May it end behind an operator, its operand, and so many more?"""
    found = operated(operand, operator)
    return found is not None and any(_leads(found, name, more) for name in members(found.waits[-1].goal))


@lru_cache(maxsize=1 << 16)
def soon(operand: Operand) -> str:
    """The kind of operand that ends an expression soon: a number, a condition, a text or NULL."""
    goal = goal_of(operand)
    held = [name for name in HELD if goal & BIT[name]]
    if held and not goal & ALL:
        return held[0]
    found = [name for name in ("int4", "bool", "'text") if goal & BIT[name]]
    best = [name for name in (*found, "'null") if goal & BIT[name] and _ends(operand, name)]
    if best:
        return best[0]
    if not found or any(_ends(operand, name) for name in members(goal)):
        return "'null"
    for more in range(1, _MOST_OPERATORS + 1):
        best = [name for name in found if _leads(operand, name, more)]
        if best:
            return best[0]
        if any(_leads(operand, name, more) for name in members(goal)):
            return "'null"
    return found[0]
