"""Texts of a dialect, block by block, and what its engine says of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from guided import Vocabulary
from guided.hf import load
from tests.databases import Source
from tests.sql_texts.drawing import (
    Drawn,
    asked,
    by_beginnings,
    by_ends,
    by_masks,
    by_model,
    by_terminals,
    by_tokens,
)
from tests.sql_texts.engines import Verdict, opened
from tests.sql_texts.schemas import database

__all__ = ["DRAWN", "Judged", "judged"]

DRAWN = ("terminals", "beginnings", "ends", "masks", "tokens", "model")
QUESTIONS, TEXTS_OF_A_QUESTION = 32, 3
"""About one database, and drawn for each: a batch of 96 texts."""


class Judged(NamedTuple):
    """A text, and what the engine says of it."""

    drawn: Drawn
    verdict: Verdict
    said: str


def judged(
    source: Source, dialect: str, drawn: str, seed: int, n: int, number: int = 0, vocabulary: Vocabulary | None = None
) -> Iterator[Judged]:
    """``n`` texts of one language, which keeps what was read; of the model's 96, whatever ``n`` is.

    ``number`` is that of the database, but for the model, whose questions come with theirs.
    """
    about = asked(dialect, seed, QUESTIONS) if drawn == "model" else None
    with opened(source, database(dialect, number) if about is None else about.statements) as (schema, verdict):
        if about is not None:
            texts = by_model(schema, about.questions, seed, TEXTS_OF_A_QUESTION, load())
        elif drawn == "ends":
            texts = by_ends(schema, seed, n)
        elif drawn == "beginnings":
            texts = by_beginnings(schema, seed, n)
        elif drawn in ("masks", "tokens"):
            by_vocabulary = by_masks if drawn == "masks" else by_tokens
            texts = by_vocabulary(schema, seed, n, vocabulary or load().vocabulary)
        else:
            texts = by_terminals(schema, seed, n)
        for one in texts:
            yield Judged(one, *((Verdict.REFUSED, "") if one.dead else verdict(one.text)))
