"""Schemas made to be expensive end in a result or a clear error, within seconds of the processor's time."""

import time

import numpy as np
import pytest

import guided
from tests import vocabularies

SECONDS = 4
"""Twice what is promised: tests share their machine."""

NAMES = [chr(97 + i % 26) + str(i) for i in range(100_000)]


def _refs(levels, kind, one, other):
    """Definitions of which each combines the next with two others."""
    below = [{"$ref": f"#/$defs/d{i + 1}"} for i in range(levels)]
    defs = {f"d{i}": {kind: [{"allOf": [below[i], one]}, {"allOf": [below[i], other]}]} for i in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {"type": "object"}}}


SCHEMAS = {
    "anyOf of allOf, deep": _refs(25, "anyOf", {"minProperties": 1}, {"maxProperties": 5}),
    "oneOf of allOf, deep": _refs(12, "oneOf", {"required": ["a"]}, {"required": ["b"]}),
    "objects that overlap": {
        "oneOf": [{"type": "object", "properties": {n: {"type": "integer"}}, "required": [n]} for n in NAMES[:300]]
    },
    "patterns side by side": {
        "oneOf": [{"type": "string", "pattern": f"^{NAMES[i]}.*{NAMES[i + 1]}"} for i in range(300)]
    },
    "ranges side by side": {"oneOf": [{"type": "integer", "minimum": i, "maximum": i + 2} for i in range(500)]},
    "names that ask for names": {
        "type": "object",
        "dependentRequired": {NAMES[i]: [NAMES[i + 1]] for i in range(1000)},
    },
    "many numbers": {"enum": list(range(0, 90_000, 3))},
    "a long constant": {"const": "x" * 3_000_000},
    "long names": {"type": "object", "properties": {n * 500: {"type": "integer"} for n in NAMES[:1000]}},
    "many classes": {
        "type": "string",
        "pattern": "^" + "".join(f"[{c}{c.upper()}]" for c in "hippopotamus" * 90) + "$",
    },
    "a pattern of a great length": {
        "type": "string",
        "pattern": "^(a|bc|def)*$",
        "minLength": 5000,
        "maxLength": 10_000,
    },
    "a hundred words in any order": {"type": "string", "allOf": [{"pattern": n} for n in NAMES[:100]]},
    "ten thousand words": {"type": "string", "pattern": f"^({'|'.join(NAMES[:10_000])})*$"},
    "counts of counts": {"type": "string", "pattern": "^((a{1,100}){1,100}){1,100}$"},
    "an endless length": {"type": "string", "maxLength": 10**9, "minLength": 10**6},
}

LIMITED = {
    "a hundred words in any order", "anyOf of allOf, deep", "names that ask for names", "objects that overlap",
    "oneOf of allOf, deep",
}  # fmt: skip
"""Which of them may come to a limit."""

DEAR = {"patterns side by side", "many numbers", "a hundred words in any order", "names that ask for names"}
"""A second or two each: for the long suite. Ranges side by side and ten thousand words stand for them in the other."""


@pytest.fixture(scope="module")
def vocabulary():
    """With the kernels compiled that schemas like these need."""
    tokens = [*vocabularies.SINGLE_BYTES, b'":', b"aa", b"10", None]
    made = guided.Vocabulary.from_tokens(tokens, eos_ids=[259])
    row = np.zeros(made.n_words, np.uint32)
    patterns = [{"pattern": "a.*b"}, {"pattern": "b.*c"}, {"not": {"pattern": "d$"}}, {"maxLength": 9}]
    for schema, text in (
        ({"type": "string", "allOf": patterns}, b'"abcb'),
        ({"oneOf": [{"type": "string", "pattern": f"^{n}.*{n}$"} for n in "abc"]}, b'"ab'),
        ({"type": "object", "properties": {"a": {"enum": [1, 2.5, "x"]}}, "minProperties": 1}, b'{"a": 1'),
    ):
        constraint = guided.compile(guided.json_schema(schema), made)
        state = constraint.start
        for byte in text:
            constraint.fill_mask(state, row)
            state = constraint.advance(state, byte)
        assert state
    return made


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name for name in SCHEMAS]
)
def test_a_hostile_schema_ends_in_time(name, vocabulary):
    row = np.zeros(vocabulary.n_words, np.uint32)
    begun = time.process_time()
    try:
        constraint = guided.compile(guided.json_schema(SCHEMAS[name]), vocabulary)
        constraint.fill_mask(constraint.start, row)
        assert row.any()
    except guided.LimitError as error:
        assert name in LIMITED
        assert error.remedy
    assert time.process_time() - begun < SECONDS


def test_disjoint_branches_are_told_apart_as_before():
    grammar = guided.json_schema(
        {
            "oneOf": [
                {"type": "integer", "maximum": 3},
                {"type": "integer", "minimum": 3},
                {"type": "string", "maxLength": 2},
            ]
        }
    )
    vocabulary = vocabularies.of_bytes()
    constraint = guided.compile(grammar, vocabulary)
    for text, valid in ((b"2", True), (b"3", False), (b"4", True), (b'"ab"', True), (b'"abc"', False)):
        state = constraint.advance_bytes(constraint.start, text)
        assert bool(state and constraint.is_accepting(state)) is valid
