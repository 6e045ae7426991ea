"""DuckDB's types, casts and operators; a test asks the engine for all pairs.

A decimal is one of four by the digits behind its point, nine each, since the engine refuses products of more than 38.
``int16`` is HUGEINT.  Unsigned types are the next larger ones with a sign, which can do no more than they.

Source: https://duckdb.org/docs/stable/sql/data_types/typecasting.
"""

from __future__ import annotations

import re

from guided.grammar.sql.query.dialects.duckdb import functions
from guided.grammar.sql.query.typed.operators import LEVELS
from guided.grammar.sql.query.typed.system import Signature, TypeSystem, functions_of, operators_of
from guided.grammar.sql.query.typed.types import ANY_NULL, OTHER

__all__ = ["MOMENTS", "SYSTEM", "declared"]

MOMENTS = {
    "CURRENT_DATE": "date", "CURRENT_TIMESTAMP": "timestamptz", "CURRENT_TIME": "timetz",
    "LOCALTIMESTAMP": "timestamp", "LOCALTIME": "time",
}  # fmt: skip

_WHOLE = ("int2", "int4", "int8", "int16")
_DECIMALS = ("numeric", "numeric2", "numeric3", "numeric4")
_NUMBERS = (*_WHOLE, *_DECIMALS, "float4", "float8")
_LISTED = (*_WHOLE, _DECIMALS[0], "float4", "float8")
"""Those of which there are lists."""
_SCALARS = "bool text date time timetz timestamp timestamptz interval jsonb uuid bytea"
_TYPES = (*_NUMBERS, *_SCALARS.split())
_COSTS = {
    "int2": 110, "int4": 103, "int8": 101, "int16": 120, **dict.fromkeys(_DECIMALS, 104), "float4": 110, "float8": 102,
    "text": 149, "date": 110, "time": 110, "timetz": 110, "timestamp": 120, "timestamptz": 121, "interval": 110,
    "bool": 110, "jsonb": 110, "uuid": 110, "bytea": 110,
}  # fmt: skip
"""What it costs that something becomes a type."""
_BECOMES = {
    **{name: _NUMBERS[place + 1 :] for place, name in enumerate(_NUMBERS)},
    "date": ("timestamp", "timestamptz"), "timestamp": ("timestamptz",), ANY_NULL: _TYPES,
}  # fmt: skip
_EXPLICIT = {
    "bool": _WHOLE, "timestamp": ("date", "time"), "timestamptz": ("date", "timestamp", "timetz"),
    "timetz": ("time",), "text": ("jsonb",), "jsonb": ("text", *_NUMBERS),
    **{name: _NUMBERS[:place] for place, name in enumerate(_NUMBERS)},
}  # fmt: skip
# Numbers that begin a sum or product of dates and intervals are left out: ends would be far.
_MOMENTS = {
    "+": """
date: int2>date int4>date time>timestamp timetz>timestamptz interval>timestamp;
time: date>timestamp interval>time; timestamp: interval>timestamp; timestamptz: interval>timestamptz;
timetz: date>timestamptz interval>timetz; interval: date>timestamp time>time timestamp>timestamp
timestamptz>timestamptz timetz>timetz interval>interval
""",
    "-": """
date: int2>date int4>date date>int8 timestamp>interval timestamptz>interval interval>timestamp; time: interval>time;
timestamp: date>interval timestamp>interval timestamptz>interval interval>timestamp; timetz: interval>timetz;
timestamptz: date>interval timestamp>interval timestamptz>interval interval>timestamptz; interval: interval>interval
""",
}
_OTHERS = {
    "||": "anynonarray: text>text; text: anynonarray>text text>text; bytea: bytea>bytea; anyarray: anyarray>anyarray",
    "~": "text: 'regex",
    "like": "text: text",
    "at": "date: text>never; timestamp: text>timestamptz; timestamptz: text>timestamp; timetz: text>timetz",
    "->>": "jsonb: 'path>text int8>text",
    **dict.fromkeys(("&&", "@>", "<@"), "anyarray: anyarray"),
}


def _larger(left: str, right: str) -> str:
    return max(left, right, key=_NUMBERS.index)


def _sum(left: str, right: str) -> str | None:
    return _larger(left, right)


def _product(left: str, right: str) -> str | None:
    if left in _DECIMALS and right in _DECIMALS:
        place = _DECIMALS.index(left) + _DECIMALS.index(right) + 1
        return _DECIMALS[place] if place < len(_DECIMALS) else None
    return _larger(left, right)


