"""Constraints that the tests name: a database, and texts that a request's prompt decides."""

from __future__ import annotations

from typing import Any

import guided
from guided.grammar.sql import Column, DatabaseSchema, Table

ANIMALS = guided.sql(DatabaseSchema((Table("animals", (Column("name"), Column("legs"))),)), forward=False)


def echo(vocabulary: guided.Vocabulary, prompt: str) -> Any:
    """The prompt's last word, three times."""
    return guided.compile(guided.regex(f"({prompt.split()[-1]}!){{3}}"), vocabulary)


CONSTRAINTS = {"animals": ANIMALS, "echo": echo}
