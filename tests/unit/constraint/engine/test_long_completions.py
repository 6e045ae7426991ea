"""The shortest text of records with very many required members: found in linear work, however long."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import guided
from guided.constraint.engine.completion import Completions
from guided.constraint.engine.machine import ConstraintMachine
from guided.eval.byte_sampling import compile_bytes, sample_text, shortest_text
from tests import vocabularies
from tests.amounts import Refusals, some
from tests.twin.json_schemas import schema

WORK = ("advance_text", "cost", "closure", "next_bytes", "threads")


def record(n: int, **more: Any) -> dict[str, Any]:
    types = ["string", "integer", "boolean"]
    members = {f"member{i}": {"type": types[i % 3]} for i in range(n)}
    return {"type": "object", "properties": members, "required": list(members), **more}


def work(n: int, monkeypatch: pytest.MonkeyPatch, **more: Any) -> int:
    """Calls of a machine's questions until the shortest text is known."""
    constraint = compile_bytes(guided.json_schema(record(n, **more)))
    calls = 0
    with monkeypatch.context() as patched:
        for name in WORK:
            asked = getattr(ConstraintMachine, name)

            def counted(*arguments: Any, asked: Any = asked) -> Any:
                nonlocal calls
                calls += 1
                return asked(*arguments)

            patched.setattr(ConstraintMachine, name, counted)
        text = shortest_text(constraint)
    assert len(json.loads(text)) == n
    assert len(text) == constraint.shortest_completion(constraint.start)
    return calls


@pytest.mark.parametrize("more", [{}, {"additionalProperties": False}, {"additionalProperties": {"type": "null"}}])
def test_work_grows_with_the_text(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = work(100, monkeypatch, **more), work(400, monkeypatch, **more)
    # Four times the members, with one digit more in most names: once it was sixteen times.
    assert many < 5.5 * few
    assert many < 400 * 100


def test_more_members_than_a_search_may_visit_states() -> None:
    constraint = compile_bytes(guided.json_schema(record(1_500)))
    assert constraint.shortest_completion(constraint.start) > guided.Limits().search_states
    for text in (shortest_text(constraint), sample_text(constraint, 3)):
        assert set(record(1_500)["required"]) <= set(json.loads(text))


def test_what_is_left_is_again_the_rest_of_the_text() -> None:
    constraint = compile_bytes(guided.json_schema(record(60)))
    text = shortest_text(constraint)
    for place in (0, 1, 100, len(text) - 1):
        state = constraint.advance_bytes(constraint.start, text[:place].encode())
        assert constraint.shortest_completion(state) == len(text) - place


def test_long_texts_are_the_first_in_byte_order_too() -> None:
    long = {"type": "string", "minLength": 600}
    member = {"type": "object", "properties": {"a": {**long, "minLength": 596}}, "required": ["a"]}
    constraint = compile_bytes(guided.json_schema({"anyOf": [member, {"type": "array", "items": long, "minItems": 1}]}))
    assert constraint.shortest_text(constraint.start) == b'["' + b" " * 600 + b'"]'


def test_a_name_that_must_not_be_a_word_ends_as_another() -> None:
    """Behind the word the way on owes that the name be none, which no edge tells."""
    schema = {"properties": {"ab": {"const": "a long text"}}, "additionalProperties": {"type": "integer"}}
    constraint = compile_bytes(guided.json_schema({"type": "object", **schema}))
    for begun, rest in ((b'{"a', b'":0}'), (b'{"ab', b' ":0}'), (b'{"abc', b'":0}')):
        assert constraint.shortest_text(constraint.advance_bytes(constraint.start, begun)) == rest


@pytest.mark.parametrize("seed", range(3))
def test_terminal_by_terminal_is_byte_by_byte(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From places all over, with tokens that hold several terminals, in either order of asking."""
    rnd = random.Random(seed)
    vocabulary = vocabularies.of_tokens([*vocabularies.SINGLE_BYTES, *vocabularies.OBJECT_PIECES, b'":"', b'","'])
    with Refusals(most=0.5) as refusals:
        for _ in range(some(100)):
            with refusals.trial(guided.GuidedError):
                grammar = guided.json_schema(schema(rnd))
                fast, slow = guided.Constraint(grammar, vocabulary), guided.Constraint(grammar, vocabulary)
                assert_same_texts(fast, slow, rnd, monkeypatch)


def assert_same_texts(
    fast: guided.Constraint, slow: guided.Constraint, rnd: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = [(fast.start, slow.start)]
    row = np.zeros(fast.vocabulary.n_words, np.uint32)
    for _ in range(12):
        fast.fill_mask(states[-1][0], row)
        tokens = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        token = int(rnd.choice(tokens.tolist()))
        states.append((fast.advance(states[-1][0], token), slow.advance(states[-1][1], token)))
    rnd.shuffle(states)
    for one, other in states:
        if fast.is_accepting(one):
            continue
        found = fast.shortest_text(one), fast.shortest_completion(one)
        with monkeypatch.context() as patched:
            patched.setattr(Completions, "_next_piece", Completions._next_byte)
            assert found == (slow.shortest_text(other), slow.shortest_completion(other))
