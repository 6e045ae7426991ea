"""What checked constraints generate under random weights, over real tokenizers: no name twice, no item twice, valid."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import guided
from guided.testing import check_constraint
from tests.amounts import each, mostly_slow, some
from tests.laws.test_constraint_laws import SMALL

TOKENIZERS = ("llama2", "llama3", "gpt2", "qwen2.5")
UNIQUE = {"type": "array", "uniqueItems": True}
SCHEMAS: dict[str, Any] = {
    "names": {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}},
    "short names": {"type": "object", "propertyNames": {"maxLength": 1}, "minProperties": 3},
    "anything": {"type": "object", "additionalProperties": {"enum": [{"a": 1}, [], 0]}, "minProperties": 4},
    "integers": {**UNIQUE, "items": {"type": "integer", "minimum": 0, "maximum": 11}, "minItems": 6, "maxItems": 12},
    "strings": {**UNIQUE, "items": {"type": "string", "maxLength": 2}, "minItems": 3},
    "records": {
        **UNIQUE,
        "items": {
            "type": "object",
            "properties": {"id": {"type": "integer", "minimum": 1, "maximum": 3}, "tag": {"enum": ["a", "b"]}},
            "required": ["id"],
            "additionalProperties": False,
        },
        "minItems": 2,
    },
    "nested": {**UNIQUE, "items": {**UNIQUE, "items": {"enum": [0, "a", None]}}, "minItems": 4},
}


def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({name for name, _ in pairs}) == len(pairs), f"a name comes twice in {pairs}"
    return dict(pairs)


def generate(constraint: Any, rnd: random.Random, length: int) -> bytes:
    """Random allowed tokens, short ones and those with punctuation preferred; then the nearest end."""
    vocabulary = constraint.vocabulary
    row = np.zeros(vocabulary.n_words, np.uint32)
    state, text = constraint.start, b""
    for step in range(10 * length):
        if constraint.is_accepting(state) and (step >= length or rnd.random() < 0.05):
            return text
        if step < length:
            constraint.fill_mask(state, row)
        else:
            constraint.fill_budget_mask(state, row, constraint.shortest_completion(state) + 1)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        some = [token for token in (rnd.choice(allowed) for _ in range(6)) if token not in vocabulary.eos_ids]
        if not some:
            continue
        token = min(some, key=lambda token: len(vocabulary.token_bytes(token)) - rnd.random())
        after = constraint.advance(state, token)
        assert after, f"a dead end after {text!r}, {vocabulary.token_bytes(token)!r}"
        state, text = after, text + vocabulary.token_bytes(token)
    raise AssertionError(f"no end of {text!r}")


def hold(schema: Any, vocabulary: guided.Vocabulary, walks: int, length: int, seed: int = 0) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    constraint = guided.compile(guided.json_schema(schema, spelling="any"), vocabulary)
    rnd = random.Random(seed)
    for _ in range(walks):
        text = generate(constraint, rnd, length)
        validator.validate(json.loads(text, object_pairs_hook=without_repetition))


@pytest.mark.parametrize("name", each(SCHEMAS, 2))
def test_small_vocabulary(name: str) -> None:
    hold(SCHEMAS[name], SMALL, walks=some(12), length=60)


@pytest.fixture(scope="module", params=mostly_slow(TOKENIZERS, 2))
def real(request: pytest.FixtureRequest, data: Path) -> guided.Vocabulary:
    folder = data / "tokenizers" / request.param
    if not (folder / "tokenizer.json").exists():
        pytest.skip(f"no {request.param} tokenizer in the test data")
    from transformers import AutoTokenizer

    return guided.Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(str(folder)), cache=False)


@pytest.mark.parametrize("name", each(["names", "short names", "integers", "records"], 2))
def test_real_vocabulary(name: str, real: guided.Vocabulary) -> None:
    hold(SCHEMAS[name], real, walks=some(3, 8), length=25)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
def test_real_vocabulary_at_length(name: str, real: guided.Vocabulary) -> None:
    hold(SCHEMAS[name], real, walks=15, length=60, seed=1)
    constraint = guided.compile(guided.json_schema(SCHEMAS[name]), real)
    check_constraint(constraint, walks=2, length=10, full_states=2, threads=2, pickled=False)
