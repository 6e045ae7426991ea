"""SQLite's SELECT as of 3.40 (https://sqlite.org/lang_select.html), with the functions of a default build.

The lists are fixed, so that a mask does not depend on the machine; what a later version adds is not in them.
"""

from __future__ import annotations

from guided.grammar.attributed.lexis import Lexis
from guided.grammar.sql.query.dialect import Dialect, TableFunction
from guided.grammar.sql.query.dialects.functions import functions_of
from guided.grammar.sql.query.scope import CallKind

__all__ = ["SQLITE"]

_RESERVED = """add all alter and as asc between by case cast check collate commit constraint create cross current_date
current_time current_timestamp default deferrable delete desc distinct drop else end escape except exists false filter
foreign from full glob group having in index inner insert intersect into is isnull join left like limit match natural
not nothing notnull null nulls offset on or order outer over primary recursive references regexp returning right
select set table then to transaction true union unique update using values when where window with"""

_SCALARS = """abs:1 changes:0 char:1-100 coalesce:2-100 format:1-100 hex:1 ifnull:2 iif:3 instr:2 last_insert_rowid:0
length:1 likely:1 lower:1 ltrim:1-2 max:2-100 min:2-100 nullif:2 printf:1-100 quote:1 random:0 randomblob:1 replace:3
round:1-2 rtrim:1-2 sign:1 soundex:1 sqlite_version:0 substr:2-3 substring:2-3 total_changes:0 trim:1-2 typeof:1
unicode:1 unlikely:1 upper:1 zeroblob:1"""
"""https://sqlite.org/lang_corefunc.html; ``sign`` since 3.35, ``format`` since 3.38.  ``like`` and ``glob``, whose
names are operators, are in `guided.grammar.sql.query.select.calls`.  Left out are those that load code, or that ask for
a constant (``likelihood``)."""
_DATES = "date:0-100 datetime:0-100 julianday:0-100 strftime:1-100 time:0-100 unixepoch:0-100"
"""https://sqlite.org/lang_datefunc.html; ``unixepoch`` since 3.38."""
_MATHS = """acos:1 acosh:1 asin:1 asinh:1 atan:1 atan2:2 atanh:1 ceil:1 ceiling:1 cos:1 cosh:1 degrees:1 exp:1 floor:1
ln:1 log:1-2 log10:1 log2:1 mod:2 pi:0 pow:2 power:2 radians:1 sin:1 sinh:1 sqrt:1 tan:1 tanh:1 trunc:1"""
"""https://sqlite.org/lang_mathfunc.html, since 3.35."""
_JSONS = """json:1 json_array:0-100 json_array_length:1-2 json_extract:2-100 json_insert:1-99 json_object:0-100
json_patch:2 json_quote:1 json_remove:1-100 json_replace:1-99 json_set:1-99 json_type:1-2 json_valid:1"""
"""https://sqlite.org/json1.html, built in since 3.38."""
_JSON_COLUMNS = ("key", "value", "type", "atom", "id", "parent", "fullkey", "path")
"""Of ``json_each`` and ``json_tree``."""
_AGGREGATES = """avg:1 count:0-1 group_concat:1-2 json_group_array:1 json_group_object:2 max:1 min:1 sum:1 total:1"""
"""https://sqlite.org/lang_aggfunc.html"""
_WINDOWS = """cume_dist:0 dense_rank:0 first_value:1 lag:1-3 last_value:1 lead:1-3 nth_value:2 ntile:1 percent_rank:0
rank:0 row_number:0"""
"""https://sqlite.org/windowfunctions.html, since 3.25."""


_TYPES = """bigint blob bool boolean char character clob date datetime decimal double float int int2 int8 integer
mediumint nchar numeric nvarchar real smallint string text time timestamp tinyint varchar"""
_LONG_TYPES = ("double precision", "unsigned big int", "varying character", "native character")
"""Any words are a type; these are those of https://sqlite.org/datatype3.html and the manuals of other engines."""


_KEYWORDS = frozenset(_RESERVED.split()) | frozenset(
    ["except", "first", "last", "rows", "range", "groups", "partition"]
)

SQLITE = Dialect(
    name="sqlite",
    lexis=Lexis(
        reserved=frozenset(_RESERVED.split()),
        quotes=('"', "`", "["),
        string_quotes=('"',),
        hexadecimal=True,
        signs=frozenset(["<>", "<=", ">=", "==", "!=", "||", "<<", ">>", "->", "->>"]),
    ),
    keywords=_KEYWORDS,
    comparisons=("=", "==", "!=", "<>", "<", "<=", ">", ">="),
    patterns=("GLOB",),
    operators=("+", "-", "*", "/", "%", "||", "->", "->>", "&", "|", "<<", ">>"),
    prefixes=("-", "+", "~"),
    constants=("NULL", "TRUE", "FALSE", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"),
    collations=("binary", "nocase", "rtrim"),
    types=(*_TYPES.split(), *_LONG_TYPES),
    functions=(
        *functions_of(f"{_SCALARS} {_DATES} {_MATHS} {_JSONS}", CallKind.SCALAR),
        *functions_of(_AGGREGATES, CallKind.AGGREGATE),
        *functions_of(_WINDOWS, CallKind.WINDOW),
    ),
    names_queries=False,
    has_rows=True,
    table_functions=tuple(TableFunction(name, _JSON_COLUMNS, ("json", "root")) for name in ("json_each", "json_tree")),
)
