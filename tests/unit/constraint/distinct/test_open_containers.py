"""Which containers are infinitely many, and that little is looked for in an item that repeats another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.machine import DistinctMachine
from guided.constraint.distinct.trie_walk import TrieWalk
from tests import vocabularies

TOKENS = [*vocabularies.SINGLE_BYTES, b'long", "b', b'g", ', b'"},{"a', b'ong"},', None]
VOCABULARY = guided.Vocabulary.from_tokens(TOKENS, eos_ids=[len(TOKENS) - 1])


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": members}


def _compiled(items: Any) -> Constraint:
    schema = {"type": "array", "uniqueItems": True, "items": items}
    return Constraint(guided.json_schema(schema, whitespace="compact"), VOCABULARY)


BOOLEAN, WORDS, TEXT = {"type": "boolean"}, {"enum": ["x", "y"]}, {"type": "string"}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (_object(a=BOOLEAN, b=TEXT), True),
        (_object(a=_object(b=WORDS, c={"type": "integer"})), True),
        (_object(a={"type": "array", "items": _object(b=TEXT)}), True),
        ({"type": "object", "additionalProperties": BOOLEAN}, True),
        ({"type": "array", "items": TEXT}, True),
        (_object(a=BOOLEAN, b=WORDS), False),
        ({"type": "array", "items": BOOLEAN, "maxItems": 2}, False),
        (TEXT, False),
    ],
)
def test_containers_of_infinitely_many_values(items: Any, expected: bool) -> None:
    machine = _compiled(items)._machine
    assert isinstance(machine, DistinctMachine)
    state = machine.inner.advance_text(machine.inner.start, b"[")
    assert machine.supply._containers.may_begin(state, machine.supply.is_open_scalar) == expected


def test_items_that_repeat_others_are_mostly_read_without_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[Any] = []
    given = TrieWalk.run
    monkeypatch.setattr(
        TrieWalk, "run", lambda self, state, text: (walks.append(text.text), given(self, state, text))[1]
    )
    constraint = _compiled(_object(a=TEXT, b=TEXT))
    item = b'{"a":"a text that is long","b":"another that is long"}'
    state = constraint.advance_bytes(constraint.start, b"[" + item + b",")
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    for byte in item:
        constraint.fill_mask(state, row)
        allowed = [constraint.advance(state, token) != 0 for token in range(VOCABULARY.size)]
        assert tokenset.flags(row, VOCABULARY.size).tolist() == allowed
        state = constraint.advance(state, byte)
    assert state == 0
    # Where some token holds what is left of the name or string, and its end.
    lefts = (b"a", b"a text that is l", b"a text that is long", b"b", b"another that is l", b"another that is long")
    assert [text for text in walks if text] == list(lefts)
