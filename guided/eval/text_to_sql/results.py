"""Settings of a run, what a result is, and the key under which it is the same result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from guided.eval.records import JsonLine, LineLog, digest_of
from guided.eval.text_to_sql.questions import SqlQuestion

__all__ = ["SqlLog", "SqlMethod", "SqlOutcome", "SqlRecord", "SqlSettings", "key_of"]

VERSION = 1
"""Part of what makes two results comparable: raise it with any change of prompts, matching or measuring."""


class SqlMethod(str, Enum):
    """What is done with a question; the values are what the command line calls them."""

    GOLD = "gold"
    """Nothing is generated: is the gold query in the language, and how fast are the masks along it?"""
    GUIDED = "guided"
    """The model writes under the mask."""
    NONE = "none"
    """The model writes what it likes."""


class SqlOutcome(str, Enum):
    """What became of a question under a method."""

    DONE = "done"
    REFUSED = "refused"
    """The database cannot be read, its language not be made, or the prompt does not fit: counted for no method."""
    FAILED = "failed"
    """Something raised while the model wrote."""


@dataclass(frozen=True)
class SqlSettings:
    """How every question is answered; the defaults are those of ``guided eval sql``."""

    model: str = "nano"
    device: str | None = None
    offline: bool = False
    max_new_tokens: int = 200
    """Fewer where the model has no room for them after the prompt."""
    temperature: float | None = None
    """None takes the likeliest token."""
    seed: int = 0
    sample_values: int = 0
    seconds: float = 30.0
    """Limit of one query on a database."""

    def as_record(self) -> dict[str, Any]:
        """The settings as JSON data."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class SqlRecord(JsonLine):
    """One question under one method; None is what was not asked or cannot be said."""

    key: str
    id: str
    database: str
    method: str
    outcome: SqlOutcome
    reason: str = ""
    gold_runs: bool | None = None
    gold_covered: bool | None = None
    """Whether the first accepted query is in the language."""
    gold_covered_any: bool | None = None
    gold_at: int | None = None
    """The byte at which the first accepted query leaves the language."""
    gold_near: str = ""
    """The text around that byte, which is behind ``|``."""
    sql: str | None = None
    executable: bool | None = None
    error: str = ""
    """What the engine says of ``sql``, or of the gold query where that does not run."""
    match: bool | None = None
    """The same answer as an accepted query on all databases of the question; None where they hold no rows."""
    holds: bool | None = None
    """The same, but perhaps with more columns."""
    tokens: int | None = None
    seconds: float | None = None
    """Of generating."""
    compile_s: float | None = None
    """From the schema to a constraint; of the first question about a database only, like ``first_mask_ms``."""
    first_mask_ms: float | None = None
    mask_us: tuple[int, ...] = ()
    """Of each further mask along the gold query."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> SqlRecord:
        """The record of a line's data; `TypeError`, `ValueError` or `KeyError` when it is none."""
        return cls(**{**values, "outcome": SqlOutcome(values["outcome"]), "mask_us": tuple(values["mask_us"])})


class SqlLog(LineLog[SqlRecord]):
    """The results file of ``guided eval sql``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, SqlRecord.of)


def key_of(question: SqlQuestion, method: SqlMethod, settings: SqlSettings) -> str:
    """24 hex digits that differ whenever a result might; not part of it are the machine and where databases lie."""
    facts = settings.as_record()
    del facts["offline"]
    return digest_of(VERSION, question.digest, method.value, facts)
