"""A constraint goes with its last reference: nothing in it is part of a circle that only the collector could undo."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import guided
from tests import vocabularies

BYTES = vocabularies.of_bytes()

GRAMMARS = {
    "object": (lambda: guided.json_schema({"properties": {"a": {"type": "integer"}}, "required": ["a"]}), b'{"a":1}'),
    "any order": (lambda: guided.json_schema({"properties": {"a": {}, "b": {}}}, order="any"), b'{"b":1,"a":2}'),
    "counted": (lambda: guided.json_schema({"type": "object", "minProperties": 2}), b'{"a":1,"b":2}'),
    "distinct": (lambda: guided.json_schema({"type": "array", "uniqueItems": True, "maxItems": 9}), b'["x",1]'),
    "finite": (lambda: guided.json_schema({"items": {"enum": ["a", "b"]}, "uniqueItems": True}), b'["b","a"]'),
    "patterns": (lambda: guided.json_schema({"type": "string", "format": "regex"}), b'"([a-z]{2,3})"'),
    "lark": (lambda: guided.lark('start: "(" start ")" | /[a-z]+/\n%ignore " "'), b"( (abc) )"),
    "gbnf": (lambda: guided.gbnf('root ::= [a-z]{2,40} ("," root)?'), b"abc,defg"),
    "regex": (lambda: guided.regex("(foo|bar){2,5}"), b"foobarfoo"),
}


@pytest.fixture(autouse=True, scope="module")
def frozen():
    """What is there before these tests is not walked each time."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_constraint_that_nobody_holds_is_freed_at_once(name: str) -> None:
    make, text = GRAMMARS[name]
    _use(guided.Constraint(make(), BYTES), text)  # compiling a kernel leaves circles of its own, of stack frames
    gc.collect()
    gc.disable()
    try:
        constraint = guided.Constraint(make(), BYTES)  # which `compile` would remember
        _use(constraint, text)
        held = _machines(constraint._machine)
        del constraint
        assert [name for name, machine in held if machine() is not None] == []
    finally:
        gc.enable()


def _machines(outermost: object) -> list[tuple[str, weakref.ref[object]]]:
    """The machine and those within: what is beside each of a product's refers to the one within."""
    found = []
    machine: object | None = outermost
    while machine is not None:
        found.append((type(machine).__name__, weakref.ref(machine)))
        machine = getattr(machine, "inner", None)
    return found


def _use(constraint: guided.Constraint, text: bytes) -> None:
    state = constraint.start
    row = np.zeros(BYTES.n_words, np.uint32)
    for byte in text:
        constraint.fill_mask(state, row)
        constraint.fill_budget_mask(state, row, 40)
        state = constraint.advance(state, byte)
    assert constraint.is_accepting(state)
    constraint.shortest_text(constraint.start)
