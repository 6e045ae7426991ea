"""Masks and steps are not interrupted by Python's garbage collector, which is left as it was found."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import guided
from guided.collection import hold, release, uncollected
from guided.constraint.constraint import Constraint

VOCABULARY = guided.Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b'", "', b'": ', None], eos_ids=[258])
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


@pytest.mark.parametrize(("schema", "text"), zip(SCHEMAS, TEXTS, strict=True))
def test_no_collection_begins_within_a_mask_or_a_step(schema: dict[str, object], text: bytes, eager: None) -> None:
    constraint = Constraint(guided.json_schema(schema), VOCABULARY)
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    within = False
    begun: list[bool] = []

    def seen(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            begun.append(within)

    gc.callbacks.append(seen)
    try:
        state = constraint.start
        for byte in text:
            within = True
            constraint.fill_mask(state, row)
            within = False
            assert gc.isenabled()
            several: list[list[int]] = [[] for _ in range(200)]  # more than the interpreter has ready
            assert len(several) == 200
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
        with uncollected(), uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        if enabled:
            gc.enable()


def test_it_is_on_again_after_errors_and_nested_holds(eager: None) -> None:
    with pytest.raises(ZeroDivisionError), uncollected(), uncollected():
        raise ZeroDivisionError
    assert gc.isenabled()
    assert hold()
    assert not hold()
    release()
    assert gc.isenabled()


def test_it_is_on_again_after_many_threads(eager: None) -> None:
    gc.set_threshold(700, 10, 10)
    constraint = Constraint(guided.json_schema(ITEMS), VOCABULARY)

    def work() -> None:
        row = np.zeros(VOCABULARY.n_words, np.uint32)
        state = constraint.start
        for byte in TEXTS[1]:
            constraint.fill_mask(state, row)
            state = constraint.advance(state, byte)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()
