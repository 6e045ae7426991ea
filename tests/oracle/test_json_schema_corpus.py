"""Real schemas with checked instances (MaskBench rows): every verdict is right, byte by byte through the engine."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

import guided
from guided.errors import GuidedError, UnsatisfiableError
from guided.grammar.json_schema import json_schema

VOCABULARY = guided.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], eos_ids=[256])


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


def test_small_rows(data: Path) -> None:
    counts = verdicts(data, 100, 2500)
    assert counts["right"] > 200
    assert counts["refused"] < 5


@pytest.mark.slow
def test_many_rows(data: Path) -> None:
    counts = verdicts(data, 1500, 8000)
    assert counts["refused"] < 45
