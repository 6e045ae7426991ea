"""`DUCKDB`: its types as people write them, its signs and literals."""

from __future__ import annotations

from guided.grammar.attributed.nodes import LiteralForm
from guided.grammar.sql.query.dialects.duckdb.types import MOMENTS, SYSTEM, declared
from guided.grammar.sql.query.dialects.duckdb.words import KEYWORDS, LEXIS
from guided.grammar.sql.query.typed.dialect import TypedDialect

__all__ = ["DUCKDB"]

_WORDS = {
    "int": "int4", "integer": "int4", "int4": "int4", "bigint": "int8", "int8": "int8", "smallint": "int2",
    "int2": "int2", "hugeint": "int16", "numeric": "numeric", "decimal": "numeric",
    "real": "float4", "float": "float4", "float4": "float4", "double": "float8", "float8": "float8", "text": "text",
    "varchar": "text", "string": "text", "date": "date", "timestamp": "timestamp", "datetime": "timestamp",
    "timestamptz": "timestamptz", "time": "time", "timetz": "timetz", "interval": "interval", "boolean": "bool",
    "bool": "bool", "json": "jsonb", "uuid": "uuid", "blob": "bytea",
}  # fmt: skip
_PHRASES = {
    "DOUBLE PRECISION": "float8", "CHARACTER VARYING": "text", "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP WITHOUT TIME ZONE": "timestamp", "TIME WITH TIME ZONE": "timetz", "TIME WITHOUT TIME ZONE": "time",
}  # fmt: skip
_DATE_FIELDS = "year quarter month week day dow doy isodow isoyear decade century"
_FIELDS = {
    "date": _DATE_FIELDS, "timestamp": f"{_DATE_FIELDS} hour minute second",
    "interval": "year quarter month day hour minute second", "time": "hour minute second",
}  # fmt: skip

DUCKDB = TypedDialect(
    lexis=LEXIS,
    keywords=KEYWORDS,
    system=SYSTEM,
    declared=declared,
    type_words=_WORDS,
    type_phrases=_PHRASES,
    sized_types={"VARCHAR": "text"},
    scaled_types=(("numeric", 0, 9), ("numeric2", 10, 18), ("numeric3", 19, 27), ("numeric4", 28, 36)),
    most_digits=38,
    moments=MOMENTS,
    signs=("||", "->>", "&&", "@>", "<@", "+", "-", "*", "/", "//", "%", "^", "**"),
    patterns=("LIKE", "ILIKE", "GLOB"),
    matches=("~", "!~", "~*", "!~*", "SIMILAR TO", "NOT SIMILAR TO"),
    numbers={
        "int4": "[0-9]{1,9}|1[0-9]{9}",
        "int8": "[3-9][0-9]{9}|[1-9][0-9]{10,14}",
        "numeric": r"[0-9]{0,15}\.[0-9]{1,9}",
        "float8": r"([0-9]{1,15}(\.[0-9]{1,15})?|\.[0-9]{1,15})[eE][+-]?[0-9]{1,2}",
        "'share": r"0\.[0-9]{1,4}|1\.0|0|1",
        "'digits": "[0-9]",
    },
    strings=(
        "'whole", "'integer", "'decimal", "'date", "'timestamp", "'time", "'interval", "'bool", "'json", "'uuid",
        "'field", "'part", "'format", "'regex", "'flags", "'replaced", "'path", "'text",
    ),
    typed_texts=(
        ("DATE", "'date", "date"), ("TIMESTAMP", "'timestamp", "timestamp"), ("TIMESTAMP", "'date", "timestamp"),
        ("INTERVAL", "'interval", "interval"), ("TIMESTAMPTZ", "'timestamp", "timestamptz"),
        ("TIMESTAMPTZ", "'date", "timestamptz"), ("TIME", "'time", "time"),
    ),
    span_units=tuple(
        unit + more for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND") for more in ("", "S")
    ),
    span_forms=(LiteralForm.NUMBER, LiteralForm.STRING),
    fields=(
        *((kind, fields, "int8") for kind, fields in _FIELDS.items()), *((kind, "epoch", "float8") for kind in _FIELDS),
    ),
    whole="int8",
    wholes=("int2", "int4", "int8"),
    word_functions=("left", "right"),
    selected_rows=("unnest",),
)  # fmt: skip
