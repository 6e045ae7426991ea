"""The tasks: texts with their JSON Schemas and the records that are right, as ``examples/train_nano`` makes them.

``records`` have made-up field names, ``familiar`` everyday ones; no name of the first and no value of either occurs in
the training of the packaged models.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ExtractionTask", "fields_right", "read_tasks"]

PATH = Path(__file__).parent / "tasks.jsonl"


@dataclass(frozen=True, eq=False)
class ExtractionTask:
    """A prompt in the packaged models' format, and the record that is right."""

    id: str
    prompt: str
    schema: Any
    answer: Any


def read_tasks(limit: int) -> list[ExtractionTask]:
    """The first ``limit`` tasks of each set, the sets taking turns: a run that is stopped has seen as much of both."""
    found: dict[str, list[ExtractionTask]] = {}
    for line in PATH.read_text("utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["set"], []).append(ExtractionTask(row["id"], row["prompt"], row["schema"], row["answer"]))
    return [task for turn in zip(*found.values(), strict=True) for task in turn][: limit * len(found)]


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
    # JSON's true is not 1.
    right = sum(json.dumps(got.get(path, ...), default=repr) == json.dumps(value) for path, value in wanted.items())
    return right / max(1, len(wanted.keys() | got.keys()))
