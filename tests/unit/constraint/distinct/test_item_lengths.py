"""Budgets where items must differ: from a number of tokens on they forbid nothing, whatever the array holds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.distinct.machine import DistinctMachine
from guided.grammar.ir import Terminal
from guided.grammar.regular.lengthening import Lengthening, lengthening
from guided.kernels.data.layout import FAR
from tests import vocabularies
from tests.amounts import ALL, each, some
from tests.vocabularies import SINGLE_BYTES

WORDS = {"enum": ["name", "na", "me", 1, 12, None]}
LONG = {"enum": ["long enough to matter"]}
ITEMS: dict[str, dict[str, Any]] = {
    "strings": {"type": "string"},
    "words": WORDS,
    "numbers": {"type": ["number", "null"]},
    "texts of a pattern": {"type": "string", "pattern": "^(ab|cd*)$"},
    "anything": {},
    "objects": {"type": "object", "properties": {"na": {"type": "object", "properties": {"me": LONG}, "required": ["me"]}}},
    "fixed members": {
        "type": "object",
        "properties": {"na": WORDS, "me": {"type": "string"}, "name": {"type": "boolean"}},
        "required": ["name"],
        "additionalProperties": False,
    },
    "few members": {
        "type": "object",
        "properties": {"na": WORDS, "me": {"type": "object", "properties": {"a": WORDS}, "additionalProperties": False}},
        "additionalProperties": False,
    },
    "arrays": {"type": "array", "items": {"enum": ["na", "me"]}, "maxItems": 2},
    "distinct arrays": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    "one is longer": {
        "anyOf": [
            {"type": "null"},
            {"type": "object", "properties": {"name": LONG}, "required": ["name"], "additionalProperties": False},
        ]
    },
}  # fmt: skip
MERGED = [
    *vocabularies.OBJECT_PIECES,
    b"[[",
    b", ",
    b'"], ["',
    b'["na","me"',
    b"1, 1",
]
TOKENS = [*SINGLE_BYTES, *MERGED]
VOCABULARY = guided.Vocabulary.from_tokens([*TOKENS, None], eos_ids=[len(TOKENS)])


def array_of(items: dict[str, Any], **options: Any) -> guided.Constraint:
    grammar = guided.json_schema({"type": "array", "items": items, "uniqueItems": True}, **options)
    return guided.Constraint(grammar, VOCABULARY)


def tokens_to_end(constraint: guided.Constraint, state: int) -> int:
    """Of the nearer of both ends on which masks under a budget rely."""
    machine = constraint._machine
    with machine.lock:
        found, priced = machine.completions.tokens(state), machine.completions._by_price(state)
    return len(found) if priced is None else min(len(found), len(priced))


@pytest.mark.parametrize("order", each(["schema", "any"], 2))
@pytest.mark.parametrize("kind", list(ITEMS))
def test_behind_every_token_what_is_called_enough_is_enough(kind: str, order: str) -> None:
    """Texts that go on as they went before; a budget was never known to be far, so every token was judged in each."""
    rng = random.Random(f"{kind} {order}")
    constraint = array_of(ITEMS[kind], order=order)
    nearest = guided.Constraint(guided.json_schema(ITEMS[kind]), VOCABULARY)
    first = b"[" + nearest.shortest_text(nearest.start) + b","
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    checked = 0
    for _ in range(some(24, 12)):
        text = rng.choice((b"", first))
        state = constraint.advance_bytes(constraint.start, text)
        for _ in range(24):
            need = constraint._need(state)
            assert need < 300 + 8 * len(text)
            constraint.fill_mask(state, row)
            allowed = [token for token in tokenset.ids(row).tolist() if token < len(TOKENS)]
            if not allowed:
                break
            for token in rng.sample(allowed, min(len(allowed), 6)):
                assert tokens_to_end(constraint, constraint.advance(state, token)) <= need - 2, (text, TOKENS[token])
                checked += 1
            again = [token for token in allowed if len(text) > 3 and (text + TOKENS[token])[-5:] in text]
            marks = [token for token in allowed if TOKENS[token][:1] in b',"[]{}']
            chosen = rng.choice(again or allowed) if rng.random() < 0.6 else rng.choice(marks or allowed)
            text, state = text + TOKENS[chosen], constraint.advance(state, chosen)
    assert checked > (200 if ALL else 40)


def test_a_far_budget_is_the_mask_without_one() -> None:
    """In an array that holds something already."""
    for items in ITEMS.values():
        constraint = array_of(items)
        plain, far = np.zeros((2, VOCABULARY.n_words), np.uint32)
        state = constraint.advance_bytes(constraint.start, b"[")
        for byte in constraint.shortest_text(
            constraint.advance_bytes(state, b"[" if items.get("type") == "array" else b"")
        ):
            constraint.fill_mask(state, plain)
            constraint.fill_budget_mask(state, far, 400)
            assert np.array_equal(plain, far)
            state = constraint.advance(state, byte)


def test_no_bound_is_seen_where_fixed_members_hold_themselves() -> None:
    """Then tokens are judged, as before."""
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "boolean"}},
        "additionalProperties": False,
    }
    grammar = guided.json_schema(
        {"$defs": {"node": node}, "type": "array", "items": {"$ref": "#/$defs/node"}, "uniqueItems": True}
    )
    constraint = guided.Constraint(grammar, VOCABULARY)
    assert isinstance(constraint._machine, DistinctMachine)
    state = constraint.advance_bytes(constraint.start, b'[{"n":true},')
    assert constraint._need(state) >= FAR
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    constraint.fill_budget_mask(state, row, 30)
    assert row.any()


def test_zeros_alone_make_no_other_number() -> None:
    digits, ones = (guided.regex(pattern).rules[0].body for pattern in (r"1(\.0*)?", r"1(\.0*1*)?"))
    assert isinstance(digits, Terminal) and isinstance(ones, Terminal)
    assert lengthening(digits.expr) == Lengthening(2, 1)
    assert lengthening(digits.expr, by_digits=True) is None
    assert lengthening(ones.expr, by_digits=True) == Lengthening(3, 1)
