"""Names that must differ, where there are infinitely many: masks and steps against the automaton and a plain scan.

No text leads into a dead end here, so a token is allowed exactly if the automaton alone allows it and no object of the
text then holds a name twice.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.machine import DistinctMachine
from guided.constraint.engine.machine import ConstraintMachine
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import each, some

NAMES = ["", "a", "ab", "abc", "ax", "b", "é", "éb", "éx", "\U0001f600", 'q"', "k\\", "known", "other", "\n", "/"]
SCHEMAS: dict[str, Any] = {
    "open": {"properties": {"known": {"type": "integer"}, "other": True}},
    "ends alike": {"properties": {"ab": {"type": "integer"}, "éb": True, "known": {"type": "object"}}},
    "patterns": {"patternProperties": {"^a": {"type": "object"}, "b$": {"type": "array"}}},
    "at least": {"type": "object", "minProperties": 2},
    "short values": {"type": "object", "additionalProperties": {"enum": ["", ",", 1, [], {}]}},
}


def spelled(name: str, rnd: random.Random) -> str:
    """A JSON string of the name, escapes and all."""
    out = ""
    for char in name:
        way = rnd.random()
        if way < 0.1:
            units = char.encode("utf-16-be")
            pairs = [units[i : i + 2].hex() for i in range(0, len(units), 2)]
            out += "".join("\\u" + (pair.upper() if rnd.random() < 0.5 else pair) for pair in pairs)
        elif char == "/" and way < 0.5:
            out += "\\/"
        else:
            out += json.dumps(char, ensure_ascii=False)[1:-1]
    return f'"{out}"'


def text(rnd: random.Random, depth: int = 0) -> str:
    """A random JSON object; names may repeat."""
    space = rnd.choice(["", "", " "])
    members = []
    for _ in range(rnd.randint(1, 4)):
        values = ["1", '""', '"a"', '","', '"\\""', "[]", '[1,"a"]', "true", "{}"]
        value = text(rnd, depth + 1) if depth < 2 and rnd.random() < 0.3 else rnd.choice(values)
        members.append(f"{spelled(rnd.choice(NAMES), rnd)}{rnd.choice(['', space])}:{space}{value}")
    return "{" + space + f",{space}".join(members) + "}"


def repeats(prefix: bytes) -> bool:
    """Does some object that the prefix of a JSON text begins hold a name twice?"""
    shown = prefix.decode("utf-8", "surrogateescape")
    objects: list[set[str] | None] = []
    at, is_name = 0, False
    while at < len(shown):
        char = shown[at]
        at += 1
        if char == '"':
            start = at - 1
            while at < len(shown) and shown[at] != '"':
                at += 2 if shown[at] == "\\" else 1
            if at >= len(shown):
                return False
            at += 1
            if is_name and objects and objects[-1] is not None:
                name = json.loads(shown[start:at], strict=False)
                if name in objects[-1]:
                    return True
                objects[-1].add(name)
            is_name = False
        elif char in "{[":
            objects.append(set() if char == "{" else None)
            is_name = char == "{"
        elif char in "}]":
            objects.pop()
        elif char == ",":
            is_name = bool(objects) and objects[-1] is not None
    return False


def vocabulary_of(rnd: random.Random, *, spanning: bool = True) -> guided.Vocabulary:
    """Single bytes, and pieces of texts: some with whole names, and, if ``spanning``, with the ends of two of them."""
    pieces: set[bytes] = {b'"a":1,"a"', b'":1,"a"', b'"a":1,"', b'","', b'"a"', b'\\u0061"', b'a":', b'":"","', b'"":'}
    pieces |= {b'{"a', b'bc":[', b'"},"a"', b'"a":{"a":', b'u0061":1', b'\\"', b'"b', b"61", b'""'}
    pieces |= vocabularies.pieces_of(rnd, (text(rnd).encode() for _ in range(90)), 14)
    if not spanning:
        pieces = {piece for piece in pieces if not re.search(rb'"\s*:.*,\s*".*"', piece, re.DOTALL)}
    return vocabularies.of_tokens(vocabularies.bytes_first(pieces))


def compare(name: str, seed: int, n_texts: int) -> int:
    rnd = random.Random(f"{name} {seed}")
    vocabulary = vocabulary_of(rnd, spanning=bool(seed % 2))
    writing = {"whitespace": rnd.choice([None, "compact"]), "spelling": rnd.choice(["plain", "any"])}
    grammar = guided.json_schema(SCHEMAS[name], **writing)
    constraint = Constraint(grammar, vocabulary)
    machine = constraint._machine
    assert isinstance(machine, DistinctMachine) and machine.steps.only_names
    assert machine.refusals.trusts_idle is (seed % 2 == 0)
    alone = ConstraintMachine(grammar, vocabulary, constraint.limits)
    row = np.zeros(vocabulary.n_words, np.uint32)
    refused = 0
    for _ in range(n_texts):
        data = text(rnd).encode()
        state, plain = constraint.start, alone.start
        done = b""
        while state and len(done) < len(data):
            constraint.fill_mask(state, row)
            for token, piece in enumerate(vocabulary.tokens[:-1]):
                assert piece is not None
                by_itself = alone.advance(plain, piece) != 0
                expected = by_itself and not repeats(done + piece)
                where = f"{piece!r} after {done!r} of {name}, seed {seed}"
                assert (constraint.advance(state, token) != 0) == expected, f"advance {where}: should be {expected}"
                assert bool(int(row[token >> 5]) >> (token & 31) & 1) == expected, f"mask {where}"
                refused += by_itself and not expected
            fitting = [
                token for token, piece in enumerate(vocabulary.tokens) if piece and data[len(done) :].startswith(piece)
            ]
            token = rnd.choice(fitting)
            piece = vocabulary.tokens[token]
            assert piece is not None
            after = constraint.advance(state, token)
            assert after == constraint.advance_bytes(state, piece)
            state, plain, done = after, alone.advance(plain, piece), done + piece
        assert constraint.is_accepting(state) == (len(done) == len(data) and not repeats(data) and bool(state))
    return refused


@pytest.mark.parametrize("name", each(SCHEMAS, 2))
def test_masks_and_steps(name: str) -> None:
    assert sum(compare(name, seed, 3) for seed in range(some(4, 2))) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("first", range(100, 400, 50))
def test_many_masks_and_steps(name: str, first: int) -> None:
    for seed in range(first, first + 50):
        compare(name, seed, 4)


@pytest.mark.parametrize("name", each(SCHEMAS, 2))
def test_contracts(name: str) -> None:
    constraint = guided.compile(guided.json_schema(SCHEMAS[name]), vocabulary_of(random.Random(7)))
    check_constraint(constraint, walks=4, length=15)


def test_many_names_are_looked_up_both_ways() -> None:
    """More names than there are ways to end one: then the tokens are looked up among the names, else the reverse."""
    rnd = random.Random(5)
    vocabulary = vocabulary_of(rnd)
    constraint = Constraint(guided.json_schema(SCHEMAS["open"], whitespace="compact"), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    done = b"{" + b"".join(b'"n%d":1,' % i for i in range(600)) + b'"abc":1,"'
    for start in (b"", b"a", b"ab", b"n1", b"n59"):
        state = constraint.advance_bytes(constraint.start, done + start)
        constraint.fill_mask(state, row)
        for token, piece in enumerate(vocabulary.tokens[:-1]):
            assert piece is not None
            allowed = bool(int(row[token >> 5]) >> (token & 31) & 1)
            assert allowed == (constraint.advance(state, token) != 0)
            if piece.startswith(b'"'):
                assert not allowed or start not in (b"n1", b"n59")
