"""Real schemas with checked instances (MaskBench rows): every verdict is right, byte by byte through the engine."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import guided
from guided.errors import GuidedError, UnsatisfiableError
from guided.grammar.json_schema import json_schema
from tests import vocabularies

VOCABULARY = vocabularies.of_bytes()


def accepts(constraint: guided.Constraint, text: bytes) -> bool:
    state = constraint.advance_bytes(constraint.start, text)
    return state != 0 and constraint.is_accepting(state)


def verdicts(data: Path, n_rows: int, longest: int) -> dict[str, int]:
    path = data / "maskbench-dev.jsonl.gz"
    if not path.is_file():
        pytest.skip("no corpus of schemas")
    with gzip.open(path, "rt") as lines:
        rows = [line for line in lines if len(line) < longest]
    counts = {"right": 0, "refused": 0, "unsatisfiable": 0}
    wrong = []
    for line in random.Random(5).sample(rows, n_rows):
        row = json.loads(line)
        try:
            constraint = guided.compile(json_schema(row["schema"], order="any", spelling="any"), VOCABULARY)
        except UnsatisfiableError:
            counts["unsatisfiable"] += 1
            wrong += [row["id"] for case in row["tests"] if case["valid"]]
            continue
        except GuidedError as error:
            counts["refused"] += 1
            wrong += [] if error.where else [row["id"]]
            continue
        for case in row["tests"]:
            text = json.dumps(case["data"], ensure_ascii=False).encode()
            if accepts(constraint, text) is case["valid"]:
                counts["right"] += 1
            else:
                wrong.append((row["id"], text[:200]))
    assert wrong == []
    return counts


WRITINGS: list[dict[str, Any]] = [{}, {"separators": (",", ":")}, {"indent": 2}, {"indent": 4}, {"indent": "\t"}]
"""How an instance is written; all are plain but for what `why_not_plain` says."""


def why_not_plain(value: Any, text: str) -> str | None:
    """What of a text that `json.dumps` wrote may be no plain spelling."""
    if any(len(line) - len(line.lstrip(" \t")) > 64 for line in text.split("\n")):
        return "indentation"
    return "float" if any(item.is_integer() for item in floats(value)) else None


def floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from floats(item)


def plain_verdicts(data: Path, n_rows: int, longest: int) -> dict[str, int]:
    """Whatever `json.dumps` writes has the right verdict in plain spelling, or is told why not."""
    path = data / "maskbench-dev.jsonl.gz"
    if not path.is_file():
        pytest.skip("no corpus of schemas")
    with gzip.open(path, "rt") as lines:
        rows = [line for line in lines if len(line) < longest]
    counts = {"right": 0, "refused": 0, "float": 0, "indentation": 0}
    wrong = []
    for line in random.Random(6).sample(rows, n_rows):
        row = json.loads(line)
        try:
            constraint = guided.compile(json_schema(row["schema"], order="any"), VOCABULARY)
        except GuidedError:
            counts["refused"] += 1
            continue
        for case in row["tests"]:
            for writing in WRITINGS:
                text = json.dumps(case["data"], ensure_ascii=False, **writing)
                if accepts(constraint, text.encode()) is case["valid"]:
                    counts["right"] += 1
                else:
                    why = why_not_plain(case["data"], text) if case["valid"] else None
                    wrong += [] if why else [(row["id"], text[:200])]
                    counts[why or "right"] += 1
    assert wrong == []
    return counts


def test_what_json_dumps_writes_of_small_rows_is_plain(data: Path) -> None:
    counts = plain_verdicts(data, 80, 2500)
    assert counts["right"] > 800
    assert counts["refused"] < 5
    assert counts["float"] + counts["indentation"] <= 2


@pytest.mark.slow
def test_what_json_dumps_writes_is_plain(data: Path) -> None:
    counts = plain_verdicts(data, 2500, 20000)
    # Of all 7,959 rows one has floats where whole numbers are asked for, and one 17 levels of four spaces.
    assert counts["float"] + counts["indentation"] <= 7
    assert counts["refused"] < 75


def test_small_rows(data: Path) -> None:
    counts = verdicts(data, 100, 2500)
    assert counts["right"] > 200
    assert counts["refused"] < 5


@pytest.mark.slow
def test_many_rows(data: Path) -> None:
    counts = verdicts(data, 1500, 8000)
    assert counts["refused"] < 45
