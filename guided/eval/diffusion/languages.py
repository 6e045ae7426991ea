"""What a task's text must be: a grammar by its front end, and a judge that knows nothing of the engine.

Records are judged by jsonschema, those that are asked for as a regex or in GBNF by Python's ``re`` as well; statements
by SQLite, which must be able to prepare them over the task's tables.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import jsonschema

import guided
from guided.eval.diffusion.notations import gbnf_of, regex_of
from guided.eval.diffusion.tasks import DiffusionTask, FrontEnd
from guided.grammar.sql import Column, DatabaseSchema, ForeignKey, Table

__all__ = ["grammar_of", "is_valid"]

WHITESPACE = " ?"
"""As ``guided extract --whitespace line``: the packaged models write one space where they write any."""


def grammar_of(task: DiffusionTask) -> guided.Grammar:
    """The grammar that the task asks for."""
    if task.front_end is FrontEnd.SQL:
        return guided.sql(_database(task.subject))
    if task.front_end is FrontEnd.REGEX:
        return guided.regex(regex_of(task.subject))
    if task.front_end is FrontEnd.GBNF:
        return guided.gbnf(gbnf_of(task.subject))
    return guided.json_schema(task.subject, whitespace=WHITESPACE)


def is_valid(task: DiffusionTask, text: str) -> bool:
    """What the judge of the front end says.

    Of formats jsonschema is not asked, because its dates have no year 0, which RFC 3339 has.
    """
    if task.front_end is FrontEnd.SQL:
        return _prepares(task.subject, text)
    if task.front_end is not FrontEnd.JSON_SCHEMA and not re.fullmatch(regex_of(task.subject), text):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(jsonschema.Draft202012Validator(task.subject).is_valid(value))


def _database(tables: Any) -> DatabaseSchema:
    return DatabaseSchema(
        tuple(
            Table(
                table["name"],
                tuple(Column(name, kind) for name, kind in table["columns"]),
                primary_key=(table["columns"][0][0],),
                foreign_keys=tuple(ForeignKey((own,), other, (its,)) for own, other, its in table["foreign_keys"]),
            )
            for table in tables
        )
    )


def _prepares(tables: Any, statement: str) -> bool:
    """Does SQLite compile the statement, over empty tables?"""
    with closing(sqlite3.connect(":memory:")) as database:
        for table in tables:
            columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in table["columns"])
            database.execute(f"CREATE TABLE {_quoted(table['name'])} ({columns})")
        try:
            database.execute(f"EXPLAIN {statement}")
        except (sqlite3.Error, sqlite3.Warning):
            return False
    return True


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
