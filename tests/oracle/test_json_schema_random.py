"""Random schemas against `jsonschema`: every instance gets the same verdict, byte by byte through the engine."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

import guided
from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.grammar.json_schema import json_schema
from tests import vocabularies
from tests.amounts import mostly_slow
from tests.twin import json_schemas

CHUNK = 160
VOCABULARY = vocabularies.of_bytes()


def accepts(constraint: guided.Constraint, text: bytes) -> bool:
    state = constraint.advance_bytes(constraint.start, text)
    return state != 0 and constraint.is_accepting(state)


def check(seed: int, counts: dict[str, int]) -> None:
    rnd = random.Random(seed)
    schema = json_schemas.document(rnd)
    validator = jsonschema.Draft202012Validator(schema)
    instances = [json_schemas.towards(rnd, schema, schema) for _ in range(10)]
    instances += [json_schemas.value(rnd) for _ in range(4)]
    verdicts = [validator.is_valid(instance) for instance in instances]
    outcomes = [_compiled(schema, order) for order in ("any", "schema")]
    failures = [outcome for outcome in outcomes if isinstance(outcome, GuidedError)]
    if failures:
        assert [type(outcome) for outcome in outcomes] == [type(failures[0])] * 2, (seed, schema, outcomes)
        if isinstance(failures[0], UnsatisfiableError):
            counts["unsatisfiable"] += 1
            assert not any(verdicts), (seed, schema)
            return
        counts["refused"] += 1
        counts["without pointer"] = counts.get("without pointer", 0) + (failures[0].where is None)
        return
    free, fixed = outcomes
    counts["compiled"] += 1
    for instance, valid in zip(instances, verdicts, strict=True):
        text = _text(rnd, instance)
        assert accepts(free, text) is valid, (seed, json.dumps(schema), text)
        assert valid or not accepts(fixed, text), (seed, json.dumps(schema), text)
        counts["valid" if valid else "invalid"] += 1


def _compiled(schema: Any, order: str) -> guided.Constraint | GuidedError:
    try:
        return guided.compile(json_schema(schema, order=order, spelling="any"), VOCABULARY)
    except (UnsatisfiableError, UnsupportedError, LimitError) as error:
        return error


def _text(rnd: random.Random, instance: Any) -> bytes:
    ascii_only, indent = rnd.random() < 0.5, rnd.choice([None, None, 1])
    return json.dumps(instance, ensure_ascii=ascii_only, indent=indent).encode()


@pytest.mark.parametrize("chunk", mostly_slow(range(5), 1))
def test_random_schemas_agree_with_jsonschema(chunk: int) -> None:
    counts = {"compiled": 0, "refused": 0, "unsatisfiable": 0, "valid": 0, "invalid": 0}
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check(seed, counts)
    assert counts["compiled"] > CHUNK * 0.5
    assert counts.get("without pointer", 0) == 0
    assert counts["refused"] < CHUNK * 0.02
    assert counts["valid"] > CHUNK
    assert counts["invalid"] > CHUNK


@pytest.mark.slow
def test_many_random_schemas_agree_with_jsonschema() -> None:
    counts = {"compiled": 0, "refused": 0, "unsatisfiable": 0, "valid": 0, "invalid": 0}
    for seed in range(10_000, 30_000):
        check(seed, counts)
    assert counts["refused"] < 100
