"""What a run was told, and the key under which a result is the same result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from guided.eval.corpus import SchemaRow
from guided.eval.engines.names import EngineName, engine_version
from guided.eval.records import digest_of

__all__ = ["Settings", "result_key"]


@dataclass(frozen=True)
class Settings:
    """How every schema is run; the defaults are those of ``guided eval jsonschemabench``."""

    model: str = "nano"
    device: str | None = None
    offline: bool = False
    max_new_tokens: int = 512
    """Most tokens of an output; fewer where the model has no room for them after the prompt."""
    temperature: float | None = None
    """None takes the likeliest token."""
    seed: int = 0
    compile_seconds: float = 40.0
    """The benchmark's own limits: 40 s to compile, 60 s to generate."""
    generate_seconds: float = 60.0

    def as_record(self) -> dict[str, Any]:
        """The settings as JSON data."""
        return dataclasses.asdict(self)


def result_key(row: SchemaRow, engine: EngineName, settings: Settings) -> str:
    """24 hex digits that differ whenever a result might: row, settings, prompt, engine and the engine's version.

    Not part of it: whether the hub was asked, and the machine; times of two machines in one file are the user's doing.
    """
    from guided.eval.prompts import PROMPT_VERSION

    facts = settings.as_record()
    del facts["offline"]
    return digest_of(row.digest, engine.value, engine_version(engine), PROMPT_VERSION, facts)
