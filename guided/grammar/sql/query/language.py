"""`query_language`: the SELECT statements over one database as a language over bytes."""

from __future__ import annotations

from dataclasses import replace

from guided.errors import UnsatisfiableError, UnsupportedError
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.pricing import Demands
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.dialects.duckdb.dialect import DUCKDB
from guided.grammar.sql.query.dialects.duckdb.nested import with_nested
from guided.grammar.sql.query.dialects.mariadb import mariadb
from guided.grammar.sql.query.dialects.postgresql.dialect import POSTGRESQL
from guided.grammar.sql.query.dialects.postgresql.enums import with_enums
from guided.grammar.sql.query.dialects.sqlite import SQLITE
from guided.grammar.sql.query.owing import Owing
from guided.grammar.sql.query.scope import Query
from guided.grammar.sql.query.select.mysql.statement import select as select_of_mysql
from guided.grammar.sql.query.select.statement import select
from guided.grammar.sql.query.told import known_names, told_names
from guided.grammar.sql.query.typed import scope as typed_scope
from guided.grammar.sql.query.typed import statement as typed_statement
from guided.grammar.sql.query.typed.columns.catalog import Catalog as TypedCatalog
from guided.grammar.sql.query.typed.columns.known import known_names as typed_names
from guided.grammar.sql.query.typed.owing import Owing as TypedOwing
from guided.grammar.sql.schema import DatabaseSchema

__all__ = ["query_language"]

_TYPED = {"postgresql": POSTGRESQL, "duckdb": DUCKDB}
_DIALECTS = ("sqlite", "mysql", "mariadb", *_TYPED)


def query_language(schema: DatabaseSchema, *, forward: bool = True) -> AttributedLanguage:
    """The SELECT statements that the schema's engine prepares without an error.

    Names are free in their spelling: any letter case, quotes, white space of up to 16 characters.  ``forward`` says
    whether SELECT may use names that only a sub-query in FROM will define; without it all names but aliases exist.
    A string that a column is compared with is held to `guided.grammar.sql.schema.Column.values`, where there are any.

    Raises `UnsupportedError` for a dialect that is not there yet, `UnsatisfiableError` for a schema without tables.

    >>> from guided.grammar.sql.schema import Column, Table
    >>> language = query_language(DatabaseSchema((Table("singer", (Column("name"), Column("age"))),)))
    >>> language.reads(b"select max(Age) from singer where name like 'A%'")
    True
    >>> language.reads(b"SELECT singer.nmae FROM singer")
    False
    """
    if schema.dialect not in _DIALECTS:
        raise UnsupportedError(
            f"queries of the dialect {schema.dialect!r} are not known", remedy=f"Known are: {', '.join(_DIALECTS)}."
        )
    if not schema.tables:
        raise UnsatisfiableError("the database has no tables", remedy="Create some, or name another database.")
    typed = _TYPED.get(schema.dialect)
    if typed is not None:
        if schema.dialect == "postgresql":
            typed = with_enums(typed, schema)
        else:
            typed = with_nested(typed, schema)
        known = TypedCatalog.of(schema, typed, forward=forward)
        start = typed_scope.Query(typed.system)
        tree = typed_statement.select(typed, known)
        return AttributedLanguage(
            tree, start, typed.lexis, typed_names, lambda measure: Demands.of(TypedOwing(typed, known, measure))
        )
    is_mysql = schema.dialect != "sqlite"
    dialect = mariadb(schema) if is_mysql else SQLITE
    lexis = dialect.lexis
    own = (schema.default_schema or "") if is_mysql else "main"
    own = own if lexis.keeps_case else lexis.folded(own, False)
    catalog = Catalog(
        Catalog.relations_of(schema.tables, lexis), dialect.functions, lexis, forward, own, dialect.laws.lost_names
    )
    grammar = select_of_mysql(catalog, dialect) if is_mysql else select(catalog, dialect)
    if (lexis.string_quotes or lexis.text_quotes) and catalog.has_values:
        # A value in the quotes of names has its letter case.
        lexis = replace(lexis, keeps_case=True)
    query = Query(laws=dialect.laws)
    return AttributedLanguage(
        grammar, query, lexis, known_names, lambda measure: Demands.of(Owing(catalog, measure)), told_names
    )
