"""Masks under a token budget where names must not repeat."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import guided
from guided import tokenset
from tests.vocabularies import SINGLE_BYTES

ROOT = Path(__file__).resolve().parents[4]

MANY = {"".join(chr(97 + (7 * i * i + 5 * i * j + j) % 26) for j in range(12)): {"type": "null"} for i in range(90)}
"""Names that are more states than are looked at to see how far the end of one may be."""


def test_a_mask_is_the_same_when_it_is_asked_for_first():
    """Tokens that begin names are judged by masks of their own, once for a state, which write to the same row."""
    from transformers import AutoTokenizer

    from guided.nano import MODEL_PATH

    vocabulary = guided.Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(MODEL_PATH))
    some = {"type": "object", "patternProperties": {"[alow]": {"type": "array"}}, "required": ["allow"]}
    schema = {"type": "object", "properties": {"key": {"type": "string"}, "acl": some}, "required": ["key", "acl"]}
    grammar = guided.json_schema(schema)
    first, again = (np.zeros(vocabulary.n_words, np.uint32) for _ in range(2))
    sizes = set()
    for budget in range(10, 40):
        fresh = guided.Constraint(grammar, vocabulary)
        state = fresh.advance_bytes(fresh.start, b'{"bronze":2, "')
        if budget <= fresh.shortest_completion(state):
            continue
        fresh.fill_budget_mask(state, first, budget)
        fresh.fill_budget_mask(state, again, budget)
        assert np.array_equal(first, again), budget
        sizes.add(int(tokenset.count(first)))
        for token in tokenset.ids(first)[::97].tolist():
            after = fresh.advance(state, token)
            fresh.fill_budget_mask(after, again, budget - 1)
    assert len(sizes) > 3


SCHEMAS = [
    {"type": "object", "minProperties": 2, "additionalProperties": {"type": "null"}},
    {"type": "object", "patternProperties": {"^[ab]+$": {"type": "null"}}, "additionalProperties": False},
    {"type": "object", "patternProperties": {"^x": {"type": "null"}, "^[^x]": {"type": "object"}}},
    {"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True}}},
    {"type": "object", "patternProperties": {"^[a-z]+$": {"type": "null"}}, "properties": MANY},
]


def far_budgets() -> None:
    """Where several names are asked for only 24 tokens were allowed; the others were judged one by one."""
    vocabulary = guided.Vocabulary.from_tokens([*SINGLE_BYTES, b'": ', b'{"', b'"a', None], eos_ids=[259])
    for schema in SCHEMAS:
        constraint = guided.Constraint(guided.json_schema(schema), vocabulary)
        state = constraint.start
        value = b"{}" if "^x" in str(schema) else b"null"
        for byte in b'{"a": %b, "ab":' % value:
            assert constraint._need(state) < 150, schema
            state = constraint.advance_bytes(state, bytes((byte,)))
            assert state


def test_a_far_budget_forbids_nothing() -> None:
    """In a process of its own: behind thousands of other tests a bound may not be known, and then every budget is near.

    Such masks are right, and cost more.
    """
    program = "from tests.unit.constraint.distinct.test_distinct_budgets import far_budgets; far_budgets()"
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
