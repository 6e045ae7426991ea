"""Settings of a run, what a result is, and the key under which it is the same result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from guided.eval.decoding_methods.methods import METHODS
from guided.eval.decoding_methods.names import MethodName
from guided.eval.decoding_methods.tasks import MAX_TOKENS, DecodingTask
from guided.eval.records import JsonLine, LineLog, digest_of

__all__ = ["DecodingLog", "DecodingRecord", "DecodingSettings", "Ending", "key_of"]

VERSION = 1
"""Part of what makes two results comparable: raise it with any change of prompts, judges, models or settings."""


class Ending(str, Enum):
    """What became of an item under a method."""

    WRITTEN = "written"
    REFUSED = "refused"
    """The method needs what the model does not have."""
    FAILED = "failed"
    """Something raised: worth 0."""


@dataclass(frozen=True)
class DecodingSettings:
    """How every item is answered; the defaults are those of ``guided eval decoding``."""

    model: str | None = None
    """None: the packaged model of each task."""
    amateur: str | None = None
    """The small model; None: the packaged one of each task, or none beside a model that was named."""
    device: str | None = None
    offline: bool = False
    seed: int = 0

    def as_record(self) -> dict[str, Any]:
        """The settings as JSON data."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class DecodingRecord(JsonLine):
    """One item by one method."""

    key: str
    task: str
    id: str
    mode: str
    method: str
    ending: Ending
    reason: str = ""
    quality: float = 0.0
    finished: bool = False
    """Whether the text ended within its budget."""
    tokens: int = 0
    passes: int = 0
    positions: int = 0
    small_passes: int = 0
    seconds: float = 0.0
    text: str = ""

    @classmethod
    def of(cls, values: dict[str, Any]) -> DecodingRecord:
        """The record of a line's data; `TypeError`, `ValueError` or `KeyError` when it is none."""
        return cls(**{**values, "ending": Ending(values["ending"])})


class DecodingLog(LineLog[DecodingRecord]):
    """The results file of ``guided eval decoding``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, DecodingRecord.of)


def key_of(item: DecodingTask, method: MethodName, settings: DecodingSettings) -> str:
    """24 hex digits that differ whenever a result might; the machine and whether the hub was asked are not in them."""
    facts = {name: value for name, value in settings.as_record().items() if name != "offline"}
    asked = [item.task.value, item.mode.value, item.prompt, dict(item.about), MAX_TOKENS[item.task]]
    return digest_of(VERSION, asked, [method.value, METHODS[method].settings], facts)
