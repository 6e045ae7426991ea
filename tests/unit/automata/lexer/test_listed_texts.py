"""Texts that are written as they are have the masks, the prices and the label of their expression."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import guided
from guided.automata.lexer.names import state_of_texts, states_of_names
from guided.automata.lexer.states import StateTable
from guided.grammar.ir import Grammar, ListedTerminal, Rule, Terminal
from tests import vocabularies
from tests.amounts import each
from tests.twin.masks import same_masks

BYTES = vocabularies.of_bytes()
PARTS = ["", "a", "ab", "abc", "b", "é", "éa", "日本", "\U0001f600", '"', "\\", "\n", "\x00", "/", "u00e9", " ", "\x7f"]
SPELLINGS = [json.dumps, lambda text: json.dumps(text, ensure_ascii=False), lambda text: escaped(text)]


def escaped(text: str) -> str:
    """Every character as an escape."""
    units = text.encode("utf-16-be")
    return '"' + "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2)) + '"'


@pytest.mark.parametrize("seed", each(range(30), 2))
def test_masks_and_prices_are_those_of_the_expression(seed: int) -> None:
    rnd = random.Random(seed)
    chosen = {"".join(rnd.choices(PARTS, k=rnd.choice([0, 1, 1, 2, 3]))) for _ in range(rnd.choice([1, 2, 5, 20]))}
    canonical = seed % 2 == 1
    listed = ListedTerminal(tuple(sorted(text.encode() for text in chosen)), " at a place", canonical)
    one = guided.compile(Grammar((Rule("texts", listed),), 0), BYTES)
    other = guided.compile(Grammar((Rule("texts", Terminal(listed.language(), listed.label)),), 0), BYTES)
    for text in chosen:
        for spelling in SPELLINGS:
            plain = spelling(text) == json.dumps(text, ensure_ascii=False)
            assert same_masks(one, other, spelling(text).encode()) is (plain or not canonical)
            assert not same_masks(one, other, spelling(text + "x").encode()) or text + "x" in chosen
            assert not same_masks(one, other, spelling(text)[:-1].encode())
    assert one.shortest_text(one.start) == other.shortest_text(other.start)
    assert one.explain(one.start, ord("x")) == other.explain(other.start, ord("x"))


def test_equal_lists_are_one_state() -> None:
    table = StateTable()
    found = set()
    for canonical in (False, True):
        first = state_of_texts(table, (b"", b"a", b"ab"), canonical)
        assert state_of_texts(table, (b"", b"a", b"ab"), canonical) == first
        assert state_of_texts(table, (b"a", b"ab"), canonical) != first
        assert [state_of_texts(table, (b"a",), canonical)] == states_of_names(table, [b"a"], canonical)
        found.add(first)
    assert len(found) == 2


def test_enumerations_of_a_schema() -> None:
    cases: list[tuple[Any, list[Any], list[Any]]] = [
        ({"enum": ["a", "ab", "b"]}, ["a", "ab", "b"], ["", "c", "abc", 1, None]),
        ({"enum": ["a", 1, None]}, ["a", 1, None], ["b", 2]),
        ({"const": "é"}, ["é"], ["e", "è"]),
        ({"enum": ["x" * 300, "y" * 800]}, ["x" * 300, "y" * 800], ["x" * 299]),
        ({"enum": ["y" * 800]}, ["y" * 800], ["y" * 799]),
        ({"enum": ["a", "b"], "minLength": 1, "pattern": "^b"}, ["b"], ["a"]),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "string", "pattern": "^b"}]}, ["a", "b", "bc"], ["c"]),
        ({"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b"]}}, [["a", "b"]], [["a", "a"], ["c"]]),
    ]
    for schema, good, bad in cases:
        for options in ({}, {"whitespace": "compact"}):
            constraint = guided.compile(guided.json_schema(schema, **options), BYTES)
            for value in good + bad:
                written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
                text = written.encode("utf-8", "surrogatepass")
                state = constraint.advance_bytes(constraint.start, text)
                assert bool(state and constraint.is_accepting(state)) == (value in good), (schema, value)


def test_labels_say_the_first_texts() -> None:
    listed = ListedTerminal((b"a", b"b", b"c", b"d", b"e" * 50), " at #/enum", False)
    assert listed.label == '"a", "b", "c", "d", ... at #/enum'
    assert ListedTerminal((b"e" * 50,), "", True).label == f'"{"e" * 37}..."'
    constraint = guided.compile(guided.json_schema({"properties": {"k": {"enum": ["left", "right"]}}}), BYTES)
    state = constraint.advance_bytes(constraint.start, b'{"k": ')
    assert '"left", "right" at #/properties/k' in constraint.explain(state, ord("x"))
