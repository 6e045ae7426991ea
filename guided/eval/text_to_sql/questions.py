"""Questions with gold queries, read as the data sets' repositories have them.  Nothing is executed.

Spider: ``dev.json`` or ``test.json`` and ``database/NAME/*.sqlite`` (several files of one name are its test suite).
defog: ``questions.json`` or ``.csv``.  BIRD: ``dev.json`` with ``SQL`` and ``dev_databases/NAME/NAME.sqlite``.  In
all of them databases may also lie as ``db/NAME.sqlite``, or be on a server that ``--db`` names.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guided.errors import GuidedError

__all__ = ["SqlQuestion", "read_questions"]

_FILES = ("dev.json", "test.json", "questions.json", "questions.csv")
_DATABASE_FOLDERS = ("db", "database", "test_database", "dev_databases", "databases")
_SUFFIXES = (".sqlite", ".db", ".duckdb")
_REMEDY = "Pass a folder of Spider, defog or BIRD: dev.json or questions.json, and db/NAME.sqlite or database/NAME/."


@dataclass(frozen=True)
class SqlQuestion:
    """One question."""

    id: str
    database: str
    """Its name in the data set."""
    question: str
    gold: str
    """As the data set has it: perhaps several accepted queries separated by ``;``, and choices of columns in braces."""
    urls: tuple[str, ...]
    """URLs or paths; an answer must be right on all of them, and the schema is that of the first."""
    hint: str = ""
    """What BIRD calls evidence."""

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what is asked; a database is known by its name, wherever it lies."""
        written = json.dumps([self.id, self.database, self.question, self.gold, self.hint, len(self.urls)])
        return hashlib.sha256(written.encode()).hexdigest()

    def as_record(self) -> dict[str, Any]:
        """The question as JSON data."""
        return {
            "id": self.id,
            "database": self.database,
            "question": self.question,
            "gold": self.gold,
            "urls": list(self.urls),
            "hint": self.hint,
        }

    @classmethod
    def of(cls, values: dict[str, Any]) -> SqlQuestion:
        """The question of such data."""
        return cls(**{**values, "urls": tuple(values["urls"])})


def read_questions(
    data: Path, *, url: str | None = None, databases: Sequence[str] = (), limit: int | None = None, seed: int = 0
) -> list[SqlQuestion]:
    """The questions below a folder; with ``limit`` so many of them, the same ones for the same seed.

    ``url`` is a database's URL in which ``{db}`` stands for its name; without it they are files of the folder.
    ``databases`` names those that are asked about, all without it.  Raises `GuidedError` where the folder holds no
    questions, and where the database of one is not there.
    """
    import random

    file = data if data.is_file() else next((data / name for name in _FILES if (data / name).is_file()), None)
    if file is None:
        raise GuidedError("there are no questions", where=str(data), remedy=_REMEDY)
    folder = file.parent
    known: dict[str, tuple[str, ...]] = {}
    found: list[SqlQuestion] = []
    for number, row in enumerate(_rows(file)):
        name = row.get("db_id") or row.get("db_name")
        gold = row.get("query") or row.get("SQL") or row.get("sql")
        asked = row.get("question")
        if not (isinstance(name, str) and isinstance(gold, str) and isinstance(asked, str)):
            raise GuidedError("a question has no database, text or query", where=f"{file}, {number}", remedy=_REMEDY)
        if databases and name not in databases:
            continue
        if name not in known:
            known[name] = (url.replace("{db}", name),) if url is not None else _files(folder, name)
        hint = row.get("evidence") or row.get("instructions") or ""
        found.append(SqlQuestion(f"{file.stem}/{number}", name, asked, gold, known[name], str(hint)))
    if not found:
        raise GuidedError("there are no questions", where=str(file), remedy="Check the names given with --only.")
    if limit is not None and limit < len(found):
        kept = set(random.Random(seed).sample(range(len(found)), limit))
        found = [question for number, question in enumerate(found) if number in kept]
    return found


def _rows(file: Path) -> list[dict[str, Any]]:
    try:
        text = file.read_text("utf-8")
        if file.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        rows = json.loads(text)
    except (OSError, ValueError) as error:
        raise GuidedError(f"the questions cannot be read: {error}", where=str(file), remedy=_REMEDY) from error
    if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
        raise GuidedError("the questions are no list of objects", where=str(file), remedy=_REMEDY)
    return rows


def _files(folder: Path, name: str) -> tuple[str, ...]:
    for place in (folder / each for each in _DATABASE_FOLDERS):
        for path in (place / f"{name}{suffix}" for suffix in _SUFFIXES):
            if path.is_file():
                return (str(path.resolve()),)
        own = place / name
        files = sorted(path for path in own.glob("*") if path.suffix in _SUFFIXES) if own.is_dir() else []
        if files:
            # The database that the question was written for comes first.
            files.sort(key=lambda path: (path.stem != name, path.name))
            return tuple(str(path.resolve()) for path in files)
    raise GuidedError(f"the database {name!r} of a question is not there", where=str(folder), remedy=_REMEDY)
