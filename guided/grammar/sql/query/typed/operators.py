"""PostgreSQL's operators by the types of their operands.

The rows are those of ``pg_operator`` for the operators that are followed; a test asks the server for all pairs.
"""

from __future__ import annotations

from functools import cache

from guided.grammar.sql.query.typed.resolution import Signature, operator_of, result_of
from guided.grammar.sql.query.typed.types import ALL, BIT

__all__ = ["COMPARISONS", "LEVELS", "PREFIXES", "compares", "result", "rights", "viable"]

COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_COMPARED = """
anyarray: anyarray; anyenum: anyenum; bit: bit; bool: bool; bpchar: bpchar; bytea: bytea; char: char; circle: circle;
date: date timestamptz timestamp; float4: float4 float8; float8: float8 float4; inet: inet; int2: int8 int4 int2;
int4: int8 int4 int2; int8: int8 int4 int2; interval: interval; jsonb: jsonb; lseg: lseg; macaddr: macaddr;
macaddr8: macaddr8; money: money; name: name text; numeric: numeric; oid: oid; oidvector: oidvector; pg_lsn: pg_lsn;
record: record; text: name text; tid: tid; time: time; timestamp: date timestamptz timestamp;
timestamptz: date timestamptz timestamp; timetz: timetz; tsquery: tsquery; tsvector: tsvector; uuid: uuid;
varbit: varbit; xid8: xid8
"""
_OTHERS = {
    "+": """
inet: int8>inet; circle: point>circle; box: point>box; path: path>path point>path; point: point>point;
date: int4>date interval>timestamp time>timestamp timetz>timestamptz; float4: float4>float4 float8>float8;
float8: float4>float8 float8>float8; int2: int2>int2 int4>int4 int8>int8;
int4: date>date int2>int4 int4>int4 int8>int8; int8: inet>inet int2>int8 int4>int8 int8>int8;
interval: date>timestamp interval>interval time>time timestamp>timestamp timestamptz>timestamptz timetz>timetz;
money: money>money; numeric: numeric>numeric pg_lsn>pg_lsn; pg_lsn: numeric>pg_lsn;
time: date>timestamp interval>time; timestamp: interval>timestamp; timestamptz: interval>timestamptz;
timetz: date>timestamptz interval>timetz
""",
    "-": """
box: point>box; circle: point>circle; path: point>path; point: point>point; inet: inet>int8 int8>inet;
date: date>int4 int4>date interval>timestamp; float4: float4>float4 float8>float8; float8: float4>float8 float8>float8;
int2: int2>int2 int4>int4 int8>int8; int4: int2>int4 int4>int4 int8>int8; int8: int2>int8 int4>int8 int8>int8;
interval: interval>interval; jsonb: _text>jsonb int4>jsonb text>jsonb; money: money>money; numeric: numeric>numeric;
pg_lsn: numeric>pg_lsn pg_lsn>numeric; time: interval>time time>interval; timestamp: interval>timestamp
timestamp>interval; timestamptz: interval>timestamptz timestamptz>interval; timetz: interval>timetz
""",
    "*": """
box: point>box; circle: point>circle; path: point>path; point: point>point;
float4: float4>float4 float8>float8 money>money; float8: float4>float8 float8>float8 interval>interval money>money;
int2: int2>int2 int4>int4 int8>int8 money>money; int4: int2>int4 int4>int4 int8>int8 money>money;
int8: int2>int8 int4>int8 int8>int8 money>money; interval: float8>interval;
money: float4>money float8>money int2>money int4>money int8>money; numeric: numeric>numeric
""",
    "/": """
box: point>box; circle: point>circle; path: point>path; point: point>point;
float4: float4>float4 float8>float8; float8: float4>float8 float8>float8; int2: int2>int2 int4>int4 int8>int8;
int4: int2>int4 int4>int4 int8>int8; int8: int2>int8 int4>int8 int8>int8; interval: float8>interval;
money: float4>money float8>money int2>money int4>money int8>money money>float8; numeric: numeric>numeric
""",
    "%": "int2: int2>int2; int4: int4>int4; int8: int8>int8; numeric: numeric>numeric",
    "^": "float8: float8>float8; numeric: numeric>numeric",
    "||": """
anycompatible: anycompatiblearray>anycompatiblearray; anycompatiblearray: anycompatible>anycompatiblearray
anycompatiblearray>anycompatiblearray; anynonarray: text>text; bytea: bytea>bytea; jsonb: jsonb>jsonb;
text: anynonarray>text text>text; tsquery: tsquery>tsquery; tsvector: tsvector>tsvector; varbit: varbit>varbit
""",
    "~": "bpchar: text; name: text; text: text",
    "like": "bpchar: text; name: text; text: text",
    "at": "timestamp: text>timestamptz; timestamptz: text>timestamp; timetz: text>timetz",
    "->": "json: int4>json text>json; jsonb: int4>jsonb text>jsonb",
    "->>": "json: int4>text text>text; jsonb: int4>text text>text",
    "#>": "json: _text>json; jsonb: _text>jsonb",
    "#>>": "json: _text>text; jsonb: _text>text",
    "@>": "anyarray: anyarray; box: box point; circle: circle point; jsonb: jsonb; tsquery: tsquery",
    "<@": "anyarray: anyarray; box: box; circle: circle; jsonb: jsonb; tsquery: tsquery",
    "&&": "anyarray: anyarray; box: box; circle: circle; inet: inet; tsquery: tsquery>tsquery",
    "?": "jsonb: text",
}
PREFIXES = {
    "-": frozenset(["float4", "float8", "int2", "int4", "int8", "interval", "numeric"]),
    "+": frozenset(["float4", "float8", "int2", "int4", "int8", "numeric"]),
}
LEVELS = {
    "or": 0, "and": 1, "not": 2, "is": 3, **dict.fromkeys((*COMPARISONS, "compare"), 4), "between": 5, "like": 5,
    "in": 5, **dict.fromkeys(("||", "~", "->", "->>", "#>", "#>>", "@>", "<@", "&&", "?"), 6),
    "+": 7, "-": 7, "*": 8, "/": 8, "%": 8, "^": 9, "at": 10, "sign": 12,
}  # fmt: skip
"""How tightly operators bind, loosest first (https://www.postgresql.org/docs/current/sql-syntax-lexical.html)."""
_BINARY = (*_OTHERS, "compare")


