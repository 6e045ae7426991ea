"""SQLite's SELECT, as of 3.40 (https://sqlite.org/lang_select.html); functions that a default build has."""

from __future__ import annotations

from guided.grammar.attributed.lexis import Lexis
from guided.grammar.sql.query.catalog import Function
from guided.grammar.sql.query.dialect import Dialect
from guided.grammar.sql.query.scope import CallKind

__all__ = ["SQLITE"]

_RESERVED = """add all alter and as asc between by case cast check collate commit constraint create cross current_date
current_time current_timestamp default deferrable delete desc distinct drop else end escape except exists false filter
foreign from full glob group having in index inner insert intersect into is isnull join left like limit match natural
not nothing notnull null nulls offset on or order outer over primary recursive references regexp replace returning right
select set table then to transaction true union unique update using values when where window with"""

_SCALARS = """abs:1 acos:1 acosh:1 asin:1 asinh:1 atan:1 atan2:2 atanh:1 ceil:1 ceiling:1 changes:0 char:0- coalesce:2-
cos:1 cosh:1 date:0- datetime:0- degrees:1 exp:1 floor:1 format:1- hex:1 ifnull:2 iif:3 instr:2 julianday:0- length:1
ln:1 log:1-2 log10:1 log2:1 lower:1 ltrim:1-2 max:2- min:2- mod:2 nullif:2 pi:0 pow:2 power:2 printf:1- quote:1
radians:1 random:0 round:1-2 rtrim:1-2 sign:1 sin:1 sinh:1 soundex:1 sqrt:1 strftime:1- substr:2-3 substring:2-3
tan:1 tanh:1 time:0- trim:1-2 trunc:1 typeof:1 unicode:1 unixepoch:0- upper:1 zeroblob:1 json:1 json_array_length:1-2
json_extract:2- json_quote:1 json_type:1-2 json_valid:1 replace:3"""
_AGGREGATES = "avg:1 count:0-1 group_concat:1-2 max:1 min:1 sum:1 total:1 json_group_array:1"
_WINDOWS = """cume_dist:0 dense_rank:0 first_value:1 lag:1-3 last_value:1 lead:1-3 nth_value:2 ntile:1 percent_rank:0
rank:0 row_number:0"""


def _functions(text: str, kind: CallKind) -> tuple[Function, ...]:
    found = []
    for entry in text.split():
        name, _, count = entry.partition(":")
        low, dash, high = count.partition("-")
        found.append(Function(name, kind, int(low), int(high or low) if high or not dash else None))
    return tuple(found)


_KEYWORDS = frozenset(_RESERVED.split()) | frozenset(
    ["except", "first", "last", "rows", "range", "groups", "partition"]
)

SQLITE = Dialect(
    name="sqlite",
    lexis=Lexis(
        reserved=frozenset(_RESERVED.split()),
        quotes=('"', "`"),
        string_quotes=('"',),
        signs=frozenset(["<>", "<=", ">=", "==", "!=", "||", "<<", ">>", "->", "->>"]),
    ),
    keywords=_KEYWORDS,
    comparisons=("=", "==", "!=", "<>", "<", "<=", ">", ">="),
    patterns=("GLOB",),
    operators=("+", "-", "*", "/", "%", "||", "&", "|", "<<", ">>"),
    prefixes=("-", "+", "~"),
    constants=("NULL", "TRUE", "FALSE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"),
    collations=("binary", "nocase", "rtrim"),
    types=(
        "integer",
        "int",
        "bigint",
        "real",
        "float",
        "double",
        "numeric",
        "decimal",
        "text",
        "varchar",
        "char",
        "blob",
        "date",
        "datetime",
        "boolean",
    ),
    functions=(
        *_functions(_SCALARS, CallKind.SCALAR),
        *_functions(_AGGREGATES, CallKind.AGGREGATE),
        *_functions(_WINDOWS, CallKind.WINDOW),
    ),
)
