"""Subtrees of tokens that are allowed without a walk, where any text may come behind their beginning: as one by one."""

from __future__ import annotations

import random

import pytest

import guided
from guided.constraint.constraint import Constraint
from tests import vocabularies
from tests.amounts import ALL

PIECES = [
    b"a", b"b", b"x", b"x-", b"Z", b"7", b"-", b" ", b"\n", b"\t", b"\x7f", b'"', b'":', b'": 1', b"\\", b"\\n",
    b"\\u00", b"e9", b"78", b"\\ud83d", b"\\ude00", "é".encode(), "ഀ".encode(), "\u2028".encode(), "😀".encode(),
    b"\xc3", b"\xa9", b"\xe2", b"\xe2\x80", b"\x80", b"\xa8", b"\xf0\x9f", b"\x98\x80", b"\xff", b"\xc0",
]  # fmt: skip

SCHEMAS = [
    {"properties": {"a": {"type": "null"}, "ab": {"type": "null"}}, "patternProperties": {"^x-": {"type": "integer"}}},
    {"properties": {"é": {"type": "null"}}, "patternProperties": {"^x.*b$": {"type": "integer"}}},
    {"properties": {"b": {"type": "null"}}, "patternProperties": {"^[a-z]+$": {"type": "integer"}, "7": {}}},
    {"patternProperties": {"^x-.": {"type": "integer"}, "^\u2028": {"type": "null"}}, "additionalProperties": False},
]
TEXTS = [
    '{"a": null, "x-": 1, "x-b": 2}',
    '{"é": null, "xé\u2028b": 2, "x\\n": "\\ud83d\\ude00"}',
    '{"7": 1, "x-\\u00e9": 3}',
]


def vocabulary(seed: random.Random) -> tuple[list[bytes], guided.Vocabulary]:
    words = vocabularies.bytes_first(vocabularies.random_tokens(seed, PIECES, 1500, 5, least=2))
    return words, vocabularies.of_tokens(words)


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_masks_are_those_of_each_token(schema):
    words, vocab = vocabulary(random.Random(len(str(schema))))
    constraint = Constraint(guided.json_schema({"type": "object", **schema}), vocab)
    machine = constraint._machine
    for text in TEXTS:
        state = machine.start
        for place, byte in enumerate(text.encode()):
            if ALL or place % 3 == 0:
                row = machine.mask(state)
                found = {token for token in range(len(words)) if row[token >> 5] >> (token & 31) & 1}
                assert found == {token for token, word in enumerate(words) if machine.advance(state, word)}
            after = machine.advance(state, bytes((byte,)))
            if not after:
                break
            state = after
