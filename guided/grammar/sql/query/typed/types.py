"""The types of PostgreSQL that expressions are followed with, their categories and casts.

A type is its name in ``pg_type``; ``_x`` is the array of ``x``.  What else a column may have is `OTHER`, which can be
selected, counted and cast.  A literal in quotes has no type yet; its name begins with a quote and says which texts it
may be one of (`LITERALS`).  Sets of types are bits of an int.

Casts between numbers and bytes are left out: PostgreSQL has them since version 18 only.

Source: https://www.postgresql.org/docs/current/typeconv.html; ``pg_cast`` of the server, which a test asks.
"""

from __future__ import annotations

from functools import cache

__all__ = [
    "ALL", "ANY_NULL", "ANY_TEXT", "BIT", "KNOWN", "LITERALS", "OTHER", "SORTABLE", "category", "coerces", "common",
    "declared", "is_literal", "is_preferred", "members", "only", "settled", "takes", "turns_into",
]  # fmt: skip

_SCALARS = """bool int2 int4 int8 numeric float4 float8 text varchar bpchar date time timetz timestamp timestamptz
interval json jsonb uuid bytea"""
SCALARS = tuple(_SCALARS.split())
OTHER = "other"
ANY_NULL, ANY_TEXT = "'null", "'text"
_TEXTS = ("text", "varchar", "bpchar")
LITERALS: dict[str, frozenset[str]] = {
    ANY_NULL: frozenset((*SCALARS, *("_" + name for name in SCALARS))),
    ANY_TEXT: frozenset(_TEXTS),
    "'whole": frozenset((*_TEXTS, "int2", "int4", "int8", "numeric", "float4", "float8")),
    "'integer": frozenset((*_TEXTS, "int4", "int8", "numeric", "float4", "float8")),
    "'decimal": frozenset((*_TEXTS, "numeric", "float4", "float8")),
    "'date": frozenset((*_TEXTS, "date", "timestamp", "timestamptz")),
    "'timestamp": frozenset((*_TEXTS, "timestamp", "timestamptz")),
    "'time": frozenset((*_TEXTS, "time", "timetz", "interval")),
    "'interval": frozenset((*_TEXTS, "interval")),
    "'bool": frozenset((*_TEXTS, "bool")),
    "'json": frozenset((*_TEXTS, "json", "jsonb")),
    "'array": frozenset((*_TEXTS, "_text", "_varchar")),
}
"""Literals by the types that each can be read as."""
KNOWN = (*SCALARS, *("_" + name for name in SCALARS), OTHER)
BIT = {name: 1 << place for place, name in enumerate((*KNOWN, *LITERALS))}
ALL = (1 << len(BIT)) - 1
_UNSORTED = ("json", "_json", OTHER)
SORTABLE = sum(bit for name, bit in BIT.items() if name not in _UNSORTED)
"""Types with an order and equality."""

_CATEGORIES = {
    "B": "bool", "N": "int2 int4 int8 numeric float4 float8 oid money", "S": "text varchar bpchar name",
    "D": "date time timetz timestamp timestamptz", "T": "interval", "I": "inet", "V": "bit varbit",
    "U": "json jsonb uuid bytea xid xid8 tid tsvector tsquery macaddr macaddr8 pg_lsn",
    "G": "box circle line lseg path point polygon",
}  # fmt: skip
_CATEGORY = {name: category for category, names in _CATEGORIES.items() for name in names.split()}
_PREFERRED = frozenset(["bool", "float8", "oid", "text", "timestamptz", "interval", "inet", "varbit"])
_IMPLICIT = {
    "int2": "int4 int8 numeric float4 float8 oid", "int4": "int8 numeric float4 float8 oid",
    "int8": "numeric float4 float8 oid", "numeric": "float4 float8", "float4": "float8",
    "text": "varchar bpchar name", "varchar": "text bpchar name", "bpchar": "text varchar name",
    "date": "timestamp timestamptz", "timestamp": "timestamptz", "time": "interval timetz",
}  # fmt: skip
_EXPLICIT = {
    "bool": "int4 text varchar bpchar", "int4": "int2 bool", "int8": "int2 int4",
    "numeric": "int2 int4 int8", "float4": "int2 int4 int8 numeric",
    "float8": "int2 int4 int8 numeric float4", "interval": "time", "json": "jsonb",
    "jsonb": "json bool float4 float8 int2 int4 int8 numeric", "timestamp": "date time",
    "timestamptz": "date time timestamp timetz", "timetz": "time",
}  # fmt: skip
_CASTS = {name: frozenset(targets.split()) for name, targets in _IMPLICIT.items()}
_ALL_CASTS = frozenset(
    (source, target)
    for table in (_IMPLICIT, _EXPLICIT)
    for source, targets in table.items()
    for target in targets.split()
)


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
def coerces(source: str, target: str) -> bool:
    """May a value stand where a type is wanted, without a cast that is written?"""
    if source == target or is_literal(source):
        return True
    if target in ("any", "anyelement", "anycompatible"):
        return source != OTHER or target == "any"
    if target in ("anyarray", "anycompatiblearray"):
        return source[0] == "_"
    if target in ("anynonarray", "anycompatiblenonarray"):
        return source[0] != "_" and source != OTHER
    if source[0] == "_" and target[0] == "_":
        return coerces(source[1:], target[1:])
    return target in _CASTS.get(source, ())


