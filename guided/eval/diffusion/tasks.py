"""The tasks: texts and questions with what is right, as ``examples/train_nano`` makes them, one front end each.

Records are asked for by JSON Schema, as a regex and in GBNF, each time of other texts; questions about databases are
answered under the SQL of their tables.  No value and no made-up name of them occurs in the training of the packaged
models.  Nothing here compiles a grammar (`guided.eval.diffusion.languages`).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

__all__ = ["DiffusionTask", "FrontEnd", "fields_right", "read_tasks"]

PATH = Path(__file__).parent / "tasks.jsonl"


class FrontEnd(Enum):
    """How a task says what its text must be."""

    JSON_SCHEMA = "json schema"
    REGEX = "regex"
    GBNF = "gbnf"
    SQL = "sql"

    @property
    def positions(self) -> int:
        """The canvas; no statement that is right has more than 28 tokens, its end counted."""
        return 32 if self is FrontEnd.SQL else 128


@dataclass(frozen=True, eq=False)
class DiffusionTask:
    """A prompt in the packaged models' format, and the answer that is right."""

    id: str
    front_end: FrontEnd
    prompt: str
    subject: Any
    """The JSON Schema of the record; of a question its tables: name, pairs of column and type, and of each foreign key
    column, table and column."""
    answer: Any
    """The record, or the statement."""

    def right(self, written: str) -> float:
        """The share of the record's fields that are right; 1 for the statement itself, else 0."""
        if self.front_end is FrontEnd.SQL:
            return float(" ".join(written.split()) == self.answer)
        return fields_right(written, self.answer)


def read_tasks(limit: int, front_ends: Collection[FrontEnd] = tuple(FrontEnd)) -> list[DiffusionTask]:
    """The first ``limit`` tasks of each front end, taking turns: a run that is stopped has seen as much of each."""
    found: dict[FrontEnd, list[DiffusionTask]] = {each: [] for each in front_ends}
    for line in PATH.read_text("utf-8").splitlines():
        row = json.loads(line)
        front_end = FrontEnd(row["front_end"])
        if front_end in found and len(found[front_end]) < limit:
            task = DiffusionTask(row["id"], front_end, row["prompt"], row["subject"], row["answer"])
            found[front_end].append(task)
    turns = range(max(map(len, found.values()), default=0))
    return [tasks[turn] for turn in turns for tasks in found.values() if turn < len(tasks)]


def _leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, child in value.items() for key, leaf in _leaves(child, (*path, name)).items()}


def fields_right(written: str, expected: Any) -> float:
    """The share of fields that are right, of those expected and those written in addition; 0 for what is no JSON.

    >>> fields_right('{"a": 1, "b": 2}', {"a": 1, "b": 3})
    0.5
    """
    wanted = _leaves(expected)
    try:
        got = _leaves(json.loads(written))
    except (ValueError, RecursionError):
        return 0.0
    if not wanted and not got:
        return 1.0  # A record without fields, as it should be.
    # JSON's true is not 1.
    right = sum(json.dumps(got.get(path, ...), default=repr) == json.dumps(value) for path, value in wanted.items())
    return right / len(wanted.keys() | got.keys())
