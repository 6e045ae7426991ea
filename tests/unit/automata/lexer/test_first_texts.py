"""The first text of a language as structure tells it is the one that a search over its states finds."""

from __future__ import annotations

from typing import Any

import pytest

import guided
from guided.automata.lexer import distances
from guided.automata.lexer.first_texts import first_text
from guided.automata.lexer.states import StateTable
from guided.grammar.regular.expr import byte_range, concat, intersection, literal, repeat
from tests import vocabularies

BYTES = vocabularies.of_bytes()

SCHEMAS: list[dict[str, Any]] = [
    {"pattern": '^(b|a"|c{3})+[^c]\n{2}$'}, {"pattern": "^(é|ab|ba)*c{2,5}$"}, {"pattern": "^[b-f]?(x|y\\\\|z)[0-9]{3}$"},
    {"pattern": "^[^ -~]+$"}, {"pattern": "^[\u0001-\u0003]x?y$"}, {"pattern": "^[\n\t\u0001]{2}q"},
    {"pattern": r"^\S{2}"}, {"pattern": "^(\u0001|aaaaaa)$"},
    {"format": "email"}, {"format": "uuid"}, {"minLength": 3, "maxLength": 5},
    {"pattern": "^[^b]+$", "minLength": 3, "maxLength": 5}, {"pattern": "^[ab]", "minLength": 4},
    {"pattern": "b.*a$", "not": {"enum": ["ba", "b a"]}}, {"allOf": [{"pattern": "^a*b"}, {"pattern": "b+c$"}]},
    {"enum": ["zeta", "alpha\n", "beta\u0001"]}, {"pattern": "^(?!ab)[a-c]{2,}$"},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS)
def test_texts_read_off_are_those_that_a_search_finds(schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StateTable, "_current", StateTable())
    constraint = guided.Constraint(guided.json_schema({"type": "string", **schema}, spelling="any"), BYTES)
    table = StateTable.shared()
    machine = constraint._automaton
    order = [start for start, _, _ in machine.closure(machine.threads(machine.start)[0][1])]
    for state in order:
        if len(order) < 60:
            order += [to for _, _, to in table.edges(state) if to > 1 and to not in order]
    told = {state: distances._read_off(table, state) for state in order}
    monkeypatch.setattr(distances, "_read_off", lambda *_: None)
    assert any(told.values())
    for state, text in told.items():
        assert text is None or not text or text == distances.shortest(table, state), state


def test_of_languages_that_hold_together_the_first_of_one_may_be_it() -> None:
    letters, digits = repeat(byte_range(0x61, 0x7A), 1), repeat(byte_range(0x30, 0x39), 1)
    names = concat(letters, digits)
    assert first_text(intersection((names, repeat(byte_range(0x30, 0x7A), 2))), False) == b"a0"
    # Neither "a0" nor "0000" is in both: a search must tell.
    assert first_text(intersection((names, repeat(byte_range(0x30, 0x7A), 4))), False) is None


def test_long_texts_are_not_written_out() -> None:
    assert first_text(repeat(literal(b"ab"), 100_000), False) is None
    assert first_text(repeat(literal(b"ab"), 100), False) == b"ab" * 100
