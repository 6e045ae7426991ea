"""What lexer states and threads tell of the texts inside strings, against every text; and the masks made from it."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

import guided
from guided.automata.lexer.states import StateTable
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.lexer_strings import LexerStrings
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.machine import DistinctMachine
from guided.grammar.regular.expr import json_string
from tests import vocabularies
from tests.amounts import crossed, some
from tests.unit.constraint.effects.test_surveys import pattern_language

ESCAPES = [
    b"\\",
    b"\\u",
    b"\\u0",
    b"\\u00",
    b"\\u006",
    b"\\u0061",
    b"\\uD8",
    b"\\ud83d",
    b"\\ude00",
    b"\\n",
    b"a\\",
    b'"\\u',
]
PIECES = [
    b'",',
    b'","',
    b'", "',
    b'":',
    b'":"',
    b'":1,"',
    b'"}',
    b'"},',
    b'"},{"',
    b'"],"',
    b'a"',
    b'ab",',
    b'":[',
    b'":{',
    b' "a',
]


def vocabulary(words: list[str]) -> guided.Vocabulary:
    """Single bytes, escapes, crossings, and the beginnings and ends of words."""
    tokens = {*ESCAPES, *PIECES}
    for word in words:
        data = word.encode()
        tokens |= {data[:size] for size in range(1, len(data) + 1)} | {b'"' + data, data + b'"', data[1:] + b'",'}
    return vocabularies.of_tokens(vocabularies.with_bytes(tokens - {b""}))


FINITE = [
    "ab|abc|b",
    "[a-c]{2}",
    "(a|b){0,3}",
    "x",
    "",
    "é|e|è",
    "[0-9]",
    'a"b|a\\\\b',
    "\\n|n|\\t?",
    "[\\U0001f600\\U0001f601]z?",
]
CHARACTERS = 'abcxz"\\\n\t' + "eèén0123456789\U0001f600\U0001f601"


def of_length(pattern: str, most: int) -> set[str]:
    """The texts of a pattern of few characters, by trying them."""
    found, begun = set(), {""}
    for _ in range(most + 1):
        found |= {text for text in begun if re.fullmatch(pattern, text)}
        begun = {text + character for text in begun for character in CHARACTERS}
        if len(begun) > 20_000:
            break
    return found


@pytest.mark.parametrize(("pattern", "canonical"), crossed(FINITE, [False, True], share=6))
def test_texts_are_counted(pattern: str, canonical: bool) -> None:
    table = StateTable()
    told = LexerStrings(table)
    texts = {text.encode() for text in of_length(pattern, 3)}
    todo = {table.add(json_string(pattern_language(pattern), canonical=canonical)): texts}
    seen: set[int] = set()
    while todo:
        state, left = todo.popitem()
        if state in seen:
            continue
        seen.add(state)
        assert told.is_text(state)
        for most in (1, 2, len(left), len(left) + 1, 50):
            assert most == 0 or told.number(state, most) == min(len(left), most)
        plain = {text[:1] for text in left if text and text[0] >= 0x20 and text[0] not in b'"\\'}
        assert told.ways(state) == len(plain)
        number, only = told.ascii_ways(state)
        assert number == len({text[0] for text in left if text and text[0] < 0x80})
        assert only == all(text[0] < 0x80 for text in left if text)
        assert not told.loops(state) and not told.takes_any(state) and not told.takes_any_behind(state)
        for low, high, target in table.edges(state):
            for byte in range(low, high + 1):
                todo[target] = {text[1:] for text in left if text[:1] == bytes([byte])}


def test_texts_without_end_are_told() -> None:
    table = StateTable()
    told = LexerStrings(table)

    def state(pattern: str) -> int:
        return table.add(json_string(pattern_language(pattern)))

    assert told.takes_any(state("(?s:.*)")) and told.loops(state("(?s:.*)"))
    assert not told.takes_any(state("[ -~]*")) and told.loops(state("[ -~]*"))
    assert not told.takes_any(state("(?s:.+)")) and told.takes_any_behind(state("(?s:.+)"))
    assert not told.takes_any_behind(state("(?s:.{2,})"))
    assert not told.loops(state("(bc)*")) and told.number(state("(bc)*"), 30) == 30
    # A text that is longer than what is listed is not taken for many.
    assert told.number(state("x{300}"), 5) == -1
    assert told.number(state("x{200}"), 5) == 1
    # Rows with many states that are still to be found.
    assert told.number(state("[ab]{9}"), 1000) == 512


def item(values: list[Any]) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": {"enum": values}}


OBJECT = {"type": "object", "additionalProperties": False, "minProperties": 1}
SCHEMAS: list[Any] = [
    item(["ab", "abc", "b", "é", 'a"', "a\\"]),
    item(["ab", "ab c", 1, 12, None]),
    {"type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": "^[ab]{1,2}$"}},
    {"type": "array", "uniqueItems": True, "items": {"type": "string", "minLength": 1}},
    {"type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": "^a[\\s\\S]+$"}},
    {"type": "object", "patternProperties": {"^a[bc]?$": {"enum": [1, 2]}, "^b$": {}}, "additionalProperties": False},
    {
        "type": "object",
        "patternProperties": {"^a[0-9]$": True, "^ab[0-9]?$": {"type": "integer"}},
        "additionalProperties": False,
    },
    {"type": "object", "properties": {"ab": {"type": "integer"}}, "additionalProperties": {"type": "integer"}},
    {"type": "object", "propertyNames": {"maxLength": 1}, "properties": {"a": True, "b": True}},
    {"type": "object", "propertyNames": {"enum": ["a", "ab", "é", "b\n"]}, "additionalProperties": True},
    {
        "type": "array",
        "uniqueItems": True,
        "items": {**OBJECT, "properties": {"a": {"type": "string"}, "ab": {"enum": [1, 2]}}},
    },
    {
        "type": "array",
        "uniqueItems": True,
        "items": {**OBJECT, "properties": {"a": {"enum": [1, 2]}, "b": {"enum": ["a", "ab"]}}},
    },
    {"type": "array", "uniqueItems": True, "items": {"type": "object", "properties": {"ab": {"type": "string"}}}},
    {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}},
    },
    {"type": "array", "uniqueItems": True, "items": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}},
]


def searched(self: Liveness, state: int, text: Any) -> bool:
    """`Liveness.alive` by nothing but the search for a way out."""
    if text is None or not self._collisions.may_collide(text):
        return True
    found = self._alive.get((state, text))
    return self._search(state, text) if found is None else found


def allowed(constraint: Constraint, state: int, n_tokens: int) -> list[int]:
    row = np.zeros((n_tokens + 31) // 32, np.uint32)
    constraint.fill_mask(state, row)
    return [token for token in range(n_tokens) if int(row[token >> 5]) >> (token & 31) & 1]


@pytest.mark.parametrize(("schema", "whitespace"), crossed(SCHEMAS, ["compact", " ?"], share=6))
def test_masks_are_those_of_steps_and_of_a_search(
    schema: Any, whitespace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["a", "ab", "abc", "b", "é", "a0", "ab1", "ba"]
    tokens = vocabulary(words)
    grammar = guided.json_schema(schema, whitespace=whitespace, spelling="any" if whitespace == " ?" else "plain")
    quick = Constraint(grammar, tokens)
    rnd = random.Random(5)
    for walk in range(some(12, 12)):
        state, text = quick.start, b""
        for _ in range(some(24, 4)):
            masked = allowed(quick, state, len(tokens.tokens))
            data = [tokens.token_bytes(token) for token in masked]
            stepped = [token for token in range(len(tokens.tokens)) if quick.advance(state, token)]
            assert [t for t in masked if tokens.token_bytes(t)] == [t for t in stepped if tokens.token_bytes(t)], text
            if walk < 3:
                with monkeypatch.context() as slow:
                    slow.setattr(Liveness, "alive", searched)
                    plain = Constraint(grammar, tokens)
                    at = plain.advance_bytes(plain.start, text)
                    assert at, text
                    right = [token for token in range(len(tokens.tokens)) if plain.advance(at, token)]
                assert [t for t in masked if tokens.token_bytes(t)] == [t for t in right if tokens.token_bytes(t)], text
            ways = [token for token, spelled in zip(masked, data, strict=True) if spelled]
            if not ways:
                break
            # Structure first, so that names and items come together.
            likely = [token for token in ways if re.search(rb'["\\\[{,:]', tokens.token_bytes(token) or b"")]
            token = rnd.choice(likely if likely and rnd.random() < 0.6 else ways)
            text += tokens.token_bytes(token) or b""
            state = quick.advance(state, token)


def test_one_call_steps_as_many_do() -> None:
    tokens = vocabulary(["a", "ab", "abc"])
    machine = Constraint(guided.json_schema(SCHEMAS[7]), tokens)._machine
    assert isinstance(machine, DistinctMachine)
    inner = machine.inner
    state = inner.advance(inner.start, b'{"a')
    some = list(range(0, len(tokens.tokens) - 1, 3))
    fresh = inner.advance_each(state, some)
    assert fresh == [inner.advance_token_text(state, token) for token in some]
    assert inner.advance_each(state, some[:1]) == fresh[:1] and inner.advance_each(state, []) == []
