"""Settings of a run, what a result is, and the key under which it is the same result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from guided.eval.diffusion.methods import DiffusionMethod
from guided.eval.diffusion.tasks import DiffusionTask
from guided.eval.records import JsonLine, LineLog, digest_of

__all__ = ["DiffusionLog", "DiffusionRecord", "DiffusionSettings", "key_of"]

VERSION = 4
"""Part of what makes two results comparable: raise it with any change of methods or the packaged model."""


@dataclass(frozen=True)
class DiffusionSettings:
    """How every task is answered."""

    model: str = "nano-diffusion"
    device: str | None = None
    offline: bool = False
    max_new_tokens: int = 128


@dataclass(frozen=True)
class DiffusionRecord(JsonLine):
    """One task by one method."""

    key: str
    id: str
    front_end: str
    method: str
    valid: bool
    """It ended, and the judge of its front end takes it."""
    right: float
    """The share of fields; of a statement whether it is the one asked for."""
    passes: int = 0
    tokens: int = 0
    seconds: float = 0.0
    """Elapsed."""
    processor: float = 0.0
    """Seconds of processor time, of all threads."""
    reason: str = ""
    """Why there is no text."""
    text: str = ""

    @classmethod
    def of(cls, values: dict[str, Any]) -> DiffusionRecord:
        """The record of a line's data; `TypeError` when it is none."""
        return cls(**values)


class DiffusionLog(LineLog[DiffusionRecord]):
    """The results file of ``guided eval diffusion``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, DiffusionRecord.of)


def key_of(task: DiffusionTask, method: DiffusionMethod, settings: DiffusionSettings) -> str:
    """24 hex digits that differ whenever a result might."""
    facts = {name: value for name, value in asdict(settings).items() if name != "offline"}
    return digest_of(VERSION, task.front_end.value, task.prompt, task.subject, task.answer, repr(method), facts)