@cache
def turns_into(source: str, target: str) -> bool:
    """Is there a cast that can be written?"""
    if is_literal(source):
        return target in LITERALS[source]
    if source == target or target in _TEXTS or source in _TEXTS:
        return True
    if source[0] == "_" and target[0] == "_":
        return turns_into(source[1:], target[1:])
    return (source, target) in _ALL_CASTS


def takes(target: str, source: str) -> bool:
    """May a value be read as a type, also a literal by its text?"""
    return target in LITERALS[source] if is_literal(source) else coerces(source, target)


@cache
def common(left: str, right: str) -> str | None:
    """The type of two alternatives (UNION, CASE and so on), None where there is none.

    >>> common("int4", "numeric"), common("int4", "text"), common("'date", "timestamp")
    ('numeric', None, 'timestamp')
    """
    if left == right:
        return left
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
    if not is_preferred(left) and coerces(left, right) and not coerces(right, left):
        chosen = right
    return chosen if coerces(left, chosen) and coerces(right, chosen) else None


def settled(name: str) -> str:
    """The type of what is read when nothing else decides: a literal is text."""
    return "text" if is_literal(name) else name


def members(types: int) -> tuple[str, ...]:
    """The types of a set."""
    return tuple(name for name, bit in BIT.items() if types & bit)


def only(*names: str) -> int:
    """A set of types, with the literals that can be read as one of them."""
    wanted = frozenset(names)
    found = sum(BIT[name] for name in wanted)
    return found | sum(BIT[literal] for literal, types in LITERALS.items() if types & wanted)


_DECLARED = {
    "boolean": "bool", "smallint": "int2", "integer": "int4", "bigint": "int8", "numeric": "numeric", "real": "float4",
    "double precision": "float8", "text": "text", "character varying": "varchar", "character": "bpchar",
    "date": "date", "time without time zone": "time", "time with time zone": "timetz",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "interval": "interval",
    "json": "json", "jsonb": "jsonb", "uuid": "uuid", "bytea": "bytea",
    # What people write for them.
    "bool": "bool", "int2": "int2", "int": "int4", "int4": "int4", "int8": "int8", "decimal": "numeric",
    "float": "float8", "float4": "float4", "float8": "float8", "varchar": "varchar", "char": "bpchar",
    "bpchar": "bpchar", "time": "time", "timetz": "timetz", "timestamp": "timestamp", "timestamptz": "timestamptz",
    "smallserial": "int2", "serial": "int4", "bigserial": "int8",
}  # fmt: skip


def declared(text: str) -> str:
    """The type of a column by the words in which the server tells it, or in which people declare it.

    >>> declared("character varying(30)"), declared("integer[]"), declared("timestamp(3) without time zone")
    ('varchar', '_int4', 'timestamp')
    >>> declared("VARCHAR(255)"), declared("DECIMAL(10, 2)"), declared("geometry")
    ('varchar', 'numeric', 'other')
    """
    text = text.strip().lower()
    array = text.endswith("[]")
    head, _, rest = text.removesuffix("[]").partition("(")
    name = _DECLARED.get((head + rest.partition(")")[2]).strip(), OTHER)
    if text.startswith("interval"):
        name = "interval"
    return OTHER if name == OTHER else "_" + name if array else name
