"""Settings of a run, what a result is, and the key under which it is the same result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from guided.eval.awrs.methods import MethodName
from guided.eval.awrs.problems import Problem
from guided.eval.records import JsonLine, LineLog, digest_of

__all__ = ["AwrsLog", "AwrsRecord", "AwrsSettings", "Ending", "key_of"]

VERSION = 2
"""Part of what makes two results comparable: raise it with any change of prompts, conditions or methods."""


class Ending(str, Enum):
    """What became of a problem under a method."""

    ANSWERED = "answered"
    """The method ran to its end; ``accuracy`` says how good that was, 0 where no particle survived."""
    REFUSED = "refused"
    """The condition cannot be made, or the prompt does not fit the model: counted for no method."""
    TIME = "time"
    """The time limit ended it: accuracy 0."""
    FAILED = "failed"
    """Something raised: accuracy 0."""


@dataclass(frozen=True)
class AwrsSettings:
    """How every problem is answered; the defaults are those of ``guided eval awrs``."""

    model: str = "nano"
    device: str | None = None
    offline: bool = False
    max_new_tokens: int = 100
    temperature: float | None = None
    """None is the model's own distribution."""
    particles: int | None = None
    """None is the paper's number for each method."""
    seed: int = 0
    seconds: float = 120.0
    """Limit of one problem under one method."""

    def as_record(self) -> dict[str, Any]:
        """The settings as JSON data."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class AwrsRecord(JsonLine):
    """One problem answered by one method."""

    key: str
    task: str
    id: str
    method: str
    ending: Ending
    reason: str = ""
    judge: str = ""
    accuracy: float | None = None
    """The weight of the particles whose text is right: posterior-weighted, or for samples their share."""
    best: bool | None = None
    """Whether the likeliest text is right."""
    satisfied: float | None = None
    """The weight of the particles that ended; for the model alone that says nothing of the condition."""
    log_ml: float | None = None
    """The estimate of the log probability that the model meets the condition; None for minus infinity, too."""
    log_ml_error: float | None = None
    """Its standard error; None where one run cannot tell."""
    ess: float | None = None
    n: int | None = None
    tokens: int | None = None
    constraint_calls: int | None = None
    tested: int | None = None
    """Tokens tested one by one; 0 where masks were filled instead."""
    model_calls: int | None = None
    model_rows: int | None = None
    seconds: float | None = None
    text: str | None = None
    """The likeliest text."""

    @classmethod
    def of(cls, values: dict[str, Any]) -> AwrsRecord:
        """The record of a line's data; `TypeError`, `ValueError` or `KeyError` when it is none."""
        return cls(**{**values, "ending": Ending(values["ending"])})


class AwrsLog(LineLog[AwrsRecord]):
    """The results file of ``guided eval awrs``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, AwrsRecord.of)


def key_of(problem: Problem, method: MethodName, settings: AwrsSettings) -> str:
    """24 hex digits that differ whenever a result might; not part of it are the machine and whether the hub was asked.

    Databases are known by their paths' last part, so that a moved folder is the same data.
    """
    facts = settings.as_record()
    del facts["offline"]
    content = problem.content
    if isinstance(content, dict) and "database" in content:
        content = {**content, "database": Path(content["database"]).name}
    here = Problem(problem.task, problem.id, content).digest
    return digest_of(VERSION, here, method.value, facts)
