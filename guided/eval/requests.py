"""What a model is asked: the packaged model in the form it was trained on, any other in plain words.

What it is asked for a record is in `guided.hf.extraction`.
"""

from __future__ import annotations

from guided.grammar.sql.schema import DatabaseSchema, Table

__all__ = ["PACKAGED", "is_packaged", "sql_request"]

PACKAGED = "nano"
"""The same name as `guided.hf.loading.PACKAGED`, which cannot be imported without torch."""

_OF_THESE_PROMPTS = (PACKAGED, "nano-diffusion")
"""The packaged models that know the prompts of `guided.nano`."""

_DIALECTS = {
    "sqlite": "SQLite",
    "postgresql": "PostgreSQL",
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "duckdb": "DuckDB",
}


def is_packaged(model: str) -> bool:
    """Is it one of the packaged models, which know the prompts of `guided.nano`?"""
    return model in _OF_THESE_PROMPTS


def sql_request(model: str, database: DatabaseSchema, question: str) -> str:
    """The prompt for one SELECT statement over a database's tables that answers a question."""
    if is_packaged(model):
        from guided import nano

        tables = [
            nano.Table(
                table.name,
                tuple(nano.Column(column.name, column.type) for column in table.columns),
                tuple(
                    nano.ForeignKey(own, key.table, other)
                    for key in table.foreign_keys
                    for own, other in zip(key.columns, key.referred, strict=False)
                ),
            )
            for table in database.tables
        ]
        return nano.sql_prompt(tables, question, database.dialect)
    tables_text = "\n".join(_definition(table) for table in database.tables)
    return (
        f"Write one {_DIALECTS[database.dialect]} SELECT statement that answers the question."
        " Reply with the SQL only.\n\n"
        f"Tables:\n{tables_text}\n\nQuestion: {question.strip()}\n\nSQL:\n"
    )


def _definition(table: Table) -> str:
    parts = [f"{column.name} {column.type}".strip() + _values(column.values) for column in table.columns]
    parts += [
        f"FOREIGN KEY ({', '.join(key.columns)}) REFERENCES {key.table} ({', '.join(key.referred)})"
        for key in table.foreign_keys
    ]
    return f"CREATE TABLE {table.name} ({', '.join(parts)});"


def _values(values: tuple[str, ...]) -> str:
    """Values that were read from the column, as a comment that a model can use."""
    return f" /* {' | '.join(values)} */" if values else ""
