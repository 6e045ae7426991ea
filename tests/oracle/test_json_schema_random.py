"""Random schemas against `jsonschema`: every instance gets the same verdict, through the slow twin of the engine."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from guided.errors import LimitError, UnsatisfiableError, UnsupportedError
from guided.grammar.json_schema import json_schema
from tests.twin import json_schemas
from tests.twin.earley import Recogniser, accepts

CHUNK = 60


def check(seed: int, counts: dict[str, int]) -> None:
    rnd = random.Random(seed)
    schema = json_schemas.document(rnd)
    validator = jsonschema.Draft202012Validator(schema)
    instances = [json_schemas.towards(rnd, schema, schema) for _ in range(10)]
    instances += [json_schemas.value(rnd) for _ in range(4)]
    verdicts = [validator.is_valid(instance) for instance in instances]
    try:
        free = json_schema(schema, order="any")
        fixed = json_schema(schema)
    except UnsatisfiableError:
        counts["unsatisfiable"] += 1
        assert not any(verdicts), (seed, schema)
        return
    except (UnsupportedError, LimitError) as error:
        counts["refused"] += 1
        counts["without pointer"] = counts.get("without pointer", 0) + (error.where is None)
        return
    counts["compiled"] += 1
    for instance, valid in zip(instances, verdicts, strict=True):
        text = _text(rnd, instance)
        assert accepts(free, text) is valid, (seed, json.dumps(schema), text)
        in_order = Recogniser(fixed).feed(text).accepting
        assert valid or not in_order, (seed, json.dumps(schema), text)
        counts["valid" if valid else "invalid"] += 1


def _text(rnd: random.Random, instance: Any) -> bytes:
    ascii_only, indent = rnd.random() < 0.5, rnd.choice([None, None, 1])
    return json.dumps(instance, ensure_ascii=ascii_only, indent=indent).encode()


@pytest.mark.parametrize("chunk", range(5))
def test_random_schemas_agree_with_jsonschema(chunk: int) -> None:
    counts = {"compiled": 0, "refused": 0, "unsatisfiable": 0, "valid": 0, "invalid": 0}
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check(seed, counts)
    assert counts["compiled"] > CHUNK * 0.5
    assert counts.get("without pointer", 0) == 0
    assert counts["refused"] < CHUNK * 0.1
    assert counts["valid"] > CHUNK
    assert counts["invalid"] > CHUNK


@pytest.mark.slow
def test_many_random_schemas_agree_with_jsonschema() -> None:
    counts = {"compiled": 0, "refused": 0, "unsatisfiable": 0, "valid": 0, "invalid": 0}
    for seed in range(10_000, 16_000):
        check(seed, counts)
    assert counts["refused"] < 300
