"""Problems of the four tasks, as data that travels, and what they become for one loaded model.  Nothing is sampled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.constraint.protocol import Constrains
    from guided.hf import LoadedModel
    from guided.infer import Potential
    from guided.vocab import Vocabulary

__all__ = ["Asker", "Problem", "Question", "TaskName", "asker_for", "ending_with_lines", "read_problems"]


class TaskName(str, Enum):
    """The tasks; the values are what the command line calls them."""

    SQL = "sql"
    PATTERNS = "patterns"
    MOLECULES = "molecules"
    JSON = "json"


@dataclass(frozen=True)
class Problem:
    """One problem of one task."""

    task: TaskName
    id: str
    content: Any
    """All that the task needs, as JSON data; paths are absolute."""

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what the problem says."""
        written = json.dumps([self.task.value, self.id, self.content], sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()


@dataclass(frozen=True)
class Question:
    """A problem for one model."""

    prompt: Sequence[int]
    vocabulary: Vocabulary
    """Of the texts; its end-of-text ids end an answer."""
    condition: Constrains | Potential[Any]
    """Boolean: what an answer must meet, and all that the constrained methods are told."""
    correct: Callable[[str], bool]
    """Whether an answer is right, by a judge that is not the condition where there is one."""
    judge: str
    """The judge in a word or two."""
    close: Callable[[], None] = field(default=lambda: None)
    """To be called when the question is answered."""


Asker = Callable[[Problem], Question]
"""What a task makes of its problems for one model; raises `GuidedError` for a condition that is refused."""


def read_problems(data: Path, tasks: Sequence[TaskName], limit: int | None, seed: int) -> list[Problem]:
    """The problems of these tasks below a folder, at most ``limit`` of each, the same ones for the same seed.

    Raises `GuidedError` where the folder does not hold what a task needs.
    """
    import random

    found: list[Problem] = []
    for task in tasks:
        problems = _module(task).read(data)
        if not problems:
            raise GuidedError(f"there are no problems of the task {task.value}", where=str(data))
        # Files are in an order of their own: the first of them are all from one database, or all alike.
        random.Random(seed).shuffle(problems)
        found += problems if limit is None else problems[:limit]
    return found


def asker_for(task: TaskName, model: LoadedModel) -> Asker:
    """What asks the problems of a task; holds what they share."""
    asker: Asker = _module(task).asker(model)
    return asker


def needed(path: Path, what: str) -> Path:
    """The path itself, which must exist.  Raises `GuidedError` where it does not."""
    if not path.exists():
        raise GuidedError(
            f"{what} is not there", where=str(path), remedy="Pass the data's folder with --data, or leave out the task."
        )
    return path.resolve()


def ending_with_lines(model: LoadedModel) -> Vocabulary:
    """The model's vocabulary in which every token with a line feed ends the text, for prompts that are lists."""
    from guided.vocab import Vocabulary

    own = model.vocabulary
    lines = [token for token in range(own.size) if b"\n" in (own.token_bytes(token) or b"")]
    return Vocabulary.from_tokenizer(model.tokenizer, eos_ids=[*own.eos_ids, *lines])


def _module(task: TaskName) -> Any:
    from importlib import import_module

    names = {TaskName.SQL: "text_to_sql", TaskName.PATTERNS: "patterns", TaskName.MOLECULES: "molecules"}
    return import_module(f"guided.eval.awrs.{names.get(task, 'json_rows')}")
