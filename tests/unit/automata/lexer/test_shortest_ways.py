"""Shortest ways through long terminals: each is searched once, not anew from every place on it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import guided
from guided.automata.lexer import distances
from guided.automata.lexer.states import StateTable
from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.product import ProductMachine
from guided.grammar.formats.times import _LeapSecond
from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.expr import byte_range, concat, intersection, json_string, literal, repeat
from guided.grammar.regular.rests import ESCAPE_LEFT, most_left
from guided.kernels.data.layout import FAR
from tests import vocabularies
from tests.unit.automata.lexer.test_string_spelling import by_search

BYTES = vocabularies.of_bytes()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many states were looked at."""
    counts: Counter[str] = Counter()
    real = distances._steps

    def counted(*arguments: Any) -> Any:
        counts["states"] += 1
        return real(*arguments)

    monkeypatch.setattr(distances, "_steps", counted)
    return counts


@pytest.mark.parametrize("schema", [{"const": "ab" * 400}, {"type": "string", "minLength": 800}, {"const": "\n" * 800}])
def test_the_work_grows_as_the_text(schema: dict[str, object], steps: Counter[str]) -> None:
    constraint = guided.Constraint(guided.json_schema(schema), BYTES)
    text = constraint.shortest_text(constraint.start)
    assert len(text) >= 802
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, text))
    assert steps.total() < 8 * 800


def test_a_date_s_distance_to_its_end_is_known_from_what_it_is(
    monkeypatch: pytest.MonkeyPatch, steps: Counter[str]
) -> None:
    """A clock that may be a leap second has 8,700 states; 6,027 states were looked at before the first end was met."""
    monkeypatch.setattr(StateTable, "_current", StateTable())
    constraint = guided.Constraint(guided.json_schema({"type": "string", "format": "date-time"}), BYTES)
    assert len(constraint.shortest_text(constraint.start)) == 22
    assert steps.total() < 200


def test_what_a_leap_second_takes_to_its_end_is_exact() -> None:
    """Of each of its states one byte more than of the nearest that it leads to."""
    clock = _LeapSecond()
    states: list[Any] = [b""]
    for state in states:
        targets = [target for _, _, target in clock.steps(state)]
        nearest = 0 if clock.accepts(state) else 1 + min(map(clock.least, targets))
        assert clock.least(state) == nearest, state
        if isinstance(state, bytes):
            states += targets if len(state) < 5 else [each for each in targets if state[:5] in (b"23:59", b"04:10")]
        elif not isinstance(state, str):
            states += [target for target in targets if target not in states]


def test_what_a_search_has_passed_is_a_bound_for_later_ones(
    monkeypatch: pytest.MonkeyPatch, steps: Counter[str]
) -> None:
    """Of places beside the ways found before: the same distances as without bounds, after half of the work."""
    found, work = [], []
    for keeps in (True, False):
        monkeypatch.setattr(StateTable, "_current", StateTable())
        schema = {"type": "integer", "multipleOf": 97, "minimum": 10**9}
        constraint = guided.Constraint(guided.json_schema(schema), vocabularies.of_bytes())
        machine = constraint._machine
        before, costs = steps.total(), []
        for place in range(1, 12):
            state = constraint.advance_bytes(constraint.start, b"970000000000"[:place])
            for byte in b"0123456789":
                after = constraint.advance_bytes(state, bytes([byte]))
                if not keeps:
                    machine.states.at_least.clear()
                costs.append([distances.minimum(machine.states, inside) for inside, _, _ in machine.threads(after)])
        found.append(costs)
        work.append(steps.total() - before)
    assert found[0] == found[1]
    assert 3 * work[0] < 2 * work[1]


@pytest.mark.parametrize("names", [['odd"one', "oddity", "o"], ["a" * 70, "ab\n\u0001c", "é\u4e2d"]])
def test_kernels_find_the_ends_of_names(names: list[str]) -> None:
    schema = {"type": "object", "properties": {name: {} for name in names}, "additionalProperties": False}
    constraint = guided.Constraint(guided.json_schema(schema), BYTES)
    machine = constraint._machine
    if isinstance(machine, ProductMachine):
        machine = machine.inner
    assert isinstance(machine, ConstraintMachine)
    machine.begin_prices()
    n_by_kernel = 0
    for name in names:
        for size in range(len(name.encode())):
            state = machine.advance(machine.start, b'{"' + name.encode()[:size])
            for inside, _, _ in machine.threads(state) if state else ():
                # What is enough behind each byte is what is left of the states behind it.
                unknown = [to for _, _, to in machine.states.edges(inside) if machine.states.arrays.minimum[to] < 0]
                machine.states.arrays.widest[inside] = FAR
                machine.effects.need_near(1, machine.effects.root, inside)
                found = [int(machine.states.arrays.minimum[to]) for to in unknown]
                assert found == [by_search(machine.states, to) for to in unknown], (name, size)
                n_by_kernel += len(unknown)
    assert n_by_kernel > 1


@pytest.mark.parametrize(
    "schema",
    [
        {"format": "date-time"}, {"format": "email"}, {"pattern": '^(a"|b{3})+[^c]\n{2}$'}, {"pattern": "^(é|ab)*c{2,5}$"},
        {"pattern": "^[\u0001-\u0003]x?y$"}, {"format": "uuid"}, {"pattern": "^[^b]+$", "minLength": 3, "maxLength": 5},
    ],
)  # fmt: skip
def test_what_structure_tells_is_the_distance(schema: dict[str, object], steps: Counter[str]) -> None:
    constraint = guided.Constraint(guided.json_schema({"type": "string", **schema}), BYTES)
    machine = constraint._machine
    assert isinstance(machine, ConstraintMachine)
    text = constraint.shortest_text(constraint.start)
    for size in range(1, len(text)):
        inside, _, _ = machine.threads(machine.advance(machine.start, text[:size]))[0]
        if machine.states.arrays.decode[inside] == 0:
            assert distances.minimum(machine.states, inside) == by_search(machine.states, machine.states.whole(inside))


def test_plain_characters_are_a_byte_each_and_take_no_escape() -> None:
    """Before a host name of two letters were said to be 24 bytes, six for each, and those of an escape."""
    label = concat(repeat(byte_range(0x61, 0x7A), 2, 61), repeat(concat(literal(b"."), byte_range(0x61, 0x7A))))
    bounded = intersection((label, repeat(any_text()[0], 0, 253)))
    of_any, canonical = (most_left(concat(literal(b'"'), json_string(bounded, canonical=one))) for one in (False, True))
    assert (of_any, canonical) == (2 + 1 + ESCAPE_LEFT, 1 + 2 + 1)
