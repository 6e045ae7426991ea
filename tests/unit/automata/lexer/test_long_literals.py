"""Literals too long to be written at once: names, constants and parts of patterns."""

import json
import random

import numpy as np
import pytest

import guided
from guided.automata.lexer.states import LONG
from tests import vocabularies

_RANDOM = random.Random(1)
TEXT = "".join(_RANDOM.choice('abc def ghi "\\é€😀\n') for _ in range(5 * LONG))
WORD = "ab+" * LONG


@pytest.fixture(scope="module")
def vocabulary():
    tokens = [*vocabularies.SINGLE_BYTES, b"ab+ab+", b"abc", b"+a", b'"}', b"def ", None]
    return guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])


def _accepts(constraint, text):
    """By masks and steps of single bytes, and of the text at once."""
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    state = constraint.start
    for byte in text:
        constraint.fill_mask(state, row)
        if not row[byte >> 5] >> (byte & 31) & 1:
            assert not constraint.advance_bytes(constraint.start, text)
            return False
        state = constraint.advance(state, byte)
    assert constraint.advance_bytes(constraint.start, text) == state
    return constraint.is_accepting(state)


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"const": TEXT}, [TEXT], [TEXT[:-1], TEXT + "x", TEXT[:LONG]]),
        (
            {"enum": [TEXT, TEXT + "x", TEXT[:700] + "y"]},
            [TEXT, TEXT + "x", TEXT[:700] + "y"],
            [TEXT[:700], TEXT + "y"],
        ),
        (
            {"pattern": f"^{WORD.replace('+', '[+]')}[0-9]*$", "type": "string"},
            [WORD, WORD + "7"],
            [WORD[:-1], WORD + "a"],
        ),
        ({"pattern": WORD.replace("+", "\\+"), "type": "string"}, ["z" + WORD + "z"], [WORD[:-1] + "-"]),
    ],
)
def test_long_literals_are_read_to_their_end(vocabulary, schema, valid, invalid):
    constraint = guided.compile(guided.json_schema(schema, spelling="any"), vocabulary)
    for text in valid:
        assert _accepts(constraint, json.dumps(text, ensure_ascii=False).encode())
        assert _accepts(constraint, json.dumps(text).encode())
    for text in invalid:
        assert not _accepts(constraint, json.dumps(text, ensure_ascii=False).encode())


def test_long_names_beside_others(vocabulary):
    schema = {
        "type": "object",
        "properties": {TEXT: {"type": "integer"}, TEXT[:700]: {"const": 1}},
        "additionalProperties": {"type": "null"},
    }
    constraint = guided.compile(guided.json_schema(schema, spelling="any"), vocabulary)
    for value in ({TEXT: 3, TEXT[:700]: 1}, {TEXT[:699]: None}, {TEXT + "z": None}):
        assert _accepts(constraint, json.dumps(value).encode())
    for value in ({TEXT: None}, {TEXT[:700]: None}, {TEXT[:699]: 1}):
        assert not _accepts(constraint, json.dumps(value).encode())


def test_the_way_to_the_end_is_known(vocabulary):
    text = TEXT[: LONG + 40]
    constraint = guided.compile(guided.json_schema({"const": text}, spelling="any"), vocabulary)
    assert json.loads(constraint.shortest_text(constraint.start)) == text
