"""Masks under a token budget where names must not repeat."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.automata.lexer.states import MOST_STATES, StateTable
from guided.constraint.distinct.completion import DistinctCompletions
from guided.constraint.distinct.marked_rules import forces_several
from guided.constraint.distinct.steps import Steps
from tests.vocabularies import SINGLE_BYTES

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


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "null"}},
        {"type": "object", "patternProperties": {"^[ab]+$": {"type": "null"}}, "additionalProperties": False},
        {"type": "object", "patternProperties": {"^x": {"type": "null"}, "^[^x]": {"type": "object"}}},
        {"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True}}},
        {"type": "object", "patternProperties": {"^[a-z]+$": {"type": "null"}}, "properties": MANY},
    ],
)
def test_a_far_budget_forbids_nothing(schema: dict[str, object]) -> None:
    """Where several names are asked for only 24 tokens were allowed; the others were judged one by one."""
    vocabulary = guided.Vocabulary.from_tokens([*SINGLE_BYTES, b'": ', b'{"', b'"a', None], eos_ids=[259])
    constraint = guided.Constraint(guided.json_schema(schema), vocabulary)
    state = constraint.start
    value = b"{}" if "^x" in str(schema) else b"null"
    for byte in b'{"a": %b, "ab":' % value:
        assert constraint._need(state) < 150
        state = constraint.advance_bytes(state, bytes((byte,)))
        assert state


def test_ways_on_that_end_new_names_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all tokens that begin a name as another begins the nearest end was searched for."""
    searched: list[int] = []
    real = DistinctCompletions.enough
    monkeypatch.setattr(DistinctCompletions, "enough", lambda self, state: searched.append(state) or real(self, state))
    vocabulary = guided.Vocabulary.from_tokens(
        [*SINGLE_BYTES, b', "', b', "a', b"ab", b"abc", b'"a', None], eos_ids=[261]
    )
    schema = {"type": "object", "patternProperties": {"^[a-z_]+$": {"type": "null"}}, "additionalProperties": False}
    constraint = guided.Constraint(guided.json_schema(schema), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    for text in (b'{"abcde": null', b'{"abcde": null, "', b'{"abcde": null, "ab', b'{"abcde": null, "abcd'):
        state = constraint.advance_bytes(constraint.start, text)
        for budget in range(9, 14):
            constraint.fill_budget_mask(state, row, budget)
    # That of "abcde" itself.
    assert len(searched) == 1


@pytest.mark.parametrize(
    ("schema", "forces"),
    [
        ({"minProperties": 1}, False),
        ({"minProperties": 2}, True),
        ({"minProperties": 2, "properties": {"a": {}}, "required": ["a"]}, False),
        ({"minProperties": 3, "properties": {"a": {}}, "required": ["a"]}, True),
        ({"not": {"propertyNames": {"not": {"pattern": "^a"}}}}, False),
    ],
)
def test_one_name_that_is_asked_for_repeats_none(schema: dict[str, object], forces: bool) -> None:
    """Of these objects each mask near the end searched 24 ends, 30 ms where names are of patterns."""
    grammar = guided.json_schema({"type": "object", **schema})
    assert forces_several(grammar) == forces
    whole = replace(grammar, prepared=None, rules=tuple(grammar.rules))
    assert forces_several(whole) == forces


def test_a_far_budget_is_known_behind_any_number_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table that a long process has filled, states had no prices any more."""
    table = StateTable()
    table.keys.extend([None] * MOST_STATES)
    monkeypatch.setattr(StateTable, "_current", table)
    assert StateTable.shared() is not table


@pytest.mark.parametrize("budget", [60, 300])
def test_distinct_items_that_are_asked_for_take_few_steps(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the budget, completions were searched for 24 tokens a mask, and for each of twelve strings in each."""
    vocabulary = guided.Vocabulary.from_tokens([*SINGLE_BYTES, b'", "', b'["', b'"a', None], eos_ids=[259])
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 12}
    constraint = guided.Constraint(guided.json_schema(schema), vocabulary)
    n_steps = 0
    step = Steps.step

    def counted(*arguments: Any) -> Any:
        nonlocal n_steps
        n_steps += 1
        return step(*arguments)

    monkeypatch.setattr(Steps, "step", counted)
    row = np.zeros(vocabulary.n_words, np.uint32)
    state = constraint.start
    for left, byte in enumerate(b'["!", "#", "!!'):
        constraint.fill_budget_mask(state, row, budget - left)
        assert tokenset.contains(row, byte)
        assert budget == 60 or left != 2 or tokenset.contains(row, ord("~"))
        state = constraint.advance(state, byte)
    assert n_steps < (100_000 if budget == 60 else 1000)