def _quotient(left: str, right: str) -> str | None:
    return "float4" if _larger(left, right) == "float4" else "float8"


def _whole_quotient(left: str, right: str) -> str | None:
    return "float8" if _larger(left, right) in _DECIMALS else _larger(left, right)


def _remainder(left: str, right: str) -> str | None:
    # Of decimals too large to be brought together the engine makes doubles.
    found = _larger(left, right)
    return found if found not in _DECIMALS or {left, right} <= {"numeric", "int2", "int4"} else None


def _power(left: str, right: str) -> str | None:
    return "float8"


_ARITHMETIC = {
    "+": _sum, "-": _sum, "*": _product, "/": _quotient, "//": _whole_quotient, "%": _remainder, "^": _power,
    "**": _power,
}  # fmt: skip


def _arithmetic() -> dict[str, tuple[Signature, ...]]:
    moments = operators_of(_MOMENTS)
    found = {}
    for name, rule in _ARITHMETIC.items():
        pairs = [((left, right), rule(left, right)) for left in _NUMBERS for right in _NUMBERS]
        numbers = [Signature(pair, given) for pair, given in pairs if given is not None]
        spans = [Signature(("interval", right), "interval") for right in _NUMBERS] if name in "*/" else []
        found[name] = (*numbers, *moments.get(name, ()), *spans)
    return found


_ALIKE = (_NUMBERS, ("date", "timestamp", "timestamptz"), ("bool", *_WHOLE))


def _compared() -> tuple[Signature, ...]:
    alike = {(left, right) for group in _ALIKE for left in group for right in group}
    alike |= {(name, name) for name in (*_TYPES, "anyarray")}
    return tuple(Signature(pair, "bool") for pair in sorted(alike))


def _among() -> tuple[Signature, ...]:
    """What is looked for in a list."""
    listed = (*_LISTED, *_SCALARS.split())
    pairs = ((one, other) for one in _NUMBERS for other in _LISTED if one != other)
    return tuple(Signature((one, "_" + other), "bool") for one, other in (*zip(listed, listed, strict=True), *pairs))


def _equal() -> tuple[Signature, ...]:
    """What is compared, and texts with numbers, which the engine reads then."""
    read = [pair for name in _NUMBERS for pair in (("text", name), (name, "text"))]
    return (*_compared(), *(Signature(pair, "bool") for pair in read))


def _windows() -> dict[str, tuple[Signature, ...]]:
    """With LAG and LEAD of a number whose default is another: it is made one of the same type."""
    found = dict(functions_of(functions.WINDOWS))
    for name in ("lag", "lead"):
        numbers = (Signature((kind, "int8", other), kind) for kind in _NUMBERS for other in _NUMBERS)
        found[name] = (*found[name], *numbers)
    return found


_WITH_ELEMENTS = """list_contains array_contains list_has array_has contains list_position list_indexof array_position
array_indexof"""


def _scalars() -> dict[str, tuple[Signature, ...]]:
    """With the aggregates of lists, and numbers that are looked for among others."""
    found = dict(functions_of(functions.SCALARS))
    aggregates = functions_of(functions.AGGREGATES)
    for name in functions.OF_LISTS.split():
        rows = (one for one in aggregates[name] if len(one.parameters) == 1)
        lists = ((_list_of(one.parameters[0]), one.result) for one in rows)
        some = [Signature((list_,), given) for list_, given in lists if list_]
        # NULL is of no type there: it must fit two.
        found["list_" + name] = (*some, Signature(("never",), "never"))
    for name in _WITH_ELEMENTS.split():
        given = found[name][-1].result
        pairs = ((one, other) for one in _LISTED for other in _NUMBERS if one != other)
        found[name] = (*found[name], *(Signature(("_" + one, other), given) for one, other in pairs))
    return found


def _list_of(parameter: str) -> str:
    """What a parameter is where a list of it is wanted; empty where there is no such list."""
    if parameter.startswith("any"):
        return "anyarray"
    return "" if parameter in _DECIMALS[1:] else "_" + parameter


