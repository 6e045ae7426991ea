"""What a first visit of a state may rest on: fuel, kernels without a dispatcher, room, and who frees what."""

from __future__ import annotations

import gc
import itertools
import json
import weakref

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.json_text import Expects, Mode, Reader
from guided.constraint.engine.machine import ConstraintMachine
from guided.kernels import entry
from guided.kernels.data.addresses import address, address_row
from guided.kernels.data.layout import FUEL, N_SEGMENTS
from guided.kernels.jit import direct
from guided.kernels.masking.rows import fingerprint, same
from tests import vocabularies

VOCABULARY = vocabularies.of_bytes()


def _read(constraint, text):
    state = constraint.start
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    masks = []
    for byte in text:
        constraint.fill_mask(state, row)
        masks.append(row.tobytes())
        assert row[byte >> 5] >> (byte & 31) & 1
        state = constraint.advance(state, byte)
    return masks, state


def test_fuel_is_for_one_step_however_many_came_before():
    grammar = guided.regex("(?:ab|cd|[e-z]+;)*")
    constraint = Constraint(grammar, VOCABULARY, guided.Limits(step_work=400))
    free = Constraint(grammar, VOCABULARY)
    text = b"abcdxyz;" * 400
    masks, state = _read(constraint, text)
    assert state != 0
    assert masks == _read(free, text)[0]


def test_a_step_beyond_the_limit_is_refused():
    schema = {"type": "array", "items": {"enum": [f"{i:03d}x" for i in range(400)]}}
    constraint = Constraint(guided.json_schema(schema), VOCABULARY, guided.Limits(step_work=2))
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    with pytest.raises(guided.LimitError):
        constraint.fill_mask(constraint.start, row)


@pytest.mark.parametrize("size", [1, 3, 4008])
def test_a_kernel_called_directly_answers_as_its_dispatcher(size):
    generator = np.random.default_rng(size)
    one = generator.integers(0, 1 << 32, size, np.uint32)
    other = one.copy()
    assert same(one, other)
    weights = generator.integers(1, 1 << 32, size, np.uint32)
    assert direct(same)(one, other)
    assert direct(fingerprint)(one, weights) == fingerprint(one, weights)
    other[-1] ^= 1
    assert not direct(same)(one, other)
    assert fingerprint(one, weights) != fingerprint(other, weights)


def test_what_a_first_mask_says_is_the_fingerprint_of_its_row():
    constraint = Constraint(guided.json_schema({"type": "array", "items": {"type": "integer"}}), VOCABULARY)
    state = constraint.advance_bytes(constraint.start, b"[1")
    row, ends, key = constraint._machine.visit(state)
    assert not ends
    assert key == fingerprint(row, constraint._shared.weights)


def test_room_for_many_states_changes_no_mask():
    schema = {"type": "object", "properties": {f"name{i}": {"enum": [f"v{i}", i]} for i in range(60)}}
    data = json.dumps({f"name{i}": [f"v{i}", i][i % 2] for i in range(60)}).encode()
    constraint = Constraint(guided.json_schema(schema), VOCABULARY)
    before = constraint._machine.inner if hasattr(constraint._machine, "inner") else constraint._machine
    first = before.tables.state_offset.size
    masks, state = _read(constraint, data)
    assert before.tables.state_offset.size > first
    assert _read(constraint, data) == (masks, state)
    entry.rehash(before.table, False)
    entry.rehash(before.table, True)
    assert constraint.advance_bytes(constraint.start, data) == state


@pytest.mark.parametrize(
    "array",
    [np.arange(5), np.zeros((3, 4), np.uint8), np.zeros((0, 3)), np.arange(9)[::2], np.frombuffer(b"abc", np.uint8)],
)
def test_addresses_are_those_that_numpy_says(array):
    if array.size:
        assert address(array) == array.ctypes.data
    assert address_row(array)[1:] == (array.shape[0], array.shape[1] if array.ndim > 1 else 0)


def test_texts_that_are_read_are_freed_without_the_garbage_collector():
    reader = Reader()
    level = reader.with_name(None, b"name", True).level
    level = reader.turned(level, Expects.COMMA)
    text = reader.text(level, Mode.NAME, b"other")
    assert text is reader.text(level, Mode.NAME, b"other")
    gone = weakref.ref(reader)
    was = gc.isenabled()
    gc.disable()
    try:
        assert not gc.is_tracked(level)
        assert not gc.is_tracked(text)
        del reader, level, text
        assert gone() is None
    finally:
        if was:
            gc.enable()


@pytest.mark.parametrize("checked", [False, True])
def test_a_constraint_that_nobody_holds_is_gone_at_once(checked):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": checked}
    constraint = Constraint(guided.json_schema(schema), VOCABULARY)
    text = b'{"a": "x"}' if not checked else b'{"a": "x", "b": {"c": 1}}'
    _read(constraint, text)
    gone = weakref.ref(constraint)
    machine = weakref.ref(constraint._machine)
    was = gc.isenabled()
    gc.disable()
    try:
        del constraint
        assert gone() is None
        assert machine() is None
    finally:
        if was:
            gc.enable()


def test_rows_of_shares_are_zero_behind_a_mask():
    words = [*vocabularies.SINGLE_BYTES]
    words += [b'"' + bytes((a, b)) for a in b',]}:" ab' for b in b', \n"]}ab']
    vocabulary = vocabularies.of_tokens(words)
    schema = {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}}
    constraint = Constraint(guided.json_schema(schema), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    machine = getattr(constraint._machine, "inner", constraint._machine)
    state = constraint.start
    for byte in b'[{"a": "x", "b": ["", {"a": ""}]}, {}]':
        constraint.fill_mask(state, row)
        assert not machine._extra.rows[1:].any()
        state = constraint.advance(state, byte)
        assert state
    assert int(machine.counters[N_SEGMENTS]) > 0


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 1000])
def test_texts_of_any_length_are_read_as_their_bytes(length):
    constraint = Constraint(guided.regex("(?:ab)*a?"), VOCABULARY)
    text = (b"ab" * length)[:length]
    state = constraint.start
    for byte in text:
        state = constraint.advance(state, byte)
    assert constraint.advance_bytes(constraint.start, text) == state
    assert constraint.advance_bytes(state, b"") == state
    assert constraint.advance_bytes(constraint.start, text + b"c") == 0


def test_what_tokens_share_is_read_once_where_terminals_may_not_stand_side_by_side() -> None:
    # One by one, each of the 80,000 tokens that a string allows was read from its first byte: 100 ms and more a mask.
    letters = [bytes(word) for n in (1, 2, 3) for word in itertools.product(b"abcdefgh", repeat=n)]
    vocabulary = vocabularies.of_tokens([*vocabularies.SINGLE_BYTES, *(word for word in letters if len(word) > 1)])
    grammar = guided.lark('start: S | NAME "from" NAME\nS: /"[a-h]*"/\nNAME: /[a-z]+/')
    constraint = Constraint(grammar, vocabulary)
    machine = constraint._machine
    assert isinstance(machine, ConstraintMachine) and not machine.settles
    state = constraint.advance_bytes(constraint.start, b'"a')
    expected = {token for token in range(vocabulary.size) if constraint.advance(state, token)}
    assert len(expected) == len(letters) + 1
    assert set(tokenset.ids(machine.mask(state)).tolist()) == expected
    # All is known now, so this is what reading takes.
    before = int(machine.counters[FUEL])
    machine.mask(state)
    assert before - int(machine.counters[FUEL]) < len(letters)
