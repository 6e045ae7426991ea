"""Walks that are kept for a constraint: the same masks as without, as one by one, and however little room there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.constraint.engine import machine as machines
from guided.constraint.engine.first_arrays import segments_of
from guided.kernels.data.layout import N_SEGMENT_TOKENS, N_SEGMENTS
from guided.kernels.masking.segments import WALK
from tests import vocabularies

NAMES = ["ab", "abc", "b", "name", "names", "n"]
PIECES = [
    b'"',
    b'":',
    b'",',
    b'"}',
    b'", "',
    b'": "',
    b'": ',
    b"{",
    b'{"',
    b"}}",
    b"ab",
    b"abc",
    b"na",
    b"me",
    b"names",
]
WORDS = [*vocabularies.SINGLE_BYTES]
WORDS += sorted({a + b for a, b in itertools.product(PIECES, PIECES)} | {p for p in PIECES if len(p) > 1})
WORDS += [b"%d" % i for i in range(10, 300)] + [b'": %d' % i for i in range(20)] + [b"%d, " % i for i in range(20)]
VOCABULARY = vocabularies.of_tokens(WORDS)

SCHEMAS = [
    {"type": "object", "properties": {name: {"type": "string"} for name in NAMES}, "additionalProperties": False},
    {"type": "object", "properties": {name: {"type": "integer"} for name in NAMES}},
    {"type": "object", "additionalProperties": {"enum": ["ab", "abc", 12, 120, {"n": "name"}]}},
]
TEXTS = [
    b'{"ab": "x", "abc": "na", "b": "", "name": "a\\"b", "names": "", "n": "me"}',
    b'{"ab": 1, "abc": 22, "b": -3, "name": 10, "names": 299, "n": 0, "nam": ["ab", {"n": ""}]}',
    b'{"x": "abc", "y": 120, "": {"n": "name"}, "z": 12}',
]


def _machine(schema):
    """The automaton's own machine: a checker's states are not its own."""
    machine = Constraint(guided.json_schema(schema), VOCABULARY)._machine
    return getattr(machine, "inner", machine)


def _states(machine, text):
    state = machine.start
    yield state
    for byte in text:
        state = machine.advance(state, bytes([byte]))
        assert state
        yield state


@pytest.mark.parametrize(("schema", "text"), zip(SCHEMAS, TEXTS, strict=True))
def test_masks_with_kept_walks_are_those_without_and_those_of_each_token(schema, text):
    machine = _machine(schema)
    states = list(_states(machine, text))
    first = [machine.mask(state).copy() for state in states]
    kept = int(machine.counters[N_SEGMENTS])
    assert (machine.segments.key[:kept] & WALK).any()
    again = [machine.mask(state).copy() for state in states]
    for state, one, other in zip(states, first, again, strict=True):
        machine.counters[N_SEGMENTS] = machine.counters[N_SEGMENT_TOKENS] = 0
        machine.segments.hash_slot[:] = -1
        without = machine.mask(state)
        assert np.array_equal(one, other)
        assert np.array_equal(one, without)
        allowed = {token for token, word in enumerate(WORDS) if machine.advance(state, word)}
        assert allowed == {token for token in range(len(WORDS)) if one[token >> 5] >> (token & 31) & 1}


def test_masks_are_the_same_where_there_is_hardly_room_to_keep_walks(monkeypatch):
    free = _machine(SCHEMAS[1])
    wanted = [free.mask(state).copy() for state in _states(free, TEXTS[1])]
    machine = _machine(SCHEMAS[1])
    machine._segments = segments_of(1, 4)
    machine._seen = -1
    grown = []
    grow = machines.ConstraintMachine.grow_segments
    monkeypatch.setattr(machines.ConstraintMachine, "grow_segments", lambda own: (grown.append(1), grow(own)))
    for state, row in zip(_states(machine, TEXTS[1]), wanted, strict=True):
        assert np.array_equal(machine.mask(state), row)
    assert len(grown) > 3
