"""The bytes that may come next, against a step by each of the 256."""

from __future__ import annotations

import random

import pytest

import guided
from guided.kernels.data.layout import FINISHED
from tests import vocabularies

VOCABULARY = guided.Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES, None], eos_ids=[256])
RECORD = {"a": {"type": "string", "maxLength": 4}, "b": {"type": "number"}}
GRAMMARS = [
    guided.json_schema({"type": "object", "properties": RECORD, "additionalProperties": False}),
    guided.json_schema({"type": ["string", "array", "boolean"], "items": {"pattern": "^[a-c\u00e4\u20ac]{2,5}$"}}),
    guided.regex('([a-f]{2}|[d-x]+|\u00e4|"|\\\\\\\\)*z'),
]  # fmt: skip


@pytest.mark.parametrize("grammar", GRAMMARS, ids=str)
def test_they_are_those_that_a_step_takes(grammar: guided.Grammar) -> None:
    rng = random.Random(0)
    constraint = guided.compile(grammar, VOCABULARY)
    n = 0
    for _ in range(12):
        state = constraint.start
        for _ in range(40):
            taken = [byte for byte in range(256) if constraint.advance_bytes(state, bytes([byte]))]
            marked = constraint._machine.next_bytes(state)
            assert [byte for byte in range(256) if marked[byte]] == taken
            n += len(taken)
            if not taken or state == FINISHED:
                break
            likely = [byte for byte in taken if byte in b'"\\u0a{[:,-1z']
            state = constraint.advance_bytes(state, bytes([rng.choice(likely or taken)]))
    assert n > 1000
