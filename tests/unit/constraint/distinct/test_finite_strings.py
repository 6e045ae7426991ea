"""Items that must differ and are some of a list of strings: exact against the list, without a search for each mask."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.liveness import Liveness
from guided.constraint.distinct.machine import DistinctMachine
from guided.constraint.distinct.used_strings import UsedStrings
from tests import vocabularies
from tests.amounts import mostly_slow, some
from tests.twin.finite_json import TooMany, schema, texts
from tests.unit.constraint.distinct.test_distinct_exact import compare, vocabulary_for

SHORT = {'"': b'\\"', "\\": b"\\\\", "/": b"\\/", "\n": b"\\n", "\t": b"\\t"}
SPACE = b" \t\n\r"


def names(n: int) -> list[str]:
    """Beginnings of each other, characters that need an escape, some beyond ASCII and beyond 16 bits."""
    rnd = random.Random(n)
    parts = ["a", "b", "ab", "css/", "ba", "é", "\n", '"', "\\", "/", "\U0001f600", "u0061", "-"]
    found = {"", "a", "ab", "abc", "abcd", "\n", "n", "\\n", "é", "e", '"', "\\"}
    while len(found) < n:
        found.add("".join(rnd.choices(parts, k=rnd.randint(1, 5))))
    return rnd.sample(sorted(found), n)


def spellings(character: str) -> list[bytes]:
    """Every way to write a character; hexadecimal digits in lower case, as the texts here have them."""
    found = [] if character in '"\\\n\t' else [character.encode()]
    units = character.encode("utf-16-be")
    found.append("".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)).encode())
    return [*found, SHORT[character]] if character in SHORT else found


def rests(value: str, data: bytes) -> tuple[set[bytes], bool]:
    """What is left of the data behind the value's spellings, and whether the data can be a beginning of one."""
    left, begins = {data}, False
    for part in [*(spellings(character) for character in value), [b'"']]:
        behind = set()
        for rest in left:
            for written in part:
                if rest.startswith(written):
                    behind.add(rest[len(written) :])
                elif written.startswith(rest):
                    begins = True
        left = behind
    return left, begins


def in_string(data: bytes, unseen: frozenset[str], missing: int) -> bool:
    for value in unseen:
        left, begins = rests(value, data)
        if begins or any(behind(rest, unseen - {value}, missing - 1) for rest in left):
            return True
    return False


def behind(data: bytes, unseen: frozenset[str], missing: int) -> bool:
    """Can the data come behind an item?"""
    data = data.lstrip(SPACE)
    if data in (b"", b"]"):
        return not data or missing <= 0
    return data[:1] == b"," and begins(data[1:], unseen, missing)


def begins(data: bytes, unseen: frozenset[str], missing: int) -> bool:
    """Can the data come where an item begins?"""
    data = data.lstrip(SPACE)
    return bool(unseen) if not data else data[:1] == b'"' and in_string(data[1:], unseen, missing)


def vocabulary_of(values: list[str], rnd: random.Random) -> guided.Vocabulary:
    pieces = {b'","', b'",', b'"]', b'"a","ab"', b'\\"', b"\\u00", b"\\u0061", b'61"', b"\\ud83d", b'","css/'}
    listed = [json.dumps(value, ensure_ascii=rnd.random() < 0.3).encode() for value in values]
    pieces |= vocabularies.pieces_of(rnd, (b",".join(rnd.sample(listed, 3)) for _ in range(60)), 9)
    return vocabularies.of_tokens(vocabularies.bytes_first(pieces))


def constraint_of(values: list[Any], vocabulary: guided.Vocabulary, **rest: Any) -> Constraint:
    root = {"type": "array", "uniqueItems": True, "items": {"enum": values}, **rest}
    return Constraint(guided.json_schema(root, spelling="any"), vocabulary)


def spelled(value: str, rnd: random.Random) -> bytes:
    return b'"%b"' % b"".join(rnd.choice(spellings(character)) for character in value)


@pytest.mark.parametrize("fewest", [0, 300])
def test_masks_against_the_list(fewest: int) -> None:
    values, rnd = names(300), random.Random(fewest)
    vocabulary = vocabulary_of(values, rnd)
    constraint = constraint_of(values, vocabulary, minItems=fewest)
    tokens = [(token, data) for token, data in enumerate(vocabulary.tokens) if data and data == data.lower()]
    row = np.zeros(vocabulary.n_words, np.uint32)
    dead = 0
    for n_seen in [285, 298, 299, 150, 296, 299][: some(6, 4)]:
        order = rnd.sample(values, len(values))
        unseen = frozenset(order[n_seen:])
        text = b"[" + b",".join(spelled(value, rnd) for value in order[:n_seen]) + b","
        state = constraint.advance_bytes(constraint.start, text)
        # Two ways to begin: with an item that is left, and with one that is there, as far as it can be written.
        for value in (rnd.choice(order[n_seen:]), rnd.choice(order[:n_seen])):
            written = spelled(value, rnd)
            for size in range(len(written)):
                tail = written[:size]
                missing = fewest - n_seen
                at = constraint.advance_bytes(state, tail)
                assert (at != 0) == begins(tail, unseen, missing), (text, tail)
                if not at:
                    break
                if size > 1 and rnd.random() < (0.95 if n_seen < 290 else 0.8):
                    continue
                constraint.fill_mask(at, row)
                for token, data in tokens:
                    alive = begins(tail + data, unseen, missing)
                    dead += not alive
                    assert bool(int(row[token >> 5]) >> (token & 31) & 1) == alive, (text[-80:], tail, data)
                    assert (constraint.advance(at, token) != 0) == alive, (text[-80:], tail, data)
    assert dead > 1000, "too few refused tokens for the comparison to mean much"


