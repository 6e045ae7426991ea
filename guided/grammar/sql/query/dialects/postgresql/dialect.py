"""`POSTGRESQL`: its types as people write them, its signs and literals."""

from __future__ import annotations

from guided.grammar.attributed.nodes import LiteralForm
from guided.grammar.sql.query.dialects.postgresql.types import SYSTEM, declared
from guided.grammar.sql.query.dialects.postgresql.words import KEYWORDS, LEXIS
from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.types import RANGES

__all__ = ["POSTGRESQL"]

_WORDS = {
    "int": "int4", "integer": "int4", "int4": "int4", "bigint": "int8", "int8": "int8", "smallint": "int2",
    "int2": "int2", "numeric": "numeric", "decimal": "numeric", "dec": "numeric", "real": "float4", "float4": "float4",
    "float": "float8", "float8": "float8", "text": "text", "varchar": "varchar", "char": "bpchar", "date": "date",
    "timestamp": "timestamp", "timestamptz": "timestamptz", "time": "time", "timetz": "timetz", "interval": "interval",
    "boolean": "bool", "bool": "bool", "json": "json", "jsonb": "jsonb", "uuid": "uuid", "bytea": "bytea",
    "tsvector": "tsvector", "tsquery": "tsquery", **{name: name for name in RANGES},
}  # fmt: skip
"""``char`` without a size is cut to one character and so is left to those who write it."""
_PHRASES = {
    "DOUBLE PRECISION": "float8", "CHARACTER VARYING": "varchar", "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP WITHOUT TIME ZONE": "timestamp", "TIME WITH TIME ZONE": "timetz", "TIME WITHOUT TIME ZONE": "time",
}  # fmt: skip

POSTGRESQL = TypedDialect(
    lexis=LEXIS,
    keywords=KEYWORDS,
    system=SYSTEM,
    declared=declared,
    type_words=_WORDS,
    type_phrases=_PHRASES,
    sized_types={"VARCHAR": "varchar", "CHAR": "bpchar", "CHARACTER VARYING": "varchar"},
    scaled_types=(("numeric", 0, 99),),
    most_digits=99,
    moments={
        "CURRENT_DATE": "date", "CURRENT_TIMESTAMP": "timestamptz", "CURRENT_TIME": "timetz",
        "LOCALTIMESTAMP": "timestamp", "LOCALTIME": "time",
    },
    signs=("||", "->", "->>", "#>", "#>>", "@>", "<@", "&&", "?", "?|", "?&", "@?", "@@", "+", "-", "*", "/", "%", "^"),
    patterns=("LIKE", "ILIKE", "SIMILAR TO"),
    matches=("~", "~*", "!~", "!~*"),
    numbers={
        "int4": "[0-9]{1,9}|1[0-9]{9}",
        "int8": "[3-9][0-9]{9}|[1-9][0-9]{10,14}",
        "numeric": r"[0-9]{0,15}\.[0-9]{1,15}([eE][+-]?[0-9]{1,2})?|[0-9]{1,15}[eE][+-]?[0-9]{1,2}",
        # No character is 0, above 1,114,111 or from 55,296 to 57,343: a constant that is fails while it is planned.
        "'code": "[1-9][0-9]{0,3}|[1-46-9][0-9]{4}|[1-9][0-9]{5}",
    },
    typed_texts=(
        ("DATE", "'date", "date"), ("TIMESTAMP", "'timestamp", "timestamp"), ("TIMESTAMP", "'date", "timestamp"),
        ("INTERVAL", "'interval", "interval"), ("TIMESTAMPTZ", "'timestamp", "timestamptz"),
        ("TIMESTAMPTZ", "'date", "timestamptz"), ("TIME", "'time", "time"),
    ),
    strings=(
        "'whole", "'integer", "'decimal", "'date", "'timestamp", "'time", "'interval", "'bool", "'json", "'uuid",
        "'array", "'jsonpath", "'config", "'query", "'bounds", "'text",
    ),
    span_units=("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"),
    span_forms=(LiteralForm.STRING,),
    fields=(
        ("date", "year quarter month week day dow doy isodow isoyear decade century epoch", "numeric"),
        ("timestamp", "year quarter month week day dow doy isodow isoyear decade century epoch hour minute second",
         "numeric"),
        ("interval", "year quarter month day hour minute second epoch", "numeric"),
        ("time", "hour minute second epoch", "numeric"),
    ),
    whole="int4",
    wholes=("int4",),
    word_functions=("left", "right"),
    selected_rows=tuple(name for name in SYSTEM.row_sets if "_each" not in name),
)  # fmt: skip
