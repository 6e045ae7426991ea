"""Schema linking: the tables that a question is about, by plain lexical means.

A word of the question counts for a table where it is in its name, in a column's name or among a column's values; the
fewer tables have it, the more.  Words are compared by their stems.  Tables that foreign keys connect with others that
are wanted are wanted too, most of all those between two of them.  Nothing is learned, and nothing is known of meaning:
what a question calls by another name is found by luck.

Tables stay whole, since ``*`` stands for all their columns.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from guided.errors import GuidedError
from guided.grammar.sql.schema import DatabaseSchema, Table

__all__ = ["MOST_TABLES", "linked", "ranked_tables"]

MOST_TABLES = 20
MOST_WORDS = 2_000
"""Different words of a question that are looked at."""
SHOWN = 30
"""Tables that the note names."""

_WORD = re.compile(r"[^\W\d_]+|\d+")
_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])")
_STOPS = frozenset(
    """a about all an and any are as at be been by can do does each every find for from give had has have how i in is it
    its list many me more most much no not of on or our return select show than that the their them there these they
    this those to was we were what when where which who whose will with you your""".split()  # noqa: SIM905
)
_IN_TABLE, _IN_COLUMN, _IN_VALUES = 3.0, 1.0, 1.0
"""What a word counts in a table's name, a column's and a value."""
_NEIGHBOUR, _BETWEEN = 0.3, 0.6
"""Shares of what a neighbour by a foreign key counts that count for a table: of its best one, and of its second."""


def linked(schema: DatabaseSchema, question: str, *, most_tables: int = MOST_TABLES) -> DatabaseSchema:
    """The schema with the tables only that fit a question best, in their order, and a note that names them.

    Raises `GuidedError` for less than one table.
    """
    if most_tables < 1:
        raise GuidedError(f"most_tables is {most_tables}", remedy="Give 1 or more.")
    if len(schema.tables) <= most_tables:
        return schema
    chosen = set(ranked_tables(schema.tables, question)[:most_tables])
    tables = tuple(table for place, table in enumerate(schema.tables) if place in chosen)
    names = ", ".join(table.name for table in tables[:SHOWN])
    more = ", ..." if len(tables) > SHOWN else ""
    note = f"of {len(schema.tables)} tables only those may be named that fit the question best: {names}{more}"
    return replace(schema, tables=tables, notes=(*schema.notes, note))


def ranked_tables(tables: Sequence[Table], question: str) -> list[int]:
    """The places of tables, those first that fit a question best; among equals as they come."""
    words = list(dict.fromkeys(stems(question)))[:MOST_WORDS]
    found = [_counts(table, frozenset(words)) for table in tables]
    times = Counter(word for counts in found for word in counts)
    rarity = {word: math.log(1 + len(tables) / count) for word, count in times.items()}
    own = [sum(count * rarity[word] for word, count in counts.items()) for counts in found]
    keys = _neighbours(tables)
    scores = []
    for place, score in enumerate(own):
        first, second, *_ = [*sorted((own[other] for other in keys[place]), reverse=True), 0.0, 0.0]
        scores.append(score + _NEIGHBOUR * first + _BETWEEN * second)
    return sorted(range(len(tables)), key=lambda place: (-scores[place], place))


def stems(text: str) -> Iterable[str]:
    """The stems of the words of a text, names in snake case and camel case cut into theirs.

    >>> list(stems("Which singers' stadium_id was countryCode of cities?"))
    ['singer', 'stadium', 'id', 'country', 'code', 'city']
    """
    for match in _WORD.finditer(text):
        for word in _BOUNDARY.split(match.group()):
            lower = word.lower()
            if lower not in _STOPS and (len(lower) > 1 or lower.isdigit()):
                yield _stem(lower)


def _stem(word: str) -> str:
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            return word.removesuffix(ending) + instead
    return word


def _counts(table: Table, wanted: frozenset[str]) -> dict[str, float]:
    """What the words of a question count for a table."""
    counts: dict[str, float] = {}

    def add(text: str, count: float) -> None:
        for word in wanted.intersection(stems(text)):
            counts[word] = max(counts.get(word, 0.0), count)

    add(table.name, _IN_TABLE)
    for column in table.columns:
        add(column.name, _IN_COLUMN)
        for value in column.values:
            add(value, _IN_VALUES)
    return counts


def _neighbours(tables: Sequence[Table]) -> list[set[int]]:
    """The tables that foreign keys connect with each."""
    places = {(table.schema, table.name.lower()): place for place, table in enumerate(tables)}
    found: list[set[int]] = [set() for _ in tables]
    for place, table in enumerate(tables):
        for key in table.foreign_keys:
            other = places.get((key.schema, key.table.lower()))
            if other is not None and other != place:
                found[place].add(other)
                found[other].add(place)
    return found
