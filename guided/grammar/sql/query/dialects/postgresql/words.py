"""PostgreSQL's words.

Source: https://www.postgresql.org/docs/current/sql-keywords-appendix.html, as of version 18; a test asks a server.
"""

from __future__ import annotations

from guided.grammar.attributed.lexis import Lexis

__all__ = ["KEYWORDS", "LEXIS"]

_RESERVED = """all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc distinct
do else end except false fetch for foreign from grant group having in initially intersect into lateral leading limit
localtime localtimestamp not null offset on only or order placing primary references returning select session_user some
symmetric system_user table then to trailing true union unique user using variadic when where window with"""
_RESERVED_OUTSIDE_FUNCTIONS = """authorization binary collation concurrently cross current_schema freeze full ilike
inner is isnull join left like natural notnull outer overlaps right similar tablesample verbose"""
_NO_BARE_LABEL = """char character day filter hour isnull minute month notnull over overlaps precision second varying
within without year array as create except fetch for from grant group having intersect into limit offset on order
returning to union where window with"""
_TAKEN = "at between exists in set values rows range groups partition row interval escape uescape"

LEXIS = Lexis(
    reserved=frozenset(_RESERVED.split()) | frozenset(_RESERVED_OUTSIDE_FUNCTIONS.split()),
    quotes=('"',),
    operator_characters="+-*/<>=~!@#%^&|`?",
    folds_quoted=False,
)
KEYWORDS = LEXIS.reserved | frozenset(_NO_BARE_LABEL.split()) | frozenset(_TAKEN.split())
"""Words that are no alias unless AS stands before them, and then only in quotes where they are reserved."""
