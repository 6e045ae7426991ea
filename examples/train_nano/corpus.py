"""The endless training corpus: a seeded stream of tasks, each a context with one or more (query, answer) pairs.

The pairs of a task share their context (one database schema, several questions) and never see each other in training,
which spends fewer of the tokens on schemas.  ``held_out`` streams use only words that training streams never use.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from everyday_questions import everyday_question
from familiar_corpus import random_familiar_case
from record_corpus import DRILL, PLAIN, RecordCase, dumped, random_record_case
from sql_corpus import random_schema, rendered, spelled
from sql_questions import random_question
from sql_spelling import Spelling
from words import HELD_OUT, Lexicon

from guided.nano import extraction_prompt, sql_prompt

__all__ = ["Task", "record_task", "tasks"]

QUESTIONS_PER_SCHEMA = 5
SQL_SHARE = 0.55
POSTGRESQL_SHARE = 0.3
"""Of the databases, the share whose questions are answered in PostgreSQL's spelling."""
EVERYDAY_SHARE = 0.5
"""Of the questions, the share of the everyday forms, which have more to learn than the plain ones."""
THREE_TABLES_SHARE = 0.25
"""Of the databases, the share that has three tables, so that joins of three are asked for."""
FAMILIAR_SHARE = 0.3
"""Of the extraction records, the share with everyday fields told in sentences."""
FAMILIAR_WORDS_UNTIL = 36_000
NOVELTY = 0.6
"""After so many tasks this share of the listed words gives way to new ones: by then copying works for names that are
one token, and names of several tokens are what is left to learn."""
DRILL_FROM = 196_000
"""After so many tasks some statements and everyday records give way to records over random names, most of them of the
hard spread: by then the former are learned, and these are not."""
DRILL_SHARE = 0.6
DRILL_SQL_SHARE = 0.4
DRILL_FAMILIAR_SHARE = 0.15


@dataclass(frozen=True)
class Task:
    """``context + query`` is a prompt of the package's format, ``answer`` what follows it before the end token."""

    context: str
    pairs: tuple[tuple[str, str], ...]


def record_task(case: RecordCase) -> Task:
    """The extraction case as a task of one pair."""
    return Task("", ((extraction_prompt(case.schema, case.text), dumped(case.record)),))


def tasks(seed: int | str, held_out: bool = False, start: float = 0, pace: float = 1.0) -> Iterator[Task]:
    """The stream of a seed; its first tasks are short ones, and after some thousands it has the full spread.

    With ``start`` it begins with the spread that it has after so many tasks; with ``pace`` each counts for so many.
    """
    rng = random.Random(seed)
    count = start
    while True:
        ease = min(1.0, 0.3 + count / 20_000) if not held_out else 1.0
        lexicon = HELD_OUT if held_out else Lexicon(False, NOVELTY if count >= FAMILIAR_WORDS_UNTIL else 0.0)
        drilling = count >= DRILL_FROM and not held_out
        sql = DRILL_SQL_SHARE if drilling else SQL_SHARE
        familiar = DRILL_FAMILIAR_SHARE if drilling else FAMILIAR_SHARE
        count += pace
        if rng.random() < sql / QUESTIONS_PER_SCHEMA / (sql / QUESTIONS_PER_SCHEMA + 1 - sql):
            easy = rng.random() > ease
            wide = not easy and rng.random() < THREE_TABLES_SHARE
            schema = random_schema(rng, lexicon, largest=1 if easy else 3, tables=3 if wide else None)
            if rng.random() < POSTGRESQL_SHARE:
                schema = spelled(schema, Spelling.POSTGRESQL)
            everyday = EVERYDAY_SHARE if not easy else EVERYDAY_SHARE / 2
            pairs = [
                (everyday_question if rng.random() < everyday else random_question)(rng, schema)
                for _ in range(QUESTIONS_PER_SCHEMA)
            ]
            context = sql_prompt(rendered(schema), "", schema.spelling.value)[:-1]
            yield Task(context, tuple((question + "\n", sql) for question, sql in pairs))
        elif rng.random() < familiar * ease:
            yield record_task(random_familiar_case(rng, lexicon))
        else:
            spread = DRILL if drilling and rng.random() < DRILL_SHARE else PLAIN
            yield record_task(random_record_case(rng, lexicon, max(2, round(7 * ease)), spread))