SYSTEM = TypeSystem(
    types=frozenset((*_TYPES, *("_" + name for name in _TYPES if name not in _DECIMALS[1:]))),
    implicit={name: {other: _COSTS[other] for other in others} for name, others in _BECOMES.items()},
    explicit=frozenset((name, other) for name, others in _EXPLICIT.items() for other in others),
    operators={"compare": _compared(), "equal": _equal(), "among": _among(), **_arithmetic(), **operators_of(_OTHERS)},
    prefixes={"-": frozenset((*_NUMBERS, "interval")), "+": frozenset(_NUMBERS)},
    levels={**LEVELS, "~": LEVELS["like"], "quantified": LEVELS["||"], "among": LEVELS["in"]},
    scalars=_scalars(),
    aggregates=functions_of(functions.AGGREGATES),
    of_shares=functions_of(functions.OF_SHARES),
    windows=_windows(),
    ordered_sets=functions_of(functions.ORDERED_SETS),
    row_sets=functions_of(functions.ROW_SETS),
    row_columns={},
    forward_types=("?number2", "text", "date", "?stamp", "bool", "interval"),
    cheapest=True,
    layered=True,
    depends_on_keys=False,
    constant_order=False,
    moments=frozenset(map(str.lower, MOMENTS)),
    row_names=frozenset(["rowid"]),
    no_windows=frozenset(["first", "last"]),
    bare_aggregates=frozenset(["geomean", "geometric_mean"]),
    null_is_text=False,
    distinct_settles=False,
    distinct_on_result=False,
    labels=False,
    shared_first=False,
    value_names=("col", 0),
    leading_values=False,
    recursive_order=False,
    volatile=frozenset(["random", "uuid", "gen_random_uuid"]),
    null_matters=frozenset(["date_part", "datepart", "extract"]),
    aliases=True,
    all_columns=True,
    qualify=True,
    from_first=True,
    lists=True,
    computable=functions.COMPUTABLE,
    failing=functions.FAILING,
    folded=functions.FOLDED,
)

_DECLARED = {
    "BOOLEAN": "bool", "TINYINT": "int2", "SMALLINT": "int2", "INTEGER": "int4", "BIGINT": "int8", "HUGEINT": "int16",
    "UTINYINT": "int2", "USMALLINT": "int4", "UINTEGER": "int8", "UBIGINT": "int16", "FLOAT": "float4",
    "DOUBLE": "float8", "VARCHAR": "text", "DATE": "date", "TIME": "time", "TIME WITH TIME ZONE": "timetz",
    "TIMESTAMP": "timestamp", "TIMESTAMP WITH TIME ZONE": "timestamptz", "INTERVAL": "interval", "JSON": "jsonb",
    "UUID": "uuid", "BLOB": "bytea",
    # What people write for them.
    "BOOL": "bool", "LOGICAL": "bool", "INT": "int4", "INT1": "int2", "INT2": "int2", "INT4": "int4", "INT8": "int8",
    "INT16": "int2", "INT32": "int4", "INT64": "int8", "SHORT": "int2", "LONG": "int8", "REAL": "float4",
    "FLOAT4": "float4", "FLOAT8": "float8", "DECIMAL": "numeric", "NUMERIC": "numeric", "TEXT": "text",
    "STRING": "text", "CHAR": "text", "BPCHAR": "text", "DATETIME": "timestamp", "TIMESTAMPTZ": "timestamptz",
    "BYTEA": "bytea", "BINARY": "bytea", "VARBINARY": "bytea",
}  # fmt: skip
_SCALE = re.compile(r"(?:DECIMAL|NUMERIC)\(\s*\d+\s*(?:,\s*(\d+)\s*)?\)")


def declared(text: str) -> str:
    """The type of a column by the words in which the engine tells it, or in which people declare it.

    >>> declared("VARCHAR"), declared("INTEGER[]"), declared("DECIMAL(18,12)"), declared("STRUCT(a INTEGER)")
    ('text', '_int4', 'numeric2', 'other')
    """
    text = " ".join(text.upper().split())
    if text.endswith("[]"):
        inner = declared(text[:-2])
        return OTHER if "_" + inner not in SYSTEM.types else "_" + inner
    if scaled := _SCALE.fullmatch(text):
        place = (int(scaled[1] or 0) + 8) // 9
        return _DECIMALS[max(place, 1) - 1] if place <= len(_DECIMALS) else OTHER
    if text.startswith("ENUM("):
        return "text"
    return _DECLARED.get(re.sub(r"^(VARCHAR|CHAR|TEXT|STRING)\(\d+\)$", r"\1", text), OTHER)