def test_every_value_is_written() -> None:
    """As many items as values: whatever is chosen, the last item is the one that is left."""
    values, rnd = names(60), random.Random(1)
    vocabulary = vocabulary_of(values, rnd)
    constraint = constraint_of(values, vocabulary, minItems=len(values))
    row = np.zeros(vocabulary.n_words, np.uint32)
    state, text = constraint.start, b""
    while not constraint.is_accepting(state):
        constraint.fill_mask(state, row)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        token = int(rnd.choice(np.flatnonzero(bits).tolist()))
        text += vocabulary.token_bytes(token) or b""
        state = constraint.advance(state, token)
        assert state, text
    assert sorted(json.loads(text)) == sorted(values)


def steps_of(values: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, list[bytes]]:
    """Steps of the checker for all masks of an array of nearly all values, how many masks, and the masks."""
    rnd = random.Random(2)
    vocabulary = vocabulary_of(values, rnd)
    constraint = constraint_of(values, vocabulary)
    machine = constraint._machine
    assert isinstance(machine, DistinctMachine)
    done = [0]
    step = machine.steps.step

    def counted(*parts: Any) -> Any:
        done[0] += 1
        return step(*parts)

    monkeypatch.setattr(machine.steps, "step", counted)
    row = np.zeros(vocabulary.n_words, np.uint32)
    masks = []
    state = constraint.start
    text = json.dumps(sorted(values)[:-3], ensure_ascii=False, separators=(",", ":")).encode()
    for byte in text[:-1]:
        constraint.fill_mask(state, row)
        masks.append(row.tobytes())
        state = constraint.advance(state, byte)
        assert state
    return done[0], len(masks), masks


def search_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is counted or looked up: the trie is walked, and a way out is searched for."""
    monkeypatch.setattr(Liveness, "_outnumbers", lambda *_: False)
    monkeypatch.setattr(UsedStrings, "refused", lambda *_: None)


def test_steps_for_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there already is not gone through for each mask."""
    values = [name for name in names(300) if name.isascii() and name.islower()]
    assert len(values) > 100
    steps, n_masks, masks = steps_of(values, monkeypatch)
    assert steps < 20 * n_masks
    search_only(monkeypatch)
    searched, _, plain = steps_of(values, monkeypatch)
    assert searched > 4 * steps
    assert masks == plain


@pytest.mark.parametrize("seed", mostly_slow(range(8), 4))
def test_few_texts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On random schemas with few texts, by search alone."""
    search_only(monkeypatch)
    rnd = random.Random(900 + seed)
    for _ in range(4):
        root = schema(rnd)
        try:
            all_texts = texts(root)
        except TooMany:
            continue
        if all_texts:
            compare(root, all_texts, vocabulary_for(all_texts, rnd), rnd, 12)


MIXED: dict[str, Any] = {
    "other values": {"enum": ["a", "ab", "b", "", None, 0, 10, [], ["a"], {"a": "a"}]},
    "infinite": {"anyOf": [{"enum": ["a", "ab", "b"]}, {"type": "string", "pattern": "^b(ab)*$"}]},
    "short": {"type": "string", "maxLength": 1, "pattern": '^[ab"]?$'},
    "nested": {"type": "array", "uniqueItems": True, "maxItems": 2, "items": {"enum": ["a", "ab"]}},
}


@pytest.mark.parametrize("name", MIXED)
def test_counting_and_searching_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with alternatives in which items may repeat."""
    rnd = random.Random(3)
    vocabulary = vocabulary_of(["a", "ab", "b", "", "bab"], rnd)
    row = np.zeros(vocabulary.n_words, np.uint32)
    unique = {"type": "array", "uniqueItems": True, "items": MIXED[name]}
    either = {"anyOf": [{**unique, "minItems": 2}, {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}]}
    for root in (unique, either):
        walks: list[list[int]] = []
        for counting in (True, False):
            if not counting:
                search_only(monkeypatch)
            grammar = guided.json_schema(root, order="any", whitespace="compact")
            made = Constraint(grammar, vocabulary)
            rows = []
            for walk in range(some(12, 8)):
                steps = random.Random(walk)
                state = made.start
                for _ in range(25):
                    made.fill_mask(state, row)
                    rows.append(hash(row.tobytes()))
                    allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
                    for token in range(len(vocabulary.tokens) - 1):
                        assert (made.advance(state, token) != 0) == (token in allowed)
                    allowed = [token for token in allowed if vocabulary.token_bytes(token)]
                    if not allowed:
                        break
                    state = made.advance(state, steps.choice(allowed))
            walks.append(rows)
        monkeypatch.undo()
        assert walks[0] == walks[1]
