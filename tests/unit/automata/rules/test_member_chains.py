"""Records in their order: written piece by piece or at once, deferred or written out, they are one language."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import numpy as np
import pytest

import guided
from guided.automata.rules.records import GROUP
from guided.grammar.ir import Choice, DeferredMembers, Grammar, Member, Members, Reference, Rule, Sequence, Terminal
from guided.grammar.regular.expr import literal
from guided.grammar.rules import every_rule
from tests import vocabularies
from tests.amounts import mostly_slow

BYTES = vocabularies.of_bytes()
VALUES: list[dict[str, Any]] = [
    {"type": "integer"},
    {"enum": ["a", "b"]},
    {"type": "array", "items": {"type": "null"}},
    {"type": "object", "properties": {"x": {"type": "boolean"}, "y": {}}, "required": ["y"]},
]


def written_out(grammar: Grammar) -> Grammar:
    """The same rules, of which nothing is known beforehand, with every member made."""
    return Grammar(every_rule(grammar.rules), grammar.start)


def masks(constraint: guided.Constraint, text: bytes) -> list[bytes]:
    state, found = constraint.start, []
    row = np.zeros(BYTES.n_words, np.uint32)
    for byte in text:
        constraint.fill_mask(state, row)
        found.append(row.tobytes())
        state = constraint.advance(state, byte)
        if state == 0:
            break
    return found


@pytest.mark.parametrize("seed", mostly_slow(range(12), 4))
def test_deferred_and_written_out_are_one_language(seed: int) -> None:
    rnd = random.Random(seed)
    names = [f"n{number}" for number in range(rnd.choice([1, 3, GROUP, 3 * GROUP + 1]))]
    schema = {
        "type": "object",
        "properties": {name: rnd.choice(VALUES) for name in names},
        "required": rnd.sample(names, rnd.randrange(min(3, len(names)) + 1)),
        "additionalProperties": rnd.choice([False, {"type": "null"}]),
    }
    grammar = guided.json_schema(schema)
    one, other = guided.compile(grammar, BYTES), guided.compile(written_out(grammar), BYTES)
    samples = [1, "a", [None, None], {"x": True, "y": [1]}, {"y": {}}, None]
    for _ in range(12):
        chosen = [name for name in names if name in schema["required"] or rnd.random() < 0.6]
        value = {name: rnd.choice(samples) for name in (*chosen, *rnd.choice([(), ("other",)]))}
        text = json.dumps(value).encode()
        assert masks(one, text) == masks(other, text)
    assert one.shortest_text(one.start) == other.shortest_text(other.start)


def test_written_members_are_those_of_the_source() -> None:
    terminal = Terminal(literal(b"x"))

    class Source:
        def key(self, index: int) -> Terminal:
            return terminal

        def value(self, index: int) -> Terminal:
            return terminal

        def at_hand(self, first: int, stop: int) -> list[Terminal]:
            return [terminal] * (stop - first)

        def is_soon_made(self, index: int) -> bool:
            return True

        def placed(self, index: int, value: Terminal) -> Terminal:
            return value

    made = DeferredMembers((None,), False, (True,), Source(), terminal, terminal, (), terminal).written()
    (member,) = made.declared
    assert member.key is terminal
    assert member.required
    assert member.value.parts == (terminal, terminal, terminal)


def test_records_in_left_recursion_are_kept_whole() -> None:
    # text: x, then any number of records of up to two members `ka` and `kb`, each in parentheses.
    key, other, value, comma = (Terminal(literal(word)) for word in (b"k", b"l", b"a", b","))
    middle = Sequence((Terminal(literal(b"=")), value))
    record = Members((Member(key, middle), Member(other, middle, required=True)), (), comma)
    body = Choice(
        (
            Terminal(literal(b"x")),
            Sequence((Reference(0), Terminal(literal(b"(")), record, Terminal(literal(b")")))),
            Sequence((Reference(0), record)),
        )
    )
    constraint = guided.compile(Grammar((Rule("text", body),), 0), BYTES)
    pieces = [b"(l=a)", b"(k=a,l=a)", b"l=a", b"k=a,l=a"]
    for count in range(4):
        for chosen in itertools.product(pieces, repeat=count):
            state = constraint.advance_bytes(constraint.start, b"x" + b"".join(chosen))
            assert state
            assert constraint.is_accepting(state)
    for wrong in (b"x(", b"x(k=a)", b"xk=a", b"x(l=a,k=a)", b"l=a", b"xl", b"x(l=a"):
        state = constraint.advance_bytes(constraint.start, wrong)
        assert not state or not constraint.is_accepting(state)
