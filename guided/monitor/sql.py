"""`sql_scope`: PICARD's four modes (Scholak et al., 2021) as grammars over one database.

PICARD parses incrementally and keeps *guards*: names that SELECT uses before FROM has bound them, judged as soon as a
table or alias comes into scope.  Here the modes are languages, so that masks are exact and no dead end is ever entered:

* with guards, the language is that of `guided.sql`, which keeps such names and knows that some FROM binds them all;
* without guards, names are the database's, but any may stand anywhere;
* lexing alone, a text is any sequence of the database's names, keywords, literals and marks.

The modes without guards are written in one spelling (keywords in upper case, single spaces), and lexing alone takes
every text of the other.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from enum import Enum
from typing import Any

from guided.errors import UnsatisfiableError, UnsupportedError
from guided.grammar.gbnf import gbnf
from guided.grammar.ir import Grammar
from guided.grammar.sql import DatabaseSchema, reflect, sql
from guided.grammar.sql.spelling import identifier

__all__ = ["SqlMode", "sql_scope"]


class SqlMode(Enum):
    """How much of SQL is enforced, as in PICARD."""

    LEX = "lex"
    """Names of the database, keywords, literals and marks, in any order."""
    PARSE_WITHOUT_GUARDS = "parse_without_guards"
    """The grammar of SELECT with names of the database in the places of names."""
    PARSE_WITH_GUARDS = "parse_with_guards"
    """Tables and aliases are in scope where columns are named, and own them; unqualified columns are unambiguous."""
    PARSE_WITH_GUARDS_AND_TYPE_CHECKING = "parse_with_guards_and_type_checking"
    """Besides, text columns are compared with their own values, where these were sampled."""


_FUNCTIONS = (
    "ABS", "ROUND", "COALESCE", "IFNULL", "NULLIF", "LENGTH", "JULIANDAY", "INSTR", "SUM", "AVG", "TOTAL", "COUNT",
    "MIN", "MAX", "GROUP_CONCAT", "LOWER", "UPPER", "TRIM", "SUBSTR", "REPLACE", "STRFTIME", "DATE", "DATETIME", "TIME",
)  # fmt: skip
_KEYWORDS = (
    "SELECT", "DISTINCT", "FROM", "JOIN", "INNER", "LEFT", "CROSS", "ON", "AS", "WHERE", "GROUP", "BY", "HAVING",
    "ORDER", "ASC", "DESC", "NULLS", "FIRST", "LAST", "LIMIT", "OFFSET", "UNION", "ALL", "INTERSECT", "EXCEPT", "AND",
    "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "EXISTS", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "TRUE",
    "FALSE", "REAL", "INTEGER", "NUMERIC", "TEXT",
)  # fmt: skip
_MARKS = ("(", ")", ",", ".", "*", "+", "-", "/", "%", "||", "=", "!=", "<>", "<=", ">=", "<", ">")

_SHARED = r"""
alias ::= "T" [1-9] [0-9]?
number ::= ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,10})?
string ::= "'" ([^'\x00-\x1f\x7f] | "''")* "'"
"""

_PARSED = r"""
root ::= select
select ::= core (operator core)* order? limit?
operator ::= " UNION " | " UNION ALL " | " INTERSECT " | " EXCEPT "
core ::= "SELECT " "DISTINCT "? item (", " item)* " FROM " source joined* where? grouped?
item ::= "*" | (table | alias) ".*" | value (" AS c" [1-9])?
source ::= table (" AS " alias)? | "(" select ") AS " alias
joined ::= (" JOIN " | " INNER JOIN " | " LEFT JOIN " | " CROSS JOIN ") source (" ON " value)?
where ::= " WHERE " value
grouped ::= " GROUP BY " value (", " value)* (" HAVING " value)?
order ::= " ORDER BY " key (", " key)*
key ::= value (" ASC" | " DESC")? (" NULLS FIRST" | " NULLS LAST")?
limit ::= " LIMIT " whole (" OFFSET " whole)?
whole ::= "0" | [1-9] [0-9]{0,8}
value ::= "NOT "? operand (binary "NOT "? operand)*
binary ::= (
  " + " | " - " | " * " | " / " | " % " | " || " | " = " | " != " | " <> " | " < " | " <= " | " > " | " >= "
  | " AND " | " OR " | " LIKE " | " NOT LIKE " | " IS " | " IS NOT "
)
operand ::= "-"? atom tested?
tested ::= (
  " IS NULL" | " IS NOT NULL" | (" BETWEEN " | " NOT BETWEEN ") operand " AND " operand
  | (" IN (" | " NOT IN (") (select | value (", " value)*) ")"
)
atom ::= (
  number | string | column | call | case | cast | "(" (value | select) ")" | "EXISTS (" select ")"
  | "NULL" | "TRUE" | "FALSE"
)
call ::= function "(" ("*" | "DISTINCT "? value (", " value)*) ")"
cast ::= "CAST(" value " AS " ("REAL" | "INTEGER" | "NUMERIC" | "TEXT") ")"
case ::= "CASE" (" WHEN " value " THEN " value)+ (" ELSE " value)? " END"
column ::= ((table | alias) ".")? name
"""

_LEXED = r"""
root ::= marked+ | marked* word ((" " marked* | marked+) word)* (" "? marked+)?
marked ::= mark " "?
word ::= keyword | function | table | name | alias | number | string
"""


def sql_scope(
    schema_or_url: DatabaseSchema | str | Any,
    mode: SqlMode = SqlMode.PARSE_WITH_GUARDS,
    *,
    sample_values: int = 0,
) -> Grammar:
    """The language of a mode over a database, for `guided.compile`.

    ``sample_values`` is that of `guided.sql`, for type checking.  With guards the engine prepares every text.  PICARD's
    check of the best few tokens and its time-outs have no counterpart: a mask says the same of all tokens, and never
    leaves only the end of text where a text is not whole.  Raises `UnsupportedError` for another dialect,
    `UnsatisfiableError` for a database without tables.
    """
    schema = schema_or_url
    if not isinstance(schema, DatabaseSchema):
        schema = reflect(schema_or_url, sample_values=sample_values)
    if mode is SqlMode.PARSE_WITH_GUARDS_AND_TYPE_CHECKING:
        return sql(schema)
    if mode is SqlMode.PARSE_WITH_GUARDS:
        return sql(_without_values(schema))
    if schema.dialect != "sqlite":
        raise UnsupportedError(f"the SQL dialect {schema.dialect!r} is not supported", remedy="Use a SQLite database.")
    if not any(table.columns for table in schema.tables):
        raise UnsatisfiableError("the database has no tables with columns", remedy="Create some.")
    tables = [_table(table.schema, table.name) for table in schema.tables]
    columns = [identifier(column.name) for table in schema.tables for column in table.columns] + ["c1", "c2", "c3"]
    names = {"table": tables, "name": columns, "function": _FUNCTIONS}
    if mode is SqlMode.LEX:
        names |= {"keyword": _KEYWORDS, "mark": _MARKS, "name": [*columns, *(f"c{n}" for n in range(4, 10))]}
    rules = [f"{rule} ::= {' | '.join(map(_quoted, sorted(set(words))))}" for rule, words in names.items()]
    text = "\n".join([(_LEXED if mode is SqlMode.LEX else _PARSED) + _SHARED, *rules])
    return replace(
        gbnf(text),
        rebuild=(sql_scope, (schema, mode), {}),
        key=f"sql {mode.value}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}",
        notes=schema.notes,
    )


def _without_values(schema: DatabaseSchema) -> DatabaseSchema:
    tables = (
        replace(table, columns=tuple(replace(column, values=()) for column in table.columns)) for table in schema.tables
    )
    return replace(schema, tables=tuple(tables))


def _table(schema: str | None, name: str) -> str:
    return identifier(name) if schema is None else f"{identifier(schema)}.{identifier(name)}"


def _quoted(text: str) -> str:
    """A GBNF string; anything but plain ASCII as escapes."""
    escaped = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return f'"{escaped}"'
