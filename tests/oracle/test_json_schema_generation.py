"""What constraints of random schemas generate, `jsonschema` validates; and no walk ends in a dead end."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import jsonschema
import numpy as np
import pytest

import guided
from guided.errors import LimitError, UnsatisfiableError, UnsupportedError
from guided.grammar.json_schema import json_schema
from tests import vocabularies
from tests.amounts import mostly_slow
from tests.twin import json_schemas

PIECES = [
    '{"',
    '":',
    '","',
    '":[',
    "],",
    "},",
    "]}",
    '"}',
    "null",
    "true",
    "[]",
    "{}",
    "12",
    "0.",
    '"a"',
    '"b"',
    "ab",
    ", ",
]
VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES] + [piece.encode() for piece in PIECES] + [None], eos_ids=[256 + len(PIECES)]
)
STEPS = 60


def generate(constraint: guided.Constraint, rnd: random.Random) -> bytes:
    """A random walk under masks, finished by the shortest completion when it takes too long."""
    row = np.zeros((len(VOCABULARY) + 31) // 32, np.uint32)
    state = constraint.start
    text = bytearray()
    for _ in range(STEPS):
        constraint.fill_mask(state, row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        assert allowed, text
        # White space and plain letters are everywhere; what moves on gets more weight.
        weights = [0.02 if token < 256 and chr(token) not in '{}[]",:0123456789' else 1.0 for token in allowed]
        token = rnd.choices(allowed, weights)[0]
        if token == 256 + len(PIECES):
            return bytes(text)
        state = constraint.advance(state, token)
        assert state != 0, text
        text += bytes([token]) if token < 256 else PIECES[token - 256].encode()
    return bytes(text) + constraint.shortest_text(state)


def _distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


class Imprecise(Exception):
    """A number that the validator's doubles do not hold."""


def _number(text: str) -> int | float:
    mantissa, _, exponent = text.lower().partition("e")
    if sum(map(str.isdigit, mantissa)) > 14 or abs(int(exponent or 0)) > 300:
        raise Imprecise
    exact = Decimal(text)
    return int(exact) if exact == exact.to_integral_value() else float(text)


def check(seed: int) -> str:
    rnd = random.Random(seed)
    schema = json_schemas.document(rnd)
    validator = jsonschema.Draft202012Validator(schema)
    writing = {"order": rnd.choice(["any", "schema"]), "spelling": rnd.choice(["plain", "any"])}
    try:
        constraint = guided.compile(json_schema(schema, **writing), VOCABULARY)
    except UnsatisfiableError:
        return "unsatisfiable"
    except (UnsupportedError, LimitError):
        return "refused"
    for _ in range(3):
        text = generate(constraint, rnd)
        try:
            value = json.loads(text, object_pairs_hook=_distinct_names, parse_float=_number, parse_int=_number)
        except Imprecise:
            continue
        assert validator.is_valid(value), (seed, json.dumps(schema), text)
    return "compiled"


@pytest.mark.parametrize("chunk", mostly_slow(range(4), 1))
def test_generated_texts_are_valid(chunk: int) -> None:
    found = [check(seed) for seed in range(50 * chunk, 50 * chunk + 50)]
    assert found.count("compiled") > 20 and found.count("refused") < 3


@pytest.mark.slow
def test_many_generated_texts_are_valid() -> None:
    found = [check(seed) for seed in range(10_000, 14_000)]
    assert found.count("compiled") > 2000 and found.count("refused") < 160
