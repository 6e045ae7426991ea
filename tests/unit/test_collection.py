"""Masks and steps are not interrupted by Python's garbage collector, which is left as it was found."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import guided
from guided.collection import hold, release, set_aside
from guided.constraint.constraint import Constraint
from tests import vocabularies

VOCABULARY = guided.Vocabulary.from_tokens([*vocabularies.SINGLE_BYTES, b'", "', b'": ', None], eos_ids=[258])
ITEMS = {"type": "array", "uniqueItems": True, "items": {"type": "object", "properties": {"a": {"type": "string"}}}}
SCHEMAS = [{"type": "object", "properties": {"a": {"enum": ["x", 1, None]}, "b": {"pattern": "^[a-f]{3}$"}}}, ITEMS]
TEXTS = [b'{"a": "x", "b": "abc", "c": [1, {}]}', b'[{"a": "x"}, {"a": "y", "a2": 1}, {"b": [{}]}]']


@pytest.fixture
def eager() -> Iterator[None]:
    """A collector that comes at every allocation."""
    before, enabled = gc.get_threshold(), gc.isenabled()
    gc.enable()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)
    if not enabled:
        gc.disable()


def _allocate() -> None:
    several: list[list[int]] = [[] for _ in range(200)]  # more than the interpreter has ready
    assert len(several) == 200


def _read(constraint: Constraint, text: bytes) -> None:
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    state = constraint.start
    for byte in text:
        constraint.fill_mask(state, row)
        state = constraint.advance(state, byte)
        assert state


@pytest.mark.parametrize(("schema", "text"), zip(SCHEMAS, TEXTS, strict=True))
def test_no_collection_begins_within_a_call(schema: dict[str, object], text: bytes, eager: None) -> None:
    _read(guided.compile(guided.json_schema(schema), VOCABULARY), text)  # which imports what is needed
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    schema = {**schema, "title": "not seen before"}
    within = False
    begun: list[bool] = []

    def seen(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            begun.append(within)

    gc.callbacks.append(seen)
    try:
        within = True
        grammar = guided.json_schema(schema)
        within = False
        _allocate()
        within = True
        constraint = guided.compile(grammar, VOCABULARY)
        within = False
        state = constraint.start
        for byte in text:
            _allocate()
            within = True
            constraint.fill_mask(state, row)
            within = False
            assert gc.isenabled()
            _allocate()
            within = True
            state = constraint.advance(state, byte)
            within = False
            assert gc.isenabled()
            assert state
    finally:
        gc.callbacks.remove(seen)
    assert begun
    assert not any(begun)


def test_a_collector_that_is_off_stays_off() -> None:
    enabled = gc.isenabled()
    gc.disable()
    try:
        assert not hold()
        _read(guided.compile(guided.json_schema(SCHEMAS[0]), VOCABULARY), TEXTS[0])
        assert not gc.isenabled()
    finally:
        if enabled:
            gc.enable()


def test_it_is_on_again_after_errors_and_nested_holds(eager: None) -> None:
    with pytest.raises(guided.GuidedError):
        guided.json_schema({"$ref": "#/nowhere"})
    assert gc.isenabled()
    with pytest.raises(guided.GuidedError):
        guided.compile(guided.regex("a"), guided.Vocabulary.from_tokens([b"b", None], eos_ids=[1]))
    assert gc.isenabled()
    assert hold()
    assert not hold()
    release()
    assert gc.isenabled()


def test_it_is_on_again_after_many_threads(eager: None) -> None:
    gc.set_threshold(700, 10, 10)
    constraint = Constraint(guided.json_schema(ITEMS), VOCABULARY)

    threads = [threading.Thread(target=_read, args=(constraint, TEXTS[1])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()


def test_what_is_set_aside_is_walked_no_more() -> None:
    here = [object() for _ in range(3)]
    assert any(each is here for each in gc.get_objects())
    set_aside()
    later = [here]
    walked = gc.get_objects()
    assert not any(each is here for each in walked) and any(each is later for each in walked)
