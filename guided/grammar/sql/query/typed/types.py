"""The types that expressions are followed with, their categories and casts, by what an engine has of them.

A type is its name in ``pg_type`` of PostgreSQL; ``_x`` is the array of ``x``.  What else a column may have is `OTHER`,
which can be selected, counted and cast.  A literal in quotes has no type yet; its name begins with a quote and says
which texts it may be one of (`LITERALS`).  Sets of types are bits of an int.

Source: https://www.postgresql.org/docs/current/typeconv.html.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.undecided import UNDECIDED, is_undecided, joined, members_of

__all__ = [
    "ALL", "ANY_NULL", "ANY_TEXT", "BIT", "ENUMS", "HELD", "IN_QUOTES", "KNOWN", "LISTS", "LITERALS", "MADE", "NESTED",
    "NO_LISTS", "OTHER", "RANGES", "SORTABLE", "UNBOUND",
    "bits_of", "cast_targets", "category", "coerces", "common", "is_literal", "is_preferred", "members", "only",
    "settled", "settling", "takes", "turns_into",
]  # fmt: skip

_SCALARS = """bool int2 int4 int8 int16 numeric numeric2 numeric3 numeric4 float4 float8 text varchar bpchar date time
timetz timestamp timestamptz interval json jsonb uuid bytea tsvector tsquery"""
SCALARS = tuple(_SCALARS.split())
OTHER = "other"
ENUMS = ("enum1", "enum2", "enum3", "enum4")
"""Types of labels that a database defines, told by their places in `typed.dialect.TypedDialect.enums`."""
# Of which there are no arrays: few have these, and each type makes the tables of operators and functions longer.
RANGES = ("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange")
NESTED = ("nested1", "nested2", "nested3", "nested4", "nested5", "nested6")
"""Structs and maps that a database has, told by their places in `typed.dialect.TypedDialect.nested`."""
ANY_NULL, ANY_TEXT = "'null", "'text"
_TEXTS = ("text", "varchar", "bpchar")
_DECIMALS = ("numeric", "numeric2", "numeric3", "float4", "float8")
"""Those that hold what stands in quotes: a decimal with 36 digits behind its point has two before it."""
HELD = (
    "'field", "'part", "'format", "'regex", "'flags", "'replaced", "'path", "'jsonpath", "'share", "'shares", "'digits",
    "'config", "'query", "'bounds", "'code",
)  # fmt: skip
"""Literals that only arguments are which must be constants of such a spelling."""
MADE = ("tsvector", "tsquery")
"""Types to which no cast leads, since the text would have to be read; functions give them."""
LITERALS: dict[str, frozenset[str]] = {
    ANY_NULL: frozenset((*SCALARS, *ENUMS, *RANGES, *NESTED, *("_" + name for name in (*SCALARS, *ENUMS, *NESTED)))),
    ANY_TEXT: frozenset(_TEXTS),
    "'whole": frozenset((*_TEXTS, "int2", "int4", "int8", "int16", *_DECIMALS)),
    "'integer": frozenset((*_TEXTS, "int4", "int8", "int16", *_DECIMALS)),
    "'decimal": frozenset((*_TEXTS, *_DECIMALS)),
    "'date": frozenset((*_TEXTS, "date", "timestamp", "timestamptz")),
    "'timestamp": frozenset((*_TEXTS, "timestamp", "timestamptz")),
    "'time": frozenset((*_TEXTS, "time", "timetz", "interval")),
    "'interval": frozenset((*_TEXTS, "interval")),
    "'bool": frozenset((*_TEXTS, "bool")),
    "'uuid": frozenset((*_TEXTS, "uuid")),
    "'json": frozenset((*_TEXTS, "json", "jsonb")),
    "'array": frozenset((*_TEXTS, "_text", "_varchar")),
    **{f"'{name}": frozenset((*_TEXTS, name)) for name in ENUMS},
    **dict.fromkeys(HELD, frozenset[str]()),
}
"""Literals by the types that each can be read as."""
KNOWN = (*SCALARS, *ENUMS, *RANGES, *NESTED, *("_" + name for name in (*SCALARS, *ENUMS, *NESTED)), OTHER)
BIT = {name: 1 << place for place, name in enumerate((*KNOWN, *LITERALS, *UNDECIDED))}
ALL = sum(bit for name, bit in BIT.items() if name not in HELD)
IN_QUOTES = sum(BIT[name] for name in LITERALS if name != ANY_NULL and name not in HELD)
"""Literals in quotes whose type what stands around them decides."""
LISTS = sum(bit for name, bit in BIT.items() if name[0] == "_")
NO_LISTS = sum(bit for name, bit in BIT.items() if name[0] not in "_'")
"""Types of values that are no lists."""
_UNSORTED = ("json", "_json", OTHER)
SORTABLE = ALL & ~sum(BIT[name] for name in _UNSORTED)
"""Types with an order and equality."""

_CATEGORIES = {
    "B": "bool", "N": "int2 int4 int8 int16 numeric numeric2 numeric3 numeric4 float4 float8 oid money",
    "S": "text varchar bpchar name",
    "D": "date time timetz timestamp timestamptz", "T": "interval", "I": "inet", "V": "bit varbit",
    "U": "json jsonb uuid bytea xid xid8 tid tsvector tsquery macaddr macaddr8 pg_lsn",
    "G": "box circle line lseg path point polygon",
    **{name: name for name in ENUMS}, "R": " ".join(RANGES),
}  # fmt: skip
_CATEGORY = {name: category for category, names in _CATEGORIES.items() for name in names.split()}
_PREFERRED = frozenset(["bool", "float8", "oid", "text", "timestamptz", "interval", "inet", "varbit"])


UNBOUND = ("any", "anyscalar")
"""Parameters that take anything, or anything but arrays, whatever others take."""


@cache
def bits_of(system: TypeSystem) -> tuple[tuple[str, int], ...]:
    """All types with their bits, but structs and maps of other databases."""
    others = frozenset(NESTED) - system.types
    return tuple((name, bit) for name, bit in BIT.items() if name.removeprefix("_") not in others)


def is_literal(name: str) -> bool:
    """Has it no type of its own yet?"""
    return name[0] == "'"


def category(name: str) -> str:
    """The category of a type: ``A`` for arrays, ``P`` for polymorphic ones."""
    if name[0] == "_":
        return "A"
    return "P" if name.startswith("any") or name == "record" else _CATEGORY.get(name, "U")


def is_preferred(name: str) -> bool:
    """Is it the preferred type of its category?"""
    return name in _PREFERRED


@cache
def coerces(system: TypeSystem, source: str, target: str) -> bool:
    """May a value stand where a type is wanted, without a cast that is written?"""
    if source == target:
        return True
    if source in HELD or is_literal(target) or is_undecided(target):
        return False
    if is_undecided(source):
        return all(coerces(system, member, target) for member in members_of(system, source))
    if is_literal(source):
        return True
    if target == "anyscalar":
        return source[0] != "_" and source != OTHER
    if target in ("any", "anyelement", "anycompatible"):
        return source != OTHER or target == "any"
    if target in ("anyarray", "anycompatiblearray"):
        return source[0] == "_"
    if target == "anyenum":
        return source in ENUMS
    if target in ("anynonarray", "anycompatiblenonarray"):
        return source[0] != "_" and source != OTHER
    if source[0] == "_" and target[0] == "_":
        return coerces(system, source[1:], target[1:])
    return target in system.implicit.get(source, ())


@cache
def turns_into(system: TypeSystem, source: str, target: str) -> bool:
    """Is there a cast that can be written?"""
    if is_literal(source):
        return target in LITERALS[source]
    if is_undecided(source):
        return all(turns_into(system, member, target) for member in members_of(system, source))
    if is_undecided(target):
        return False
    if target.removeprefix("_") in MADE:
        return source == target
    if source == target or target in _TEXTS or source in _TEXTS:
        return True
    if source[0] == "_" and target[0] == "_":
        return turns_into(system, source[1:], target[1:])
    return target in system.implicit.get(source, ()) or (source, target) in system.explicit


@cache
def cast_targets(system: TypeSystem) -> int:
    """The types that a cast can lead to."""
    return sum(BIT[name] for name in system.types)


def takes(system: TypeSystem, target: str, source: str) -> bool:
    """May a value be read as a type, also a literal by its text?"""
    return target == source or (target in LITERALS[source] if is_literal(source) else coerces(system, source, target))


@cache
def common(system: TypeSystem, left: str, right: str) -> str | None:
    """The type of two alternatives (UNION, CASE and so on), None where there is none.

    >>> from guided.grammar.sql.query.dialects.postgresql.types import SYSTEM
    >>> [common(SYSTEM, *two) for two in (("int4", "numeric"), ("int4", "text"), ("'date", "timestamp"))]
    ['numeric', None, 'timestamp']
    """
    if left == right:
        return left
    if is_undecided(left) or is_undecided(right):
        pairs = product(members_of(system, left), members_of(system, right))
        return joined(system, (common(system, *pair) for pair in pairs))
    if is_literal(left) and is_literal(right):
        if ANY_NULL in (left, right):
            return left if right == ANY_NULL else right
        return ANY_TEXT
    if is_literal(left) or is_literal(right):
        known, literal = (right, left) if is_literal(left) else (left, right)
        return known if known in LITERALS[literal] or (literal == ANY_NULL and known == OTHER) else None
    if OTHER in (left, right) or category(left) != category(right):
        return None
    chosen = left
    if not is_preferred(left) and coerces(system, left, right) and not coerces(system, right, left):
        chosen = right
    return chosen if coerces(system, left, chosen) and coerces(system, right, chosen) else None


def settled(system: TypeSystem, name: str) -> str:
    """The type of what is read when nothing else decides: a literal is text, and NULL where the engine says so."""
    if not is_literal(name):
        return name
    return OTHER if name == ANY_NULL and not system.null_is_text else "text"


def settling(system: TypeSystem, goal: int) -> int:
    """Types that are of a goal also once nothing else decides what a literal is."""
    literals = (name for name in LITERALS if not goal & BIT[settled(system, name)])
    return goal & ~sum(BIT[name] for name in literals)


def members(types: int) -> tuple[str, ...]:
    """The types of a set."""
    return tuple(name for name, bit in BIT.items() if types & bit)


def only(*names: str) -> int:
    """A set of types, with those that are one of them undecided, and the literals that can be read as one."""
    wanted = frozenset(names)
    found = sum(BIT[name] for name in wanted)
    found |= sum(BIT[name] for name, members in UNDECIDED.items() if wanted.issuperset(members))
    return found | sum(BIT[literal] for literal, types in LITERALS.items() if types & wanted)