def _read(text: str) -> tuple[Signature, ...]:
    found = []
    for row in text.split(";"):
        left, _, rights = row.strip().partition(": ")
        for entry in rights.split():
            right, _, given = entry.partition(">")
            found.append(Signature((left, right), given or "bool"))
    return tuple(found)


_SIGNATURES = {"compare": _read(_COMPARED), **{name: _read(text) for name, text in _OTHERS.items()}}


@cache
def result(operator: str, left: str, right: str) -> str | None:
    """The type of an operation, None where the engine has none; comparisons are one ``compare``.

    >>> result("+", "date", "int4"), result("compare", "int4", "text"), result("/", "int4", "numeric")
    ('date', None, 'numeric')
    """
    signature = operator_of(_SIGNATURES[operator], left, right)
    return None if signature is None else result_of(signature, (left, right))


@cache
def rights(operator: str, left: str, wanted: int) -> int:
    """The types of right operands with which the result is one of those that are wanted."""
    found = 0
    for right, bit in BIT.items():
        given = result(operator, left, right)
        if given is not None and BIT[given] & wanted:
            found |= bit
    return found


@cache
def compares(left: str) -> int:
    """The types that a type can be compared with."""
    return rights("compare", left, ALL)


@cache
def viable(wanted: int, loosest: int, level: int) -> int:
    """The types from which one operator that binds as tightly as ``level`` or looser leads to one that is wanted.

    Those looser than ``loosest`` end the operand, and so does that level itself.
    """
    if loosest < LEVELS["is"] and wanted & BIT["bool"] and level >= LEVELS["is"]:
        # IS NULL takes any type.
        return ALL
    found = wanted
    operators = [name for name in _BINARY if loosest < LEVELS[name] <= level]
    for left, bit in BIT.items():
        if not found & bit and any(rights(name, left, wanted) for name in operators):
            found |= bit
    return found
