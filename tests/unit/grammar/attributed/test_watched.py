"""What is found from attributes is found again where what was read of them is the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from guided.grammar.attributed.watched import (
    Log,
    Memory,
    asked,
    deferred,
    gathered,
    grown,
    later,
    watched,
)


class Record(NamedTuple):
    parent: Record | None = None
    name: str = ""
    items: tuple[int, ...] = ()
    sign: int = 0

    @property
    def title(self) -> str:
        return self.name.upper()


@asked("items")
def count(record: Record) -> int:
    return len(record.items)


@asked("items", spare=2)
def is_short(record: Record) -> bool:
    return len(record.items) + 2 < 6


@gathered("items", frozenset[int]())
def among(item: int, some: frozenset[int]) -> frozenset[int]:
    return some & {item}


def doubled(record: Record, times: int) -> int:
    return record.sign * times


CASES = {
    "a field": (lambda one: one.name, [Record(sign=1)], [Record(name="b")]),
    "a property": (lambda one: one.title, [Record(sign=1)], [Record(name="b")]),
    "nothing": (lambda one: 1, [Record(name="b", items=(1,))], []),
    "what is around": (
        lambda one: one.parent is not None and one.parent.sign,
        [Record(sign=5)],
        [Record(Record(sign=1)), Record(Record(sign=2))],
    ),
    "an answer": (count, [Record(items=())], [Record(items=(7,))]),
    "an answer of what was changed": (
        lambda one: count(one._replace(items=(1, 2))) + one.sign,
        [Record(items=(3, 4, 5))],
        [Record(sign=1)],
    ),
    "an answer with one item more": (
        lambda one: count(grown(one, "items", 9)),
        [Record(name="x")],
        [Record(items=(1,))],
    ),
    "with room": (lambda one: is_short(grown(one, "items", 9)), [Record(items=(1, 2))], [Record(items=(1, 2, 3, 4))]),
    "without room": (
        lambda one: is_short(grown(grown(grown(one, "items", 7), "items", 8), "items", 9)),
        [Record(name="x")],
        [Record(items=(1, 2, 3, 4))],
    ),
    "items among others": (
        lambda one: among(grown(one, "items", 9), frozenset((1, 9))),
        [Record(items=(5,)), Record(items=(6, 7))],
        [Record(items=(1,))],
    ),
    "a later item": (
        lambda one: among(grown(one, "items", later(one, frozenset(("sign",)), doubled, 2)), frozenset((4,))),
        [Record(sign=3), Record(sign=1)],
        [Record(sign=2)],
    ),
    "a later field": (
        lambda one: deferred(one, sign=later(one, frozenset(("sign",)), doubled, 3)).sign,
        [Record(name="x")],
        [Record(sign=2)],
    ),
    "a later field that nobody reads": (
        lambda one: deferred(one, sign=later(one, frozenset(("sign",)), doubled, 3)).name,
        [Record(sign=3), Record(sign=5)],
        [Record(name="x")],
    ),
    "items of a later change": (
        lambda one: sum(grown(one, "items", later(one, frozenset(("sign",)), doubled, 2)).items),
        [Record(name="x")],
        [Record(sign=1), Record(items=(4,))],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_nested", [False, True])
def test_what_was_read_is_all_that_must_be_the_same(name: str, is_nested: bool) -> None:
    find, alike, others = CASES[name]  # of the empty record: those alike it, and those that are not
    memory = Memory(1 << 20)
    first = Record()

    def found(record: Record) -> Any:
        """As it is found while something else is."""
        (at,) = watched([record], Log()) if is_nested else (record,)
        known = memory.recall("key", [at])
        if known is None:
            log = Log()
            known = (find(watched([at], log)[0]),)
            memory.remember("key", log, known, 1)
        return known

    kept = found(first)
    assert kept == (find(first),)
    for record in alike:
        assert found(record) is kept
    for record in others:
        assert found(record) is not kept
        assert found(record) == (find(record),)
    assert found(first) is kept


def test_it_is_forgotten_where_there_is_too_much_of_it() -> None:
    memory = Memory(5000)
    for number in range(3):
        memory.remember(number, Log(), "found", 1500)
    assert [memory.recall(number, []) for number in range(3)] == [None, None, "found"]


def test_only_what_comes_again_is_watched_and_not_what_is_another_each_time() -> None:
    memory = Memory(1 << 20)
    tries = [memory.is_worth("key") for _ in range(8)]
    assert tries == [False, True, True, True, False, False, False, False]
    memory = Memory(1 << 20)
    assert not memory.is_worth("key")
    for _ in range(8):
        assert memory.is_worth("key")
        memory.remember("key", Log(), "found", 1)
        assert memory.recall("key", []) == "found"
