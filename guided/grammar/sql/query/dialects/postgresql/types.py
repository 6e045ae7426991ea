"""PostgreSQL's types, casts and operators: rows of ``pg_cast`` and ``pg_operator``; a test asks the server.

Casts between numbers and bytes are left out: PostgreSQL has them since version 18 only.
"""

from __future__ import annotations

from guided.grammar.sql.query.dialects.postgresql import functions
from guided.grammar.sql.query.typed.operators import LEVELS
from guided.grammar.sql.query.typed.system import TypeSystem, functions_of, operators_of
from guided.grammar.sql.query.typed.types import OTHER

__all__ = ["SYSTEM", "declared"]

_TYPES = """bool int2 int4 int8 numeric float4 float8 text varchar bpchar date time timetz timestamp timestamptz
interval json jsonb uuid bytea"""
_RANGES = {
    "int4range": "int4", "int8range": "int8", "numrange": "numeric", "daterange": "date", "tsrange": "timestamp",
    "tstzrange": "timestamptz",
}  # fmt: skip
"""Ranges by what they are of."""
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
_COMPARED = """
anyarray: anyarray; anyenum: anyenum; bit: bit; bool: bool; bpchar: bpchar; bytea: bytea; char: char; circle: circle;
date: date timestamptz timestamp; float4: float4 float8; float8: float8 float4; inet: inet; int2: int8 int4 int2;
int4: int8 int4 int2; int8: int8 int4 int2; interval: interval; jsonb: jsonb; lseg: lseg; macaddr: macaddr;
macaddr8: macaddr8; money: money; name: name text; numeric: numeric; oid: oid; oidvector: oidvector; pg_lsn: pg_lsn;
record: record; text: name text; tid: tid; time: time; timestamp: date timestamptz timestamp;
timestamptz: date timestamptz timestamp; timetz: timetz; tsquery: tsquery; tsvector: tsvector; uuid: uuid;
varbit: varbit; xid8: xid8
"""
_OPERATORS = {
    "compare": _COMPARED,
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
    "?|": "jsonb: _text; point: point",
    "?&": "jsonb: _text",
    "@?": "jsonb: 'jsonpath",
    "@@": "tsvector: tsquery; tsquery: tsvector; text: tsquery text; jsonb: 'jsonpath",
}
for _name, _of in _RANGES.items():
    for _sign, _row in (
        ("@>", f"{_name}: {_name} {_of}"), ("<@", f"{_name}: {_name}; {_of}: {_name}"), ("&&", f"{_name}: {_name}"),
        ("compare", f"{_name}: {_name}"), *((sign, f"{_name}: {_name}>{_name}") for sign in "+-*"),
    ):  # fmt: skip
        _OPERATORS[_sign] += f"; {_row}"
_PREFIXES = {
    "-": frozenset(["float4", "float8", "int2", "int4", "int8", "interval", "numeric"]),
    "+": frozenset(["float4", "float8", "int2", "int4", "int8", "numeric"]),
}

SYSTEM = TypeSystem(
    types=frozenset((*_TYPES.split(), *("_" + name for name in _TYPES.split()), *_RANGES)),
    implicit={name: dict.fromkeys(targets.split(), 0) for name, targets in _IMPLICIT.items()},
    explicit=frozenset((name, target) for name, targets in _EXPLICIT.items() for target in targets.split()),
    operators=operators_of(_OPERATORS),
    prefixes=_PREFIXES,
    levels=LEVELS,
    scalars=functions_of(functions.SCALARS),
    aggregates=functions_of(functions.AGGREGATES),
    windows=functions_of(functions.WINDOWS),
    ordered_sets=functions_of(functions.ORDERED_SETS),
    row_sets=functions_of(functions.ROW_SETS),
    spelled=functions_of(functions.SPELLED),
    row_columns={
        **dict.fromkeys(
            ("json_array_elements", "json_array_elements_text", "jsonb_array_elements", "jsonb_array_elements_text"),
            (("value", ""),),
        ),
        **{f"{kind}_each": (("key", "text"), ("value", kind)) for kind in ("json", "jsonb")},
        **{f"{kind}_each_text": (("key", "text"), ("value", "text")) for kind in ("json", "jsonb")},
    },
    forward_types=("?exact1", "?string", "date", "?stamp", "bool", "jsonb", "?float", "interval"),
)

_DECLARED = {
    "boolean": "bool", "smallint": "int2", "integer": "int4", "bigint": "int8", "numeric": "numeric", "real": "float4",
    "double precision": "float8", "text": "text", "character varying": "varchar", "character": "bpchar",
    "date": "date", "time without time zone": "time", "time with time zone": "timetz",
    "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "interval": "interval",
    "json": "json", "jsonb": "jsonb", "uuid": "uuid", "bytea": "bytea",
    "tsvector": "tsvector", "tsquery": "tsquery", **{name: name for name in _RANGES},
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
    return OTHER if name == OTHER or (array and name in _RANGES) else "_" + name if array else name
