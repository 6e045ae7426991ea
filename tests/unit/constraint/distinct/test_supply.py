"""How many strings may still come, against a list of them."""

from __future__ import annotations

import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.machine import DistinctMachine
from tests import vocabularies

WORDS = ["", "a", "ab", "abc", 'q"', "b\\", "\n", "é", "è", "zz"]
TOKENS = [*vocabularies.SINGLE_BYTES, None]
VOCABULARY = guided.Vocabulary.from_tokens(TOKENS, eos_ids=[256])


def machine_of(items: object, spelling: str = "plain") -> DistinctMachine:
    schema = {"type": "array", "uniqueItems": True, "items": items}
    made = Constraint(guided.json_schema(schema, whitespace="compact", spelling=spelling), VOCABULARY)._machine
    assert isinstance(made, DistinctMachine)
    return made


def state_behind(machine: DistinctMachine, text: bytes) -> int:
    return machine.inner.advance_text(machine.inner.start, text)


@pytest.mark.parametrize("spelling", ["plain", "any"])
@pytest.mark.parametrize("begun", ["", "a", "ab", "abc", "q", "b", "z", "zz"])
def test_counts_of_listed_strings(begun: str, spelling: str) -> None:
    machine = machine_of({"enum": WORDS}, spelling)
    state = state_behind(machine, b'["' + begun.encode())
    left = sum(word.startswith(begun) for word in WORDS)
    for number in range(12):
        assert machine.supply.more_than(state, b"", number) == (left > number), (begun, number)


def test_counts_behind_the_beginning_of_an_escape() -> None:
    machine = machine_of({"enum": WORDS}, "any")
    for escape, least in ((b"\\", 5), (b"\\u", 5), (b"\\u00", 5), (b"\\u006", 3), (b"\\u0061", 3)):
        state = state_behind(machine, b'["' + escape)
        pending = b"" if len(escape) == 6 else escape
        # The words that begin with a, and z; é and è have digits that are left out.
        assert machine.supply.more_than(state, pending, least - 2), escape
        assert not machine.supply.more_than(state, pending, len(WORDS)), escape


@pytest.mark.parametrize("pattern", ["^[a-z]*$", "^(ab)*$", "^a{3,}$"])
def test_infinitely_many(pattern: str) -> None:
    machine = machine_of({"type": "string", "pattern": pattern})
    state = state_behind(machine, b'["')
    assert machine.supply.more_than(state, b"", 1000) or not machine.supply.is_infinite(state, b"")


def test_long_strings_take_few_steps() -> None:
    machine = machine_of({"type": "string", "pattern": "^[a-z]{0,40}$"})
    state = state_behind(machine, b'["')
    assert machine.supply.more_than(state, b"", 3)
    assert machine.supply.more_than(state, b"", 300)


def test_counts_behind_an_escape_where_each_character_has_one() -> None:
    machine = machine_of({"enum": WORDS})
    for begun in ("", "q", "b"):
        state = state_behind(machine, b'["' + begun.encode() + b"\\")
        assert machine.supply.more_than(state, b"\\", 0), begun
        assert not machine.supply.more_than(state, b"\\", 1), begun
    # Many strings are counted.
    machine = machine_of({"type": "string", "pattern": r"^[a-z\\]+$", "maxLength": 12})
    state = state_behind(machine, b'["a\\')
    assert machine.supply.more_than(state, b"\\", 100)
