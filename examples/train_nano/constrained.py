"""The constraint that an example is evaluated under: the grammar of its own tables, or of its own JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluate import MOST_NEW_TOKENS, Example
from transformers import LogitsProcessor

import guided
from guided.grammar import sql as grammar
from guided.grammar.sql import DatabaseSchema, NameCase
from guided.hf import GuidedLogitsProcessor
from guided.nano import Table

__all__ = ["database_schema", "grammar_constraint", "grammar_of"]

JSON_SPACE = " ?"
"""At most one space where JSON allows white space: the model writes ``json.dumps``'s form, and a tiny model that may
write spaces without end sometimes does."""


def database_schema(tables: Sequence[Table], dialect: str) -> DatabaseSchema:
    """A prompt's tables as the SQL grammar takes them."""
    names = NameCase.LOWERED if dialect == "postgresql" else NameCase.IGNORED
    return DatabaseSchema(
        tuple(
            grammar.Table(
                table.name,
                tuple(grammar.Column(column.name, column.type) for column in table.columns),
                primary_key=(table.columns[0].name,),
                foreign_keys=tuple(
                    grammar.ForeignKey((key.column,), key.table, (key.referred,)) for key in table.foreign_keys
                ),
            )
            for table in tables
        ),
        dialect=dialect,
        table_names=names,
        column_names=names,
    )


def grammar_of(example: Example) -> guided.Grammar:
    """The grammar of an example."""
    if example.tables:
        # As `guided sql` has it for this model, which misspells names: any sub-query could define them.
        return guided.sql(database_schema(example.tables, example.dialect), forward=False)
    return guided.json_schema(example.schema, whitespace=JSON_SPACE)


def grammar_constraint(batch: Sequence[Example], tokenizer: Any) -> LogitsProcessor:
    """One processor for the batch, with a grammar for each row and a whole text within the token budget."""
    return GuidedLogitsProcessor([grammar_of(example) for example in batch], tokenizer, max_new_tokens=MOST_NEW_TOKENS)
