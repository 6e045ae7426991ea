"""Settings of a run, what a result is, and the key under which it is the same result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from guided.eval.records import JsonLine, LineLog, digest_of
from guided.eval.steering.methods import METHODS
from guided.eval.steering.names import MethodName
from guided.eval.steering.prompts import Split, SteeringPrompt

__all__ = ["Ending", "SteeringLog", "SteeringRecord", "SteeringSettings", "key_of"]

VERSION = 1
"""Part of what makes two results comparable: raise it with any change of prompts, judges, models or strengths."""


class Ending(str, Enum):
    """What became of a prompt under a method."""

    WRITTEN = "written"
    REFUSED = "refused"
    """The method needs what the model does not have."""
    FAILED = "failed"
    """Something raised."""


@dataclass(frozen=True)
class SteeringSettings:
    """How every prompt is answered; the defaults are those of ``guided eval steering``."""

    model: str = "reviews"
    """The packaged model of reviews, or what `guided.hf.load` takes."""
    device: str | None = None
    offline: bool = False
    seed: int = 0
    split: Split = Split.HELD_OUT

    def as_record(self) -> dict[str, Any]:
        """The settings as JSON data."""
        return {**dataclasses.asdict(self), "split": self.split.value}


@dataclass(frozen=True)
class SteeringRecord(JsonLine):
    """One prompt, written on by the model as it is and by the model under a method."""

    key: str
    task: str
    id: str
    method: str
    ending: Ending
    reason: str = ""
    measure: str = ""
    base: float | None = None
    steered: float | None = None
    aside: dict[str, list[float]] = field(default_factory=dict)
    """Other measures, base and steered."""
    base_surprise: float | None = None
    """Mean -log p of the tokens under the model as it is, in nats: what steering costs in fluency."""
    steered_surprise: float | None = None
    base_text: str | None = None
    steered_text: str | None = None

    @classmethod
    def of(cls, values: dict[str, Any]) -> SteeringRecord:
        """The record of a line's data; `TypeError`, `ValueError` or `KeyError` when it is none."""
        return cls(**{**values, "ending": Ending(values["ending"])})


class SteeringLog(LineLog[SteeringRecord]):
    """The results file of ``guided eval steering``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, SteeringRecord.of)


def key_of(prompt: SteeringPrompt, method: MethodName, settings: SteeringSettings) -> str:
    """24 hex digits that differ whenever a result might; the machine and whether the hub was asked are not in them."""
    facts = settings.as_record()
    del facts["offline"]
    asked = [prompt.task.value, prompt.text, dict(prompt.variants), dict(prompt.about)]
    how = METHODS[method]
    told = [method.value, how.strength, dataclasses.asdict(how.chosen)]
    return digest_of(VERSION, asked, told, facts)
