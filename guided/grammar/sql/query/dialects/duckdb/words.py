"""DuckDB's words, as ``duckdb_keywords()`` of version 2.0 has them; a test asks the engine."""

from __future__ import annotations

from guided.grammar.attributed.lexis import Lexis

__all__ = ["KEYWORDS", "LEXIS"]

_RESERVED = """all analyse analyze and any array as asc asymmetric both case cast check collate column constraint
create default deferrable desc describe distinct do else end except false fetch for foreign from group having in
initially intersect into lambda lateral leading limit not null offset on only or order pivot pivot_longer pivot_wider
placing primary qualify references returning select show some summarize symmetric table then to trailing true union
unique unpivot using variadic when where window with"""
_RESERVED_OUTSIDE_FUNCTIONS = """anti asof at authorization binary by collation columns concurrently cross freeze full
generated glob ilike inner is isnull join left like map natural notnull outer overlaps positional right semi similar
struct tablesample try_cast tuple unpack verbose"""
_NO_BARE_LABEL = """centuries century day days decade decades escape exclude export_state filter hour hours ignore
microsecond microseconds millennia millennium millisecond milliseconds minute minutes month months over precision
quarter quarters rename replace respect second seconds varying week weeks within without year years"""
# No words of the engine, but of this language: a column would hide the time.
_MOMENTS = "current_date current_time current_timestamp localtime localtimestamp"
_TAKEN = "between exists set values rows range groups partition row interval uescape recursive"

LEXIS = Lexis(
    reserved=frozenset((*_RESERVED.split(), *_RESERVED_OUTSIDE_FUNCTIONS.split(), *_MOMENTS.split())),
    operator_characters="+-*/<>=~!@#%^&|`?",
)
KEYWORDS = LEXIS.reserved | frozenset(_NO_BARE_LABEL.split()) | frozenset(_TAKEN.split())
"""Words that are no alias unless AS stands before them, and then only in quotes where they are reserved."""
