"""Items that must differ where values are infinitely many: quick answers against the plain search for a way out.

The quick answers (a way to a free value is seen by the automaton's state alone, tokens that cannot reach a next item
are not tried) are switched off in a second constraint; both must allow the same tokens everywhere.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.machine import DistinctMachine
from guided.constraint.distinct.supply import Supply
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import each, some

UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}
RECORD = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "kind": {"enum": ["a", "b"]}, "n": {"enum": [0, 10]}},
    "additionalProperties": False,
}
SCHEMAS: dict[str, Any] = {
    "records": {**UNIQUE, "items": RECORD},
    "tails": {**UNIQUE, "items": {**RECORD, "required": ["id", "kind"]}},
    "either": {**UNIQUE, "items": {"oneOf": [{"type": "string", "minLength": 1}, RECORD, {"const": 0}]}},
    "anything": UNIQUE,
    "nested": {**UNIQUE, "items": {**UNIQUE, "items": {"anyOf": [{"enum": [0, "a"]}, {**RECORD, "required": ["n"]}]}}},
    "open": {**UNIQUE, "items": {"type": "object", "properties": {"k": {"const": 0}}, "required": ["k"]}},
    "pairs": {
        **UNIQUE,
        "minItems": 3,
        "items": {
            "type": "object",
            "properties": {"k": {"enum": ["a", "ab"]}, "n": {"enum": ["", "b", 0]}},
            "required": ["k"],
            "additionalProperties": False,
        },
    },
    "bounded": {**UNIQUE, "items": {**RECORD, "properties": {"id": {"type": "string", "maxLength": 2}}}},
    "strings": {**UNIQUE, "items": {"type": "string"}},
    "words": {**UNIQUE, "items": {"enum": ["", "a", "ab", 'q"', "\\", "\n", "\u00e9", "\u00e8"]}, "minItems": 2},
    "quoted": {**UNIQUE, "items": {"enum": ['"', "\\", "\t"]}},
    "letters": {**UNIQUE, "items": {"type": "string", "pattern": "^[ab]*$"}},
    "short": {**UNIQUE, "items": {"type": "string", "pattern": "^[ab]{0,2}$"}},
    "rows": {**UNIQUE, "items": {**UNIQUE, "items": {"enum": ["", "a", "ab", 0]}}},
    "digits": {**UNIQUE, "items": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}},
    "fixed members": {**UNIQUE, "items": {"type": "object", "additionalProperties": {"enum": [0, "a"]}}},
}


def value(rnd: random.Random, depth: int = 0) -> Any:
    if depth > 2 or rnd.random() < 0.35:
        return rnd.choice([0, 10, "a", "b", "ab", "", 'q"', "\u00e9", None])
    if rnd.random() < 0.35:
        return [value(rnd, depth + 1) for _ in range(rnd.randint(0, 3))]
    names = rnd.sample(["id", "kind", "n", "k", "x"], rnd.randint(0, 3))
    return {name: value(rnd, 3) for name in names}


def spelled(item: Any, rnd: random.Random) -> str:
    text = json.dumps(item, separators=rnd.choice([(",", ":"), (", ", ": ")]))
    return (
        text.replace('"a"', '"\\u0061"') if rnd.random() < 0.2 else text.replace("0", rnd.choice(["0", "0.0", "0e1"]))
    )


def vocabulary_of(rnd: random.Random) -> guided.Vocabulary:
    pieces = {b'"},{"', b'"},', b"},{", b'","', b'":"a"},{"id":"a"}', b"],[", b'"a","a"', b'a"}', b'\\u0061"}', b"[0,0"}
    pieces |= {b'[ "a", "a"', b"[\n0,0]", b"[[],[]]", b"[{},{}", b"[],", b"[[],", b"[:,", b"[,", b'"[0,0", "'}
    pieces |= {
        b'","","',
        b'","",',
        b'","\\',
        b'\\",',
        b'\\",\\"',
        b'",[',
        b'",-',
        b'", "',
        b' "',
        b'"a',
        b'a",',
        b'"]',
        b'","#',
    }
    pieces |= {
        b'"\\',
        b"\\u",
        b"\\u006",
        b'"ab',
        b'ab"',
        b'","a',
        b'"a", ',
        b"0,",
        b",0",
        b",0,",
        b"null,",
        b'","a","b',
        b'"\xc3',
    }
    for _ in range(50):
        data = spelled([value(rnd) for _ in range(3)], rnd).encode()
        at = rnd.randrange(len(data))
        pieces.add(data[at : at + rnd.randint(1, 12)])
    return vocabularies.of_tokens(vocabularies.bytes_first(pieces))


def searching(constraint: Constraint) -> Constraint:
    """The same, which decides everything by search."""
    made = Constraint(constraint.grammar, constraint.vocabulary)
    machine = made._machine
    assert isinstance(machine, DistinctMachine)

    class Searching(Liveness):
        def is_open(self, state: int, text: Any) -> bool:
            return False

        def _is_open_behind_escape(self, state: int, text: Any) -> bool:
            return False

    class Closed(Supply):
        def is_open_value(self, state: int) -> bool:
            return False

    machine.liveness = Searching(machine.steps, Closed(machine.steps), machine.limits)
    return made


def compare(name: str, seed: int, n_texts: int) -> None:
    rnd = random.Random(f"{name} {seed}")
    vocabulary = vocabulary_of(rnd)
    whitespace, spelling = rnd.choice([None, "compact"]), rnd.choice(["plain", "any"])
    quick = Constraint(guided.json_schema(SCHEMAS[name], whitespace=whitespace, spelling=spelling), vocabulary)
    plain = searching(quick)
    row = np.zeros(vocabulary.n_words, np.uint32)
    letters = frozenset(rnd.sample(b"0abidkn", 3)) | frozenset(b'"{}[],:')
    for _ in range(n_texts):
        done = b""
        state, other = quick.start, plain.start
        for _ in range(40):
            quick.fill_mask(state, row)
            ways = []
            for token, piece in enumerate(vocabulary.tokens[:-1]):
                assert piece is not None
                allowed = bool(int(row[token >> 5]) >> (token & 31) & 1)
                where = f"{piece!r} after {done!r} of {name}, seed {seed}"
                assert allowed == (quick.advance(state, token) != 0), f"mask and advance differ: {where}"
                assert allowed == (plain.advance_bytes(other, piece) != 0), f"search says {not allowed}: {where}"
                if allowed:
                    ways.append((len(piece) > 1 or piece[0] in letters, rnd.random(), token))
            if not ways:
                break
            token = max(ways)[2]
            piece = vocabulary.tokens[token]
            assert piece is not None
            state, other, done = quick.advance(state, token), plain.advance_bytes(other, piece), done + piece


@pytest.mark.parametrize("name", each(SCHEMAS, 2))
def test_quick_answers(name: str) -> None:
    compare(name, 0, some(4, 12))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
def test_many_quick_answers(name: str) -> None:
    for seed in range(1, 25):
        compare(name, seed, 4)


@pytest.mark.parametrize("name", each(SCHEMAS, 2))
def test_contracts(name: str) -> None:
    constraint = guided.compile(guided.json_schema(SCHEMAS[name]), vocabulary_of(random.Random(7)))
    check_constraint(constraint, walks=some(4, 8), length=15)


def test_a_new_item_far_away_is_found_whatever_the_limit() -> None:
    """The state is alive, so there is one: a budget never meets an error in the middle of a text."""
    schema = {
        "type": "array",
        "items": {"type": "string", "pattern": "^[ab]{8}$"},
        "uniqueItems": True,
        "minItems": 100,
    }
    constraint = guided.compile(
        guided.json_schema(schema),
        vocabularies.of_bytes(),
        limits=guided.Limits(search_states=60),
    )
    words = ["".join(word) for word in itertools.product("ab", repeat=8)][:90]
    for more in ("", ', "', ', "a'):
        state = constraint.advance_bytes(constraint.start, (json.dumps(words)[:-1] + more).encode())
        rest = constraint.shortest_text(state)
        items = json.loads(json.dumps(words)[:-1] + more + rest.decode())
        assert len(items) == len(set(items)) == 100
